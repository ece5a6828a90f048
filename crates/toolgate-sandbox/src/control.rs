//! The control socket between a pool and a zygote.
//!
//! A zygote is a process that has prepared everything that a script needs, has given up everything
//! that it can do without, and then forks a worker for each run. Any program can be a zygote that
//! keeps to this protocol.
//!
//! The zygote is started with an empty environment, as the leader of its own process group, with
//! the control socket as descriptor 0 and `/dev/null` as 1 and 2. The control socket is one end of a
//! pair of `SOCK_SEQPACKET` sockets (`SOCK_DGRAM` where the system has no others). Each packet is
//! one message. The first byte is its kind; numbers are little-endian.
//!
//! | from | message | meaning |
//! |---|---|---|
//! | pool | anything | Only at the beginning: the messages of [`crate::WorkerProgram`]. A zygote that gets some knows how many. |
//! | pool | `F`, and one descriptor as `SCM_RIGHTS` | Fork a worker. The descriptor is the worker's end of its pipe: a stream socket, which is already non-blocking. |
//! | zygote | `S`, process id (`u32`), and on Linux a pidfd of the worker as `SCM_RIGHTS` | The worker was forked. The id is that in the zygote's own PID namespace. |
//! | zygote | `E`, a text in UTF-8 | No worker was forked, for this reason. |
//! | pool | `R`, process id (`u32`) | The worker has ended or was killed. Reap it. |
//! | zygote | `X`, process id (`u32`), status (`i32`) | The worker was reaped. The status is that of `waitpid`, as it is. |
//!
//! - Each `F` has one answer, `S` or `E`, in the order of the `F`s. Each `R` has one answer `X`, in
//!   any order. A zygote reads `F` also while it waits for the end of a worker.
//! - A zygote reaps a worker only when it is asked to. Until then the process id belongs to the
//!   worker, so that the pool can read its CPU clock and send it signals. The pool finds the id of
//!   the process in its own namespace with the pidfd. Without a pidfd both ids must be the same.
//! - A zygote may read `F` late, when its preparations are complete. If they fail, it answers each
//!   `F` with `E`.
//! - When the pool closes the socket, the zygote ends, and its workers end with it: they ask for
//!   `SIGKILL` as their parent-death signal (or the zygote is process 1 of a PID namespace).
//!
//! A worker makes the received descriptor its descriptor 0 and closes all others. Then it gives up
//! what the zygote could not give up yet, and exchanges the frames of [`crate::frame`]. It sends
//! `Ready` without waiting for anything, and only then reads `Start`, or `Run` if it is a worker of
//! Python's own interpreter. After its last frame it waits to be killed. At `SIGTERM` it sends the frames that it has buffered, and exits.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    },
};

/// The largest message. A longer text is cut.
const LARGEST: usize = 2_048;

/// A message to a zygote.
#[derive(Debug)]
pub(crate) enum ToZygote {
    /// Fork a worker for this end of a pipe.
    Fork(OwnedFd),
    /// Reap the worker with this process id.
    Reap(u32),
}

/// A message from a zygote.
#[derive(Debug)]
pub(crate) enum FromZygote {
    /// A worker was forked.
    Started {
        /// Its process id, as the zygote knows it.
        process: u32,
        /// The pidfd of the worker.
        handle: Option<OwnedFd>,
    },
    /// No worker was forked.
    Failed(String),
    /// A worker was reaped.
    Ended {
        /// Its process id, as the zygote knows it.
        process: u32,
        /// Its status, as `waitpid` returns it.
        status: i32,
    },
}

/// Sends a first message, which a zygote finds when it starts.
pub(crate) fn send_first(socket: impl AsFd, message: &[u8]) -> io::Result<()> {
    Ok(send(socket, message, None, SendFlags::DONTWAIT)?)
}

/// A control socket: the end of the pool and the end of the zygote.
#[cfg(not(target_vendor = "apple"))]
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (family, flags) = (AddressFamily::UNIX, SocketFlags::CLOEXEC);
    Ok(rustix::net::socketpair(family, SocketType::SEQPACKET, flags, None)?)
}

#[cfg(target_vendor = "apple")]
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    use rustix::io::{FdFlags, fcntl_setfd};
    let (family, flags) = (AddressFamily::UNIX, SocketFlags::empty());
    let (ours, theirs) = rustix::net::socketpair(family, SocketType::DGRAM, flags, None)?;
    fcntl_setfd(&ours, FdFlags::CLOEXEC)?;
    fcntl_setfd(&theirs, FdFlags::CLOEXEC)?;
    Ok((ours, theirs))
}

impl ToZygote {
    /// Sends the message, or returns it if the zygote has not read enough of the earlier ones.
    /// Receiving notices when the zygote is gone.
    pub(crate) fn try_send(self, socket: impl AsFd) -> Result<(), Self> {
        let sent = match &self {
            Self::Fork(pipe) => send(socket, b"F", Some(pipe.as_fd()), SendFlags::DONTWAIT),
            Self::Reap(process) => {
                send(socket, &message(b'R', &process.to_le_bytes()), None, SendFlags::DONTWAIT)
            }
        };
        match sent {
            Err(Errno::AGAIN | Errno::NOBUFS) => Err(self),
            _ => Ok(()),
        }
    }

    /// Waits for the next message; `None` if the pool is gone or does not keep to the protocol.
    pub(crate) fn receive(socket: impl AsFd) -> Option<Self> {
        let mut buffer = [0; LARGEST];
        let (message, descriptor) = receive(socket, &mut buffer).ok()?;
        match message.split_first()? {
            (b'F', []) => descriptor.map(Self::Fork),
            (b'R', process) => Some(Self::Reap(u32::from_le_bytes(process.try_into().ok()?))),
            _ => None,
        }
    }
}

