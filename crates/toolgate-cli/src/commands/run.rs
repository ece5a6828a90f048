//! `toolgate run`

use std::{path::Path, process::ExitCode};

use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolgate_broker::{Caller, SessionContext};
use toolgate_host::{CodeRun, Resume, ToolHost, UnknownCalls};
use toolgate_sandbox::{Language, ScriptLanguage};

use super::runs;
use crate::{
    cli::{Globals, Run},
    failure::{CommandResult, Failure},
    print, terminal,
};

pub(crate) async fn run(globals: &Globals, arguments: &Run) -> CommandResult {
    let language = language(arguments)?;
    let code = arguments.file.as_deref().map(read_script).transpose()?;
    let resumed = arguments.resume.as_deref().map(runs::find).transpose()?;
    if let (Some(id), true) = (&resumed, arguments.repeat_unknown) {
        runs::agree_to_repeat(globals, id)?;
    }
    let needed = super::Needed::Script(code.as_deref().unwrap_or_default());
    let (loaded, host) = super::start_when_needed(globals, needed, None).await?;
    let language = match &arguments.language {
        None => ScriptLanguage::BuiltIn(language),
        Some(name) => host.code().language(name).ok_or_else(|| unknown(name))?,
    };
    if arguments.check {
        return check(&host, &code.unwrap_or_default(), language, arguments.output.json).await;
    }
    let bar = print::progress(0, "running");
    let options = super::interruptible(&bar, |report| {
        format!("running: {}", report.message().unwrap_or_default())
    });
    let cancel = options.cancel.clone();
    let session = host.session_of(terminal::session(&bar, loaded.presence_or_strictest()));
    let run = match &resumed {
        None => {
            let code = code.unwrap_or_default();
            session.run_code(&code, language, options).await.map(Ok)
        }
        Some(id) => {
            let unknown =
                if arguments.repeat_unknown { UnknownCalls::Repeat } else { UnknownCalls::Report };
            session.resume_run(id, Resume { code, unknown }, options).await
        }
    };
    bar.finish_and_clear();
    host.shutdown().await;
    let run = run.ok_or_else(switched_off)?;
    let run = run.map_err(|error| Failure::new(error.to_string()))?;
    show(&run, arguments.output.json)?;
    Ok(match run.is_error {
        false => ExitCode::SUCCESS,
        true if cancel.is_cancelled() => ExitCode::from(super::INTERRUPTED),
        true => ExitCode::FAILURE,
    })
}

/// Shows what the check says of a script. Nothing is run.
async fn check(
    host: &ToolHost,
    code: &str,
    language: ScriptLanguage,
    as_json: bool,
) -> CommandResult {
    let session = host.session_of(SessionContext::new(Caller::person()));
    let checked = session.check_code(code, language, CancellationToken::new()).await;
    drop(session);
    host.shutdown().await;
    let checked = checked.ok_or_else(switched_off)?;
    if as_json {
        print::json(&checked)?;
    } else {
        for finding in &checked.findings {
            print::line(finding);
        }
        if let Some(problem) = &checked.problem {
            print::note(format!("error: {problem}"));
        } else if checked.findings.is_empty() {
            print::note("the check found nothing wrong");
        }
    }
    Ok(if checked.can_run() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn switched_off() -> Failure {
    Failure::usage("scripts are switched off: codeMode.enabled is false")
        .hint("set it to true, or leave it out")
}

fn show(run: &CodeRun, as_json: bool) -> Result<(), Failure> {
    if as_json {
        return print::json(&json!({
            "value": run.value,
            "output": run.output,
            "error": run.is_error.then_some(&run.closing),
            "content": run.content,
            "run": run.figures(),
        }));
    }
    // In a shell nothing is cut: there is no context to save.
    if !run.output.is_empty() {
        print::line(run.output.trim_end_matches('\n'));
    }
    if let Some(value) = &run.value_text {
        print::line(value);
    }
    for block in &run.content {
        print::line(super::block_text(block));
    }
    if run.is_error {
        print::note(format!("error: {}", run.closing));
    } else if run.output.is_empty() && run.value_text.is_none() && run.content.is_empty() {
        print::note(&run.closing);
    }
    let Some(id) = &run.id else { return Ok(()) };
    for call in &run.unknown {
        let (number, name) = (call.number, &call.name);
        print::note(format!(
            "the outcome of call {number}, {name}, is unknown; it was not repeated"
        ));
    }
    if !run.unknown.is_empty() {
        print::note(format!(
            "  hint: `toolgate run --resume {id} --repeat-unknown` repeats the calls of unknown outcome"
        ));
    }
    for call in &run.waiting {
        let (name, question) = (&call.name, &call.question);
        print::note(format!(
            "{name} waits for approval, question {question}: `toolgate approve` lists it"
        ));
    }
    if run.is_resumable {
        print::note(format!(
            "  hint: `toolgate run --resume {id}` resumes the run without repeating completed calls"
        ));
    }
    Ok(())
}

fn read_script(file: &Path) -> Result<String, Failure> {
    super::read_text(file, "name a script, or `-` to read it from stdin")
}

fn unknown(language: &str) -> Failure {
    Failure::usage(format!("no engine runs the language `{language}`"))
        .hint("`toolgate engines` lists the languages")
}

/// The language that the name of the file says. A resumed run keeps its language.
fn language(arguments: &Run) -> Result<Language, Failure> {
    let file = arguments.file.as_deref();
    let extension = file.and_then(Path::extension).map(|extension| extension.to_string_lossy());
    Ok(match extension.as_deref() {
        Some("py") => Language::Python,
        None | Some("ts" | "mts" | "cts" | "js" | "mjs" | "cjs") => Language::TypeScript,
        _ if arguments.resume.is_some() || arguments.language.is_some() => Language::TypeScript,
        Some(other) => {
            return Err(Failure::usage(format!("no language is known by the ending `.{other}`"))
                .hint("say which it is: --language typescript or --language python"));
        }
    })
}
