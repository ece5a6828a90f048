//! The interface `host` of the world: what a component gets from its host.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use scoped_tls_hkt::scoped_thread_local;
use serde_json::value::RawValue;
use wasmtime::{StoreContextMut, component::Linker};

use super::limiter::MemoryLimiter;
use crate::world::{CallId, Completion, EngineCall, HostClosed, Stream, ToolException, World};

/// After so many looks at the clock, time passes even if the script does not wait. The number is
/// fixed, so that a resumed run does the same.
const PATIENCE: u32 = 10_000;
const STEP: Duration = Duration::from_millis(1);
/// The longest name of a tool.
const LONGEST_NAME: usize = 256;

scoped_thread_local!(static mut WORLD: dyn World);

/// Lends the world to the functions of the host while `run` runs. They are defined before the world
/// exists, so it cannot be a part of their state.
pub(super) fn lend<R>(world: &mut dyn World, run: impl FnOnce() -> R) -> R {
    WORLD.set(world, run)
}

/// Uses the world that was lent. There is none while a component starts.
fn with_world<R>(reach: impl FnOnce(&mut dyn World) -> R) -> Option<R> {
    WORLD.is_set().then(|| WORLD.with(reach))
}

/// Why the host ended a component.
#[derive(Debug, thiserror::Error)]
pub(super) enum HostEnd {
    #[error("the host is gone")]
    Closed,
    #[error("the script waits for something that can no longer happen")]
    Stalled,
    #[error("the script needs more memory than it may have")]
    Memory,
    #[error("the script exited with the status {0}")]
    Exit(u8),
    #[error("the component called `{0}`, which scripts do not have")]
    Absent(String),
}

impl From<HostClosed> for HostEnd {
    fn from(_: HostClosed) -> Self {
        Self::Closed
    }
}

/// The state of one instance.
#[derive(Debug, Default)]
pub(super) struct HostState {
    pub(super) limiter: MemoryLimiter,
    next_call: CallId,
    in_flight: u64,
    /// Calls that have ended, and that the component has not waited for yet.
    ended: VecDeque<Completion>,
    /// The state of the random numbers.
    pub(super) dice: u64,
    /// How often the clock was read since the last wait.
    looks: u32,
    /// When the timers of WASI go off, by their handles.
    pub(super) timers: HashMap<u32, Duration>,
    /// Bytes of an output that are not a whole character yet.
    partial: [Vec<u8>; 2],
}

impl HostState {
    /// Begins a call. One that cannot be sent has failed already.
    fn submit(&mut self, name: String, arguments: String) -> Result<CallId, HostEnd> {
        let id = self.next_call;
        self.next_call += 1;
        let refused = if name.len() > LONGEST_NAME {
            Some("there is no tool with so long a name".to_owned())
        } else if !arguments.trim_start().starts_with('{') {
            Some("the arguments are no JSON object".to_owned())
        } else {
            None
        };
        let checked = match refused {
            Some(message) => Err(message),
            None => RawValue::from_string(arguments)
                .map_err(|error| format!("the arguments are no JSON: {error}")),
        };
        match checked {
            Ok(arguments) => {
                self.in_flight += 1;
                let call = EngineCall { id, name, arguments, place: None };
                with_world(|world| world.submit(call)).ok_or(HostEnd::Closed)??;
            }
            Err(message) => {
                let thrown = ToolException::new(name, message);
                self.ended.push_back(Completion { id, outcome: Err(thrown) });
            }
        }
        Ok(id)
    }

    /// The next call that has ended. Waits for it, at most until `until`.
    fn wait(&mut self, until: Option<Duration>) -> Result<Option<Completion>, HostEnd> {
        if self.ended.is_empty() {
            match until {
                None if self.in_flight == 0 => return Err(HostEnd::Stalled),
                Some(until) if until <= time() => {}
                _ => self.receive(until)?,
            }
        }
        Ok(self.ended.pop_front())
    }

    /// Waits until a time, whatever ends meanwhile.
    pub(super) fn sleep(&mut self, until: Duration) -> Result<(), HostEnd> {
        while time() < until {
            self.receive(Some(until))?;
        }
        Ok(())
    }

    /// Waits for one delivery of the host. `until` is a time since 1970.
    fn receive(&mut self, until: Option<Duration>) -> Result<(), HostEnd> {
        self.looks = 0;
        let ended = with_world(|world| {
            let until = until.map(|until| until.saturating_sub(world.beginning().unix));
            let mut ended = Vec::new();
            ended.extend(world.wait(until)?);
            while !ended.is_empty()
                && let Some(another) = world.more()?
            {
                ended.push(another);
            }
            Ok::<_, HostClosed>(ended)
        });
        let ended = ended.ok_or(HostEnd::Closed)??;
        self.in_flight = self.in_flight.saturating_sub(ended.len() as u64);
        self.ended.extend(ended);
        Ok(())
    }

    /// The time since 1970.
    pub(super) fn now(&mut self) -> Result<Duration, HostEnd> {
        self.looks += 1;
        if self.looks > PATIENCE {
            let soon = time() + STEP;
            self.sleep(soon)?;
        }
        Ok(time())
    }

    /// The next random number (`SplitMix64`).
    pub(super) fn random(&mut self) -> u64 {
        self.dice = self.dice.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.dice ^ (self.dice >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Writes bytes to an output. A character may be split over several calls.
    pub(super) fn write(&mut self, stream: Stream, bytes: &[u8]) {
        let partial = &mut self.partial[usize::from(stream == Stream::Error)];
        partial.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(partial) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => partial.len(),
        };
        let rest = partial.split_off(whole);
        let text = std::mem::replace(partial, rest);
        print(stream, &String::from_utf8_lossy(&text));
    }
}

/// The time since 1970. It advances only when the host says so.
fn time() -> Duration {
    with_world(|world| world.beginning().unix + world.now()).unwrap_or_default()
}

fn print(stream: Stream, text: &str) {
    // What a component prints while it starts has no reader.
    let _ = with_world(|world| world.write(stream, text));
}

/// Defines the interface under the name with which a component imports it.
pub(super) fn define(linker: &mut Linker<HostState>, name: &str) -> wasmtime::Result<()> {
    type Context<'a> = StoreContextMut<'a, HostState>;
    type Ended = Option<(u64, Result<String, String>)>;
    let mut host = linker.instance(name)?;
    host.func_wrap("submit", |mut context: Context<'_>, (tool, arguments): (String, String)| {
        Ok((context.data_mut().submit(tool, arguments)?,))
    })?;
    host.func_wrap("wait", |mut context: Context<'_>, (until,): (Option<u64>,)| {
        let ended = context.data_mut().wait(until.map(Duration::from_nanos))?;
        let ended: Ended = ended.map(|Completion { id, outcome }| {
            let result = outcome.map(|value| Box::<str>::from(value).into_string());
            (id, result.map_err(|thrown| thrown.message))
        });
        Ok((ended,))
    })?;
    host.func_wrap("print", |_: Context<'_>, (text,): (String,)| {
        print(Stream::Output, &text);
        Ok(())
    })?;
    host.func_wrap("now", |mut context: Context<'_>, (): ()| {
        Ok((nanoseconds(context.data_mut().now()?),))
    })?;
    host.func_wrap("random", |mut context: Context<'_>, (): ()| Ok((context.data_mut().random(),)))
}

pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
