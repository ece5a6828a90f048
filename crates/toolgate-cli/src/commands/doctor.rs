//! `toolgate doctor`

use std::process::ExitCode;

use serde_json::{Value, json};
use toolgate_host::{HostSettings, ToolHost};
use toolgate_sandbox::lockdown::MeasureState;

use crate::{
    cli::Output,
    failure::{CommandResult, Failure},
    load, print,
};

/// Starts a worker of the sandbox and shows what confines it. Needs no configuration.
pub(crate) async fn run(output: Output) -> CommandResult {
    let mut settings = HostSettings::new(Vec::new());
    settings.code = load::code();
    let host = ToolHost::start(settings);
    let lockdown = host.code().lockdown().await;
    host.shutdown().await;
    let report = match lockdown {
        Some(Ok(report)) => report,
        Some(Err(problem)) => {
            return Err(Failure::new(format!(
                "no worker of the sandbox could be started: {problem}"
            ))
            .hint("scripts cannot run; call_tool and everything else can"));
        }
        None => return Err(Failure::new("the program cannot find itself")),
    };
    let lacking = report.lacking();
    if output.json {
        let rows: Vec<Value> = report
            .measures
            .iter()
            .map(|measure| {
                let (in_force, detail) = match &measure.state {
                    MeasureState::InForce(detail) => (true, detail),
                    MeasureState::Missing(why) => (false, why),
                };
                let what = measure.kind.to_string();
                json!({ "measure": what, "inForce": in_force, "detail": detail })
            })
            .collect();
        print::json(&json!({ "sandbox": rows, "scriptsRun": lacking.is_none() }))?;
    } else {
        print::line("What confines scripts here:");
        for measure in &report.measures {
            print::line(format!("  {measure}"));
        }
    }
    if let Some(measure) = lacking {
        return Err(Failure::new(format!("scripts do not run here: {measure}"))
            .hint("call_tool and everything else work without it"));
    }
    Ok(ExitCode::SUCCESS)
}
