//! Components: languages that are not built in, by WebAssembly.
//!
//! A component implements the world `language` of `components/wit/script.wit`. [`compile`] makes
//! machine code of it once, [`LoadedComponent::load`] maps the code, and [`LoadedComponent::start`]
//! makes the instance that runs one script. A component reaches its host through the functions of the
//! world, and has so much of WASI as languages need to start: a clock, random numbers and an output,
//! all of them the host's, and no files and no network.

mod host;
mod limiter;
#[cfg(test)]
mod tests;
mod wasi;

use wasmtime::{
    Config, Engine as Machine, Store, Trap,
    component::{Component, ComponentType, Lift, Linker, Lower, TypedFunc, types::ComponentItem},
};

use self::{
    host::{HostEnd, HostState},
    wasi::ImportError,
};
use crate::{
    engine::{
        Engine, EngineLimits, EngineOutcome, EngineScript, FailureKind, ScriptFailure,
        ScriptPosition, StackFrame,
    },
    world::World,
};

/// The interface that a component imports from its host, without the last part of its version.
const HOST: &str = "toolgate:script/host@0.1.";
/// The function that a component exports.
const RUN: &str = "run";
/// The stack of a component. The worker has at least so much, and it cannot be set for each run.
const STACK_BYTES: usize = 4 * 1024 * 1024;
/// Addresses for each memory, so that it can grow where it is. Only what is used counts.
const RESERVED_BYTES: u64 = 1 << 30;

/// Why a component cannot run scripts.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ComponentError {
    /// It is no component, or one that is not valid.
    #[error("it is no valid WebAssembly component: {0}")]
    Invalid(String),
    /// It needs what a script must not have.
    #[error("it imports `{0}`, which components for scripts do not get")]
    Forbidden(String),
    /// It does not have the world of a language.
    #[error("it is no component of the world `toolgate:script/language`: {0}")]
    OtherWorld(String),
    /// The machine code is that of another build.
    #[error("it was compiled by another version of toolgate or for another machine: {0}")]
    Stale(String),
    /// The instance cannot be made.
    #[error("it does not start: {0}")]
    Start(String),
}

/// Compiles a component, which must have the world of a language: its binary or its text. None of its
/// code runs.
pub fn compile(component: &[u8]) -> Result<Vec<u8>, ComponentError> {
    let machine = machine().map_err(|error| invalid(&error))?;
    let component = Component::new(&machine, component).map_err(|error| invalid(&error))?;
    check(&machine, &component)?;
    component.serialize().map_err(|error| invalid(&error))
}

/// A component whose machine code is in memory.
pub struct LoadedComponent {
    component: Component,
    linker: Linker<HostState>,
}

impl std::fmt::Debug for LoadedComponent {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("LoadedComponent").finish_non_exhaustive()
    }
}

impl LoadedComponent {
    /// Loads what [`compile`] returned. This makes memory executable, which a process that has given
    /// up its rights cannot do.
    ///
    /// # Safety
    ///
    /// The bytes must be what [`compile`] returned: they become the code of this process.
    #[expect(unsafe_code, reason = "nothing can check that machine code is what it should be")]
    pub unsafe fn load(compiled: &[u8]) -> Result<Self, ComponentError> {
        let machine = machine().map_err(|error| invalid(&error))?;
        // SAFETY: the caller has made sure of it.
        let component = unsafe { Component::deserialize(&machine, compiled) };
        let component = component.map_err(|error| ComponentError::Stale(error.to_string()))?;
        let linker = check(&machine, &component)?;
        Ok(Self { component, linker })
    }

    /// Makes an instance. Code of the component may run, which has no world yet.
    pub fn start(&self) -> Result<WasmEngine, ComponentError> {
        let failed = |error: wasmtime::Error| ComponentError::Start(describe(&error));
        let mut store = Store::new(self.component.engine(), HostState::default());
        store.limiter(|state| &mut state.limiter);
        let instance = self.linker.instantiate(&mut store, &self.component).map_err(failed)?;
        let run = instance.get_typed_func(&mut store, RUN).map_err(failed)?;
        Ok(WasmEngine { store, run })
    }
}

/// An instance of a component, which runs one script.
pub struct WasmEngine {
    store: Store<HostState>,
    run: TypedFunc<Arguments, Returned>,
}

impl std::fmt::Debug for WasmEngine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("WasmEngine").finish_non_exhaustive()
    }
}

type Arguments = (String, Vec<ComponentTool>);
type Returned = (Result<Option<String>, ComponentFailure>,);

#[derive(Debug, ComponentType, Lift, Lower)]
#[component(record)]
struct ComponentTool {
    name: String,
    parameters: Vec<String>,
}

#[derive(Debug, ComponentType, Lift, Lower)]
#[component(record)]
struct ComponentFailure {
    message: String,
    stack: Vec<ComponentFrame>,
}

#[derive(Debug, ComponentType, Lift, Lower)]
#[component(record)]
struct ComponentFrame {
    function: String,
    line: u32,
    column: u32,
}

