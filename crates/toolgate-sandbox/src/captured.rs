//! The console output of a script, with a size limit.

use std::collections::VecDeque;

/// The console output of a script, both streams in the order of writing.
///
/// The beginning and the end of long output are kept, because readers look there first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapturedOutput {
    /// All output, or its beginning.
    pub head: String,
    /// The end of the output, if something was left out.
    pub tail: String,
    /// Bytes that were left out between the two.
    pub left_out: u64,
    /// Bytes that the script wrote.
    pub total: u64,
}

/// Collects the output of a script.
#[derive(Debug)]
pub(crate) struct OutputCapture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_limit: usize,
    tail_limit: usize,
    total: u64,
}

impl OutputCapture {
    /// Keeps `limit` bytes: half of the beginning, half of the end.
    pub(crate) fn new(limit: usize) -> Self {
        let tail_limit = limit / 2;
        let head_limit = limit - tail_limit;
        Self { head: Vec::new(), tail: VecDeque::new(), head_limit, tail_limit, total: 0 }
    }

    pub(crate) fn push(&mut self, text: &[u8]) {
        self.total = self.total.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX));
        let capacity = self.head_limit.saturating_sub(self.head.len()).min(text.len());
        let (head, rest) = text.split_at_checked(capacity).unwrap_or((text, &[]));
        self.head.extend_from_slice(head);
        let rest = rest.get(rest.len().saturating_sub(self.tail_limit)..).unwrap_or_default();
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..excess.min(self.tail.len()));
        self.tail.extend(rest);
    }

    /// The number of bytes that were written.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn finish(self) -> CapturedOutput {
        let kept = self.head.len() + self.tail.len();
        let left_out = self.total.saturating_sub(u64::try_from(kept).unwrap_or(u64::MAX));
        let (mut head, mut tail) = (self.head, Vec::from(self.tail));
        if left_out == 0 {
            head.append(&mut tail);
        }
        // The cut may have left half a character.
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        CapturedOutput { head: text(head), tail: text(tail), left_out, total: self.total }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(limit: usize, pieces: &[&str]) -> CapturedOutput {
        let mut capture = OutputCapture::new(limit);
        for piece in pieces {
            capture.push(piece.as_bytes());
        }
        capture.finish()
    }

    #[test]
    fn little_is_kept_whole() {
        let all = capture(10, &["01234", "5678", "9"]);
        assert_eq!((all.head.as_str(), all.tail.as_str()), ("0123456789", ""));
        assert_eq!((all.left_out, all.total), (0, 10));
    }

    #[test]
    fn the_beginning_and_the_end_of_long_output_are_kept() {
        let text = "abcdefghijklmnopqrstuvwxyz";
        let one = capture(10, &[text]);
        assert_eq!((one.head.as_str(), one.tail.as_str()), ("abcde", "vwxyz"));
        assert_eq!((one.left_out, one.total), (16, 26));
        let letters: Vec<&str> = text.split("").collect();
        assert_eq!(capture(10, &letters), one);
        assert_eq!(capture(10, &["abcdefghijk", "lmnopqrstu", "vwxyz"]), one);
    }

    #[test]
    fn a_cut_character_is_made_whole() {
        let cut = capture(4, &["äöüäöü"]);
        assert_eq!((cut.head.as_str(), cut.tail.as_str()), ("ä", "ü"));
        let cut = capture(2, &["äöüäöü"]);
        assert_eq!((cut.head.as_str(), cut.tail.as_str()), ("\u{fffd}", "\u{fffd}"));
    }

    #[test]
    fn nothing_may_be_kept() {
        let none = capture(0, &["abc"]);
        assert_eq!((none.head.as_str(), none.left_out), ("", 3));
    }
}
