//! Records of the audit log that wait for the database, in a file of the node.
//!
//! A record is written here if the database does not take it. The file is synced once for all records of a moment. It
//! is written to the database when that is back; if the node ends before, by the next node that starts with the same
//! folder. A record that reached the database although nobody could say so is not written twice.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

const ENDING: &str = "spool";
/// The ending of the file that says how many records are missing, because the first file was full.
const MISSING: &str = "missing";

/// The file of one node. Nobody else writes to it while this is held.
#[derive(Debug)]
pub(crate) struct Spool {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// The most bytes. Further records are counted as missing.
    most: u64,
    /// The line that says how many are missing, on the disk too.
    missing: Option<SpooledLine>,
}

/// A line that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SpooledLine {
    /// The last number of the log that was known when the line was made.
    pub(crate) after: i64,
    /// The line.
    pub(crate) line: String,
    /// How many records are missing before this line, because the file was full.
    #[serde(default)]
    pub(crate) missing: u64,
}

impl Spool {
    /// The file of a new node.
    pub(crate) fn new(folder: &Path, node: &str, most: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let path = folder.join(format!("{node}.{ENDING}"));
        let found = Self::open(path)?;
        let found = found.ok_or_else(|| io::Error::other("another process has the file"))?;
        Ok(Self { most, ..found })
    }

    /// The files that nodes have left behind. Those of nodes that run are not among them, and not those without a
    /// line: a node may be about to take one.
    pub(crate) fn left_behind(folder: &Path) -> Vec<Self> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let paths = paths.filter(|path| {
            let has_lines = || {
                let has = |path: &Path| fs::metadata(path).is_ok_and(|about| about.len() > 0);
                has(path) || has(&path.with_extension(MISSING))
            };
            path.extension().is_some_and(|it| it == ENDING) && has_lines()
        });
        paths.filter_map(|path| Self::open(path).ok().flatten()).collect()
    }

    /// Opens a file, unless another process has it.
    fn open(path: PathBuf) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(None),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        let bytes = file.metadata()?.len();
        let missing = fs::read(path.with_extension(MISSING)).ok();
        let missing = missing.and_then(|text| serde_json::from_slice(&text).ok());
        Ok(Some(Self { path, file, bytes, most: 0, missing }))
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0 && self.missing.is_none()
    }

    /// How many records are missing.
    pub(crate) fn missing(&self) -> u64 {
        self.missing.as_ref().map_or(0, |line| line.missing)
    }

    /// Notes how many records are missing, in place of what was noted before. It is on the disk then.
    pub(crate) fn note_missing(&mut self, line: SpooledLine) -> io::Result<()> {
        let path = self.path.with_extension(MISSING);
        let new = path.with_extension("new");
        let mut file = File::create(&new)?;
        file.write_all(&serde_json::to_vec(&line)?)?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
        self.missing = Some(line);
        Ok(())
    }

    /// Adds lines, all of them or none. They are on the disk then.
    pub(crate) fn add(&mut self, lines: &[SpooledLine]) -> io::Result<()> {
        let mut block = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut block, line)?;
            block.push(b'\n');
        }
        let length = u64::try_from(block.len()).unwrap_or(u64::MAX);
        if self.bytes.saturating_add(length) > self.most {
            return Err(io::Error::other("too many records wait for the database"));
        }
        let written = self.file.write_all(&block).and_then(|()| self.file.sync_data());
        match written {
            Ok(()) => self.bytes += length,
            // Nothing is left of a block that was not written whole.
            Err(_) => drop(self.file.set_len(self.bytes)),
        }
        written
    }

    /// All lines, in their order. What a crash has cut off is left out.
    pub(crate) fn read(&mut self) -> io::Result<Vec<SpooledLine>> {
        self.file.seek(SeekFrom::Start(0))?;
        let lines = BufReader::new(&self.file).lines();
        let whole = lines.map_while(Result::ok);
        let lines = whole.filter_map(|line| serde_json::from_str(&line).ok());
        Ok(lines.chain(self.missing.clone()).collect())
    }

    /// Forgets all lines, which are in the database now.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.bytes = 0;
        if self.missing.take().is_some() {
            fs::remove_file(self.path.with_extension(MISSING))?;
        }
        Ok(())
    }

    /// Deletes the file.
    pub(crate) fn remove(self) {
        // A file that stays is empty.
        let _ = fs::remove_file(&self.path);
    }
}
