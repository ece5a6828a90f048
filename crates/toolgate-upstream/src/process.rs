//! Child processes that never outlive us.
//!
//! Each child leads a process group of its own, so that whatever it starts can be ended with it.
//! Three things see to that end: [`Process::stop`] in the ordinary way, the parent-death signal of
//! Linux for the child, and the [`Watchdog`] for the whole group where we are killed. A process
//! that leaves the group by itself, as a daemon does, is beyond our reach.

use std::{
    collections::VecDeque,
    io,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    sync::watch,
};

use crate::{redact::Redactor, spec::StdioEndpoint, watchdog::Watchdog};

mod group;
mod spawner;

use group::Group;

const KEPT_STDERR_LINES: usize = 20;
const KEPT_OF_STDERR_LINE: usize = 400;
const MAX_STDERR_LINE: u64 = 64 * 1024;

/// A running child. Dropping it kills its group.
#[derive(Debug)]
pub(crate) struct Process {
    group: Arc<Group>,
    exit: watch::Receiver<Option<ExitStatus>>,
    last_words: Arc<Mutex<VecDeque<String>>>,
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
    watchdog: &Watchdog,
    redactor: Redactor,
    on_stderr: impl Fn(&str) + Send + 'static,
) -> io::Result<Started> {
    let mut command = Command::new(&endpoint.command);
    command
        .args(&endpoint.args)
        .envs(&endpoint.env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    if let Some(cwd) = &endpoint.cwd {
        command.current_dir(cwd);
    }
    let mut child = spawner::spawn(command).await?;
    let missing = || io::Error::other("the child has no pipes");
    let stdin = child.stdin.take().ok_or_else(missing)?;
    let stdout = child.stdout.take().ok_or_else(missing)?;
    let stderr = child.stderr.take().ok_or_else(missing)?;
    let number = child.id().ok_or_else(|| io::Error::other("the child ended at once"))?;
    let group = Arc::new(Group::new(number, watchdog));

    let last_words = Arc::new(Mutex::new(VecDeque::new()));
    let (stderr_end, stderr_ended) = watch::channel(false);
    let words = Arc::clone(&last_words);
    tokio::spawn(async move {
        tokio::select! {
            () = follow_stderr(stderr, &words, &redactor, on_stderr) => {}
            // Nobody reads the last words any more; a pipe that is held open must not hold us.
            () = stderr_end.closed() => {}
        }
        stderr_end.send_replace(true);
    });
    let (exited, exit) = watch::channel(None);
    tokio::spawn(attend_exit(child, EndOnDrop(Arc::clone(&group)), exited));
    Ok(Started { process: Process { group, exit, last_words, stderr_ended }, stdin, stdout })
}

impl Process {
    /// Waits for the exit.
    pub(crate) async fn exited(&self) {
        // A sender that is gone means that nobody will ever know more.
        let _ = self.exit.clone().wait_for(Option::is_some).await;
    }

    /// The exit status, once there is one within `patience`.
    pub(crate) async fn exited_within(&self, patience: Duration) -> Option<ExitStatus> {
        let _ = tokio::time::timeout(patience, self.exited()).await;
        *self.exit.borrow()
    }

    /// The last lines of stderr, oldest first. After an exit, waits for what is still in the pipe.
    pub(crate) async fn last_words(&self) -> Vec<String> {
        let mut ended = self.stderr_ended.clone();
        let _ = tokio::time::timeout(Duration::from_millis(500), ended.wait_for(|end| *end)).await;
        self.last_words.lock().iter().cloned().collect()
    }

    /// Ends the child as the protocol asks: its stdin is closed (by the caller), then it gets time
    /// to leave, then it is told to, then it is made to.
    pub(crate) async fn stop(&self, patience: Duration) {
        if self.exited_within(patience).await.is_some() {
            return;
        }
        self.group.terminate();
        if self.exited_within(patience).await.is_some() {
            return;
        }
        self.group.end();
        self.exited_within(patience).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.group.end();
    }
}

/// Ends the group even where the task that should is dropped with its runtime.
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
        // No way to look without reaping: the group's number may be another's by now, for a moment.
        let _ = child.wait().await;
    }
    // Whatever the child had started ends with it.
    group.0.end();
    let status = child.wait().await.unwrap_or_default();
    exited.send_replace(Some(status));
}

/// Waits for the end of the child and leaves it a zombie, whose number is nobody else's. Says
/// whether that was possible.
#[cfg(unix)]
async fn wait_without_reaping(child: &Child) -> bool {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    use tokio::signal::unix::{SignalKind, signal};

    let number = child.id().and_then(|number| i32::try_from(number).ok());
    let Some(pid) = number.and_then(Pid::from_raw) else { return false };
    // Listened to before the first look, so that no end is missed.
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

async fn follow_stderr(
    stderr: ChildStderr,
    last_words: &Mutex<VecDeque<String>>,
    redactor: &Redactor,
    on_line: impl Fn(&str),
) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        // A line without an end must not fill the memory: it is taken in pieces.
        match (&mut reader).take(MAX_STDERR_LINE).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        // Cleaned before it is cut: half a secret is not recognised.
        let text = redactor.clean(String::from_utf8_lossy(&line).trim_end());
        on_line(&text);
        if !text.is_empty() {
            let mut kept = last_words.lock();
            if kept.len() == KEPT_STDERR_LINES {
                kept.pop_front();
            }
            kept.push_back(text.chars().take(KEPT_OF_STDERR_LINE).collect());
        }
    }
}
