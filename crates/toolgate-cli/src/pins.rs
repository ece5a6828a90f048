//! `toolgate.lock`: the definitions that were approved, beside the configuration.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use toolgate_host::PinWriter;
use toolgate_policy::{NewTools, definitions::Lock};

use crate::{failure::Failure, folders};

/// Where approved definitions of a configuration are kept.
#[derive(Debug, Clone)]
pub(crate) struct Pins {
    path: PathBuf,
}

impl Pins {
    /// Beside this configuration.
    pub(crate) fn beside(configuration: &Path) -> Self {
        Self { path: configuration.with_file_name("toolgate.lock") }
    }

    /// What was approved; nothing is pinned where there is no file, unless new tools are to be held.
    /// A file that cannot be read is no file without approvals, but an error.
    pub(crate) fn read(&self, new_tools: NewTools) -> Result<Option<Lock>, Failure> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((new_tools == NewTools::Hold).then(Lock::default));
            }
            Err(error) => return Err(self.unreadable(&error)),
        };
        Lock::read(&text).map(Some).map_err(|error| self.unreadable(&error))
    }

    /// Replaces the file whole, so that nobody reads half of it.
    pub(crate) fn write(&self, lock: &Lock) -> io::Result<()> {
        let written = self.path.with_extension(format!("lock.{}", std::process::id()));
        fs::write(&written, lock.write())?;
        fs::rename(&written, &self.path).inspect_err(|_| {
            let _ = fs::remove_file(&written);
        })
    }

    /// Keeps definitions that are new and let in.
    pub(crate) fn pin(&self) -> PinWriter {
        let pins = self.clone();
        let one_at_a_time = parking_lot::Mutex::new(());
        PinWriter(Arc::new(move |server, definitions| {
            let _guard = one_at_a_time.lock();
            let Ok(Some(mut lock)) = pins.read(NewTools::Hold) else { return };
            for definition in definitions {
                lock.approve(server, definition);
            }
            if let Err(error) = pins.write(&lock) {
                tracing::warn!("{} cannot be written: {error}", folders::shown(&pins.path));
            }
        }))
    }

    fn unreadable(&self, error: &dyn std::fmt::Display) -> Failure {
        Failure::usage(format!("{}: {error}", folders::shown(&self.path))).hint(
            "restore the file, or remove it and run `toolgate definitions approve --all`, which \
                 approves every tool as it is then",
        )
    }
}
