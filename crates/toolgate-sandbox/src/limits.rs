//! The limits of a run, and the messages about them.

use std::{fmt, time::Duration};

use toolgate_engines::ScriptFailure;

/// The limits of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLimits {
    /// The time from start to end, waiting included: `codeMode.timeoutSeconds`.
    pub wall: Duration,
    /// The CPU time: `codeMode.cpuSeconds`.
    pub cpu: Duration,
    /// Bytes that the values of the script may use: `codeMode.memoryMb`.
    pub memory_bytes: u64,
    /// Bytes of stack: `codeMode.stackKb`.
    pub stack_bytes: u64,
    /// The number of tool calls: `codeMode.maxCalls`.
    pub calls: u64,
    /// The number of tool calls at the same time: `codeMode.maxCallsInFlight`.
    pub calls_in_flight: usize,
    /// Bytes of one result, of the arguments of one call, of the final value, and of all content
    /// blocks together: `codeMode.maxResultBytes`.
    pub result_bytes: u64,
    /// Bytes of output that are kept, from its beginning and its end: `codeMode.maxOutputBytes`.
    pub output_bytes: usize,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(30),
            cpu: Duration::from_secs(10),
            memory_bytes: 512 * MEGABYTE,
            stack_bytes: 1024 * KILOBYTE,
            calls: 500,
            calls_in_flight: 500,
            result_bytes: 16 * MEGABYTE,
            output_bytes: 1024 * 1024,
        }
    }
}

impl RunLimits {
    /// The amount of output that ends the run. Output beyond the kept part is counted and discarded
    /// until then.
    pub(crate) fn flood_bytes(&self) -> u64 {
        u64::try_from(self.output_bytes).unwrap_or(u64::MAX).saturating_mul(FLOOD).max(MEGABYTE)
    }
}

/// The amount of output that ends a run, as a multiple of what is kept.
const FLOOD: u64 = 64;

/// A limit that ended a run. The message names the configuration key that raises the limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitReached {
    /// It used too much CPU time.
    #[error(
        "the script computed for more than {}; codeMode.cpuSeconds raises the limit",
        Seconds(*limit)
    )]
    Cpu {
        /// The limit.
        limit: Duration,
    },
    /// It took too long.
    #[error("the script took more than {}; codeMode.timeoutSeconds raises the limit", Seconds(*limit))]
    Wall {
        /// The limit.
        limit: Duration,
    },
    /// It waits for something that can no longer happen.
    #[error("the script waits for something that can no longer happen")]
    Stalled(ScriptFailure),
    /// It used too much memory.
    #[error(
        "the script needed more than {} of memory; codeMode.memoryMb raises the limit",
        Bytes(*limit)
    )]
    Memory {
        /// The limit in bytes.
        limit: u64,
        /// The failure that the engine reported, if it could.
        failure: Option<ScriptFailure>,
    },
    /// It used too much stack.
    #[error(
        "the script calls itself too deeply for {} of stack; codeMode.stackKb raises the limit",
        Bytes(*limit)
    )]
    Stack {
        /// The limit in bytes.
        limit: u64,
        /// The failure that the engine reported, if it could.
        failure: Option<ScriptFailure>,
    },
    /// It wrote too much output.
    #[error(
        "the script wrote more than {} of output; codeMode.maxOutputBytes raises the limit",
        Bytes(*limit)
    )]
    Output {
        /// The limit in bytes.
        limit: u64,
    },
    /// Its value is too large.
    #[error(
        "the script's value has {}, {} are allowed; codeMode.maxResultBytes raises the limit",
        Bytes(*bytes),
        Bytes(*limit)
    )]
    Value {
        /// The size of the value.
        bytes: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// It emitted too many bytes of content blocks.
    #[error(
        "the script emitted more than {} of content; codeMode.maxResultBytes raises the limit",
        Bytes(*limit)
    )]
    Emitted {
        /// The limit in bytes.
        limit: u64,
    },
    /// It did not start because too many other scripts run.
    #[error("{limit} scripts are running already; codeMode.maxRuns raises the limit")]
    Runs {
        /// The number of scripts that may run at once.
        limit: usize,
    },
}

/// A limit that a single call reached. The script gets it as an exception and may catch it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallRefusal {
    /// The script made too many calls.
    #[error(
        "not called: the script made {limit} calls already; codeMode.maxCalls raises the limit"
    )]
    Calls { limit: u64 },
    /// Too many calls are in flight.
    #[error(
        "not called: {limit} calls are in flight; await some of them before making more, or raise \
         codeMode.maxCallsInFlight"
    )]
    InFlight { limit: usize },
    /// The tool was called, and its result is too large.
    #[error(
        "the call was made, but its result has {}, {} are allowed; ask for less, or raise \
         codeMode.maxResultBytes",
        Bytes(*bytes),
        Bytes(*limit)
    )]
    Result { bytes: u64, limit: u64 },
    /// The arguments are too large.
    #[error(
        "not sent: it has {}, {} are allowed; send less, or raise codeMode.maxResultBytes",
        Bytes(*bytes),
        Bytes(*limit)
    )]
    Sent { bytes: u64, limit: u64 },
}

const KILOBYTE: u64 = 1024;
const MEGABYTE: u64 = 1024 * KILOBYTE;

/// A number of bytes, displayed in the largest unit that is exact.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes >= MEGABYTE && bytes.is_multiple_of(MEGABYTE) => {
                write!(formatter, "{} MB", bytes / MEGABYTE)
            }
            bytes if bytes >= KILOBYTE && bytes.is_multiple_of(KILOBYTE) => {
                write!(formatter, "{} KB", bytes / KILOBYTE)
            }
            bytes => write!(formatter, "{bytes} bytes"),
        }
    }
}

/// A duration, displayed in seconds as in the configuration.
struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} s", self.0.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_names_its_value_and_its_key() {
        let cases = [
            (
                LimitReached::Cpu { limit: Duration::from_millis(1500) },
                "the script computed for more than 1.5 s; codeMode.cpuSeconds raises the limit",
            ),
            (
                LimitReached::Wall { limit: Duration::from_secs(30) },
                "the script took more than 30 s; codeMode.timeoutSeconds raises the limit",
            ),
            (
                LimitReached::Memory { limit: 128 * MEGABYTE, failure: None },
                "the script needed more than 128 MB of memory; codeMode.memoryMb raises the limit",
            ),
            (
                LimitReached::Stack { limit: 512 * KILOBYTE, failure: None },
                "the script calls itself too deeply for 512 KB of stack; codeMode.stackKb raises \
                 the limit",
            ),
            (
                LimitReached::Value { bytes: 1000, limit: 10 },
                "the script's value has 1000 bytes, 10 bytes are allowed; codeMode.maxResultBytes \
                 raises the limit",
            ),
        ];
        for (stop, text) in cases {
            assert_eq!(stop.to_string(), text);
        }
    }
}
