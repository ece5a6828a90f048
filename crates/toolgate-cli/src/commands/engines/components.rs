//! `toolgate engines add`, `toolgate engines remove`, and what they have added.

use std::{path::Path, process::ExitCode};

use serde_json::json;
use toolgate_host::ToolHost;
use toolgate_sandbox::ComponentProgram;
use toolgate_store::{ComponentRecord, Store, is_language_name};

use super::Engine;
use crate::{
    cli::AddEngine,
    failure::{CommandResult, Failure},
    load, print,
};

/// The longest hint.
const LONGEST_HINT: usize = 300;
/// The largest file.
const LARGEST_FILE: u64 = 256 * 1024 * 1024;

/// Checks and compiles a component, starts it once, and adds it.
pub(super) async fn add(arguments: &AddEngine) -> CommandResult {
    toolgate_sandbox::runs_components().map_err(|error| Failure::new(error.to_string()))?;
    let AddEngine { file, language, hint, output } = arguments;
    check_name(language)?;
    let store = load::required_store()?;
    let hint = hint.as_deref().map(checked_hint).transpose()?;
    let component = read(file)?;
    print::note(format!("compiling {} ({} KB) …", file.display(), component.len() / 1_024));
    let code = compile(file, &component)?;
    let record = ComponentRecord {
        language: language.clone(),
        hint,
        source: file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        source_hash: blake3::hash(&component).to_hex().to_string(),
        hash: blake3::hash(&code).to_hex().to_string(),
        bytes: code.len() as u64,
    };
    let folder = store.components();
    let earlier = folder.get(language);
    folder.write_code(&record, &code)?;
    let Some(settings) = load::code() else {
        return Err(Failure::new("the program cannot find itself"));
    };
    let host = super::started(settings);
    let started = host.code().lockdown(program(&store, &record)).await;
    host.shutdown().await;
    if let Some(Err(error)) = started {
        folder.remove_code(&record);
        return Err(Failure::new(format!("{} was not added: {error}", file.display())));
    }
    folder.add(&record)?;
    if output.json {
        print::json(&json!({ "added": record, "replaced": earlier.is_some() }))?;
    } else {
        let verb = if earlier.is_some() { "replaced" } else { "added" };
        print::line(format!(
            "{language}: {verb}, {} KB of machine code. It has started once.",
            record.bytes / 1_024
        ));
        print::line(format!("  scripts use it with `language: \"{language}\"` of run_code"));
        print::line(format!("  `toolgate run FILE --language {language}` runs one from the shell"));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn remove(language: &str) -> CommandResult {
    let folder = load::required_store()?.components();
    if !folder.remove(language)? {
        let known = folder.list();
        let known = known.iter().map(|record| record.language.as_str());
        return Err(Failure::usage(format!("no component runs the language `{language}`"))
            .meaning(language, known));
    }
    print::line(format!("{language} is removed."));
    Ok(ExitCode::SUCCESS)
}

/// The engines that were added. Each of them is started.
pub(super) async fn added(host: &ToolHost) -> Vec<Engine> {
    let Some(store) = load::store() else { return Vec::new() };
    let mut engines = Vec::new();
    for record in store.components().list() {
        let started = host.code().lockdown(program(&store, &record)).await;
        let problem = match started {
            Some(Ok(_)) | None => None,
            Some(Err(error)) => Some(format!("it cannot run scripts: {error}")),
        };
        let runs = problem.is_none();
        engines.push(Engine {
            language: record.language.clone(),
            name: format!("WebAssembly component {}", record.source),
            program: None,
            packages: Vec::new(),
            why: problem.unwrap_or_else(|| "added by `toolgate engines add`".to_owned()),
            runs,
        });
    }
    engines
}

fn program(store: &Store, record: &ComponentRecord) -> ComponentProgram {
    let file = store.components().file(record);
    ComponentProgram { language: record.language.clone(), file, hash: record.hash.clone() }
}

fn check_name(language: &str) -> Result<(), Failure> {
    if toolgate_host::built_in_language(language).is_some() {
        return Err(Failure::usage(format!("`{language}` is built in"))
            .hint(format!("choose another name: --language {language}-wasm")));
    }
    if is_language_name(language) {
        return Ok(());
    }
    Err(Failure::usage(format!("no language can be named `{language}`"))
        .hint("use up to 32 of a-z, 0-9, - and _, and begin with a letter"))
}

/// The hint in one line.
fn checked_hint(hint: &str) -> Result<String, Failure> {
    let hint = hint.trim();
    if hint.len() > LONGEST_HINT || hint.chars().any(char::is_control) {
        return Err(Failure::usage(format!(
            "the hint is one line of at most {LONGEST_HINT} bytes: models pay for it in every session"
        )));
    }
    Ok(hint.to_owned())
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: std::io::Error| {
        Failure::usage(format!("cannot read {}: {error}", file.display()))
            .hint("name the file of a WebAssembly component; docs/code-mode/wasm.md says how to build one")
    };
    let length = std::fs::metadata(file).map_err(failed)?.len();
    if length > LARGEST_FILE {
        return Err(Failure::usage(format!("{} is larger than 256 MB", file.display())));
    }
    std::fs::read(file).map_err(failed)
}

#[cfg(feature = "engine-wasm")]
fn compile(file: &Path, component: &[u8]) -> Result<Vec<u8>, Failure> {
    toolgate_sandbox::compile_component(component).map_err(|error| {
        Failure::usage(format!("{} cannot run scripts: {error}", file.display()))
            .hint("docs/code-mode/wasm.md describes the world that a component must have")
    })
}

#[cfg(not(feature = "engine-wasm"))]
fn compile(_: &Path, _: &[u8]) -> Result<Vec<u8>, Failure> {
    Err(Failure::new(toolgate_sandbox::NoComponents.to_string()))
}
