//! The frames that host and worker exchange.
//!
//! A frame is a length (four bytes, little endian), a byte for its kind, and a body. The body is
//! JSON, except that of script output, which is the bytes themselves. JSON values inside of a frame
//! (arguments, results) are copied and not parsed.
//!
//! The host does not trust the worker. Decoding allocates in proportion to the bytes that were
//! received, never to a declared length, and everything that is not exactly a frame is an error.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use toolgate_bindings::check::{
    CheckFinding, Language, LookupResult, ProgramFlow, SourcePositions,
};
use toolgate_engines::{Completion, EngineCall, Function, ScriptFailure, ScriptPlace, Stream};

use crate::lockdown::LockdownReport;

/// The size of the length field.
pub(crate) const LENGTH_BYTES: usize = 4;
/// The size of an output frame before its text: length and kind.
pub(crate) const OUTPUT_HEADER: usize = LENGTH_BYTES + 1;

/// The kinds of frames.
const JSON: u8 = 0;
const OUTPUT: u8 = 1;
const ERROR_OUTPUT: u8 = 2;

/// The largest number of names in a query, and the longest name.
const MOST_NAMES: usize = 2_000;
const LONGEST_NAME: usize = 256;
/// The largest sizes in a report: of a text, of a stack, of a list of findings.
const LONGEST_TEXT: usize = 16 * 1024;
const MOST_FRAMES: usize = 64;
const MOST_FINDINGS: usize = 100;
const LONGEST_CARET: u32 = 1_000;
/// The largest numbers in the flows of a script.
const MOST_CALL_SITES: usize = 1_000;
const MOST_FLOWS: usize = 4_000;
const MOST_VARIABLES: usize = 8;

/// A frame from a worker to the host.
#[derive(Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FromWorker {
    /// The lockdown is complete. This is the first frame.
    Ready(LockdownReport),
    /// A query: which of these names are tools?
    Describe(Vec<String>),
    /// A tool call.
    Call(EngineCall),
    /// Output of the script. It may not be valid UTF-8, because a character may be split over two
    /// frames.
    #[serde(skip)]
    Output(Stream, Vec<u8>),
    /// A content block.
    Emit(Box<RawValue>),
    /// The script waits.
    Waits(Wait),
    /// Warnings about the script, which runs all the same.
    Warned(Vec<CheckFinding>),
    /// Which results of the script's calls can reach which arguments. It precedes the first call; if
    /// it is missing, every result may reach every argument.
    Flow(ProgramFlow),
    /// The script passed the check, and another worker runs it. This is what that worker needs. It
    /// is the last frame. The host does not look into it.
    Prepared(Box<RawValue>),
    /// The script ended. This is the last frame.
    Done(Done),
    /// The worker itself failed. This is the last frame.
    Panicked(String),
}

/// The state of a worker that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// When the host should send the time, in microseconds since the run began, unless it sends
    /// something else before.
    pub until: Option<u64>,
    /// The number of deliveries that the script has received.
    pub delivered: u64,
}

/// How a script ended.
#[derive(Debug, Serialize, Deserialize)]
pub enum Done {
    /// With a value.
    Value(Box<RawValue>),
    /// Without a value.
    NoValue,
    /// Before it began, because the check found errors.
    Rejected(Vec<CheckFinding>),
    /// With an error.
    Failed(ScriptFailure),
    /// With a value that is too large.
    ValueTooLarge {
        /// The size of the value.
        bytes: u64,
    },
}

/// A frame from the host to a worker.
#[derive(Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ToWorker {
    /// The script to check and to run. This is the first frame.
    Start(RunStart),
    /// A script that another worker has checked. This is the first frame for a worker of Python's
    /// own interpreter.
    Run(PreparedRun),
    /// The response to [`FromWorker::Describe`].
    Described(Vec<LookupResult>),
    /// The outcome of a call.
    Completed(TimedCompletion),
    /// The time, in microseconds since the run began.
    Time(u64),
    /// From now on the worker reports when it waits.
    ReportWaits,
}

