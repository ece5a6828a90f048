//! Files that appear whole or not at all.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    time::SystemTime,
};

use crate::StoreError;

/// Identifies the content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStamp {
    modified: Option<SystemTime>,
    bytes: u64,
    /// Every change creates a new file, so that two changes at the same time differ too.
    file: u64,
    /// The hash of the content, if it was read.
    content: Option<blake3::Hash>,
}

/// Identifies a file, whatever its content is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    number: u64,
    /// The system uses the numbers of removed files again.
    created: Option<SystemTime>,
}

impl FileId {
    pub(crate) fn of(metadata: &fs::Metadata) -> Self {
        Self { number: file_number(metadata), created: metadata.created().ok() }
    }
}

/// Identifies what was stored, wherever that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreStamp {
    /// A file.
    File(FileStamp),
    /// A version that every change increases.
    Version(u64),
}

impl StoreStamp {
    /// The version of a shared store that was not heard of for so long that what was read before no longer counts.
    pub const TOO_OLD: Self = Self::Version(u64::MAX);

    /// Whether what was read before counts while a newer version cannot be read: a shared store may be away for a moment,
    /// whereas a file that cannot be read is damaged.
    pub fn allows_older(&self) -> bool {
        matches!(self, Self::Version(_)) && *self != Self::TOO_OLD
    }
}

/// Longer files are not read. They are not used either.
const LONGEST_READ: u64 = 16 * 1024 * 1024;

impl FileStamp {
    /// The stamp of the current file, without reading it; `None` if there is no file. It differs after
    /// every change by toolgate, which replaces files.
    pub fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        let (modified, file) = (metadata.modified().ok(), file_number(&metadata));
        Some(Self { modified, bytes: metadata.len(), file, content: None })
    }

    /// The stamp of a small file that others edit, by its content too: an edit in place can leave the
    /// length and the time as they were.
    pub fn of_content(path: &Path) -> Option<Self> {
        let stamp = Self::of(path)?;
        // A pipe would never end, or would be empty the second time.
        let is_file = fs::metadata(path).is_ok_and(|found| found.is_file());
        let content = is_file.then(|| read_bounded(path, LONGEST_READ).ok()).flatten();
        Some(Self { content: content.map(|content| blake3::hash(&content)), ..stamp })
    }
}

#[cfg(unix)]
fn file_number(metadata: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn file_number(_metadata: &fs::Metadata) -> u64 {
    0
}

/// Makes a folder that only its owner can look into.
pub(crate) fn make_folder(path: &Path) -> Result<(), StoreError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|error| StoreError::new(path, error))
}

/// The content of a file; an error if it has more than `limit` bytes.
pub(crate) fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = fs::File::open(path)?;
    // The length is a hint: a pipe has none, and the file may grow.
    let length = file.metadata().map_or(0, |found| found.len()).min(limit);
    let mut content = Vec::with_capacity(usize::try_from(length).unwrap_or_default() + 1);
    file.take(limit + 1).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too large"));
    }
    Ok(content)
}

/// Replaces `path` by `content` in one step: a reader sees the old file or the new one.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    replace_with(path, content, |_| Ok(()))
}

fn replace_with(
    path: &Path,
    content: &[u8],
    finish: impl FnOnce(&fs::File) -> io::Result<()>,
) -> Result<(), StoreError> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    let unique = COUNTER.fetch_add(1, Ordering::Relaxed);
    let temporary = path.with_extension(format!("{}-{unique}.tmp", std::process::id()));
    let written = write_private(&temporary, content)
        .and_then(|file| finish(&file))
        .and_then(|()| fs::rename(&temporary, path));
    written.map_err(|error| {
        // The rest of a failed attempt is useless. If it cannot be removed, it does no harm.
        let _ = fs::remove_file(&temporary);
        StoreError::new(path, error)
    })
}

/// Like [`replace`], and returns once the new content is on the disk. The old one is there until then.
pub(crate) fn replace_durably(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let failed = |error| StoreError::new(path, error);
    replace_with(path, content, |file| sync(file, path))?;
    path.parent().map_or(Ok(()), sync_folder).map_err(failed)
}

/// Returns once what was written to a file is on the disk.
pub(crate) fn sync(file: &fs::File, path: &Path) -> io::Result<()> {
    #[cfg(test)]
    synced::note(path);
    #[cfg(not(test))]
    let _ = path;
    file.sync_data()
}

/// Returns once the names of the files in a folder are on the disk.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    #[cfg(test)]
    synced::note(path);
    if cfg!(unix) {
        return fs::File::open(path)?.sync_all();
    }
    Ok(())
}

/// A file name that is safe everywhere, readable, and different for different names.
pub(crate) fn slug(name: &str) -> String {
    let readable: String = name
        .chars()
        .map(|character| if character.is_ascii_alphanumeric() { character } else { '-' })
        .take(40)
        .collect();
    let digest = blake3::hash(name.as_bytes()).to_hex();
    format!("{readable}-{}", &digest[..8])
}

/// Options for files that only their owner can read.
pub(crate) fn private_options() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn write_private(path: &Path, content: &[u8]) -> io::Result<fs::File> {
    let mut file = private_options().write(true).create(true).truncate(true).open(path)?;
    file.write_all(content)?;
    Ok(file)
}

/// Which files and folders were synced, in order.
#[cfg(test)]
pub(crate) mod synced {
    use std::path::{Path, PathBuf};

    use parking_lot::Mutex;

    static SYNCED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

    pub(super) fn note(path: &Path) {
        SYNCED.lock().push(path.to_owned());
    }

    /// Those in a folder, relative to it. They are forgotten.
    pub(crate) fn take(folder: &Path) -> Vec<PathBuf> {
        let mut synced = SYNCED.lock();
        let within = synced.iter().filter_map(|path| path.strip_prefix(folder).ok());
        let within = within.map(Path::to_owned).collect();
        synced.retain(|path| !path.starts_with(folder));
        within
    }
}
