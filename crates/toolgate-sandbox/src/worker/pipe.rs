//! The worker's end of the pipe.

use std::{
    io,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::Errno,
    stdio::stdin,
};
use toolgate_engines::Stream;

use crate::{
    frame::{Decoder, FromWorker, LENGTH_BYTES, OUTPUT_HEADER, ToWorker},
    system::stop::critical,
};

/// As much as is kept back before it is sent.
const FULL_BYTES: usize = 32 * 1024;
/// As much as is read at once.
const READ_BYTES: usize = 64 * 1024;
/// Output is kept back no longer than until the first line after this.
const STALE_OUTPUT: Duration = Duration::from_millis(50);
/// The host is believed, but its frames still have an end.
const LARGEST_FRAME: usize = 1 << 30;

/// The host is gone, or talks nonsense.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostLost;

/// Frames in and out, both kept back as long as that does no harm.
///
/// While the pipe is full, what the host sends meanwhile is read, so that the two never wait for
/// each other.
pub(super) struct Pipe {
    inbox: Decoder,
    outbox: Vec<u8>,
    /// Where the last frame of the outbox begins, if it is one of output that can grow.
    open: Option<(usize, Stream)>,
    flushed: Instant,
}

impl Pipe {
    pub(super) fn new() -> io::Result<Self> {
        fcntl_setfl(stdin(), fcntl_getfl(stdin())? | OFlags::NONBLOCK)?;
        Ok(Self {
            inbox: Decoder::new(LARGEST_FRAME),
            outbox: Vec::with_capacity(2 * FULL_BYTES),
            open: None,
            flushed: Instant::now(),
        })
    }

    /// Adds a frame to what will be sent.
    pub(super) fn send(&mut self, frame: &FromWorker) {
        self.open = None;
        critical(&mut self.outbox, |outbox| frame.encode(outbox));
    }

    /// Adds to what the script wrote.
    pub(super) fn write(&mut self, stream: Stream, text: &[u8]) -> Result<(), HostLost> {
        for piece in text.chunks(FULL_BYTES) {
            let open = self.open.filter(|(_, other)| *other == stream);
            if let Some((start, _)) = open {
                critical(&mut self.outbox, |outbox| {
                    outbox.extend_from_slice(piece);
                    let length = u32::try_from(outbox.len() - start - LENGTH_BYTES);
                    let header = outbox.get_mut(start..start + LENGTH_BYTES);
                    if let (Some(header), Ok(length)) = (header, length) {
                        header.copy_from_slice(&length.to_le_bytes());
                    }
                });
            } else {
                let start = self.outbox.len();
                self.send(&FromWorker::Output(stream, piece.to_vec()));
                debug_assert_eq!(self.outbox.len() - start, OUTPUT_HEADER + piece.len());
                self.open = Some((start, stream));
            }
            if self.outbox.len() >= FULL_BYTES {
                self.flush()?;
            }
        }
        if self.flushed.elapsed() >= STALE_OUTPUT {
            self.flush()?;
        }
        Ok(())
    }

    /// Sends a frame at once. A call is sent in this way: it is to run while the script computes, and
    /// nobody knows for how long the script will do so.
    pub(super) fn send_now(&mut self, frame: &FromWorker) -> Result<(), HostLost> {
        self.send(frame);
        self.flush()
    }

    /// Sends everything.
    pub(super) fn flush(&mut self) -> Result<(), HostLost> {
        self.open = None;
        while !self.outbox.is_empty() {
            let sent = critical(&mut self.outbox, |outbox| {
                let sent = rustix::io::write(stdin(), outbox)?;
                outbox.drain(..sent.min(outbox.len()));
                Ok::<_, Errno>(())
            });
            match sent {
                Ok(()) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let ready = wait_for(PollFlags::IN | PollFlags::OUT, PollTimeout::Endless)?;
                    if ready.contains(PollFlags::IN) {
                        self.read()?;
                    }
                }
                Err(_) => return Err(HostLost),
            }
        }
        self.flushed = Instant::now();
        Ok(())
    }

    /// Whether the host has said something that was not read yet.
    pub(super) fn has_news(&self) -> Result<bool, HostLost> {
        Ok(self.has_frame() || !wait_for(PollFlags::IN, PollTimeout::None)?.is_empty())
    }

    /// Whether the next frame is there already, or begins to be.
    pub(super) fn has_frame(&self) -> bool {
        self.inbox.has_more()
    }

    /// The next frame. Everything is sent before it waits.
    pub(super) fn receive(&mut self) -> Result<ToWorker, HostLost> {
        loop {
            if let Some((kind, body)) = self.inbox.next_frame().map_err(|_| HostLost)? {
                return ToWorker::decode(kind, body).map_err(|_| HostLost);
            }
            self.flush()?;
            wait_for(PollFlags::IN, PollTimeout::Endless)?;
            self.read()?;
        }
    }

    /// Reads what is there.
    fn read(&mut self) -> Result<(), HostLost> {
        let space = self.inbox.space(READ_BYTES);
        match rustix::io::read(stdin(), rustix::buffer::spare_capacity(space)) {
            Ok(0) => Err(HostLost),
            Ok(_) | Err(Errno::INTR | Errno::AGAIN) => Ok(()),
            Err(_) => Err(HostLost),
        }
    }
}

/// How long to wait for the pipe.
#[derive(Debug, Clone, Copy)]
enum PollTimeout {
    None,
    Endless,
}

/// Waits until the pipe is ready, or not at all: then it may be that no flag is set.
fn wait_for(flags: PollFlags, patience: PollTimeout) -> Result<PollFlags, HostLost> {
    loop {
        let timeout = match patience {
            PollTimeout::None => Some(Timespec { tv_sec: 0, tv_nsec: 0 }),
            PollTimeout::Endless => None,
        };
        let input = stdin();
        let mut descriptors = [PollFd::new(&input, flags)];
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(0) => return Ok(PollFlags::empty()),
            Ok(_) => return Ok(descriptors[0].revents()),
            Err(Errno::INTR) => {}
            Err(_) => return Err(HostLost),
        }
    }
}
