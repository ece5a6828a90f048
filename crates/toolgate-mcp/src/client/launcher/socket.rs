//! toolgate's end of the socket to a launcher.

use std::{
    io::{self, Write},
    net::Shutdown,
    os::{fd::AsRawFd, unix::net::UnixStream},
};

use rustix::io::{FdFlags, fcntl_setfd};
use tokio::{io::AsyncReadExt, process::Command};

use super::{
    super::endpoint::StdioEndpoint,
    LAUNCHER,
    role::{STARTED, TERMINATE},
};

/// The socket to the launcher of one server. Closing it ends the server and everything below.
#[derive(Debug)]
pub(in super::super) struct LauncherSocket(UnixStream);

/// The command of the launcher for a server, with its socket; `None` without a launcher.
#[expect(unsafe_code, reason = "the child must keep one descriptor, which only it can say")]
pub(in super::super) fn prepare(
    endpoint: &StdioEndpoint,
) -> io::Result<Option<(Command, LauncherSocket)>> {
    let Some((program, arguments)) = LAUNCHER.get() else { return Ok(None) };
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new(program);
    command
        .arg0("toolgate-launcher")
        .args(arguments)
        .arg(theirs.as_raw_fd().to_string())
        .arg(&endpoint.command)
        .args(&endpoint.args);
    // SAFETY: between fork and exec only async-signal-safe calls are allowed. These are system
    // calls; they allocate nothing and take no lock. The command keeps the descriptor open.
    unsafe {
        command.pre_exec(move || {
            rustix::process::setsid()?;
            fcntl_setfd(&theirs, FdFlags::empty())?;
            Ok(())
        });
    }
    Ok(Some((command, LauncherSocket(ours))))
}

impl LauncherSocket {
    /// Waits until the server was started, or returns why it was not.
    pub(in super::super) async fn started(self) -> io::Result<Self> {
        self.0.set_nonblocking(true)?;
        let mut socket = tokio::net::UnixStream::from_std(self.0)?;
        let mut said = [0; 4];
        socket
            .read_exact(&mut said)
            .await
            .map_err(|_| io::Error::other("the launcher ended before it started the server"))?;
        match i32::from_le_bytes(said) {
            STARTED => Ok(Self(socket.into_std()?)),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Lets the launcher send SIGTERM to the group of the server.
    pub(in super::super) fn terminate(&self) {
        // A launcher that is gone has nothing to end.
        let _ = (&self.0).write(&[TERMINATE]);
    }

    /// Lets the launcher kill everything and end.
    pub(in super::super) fn end(&self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}
