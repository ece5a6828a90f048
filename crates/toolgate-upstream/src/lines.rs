//! Lines of any length in bounded memory.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// How much of an oversized line is kept at each end, to find out which call it answers.
pub(crate) const KEPT_OF_OVERSIZED: usize = 4096;
const KEPT_CAPACITY: usize = 1024 * 1024;

/// Reads lines, none of which fills the memory.
pub(crate) struct LineReader<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    limit: usize,
}

/// What was read.
pub(crate) enum Line {
    /// The line without its end is in [`LineReader::line`].
    Whole,
    /// Only both ends of the line were kept.
    TooLong { bytes: usize, head: Vec<u8>, tail: Vec<u8> },
    /// There are no more lines.
    End,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(input: R, limit: usize) -> Self {
        Self { input: BufReader::with_capacity(64 * 1024, input), line: Vec::new(), limit }
    }

    pub(crate) fn line(&self) -> &[u8] {
        &self.line
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Never holds more than the limit, however long the line.
    pub(crate) async fn next(&mut self) -> Line {
        self.line.clear();
        // One long answer must not keep its memory for the life of the connection.
        self.line.shrink_to(KEPT_CAPACITY);
        let mut dropped: Option<(usize, Vec<u8>)> = None;
        loop {
            let Ok(available) = self.input.fill_buf().await else { return Line::End };
            if available.is_empty() {
                // A last line without an end is still a line.
                let whole = dropped.is_none() && !self.line.is_empty();
                return if whole { Line::Whole } else { Line::End };
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(available.len(), |position| position + 1);
            let piece = &available[..end.unwrap_or(taken)];
            if dropped.is_none() && self.line.len() + piece.len() > self.limit {
                dropped = Some((self.line.len(), Vec::new()));
                self.line.truncate(KEPT_OF_OVERSIZED);
                if self.line.len() < KEPT_OF_OVERSIZED {
                    let room = KEPT_OF_OVERSIZED - self.line.len();
                    self.line.extend_from_slice(&piece[..piece.len().min(room)]);
                }
            }
            if let Some((bytes, tail)) = &mut dropped {
                *bytes += piece.len();
                tail.extend_from_slice(&piece[piece.len().saturating_sub(KEPT_OF_OVERSIZED)..]);
                let excess = tail.len().saturating_sub(KEPT_OF_OVERSIZED);
                tail.drain(..excess);
            } else {
                self.line.extend_from_slice(piece);
            }
            self.input.consume(taken);
            if end.is_some() {
                return match dropped {
                    Some((bytes, tail)) => {
                        Line::TooLong { bytes, head: std::mem::take(&mut self.line), tail }
                    }
                    None => Line::Whole,
                };
            }
        }
    }
}
