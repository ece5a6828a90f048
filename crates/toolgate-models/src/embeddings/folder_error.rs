//! The errors of a folder with a model.

#[cfg(feature = "folder-encoder")]
use std::path::Path;
use std::path::PathBuf;

use thiserror::Error;

/// The models that a folder may contain, for error messages.
pub const SUPPORTED: &str =
    "models of the BERT family (bert, roberta, xlm-roberta) and Model2Vec tables are supported";

/// A folder cannot be used. Search uses the built-in table.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FolderError {
    /// This program was built without the feature `folder-encoder`.
    #[error(
        "{folder} cannot be used: this build of toolgate runs no models from a folder; \
         build it with `cargo build --release --features folder-encoder`, or configure an `endpoint`"
    )]
    NotBuilt {
        /// The folder.
        folder: PathBuf,
    },
    /// A file is missing.
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
        /// The cause.
        source: std::io::Error,
    },
    /// The model is of a kind that this program cannot run.
    #[error("{folder} has {what}; {SUPPORTED}")]
    Unsupported {
        /// The folder.
        folder: PathBuf,
        /// The model that it contains.
        what: String,
    },
    /// A file has invalid content.
    #[error("{path}: {reason}")]
    Damaged {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with the file.
        reason: String,
    },
}

#[cfg(feature = "folder-encoder")]
impl FolderError {
    pub(super) fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.into() }
    }

    pub(super) fn unsupported(folder: &Path, what: impl Into<String>) -> Self {
        Self::Unsupported { folder: folder.to_owned(), what: what.into() }
    }
}
