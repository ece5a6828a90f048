//! The functions that the engine itself provides to scripts and to the prelude. They are not tools.
//!
//! Their names begin with [`PREFIX`], which tools and scripts do not use.

use std::time::Duration;

use chrono::{DateTime, Datelike, FixedOffset, Offset, TimeDelta, Timelike, Utc};
use md5::Digest;
use monty_types::{ExcType, MontyDate, MontyDateTime, MontyException, MontyObject, OsFunctionCall};
use serde_json::value::RawValue;

use super::value::{self, JsonWriter, Strictness};
use crate::{engine::Function, world::Stream};

/// The prefix of the engine's own functions.
pub(super) const PREFIX: &str = "_tg_host_";

/// The longest wait that a script may request.
const LONGEST_WAIT: Duration = Duration::from_hours(24);

/// The function that returns the seed of the random numbers.
pub(super) const SEED: &str = "seed";

/// The time of a script.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    /// The start of the run, since 1970.
    pub(super) unix: Duration,
    /// The time since the start.
    pub(super) elapsed: Duration,
    pub(super) seed: u64,
}

/// What an engine function requests.
#[derive(Debug)]
pub(super) enum HostRequest {
    /// A value that is available at once.
    Value(MontyObject),
    /// An error, raised at the call.
    Raise(MontyException),
    /// A text for the console.
    Write(Stream, String),
    /// The script continues at that time.
    Sleep(Duration),
    /// An awaitable that is ready at that time.
    Timer(Duration),
    /// An awaitable that the script settles itself.
    Future,
    /// Settles the awaitable with that number. They are counted in the order of creation.
    Settle(u64),
}

/// Reads a call of an engine function. `name` is without the prefix.
pub(super) fn request(name: &str, arguments: &[MontyObject], clock: Clock) -> HostRequest {
    match (name, arguments) {
        ("time", []) => HostRequest::Value(MontyObject::Float(clock.now().as_secs_f64())),
        ("monotonic", []) => HostRequest::Value(MontyObject::Float(clock.elapsed.as_secs_f64())),
        (SEED, []) => HostRequest::Value(MontyObject::Int(seed(clock.seed))),
        ("write", [MontyObject::Bool(error), MontyObject::String(text)]) => {
            let stream = if *error { Stream::Error } else { Stream::Output };
            HostRequest::Write(stream, text.clone())
        }
        ("sleep", [seconds]) => wait(seconds, clock, HostRequest::Sleep),
        ("timer", [seconds]) => wait(seconds, clock, HostRequest::Timer),
        ("future", []) => HostRequest::Future,
        ("settle", [MontyObject::Int(number)]) => {
            HostRequest::Settle(u64::try_from(*number).unwrap_or(u64::MAX))
        }
        ("digest", [MontyObject::String(algorithm), MontyObject::Bytes(bytes)]) => {
            match digest(algorithm, bytes) {
                Some(digest) => HostRequest::Value(MontyObject::Bytes(digest)),
                None => raise(ExcType::ValueError, format!("unsupported hash type {algorithm}")),
            }
        }
        _ => raise(ExcType::TypeError, format!("{PREFIX}{name}() was called in an unknown way")),
    }
}

/// Handles Monty's calls to the operating system. Only the time is provided.
pub(super) fn operating_system(
    call: &OsFunctionCall,
    clock: Clock,
) -> Result<MontyObject, MontyException> {
    match call {
        OsFunctionCall::DateToday => {
            let MontyDateTime { year, month, day, .. } = clock.date_time(None, None);
            Ok(MontyObject::Date(MontyDate { year, month, day }))
        }
        OsFunctionCall::DateTimeNow(zone) => {
            let offset = zone.as_ref().map(|zone| zone.offset_seconds);
            let name = zone.as_ref().and_then(|zone| zone.name.clone());
            Ok(MontyObject::DateTime(clock.date_time(offset, name)))
        }
        OsFunctionCall::Getenv(call) => Ok(call.default.clone()),
        OsFunctionCall::GetEnviron => Ok(MontyObject::dict(Vec::new())),
        other => {
            let name: &'static str = other.into();
            Err(MontyException::new(
                ExcType::PermissionError,
                Some(format!("{name}: a script has no files")),
            ))
        }
    }
}

fn raise(kind: ExcType, message: String) -> HostRequest {
    HostRequest::Raise(MontyException::new(kind, Some(message)))
}

fn wait(seconds: &MontyObject, clock: Clock, request: fn(Duration) -> HostRequest) -> HostRequest {
    let seconds = match seconds {
        #[expect(clippy::cast_precision_loss, reason = "nobody waits for 2^53 seconds")]
        MontyObject::Int(seconds) => *seconds as f64,
        MontyObject::Float(seconds) => *seconds,
        MontyObject::Bool(seconds) => f64::from(u8::from(*seconds)),
        _ => return raise(ExcType::TypeError, "a delay is a number of seconds".to_owned()),
    };
    if seconds.is_nan() {
        return raise(ExcType::ValueError, "Invalid delay: NaN (not a number)".to_owned());
    }
    let delay = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(LONGEST_WAIT);
    request(clock.elapsed + delay.min(LONGEST_WAIT))
}

