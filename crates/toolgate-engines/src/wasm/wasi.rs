//! So much of WASI as languages need to start, without anything behind it that is not the host's.
//!
//! The clock and the random numbers are those of the run, the outputs are that of the script, and
//! there are no arguments, no variables, no files and no network. A function that could open
//! something returns the error for a lack of permission; others end the run.

use std::time::Duration;

use wasmtime::{
    Engine as Machine, StoreContextMut,
    component::{
        ComponentType, Lift, Linker, LinkerInstance, Lower, Resource, ResourceType, Val,
        types::{ComponentFunc, ComponentInstance, ComponentItem, Type},
    },
};

use super::host::{HostEnd, HostState, nanoseconds};
use crate::world::Stream;

/// The packages that a component may import. Most of them are empty here.
const PACKAGES: &[&str] =
    &["wasi:cli/", "wasi:clocks/", "wasi:filesystem/", "wasi:io/", "wasi:random/", "wasi:sockets/"];
/// The version of WASI, without its last part.
const VERSION: &str = "@0.2.";

/// The error cases that say that something is not allowed, in the order in which they are tried.
const NOT_ALLOWED: &[&str] = &["access-denied", "access", "not-permitted"];

/// The handles that are no timers.
const STDIN: u32 = 0;
const STDOUT: u32 = 1;
const STDERR: u32 = 2;
const READY: u32 = 3;
const FIRST_TIMER: u32 = 16;
/// The most timers at once.
const MOST_TIMERS: usize = 10_000;

/// The number of bytes that an output takes at once.
const WRITE_BYTES: u64 = 64 * 1024;
/// The most random bytes at once.
const MOST_RANDOM: u64 = 16 * 1024 * 1024;

/// Every resource of WASI: the outputs, the timers, and those that never exist.
struct Handle;

/// Why an import cannot be defined.
pub(super) enum ImportError {
    /// Scripts must not have it.
    Forbidden,
    Other(wasmtime::Error),
}

impl From<wasmtime::Error> for ImportError {
    fn from(error: wasmtime::Error) -> Self {
        Self::Other(error)
    }
}

type Context<'a> = StoreContextMut<'a, HostState>;
type Instance<'a> = LinkerInstance<'a, HostState>;
type Defined = wasmtime::Result<()>;

/// Defines an interface of WASI under the name with which a component imports it.
pub(super) fn define(
    linker: &mut Linker<HostState>,
    machine: &Machine,
    name: &str,
    kind: &ComponentInstance,
) -> Result<(), ImportError> {
    let interface = PACKAGES.iter().any(|package| name.starts_with(package));
    let interface = name.split_once(VERSION).filter(|_| interface).ok_or(ImportError::Forbidden)?.0;
    let mut instance = linker.instance(name)?;
    for (item, export) in kind.exports(machine) {
        match export.ty {
            ComponentItem::ComponentFunc(_) => refuse(&mut instance, name, item)?,
            ComponentItem::Resource(_) => {
                instance.resource(
                    item,
                    ResourceType::host::<Handle>(),
                    |mut context, handle| {
                        context.data_mut().timers.remove(&handle);
                        Ok(())
                    },
                )?;
            }
            _ => {}
        }
    }
    match interface {
        "wasi:cli/environment" => environment(&mut instance),
        "wasi:cli/exit" => exit(&mut instance),
        "wasi:cli/stdin" => standard(&mut instance, "get-stdin", STDIN),
        "wasi:cli/stdout" => standard(&mut instance, "get-stdout", STDOUT),
        "wasi:cli/stderr" => standard(&mut instance, "get-stderr", STDERR),
        "wasi:cli/terminal-stdin" => no_terminal(&mut instance, "get-terminal-stdin"),
        "wasi:cli/terminal-stdout" => no_terminal(&mut instance, "get-terminal-stdout"),
        "wasi:cli/terminal-stderr" => no_terminal(&mut instance, "get-terminal-stderr"),
        "wasi:clocks/monotonic-clock" => monotonic_clock(&mut instance),
        "wasi:clocks/wall-clock" => wall_clock(&mut instance),
        "wasi:filesystem/preopens" => no_folders(&mut instance),
        "wasi:io/poll" => poll(&mut instance),
        "wasi:io/streams" => streams(&mut instance),
        "wasi:random/random" => random(&mut instance, "get-random"),
        "wasi:random/insecure" => random(&mut instance, "get-insecure-random"),
        "wasi:random/insecure-seed" => insecure_seed(&mut instance),
        "wasi:sockets/instance-network" => standard(&mut instance, "instance-network", READY),
        _ => Ok(()),
    }?;
    Ok(())
}