impl FromZygote {
    /// Sends the message.
    pub(crate) fn send(&self, socket: impl AsFd) -> Result<(), Errno> {
        let flags = SendFlags::empty();
        match self {
            Self::Started { process, handle } => {
                let message = message(b'S', &process.to_le_bytes());
                send(socket, &message, handle.as_ref().map(AsFd::as_fd), flags)
            }
            Self::Failed(why) => {
                let why = crate::frame::cut(why, LARGEST - 1);
                send(socket, &message(b'E', why.as_bytes()), None, flags)
            }
            Self::Ended { process, status } => {
                let body = [process.to_le_bytes(), status.to_le_bytes()].concat();
                send(socket, &message(b'X', &body), None, flags)
            }
        }
    }

    /// Waits for the next message; `None` if the zygote is gone or does not keep to the protocol.
    pub(crate) fn receive(socket: impl AsFd) -> Option<Self> {
        let mut buffer = [0; LARGEST];
        let (message, handle) = receive(socket, &mut buffer).ok()?;
        match message.split_first()? {
            (b'S', process) => {
                let process = u32::from_le_bytes(process.try_into().ok()?);
                Some(Self::Started { process, handle })
            }
            (b'E', why) => Some(Self::Failed(String::from_utf8_lossy(why).into_owned())),
            (b'X', body) => {
                let (process, status) = body.split_first_chunk()?;
                Some(Self::Ended {
                    process: u32::from_le_bytes(*process),
                    status: i32::from_le_bytes(status.try_into().ok()?),
                })
            }
            _ => None,
        }
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], body].concat()
}

fn send(
    socket: impl AsFd,
    message: &[u8],
    descriptor: Option<BorrowedFd<'_>>,
    flags: SendFlags,
) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor];
    let descriptors: Vec<BorrowedFd<'_>> = descriptors.into_iter().flatten().collect();
    if !descriptors.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    #[cfg(not(target_vendor = "apple"))]
    let flags = flags | SendFlags::NOSIGNAL;
    loop {
        match rustix::net::sendmsg(&socket, &[IoSlice::new(message)], &mut ancillary, flags) {
            Err(Errno::INTR) => {}
            other => return other.map(drop),
        }
    }
}

/// The next message, and the descriptor that came with it. The message is empty if the other side is
/// gone.
fn receive(
    socket: impl AsFd,
    buffer: &mut [u8; LARGEST],
) -> Result<(&[u8], Option<OwnedFd>), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    #[cfg(not(target_vendor = "apple"))]
    let flags = RecvFlags::CMSG_CLOEXEC;
    #[cfg(target_vendor = "apple")]
    let flags = RecvFlags::empty();
    let bytes = loop {
        let mut parts = [IoSliceMut::new(buffer)];
        match rustix::net::recvmsg(&socket, &mut parts, &mut ancillary, flags) {
            Ok(received) => break received.bytes,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    };
    let descriptor = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok((buffer.get(..bytes).unwrap_or_default(), descriptor))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn messages_arrive_as_they_were_sent() {
        let (pool, zygote) = pair().unwrap();
        let (_, theirs) = UnixStream::pair().unwrap();
        ToZygote::Fork(theirs.into()).try_send(&pool).unwrap();
        ToZygote::Reap(70_000).try_send(&pool).unwrap();
        assert!(matches!(ToZygote::receive(&zygote), Some(ToZygote::Fork(_))));
        assert!(matches!(ToZygote::receive(&zygote), Some(ToZygote::Reap(70_000))));

        let (handle, _) = UnixStream::pair().unwrap();
        let started = FromZygote::Started { process: 7, handle: Some(handle.into()) };
        started.send(&zygote).unwrap();
        FromZygote::Failed("ä".repeat(LARGEST)).send(&zygote).unwrap();
        FromZygote::Ended { process: 7, status: -9 }.send(&zygote).unwrap();
        let received = FromZygote::receive(&pool);
        assert!(matches!(received, Some(FromZygote::Started { process: 7, handle: Some(_) })));
        let Some(FromZygote::Failed(why)) = FromZygote::receive(&pool) else { panic!() };
        assert_eq!(why, "ä".repeat((LARGEST - 1) / 2));
        let received = FromZygote::receive(&pool);
        assert!(matches!(received, Some(FromZygote::Ended { process: 7, status: -9 })));
    }

    #[test]
    fn a_zygote_that_does_not_read_stops_nobody() {
        let (pool, zygote) = pair().unwrap();
        let returned = (0..1_000_000)
            .find_map(|process| ToZygote::Reap(process).try_send(&pool).err())
            .expect("the socket is full at some time");
        assert!(matches!(returned, ToZygote::Reap(_)));
        drop(zygote);
        // The pool learns it when it receives.
        assert!(returned.try_send(&pool).is_ok());
        assert!(FromZygote::receive(&pool).is_none());
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let (pool, zygote) = pair().unwrap();
        for bytes in [&b"F"[..], b"R\x01", b"S\x01\0\0\0", b"?"] {
            send(&pool, bytes, None, SendFlags::empty()).unwrap();
            assert!(ToZygote::receive(&zygote).is_none(), "{bytes:?}");
            send(&zygote, bytes, None, SendFlags::empty()).unwrap();
            let received = FromZygote::receive(&pool);
            assert_eq!(received.is_some(), bytes[0] == b'S', "{bytes:?}");
        }
    }
}
