//! The approved definitions of a configuration, in a file.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use crate::{FileStamp, PinStore, StoreError, StoreStamp, lock::Lock};

/// The file beside a configuration that has the approved definitions, as one text.
#[derive(Debug, Clone)]
pub struct PinText {
    path: PathBuf,
    /// A little more than this is read.
    longest: usize,
}

impl PinText {
    /// The file at `path`, of which at most so many bytes are read.
    pub fn new(path: impl Into<PathBuf>, longest: usize) -> Self {
        Self { path: path.into(), longest }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text. [`io::ErrorKind::InvalidInput`] if the path is that of something else than a file.
    pub fn text(&self) -> io::Result<String> {
        // A pipe or a device would block, or never end.
        if !fs::metadata(&self.path)?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut text = String::new();
        File::open(&self.path)?.take(self.longest as u64 + 1).read_to_string(&mut text)?;
        Ok(text)
    }

    /// Replaces the whole file at once, so that no reader gets half of it.
    pub fn replace(&self, text: &str) -> io::Result<()> {
        let written = self.path.with_extension(format!("lock.{}", std::process::id()));
        fs::write(&written, text)?;
        fs::rename(&written, &self.path).inspect_err(|_| {
            let _ = fs::remove_file(&written);
        })
    }

    fn failed(&self, error: io::Error) -> StoreError {
        StoreError::of(&self.path, error)
    }
}

impl PinStore for PinText {
    fn stamp(&self) -> Option<StoreStamp> {
        FileStamp::of(&self.path).map(StoreStamp::File)
    }

    fn read(&self) -> Result<Option<String>, StoreError> {
        match self.text() {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn change(
        &self,
        change: &mut dyn FnMut(Option<&str>) -> Option<String>,
    ) -> Result<(), StoreError> {
        let _writing = Lock::take(&self.path.with_extension("lock.writing"))?;
        let before = self.read()?;
        match change(before.as_deref()) {
            Some(after) if before.as_ref() != Some(&after) => {
                self.replace(&after).map_err(|error| self.failed(error))
            }
            _ => Ok(()),
        }
    }
}
