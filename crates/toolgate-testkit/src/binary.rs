//! Finding the fixture binary, and running a fixture as a child process.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::{Fixture, TestkitError};

/// How to start a server: the `command` and `args` of an `mcpServers` entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixtureEntry {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
}

impl FixtureEntry {
    /// The entry's JSON, for a configuration file.
    pub fn to_json(&self) -> Value {
        json!({ "command": self.command, "args": self.args })
    }
}

impl Fixture {
    /// How to start this fixture as a child process that serves over stdio.
    ///
    /// The fixture travels as one argument, which the operating system limits to 128 KiB; see
    /// [`entry_through_file`](Self::entry_through_file) for larger ones.
    pub fn entry(&self) -> Result<FixtureEntry, TestkitError> {
        let json = serde_json::to_string(self)?;
        entry(vec!["--fixture".to_owned(), json])
    }

    /// Like [`entry`](Self::entry), with the fixture in the file at `path`, which is (over)written.
    pub fn entry_through_file(&self, path: &Path) -> Result<FixtureEntry, TestkitError> {
        std::fs::write(path, serde_json::to_vec(self)?)?;
        entry(vec!["--fixture-file".to_owned(), path.display().to_string()])
    }
}

/// The path of the `toolgate-fixture` binary of the running test's own target directory.
///
/// Test runs of the whole workspace have built it. A run of one crate's tests may not have, or not
/// since its sources changed; then this builds it, once.
pub fn fixture_binary() -> Result<PathBuf, TestkitError> {
    binary("crates/toolgate-testkit", "toolgate-fixture")
}

/// The path of the `toolgate-conformance` binary, found like [`fixture_binary`]: a server and a
/// client with all that the protocol has.
pub fn conformance_binary() -> Result<PathBuf, TestkitError> {
    binary("tools/conformance", "toolgate-conformance")
}

/// The path of the `toolgate` program, found like [`fixture_binary`].
pub fn program_binary() -> Result<PathBuf, TestkitError> {
    binary("crates/toolgate-cli", "toolgate")
}

fn binary(folder: &str, name: &str) -> Result<PathBuf, TestkitError> {
    // Held during the build, so that the tests of one process do not start several.
    static BUILDING: Mutex<()> = Mutex::new(());
    let _guard = BUILDING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);

    let executable = std::env::current_exe()?;
    let mut directory = executable.parent().unwrap_or(Path::new("."));
    // Tests run in `deps`, examples in `examples`, the binaries are one level up.
    if directory.ends_with("deps") || directory.ends_with("examples") {
        directory = directory.parent().unwrap_or(directory);
    }
    let path = directory.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder).join("src");
    if !is_current(&path, &sources) {
        build(&path, directory, name)?;
    }
    Ok(path)
}

/// Whether the binary exists and is newer than its sources.
fn is_current(path: &Path, sources: &Path) -> bool {
    let built = path.metadata().and_then(|metadata| metadata.modified());
    // Sources that are not there, as on a machine that only runs tests, have not changed.
    built.is_ok_and(|built| newest(sources).is_none_or(|changed| changed <= built))
}

/// When the newest file under a folder was changed.
fn newest(folder: &Path) -> Option<SystemTime> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    entries
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            if metadata.is_dir() { newest(&entry.path()) } else { metadata.modified().ok() }
        })
        .max()
}

fn entry(args: Vec<String>) -> Result<FixtureEntry, TestkitError> {
    Ok(FixtureEntry { command: fixture_binary()?.display().to_string(), args })
}

/// Builds the binary into the target directory whose profile folder is `directory`.
fn build(path: &Path, directory: &Path, name: &str) -> Result<(), TestkitError> {
    let failure = |reason: String| TestkitError::FixtureBinary { path: path.to_owned(), reason };
    let target = directory.parent().ok_or_else(|| failure("no target directory".to_owned()))?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        // The whole workspace, so that dependencies have the features that they were built with before.
        .args(["build", "--quiet", "--workspace", "--bin", name])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("CARGO_TARGET_DIR", target);
    if directory.ends_with("release") {
        command.arg("--release");
    }
    let output = command.output().map_err(|error| failure(error.to_string()))?;
    if !output.status.success() {
        return Err(failure(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    if path.exists() { Ok(()) } else { Err(failure("the build put it elsewhere".to_owned())) }
}
