//! Checks a script without running it.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use toolgate_sandbox::{
    CallResponse, CheckFinding, CheckSeverity, EngineCall, LookupResult, RunLimits, RunOutcome,
    RunReport, SandboxScript, ScriptLanguage, ToolException, Tools,
};

use super::{script_tools::described, shapes::LearnedShapes};
use crate::session::ToolSession;

/// What the check says of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckedScript {
    /// What was found, in the order of the lines.
    pub findings: Vec<CheckFinding>,
    /// Why the check has no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A check takes milliseconds. These are for a script that is made to take long.
const CPU: Duration = Duration::from_secs(2);
const WALL: Duration = Duration::from_secs(10);

impl CheckedScript {
    /// Whether `run_code` would run the script.
    pub fn can_run(&self) -> bool {
        let is_error = |finding: &CheckFinding| finding.severity == CheckSeverity::Error;
        self.problem.is_none() && !self.findings.iter().any(is_error)
    }

    fn of(report: RunReport) -> Self {
        let mut findings = report.warnings;
        let problem = match report.outcome {
            RunOutcome::Value(_) => None,
            RunOutcome::Rejected(found) => {
                findings.extend(found);
                None
            }
            RunOutcome::Stopped(limit) => Some(format!("The check was stopped: {limit}.")),
            RunOutcome::Crashed(why) => Some(format!("The check did not end: {why}.")),
            _ => Some("The check did not end.".to_owned()),
        };
        findings.sort_by_key(|finding| (finding.line, finding.column));
        Self { findings, problem }
    }

    fn without(problem: &str) -> Self {
        Self { findings: Vec::new(), problem: Some(problem.to_owned()) }
    }
}

impl ToolSession {
    /// Checks a script as `run_code` does, in a worker, and does not run it; `None` if scripts are off.
    pub async fn check_code(
        &self,
        code: &str,
        language: impl Into<ScriptLanguage>,
        cancel: CancellationToken,
    ) -> Option<CheckedScript> {
        let mode = self.host().code();
        let settings = mode.settings()?;
        let language = language.into();
        if matches!(language, ScriptLanguage::Component(_)) {
            let nobody = "Scripts of this language are not checked before they run.";
            return Some(CheckedScript::without(nobody));
        }
        self.host().first_lists().await;
        let limits = RunLimits {
            cpu: settings.limits.cpu.min(CPU),
            wall: settings.limits.wall.min(WALL),
            ..settings.limits.clone()
        };
        let session = Self::within(self.host().clone(), Arc::clone(self.context()));
        let tools = Arc::new(CheckedTools(Arc::new(session), Arc::clone(&mode.shapes)));
        let script = SandboxScript::new(code, language);
        Some(CheckedScript::of(mode.pool(&settings).check(script, &limits, tools, cancel).await))
    }
}

/// The tools of a session, for a script that calls none.
struct CheckedTools(Arc<ToolSession>, Arc<LearnedShapes>);

impl Tools for CheckedTools {
    fn describe(&self, names: Vec<String>) -> BoxFuture<'static, Vec<LookupResult>> {
        let (session, shapes) = (Arc::clone(&self.0), Arc::clone(&self.1));
        async move { described(&session, &shapes, names).await }.boxed()
    }

    fn call(&self, call: EngineCall, _: CancellationToken) -> BoxFuture<'static, CallResponse> {
        // The host lets no call of a check through, so this is not reached.
        let thrown = ToolException::new(&*call.name, "the script is only checked");
        async move { CallResponse::Ended(Err(thrown)) }.boxed()
    }
}