/// Defines a function that does nothing: it returns an error if it can, and else ends the run.
fn refuse(instance: &mut Instance<'_>, interface: &str, function: &str) -> Defined {
    let name = format!("{interface}#{function}");
    instance.func_new(function, move |_, kind, _, results| {
        let (Some(error), Some(result)) = (error_of(&kind), results.first_mut()) else {
            return Err(HostEnd::Absent(name.clone()).into());
        };
        *result = Val::Result(Err(Some(Box::new(Val::Enum(error)))));
        Ok(())
    })
}

/// The error that says that something is not allowed, if the function has one.
fn error_of(function: &ComponentFunc) -> Option<String> {
    let Type::Result(result) = function.results().next()? else { return None };
    let Type::Enum(errors) = result.err()? else { return None };
    let has = |name: &&&str| errors.names().any(|error| error == **name);
    NOT_ALLOWED.iter().find(has).map(|name| (*name).to_owned())
}

fn environment(instance: &mut Instance<'_>) -> Defined {
    instance.func_wrap("get-environment", |_: Context<'_>, (): ()| {
        Ok((Vec::<(String, String)>::new(),))
    })?;
    instance.func_wrap("get-arguments", |_: Context<'_>, (): ()| Ok((Vec::<String>::new(),)))?;
    instance.func_wrap("initial-cwd", |_: Context<'_>, (): ()| Ok((None::<String>,)))
}

fn exit(instance: &mut Instance<'_>) -> Defined {
    instance.func_wrap("exit", |_: Context<'_>, (status,): (Result<(), ()>,)| {
        Err::<(), _>(HostEnd::Exit(u8::from(status.is_err())).into())
    })?;
    instance.func_wrap("exit-with-code", |_: Context<'_>, (code,): (u8,)| {
        Err::<(), _>(HostEnd::Exit(code).into())
    })
}

/// A function that returns one handle.
fn standard(instance: &mut Instance<'_>, name: &str, handle: u32) -> Defined {
    instance
        .func_wrap(name, move |_: Context<'_>, (): ()| Ok((Resource::<Handle>::new_own(handle),)))
}

fn no_terminal(instance: &mut Instance<'_>, name: &str) -> Defined {
    instance.func_wrap(name, |_: Context<'_>, (): ()| Ok((None::<Resource<Handle>>,)))
}

fn no_folders(instance: &mut Instance<'_>) -> Defined {
    instance.func_wrap("get-directories", |_: Context<'_>, (): ()| {
        Ok((Vec::<(Resource<Handle>, String)>::new(),))
    })
}

fn monotonic_clock(instance: &mut Instance<'_>) -> Defined {
    instance.func_wrap("now", |mut context: Context<'_>, (): ()| {
        Ok((nanoseconds(context.data_mut().now()?),))
    })?;
    instance.func_wrap("resolution", |_: Context<'_>, (): ()| Ok((1_000_u64,)))?;
    instance.func_wrap("subscribe-instant", |mut context: Context<'_>, (at,): (u64,)| {
        Ok((timer(context.data_mut(), Duration::from_nanos(at))?,))
    })?;
    instance.func_wrap("subscribe-duration", |mut context: Context<'_>, (after,): (u64,)| {
        let state = context.data_mut();
        let at = state.now()?.saturating_add(Duration::from_nanos(after));
        Ok((timer(state, at)?,))
    })
}

fn timer(state: &mut HostState, at: Duration) -> Result<Resource<Handle>, HostEnd> {
    if state.timers.len() >= MOST_TIMERS {
        return Err(HostEnd::Memory);
    }
    let handle = (FIRST_TIMER..=u32::MAX).find(|handle| !state.timers.contains_key(handle));
    let handle = handle.ok_or(HostEnd::Memory)?;
    state.timers.insert(handle, at);
    Ok(Resource::new_own(handle))
}

#[derive(Debug, ComponentType, Lift, Lower)]
#[component(record)]
struct DateTime {
    seconds: u64,
    nanoseconds: u32,
}

fn wall_clock(instance: &mut Instance<'_>) -> Defined {
    instance.func_wrap("now", |mut context: Context<'_>, (): ()| {
        let now = context.data_mut().now()?;
        Ok((DateTime { seconds: now.as_secs(), nanoseconds: now.subsec_nanos() },))
    })?;
    instance.func_wrap("resolution", |_: Context<'_>, (): ()| {
        Ok((DateTime { seconds: 0, nanoseconds: 1_000 },))
    })
}