/// The outcome of a call, with the time of its delivery.
#[derive(Debug, Serialize, Deserialize)]
pub struct TimedCompletion {
    /// The outcome of the call.
    pub completion: Completion,
    /// Microseconds since the run began.
    pub at: u64,
    /// Whether another completion belongs to the same delivery.
    pub more: bool,
}

/// A script, and what the worker has to know to check and run it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStart {
    /// The script's text.
    pub code: String,
    /// The language of the script; `None` if the worker is that of a component.
    pub language: Option<Language>,
    /// What Python's own interpreter has, if it runs the script. Then the worker only checks it.
    pub interpreter: Option<InterpreterFacts>,
    /// Whether the script is checked, and nobody runs it.
    pub only_checks: bool,
    /// The bounds of the run.
    pub bounds: RunBounds,
}

/// What Python's own interpreter has beside the standard library.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterpreterFacts {
    /// The packages that a script can import.
    pub packages: Vec<String>,
}

/// A script that was checked.
#[derive(Debug, Serialize, Deserialize)]
pub struct PreparedRun {
    /// What [`FromWorker::Prepared`] contained.
    pub script: Box<RawValue>,
    /// The bounds of the run.
    pub bounds: RunBounds,
}

/// A script that was checked, for a worker that runs it as a module of Python.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedScript {
    /// The script as it was written.
    pub text: String,
    /// The script as it runs.
    pub source: String,
    /// Which positions of the script those of the source stand for.
    #[serde(skip)]
    pub positions: SourcePositions,
    /// Where the expression begins and ends whose value is that of the script.
    pub value: Option<(u32, u32)>,
    /// Whether the script has a `return` outside of a function.
    pub returns: bool,
    /// Whether the script looks for variables by names that it computes.
    pub looks_up: bool,
    /// The tools that the script mentions.
    pub functions: Vec<Function>,
    /// The places where the script calls a tool under another name.
    pub places: Vec<ScriptPlace>,
}

/// The bounds of a run: the limits that the worker enforces, and the values that it starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunBounds {
    /// Bytes that the values of the script may use.
    pub memory_bytes: u64,
    /// Bytes of stack.
    pub stack_bytes: u64,
    /// Seconds of CPU time after which the system ends the worker, if the host has not done so.
    pub cpu_seconds: u64,
    /// Bytes of a call's arguments, of a content block and of the final value.
    pub value_bytes: u64,
    /// The start of the run, in microseconds since 1970.
    pub began: u64,
    /// The seed of the random numbers.
    pub seed: u64,
    /// Whether the worker reports when it waits.
    pub reports_waits: bool,
}

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
    /// The body is not that of a frame, or exceeds a limit.
    #[error("a frame with an invalid body")]
    Malformed,
}

/// Appends a frame with the body that `body` writes.
fn frame(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    out.push(kind);
    body(out);
    set_length(out, start);
}

/// Sets the length of the last frame, which begins at `start`.
pub(crate) fn set_length(out: &mut [u8], start: usize) {
    let length = u32::try_from(out.len() - start - LENGTH_BYTES).unwrap_or(u32::MAX);
    if let Some(field) = out.get_mut(start..start + LENGTH_BYTES) {
        field.copy_from_slice(&length.to_le_bytes());
    }
}

fn json_frame(out: &mut Vec<u8>, body: &impl Serialize) {
    frame(out, JSON, |out| {
        // Writing to memory does not fail, and the keys of these types are strings.
        let _ = serde_json::to_writer(out, body);
    });
}

fn from_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, FrameError> {
    serde_json::from_slice(body).map_err(|_| FrameError::Malformed)
}

impl ToWorker {
    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        json_frame(out, self);
    }

    /// Decodes a frame.
    pub fn decode(kind: u8, body: &[u8]) -> Result<Self, FrameError> {
        if kind == JSON { from_json(body) } else { Err(FrameError::UnknownKind(kind)) }
    }
}

