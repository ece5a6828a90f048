//! The worker's end of the pipe.

use std::time::{Duration, Instant};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    stdio::stdin,
};
use toolgate_engines::Stream;

use crate::{
    frame::{Decoder, FromWorker, OUTPUT_HEADER, ToWorker, set_length},
    system::stop::critical,
};

/// The number of bytes that are buffered before they are sent.
const FULL_BYTES: usize = 32 * 1024;
/// The number of bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;
/// Buffered output is sent with the first line after this time.
const STALE_OUTPUT: Duration = Duration::from_millis(50);
/// The largest frame from the host, which is trusted.
const LARGEST_FRAME: usize = 1 << 30;

/// The host is gone, or sent an invalid frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostLost;

/// Frames in both directions. Outgoing frames are buffered where that does no harm.
///
/// While the pipe is full, incoming bytes are read, so that worker and host never wait for each
/// other.
pub(super) struct Pipe {
    inbox: Decoder,
    outbox: Vec<u8>,
    /// The start of the last frame in the outbox, if it is an output frame that can grow.
    open: Option<(usize, Stream)>,
    flushed: Instant,
}

impl Pipe {
    /// The pipe is descriptor 0. The host has made it non-blocking.
    pub(super) fn new() -> Self {
        Self {
            inbox: Decoder::new(LARGEST_FRAME),
            outbox: Vec::with_capacity(2 * FULL_BYTES),
            open: None,
            flushed: Instant::now(),
        }
    }

    /// Appends a frame to the outbox.
    pub(super) fn send(&mut self, frame: &FromWorker) {
        self.open = None;
        critical(&mut self.outbox, |outbox| frame.encode(outbox));
    }

    /// Appends output of the script.
    pub(super) fn write(&mut self, stream: Stream, text: &[u8]) -> Result<(), HostLost> {
        for piece in text.chunks(FULL_BYTES) {
            let open = self.open.filter(|(_, other)| *other == stream);
            if let Some((start, _)) = open {
                critical(&mut self.outbox, |outbox| {
                    outbox.extend_from_slice(piece);
                    set_length(outbox, start);
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

    /// Sends a frame at once. Calls are sent this way, so that they run while the script continues
    /// to compute.
    pub(super) fn send_now(&mut self, frame: &FromWorker) -> Result<(), HostLost> {
        self.send(frame);
        self.flush()
    }

    /// Sends the whole outbox.
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
                    let ready = wait_for(PollFlags::IN | PollFlags::OUT)?;
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

    /// Whether the next frame has arrived, at least in part.
    pub(super) fn has_frame(&self) -> bool {
        self.inbox.has_more()
    }

    /// The next frame. Sends the whole outbox before it waits.
    pub(super) fn receive(&mut self) -> Result<ToWorker, HostLost> {
        loop {
            if let Some((kind, body)) = self.inbox.next_frame().map_err(|_| HostLost)? {
                let frame = ToWorker::decode(kind, body).map_err(|_| HostLost);
                self.inbox.release();
                return frame;
            }
            self.flush()?;
            wait_for(PollFlags::IN)?;
            self.read()?;
        }
    }

    /// Reads the bytes that have arrived.
    fn read(&mut self) -> Result<(), HostLost> {
        let space = self.inbox.space(READ_BYTES);
        match rustix::io::read(stdin(), rustix::buffer::spare_capacity(space)) {
            Ok(0) => Err(HostLost),
            Ok(_) | Err(Errno::INTR | Errno::AGAIN) => Ok(()),
            Err(_) => Err(HostLost),
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        // Whatever ends this process must not send memory that is freed.
        critical(&mut self.outbox, Vec::clear);
    }
}

/// Waits until the pipe is ready.
fn wait_for(flags: PollFlags) -> Result<PollFlags, HostLost> {
    loop {
        let input = stdin();
        let mut descriptors = [PollFd::new(&input, flags)];
        match poll(&mut descriptors, None) {
            Ok(_) => return Ok(descriptors[0].revents()),
            Err(Errno::INTR) => {}
            Err(_) => return Err(HostLost),
        }
    }
}
