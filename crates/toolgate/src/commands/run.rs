//! `toolgate run`

use std::{fs, io::Read, path::Path, process::ExitCode};

use serde_json::json;
use toolgate_host::{CodeRun, Resume, UnknownCalls};
use toolgate_sandbox::Language;

use super::runs;
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
    let code = arguments.file.as_deref().map(read).transpose()?;
    let resumed = arguments.resume.as_deref().map(runs::find).transpose()?;
    let (_, host) = super::start_when_needed(globals, &[], None, printer).await?;
    let bar = Printer::progress(0, "running");
    let options = super::interruptible(&bar, |report| {
        format!("running: {}", report.message.unwrap_or_default())
    });
    let cancel = options.cancel.clone();
    let session = host.session_of(terminal::session(&bar));
    let run = match &resumed {
        None => {
            let code = code.unwrap_or_default();
            session.run_code(&code, language(arguments), options).await.map(Ok)
        }
        Some(id) => {
            let unknown =
                if arguments.repeat_unknown { UnknownCalls::Repeat } else { UnknownCalls::Report };
            session.resume_run(id, Resume { code, unknown }, options).await
        }
    };
    bar.finish_and_clear();
    host.shutdown().await;
    let run = run.ok_or_else(|| {
        Failure::usage("scripts are switched off: codeMode.enabled is false")
            .hint("set it to true, or leave it out")
    })?;
    let run = run.map_err(|error| Failure::new(error.to_string()))?;
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
    let Some(id) = &run.id else { return Ok(()) };
    for call in &run.unknown {
        let (number, name) = (call.number, &call.name);
        printer
            .note(format!("the outcome of call {number}, {name}, is unknown; it was not repeated"));
    }
    if !run.unknown.is_empty() {
        printer.note(format!(
            "  hint: `toolgate run --resume {id} --repeat-unknown` repeats what is unknown"
        ));
    }
    for call in &run.waiting {
        let (name, approval) = (&call.name, &call.approval);
        printer.note(format!("{name} waits for approval: `toolgate approve {approval}`"));
    }
    if run.is_resumable {
        printer.note(format!(
            "  hint: `toolgate run --resume {id}` goes on without repeating what completed"
        ));
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
    let file = arguments.file.as_deref();
    let extension = file.and_then(Path::extension).and_then(|extension| extension.to_str());
    match (arguments.language, extension) {
        (Some(cli::Language::Python), _) | (None, Some("py")) => Language::Python,
        _ => Language::TypeScript,
    }
}
