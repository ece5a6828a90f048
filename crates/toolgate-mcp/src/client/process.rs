//! Child processes that never outlive toolgate.
//!
//! Each server leads its own session and process group: it has no terminal, and everything that it
//! starts can be ended with it. A process can leave the group, as a daemon does. On Linux a launcher
//! (`launcher`) ends those too, however toolgate ends.
//!
//! Where this program has no launcher, three mechanisms end a child: [`Process::stop`] normally, the
//! parent-death signal of Linux for the child, and the watchdog if toolgate is killed. A process that
//! has left the group ends only with [`Process::stop`], and only on Linux.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    process::{ExitStatus, Stdio},
    sync::{Arc, OnceLock, mpsc},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::watch,
};

use super::{
    descendants::{self, ProcessEntry},
    endpoint::StdioEndpoint,
    redact::Redactor,
    stderr::{self, LastLines},
    watchdog,
};
#[cfg(target_os = "linux")]
use super::{
    launcher::{self, LauncherSocket},
    lineage,
};
use crate::{environment, nesting};

/// A running child. Dropping it kills its group.
#[derive(Debug)]
pub(crate) struct Process {
    group: Arc<Group>,
    exit: watch::Receiver<Option<ExitStatus>>,
    last_output: Arc<LastLines>,
    stderr_ended: watch::Receiver<bool>,
}

/// A child and its pipes.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) process: Process,
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
}