impl FromWorker {
    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Output(Stream::Output, text) => {
                frame(out, OUTPUT, |out| out.extend_from_slice(text));
            }
            Self::Output(Stream::Error, text) => {
                frame(out, ERROR_OUTPUT, |out| out.extend_from_slice(text));
            }
            Self::Done(Done::Failed(failure)) => {
                json_frame(out, &Self::Done(Done::Failed(bounded_failure(failure.clone()))));
            }
            other => json_frame(out, other),
        }
    }

    /// Decodes a frame. Every list and text in it is limited.
    pub fn decode(kind: u8, body: &[u8]) -> Result<Self, FrameError> {
        let is_name = |name: &String| name.len() <= LONGEST_NAME;
        Ok(match kind {
            OUTPUT => Self::Output(Stream::Output, body.to_vec()),
            ERROR_OUTPUT => Self::Output(Stream::Error, body.to_vec()),
            JSON => match from_json(body)? {
                Self::Describe(names) if names.len() > MOST_NAMES || !names.iter().all(is_name) => {
                    return Err(FrameError::Malformed);
                }
                Self::Call(call)
                    if !is_name(&call.name) || !call.arguments.get().starts_with('{') =>
                {
                    return Err(FrameError::Malformed);
                }
                Self::Flow(flow) if !is_bounded_flow(&flow) => return Err(FrameError::Malformed),
                Self::Warned(findings) => Self::Warned(bounded_findings(findings)),
                Self::Done(Done::Rejected(findings)) => {
                    Self::Done(Done::Rejected(bounded_findings(findings)))
                }
                Self::Done(Done::Failed(failure)) => {
                    Self::Done(Done::Failed(bounded_failure(failure)))
                }
                Self::Panicked(mut message) => {
                    shorten(&mut message);
                    Self::Panicked(message)
                }
                other => other,
            },
            other => return Err(FrameError::UnknownKind(other)),
        })
    }
}

/// Whether the numbers in it are those of calls, and all lists and texts are short.
fn is_bounded_flow(flow: &ProgramFlow) -> bool {
    let calls = u32::try_from(flow.calls.len()).unwrap_or(u32::MAX);
    let is_short = |text: &String| text.len() <= LONGEST_NAME;
    flow.calls.len() <= MOST_CALL_SITES
        && flow.flows.len() <= MOST_FLOWS
        && flow.calls.iter().all(|call| call.tool.iter().all(is_short))
        && flow.flows.iter().all(|edge| {
            edge.from < calls
                && edge.to < calls
                && edge.argument.iter().all(is_short)
                && edge.through.len() <= MOST_VARIABLES
                && edge.through.iter().all(is_short)
        })
}

fn shorten(text: &mut String) {
    text.truncate(text.floor_char_boundary(LONGEST_TEXT));
}

fn bounded_failure(mut failure: ScriptFailure) -> ScriptFailure {
    shorten(&mut failure.message);
    failure.hint.iter_mut().for_each(shorten);
    failure.stack.truncate(MOST_FRAMES);
    for frame in &mut failure.stack {
        frame.function.truncate(frame.function.floor_char_boundary(LONGEST_NAME));
    }
    failure
}

fn bounded_findings(findings: Vec<CheckFinding>) -> Vec<CheckFinding> {
    findings.into_iter().take(MOST_FINDINGS).map(bounded_finding).collect()
}

fn bounded_finding(mut finding: CheckFinding) -> CheckFinding {
    shorten(&mut finding.source_line);
    shorten(&mut finding.message);
    finding.hint.iter_mut().for_each(shorten);
    // The caret is the width of what is displayed before it.
    finding.caret = finding.caret.min(LONGEST_CARET);
    finding
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
/// The capacity beyond which the buffer is not kept.
const LARGE_BYTES: usize = 1024 * 1024;

impl Decoder {
    /// A decoder that refuses frames larger than `largest` bytes.
    pub fn new(largest: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, largest }
    }

    /// Sets the largest allowed frame.
    pub fn set_largest(&mut self, largest: usize) {
        self.largest = largest;
    }

    /// Releases the memory of a large frame once it has been decoded.
    pub fn release(&mut self) {
        if self.start == self.buffer.len() && self.buffer.capacity() > LARGE_BYTES {
            self.buffer = Vec::new();
            self.start = 0;
        }
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
    fn decoded_bytes_are_released() {
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