/// When a handle is ready; `None` if it is ready at all times.
fn due(state: &HostState, handle: &Resource<Handle>) -> Option<Duration> {
    state.timers.get(&handle.rep()).copied()
}

fn poll(instance: &mut Instance<'_>) -> Defined {
    type One = (Resource<Handle>,);
    instance.func_wrap("[method]pollable.ready", |mut context: Context<'_>, (one,): One| {
        let state = context.data_mut();
        let now = state.now()?;
        Ok((due(state, &one).is_none_or(|at| at <= now),))
    })?;
    instance.func_wrap("[method]pollable.block", |mut context: Context<'_>, (one,): One| {
        let state = context.data_mut();
        if let Some(at) = due(state, &one) {
            state.sleep(at)?;
        }
        Ok(())
    })?;
    instance.func_wrap("poll", |mut context: Context<'_>, (all,): (Vec<Resource<Handle>>,)| {
        let state = context.data_mut();
        let first = all.iter().map(|one| due(state, one).unwrap_or_default()).min();
        let first = first.ok_or(HostEnd::Stalled)?;
        state.sleep(first)?;
        let ready = (0_u32..).zip(&all);
        let ready = ready.filter(|(_, one)| due(state, one).is_none_or(|at| at <= first));
        Ok((ready.map(|(index, _)| index).collect::<Vec<u32>>(),))
    })
}

#[derive(ComponentType, Lift, Lower)]
#[component(variant)]
enum StreamError {
    #[component(name = "last-operation-failed")]
    Failed(Resource<Handle>),
    #[component(name = "closed")]
    Closed,
}

fn streams(instance: &mut Instance<'_>) -> Defined {
    type One = (Resource<Handle>,);
    type Length = (Resource<Handle>, u64);
    type Bytes = (Resource<Handle>, Vec<u8>);
    type Done = Result<(), StreamError>;
    for name in ["read", "blocking-read"] {
        let name = format!("[method]input-stream.{name}");
        instance.func_wrap(&name, |_: Context<'_>, _: Length| {
            Ok((Err::<Vec<u8>, _>(StreamError::Closed),))
        })?;
    }
    for name in ["skip", "blocking-skip"] {
        let name = format!("[method]input-stream.{name}");
        instance.func_wrap(&name, |_: Context<'_>, _: Length| {
            Ok((Err::<u64, _>(StreamError::Closed),))
        })?;
    }
    for kind in ["input", "output"] {
        let name = format!("[method]{kind}-stream.subscribe");
        instance
            .func_wrap(&name, |_: Context<'_>, _: One| Ok((Resource::<Handle>::new_own(READY),)))?;
    }
    instance.func_wrap("[method]output-stream.check-write", |_: Context<'_>, _: One| {
        Ok((Ok::<_, StreamError>(WRITE_BYTES),))
    })?;
    for name in ["write", "blocking-write-and-flush"] {
        let name = format!("[method]output-stream.{name}");
        instance.func_wrap(&name, |mut context: Context<'_>, (stream, bytes): Bytes| {
            let kind = if stream.rep() == STDERR { Stream::Error } else { Stream::Output };
            context.data_mut().write(kind, &bytes);
            Ok((Done::Ok(()),))
        })?;
    }
    for name in ["flush", "blocking-flush"] {
        let name = format!("[method]output-stream.{name}");
        instance.func_wrap(&name, |_: Context<'_>, _: One| Ok((Done::Ok(()),)))?;
    }
    Ok(())
}

fn random(instance: &mut Instance<'_>, prefix: &str) -> Defined {
    let bytes = format!("{prefix}-bytes");
    instance.func_wrap(&bytes, |mut context: Context<'_>, (length,): (u64,)| {
        if length > MOST_RANDOM {
            return Err(HostEnd::Memory.into());
        }
        let length = usize::try_from(length).unwrap_or_default();
        let state = context.data_mut();
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend_from_slice(&state.random().to_le_bytes());
        }
        bytes.truncate(length);
        Ok((bytes,))
    })?;
    let number = format!("{prefix}-u64");
    instance
        .func_wrap(&number, |mut context: Context<'_>, (): ()| Ok((context.data_mut().random(),)))
}

fn insecure_seed(instance: &mut Instance<'_>) -> Defined {
    instance.func_wrap("insecure-seed", |mut context: Context<'_>, (): ()| {
        let state = context.data_mut();
        Ok(((state.random(), state.random()),))
    })
}
