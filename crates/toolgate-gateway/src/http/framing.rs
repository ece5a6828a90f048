//! Looks at how the bodies of requests are framed, before hyper does.
//!
//! hyper waits for a chunk of any size, prefers one of two contradicting lengths, and answers lengths beyond 64 bits as if
//! the head were wrong. Nothing is answered from here: that response could overtake the one to the request before. Instead
//! the bytes are changed, so that hyper or the endpoint refuses the request in its turn.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection whose incoming bytes are checked.
#[derive(Debug)]
pub(crate) struct CheckedStream<S> {
    stream: S,
    framing: Framing,
}

/// Follows the requests of a connection.
#[derive(Debug)]
struct Framing {
    state: FramingState,
    /// The beginning of the name of the current header, in lower case, and the length of the name.
    name: [u8; LONGEST_NAME],
    name_length: usize,
    /// What the head says of the body.
    is_chunked: bool,
    length: Option<u64>,
    /// The largest chunk.
    limit: u64,
    has_large_chunk: Arc<AtomicBool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FramingState {
    /// Before a request. Empty lines may come first.
    Start,
    RequestLine,
    HeaderName,
    HeaderValue {
        is_length: bool,
    },
    /// So many bytes of a body are left.
    Body(u64),
    ChunkSize(u64),
    /// The rest of the line with the size of a chunk.
    ChunkExtension(u64),
    ChunkData(u64),
    /// The line break after a chunk.
    ChunkEnd,
    /// A line after the last chunk, and whether it is empty so far.
    Trailer {
        is_empty: bool,
    },
}

const LENGTH: &[u8] = b"content-length";
const ENCODING: &[u8] = b"transfer-encoding";
const LONGEST_NAME: usize = ENCODING.len();
/// The smallest length that gets no more digits: it has 18 of them, and is far beyond what any gateway takes.
const LONGEST_LENGTH: u64 = 100_000_000_000_000_000;
/// No parser of HTTP takes this byte for a part of a name or a size.
const INVALID: u8 = 0;

impl<S> CheckedStream<S> {
    /// Checks what arrives on a stream. `has_large_chunk` becomes true before a chunk of more than `limit` bytes is refused.
    pub(crate) fn new(stream: S, limit: usize, has_large_chunk: Arc<AtomicBool>) -> Self {
        let framing = Framing {
            state: FramingState::Start,
            name: [0; LONGEST_NAME],
            name_length: 0,
            is_chunked: false,
            length: None,
            limit: limit as u64,
            has_large_chunk,
        };
        Self { stream, framing }
    }
}

impl Framing {
    fn check(&mut self, mut bytes: &mut [u8]) {
        while let [first, ..] = bytes {
            let skipped = match &mut self.state {
                FramingState::Body(left) | FramingState::ChunkData(left) => {
                    let skipped = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    *left -= skipped as u64;
                    skipped
                }
                _ => {
                    self.state = self.after(first);
                    1
                }
            };
            match self.state {
                FramingState::Body(0) => self.state = FramingState::Start,
                FramingState::ChunkData(0) => self.state = FramingState::ChunkEnd,
                _ => {}
            }
            bytes = &mut bytes[skipped..];
        }
    }

    /// The state after a byte, which may be changed.
    fn after(&mut self, byte: &mut u8) -> FramingState {
        use FramingState as State;
        match (self.state, *byte) {
            (State::Start, b'\r' | b'\n') | (State::Trailer { is_empty: true }, b'\n') => {
                State::Start
            }
            (State::Start, _) => State::RequestLine,
            (State::HeaderName, b'\n') if self.name_length == 0 => self.end_of_head(),
            (State::RequestLine | State::HeaderName | State::HeaderValue { .. }, b'\n') => {
                self.name_length = 0;
                State::HeaderName
            }
            (State::HeaderName, b'\r') => State::HeaderName,
            (State::HeaderName, b':') => self.value(byte),
            (State::HeaderName, letter) => {
                if let Some(place) = self.name.get_mut(self.name_length) {
                    *place = letter.to_ascii_lowercase();
                }
                self.name_length += 1;
                State::HeaderName
            }
            (State::HeaderValue { is_length: true }, digit @ b'0'..=b'9') => {
                let length = self.length.get_or_insert_default();
                if *length >= LONGEST_LENGTH {
                    *byte = b' ';
                } else {
                    *length = *length * 10 + u64::from(digit - b'0');
                }
                self.state
            }
            // hyper takes a list of equal lengths. What is followed here must be what hyper reads.
            (State::HeaderValue { is_length: true }, b',') => {
                *byte = INVALID;
                self.state
            }
            (State::ChunkSize(size) | State::ChunkExtension(size), b'\n') => {
                if size == 0 {
                    State::Trailer { is_empty: true }
                } else {
                    State::ChunkData(size)
                }
            }
            (State::ChunkSize(_), b'\r') => self.state,
            (State::ChunkSize(size), digit) => match char::from(digit).to_digit(16) {
                None => State::ChunkExtension(size),
                Some(digit) => {
                    let size = size.saturating_mul(16).saturating_add(u64::from(digit));
                    if size > self.limit {
                        self.has_large_chunk.store(true, Ordering::Relaxed);
                        *byte = INVALID;
                    }
                    State::ChunkSize(size)
                }
            },
            (State::ChunkEnd, b'\n') => State::ChunkSize(0),
            (State::Trailer { .. }, b'\n') => State::Trailer { is_empty: true },
            (State::Trailer { is_empty }, letter) => {
                State::Trailer { is_empty: is_empty && letter == b'\r' }
            }
            (state, _) => state,
        }
    }

