//! The launcher itself.

use std::{
    ffi::OsString,
    fs,
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    process::{Command, ExitCode},
    sync::Arc,
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use rustix::{
    io::{Errno, FdFlags, fcntl_setfd},
    process::{
        Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, getpgid, getpgrp, getpid,
        kill_process, kill_process_group, wait, waitid,
    },
};

use super::super::{descendants, lineage};

/// What the launcher says if the server was started. Otherwise it says the number of the error.
pub(super) const STARTED: i32 = 0;
/// What toolgate says if the server is to get SIGTERM.
pub(super) const TERMINATE: u8 = b't';

/// How often no child is found although there are some, before the launcher gives up.
const MAX_EMPTY_ROUNDS: usize = 1000;
/// How long the launcher waits at most before it searches again.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// The server, until it has ended and its number may belong to another process.
type Server = Arc<Mutex<Option<Pid>>>;

/// Starts the server, waits for its end, ends what is left, and ends like the server.
pub(super) fn run(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let socket = arguments.next().and_then(|number| socket(number.to_str()?));
    let (Some(mut socket), Some(command)) = (socket, arguments.next()) else {
        return ExitCode::FAILURE;
    };
    // If toolgate ends while the server has this process stopped.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::CONT));
    let server = match start(command, arguments) {
        Ok(server) => server,
        Err(error) => {
            let number = error.raw_os_error().unwrap_or(libc::EIO);
            let _ = socket.write_all(&number.to_le_bytes());
            return ExitCode::FAILURE;
        }
    };
    give_up_pipes_and_signals();
    let running: Server = Arc::new(Mutex::new(Some(server)));
    let told = socket.write_all(&STARTED.to_le_bytes());
    let listener = {
        let running = Arc::clone(&running);
        thread::Builder::new().spawn(move || listen(socket, &running))
    };
    if told.is_err() || listener.is_err() {
        let _ = kill_process(server, Signal::KILL);
    }
    let status = wait_for(server, &running);
    end_all();
    end_like(status)
}

/// The socket to toolgate. The server does not get it.
#[expect(unsafe_code, reason = "the socket was inherited, so that only its number is known")]
fn socket(number: &str) -> Option<UnixStream> {
    let number = number.parse().ok().filter(|number| *number > 2)?;
    // SAFETY: toolgate passes the number of a descriptor that nothing else in this process uses.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl_setfd(&socket, FdFlags::CLOEXEC).ok()?;
    Some(socket.into())
}

/// Starts the server with the pipes of this process, in its own session.
#[expect(unsafe_code, reason = "a session can only be started in the child")]
fn start(command: OsString, arguments: impl Iterator<Item = OsString>) -> io::Result<Pid> {
    rustix::process::set_child_subreaper(Some(Pid::INIT))?;
    let mut command = Command::new(command);
    command.args(arguments);
    // SAFETY: between fork and exec only async-signal-safe calls are allowed. These are a few system
    // calls; they allocate nothing and take no lock.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            lineage::mark();
            // If somebody kills the launcher, the server ends too.
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            Ok(())
        });
    }
    let child = command.spawn()?;
    let number = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    number.ok_or_else(|| Errno::SRCH.into())
}

/// Closes the pipes, which belong to the server alone, and ignores the signals that end a process.
#[expect(unsafe_code, reason = "the system has no other way to do this")]
fn give_up_pipes_and_signals() {
    if let Ok(null) = fs::File::options().read(true).write(true).open("/dev/null") {
        for pipe in 0..=2 {
            // SAFETY: nothing in this process uses the pipes.
            unsafe { libc::dup2(null.as_raw_fd(), pipe) };
        }
    }
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
        // SAFETY: no handler is installed. The server was started before.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Does what toolgate says. If toolgate has ended, or has closed the socket, ends the server.
fn listen(mut socket: UnixStream, running: &Server) {
    let mut said = [0];
    loop {
        match socket.read(&mut said) {
            Ok(0) => break,
            Ok(_) if said[0] == TERMINATE => {
                if let Some(server) = *running.lock() {
                    let _ = kill_process_group(server, Signal::TERM);
                }
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    if let Some(server) = *running.lock() {
        let _ = kill_process(server, Signal::KILL);
    }
}

/// Waits for the end of the server. Reaps adopted processes meanwhile.
fn wait_for(server: Pid, running: &Server) -> Option<WaitStatus> {
    loop {
        match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return None,
        }
        // Held while the number of the server becomes free, so that no other process gets a signal.
        let mut running = running.lock();
        let mut ended = None;
        while let Ok(Some((number, status))) = wait(WaitOptions::NOHANG) {
            if number == server {
                ended = Some(status);
                *running = None;
            }
        }
        if ended.is_some() {
            return ended;
        }
    }
}

/// Kills the children until there are none. The children of a killed process become children of the
/// launcher, so this reaches all descendants. Only this thread reaps, so that the number of a child
/// cannot belong to another process.
fn end_all() {
    let mut empty_rounds = 0;
    let mut pause = Duration::ZERO;
    loop {
        let children = children();
        let mut is_forbidden = !children.is_empty();
        for child in &children {
            if let Ok(group) = getpgid(Some(*child))
                && group != getpgrp()
            {
                let _ = kill_process_group(group, Signal::KILL);
            }
            is_forbidden &= kill_process(*child, Signal::KILL) == Err(Errno::PERM);
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => pause = Duration::ZERO,
                Ok(None) | Err(Errno::INTR) => break,
                Err(_) => return,
            }
        }
        empty_rounds = if children.is_empty() { empty_rounds + 1 } else { 0 };
        // Processes of another user cannot be killed. Without `/proc` none are found.
        if is_forbidden || empty_rounds == MAX_EMPTY_ROUNDS {
            return;
        }
        thread::sleep(pause);
        pause = (pause * 2 + Duration::from_micros(50)).min(LONGEST_PAUSE);
    }
}

/// The children of this process.
fn children() -> Vec<Pid> {
    let mut numbers: Vec<i32> = Vec::new();
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let mut is_supported = false;
    for thread in threads {
        if let Ok(text) = fs::read_to_string(thread.path().join("children")) {
            is_supported = true;
            numbers.extend(text.split_whitespace().filter_map(|number| number.parse::<i32>().ok()));
        }
    }
    if !is_supported {
        let own = getpid().as_raw_nonzero().get().unsigned_abs();
        let found = descendants::children_of(own);
        numbers = found.into_iter().filter_map(|number| i32::try_from(number).ok()).collect();
    }
    numbers.into_iter().filter_map(Pid::from_raw).collect()
}

/// Ends with the exit code or the signal of the server.
#[expect(unsafe_code, reason = "the system has no other way to do this")]
fn end_like(status: Option<WaitStatus>) -> ExitCode {
    let Some(status) = status else { return ExitCode::FAILURE };
    if let Some(signal) = status.terminating_signal() {
        let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
        // SAFETY: the default action replaces no handler of this process.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
    let code = status.exit_status().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}
