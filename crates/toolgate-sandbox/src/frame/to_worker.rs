//! Frames from the host to a worker.

use serde::{Deserialize, Serialize};
use toolgate_engines::{Completion, ToolException};

use super::{FrameError, frame, from_json, json_frame, put_short, raw, take, take_short};
use toolgate_bindings::check::{Language, LookupResult};

const START: u8 = 1;
const DESCRIBED: u8 = 2;
const COMPLETED: u8 = 3;
const TIME: u8 = 4;
const TELL: u8 = 5;

const FINE: u8 = 0;
const THROWN: u8 = 1;

/// A frame for a worker.
#[derive(Debug)]
#[non_exhaustive]
pub enum ToWorker {
    /// The script to run. This is the first frame.
    Start(RunStart),
    /// The response to [`super::FromWorker::Describe`].
    Described(Vec<LookupResult>),
    /// The outcome of a call.
    Completed(TimedCompletion),
    /// The time, in microseconds since the run began.
    Time(u64),
    /// From now on the worker reports when it waits.
    ReportWaits,
}

/// The outcome of a call, with the time of its delivery.
#[derive(Debug)]
pub struct TimedCompletion {
    /// The outcome of the call.
    pub completion: Completion,
    /// Microseconds since the run began.
    pub at: u64,
    /// Whether another completion belongs to the same delivery.
    pub more: bool,
}

/// A script, and the limits that the worker enforces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStart {
    /// The script's text.
    pub code: String,
    /// The language of the script.
    pub language: Language,
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

impl ToWorker {
    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Start(start) => json_frame(out, START, start),
            Self::Described(found) => json_frame(out, DESCRIBED, found),
            Self::Time(at) => frame(out, TIME, |out| out.extend_from_slice(&at.to_le_bytes())),
            Self::ReportWaits => frame(out, TELL, |_| {}),
            Self::Completed(TimedCompletion { completion, at, more }) => {
                frame(out, COMPLETED, |out| {
                    out.extend_from_slice(&completion.id.to_le_bytes());
                    out.extend_from_slice(&at.to_le_bytes());
                    out.push(u8::from(*more));
                    match &completion.outcome {
                        Ok(value) => {
                            out.push(FINE);
                            out.extend_from_slice(value.get().as_bytes());
                        }
                        Err(thrown) => {
                            out.push(THROWN);
                            put_short(out, &thrown.tool);
                            out.extend_from_slice(thrown.message.as_bytes());
                        }
                    }
                });
            }
        }
    }

    /// Decodes a frame.
    pub fn decode(kind: u8, mut body: &[u8]) -> Result<Self, FrameError> {
        match kind {
            START => Ok(Self::Start(from_json(body, "start")?)),
            DESCRIBED => Ok(Self::Described(from_json(body, "described")?)),
            COMPLETED => {
                let what = "completed";
                let id = u64::from_le_bytes(take(&mut body, what)?);
                let at = u64::from_le_bytes(take(&mut body, what)?);
                let [more] = take(&mut body, what)?;
                let outcome = match take(&mut body, what)? {
                    [FINE] => Ok(raw(body, what)?),
                    [THROWN] => {
                        let tool = take_short(&mut body, what)?.to_owned();
                        let message = String::from_utf8_lossy(body).into_owned();
                        Err(ToolException { tool, message })
                    }
                    _ => return Err(FrameError::Malformed(what)),
                };
                let completion = Completion { id, outcome };
                Ok(Self::Completed(TimedCompletion { completion, at, more: more != 0 }))
            }
            TIME => Ok(Self::Time(u64::from_le_bytes(take(&mut body, "time")?))),
            TELL => Ok(Self::ReportWaits),
            other => Err(FrameError::UnknownKind(other)),
        }
    }
}
