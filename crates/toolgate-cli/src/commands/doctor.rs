//! `toolgate doctor`

use std::process::ExitCode;

use serde_json::{Value, json};
use toolgate_host::SandboxUnavailable;
use toolgate_sandbox::{
    Language,
    lockdown::{LockdownReport, MeasureState},
};

use super::engines;
use crate::{
    cli::{Globals, Output},
    failure::{CommandResult, Failure},
    print,
};

/// Starts a worker of each engine, and shows what confines it. Needs no configuration.
pub(crate) async fn run(globals: &Globals, output: Output) -> CommandResult {
    let settings = engines::settings(globals)?;
    let host = engines::started(settings.clone());
    let scripts = host.code().lockdown(Language::TypeScript).await;
    let engines = engines::engines(&host, &settings).await;
    let python = host.code().lockdown(Language::Python).await;
    host.shutdown().await;
    let (report, python) = (of(scripts)?, of(python)?);
    let lacking = report.lacking().or(python.lacking());
    if output.json {
        print::json(&json!({
            "sandbox": rows(&report),
            "pythonSandbox": rows(&python),
            "engines": engines,
            "scriptsRun": lacking.is_none(),
        }))?;
    } else {
        print::line("What runs scripts here:");
        engines.iter().for_each(engines::Engine::print);
        print::line("What confines scripts here:");
        for measure in &report.measures {
            print::line(format!("  {measure}"));
        }
        let others = || python.measures.iter().filter(|other| !report.measures.contains(other));
        if others().next().is_some() {
            print::line("What confines Python scripts otherwise:");
            for measure in others() {
                print::line(format!("  {measure}"));
            }
        }
    }
    if let Some(measure) = lacking {
        return Err(Failure::new(format!("scripts do not run here: {measure}"))
            .hint("call_tool and everything else work without it"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The report of a worker that was started.
fn of(
    lockdown: Option<Result<LockdownReport, SandboxUnavailable>>,
) -> Result<LockdownReport, Failure> {
    match lockdown {
        Some(Ok(report)) => Ok(report),
        Some(Err(problem)) => {
            let message = format!("no worker of the sandbox could be started: {problem}");
            Err(Failure::new(message).hint("scripts cannot run; call_tool and everything else can"))
        }
        None => Err(Failure::new("scripts are switched off")),
    }
}

fn rows(report: &LockdownReport) -> Vec<Value> {
    let row = |measure: &toolgate_sandbox::lockdown::Measure| {
        let (in_force, detail) = match &measure.state {
            MeasureState::InForce(detail) => (true, detail),
            MeasureState::Missing(why) => (false, why),
        };
        let what = measure.kind.to_string();
        json!({ "measure": what, "inForce": in_force, "detail": detail })
    };
    report.measures.iter().map(row).collect()
}
