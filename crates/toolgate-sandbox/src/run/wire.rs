//! The host's end of the pipe.

use std::io;

use tokio::{
    io::AsyncReadExt,
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use crate::frame::{Decoder, FrameError, FromWorker, ToWorker};

/// As much as is read at once.
const READ_BYTES: usize = 64 * 1024;
/// A worker that does not read what it is sent is not listened to either beyond this.
const MOST_UNSENT: usize = 1024 * 1024;
/// What a frame may have before it is known what the run may.
const LARGEST_FIRST: usize = 64 * 1024;
/// What a frame has beside the value that is limited.
const OVERHEAD: usize = 256 * 1024;

/// Frames in and out. It reads while it writes, so that the two never wait for each other.
#[derive(Debug)]
pub(super) struct Wire {
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    inbox: Decoder,
    outbox: Vec<u8>,
    /// How much of the outbox was sent.
    sent: usize,
}

impl Wire {
    pub(super) fn new(stream: UnixStream) -> Self {
        let (reader, writer) = stream.into_split();
        let inbox = Decoder::new(LARGEST_FIRST);
        Self { reader, writer, inbox, outbox: Vec::new(), sent: 0 }
    }

    /// How large a value may be that the worker sends.
    pub(super) fn allow(&mut self, value_bytes: u64) {
        let largest = usize::try_from(value_bytes).unwrap_or(usize::MAX).saturating_add(OVERHEAD);
        self.inbox.set_largest(largest);
    }

    /// Adds a frame to what is to be sent.
    pub(super) fn send(&mut self, frame: &ToWorker) {
        frame.encode(&mut self.outbox);
    }

    /// Whether the worker reads fast enough to be listened to.
    pub(super) fn has_room(&self) -> bool {
        self.outbox.len() - self.sent < MOST_UNSENT
    }

    pub(super) fn has_unsent(&self) -> bool {
        self.sent < self.outbox.len()
    }

    /// Sends as much as the pipe takes. That the worker is gone is noticed when reading.
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
        // One large result is not to be paid for until the end of the run.
        self.outbox.shrink_to(MOST_UNSENT);
    }

    /// The next frame, if all of it is there.
    pub(super) fn next_frame(&mut self) -> Result<Option<FromWorker>, FrameError> {
        match self.inbox.next_frame()? {
            Some((kind, body)) => FromWorker::decode(kind, body).map(Some),
            None => Ok(None),
        }
    }

    /// Whether bytes came that were not looked at yet.
    pub(super) fn has_more(&self) -> bool {
        self.inbox.has_more()
    }

    /// Reads what is there, and waits for something. `false` once the worker has closed its end.
    pub(super) async fn read(&mut self) -> bool {
        let read = self.reader.read_buf(self.inbox.space(READ_BYTES)).await;
        read.is_ok_and(|bytes| bytes > 0)
    }

    /// Waits until there is something to read or more can be sent. `false` as with [`Self::read`].
    ///
    /// Nothing is lost when the future is dropped.
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