impl Clock {
    /// The current time, since 1970.
    fn now(self) -> Duration {
        self.unix + self.elapsed
    }

    /// The time in a zone with that offset, or in UTC, which is the local time of a script.
    fn date_time(self, offset: Option<i32>, timezone_name: Option<String>) -> MontyDateTime {
        let zone = FixedOffset::east_opt(offset.unwrap_or(0));
        let zone = zone.unwrap_or_else(|| Utc.fix());
        // The time is past the last one that the calendar has only in a forged journal.
        let time = TimeDelta::from_std(self.now())
            .ok()
            .and_then(|now| DateTime::UNIX_EPOCH.checked_add_signed(now))
            .unwrap_or(DateTime::<Utc>::MAX_UTC)
            .with_timezone(&zone);
        let part = |value: u32| u8::try_from(value).unwrap_or_default();
        MontyDateTime {
            year: time.year().min(9_999),
            month: part(time.month()),
            day: part(time.day()),
            hour: part(time.hour()),
            minute: part(time.minute()),
            second: part(time.second()),
            microsecond: self.now().subsec_micros(),
            offset_seconds: offset,
            timezone_name,
        }
    }
}

/// A seed for the random numbers. They only have to differ between runs and between seeds.
fn seed(from: u64) -> i64 {
    i64::try_from(from.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 2).unwrap_or_default()
}

/// The digest of some bytes, if the algorithm is known.
pub(super) fn digest(algorithm: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    Some(match algorithm {
        "md5" => md5::Md5::digest(bytes).to_vec(),
        "sha1" => sha1::Sha1::digest(bytes).to_vec(),
        "sha224" => sha2::Sha224::digest(bytes).to_vec(),
        "sha256" => sha2::Sha256::digest(bytes).to_vec(),
        "sha384" => sha2::Sha384::digest(bytes).to_vec(),
        "sha512" => sha2::Sha512::digest(bytes).to_vec(),
        _ => return None,
    })
}

/// Binds positional and named arguments as Python does, with Python's error messages.
pub(super) fn bind(
    function: &Function,
    positional: &[MontyObject],
    named: &[(MontyObject, MontyObject)],
) -> Result<Box<RawValue>, MontyException> {
    let name = &function.name;
    // A single dictionary is the object of all arguments, unless the first parameter may be one.
    if let ([only @ MontyObject::Dict(_)], [], false) =
        (positional, named, function.first_takes_object)
    {
        return value::to_json(only, Strictness::Argument)
            .map_err(|error| type_error(format!("{name}(): {error}")));
    }
    if positional.len() > function.parameters.len() {
        return Err(type_error(too_many(function, positional.len())));
    }
    let taken = &function.parameters[..positional.len()];
    let mut arguments: Vec<(&String, &MontyObject)> = taken.iter().zip(positional).collect();
    for (key, argument) in named {
        let MontyObject::String(key) = key else {
            return Err(type_error("keywords must be strings".to_owned()));
        };
        if taken.contains(key) {
            return Err(type_error(format!("{name}() got multiple values for argument '{key}'")));
        }
        arguments.push((key, argument));
    }
    let mut json = JsonWriter::new(Strictness::Argument);
    json.sequence(['{', '}'], arguments, |json, (key, argument)| {
        json.string(key);
        json.text.push(':');
        json.value(argument, value::DEPTH_LIMIT)
            .map_err(|error| type_error(format!("{name}() argument '{key}': {error}")))
    })?;
    json.finish().map_err(|error| type_error(format!("{name}(): {error}")))
}

fn too_many(function: &Function, given: usize) -> String {
    let name = &function.name;
    let were = if given == 1 { "was" } else { "were" };
    match function.parameters.len() {
        0 => format!("{name}() takes 0 positional arguments but {given} {were} given"),
        1 => format!("{name}() takes 1 positional argument but {given} {were} given"),
        most => {
            format!("{name}() takes from 0 to {most} positional arguments but {given} {were} given")
        }
    }
}

fn type_error(message: String) -> MontyException {
    MontyException::new(ExcType::TypeError, Some(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_zone_changes_the_date_and_not_the_microseconds() {
        let unix = Duration::new(1_709_251_199, 500_000);
        let clock = Clock { unix, elapsed: Duration::from_secs(1), seed: 0 };
        let shown = |offset| {
            let time = clock.date_time(offset, None);
            (time.year, time.month, time.day, time.hour, time.microsecond)
        };
        assert_eq!(shown(None), (2024, 3, 1, 0, 500));
        assert_eq!(shown(Some(-3_600)), (2024, 2, 29, 23, 500));
        let far = Clock { unix: Duration::from_secs(u64::MAX / 2), ..clock };
        assert_eq!(far.date_time(None, None).year, 9_999);
    }
}
