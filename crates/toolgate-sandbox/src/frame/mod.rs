//! The frames that host and worker exchange.
//!
//! A frame is a length (four bytes, little endian), a byte for its kind, and a body. Frequent
//! frames (calls, completions, output) have a binary body, so that a large result is copied and not
//! parsed. Frames that occur once a run are JSON.
//!
//! The host does not trust the worker. Decoding allocates in proportion to the bytes that were
//! received, never to a declared length, and everything that is not exactly a frame is an error.

mod from_worker;
#[cfg(test)]
mod tests;
mod to_worker;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use toolgate_engines::Stream;

pub(crate) use self::from_worker::OUTPUT_HEADER;
pub use self::{
    from_worker::{Done, FromWorker, Wait},
    to_worker::{RunStart, TimedCompletion, ToWorker},
};

/// The size of the length field.
pub(crate) const LENGTH_BYTES: usize = 4;

/// Why bytes are not a frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The frame is too large.
    #[error("a frame of {bytes} bytes, where {largest} are allowed")]
    TooLarge {
        /// The declared size.
        bytes: usize,
        /// The largest allowed size.
        largest: usize,
    },
    /// The frame has no kind.
    #[error("an empty frame")]
    Empty,
    /// The kind is unknown.
    #[error("a frame of the unknown kind {0}")]
    UnknownKind(u8),
    /// The body does not match the kind.
    #[error("bytes that are no {0} frame")]
    Malformed(&'static str),
}

/// Appends a frame with the body that `body` writes.
fn frame(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    out.push(kind);
    body(out);
    let length = u32::try_from(out.len() - start - LENGTH_BYTES).unwrap_or(u32::MAX);
    if let Some(place) = out.get_mut(start..start + LENGTH_BYTES) {
        place.copy_from_slice(&length.to_le_bytes());
    }
}

/// Appends a frame with a JSON body.
fn json_frame(out: &mut Vec<u8>, kind: u8, body: &impl Serialize) {
    frame(out, kind, |out| {
        // Writing to memory does not fail, and the keys of these types are strings.
        let _ = serde_json::to_writer(out, body);
    });
}

fn from_json<T: DeserializeOwned>(body: &[u8], what: &'static str) -> Result<T, FrameError> {
    serde_json::from_slice(body).map_err(|_| FrameError::Malformed(what))
}

/// The body as unparsed JSON. Its syntax is checked, its depth is not.
fn raw(body: &[u8], what: &'static str) -> Result<Box<RawValue>, FrameError> {
    from_json(body, what)
}

