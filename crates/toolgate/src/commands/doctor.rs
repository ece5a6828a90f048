//! `toolgate doctor`

use std::process::ExitCode;

use serde_json::json;
use toolgate_config::CodeMode;
use toolgate_host::{Host, HostSettings};

use crate::{cli::Doctor, failure::Failure, load, printer::Printer};

/// Starts a worker of the sandbox and tells what holds it. Needs no configuration.
pub(crate) async fn run(arguments: &Doctor, printer: &mut Printer) -> Result<ExitCode, Failure> {
    let mut settings = HostSettings::new(Vec::new());
    settings.code = load::code(&CodeMode::default());
    let host = Host::start(settings);
    let lockdown = host.lockdown().await;
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
    let missing = report.missing();
    if arguments.output.json {
        printer.json(&json!({ "sandbox": report, "holds": missing.is_empty() }))?;
    } else {
        printer.line("What confines scripts here:");
        printer.line(&report);
        if !missing.is_empty() {
            printer.note("warning: scripts are less confined than they could be");
        }
    }
    Ok(ExitCode::SUCCESS)
}
