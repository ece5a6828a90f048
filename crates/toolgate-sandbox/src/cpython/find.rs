//! Finds an interpreter that can run scripts.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use serde::Deserialize;
use thiserror::Error;
use tokio::{process::Command, time::timeout};

/// The oldest version that runs scripts.
const OLDEST: (u32, u32) = (3, 11);
/// The names under which it is looked for, after `python3`.
const NAMES: &[&str] = &["python3.14", "python3.13", "python3.12", "python3.11"];
/// How long an interpreter may take to say what it is.
const ANSWER_TIME: Duration = Duration::from_secs(20);

/// What an interpreter is asked.
const QUESTION: &str = r#"
import json, sys
def look(name):
    try:
        from importlib.util import find_spec
        if find_spec(name) is None:
            return None
    except Exception:
        return None
    try:
        from importlib.metadata import version
        return version(name)
    except Exception:
        return ""
print(json.dumps({
    "implementation": sys.implementation.name, "version": sys.version_info[:3],
    "executable": sys.executable, "packages": [look(name) for name in sys.argv[1:]],
}))
"#;

/// Which Python runs scripts, and with what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PythonSettings {
    /// Which one.
    pub choice: PythonChoice,
    /// The packages that scripts may import, if the machine's own Python runs them.
    pub packages: Vec<String>,
}

/// Which Python runs scripts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum PythonChoice {
    /// The embedded one.
    #[default]
    Embedded,
    /// The machine's own, if there is one and the system can confine it; else the embedded one.
    Auto,
    /// This one: a program, its name, or the folder of a virtual environment.
    Named(PathBuf),
}

/// The Python that runs scripts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PythonEngine {
    /// The embedded one.
    Embedded {
        /// Why the machine's own does not run them.
        why: String,
    },
    /// The machine's own.
    Machine(MachinePython),
    /// The one that was named, which cannot run them. No Python script runs.
    Unusable {
        /// Why it cannot.
        why: String,
    },
}

/// An interpreter of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachinePython {
    /// Its program.
    pub program: PathBuf,
    /// Its version: `3.12.1`.
    pub version: String,
    /// The packages that scripts may import.
    pub packages: Vec<PythonPackage>,
}

/// A package that the configuration names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonPackage {
    /// The name with which it is imported.
    pub name: String,
    /// Its version, empty if it does not say; `None` if it is not installed.
    pub version: Option<String>,
}

impl MachinePython {
    /// The packages that are installed.
    pub fn usable_packages(&self) -> impl Iterator<Item = &str> {
        let installed = self.packages.iter().filter(|package| package.version.is_some());
        installed.map(|package| package.name.as_str())
    }
}

