//! `toolgate engines`

mod components;

use std::process::ExitCode;

use serde::Serialize;
use toolgate_host::{CodeSettings, HostSettings, ToolHost};
use toolgate_sandbox::{Language, MachinePython, PythonChoice, PythonEngine, PythonPackage};

use crate::{
    cli::{Engines, EnginesCommand, Globals},
    failure::{CommandResult, Failure},
    load, print,
};

/// Adds or removes an engine, or shows which engine runs the scripts of each language, and why.
/// Without a configuration, the defaults hold.
pub(crate) async fn run(globals: &Globals, arguments: &Engines) -> CommandResult {
    match &arguments.command {
        Some(EnginesCommand::Add(arguments)) => return components::add(arguments).await,
        Some(EnginesCommand::Remove { language }) => return components::remove(language),
        None => {}
    }
    let output = arguments.output;
    let settings = settings(globals)?;
    let host = started(settings.clone());
    let engines = engines(&host, &settings).await;
    host.shutdown().await;
    if output.json {
        print::json(&serde_json::json!({ "engines": engines }))?;
    } else {
        engines.iter().for_each(Engine::print);
    }
    Ok(ExitCode::SUCCESS)
}

/// How scripts run: as the configuration says, or by default if there is none.
pub(super) fn settings(globals: &Globals) -> Result<CodeSettings, Failure> {
    let settings = match load::load(globals) {
        Ok(loaded) => loaded.settings(None).code,
        Err(failure) if globals.config.is_some() => return Err(failure),
        Err(_) => load::code(),
    };
    settings.ok_or_else(|| {
        Failure::usage("scripts are switched off: codeMode.enabled is false")
            .hint("set it to true, or leave it out")
    })
}

/// A host without servers.
pub(super) fn started(code: CodeSettings) -> ToolHost {
    let mut settings = HostSettings::new(Vec::new());
    settings.code = Some(code);
    ToolHost::start(settings)
}

/// What runs the scripts of a language.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Engine {
    language: String,
    /// Its name, and its version if it is not built in.
    #[serde(rename = "engine")]
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    packages: Vec<Package>,
    /// Why it is this one.
    why: String,
    /// Whether scripts of the language can run.
    runs: bool,
}

#[derive(Debug, Serialize)]
struct Package {
    name: String,
    /// `None` if it is not installed.
    version: Option<String>,
    /// Why it cannot be imported.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// The engines of a host.
pub(super) async fn engines(host: &ToolHost, settings: &CodeSettings) -> Vec<Engine> {
    let typescript = Engine {
        language: "typescript".to_owned(),
        name: "QuickJS, built in".to_owned(),
        program: None,
        packages: Vec::new(),
        why: "there is no other".to_owned(),
        runs: true,
    };
    let mut python = host.code().python().await.map(|python| python_of(python, settings));
    if let Some(python) = python.as_mut().filter(|python| !python.packages.is_empty())
        && let Some(Ok(report)) = host.code().lockdown(Language::Python).await
    {
        for package in &mut python.packages {
            package.problem = report.packages.get(&package.name).cloned();
        }
    }
    let mut engines: Vec<Engine> = std::iter::once(typescript).chain(python).collect();
    engines.extend(components::added(host).await);
    engines
}

fn python_of(python: PythonEngine, settings: &CodeSettings) -> Engine {
    let language = || "python".to_owned();
    let embedded = |why: String| Engine {
        language: language(),
        name: "Monty, built in: a part of Python 3".to_owned(),
        program: None,
        packages: Vec::new(),
        why,
        runs: true,
    };
    match python {
        PythonEngine::Embedded { .. } if settings.pool.python.choice == PythonChoice::Embedded => {
            embedded("codeMode.python is `monty`".to_owned())
        }
        PythonEngine::Embedded { why } => embedded(format!("no CPython can run scripts: {why}")),
        PythonEngine::Machine(MachinePython { program, version, packages }) => Engine {
            language: language(),
            name: format!("CPython {version}"),
            program: Some(program.display().to_string()),
            packages: packages
                .into_iter()
                .map(|PythonPackage { name, version }| Package { name, version, problem: None })
                .collect(),
            why: match &settings.pool.python.choice {
                PythonChoice::Named(named) => format!("codeMode.python is `{}`", named.display()),
                PythonChoice::Auto | PythonChoice::Embedded => {
                    "codeMode.python is `auto`, and it was found".to_owned()
                }
            },
            runs: true,
        },
        PythonEngine::Unusable { why } => Engine {
            language: language(),
            name: "none".to_owned(),
            program: None,
            packages: Vec::new(),
            why: format!("codeMode.python names one that cannot run scripts: {why}"),
            runs: false,
        },
    }
}

impl Engine {
    pub(super) fn print(&self) {
        let program = self.program.as_ref().map(|program| format!(" ({program})"));
        print::line(format!("{}: {}{}", self.language, self.name, program.unwrap_or_default()));
        print::line(format!("  {}", self.why));
        for package in &self.packages {
            print::line(match package.version.as_deref() {
                Some(_) if let Some(problem) = &package.problem => {
                    format!("  package {}: cannot be imported: {problem}", package.name)
                }
                None => format!("  package {}: not installed", package.name),
                Some("") => format!("  package {}", package.name),
                Some(version) => format!("  package {} {version}", package.name),
            });
        }
    }
}
