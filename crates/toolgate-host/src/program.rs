//! Programs that a model's provider runs, whose calls come to a session.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::{Map, Value};
use toolgate_broker::{CallContext, RunContext, new_id};
use toolgate_upstream::CallOptions;

use crate::{
    host::ToolHost,
    session::{CallFailure, ToolSession},
    spans,
};

/// A program that a model wrote and its provider runs. toolgate sees only its calls, so it judges them as those of a
/// script whose text is unknown: every result may reach every argument.
///
/// Dropping it ends the grants that were given for it.
pub struct ProviderProgram {
    host: ToolHost,
    run: Arc<RunContext>,
    calls: AtomicU64,
}

impl ToolSession {
    /// A program that begins. Its id is our own, because the provider's could be that of another run.
    pub fn begin_program(&self) -> ProviderProgram {
        let run = Arc::new(RunContext::new(new_id("program"), ""));
        ProviderProgram { host: self.host().clone(), run, calls: AtomicU64::new(0) }
    }

    /// Calls a tool by its exposed name for a program. The policy judges it as a call of a script.
    pub async fn call_for_program(
        &self,
        program: &ProviderProgram,
        name: &str,
        arguments: Map<String, Value>,
        mut options: CallOptions,
    ) -> Result<Value, CallFailure> {
        self.host().notice_choices().await;
        let tool = self.host().catalog().read().resolve(name).cloned();
        let span = spans::call(self, tool.is_some().then_some(name), &mut options);
        let number = program.calls.fetch_add(1, Ordering::Relaxed);
        let context = CallContext::of_run(self.context(), &program.run, number);
        let outcome = self.call_in(&context, name, tool, arguments, options).await;
        span.end(spans::failure(&outcome));
        outcome
    }
}

impl Drop for ProviderProgram {
    fn drop(&mut self) {
        self.host.inner.broker.end_run(&self.run);
    }
}

impl fmt::Debug for ProviderProgram {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ProviderProgram").field("run", &self.run).finish_non_exhaustive()
    }
}
