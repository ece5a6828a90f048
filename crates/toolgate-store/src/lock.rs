//! One writer at a time, across processes.

use std::{
    fs, io,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use crate::{StoreError, files};

/// How long another writer is waited for.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How often the lock is tried.
const PAUSE: Duration = Duration::from_millis(5);

/// A lock, held until it is dropped. The system releases it when the process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: fs::File,
}

impl Lock {
    /// Waits for a writer, which writes for milliseconds unless it was stopped.
    pub(crate) fn take(path: &Path) -> Result<Self, StoreError> {
        Self::take_within(path, TIMEOUT)
    }

    /// Waits for the lock, for a limited time. Makes its folder.
    pub(crate) fn take_within(path: &Path, timeout: Duration) -> Result<Self, StoreError> {
        if let Some(folder) = path.parent() {
            files::make_folder(folder)?;
        }
        Self::wait(path, timeout).map_err(|error| StoreError::new(path, error))
    }

    fn wait(path: &Path, timeout: Duration) -> io::Result<Self> {
        let file = files::private_options().write(true).create(true).truncate(false).open(path)?;
        let deadline = Instant::now() + timeout;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(fs::TryLockError::WouldBlock) if Instant::now() < deadline => {
                    thread::sleep(PAUSE);
                }
                Err(fs::TryLockError::WouldBlock) => {
                    let text = "another toolgate has held it for seconds";
                    return Err(io::Error::new(io::ErrorKind::WouldBlock, text));
                }
                Err(fs::TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}
