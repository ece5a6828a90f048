//! `toolgate run`

use std::{fs, io::Read, path::Path, process::ExitCode};

use serde_json::json;
use toolgate_host::CodeRun;
use toolgate_sandbox::Language;

use crate::{
    cli::{self, Globals, Run},
    failure::Failure,
    printer::Printer,
    terminal,
};

pub(crate) async fn run(
    globals: &Globals,
    arguments: &Run,
    printer: &mut Printer,
) -> Result<ExitCode, Failure> {
    let code = read(&arguments.file)?;
    let (_, host) = super::start_when_needed(globals, &[], None, printer).await?;
    let bar = Printer::progress(0, "running");
    let options = super::interruptible(&bar, |report| {
        format!("running: {}", report.message.unwrap_or_default())
    });
    let cancel = options.cancel.clone();
    let run =
        host.session_of(terminal::session()).run_code(&code, language(arguments), options).await;
    bar.finish_and_clear();
    host.shutdown().await;
    let run = run.ok_or_else(|| {
        Failure::usage("scripts are switched off: codeMode.enabled is false")
            .hint("set it to true, or leave it out")
    })?;
    show(&run, arguments.output.json, printer)?;
    Ok(match run.is_error {
        false => ExitCode::SUCCESS,
        true if cancel.is_cancelled() => ExitCode::from(super::INTERRUPTED),
        true => ExitCode::FAILURE,
    })
}

fn show(run: &CodeRun, as_json: bool, printer: &mut Printer) -> Result<(), Failure> {
    if as_json {
        return printer.json(&json!({
            "value": run.value,
            "output": run.output,
            "error": run.is_error.then_some(&run.closing),
            "content": run.content,
            "run": run.figures(),
        }));
    }
    // In a shell nothing is cut: there is no context to save.
    if !run.output.is_empty() {
        printer.line(run.output.trim_end_matches('\n'));
    }
    if let Some(value) = &run.value_text {
        printer.line(value);
    }
    for block in &run.content {
        printer.line(super::block_text(block));
    }
    if run.is_error {
        printer.note(format!("error: {}", run.closing));
    } else if run.output.is_empty() && run.value_text.is_none() && run.content.is_empty() {
        printer.note(&run.closing);
    }
    Ok(())
}

fn read(file: &Path) -> Result<String, Failure> {
    let text = if file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(file)
    };
    text.map_err(|error| {
        Failure::usage(format!("cannot read {}: {error}", file.display()))
            .hint("name a script, or `-` to read it from stdin")
    })
}

fn language(arguments: &Run) -> Language {
    let extension = arguments.file.extension().and_then(|extension| extension.to_str());
    match (arguments.language, extension) {
        (Some(cli::Language::Python), _) | (None, Some("py")) => Language::Python,
        _ => Language::TypeScript,
    }
}
