//! The zygote process, which forks workers. Its protocol is that of [`crate::control`].

use std::{os::fd::OwnedFd, process::ExitCode};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    process::{Pid, WaitOptions, waitpid},
    stdio::stdin,
};

use crate::{
    control::{FromZygote, ToZygote},
    lockdown,
    system::{
        allocator,
        fork::{Forked, fork},
        page_tables::MappedFiles,
        stop,
    },
    worker::{self, Engines, MakeEngine, make_engine},
};

/// The main function of a process that a [`crate::Pool`] starts.
pub fn worker_main() -> ExitCode {
    worker_main_with(make_engine)
}

/// The main function of a process that a [`crate::Pool`] starts, with the engines that `make_engine`
/// makes.
///
/// The process must have one thread. It gives up what it can, prepares the engines, and forks a
/// worker for each run.
pub fn worker_main_with(make_engine: MakeEngine) -> ExitCode {
    allocator::watch();
    stop::listen();
    let files = MappedFiles::of_this_process().unwrap_or_default();
    let _ = files.copy_with_forks();
    // Afterwards no memory can become executable.
    #[cfg(feature = "engine-wasm")]
    let component = crate::component::load();
    let locked = lockdown::lock_zygote();
    #[cfg(feature = "engine-wasm")]
    let engines = Engines::prepare_component(component, make_engine, &files);
    #[cfg(not(feature = "engine-wasm"))]
    let engines = Engines::prepare(make_engine, &files);
    match Zygote::default().attend(engines.problem()) {
        Some(pipe) => worker::main(pipe, locked, engines),
        None => ExitCode::SUCCESS,
    }
}

/// The side of the zygote.
#[derive(Default)]
struct Zygote {
    /// Workers that the host wants to be reaped, and that have not ended yet.
    ending: Vec<(Pid, OwnedFd)>,
}

impl Zygote {
    /// Does what the host asks for. Returns the pipe in a new worker, and nothing when the host is
    /// gone. `problem` says why no worker can run a script.
    fn attend(mut self, problem: Option<&str>) -> Option<OwnedFd> {
        loop {
            match self.next()? {
                ToZygote::Fork(_) if let Some(problem) = problem => {
                    answer(&FromZygote::Failed(problem.to_owned()));
                }
                ToZygote::Fork(pipe) => match fork() {
                    Ok(Forked::Child) => return Some(pipe),
                    Ok(Forked::Parent(worker)) => {
                        // The worker alone has the pipe, so that the host notices its end.
                        drop(pipe);
                        let process = worker.as_raw_pid().unsigned_abs();
                        answer(&FromZygote::Started { process, handle: handle(worker) });
                    }
                    Err(error) => answer(&FromZygote::Failed(error.to_string())),
                },
                ToZygote::Reap(process) => {
                    let worker = i32::try_from(process).ok().and_then(Pid::from_raw)?;
                    // It was killed, but may need a moment to end.
                    if !reap(worker, WaitOptions::NOHANG) {
                        match handle(worker) {
                            Some(handle) => self.ending.push((worker, handle)),
                            None => drop(reap(worker, WaitOptions::empty())),
                        }
                    }
                }
            }
        }
    }

    /// The next message of the host. Reaps workers meanwhile.
    fn next(&mut self) -> Option<ToZygote> {
        loop {
            let input = stdin();
            let mut descriptors = vec![PollFd::new(&input, PollFlags::IN)];
            let ending = self.ending.iter().map(|(_, handle)| handle);
            descriptors.extend(ending.map(|handle| PollFd::new(handle, PollFlags::IN)));
            match poll(&mut descriptors, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return None,
            }
            // A run that waits for its worker comes first.
            if descriptors.first().is_some_and(|control| !control.revents().is_empty()) {
                return ToZygote::receive(stdin());
            }
            self.ending.retain(|(worker, _)| !reap(*worker, WaitOptions::NOHANG));
        }
    }
}

/// The pidfd of a worker, if the system has them.
#[cfg(target_os = "linux")]
fn handle(worker: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(worker, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn handle(_worker: Pid) -> Option<OwnedFd> {
    None
}

/// Reaps a worker and tells the host. Returns `false` if the worker has not ended.
fn reap(worker: Pid, options: WaitOptions) -> bool {
    let status = match waitpid(Some(worker), options) {
        Ok(None) => return false,
        Ok(Some((_, status))) => status.as_raw(),
        // There is no such worker.
        Err(_) => 0,
    };
    answer(&FromZygote::Ended { process: worker.as_raw_pid().unsigned_abs(), status });
    true
}

fn answer(message: &FromZygote) {
    // The next message is missing if the host is gone.
    let _ = message.send(stdin());
}
