//! The crate's error.

use std::path::PathBuf;

/// Why a server could not be started. No process is left running.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestkitError {
    /// The fixture binary does not exist and could not be built.
    #[error("the fixture binary {path} is missing and could not be built: {reason}")]
    FixtureBinary {
        /// The expected path.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A fixture's JSON could not be written or read.
    #[error("the fixture is not valid JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A fault ended the server before it served.
    #[error("the fixture exited with code {code} at its start, as it was asked to")]
    Exited {
        /// The exit code.
        code: i32,
    },
    /// A file or a socket failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// PostgreSQL does not run.
    #[error("PostgreSQL does not run: {0}")]
    Postgres(String),
    /// The real servers are not installed.
    #[error("{missing} is missing; run `scripts/install-test-servers` to install the test servers")]
    RealServers {
        /// The file that was looked for.
        missing: PathBuf,
    },
}
