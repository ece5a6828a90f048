//! Frames from a worker to its host.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolgate_bindings::check::CheckFinding;
use toolgate_engines::{EngineCall, ScriptFailure, Stream};

use super::{
    FrameError, LENGTH_BYTES, cut, frame, from_json, json_frame, put_short, raw, stream_byte,
    stream_of, take, take_short,
};
use crate::lockdown::LockdownReport;

const READY: u8 = 1;
const DESCRIBE: u8 = 2;
const CALL: u8 = 3;
const OUTPUT: u8 = 4;
const EMIT: u8 = 5;
const VALUE: u8 = 6;
const ENDED: u8 = 7;
const PANICKED: u8 = 8;
const WARNED: u8 = 9;
const WAITS: u8 = 10;

/// The size of an output frame before its text: length, kind and stream.
pub(crate) const OUTPUT_HEADER: usize = LENGTH_BYTES + 2;

/// The largest number of names in a query, and the longest name.
const MOST_NAMES: usize = 2_000;
const LONGEST_NAME: usize = 256;
/// The largest sizes in a report: of a text, of a stack, of a list of findings.
const LONGEST_TEXT: usize = 16 * 1024;
const MOST_FRAMES: usize = 64;
const MOST_FINDINGS: usize = 100;
const LONGEST_CARET: u32 = 1_000;

/// A frame from a worker.
#[derive(Debug)]
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
    Output(Stream, Vec<u8>),
    /// A content block.
    Emit(Box<RawValue>),
    /// The script waits.
    Waits(Wait),
    /// Warnings about the script, which runs all the same.
    Warned(Vec<CheckFinding>),
    /// The script ended. This is the last frame.
    Done(Done),
    /// The worker itself failed. This is the last frame.
    Panicked(String),
}

/// The state of a worker that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// When the host should send the time, in microseconds since the run began, unless it sends
    /// something else before.
    pub until: Option<u64>,
    /// The number of deliveries that the script has received.
    pub delivered: u64,
}

/// How a script ended.
#[derive(Debug)]
pub enum Done {
    /// With or without a value.
    Value(Option<Box<RawValue>>),
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

/// [`Done`] without the value, which is not parsed.
#[derive(Serialize, Deserialize)]
enum Ended {
    Rejected(Vec<CheckFinding>),
    Failed(ScriptFailure),
    ValueTooLarge { bytes: u64 },
}

impl FromWorker {
    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ready(report) => json_frame(out, READY, report),
            Self::Describe(names) => json_frame(out, DESCRIBE, names),
            Self::Call(call) => frame(out, CALL, |out| {
                out.extend_from_slice(&call.id.to_le_bytes());
                put_short(out, &call.name);
                out.extend_from_slice(call.arguments.get().as_bytes());
            }),
            Self::Output(stream, text) => frame(out, OUTPUT, |out| {
                out.push(stream_byte(*stream));
                out.extend_from_slice(text);
            }),
            Self::Emit(block) => {
                frame(out, EMIT, |out| out.extend_from_slice(block.get().as_bytes()));
            }
            Self::Done(Done::Value(value)) => frame(out, VALUE, |out| {
                let text = value.as_deref().map(RawValue::get).unwrap_or_default();
                out.extend_from_slice(text.as_bytes());
            }),
            Self::Done(Done::Rejected(findings)) => {
                json_frame(out, ENDED, &Ended::Rejected(findings.clone()));
            }
            Self::Done(Done::Failed(failure)) => {
                json_frame(out, ENDED, &Ended::Failed(bounded_failure(failure.clone())));
            }
            Self::Done(Done::ValueTooLarge { bytes }) => {
                json_frame(out, ENDED, &Ended::ValueTooLarge { bytes: *bytes });
            }
            Self::Waits(wait) => frame(out, WAITS, |out| {
                out.extend_from_slice(&wait.until.unwrap_or(u64::MAX).to_le_bytes());
                out.extend_from_slice(&wait.delivered.to_le_bytes());
            }),
            Self::Warned(findings) => json_frame(out, WARNED, findings),
            Self::Panicked(message) => {
                frame(out, PANICKED, |out| out.extend_from_slice(message.as_bytes()));
            }
        }
    }

    /// Decodes a frame. Every list and text in it is limited.
    pub fn decode(kind: u8, mut body: &[u8]) -> Result<Self, FrameError> {
        match kind {
            READY => Ok(Self::Ready(from_json(body, "ready")?)),
            DESCRIBE => {
                let names: Vec<String> = from_json(body, "describe")?;
                if names.len() > MOST_NAMES || names.iter().any(|name| name.len() > LONGEST_NAME) {
                    return Err(FrameError::Malformed("describe"));
                }
                Ok(Self::Describe(names))
            }
            CALL => {
                let what = "call";
                let id = u64::from_le_bytes(take(&mut body, what)?);
                let name = take_short(&mut body, what)?;
                if name.len() > LONGEST_NAME || body.first() != Some(&b'{') {
                    return Err(FrameError::Malformed(what));
                }
                Ok(Self::Call(EngineCall {
                    id,
                    name: name.to_owned(),
                    arguments: raw(body, what)?,
                }))
            }
            OUTPUT => {
                let [stream] = take(&mut body, "output")?;
                let stream = stream_of(stream).ok_or(FrameError::Malformed("output"))?;
                Ok(Self::Output(stream, body.to_vec()))
            }
            EMIT => Ok(Self::Emit(raw(body, "emit")?)),
            VALUE if body.is_empty() => Ok(Self::Done(Done::Value(None))),
            VALUE => Ok(Self::Done(Done::Value(Some(raw(body, "value")?)))),
            ENDED => Ok(Self::Done(match from_json(body, "ended")? {
                Ended::Rejected(findings) => Done::Rejected(bounded_findings(findings)),
                Ended::Failed(failure) => Done::Failed(bounded_failure(failure)),
                Ended::ValueTooLarge { bytes } => Done::ValueTooLarge { bytes },
            })),
            WAITS => {
                let until = u64::from_le_bytes(take(&mut body, "waits")?);
                let delivered = u64::from_le_bytes(take(&mut body, "waits")?);
                Ok(Self::Waits(Wait { until: (until != u64::MAX).then_some(until), delivered }))
            }
            WARNED => Ok(Self::Warned(bounded_findings(from_json(body, "warned")?))),
            PANICKED => {
                let message = String::from_utf8_lossy(body);
                Ok(Self::Panicked(cut(&message, LONGEST_TEXT).to_owned()))
            }
            other => Err(FrameError::UnknownKind(other)),
        }
    }
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
