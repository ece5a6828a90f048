//! The host's end of the pipe to a worker.

use std::io;

use tokio::{
    io::AsyncReadExt,
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use crate::frame::{Decoder, FrameError, FromWorker, ToWorker};

/// The number of bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;
/// Unsent bytes beyond which the host stops reading from a worker that does not read.
const MOST_UNSENT: usize = 1024 * 1024;
/// The largest frame before the limits of the run are known.
const LARGEST_FIRST: usize = 64 * 1024;
/// The size of a frame beyond the value that is limited.
const OVERHEAD: usize = 256 * 1024;

/// Frames in both directions. Reading and writing happen together, so that host and worker never
/// wait for each other.
#[derive(Debug)]
pub(super) struct Wire {
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    inbox: Decoder,
    outbox: Vec<u8>,
    /// How much of the outbox is sent.
    sent: usize,
}

impl Wire {
    pub(super) fn new(stream: UnixStream) -> Self {
        let (reader, writer) = stream.into_split();
        let inbox = Decoder::new(LARGEST_FIRST);
        Self { reader, writer, inbox, outbox: Vec::new(), sent: 0 }
    }

    /// Sets the limit for values that the worker sends.
    pub(super) fn allow(&mut self, value_bytes: u64) {
        let largest = usize::try_from(value_bytes).unwrap_or(usize::MAX).saturating_add(OVERHEAD);
        self.inbox.set_largest(largest);
    }

    /// Appends a frame to the outbox.
    pub(super) fn send(&mut self, frame: &ToWorker) {
        frame.encode(&mut self.outbox);
    }

    /// Whether the worker reads fast enough for the host to go on reading.
    pub(super) fn has_room(&self) -> bool {
        self.outbox.len() - self.sent < MOST_UNSENT
    }

    pub(super) fn has_unsent(&self) -> bool {
        self.sent < self.outbox.len()
    }

    /// Sends as much as the pipe accepts. Reading notices when the worker is gone.
    pub(super) fn try_send(&mut self) {
        while let Some(rest) = self.outbox.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.writer.try_write(rest) {
                Ok(sent) if sent > 0 => self.sent += sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(_) | Err(_) => break,
            }
        }
        self.sent = 0;
        self.outbox.clear();
        // The memory of one large result is not kept until the end of the run.
        self.outbox.shrink_to(MOST_UNSENT);
    }

    /// The next frame, if it is complete.
    pub(super) fn next_frame(&mut self) -> Result<Option<FromWorker>, FrameError> {
        let Some((kind, body)) = self.inbox.next_frame()? else { return Ok(None) };
        let frame = FromWorker::decode(kind, body).map(Some);
        self.inbox.release();
        frame
    }

    /// Whether unread bytes have arrived.
    pub(super) fn has_more(&self) -> bool {
        self.inbox.has_more()
    }

    /// Sends and reads until something has arrived. Returns `false` once the worker has closed its
    /// end.
    pub(super) async fn read(&mut self) -> bool {
        let read = self.reader.read_buf(self.inbox.space(READ_BYTES)).await;
        read.is_ok_and(|bytes| bytes > 0)
    }

    /// Waits until there is something to read or more can be sent. Returns `false` as in
    /// [`Self::read`].
    ///
    /// Dropping the future loses nothing.
    pub(super) async fn progress(&mut self) -> bool {
        let (reading, sending) = (self.has_room(), self.has_unsent());
        tokio::select! {
            biased;
            _ = self.writer.writable(), if sending => {
                self.try_send();
                true
            }
            read = self.reader.read_buf(self.inbox.space(READ_BYTES)), if reading => {
                read.is_ok_and(|bytes| bytes > 0)
            }
        }
    }
}
