//! A zygote, on the side of the host.
//!
//! Messages are sent by whoever has one. One thread for each zygote starts the process and receives
//! what it sends: Linux sends the parent-death signal when the *thread* that started the child ends,
//! so this thread lives as long as the zygote.

use std::{
    collections::{HashMap, VecDeque},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{
            net::UnixStream as StdStream,
            process::{CommandExt, ExitStatusExt},
        },
    },
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Weak},
    thread,
};

use parking_lot::Mutex;
use rustix::net::Shutdown;
use tokio::sync::oneshot;

use super::{WorkerProgram, spawner::SpawnerShared, worker::Worker};
use crate::{
    control::{self, FromZygote, ToZygote},
    run::describe_exit,
    system::process::ProcessHandle,
};

/// A process that forks workers. It ends when this and all its workers are dropped.
#[derive(Debug)]
pub(super) struct Zygote {
    control: Arc<OwnedFd>,
    state: Mutex<ZygoteState>,
}

#[derive(Debug, Default)]
struct ZygoteState {
    /// The host's ends of the pipes of workers that the zygote was asked for. Each keeps the zygote,
    /// so that whoever waits for the worker gets an answer.
    asked: VecDeque<(StdStream, Arc<Zygote>)>,
    /// Who waits for the end of a worker.
    ending: HashMap<u32, oneshot::Sender<ExitStatus>>,
    /// Messages that did not fit into the socket. Each message has an answer, so there is always
    /// another occasion to send them.
    unsent: VecDeque<ToZygote>,
    /// Why the process has ended.
    gone: Option<String>,
}

impl Zygote {
    /// Starts the process. The spawner gets its workers.
    pub(super) fn start(
        program: &WorkerProgram,
        spawner: Weak<SpawnerShared>,
    ) -> io::Result<Arc<Self>> {
        let (ours, theirs) = control::pair()?;
        for message in &program.messages {
            control::send_first(&ours, message)?;
        }
        let control = Arc::new(ours);
        let zygote = Arc::new(Self { control: Arc::clone(&control), state: Mutex::default() });
        let attendant = Attendant { control, zygote: Arc::downgrade(&zygote), spawner };
        let program = program.clone();
        thread::Builder::new()
            .name("toolgate-zygote".into())
            .spawn(move || attendant.attend(&program, theirs))?;
        Ok(zygote)
    }

    /// Asks for a worker.
    pub(super) fn fork(self: &Arc<Self>) -> io::Result<()> {
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        let mut state = self.state.lock();
        if let Some(why) = &state.gone {
            return Err(io::Error::other(why.clone()));
        }
        state.asked.push_back((ours, Arc::clone(self)));
        self.send(&mut state, ToZygote::Fork(theirs.into()));
        Ok(())
    }

    /// Asks for the exit status of a worker that has ended or was killed.
    pub(super) fn reap(&self, process: u32) -> oneshot::Receiver<ExitStatus> {
        let (answer, status) = oneshot::channel();
        let mut state = self.state.lock();
        if state.gone.is_some() {
            // The receiver exists.
            let _ = answer.send(killed());
        } else {
            state.ending.insert(process, answer);
            self.send(&mut state, ToZygote::Reap(process));
        }
        status
    }

    /// Answers everybody who waits for the process, which has ended. Returns the number of workers
    /// that it will not fork.
    pub(super) fn fail(&self, why: &str) -> usize {
        let mut state = self.state.lock();
        state.gone = Some(why.to_owned());
        state.unsent.clear();
        let (asked, ending) = (std::mem::take(&mut state.asked), std::mem::take(&mut state.ending));
        drop(state);
        for answer in ending.into_values() {
            // The receiver may be gone.
            let _ = answer.send(killed());
        }
        asked.len()
    }

    /// Ends the process and its workers.
    pub(super) fn close(&self) {
        // It may have ended already.
        let _ = rustix::net::shutdown(&self.control, Shutdown::Both);
    }

