//! Chats that are kept and continued.

use std::{
    fs::{self, File},
    io::{self, BufRead as _, BufReader, Read as _},
    path::PathBuf,
    time::UNIX_EPOCH,
};

use crate::{StoreError, files};

/// Stores one file per chat: a line that describes it, and its content. Both are the caller's business. Only the owner
/// of the files can read them.
#[derive(Debug, Clone)]
pub struct ChatStore {
    folder: PathBuf,
}

/// The right to continue a chat. The system takes it back when the process ends.
#[derive(Debug)]
pub struct ChatLock {
    _file: File,
}

/// A chat in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredChat {
    /// Its id.
    pub id: String,
    /// When it was saved last, in seconds since 1970.
    pub saved: u64,
    /// The line that describes it.
    pub head: String,
}

/// The most chats that are stored. Of more, the oldest ones are removed.
pub const MAX_CHATS: usize = 200;
/// A longer chat is not stored.
pub const MAX_CHAT_BYTES: usize = 64 * 1024 * 1024;
/// The longest line that describes a chat.
const MAX_HEAD_BYTES: u64 = 64 * 1024;
const LONGEST_ID: usize = 64;

impl ChatStore {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The file of the lines that were typed. Its folder is made, and only its owner can look into it.
    pub fn history_file(&self) -> Result<PathBuf, StoreError> {
        files::make_folder(&self.folder)?;
        Ok(self.folder.join("history"))
    }

    /// Keeps other processes from continuing a chat, until the lock is dropped. `None` if another one holds it.
    pub fn lock(&self, id: &str) -> Result<Option<ChatLock>, StoreError> {
        let Some(path) = self.path(id) else { return Ok(None) };
        files::make_folder(&self.folder)?;
        let path = path.with_extension("lock");
        let file = files::private_options().write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(|error| StoreError::new(&path, error))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(ChatLock { _file: file })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(StoreError::new(&path, error)),
        }
    }

    /// Replaces a chat. `head` is one line.
    pub fn save(&self, id: &str, head: &str, content: &str) -> Result<(), StoreError> {
        let path = self.path(id).ok_or_else(|| {
            StoreError::new(&self.folder, io::Error::new(io::ErrorKind::InvalidInput, "not an id"))
        })?;
        if head.len() + content.len() >= MAX_CHAT_BYTES {
            let error = io::Error::new(io::ErrorKind::FileTooLarge, "the chat is too long");
            return Err(StoreError::new(&path, error));
        }
        let is_new = !path.exists();
        files::replace(&path, format!("{}\n{content}", head.replace('\n', " ")).as_bytes())?;
        if is_new {
            for old in self.all().into_iter().skip(MAX_CHATS) {
                if let Some(path) = self.path(&old.0) {
                    // It is tried again with the next chat.
                    let _ = fs::remove_file(path.with_extension("lock"));
                    let _ = fs::remove_file(path);
                }
            }
        }
        Ok(())
    }

    /// The line and the content of a chat; `None` if there is no such chat.
    pub fn load(&self, id: &str) -> Result<Option<(String, String)>, StoreError> {
        let Some(path) = self.path(id) else { return Ok(None) };
        let bytes = match files::read_bounded(&path, MAX_CHAT_BYTES as u64) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(|error| StoreError::new(&path, error))?,
        };
        let text = String::from_utf8_lossy(&bytes);
        let (head, content) = text.split_once('\n').unwrap_or((&text, ""));
        Ok(Some((head.to_owned(), content.to_owned())))
    }

    /// All chats, the latest first.
    pub fn list(&self) -> Vec<StoredChat> {
        let all = self.all().into_iter().filter_map(|(id, saved)| {
            let mut head = String::new();
            let file = File::open(self.path(&id)?).ok()?;
            BufReader::new(file.take(MAX_HEAD_BYTES)).read_line(&mut head).ok()?;
            Some(StoredChat { id, saved: saved / 1_000_000_000, head: head.trim_end().to_owned() })
        });
        all.collect()
    }

    /// Ids and times in nanoseconds, the latest first.
    fn all(&self) -> Vec<(String, u64)> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let found = entries.filter_map(|entry| {
            let path = entry.path();
            let id = path.file_name()?.to_str()?.strip_suffix(".jsonl")?.to_owned();
            let saved = entry.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            Some((id, u64::try_from(saved.as_nanos()).ok()?))
        });
        let mut all: Vec<(String, u64)> = found.collect();
        all.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        all
    }

    /// The file of a chat; `None` for what is not an id.
    fn path(&self, id: &str) -> Option<PathBuf> {
        let is_id = (1..=LONGEST_ID).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_id.then(|| self.folder.join(format!("{id}.jsonl")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    #[test]
    fn a_chat_is_replaced_and_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let chats = Store::new(folder.path()).chats();
        assert_eq!(chats.load("chat_1").unwrap(), None);
        assert_eq!(chats.list(), []);
        chats.save("chat_1", "first\nline", "[1]").unwrap();
        chats.save("chat_1", "head", "[1,2]\n").unwrap();
        let loaded = chats.load("chat_1").unwrap();
        assert_eq!(loaded, Some(("head".to_owned(), "[1,2]\n".to_owned())));
        let list = chats.list();
        assert_eq!((list.len(), list[0].id.as_str(), list[0].head.as_str()), (1, "chat_1", "head"));
    }

    #[test]
    fn one_process_continues_a_chat() {
        let folder = tempfile::tempdir().unwrap();
        let chats = Store::new(folder.path()).chats();
        let lock = chats.lock("chat_1").unwrap();
        assert!(lock.is_some() && chats.lock("chat_1").unwrap().is_none());
        assert!(chats.lock("chat_2").unwrap().is_some());
        drop(lock);
        assert!(chats.lock("chat_1").unwrap().is_some());
        assert_eq!(chats.list(), []);
    }

    #[test]
    fn an_id_is_not_a_path() {
        let folder = tempfile::tempdir().unwrap();
        let chats = Store::new(folder.path()).chats();
        fs::write(folder.path().join("x.jsonl"), "head\n").unwrap();
        for id in ["../x", "", "a/b", "..", &"a".repeat(65)] {
            assert_eq!(chats.load(id).unwrap(), None, "{id}");
            assert!(chats.save(id, "", "").is_err(), "{id}");
        }
    }

    #[test]
    fn the_oldest_chats_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let chats = Store::new(folder.path()).chats();
        for number in 0..MAX_CHATS + 3 {
            chats.save(&format!("chat_{number}"), "", "").unwrap();
        }
        assert_eq!(chats.list().len(), MAX_CHATS);
        let last = format!("chat_{}", MAX_CHATS + 2);
        assert!(chats.load(&last).unwrap().is_some());
    }
}
