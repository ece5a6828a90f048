//! The tokens that sessions did not have to read, over time. Two files of limited size.

use std::{
    fs,
    io::{self, Seek, SeekFrom, Write},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};

use crate::files;

/// A file is renamed when it reaches this size. One older file is kept.
const MAX_BYTES: u64 = 256 * 1024;

/// Where gateways note what they saved.
#[derive(Debug, Clone)]
pub struct SavingsFile {
    path: PathBuf,
}

/// Tokens that sessions did not have to read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedTokens {
    /// When it was noted, in milliseconds since 1970.
    pub time: u64,
    /// Of definitions that were not listed.
    pub definitions: u64,
    /// Of results that were cut, or that a script has read. They are estimated, at four bytes a token.
    pub results: u64,
}

impl SavingsFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Notes what was saved. Several processes may do so.
    pub fn append(&self, saved: &SavedTokens) -> io::Result<()> {
        let mut line = serde_json::to_string(saved)?;
        line.push('\n');
        if let Some(folder) = self.path.parent()
            && !folder.exists()
        {
            files::make_folder(folder).map_err(|error| error.source)?;
        }
        let open = || files::private_options().append(true).create(true).open(&self.path);
        let mut file = open()?;
        if file.seek(SeekFrom::End(0))? + line.len() as u64 > MAX_BYTES {
            fs::rename(&self.path, self.older())?;
            file = open()?;
        }
        // One write a line: lines of several processes do not mix.
        file.write_all(line.as_bytes())
    }

    /// What was noted, oldest first. Lines that cannot be read are left out.
    pub fn read(&self) -> Vec<SavedTokens> {
        let files = [self.older(), self.path.clone()];
        let text: String = files.iter().filter_map(|path| fs::read_to_string(path).ok()).collect();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn older(&self) -> PathBuf {
        self.path.with_extension("old")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_saved_is_read_again_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let file = SavingsFile::new(folder.path().join("state/savings.jsonl"));
        assert_eq!(file.read(), []);
        let saved = |time| SavedTokens { time, definitions: 10, results: 20 };
        for time in 0..12_000 {
            file.append(&saved(time)).unwrap();
        }
        let read = file.read();
        assert_eq!(read.last(), Some(&saved(11_999)));
        assert!(read.len() > 2_000 && read.len() < 12_000, "{}", read.len());
        fs::write(folder.path().join("state/savings.jsonl"), "{}\nnothing\n").unwrap();
        assert!(!file.read().iter().any(|it| it.time == 0 && it.definitions == 0));
    }
}
