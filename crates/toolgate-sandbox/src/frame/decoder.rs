//! Bytes in, frames out.

use super::parts::{FrameError, LENGTH_BYTES};

/// Cuts a stream of bytes into frames, however the bytes are split.
#[derive(Debug)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// Where the next frame begins. What is before it was handed out.
    start: usize,
    largest: usize,
}

/// Once this much was handed out, the rest is moved to the front.
const COMPACT_BYTES: usize = 64 * 1024;

impl Decoder {
    /// A decoder that refuses frames of more than `largest` bytes.
    pub fn new(largest: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, largest }
    }

    /// Sets how large a frame may be from now on.
    pub fn set_largest(&mut self, largest: usize) {
        self.largest = largest;
    }

    /// Where to append what was read, with room for `room` bytes more.
    pub fn space(&mut self, room: usize) -> &mut Vec<u8> {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
        } else if self.start >= COMPACT_BYTES {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.reserve(room);
        &mut self.buffer
    }

    /// The next frame's kind and body, or `None` until more bytes came.
    ///
    /// After an error the stream means nothing any more: there is no way to find the next frame.
    pub fn next_frame(&mut self) -> Result<Option<(u8, &[u8])>, FrameError> {
        let rest = self.buffer.get(self.start..).unwrap_or_default();
        let Some((length, rest)) = rest.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        // On a machine whose words are too short for the length, it is too large as well.
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

    /// Whether bytes came that were not handed out.
    pub fn has_more(&self) -> bool {
        self.start < self.buffer.len()
    }
}

#[cfg(test)]
mod tests {
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
            // Half of the next one, so that the buffer is never empty.
            feed(&mut decoder, &frame[..500]);
            assert!(decoder.next_frame().unwrap().is_some());
            assert!(decoder.next_frame().unwrap().is_none());
            feed(&mut decoder, &frame[500..]);
            assert!(decoder.next_frame().unwrap().is_some());
        }
        assert!(decoder.buffer.capacity() <= 4 * COMPACT_BYTES);
    }
}