    fn send(&self, state: &mut ZygoteState, message: ToZygote) {
        state.unsent.push_back(message);
        while let Some(message) = state.unsent.pop_front() {
            if let Err(message) = message.try_send(self.control.as_fd()) {
                state.unsent.push_front(message);
                return;
            }
        }
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        self.close();
    }
}

/// The status of the workers of a zygote that has ended.
fn killed() -> ExitStatus {
    ExitStatus::from_raw(libc::SIGKILL)
}

/// The thread of a zygote.
struct Attendant {
    control: Arc<OwnedFd>,
    zygote: Weak<Zygote>,
    spawner: Weak<SpawnerShared>,
}

impl Attendant {
    fn attend(self, program: &WorkerProgram, theirs: OwnedFd) {
        let why = match spawn(program, theirs) {
            Ok(mut child) => {
                while let Some(message) = FromZygote::receive(&self.control)
                    && let Some(zygote) = self.zygote.upgrade()
                {
                    self.handle(message, &zygote);
                }
                describe_exit(self.end(&mut child))
            }
            Err(error) => error.to_string(),
        };
        let Some(zygote) = self.zygote.upgrade() else { return };
        match self.spawner.upgrade() {
            Some(spawner) => spawner.lost(&zygote, &why),
            None => drop(zygote.fail(&why)),
        }
    }

    fn handle(&self, message: FromZygote, zygote: &Arc<Zygote>) {
        let mut state = zygote.state.lock();
        let started = match message {
            FromZygote::Started { process, handle } => {
                let handle = ProcessHandle::new(process, handle);
                let spawner = Weak::clone(&self.spawner);
                state.asked.pop_front().map(|(stream, zygote)| {
                    Ok(Worker::new(zygote, process, handle, stream, spawner))
                })
            }
            FromZygote::Failed(why) => state.asked.pop_front().map(|_| Err(io::Error::other(why))),
            FromZygote::Ended { process, status } => {
                if let Some(answer) = state.ending.remove(&process) {
                    // The receiver may be gone.
                    let _ = answer.send(ExitStatus::from_raw(status));
                }
                None
            }
        };
        if let Some(message) = state.unsent.pop_front() {
            zygote.send(&mut state, message);
        }
        drop(state);
        match (started, self.spawner.upgrade()) {
            (Some(started), Some(spawner)) => spawner.hand_out(started),
            // Dropping a worker ends it.
            (started, _) => drop(started),
        }
    }

    /// The exit status of the process, which has closed its end or is not needed any more.
    fn end(&self, child: &mut Child) -> Option<ExitStatus> {
        // One that does not keep to the protocol, or does not notice the end, is not waited for.
        if self.zygote.strong_count() == 0 || !has_closed(&self.control) {
            let _ = child.kill();
        }
        child.wait().ok()
    }
}

/// Whether the zygote has closed its end.
fn has_closed(control: &OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut descriptors = [PollFd::new(control, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut descriptors, Some(&at_once)), Ok(1))
        && descriptors.iter().all(|descriptor| descriptor.revents().contains(PollFlags::HUP))
}

/// Starts the process. It inherits only its end of the control socket.
fn spawn(program: &WorkerProgram, control: OwnedFd) -> io::Result<Child> {
    // No code runs between fork and exec, so that the system can start the process without copying
    // this one. The zygote itself closes what it does not need.
    Command::new(&program.program)
        .arg0(&program.name)
        .args(&program.arguments)
        .env_clear()
        // A program that does not play its role must not start the next one.
        .env(super::WORKER_VARIABLE, "1")
        .envs(program.variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::from(control))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C in a terminal is meant for the host, which decides what happens to the script.
        .process_group(0)
        .spawn()
}

#[cfg(test)]
mod tests {
    use rustix::process::{Pid, getpgid};

    use super::*;

    #[test]
    fn signals_of_the_terminal_do_not_reach_a_zygote() {
        let program = WorkerProgram::new("cat", std::iter::empty::<String>());
        let (_ours, theirs) = control::pair().unwrap();
        let mut child = spawn(&program, theirs).unwrap();
        let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        assert_eq!(getpgid(process).ok(), process, "it leads a group of its own");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