/// Why no Python of the machine runs scripts. Scripts in other languages run.
#[derive(Debug, Error)]
pub(crate) enum NoInterpreter {
    #[error("the configuration chooses the embedded one")]
    NotWanted,
    #[error("only Linux can confine it")]
    System,
    #[error("there is no `python3` on the search path")]
    NotFound,
    #[error("`{}` cannot be started: {error}", program.display())]
    Start { program: PathBuf, error: io::Error },
    #[error("`{}` does not answer", .0.display())]
    Silent(PathBuf),
    #[error("`{}` is no Python of version 3 ({status})", program.display())]
    NoPython { program: PathBuf, status: ExitStatus },
    #[error("`{}` is {implementation}, and not CPython", program.display())]
    OtherPython { program: PathBuf, implementation: String },
    #[error("`{}` is Python {version}, and scripts need {}.{}", program.display(), OLDEST.0, OLDEST.1)]
    TooOld { program: PathBuf, version: String },
    #[error("{0}")]
    Program(#[from] io::Error),
    #[error("`{}` (Python {}): {why}", python.program.display(), python.version)]
    NotConfined { python: MachinePython, why: String },
}

/// Finds the interpreter that the settings mean.
pub(crate) async fn find(settings: &PythonSettings) -> Result<MachinePython, NoInterpreter> {
    let named = match &settings.choice {
        PythonChoice::Embedded => return Err(NoInterpreter::NotWanted),
        PythonChoice::Auto => None,
        PythonChoice::Named(named) => Some(named),
    };
    if !cfg!(target_os = "linux") {
        return Err(NoInterpreter::System);
    }
    if let Some(named) = named {
        return ask(&program_of(named), &settings.packages).await;
    }
    let mut first = None;
    for candidate in candidates() {
        match ask(&candidate, &settings.packages).await {
            Ok(python) => return Ok(python),
            // That of `python3` says most.
            Err(why) => drop(first.get_or_insert(why)),
        }
    }
    Err(first.unwrap_or(NoInterpreter::NotFound))
}

/// The programs that may be an interpreter, best first.
fn candidates() -> Vec<PathBuf> {
    let active = std::env::var_os("VIRTUAL_ENV").map(|folder| program_of(Path::new(&folder)));
    let on_path = std::iter::once(&"python3").chain(NAMES).filter_map(|name| on_path(name));
    active.into_iter().chain(on_path).collect()
}

/// The program that a setting names: of a virtual environment, or on the search path.
fn program_of(named: &Path) -> PathBuf {
    let home = named.strip_prefix("~").ok().zip(std::env::home_dir());
    let at_home = home.map(|(rest, home)| home.join(rest));
    let named = at_home.as_deref().unwrap_or(named);
    if named.is_dir() {
        let inside = |name| named.join("bin").join(name);
        return if inside("python3").exists() { inside("python3") } else { inside("python") };
    }
    if named.components().count() == 1
        && let Some(found) = named.to_str().and_then(on_path)
    {
        return found;
    }
    named.to_owned()
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

/// What an interpreter says about itself.
#[derive(Deserialize)]
struct Answer {
    implementation: String,
    version: (u32, u32, u32),
    executable: PathBuf,
    packages: Vec<Option<String>>,
}

/// Asks a program what it is. It gets the variables of this process, because it may be a script that
/// needs them to find the interpreter.
async fn ask(program: &Path, packages: &[String]) -> Result<MachinePython, NoInterpreter> {
    let owned = || program.to_owned();
    let mut arguments: Vec<&OsStr> = vec!["-I".as_ref()];
    if packages.is_empty() {
        arguments.push("-S".as_ref());
    }
    arguments.extend(["-c".as_ref(), OsStr::new(QUESTION)]);
    let question = Command::new(program)
        .args(arguments)
        .args(packages.iter().map(OsString::from))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(ANSWER_TIME, question)
        .await
        .map_err(|_| NoInterpreter::Silent(owned()))?
        .map_err(|error| NoInterpreter::Start { program: owned(), error })?;
    let answer: Answer = serde_json::from_slice(&output.stdout)
        .map_err(|_| NoInterpreter::NoPython { program: owned(), status: output.status })?;
    let (major, minor, patch) = answer.version;
    let version = format!("{major}.{minor}.{patch}");
    if answer.implementation != "cpython" {
        let implementation = answer.implementation;
        return Err(NoInterpreter::OtherPython { program: owned(), implementation });
    }
    if (major, minor) < OLDEST {
        return Err(NoInterpreter::TooOld { program: owned(), version });
    }
    let packages = packages.iter().cloned().zip(answer.packages);
    let packages = packages.map(|(name, version)| PythonPackage { name, version }).collect();
    Ok(MachinePython { program: answer.executable, version, packages })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(program: impl Into<PathBuf>) -> PythonSettings {
        PythonSettings { choice: PythonChoice::Named(program.into()), packages: Vec::new() }
    }

    #[tokio::test]
    async fn what_is_no_interpreter_is_refused_with_a_reason() {
        let why = find(&named("/no/such/python")).await.unwrap_err().to_string();
        assert!(why.starts_with("`/no/such/python` cannot be started: "), "{why}");
        let why = find(&named("true")).await.unwrap_err().to_string();
        assert!(why.ends_with("is no Python of version 3 (exit status: 0)"), "{why}");
        let why = find(&PythonSettings::default()).await.unwrap_err().to_string();
        assert_eq!(why, "the configuration chooses the embedded one");
    }

    #[tokio::test]
    async fn an_interpreter_says_its_version_and_its_packages() {
        let mut settings = named("python3");
        settings.packages = vec!["json".into(), "no_such_package".into()];
        let python = find(&settings).await.unwrap();
        assert!(python.version.starts_with("3."), "{python:?}");
        assert!(python.program.is_absolute(), "{python:?}");
        assert_eq!(python.usable_packages().collect::<Vec<_>>(), ["json"]);
    }
}