impl Engine for WasmEngine {
    fn run(
        mut self: Box<Self>,
        script: &EngineScript<'_>,
        limits: &EngineLimits,
        world: &mut dyn World,
    ) -> EngineOutcome {
        let tools = script.functions.iter().map(|function| ComponentTool {
            name: function.name.clone(),
            parameters: function.parameters.clone(),
        });
        let arguments = (script.source.to_owned(), tools.collect());
        let state = self.store.data_mut();
        state.limiter.allow(limits.memory_bytes);
        state.dice = world.beginning().seed;
        let returned = host::lend(world, || self.run.call(&mut self.store, arguments));
        match returned {
            Ok((Ok(None),)) => EngineOutcome::Value(None),
            Ok((Ok(Some(value)),)) => match serde_json::value::RawValue::from_string(value) {
                Ok(value) => EngineOutcome::Value(Some(value)),
                Err(error) => {
                    failed(FailureKind::Exception, format!("the value is no JSON: {error}"))
                }
            },
            Ok((Err(failure),)) => EngineOutcome::Failed(failure_of(failure)),
            Err(error) => outcome_of(&error),
        }
    }
}

/// The settings of all components. Code that was compiled with others cannot be loaded.
fn machine() -> wasmtime::Result<Machine> {
    let mut config = Config::new();
    config
        // The worker has handlers of its own for these signals.
        .signals_based_traps(false)
        .memory_reservation(RESERVED_BYTES)
        .max_wasm_stack(STACK_BYTES)
        // Unused, and not smaller than the other one.
        .async_stack_size(STACK_BYTES)
        // An image in a file would need a descriptor, and workers have none. Forks share the memory.
        .memory_init_cow(false)
        .wasm_backtrace_max_frames(None)
        // A run that is resumed computes the same.
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true);
    Machine::new(&config)
}

/// Checks that a component has the world of a language, and returns what it imports.
fn check(machine: &Machine, component: &Component) -> Result<Linker<HostState>, ComponentError> {
    let mut linker = Linker::new(machine);
    linker.allow_shadowing(true);
    let kind = component.component_type();
    for (name, import) in kind.imports(machine) {
        let ComponentItem::ComponentInstance(instance) = import.ty else {
            return Err(ComponentError::Forbidden(name.to_owned()));
        };
        let defined = if name.starts_with(HOST) {
            host::define(&mut linker, name).map_err(ImportError::from)
        } else {
            wasi::define(&mut linker, machine, name, &instance)
        };
        defined.map_err(|error| match error {
            ImportError::Forbidden => ComponentError::Forbidden(name.to_owned()),
            ImportError::Other(error) => ComponentError::OtherWorld(error.to_string()),
        })?;
    }
    let other = |error: wasmtime::Error| ComponentError::OtherWorld(describe(&error));
    linker.instantiate_pre(component).map_err(other)?;
    let missing = || ComponentError::OtherWorld(format!("it does not export the function `{RUN}`"));
    let run = kind.get_export(machine, RUN).ok_or_else(missing)?;
    let ComponentItem::ComponentFunc(run) = run.ty else { return Err(missing()) };
    run.typecheck::<Arguments, Returned>(&kind.instance_type()).map_err(|error| {
        ComponentError::OtherWorld(format!("its `{RUN}` has another type: {}", describe(&error)))
    })?;
    Ok(linker)
}

fn invalid(error: &wasmtime::Error) -> ComponentError {
    ComponentError::Invalid(describe(error))
}

/// The messages of an error and of its causes, in one line.
fn describe(error: &wasmtime::Error) -> String {
    let messages: Vec<String> = error.chain().map(ToString::to_string).collect();
    let words: Vec<&str> = messages.iter().flat_map(|message| message.split_whitespace()).collect();
    let text = messages.join(": ");
    if text.contains('\n') { words.join(" ") } else { text }
}

fn failed(kind: FailureKind, message: impl Into<String>) -> EngineOutcome {
    EngineOutcome::Failed(ScriptFailure::new(kind, message))
}

fn failure_of(failure: ComponentFailure) -> ScriptFailure {
    let frames = failure.stack.into_iter();
    let stack = frames.map(|ComponentFrame { function, line, column }| StackFrame {
        function,
        position: ScriptPosition { line, column },
    });
    let mut described = ScriptFailure::new(FailureKind::Exception, failure.message);
    described.stack = stack.collect();
    described
}

/// The outcome of a component that did not return.
fn outcome_of(error: &wasmtime::Error) -> EngineOutcome {
    match error.downcast_ref::<HostEnd>() {
        Some(HostEnd::Exit(0)) => return EngineOutcome::Value(None),
        Some(HostEnd::Closed) => {
            return failed(FailureKind::Abandoned, HostEnd::Closed.to_string());
        }
        Some(HostEnd::Stalled) => {
            return failed(FailureKind::Stalled, HostEnd::Stalled.to_string());
        }
        Some(HostEnd::Memory) => return failed(FailureKind::Memory, HostEnd::Memory.to_string()),
        Some(end @ (HostEnd::Exit(_) | HostEnd::Absent(_))) => {
            return failed(FailureKind::Exception, end.to_string());
        }
        None => {}
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => {
            failed(FailureKind::Stack, "the stack of the component is full")
        }
        _ => failed(FailureKind::Exception, format!("the component failed: {}", describe(error))),
    }
}
