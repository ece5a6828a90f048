//! What can be wrong with a folder.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// What a folder may hold, for people.
pub const SUPPORTED: &str =
    "models of the BERT family (bert, roberta, xlm-roberta) and Model2Vec tables are supported";

/// A folder that cannot be used. Search goes on with the table in the program.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FolderError {
    /// A file is not there.
    #[error(
        "{folder} has no {file}; a model folder has config.json, tokenizer.json and model.safetensors"
    )]
    Missing {
        /// The folder.
        folder: PathBuf,
        /// The file.
        file: &'static str,
    },
    /// A file cannot be read.
    #[error("{path} cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The model is of a kind that this program cannot run.
    #[error("{folder} has {what}; {SUPPORTED}")]
    Unsupported {
        /// The folder.
        folder: PathBuf,
        /// What it has.
        what: String,
    },
    /// A file does not hold what it should.
    #[error("{path}: {reason}")]
    Damaged {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl FolderError {
    pub(super) fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.into() }
    }

    pub(super) fn unsupported(folder: &Path, what: impl Into<String>) -> Self {
        Self::Unsupported { folder: folder.to_owned(), what: what.into() }
    }
}
