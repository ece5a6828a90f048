//! The JavaScript engine, based on QuickJS.
//!
//! A script is the body of an async function: `await` and `return` work at its top level. Tools are
//! global functions that take one object and return a promise. `tools.any_name` calls a tool that
//! is not among the script's functions, and so does `tools.server.tool`.
//!
//! Rust code controls calls, timers and the end of a run ([`host`], [`driver`]). The files in
//! `prelude/` provide what scripts expect of a JavaScript host. They keep their own copies of the
//! built-ins that they use, so that a script that changes prototypes harms only itself.

mod bytes;
mod callee;
mod driver;
mod failure;
mod globals;
mod host;
mod json;
mod marks;
mod prelude;
mod results;
#[cfg(test)]
mod tests;
mod timers;

use std::{mem::ManuallyDrop, rc::Rc};

use rquickjs::{Context, Runtime};

pub use self::globals::{ABSENT, Absent, Form, GLOBALS, MODULES};
use self::host::Host;
use crate::{
    engine::{Engine, EngineLimits, EngineOutcome, EngineScript},
    world::World,
};

/// QuickJS with everything loaded that does not depend on the script.
pub struct JavaScript {
    host: Rc<Host>,
    context: Context,
    runtime: Runtime,
}

/// The engine did not start.
#[derive(Debug, thiserror::Error)]
#[error("the JavaScript engine did not start: {0}")]
pub struct EngineStartError(String);

impl JavaScript {
    /// Makes an engine that waits for its script.
    pub fn new() -> Result<Self, EngineStartError> {
        let failed = |error: rquickjs::Error| EngineStartError(error.to_string());
        let runtime = Runtime::new().map_err(failed)?;
        let context = Context::full(&runtime).map_err(failed)?;
        let host = Rc::new(Host::default());
        // From here on `Drop` cleans up.
        let engine = Self { host, context, runtime };
        engine.host.attach(&engine.runtime);
        engine
            .context
            .with(|ctx| {
                prelude::install(&ctx, &engine.host).map_err(|error| match error {
                    rquickjs::Error::Exception => format!("{:?}", ctx.catch()),
                    other => other.to_string(),
                })
            })
            .map_err(EngineStartError)?;
        Ok(engine)
    }
}

impl JavaScript {
    /// Compiles the parts of the prelude that most scripts use. Call it only while no script waits.
    pub fn warm(&self) {
        // A part that fails to compile now fails again when it is used.
        let _ = self.context.with(|ctx| prelude::warm(&ctx, &self.host));
    }
}

impl Engine for JavaScript {
    fn run(
        self: Box<Self>,
        script: &EngineScript<'_>,
        limits: &EngineLimits,
        world: &mut dyn World,
    ) -> EngineOutcome {
        let engine = ManuallyDrop::new(self);
        let Self { host, context, runtime } = &**engine;
        host::lend(world, || driver::run(runtime, context, host, script, limits))
    }
}

impl Drop for JavaScript {
    fn drop(&mut self) {
        // The runtime ends the process if values outlive it, and the host owns some.
        self.context.with(|_| self.host.clear());
    }
}

impl std::fmt::Debug for JavaScript {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("JavaScript").finish_non_exhaustive()
    }
}
