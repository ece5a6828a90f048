//! `toolgate.lock`: the approved definitions, in a file beside the configuration.
//!
//! The nodes of a fleet have them in their database. Until something is approved there, the file counts, which may have
//! come with the configuration.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use toolgate_host::PinWriter;
use toolgate_policy::{
    NewTools,
    definitions::{Lock, LockError, MAX_LOCK_BYTES},
};
use toolgate_store::{PinStore, PinText, Store, StoreStamp};

/// The file with the approved definitions of a configuration.
#[derive(Debug, Clone)]
pub struct PinFile {
    file: PinText,
    /// Where the nodes of a fleet have them.
    shared: Option<Arc<dyn PinStore>>,
}

/// The file exists, and cannot be read. It is not taken for a file without approvals.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct PinFileError {
    /// The file.
    pub path: PathBuf,
    /// Why it cannot be read.
    #[source]
    pub problem: PinFileProblem,
}

/// Why a file of approved definitions cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PinFileProblem {
    /// The file system refuses it.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The path is that of something else.
    #[error("it is not a file")]
    NotAFile,
    /// There is no text. toolgate never writes an empty file.
    #[error("it is empty, so nothing is known of the approved definitions")]
    Empty,
    /// The text is not one that toolgate wrote.
    #[error(transparent)]
    Text(#[from] LockError),
}

impl PinFile {
    /// The file beside this configuration.
    pub fn beside(configuration: &Path) -> Self {
        let path = configuration.with_file_name("toolgate.lock");
        Self { file: PinText::new(path, MAX_LOCK_BYTES), shared: None }
    }

    /// The same, or what the nodes of a fleet have in its place.
    #[must_use]
    pub fn in_store(self, store: Option<&Store>) -> Self {
        let shared = store.and_then(Store::shared).map(|shared| shared.pins());
        Self { shared, ..self }
    }

    /// Whether something was ever approved.
    pub fn exists(&self) -> bool {
        let is_shared = |shared: &Arc<dyn PinStore>| !matches!(shared.read(), Ok(None));
        self.path().exists() || self.shared.as_ref().is_some_and(is_shared)
    }

    /// Another one after each change at another node.
    pub fn stamp(&self) -> Option<StoreStamp> {
        self.shared.as_ref().and_then(|shared| shared.stamp())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The approved definitions. Without a file there are none, and nothing is held back unless
    /// `new_tools` says so.
    pub fn read(&self, new_tools: NewTools) -> Result<Option<Lock>, PinFileError> {
        let unreadable =
            |problem: PinFileProblem| PinFileError { path: self.path().to_owned(), problem };
        match self.text() {
            Ok(text) if text.trim().is_empty() => Err(unreadable(PinFileProblem::Empty)),
            Ok(text) => Lock::read(&text).map(Some).map_err(|error| unreadable(error.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok((new_tools == NewTools::Hold).then(Lock::default))
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                Err(unreadable(PinFileProblem::NotAFile))
            }
            Err(error) => Err(unreadable(error.into())),
        }
    }

    /// The text, of which a little more than the longest one is read.
    fn text(&self) -> io::Result<String> {
        if let Some(shared) = &self.shared
            && let Some(text) = shared.read().map_err(io::Error::other)?
        {
            return Ok(text);
        }
        self.file.text()
    }

    /// Replaces the whole file at once, so that no reader gets half of it. A file that could not be
    /// read again is not written.
    pub fn write(&self, lock: &Lock) -> io::Result<()> {
        self.write_at_most(lock, MAX_LOCK_BYTES)
    }

    fn write_at_most(&self, lock: &Lock, bytes: usize) -> io::Result<()> {
        let text = lock.write();
        if text.len() > bytes {
            let mebibytes = bytes / (1024 * 1024);
            let problem = format!("its definitions would take more than {mebibytes} MiB");
            return Err(io::Error::other(problem));
        }
        if let Some(shared) = &self.shared {
            return shared.change(&mut |_| Some(text.clone())).map_err(io::Error::other);
        }
        self.file.replace(&text)
    }

    /// Adds new definitions to those of all nodes.
    fn pin_shared(&self, shared: &dyn PinStore, add: &mut dyn FnMut(&mut Lock)) {
        // What the file had counted until now.
        let file = Self { file: self.file.clone(), shared: None };
        let pinned = shared.change(&mut |text| {
            let mut lock = match text {
                Some(text) => Lock::read(text).ok()?,
                None => file.read(NewTools::Hold).ok()??,
            };
            add(&mut lock);
            Some(lock.write()).filter(|text| text.len() <= MAX_LOCK_BYTES / 2)
        });
        if let Err(error) = pinned {
            tracing::warn!("new definitions are not noted: {error}");
        }
    }

    /// The callback that adds new definitions to the file.
    pub(crate) fn pin(&self) -> PinWriter {
        let pins = self.clone();
        let writing = parking_lot::Mutex::new(());
        let was_there = self.path().exists();
        PinWriter(Arc::new(move |server, new| {
            let _guard = writing.lock();
            if let Some(shared) = &pins.shared {
                pins.pin_shared(&**shared, &mut |lock| lock.pin(server, new));
                return;
            }
            // A file without the earlier approvals would release what is held back.
            if was_there && !pins.path().exists() {
                return;
            }
            let Ok(Some(mut lock)) = pins.read(NewTools::Hold) else { return };
            lock.pin(server, new);
            // A server that lists something new again and again does not fill the file.
            if let Err(error) = pins.write_at_most(&lock, MAX_LOCK_BYTES / 2) {
                tracing::warn!("cannot write {}: {error}", pins.path().display());
            }
        }))
    }
}