/// Starts the command. `on_stderr` gets each line of its stderr, without the secrets.
pub(crate) async fn start(
    endpoint: &StdioEndpoint,
    redactor: Redactor,
    on_stderr: impl Fn(&str) + Send + Sync + 'static,
) -> io::Result<Started> {
    let (mut command, launcher) = command(endpoint)?;
    command
        .env_clear()
        .envs(environment::base())
        .env(nesting::ABOVE, nesting::above())
        .envs(&endpoint.env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(cwd) = &endpoint.cwd {
        command.current_dir(cwd);
    }
    let mut child = spawn(command).await?;
    let missing = || io::Error::other("the child has no pipes");
    let stdin = child.stdin.take().ok_or_else(missing)?;
    let stdout = child.stdout.take().ok_or_else(missing)?;
    let stderr = child.stderr.take().ok_or_else(missing)?;
    let number = child.id().ok_or_else(|| io::Error::other("the child ended at once"))?;
    let launcher = started(launcher).await?;
    let group = Arc::new(Group::new(number, launcher));

    let last_output = Arc::new(LastLines::default());
    let (stderr_end, stderr_ended) = watch::channel(false);
    let words = Arc::clone(&last_output);
    tokio::spawn(async move {
        tokio::select! {
            () = stderr::follow(stderr, &words, &redactor, on_stderr) => {}
            // The last output is not needed any more. A pipe that stays open must not block.
            () = stderr_end.closed() => {}
        }
        stderr_end.send_replace(true);
    });
    let (exited, exit) = watch::channel(None);
    tokio::spawn(attend_exit(child, EndOnDrop(Arc::clone(&group)), exited));
    Ok(Started { process: Process { group, exit, last_output, stderr_ended }, stdin, stdout })
}

impl Process {
    pub(crate) fn has_exited(&self) -> bool {
        self.exit.borrow().is_some()
    }

    /// Waits for the exit.
    pub(crate) async fn exited(&self) {
        // If the sender is gone, the exit status stays unknown.
        let _ = self.exit.clone().wait_for(Option::is_some).await;
    }

    /// The exit status, once there is one within `limit`.
    pub(crate) async fn exited_within(&self, limit: Duration) -> Option<ExitStatus> {
        let _ = tokio::time::timeout(limit, self.exited()).await;
        *self.exit.borrow()
    }

    /// The last lines of stderr, oldest first. After an exit, waits for what is still in the pipe.
    pub(crate) async fn last_output(&self) -> Vec<String> {
        let mut ended = self.stderr_ended.clone();
        let _ = tokio::time::timeout(Duration::from_millis(500), ended.wait_for(|end| *end)).await;
        self.last_output.lock().iter().cloned().collect()
    }

    /// Notes the descendants of the child. After its end they cannot be found as descendants.
    pub(crate) fn note_descendants(&self) {
        if self.group.launcher.is_none() {
            *self.group.noted.lock() = descendants::of(self.group.number);
        }
    }

    /// Ends the child as the protocol requires. The caller has closed its stdin. The child gets
    /// time to exit, then SIGTERM, then SIGKILL.
    pub(crate) async fn stop(&self, limit: Duration) {
        if self.exited_within(limit).await.is_some() {
            return;
        }
        self.group.terminate();
        if self.exited_within(limit).await.is_some() {
            return;
        }
        self.group.end();
        self.exited_within(limit).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.group.end();
    }
}

/// Ends the group even if its task is dropped together with the runtime.
struct EndOnDrop(Arc<Group>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

async fn attend_exit(
    mut child: Child,
    group: EndOnDrop,
    exited: watch::Sender<Option<ExitStatus>>,
) {
    let ended = wait_without_reaping(&child).await;
    if !ended {
        // The system cannot wait without reaping, so the group's number may belong to another
        // process for a moment.
        let _ = child.wait().await;
    }
    // The processes that the child started end with it.
    group.0.end();
    let status = child.wait().await.unwrap_or_default();
    exited.send_replace(Some(status));
}

/// Waits for the end of the child and leaves it a zombie, so that its number stays reserved.
/// Returns whether that was possible.
#[cfg(unix)]
async fn wait_without_reaping(child: &Child) -> bool {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    use tokio::signal::unix::{SignalKind, signal};

    let number = child.id().and_then(|number| i32::try_from(number).ok());
    let Some(pid) = number.and_then(Pid::from_raw) else { return false };
    // Subscribed before the first check, so that no exit is missed.
    let Ok(mut some_child_ended) = signal(SignalKind::child()) else { return false };
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    loop {
        match waitid(WaitId::Pid(pid), look) {
            Ok(Some(_)) => return true,
            Ok(None) => {}
            Err(_) => return false,
        }
        if some_child_ended.recv().await.is_none() {
            return false;
        }
    }
}

#[cfg(not(unix))]
async fn wait_without_reaping(_child: &Child) -> bool {
    false
}

/// The process group of a child. Dropping it kills the remaining processes.
///
/// The system reuses numbers. The number belongs to the group only until the child is waited for.
/// So [`end`](Self::end) must come first, and nothing is signalled after it.
#[derive(Debug)]
struct Group {
    number: u32,
    /// What ends its processes, if the child is a launcher.
    launcher: Option<LauncherSocket>,
    /// The descendants of the child before its end.
    noted: Mutex<Vec<ProcessEntry>>,
    life: Mutex<Life>,
}

#[derive(Debug, PartialEq, Eq)]
enum Life {
    Running,
    Over,
}

impl Group {
    /// The group of the child `number`, which leads it.
    fn new(number: u32, launcher: Option<LauncherSocket>) -> Self {
        if launcher.is_none() {
            watchdog::watch(number);
        }
        Self { number, launcher, noted: Mutex::default(), life: Mutex::new(Life::Running) }
    }

    /// Sends SIGTERM to its processes.
    fn terminate(&self) {
        // Held during the signal, so that `end` does not run in between.
        let life = self.life.lock();
        if *life == Life::Running {
            match &self.launcher {
                Some(launcher) => {
                    launcher.terminate();
                    signal(self.number, Signal::Continue);
                }
                None => signal(self.number, Signal::Terminate),
            }
        }
    }

    /// Kills its processes, and those that have left it.
    fn end(&self) {
        let mut life = self.life.lock();
        if *life == Life::Over {
            return;
        }
        *life = Life::Over;
        if let Some(launcher) = &self.launcher {
            launcher.end();
            // The server may have stopped it.
            signal(self.number, Signal::Continue);
            return;
        }
        // Searched first: after the end of the child they cannot be found as descendants.
        let mut strays = descendants::of(self.number);
        strays.append(&mut self.noted.lock());
        signal(self.number, Signal::Kill);
        descendants::kill(&strays);
        watchdog::release(self.number);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

#[derive(Clone, Copy)]
enum Signal {
    Continue,
    Terminate,
    Kill,
}

#[cfg(unix)]
fn signal(group: u32, signal: Signal) {
    use rustix::process::{Pid, kill_process_group};

    let signal = match signal {
        Signal::Continue => rustix::process::Signal::CONT,
        Signal::Terminate => rustix::process::Signal::TERM,
        Signal::Kill => rustix::process::Signal::KILL,
    };
    if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        // The group may be gone already.
        let _ = kill_process_group(group, signal);
    }
}

#[cfg(not(unix))]
fn signal(_group: u32, _signal: Signal) {}

/// The command that starts a server, and the socket to its launcher if it has one.
#[cfg(target_os = "linux")]
fn command(endpoint: &StdioEndpoint) -> io::Result<(Command, Option<LauncherSocket>)> {
    Ok(match launcher::prepare(endpoint)? {
        Some((command, socket)) => (command, Some(socket)),
        None => (direct_command(endpoint), None),
    })
}

#[cfg(target_os = "linux")]
async fn started(launcher: Option<LauncherSocket>) -> io::Result<Option<LauncherSocket>> {
    match launcher {
        Some(launcher) => launcher.started().await.map(Some),
        None => Ok(None),
    }
}

/// Only Linux has launchers.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
enum LauncherSocket {}

#[cfg(not(target_os = "linux"))]
impl LauncherSocket {
    fn terminate(&self) {}

    fn end(&self) {}
}

#[cfg(not(target_os = "linux"))]
fn command(endpoint: &StdioEndpoint) -> io::Result<(Command, Option<LauncherSocket>)> {
    Ok((direct_command(endpoint), None))
}

#[cfg(not(target_os = "linux"))]
async fn started(launcher: Option<LauncherSocket>) -> io::Result<Option<LauncherSocket>> {
    Ok(launcher)
}

/// The command of a server without a launcher: the child is the server.
fn direct_command(endpoint: &StdioEndpoint) -> Command {
    let mut command = Command::new(&endpoint.command);
    command.args(&endpoint.args).kill_on_drop(true);
    isolate(&mut command);
    command
}

type Job = Box<dyn FnOnce() + Send>;

/// Starts `command`.
///
/// Linux sends the parent-death signal when the *thread* that started the child ends. So all
/// children are started on one thread that never ends.
async fn spawn(mut command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Option<Mutex<mpsc::Sender<Job>>>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (jobs, queue) = mpsc::channel::<Job>();
        let run = move || {
            for job in queue {
                // A runtime that is being shut down panics. The thread serves others too.
                let _ = catch_unwind(AssertUnwindSafe(job));
            }
        };
        let thread = std::thread::Builder::new().name("toolgate-spawner".into()).spawn(run);
        thread.ok().map(|_| Mutex::new(jobs))
    });
    let Some(spawner) = spawner else { return command.spawn() };
    let (started, child) = tokio::sync::oneshot::channel();
    let runtime = tokio::runtime::Handle::current();
    let job: Job = Box::new(move || {
        let _inside = runtime.enter();
        // If the caller no longer waits, the child is dropped, which kills it.
        let _ = started.send(command.spawn());
    });
    let gone = || io::Error::other("the thread that starts processes is gone");
    spawner.lock().send(job).map_err(|_| gone())?;
    child.await.map_err(|_| gone())?
}

/// Lets the child lead its own session and group.
#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "a session and the parent-death signal can only be set in the child"
)]
fn isolate(command: &mut Command) {
    // SAFETY: between fork and exec only async-signal-safe calls are allowed. These are a few system
    // calls; they allocate nothing and take no lock.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            lineage::mark();
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
            // Survives exec: the child adopts the orphans among its descendants.
            rustix::process::set_child_subreaper(Some(rustix::process::Pid::INIT))?;
            Ok(())
        });
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
#[expect(unsafe_code, reason = "a session can only be started in the child")]
fn isolate(command: &mut Command) {
    // SAFETY: as above; this is one system call.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            Ok(())
        });
    }
}

#[cfg(not(unix))]
fn isolate(_command: &mut Command) {}
