//! Reads what a server writes to stderr, within limits.
//!
//! A server may write without end. It must not cost toolgate a processor, nor fill its log: lines
//! beyond a rate are counted and dropped, and then stderr is read more slowly than a server can write.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::redact::Redactor;

/// The last lines of a server, oldest first.
pub(super) type LastLines = Mutex<VecDeque<String>>;

const KEPT_LINES: usize = 20;
const KEPT_OF_LINE: usize = 400;
/// A longer line is taken in pieces: a line without an end must not fill the memory.
const MAX_LINE: usize = 64 * 1024;
const BLOCK: usize = 64 * 1024;
/// What is passed on in each second.
const MAX_LINES: usize = 1_000;
const MAX_BYTES: usize = 1024 * 1024;
const SECOND: Duration = Duration::from_secs(1);
/// How long to wait after a block of which lines were dropped.
const PAUSE: Duration = Duration::from_millis(2);

/// Passes the lines on, without the secrets, until the end.
pub(super) async fn follow(
    mut stderr: impl AsyncRead + Unpin,
    last_lines: &LastLines,
    redactor: &Redactor,
    on_line: impl Fn(&str),
) {
    let pass_on = |line: &[u8]| {
        // Redacted before it is cut, because half a secret is not recognised.
        let text = redactor.clean(String::from_utf8_lossy(line).trim_end());
        on_line(&text);
        keep(last_lines, &text);
    };
    let mut lines = StderrLines::new();
    let mut block = vec![0; BLOCK];
    loop {
        let read = tokio::select! {
            read = stderr.read(&mut block) => read.unwrap_or_default(),
            () = tokio::time::sleep_until((lines.began + SECOND).into()), if lines.dropped.bytes > 0 => {
                lines.report(&on_line);
                continue;
            }
        };
        if read == 0 {
            break;
        }
        if lines.began.elapsed() >= SECOND {
            lines.report(&on_line);
        }
        lines.take(&block[..read], pass_on);
        if lines.dropped.bytes > 0 {
            tokio::time::sleep(PAUSE).await;
        }
    }
    if !lines.begun.is_empty() {
        pass_on(&lines.begun);
    }
    if let Some(last) = lines.dropped.last.take() {
        keep(last_lines, &redactor.clean(String::from_utf8_lossy(&last).trim_end()));
    }
    lines.report(&on_line);
}

fn keep(last_lines: &LastLines, text: &str) {
    if text.is_empty() {
        return;
    }
    let mut kept = last_lines.lock();
    if kept.len() == KEPT_LINES {
        kept.pop_front();
    }
    kept.push_back(text.chars().take(KEPT_OF_LINE).collect());
}

/// The lines of one second.
struct StderrLines {
    began: Instant,
    lines: usize,
    bytes: usize,
    dropped: DroppedLines,
    /// A line whose end has not come.
    begun: Vec<u8>,
    /// Whether the beginning of the current line was dropped. Its rest is dropped too: half a secret
    /// is not recognised.
    drops_line: bool,
}

#[derive(Default)]
struct DroppedLines {
    lines: usize,
    bytes: usize,
    /// The last whole line: it may say why the server ended.
    last: Option<Vec<u8>>,
}

impl StderrLines {
    fn new() -> Self {
        let (began, dropped) = (Instant::now(), DroppedLines::default());
        Self { began, lines: 0, bytes: 0, dropped, begun: Vec::new(), drops_line: false }
    }

    /// Says how much was dropped, and begins the next second.
    fn report(&mut self, on_line: impl Fn(&str)) {
        let DroppedLines { lines, bytes, .. } = std::mem::take(&mut self.dropped);
        if bytes > 0 {
            on_line(&format!(
                "({lines} lines with {bytes} bytes were dropped: the server writes more than {MAX_LINES} \
                 lines or {MAX_BYTES} bytes a second)"
            ));
        }
        (self.began, self.lines, self.bytes) = (Instant::now(), 0, 0);
    }

    /// Takes a block. Passes its lines on until the limit is reached, and drops the rest.
    fn take(&mut self, mut block: &[u8], pass_on: impl Fn(&[u8])) {
        if self.drops_line {
            let end = block.iter().position(|byte| *byte == b'\n').map_or(block.len(), |at| at + 1);
            let (dropped, rest) = block.split_at(end);
            self.drop_block(dropped);
            block = rest;
        }
        while !block.is_empty() {
            if self.lines >= MAX_LINES || self.bytes >= MAX_BYTES {
                return self.drop_block(block);
            }
            let end = block.iter().position(|byte| *byte == b'\n').map_or(block.len(), |at| at + 1);
            let (piece, rest) = block.split_at(end.min(MAX_LINE - self.begun.len()));
            self.begun.extend_from_slice(piece);
            block = rest;
            if self.begun.ends_with(b"\n") || self.begun.len() == MAX_LINE {
                self.lines += 1;
                self.bytes += self.begun.len();
                pass_on(&self.begun);
                self.begun.clear();
            }
        }
    }

    fn drop_block(&mut self, block: &[u8]) {
        self.dropped.bytes += self.begun.len() + block.len();
        self.begun.clear();
        self.drops_line = !block.ends_with(b"\n");
        self.dropped.lines += block.split(|byte| *byte == b'\n').count() - 1;
        let whole = &block[..block.iter().rposition(|byte| *byte == b'\n').unwrap_or_default()];
        if let Some(before) = whole.iter().rposition(|byte| *byte == b'\n') {
            self.dropped.last = Some(whole[before + 1..].to_vec());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is passed on of the text, and what is kept.
    async fn followed(text: &[u8]) -> (Vec<String>, Vec<String>) {
        let (passed, last) = (Mutex::new(Vec::new()), LastLines::default());
        let on_line = |line: &str| passed.lock().push(line.to_owned());
        follow(text, &last, &Redactor::default(), on_line).await;
        (passed.into_inner(), last.into_inner().into())
    }

    #[tokio::test]
    async fn lines_are_passed_on() {
        let (passed, last) = followed(b"one\r\n\ntwo\nthree").await;
        assert_eq!(passed, ["one", "", "two", "three"]);
        assert_eq!(last, ["one", "two", "three"]);
        let long = "x".repeat(MAX_LINE + 10);
        let (passed, _) = followed(format!("{long}\nshort\n").as_bytes()).await;
        let lengths: Vec<usize> = passed.iter().map(String::len).collect();
        assert_eq!(lengths, [MAX_LINE, 10, 5]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_counted_and_dropped() {
        let mut text = "a line of a flood\n".repeat(200_000);
        text.push_str("fatal: no disk\n");
        let (passed, last) = followed(text.as_bytes()).await;
        let notes: Vec<_> = passed.iter().filter(|line| line.starts_with('(')).collect();
        assert!(!notes.is_empty());
        let dropped: usize = notes
            .iter()
            .map(|note| note[1..].split(' ').next().unwrap().parse::<usize>().unwrap())
            .sum();
        assert_eq!(
            passed.len() - notes.len() + dropped,
            200_001,
            "each line is passed on or counted"
        );
        assert!(passed.len() < 100_000);
        assert_eq!(last.last().unwrap(), "fatal: no disk");
    }
}