    /// The name of a header is complete.
    fn value(&mut self, colon: &mut u8) -> FramingState {
        let name = self.name.get(..self.name_length).unwrap_or_default();
        let (is_length, is_encoding) = (name == LENGTH, name == ENCODING);
        // Two readers of such a request may see two different ones.
        if is_length && self.is_chunked || is_encoding && self.length.is_some() {
            *colon = INVALID;
        }
        if is_length {
            self.length = Some(0);
        }
        self.is_chunked |= is_encoding;
        FramingState::HeaderValue { is_length }
    }

    fn end_of_head(&mut self) -> FramingState {
        let (is_chunked, length) = (self.is_chunked, self.length.take());
        self.is_chunked = false;
        match length {
            _ if is_chunked => FramingState::ChunkSize(0),
            None | Some(0) => FramingState::Start,
            Some(length) => FramingState::Body(length),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CheckedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, framing } = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(stream).poll_read(context, buffer))?;
        framing.check(&mut buffer.filled_mut()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CheckedStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What hyper reads of `sent`, which arrives in pieces of this size.
    fn read(sent: &str, piece: usize) -> (String, bool) {
        let large = Arc::new(AtomicBool::new(false));
        let mut framing = CheckedStream::new((), 4096, Arc::clone(&large)).framing;
        let mut bytes = sent.as_bytes().to_vec();
        for piece in bytes.chunks_mut(piece) {
            framing.check(piece);
        }
        (String::from_utf8(bytes).unwrap(), large.load(Ordering::Relaxed))
    }

    #[test]
    fn only_what_must_be_refused_is_changed() {
        let first = "POST /mcp HTTP/1.1\r\nhost: x\r\n";
        let looks_bad = "content-length: 1\r\ntransfer-encoding: chunked\r\n\r\nffffffff\r\n";
        let (length, size) = (looks_bad.len(), format!("{:x}", looks_bad.len()));
        let by_length = format!("{first}Content-Length: {length}\r\n\r\n{looks_bad}");
        let chunks =
            format!("{size};a=b\r\n{looks_bad}\r\n3 \r\nabc\r\n0\r\nContent-Length: 9\r\n\r\n");
        let chunked = format!("{first}Transfer-Encoding: chunked\r\n\r\n{chunks}");
        let get = "\r\nGET /health HTTP/1.1\nhost: x\n\n";
        let good = [&by_length, &chunked, get, &by_length, get, &chunked]
            .map(ToString::to_string)
            .concat();
        let twenty = "18446744073709551616";
        let cases = [
            (good.clone(), good.clone(), false),
            (
                format!("{good}{first}content-length: 000{twenty}\r\n\r\n"),
                format!("{good}{first}content-length: 000184467440737095516  \r\n\r\n"),
                false,
            ),
            (
                format!("{good}{first}content-length: 5, 5\r\n\r\n"),
                format!("{good}{first}content-length: 5\0 5\r\n\r\n"),
                false,
            ),
            (
                format!("{good}{first}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n"),
                format!("{good}{first}content-length: 1\r\ntransfer-encoding\0 chunked\r\n\r\n"),
                false,
            ),
            (
                format!("{good}{first}Transfer-Encoding:chunked\r\nCONTENT-LENGTH:1\r\n\r\n"),
                format!("{good}{first}Transfer-Encoding:chunked\r\nCONTENT-LENGTH\01\r\n\r\n"),
                false,
            ),
            (
                format!("{good}{first}transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n01001\r\n"),
                format!("{good}{first}transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0100\0\r\n"),
                true,
            ),
        ];
        for (sent, expected, is_large) in cases {
            for piece in [1, 2, 7, sent.len()] {
                assert_eq!(read(&sent, piece), (expected.clone(), is_large), "{piece}");
            }
        }
        let at_limit = "x\r\ntransfer-encoding: chunked\r\n\r\n1000\r\n";
        assert!(!read(at_limit, 3).1);
    }
}
