//! What frames are made of.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use toolgate_engines::Stream;

/// How many bytes say how long a frame is.
pub(crate) const LENGTH_BYTES: usize = 4;

/// Bytes that are no frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// It claims to be larger than a frame may be.
    #[error("a frame of {bytes} bytes, where {largest} are allowed")]
    TooLarge {
        /// What it claims.
        bytes: usize,
        /// What is allowed.
        largest: usize,
    },
    /// It has not even a kind.
    #[error("an empty frame")]
    Empty,
    /// There is no such kind.
    #[error("a frame of the unknown kind {0}")]
    UnknownKind(u8),
    /// Its body is not what its kind says.
    #[error("bytes that are no {0} frame")]
    Malformed(&'static str),
}

/// Appends a frame whose body is written by `body`.
pub(super) fn frame(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    out.push(kind);
    body(out);
    let length = u32::try_from(out.len() - start - LENGTH_BYTES).unwrap_or(u32::MAX);
    if let Some(place) = out.get_mut(start..start + LENGTH_BYTES) {
        place.copy_from_slice(&length.to_le_bytes());
    }
}

/// Appends a frame whose body is JSON.
pub(super) fn json_frame(out: &mut Vec<u8>, kind: u8, body: &impl Serialize) {
    frame(out, kind, |out| {
        // Into memory, of types whose keys are strings: there is nothing that could fail.
        let _ = serde_json::to_writer(out, body);
    });
}

pub(super) fn from_json<T: DeserializeOwned>(
    body: &[u8],
    what: &'static str,
) -> Result<T, FrameError> {
    serde_json::from_slice(body).map_err(|_| FrameError::Malformed(what))
}

/// JSON as it came. That it is JSON is checked; how deep it is, is not.
pub(super) fn raw(body: &[u8], what: &'static str) -> Result<Box<RawValue>, FrameError> {
    from_json(body, what)
}

/// Appends a text with its length before it. What does not fit into the length is cut.
pub(super) fn put_short(out: &mut Vec<u8>, text: &str) {
    let text = cut(text, usize::from(u16::MAX));
    out.extend_from_slice(&u16::try_from(text.len()).unwrap_or_default().to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

pub(super) fn take_short<'a>(
    body: &mut &'a [u8],
    what: &'static str,
) -> Result<&'a str, FrameError> {
    let length = u16::from_le_bytes(take(body, what)?);
    let (text, rest) =
        body.split_at_checked(usize::from(length)).ok_or(FrameError::Malformed(what))?;
    *body = rest;
    std::str::from_utf8(text).map_err(|_| FrameError::Malformed(what))
}

pub(super) fn take<const N: usize>(
    body: &mut &[u8],
    what: &'static str,
) -> Result<[u8; N], FrameError> {
    let (part, rest) = body.split_first_chunk::<N>().ok_or(FrameError::Malformed(what))?;
    *body = rest;
    Ok(*part)
}

pub(super) fn stream_byte(stream: Stream) -> u8 {
    match stream {
        Stream::Output => 0,
        Stream::Error => 1,
    }
}

pub(super) fn stream_of(byte: u8) -> Option<Stream> {
    match byte {
        0 => Some(Stream::Output),
        1 => Some(Stream::Error),
        _ => None,
    }
}

/// The first `bytes` of a text, or fewer so as not to cut a character.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}
