//! Components: how they are compiled, and how a zygote loads one.
//!
//! A component has a zygote of its own. It loads the machine code before it gives up the right to
//! make memory executable, makes an instance of it after that, and forks a worker for each run.

use std::ffi::OsString;

#[cfg(feature = "engine-wasm")]
use toolgate_engines::wasm::LoadedComponent;
#[cfg(feature = "engine-wasm")]
pub use toolgate_engines::wasm::{ComponentError, compile as compile_component};

#[cfg(feature = "engine-wasm")]
use crate::system::machine_code;
use crate::{language::ComponentProgram, pool::WorkerProgram};

/// This program cannot run components.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this program was built without components: build it with `cargo build --release --features \
     engine-wasm`"
)]
pub struct NoComponents;

/// Whether this program can run components; `Err` says how to build one that can.
pub fn runs_components() -> Result<(), NoComponents> {
    if cfg!(feature = "engine-wasm") { Ok(()) } else { Err(NoComponents) }
}

/// The variables that make a zygote load a component: its file, and the hash of the file.
const FILE: &str = "TOOLGATE_COMPONENT";
const HASH: &str = "TOOLGATE_COMPONENT_HASH";

/// The zygote of a component: that of this program, with variables.
pub(crate) fn worker_program(own: &WorkerProgram, component: &ComponentProgram) -> WorkerProgram {
    let mut program = own.clone();
    let file = component.file.clone().into_os_string();
    let variables = [(FILE, file), (HASH, OsString::from(&component.hash))];
    program.variables.extend(variables.map(|(name, value)| (OsString::from(name), value)));
    program
}

/// What a zygote has loaded: nothing, if it has the engines that are built in.
#[cfg(feature = "engine-wasm")]
pub(crate) fn load() -> Option<Result<LoadedComponent, String>> {
    let file = std::env::var_os(FILE)?;
    Some(std::env::var(HASH).map_err(|error| error.to_string()).and_then(|hash| {
        let compiled = std::fs::read(file).map_err(|error| format!("cannot read it: {error}"))?;
        if blake3::hash(&compiled).to_hex().as_str() != hash {
            return Err("its file is not the one that was added; add the component again".into());
        }
        machine_code::load(&compiled).map_err(|error| error.to_string())
    }))
}