/// Appends a text after its length. A text that is too long for the length field is cut.
fn put_short(out: &mut Vec<u8>, text: &str) {
    let text = cut(text, usize::from(u16::MAX));
    out.extend_from_slice(&u16::try_from(text.len()).unwrap_or_default().to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn take_short<'a>(body: &mut &'a [u8], what: &'static str) -> Result<&'a str, FrameError> {
    let length = u16::from_le_bytes(take(body, what)?);
    let (text, rest) =
        body.split_at_checked(usize::from(length)).ok_or(FrameError::Malformed(what))?;
    *body = rest;
    std::str::from_utf8(text).map_err(|_| FrameError::Malformed(what))
}

fn take<const N: usize>(body: &mut &[u8], what: &'static str) -> Result<[u8; N], FrameError> {
    let (part, rest) = body.split_first_chunk::<N>().ok_or(FrameError::Malformed(what))?;
    *body = rest;
    Ok(*part)
}

fn stream_byte(stream: Stream) -> u8 {
    match stream {
        Stream::Output => 0,
        Stream::Error => 1,
    }
}

fn stream_of(byte: u8) -> Option<Stream> {
    match byte {
        0 => Some(Stream::Output),
        1 => Some(Stream::Error),
        _ => None,
    }
}

/// The first `bytes` bytes of a text, or fewer so as not to split a character.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

/// Splits a stream of bytes into frames.
#[derive(Debug)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// The start of the next frame. Everything before it has been returned.
    start: usize,
    largest: usize,
}

/// The number of returned bytes after which the rest is moved to the front.
const COMPACT_BYTES: usize = 64 * 1024;

impl Decoder {
    /// A decoder that refuses frames larger than `largest` bytes.
    pub fn new(largest: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, largest }
    }

    /// Sets the largest allowed frame.
    pub fn set_largest(&mut self, largest: usize) {
        self.largest = largest;
    }

    /// The buffer to append received bytes to, with a capacity for `additional` more bytes.
    pub fn space(&mut self, additional: usize) -> &mut Vec<u8> {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
        } else if self.start >= COMPACT_BYTES {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.reserve(additional);
        &mut self.buffer
    }

    /// The kind and body of the next frame, or `None` until more bytes have arrived.
    ///
    /// After an error the stream is unusable, because the start of the next frame is unknown.
    pub fn next_frame(&mut self) -> Result<Option<(u8, &[u8])>, FrameError> {
        let rest = self.buffer.get(self.start..).unwrap_or_default();
        let Some((length, rest)) = rest.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        // A length that does not fit into `usize` is too large as well.
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if length > self.largest {
            return Err(FrameError::TooLarge { bytes: length, largest: self.largest });
        }
        if rest.len() < length {
            return Ok(None);
        }
        let Some((&kind, body)) = rest.get(..length).and_then(<[u8]>::split_first) else {
            return Err(FrameError::Empty);
        };
        self.start += LENGTH_BYTES + length;
        Ok(Some((kind, body)))
    }

    /// Whether there are bytes that have not been returned.
    pub fn has_more(&self) -> bool {
        self.start < self.buffer.len()
    }
}

#[cfg(test)]
mod decoder_tests {
    use super::*;

    fn feed(decoder: &mut Decoder, bytes: &[u8]) {
        decoder.space(bytes.len()).extend_from_slice(bytes);
    }

    #[test]
    fn frames_come_out_however_the_bytes_are_split() {
        let stream = [2, 0, 0, 0, 7, 1, 1, 0, 0, 0, 8];
        for cut in 0..=stream.len() {
            let mut decoder = Decoder::new(16);
            let mut frames = Vec::new();
            for part in [&stream[..cut], &stream[cut..]] {
                feed(&mut decoder, part);
                while let Some((kind, body)) = decoder.next_frame().unwrap() {
                    frames.push((kind, body.to_vec()));
                }
            }
            assert_eq!(frames, [(7, vec![1]), (8, vec![])], "cut at {cut}");
            assert!(!decoder.has_more());
        }
    }

    #[test]
    fn a_claimed_length_is_refused_before_its_bytes_came() {
        let mut decoder = Decoder::new(16);
        feed(&mut decoder, &u32::MAX.to_le_bytes());
        assert!(matches!(decoder.next_frame(), Err(FrameError::TooLarge { .. })));
        assert!(decoder.buffer.capacity() < 1024);
    }

    #[test]
    fn a_frame_without_a_kind_is_refused() {
        let mut decoder = Decoder::new(16);
        feed(&mut decoder, &[0, 0, 0, 0]);
        assert!(matches!(decoder.next_frame(), Err(FrameError::Empty)));
    }

    #[test]
    fn what_was_handed_out_does_not_stay() {
        let mut decoder = Decoder::new(1024);
        let mut frame = 1000_u32.to_le_bytes().to_vec();
        frame.extend([9; 1000]);
        for _ in 0..10_000 {
            feed(&mut decoder, &frame);
            // Half of the next frame, so that the buffer is never empty.
            feed(&mut decoder, &frame[..500]);
            assert!(decoder.next_frame().unwrap().is_some());
            assert!(decoder.next_frame().unwrap().is_none());
            feed(&mut decoder, &frame[500..]);
            assert!(decoder.next_frame().unwrap().is_some());
        }
        assert!(decoder.buffer.capacity() <= 4 * COMPACT_BYTES);
    }
}
