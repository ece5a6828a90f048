//! The lines of `journal.sent` in memory, by run. A question reads only what was appended since the last one.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom},
    path::Path,
};

use super::sent::{SentDamage, SentKind, SentLine, seems_about};
use crate::files::FileId;

/// The content of all files that was read so far.
#[derive(Debug, Default)]
pub(super) struct SentIndex {
    files: HashMap<String, IndexedFile>,
}

/// The content of one file, up to the last complete line.
#[derive(Debug, Default)]
struct IndexedFile {
    /// Another file may have the name later: a file that was swept is replaced.
    id: Option<FileId>,
    /// How much was read.
    end: u64,
    runs: HashMap<String, IndexedRun>,
    /// Lines that cannot be read.
    damaged: Vec<Vec<u8>>,
    /// What follows the last complete line. It counts as damaged until it is complete.
    rest: Vec<u8>,
}

/// The lines about one run in one file.
#[derive(Debug, Default)]
struct IndexedRun {
    began: Option<u64>,
    is_removed: bool,
    lines: Vec<SentLine>,
}

impl SentIndex {
    /// Reads what is new in the folder.
    pub(super) fn refresh(&mut self, folder: &Path) {
        let Ok(entries) = fs::read_dir(folder) else {
            self.files.clear();
            return;
        };
        let mut before = std::mem::take(&mut self.files);
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let mut file = before.remove(&name).unwrap_or_default();
            match file.refresh(&entry.path()) {
                Ok(()) => {}
                // Another process has removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(_) => {
                    file = IndexedFile { damaged: vec![Vec::new()], ..IndexedFile::default() }
                }
            }
            self.files.insert(name, file);
        }
    }

    /// All lines about one run, and the damaged lines that may be about it.
    pub(super) fn of_run(&self, run: &str) -> (Vec<SentLine>, SentDamage) {
        let mut damage = SentDamage { lines: 0, is_countable: true };
        for line in self.files.values().flat_map(IndexedFile::damaged) {
            let about = seems_about(line).filter(|it| *it == run || self.knows(it));
            if about.is_none_or(|it| it == run) {
                damage.lines += 1;
                damage.is_countable &= about.is_some();
            }
        }
        let runs = self.files.values().filter_map(|file| file.runs.get(run));
        (runs.flat_map(|run| run.lines.iter().cloned()).collect(), damage)
    }

    /// The runs that began at `oldest` or later and were not removed, with the time of their beginning.
    pub(super) fn began_since(&self, oldest: u64) -> impl Iterator<Item = (&str, u64)> {
        let began = self.files.values().flat_map(|file| &file.runs).filter_map(move |(id, run)| {
            run.began.filter(|at| *at >= oldest).map(|at| (id.as_str(), at))
        });
        began.filter(|(id, _)| !self.is_removed(id))
    }

    /// When a run began that was not removed.
    pub(super) fn began(&self, run: &str) -> Option<u64> {
        let began = self.files.values().find_map(|file| file.runs.get(run)?.began);
        began.filter(|_| !self.is_removed(run))
    }

    fn knows(&self, run: &str) -> bool {
        self.files.values().any(|file| file.runs.contains_key(run))
    }

    fn is_removed(&self, run: &str) -> bool {
        self.files.values().any(|file| file.runs.get(run).is_some_and(|run| run.is_removed))
    }
}

impl IndexedFile {
    /// Reads what was appended, or everything if it is another file or was shortened.
    fn refresh(&mut self, path: &Path) -> io::Result<()> {
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        let id = Some(FileId::of(&metadata));
        if id != self.id || metadata.len() < self.end {
            *self = Self { id, ..Self::default() };
        }
        let mut bytes = Vec::new();
        if metadata.len() > self.end {
            file.seek(SeekFrom::Start(self.end))?;
            file.read_to_end(&mut bytes)?;
        }
        let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let (lines, rest) = bytes.split_at(complete);
        self.end += lines.len() as u64;
        rest.clone_into(&mut self.rest);
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match str::from_utf8(line).ok().and_then(SentLine::read) {
                Some(line) => self.add(line),
                None => self.damaged.push(line.to_owned()),
            }
        }
        Ok(())
    }

    fn add(&mut self, line: SentLine) {
        // Nothing is copied for a run that is known already.
        let run = match self.runs.get_mut(&line.run) {
            Some(run) => run,
            None => self.runs.entry(line.run.clone()).or_default(),
        };
        match line.kind {
            SentKind::Began => run.began = Some(line.number),
            SentKind::Removed => run.is_removed = true,
            SentKind::Sent | SentKind::Forgotten => {}
        }
        run.lines.push(line);
    }

    fn damaged(&self) -> impl Iterator<Item = &[u8]> {
        let rest = (!self.rest.is_empty()).then_some(&self.rest);
        self.damaged.iter().chain(rest).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::OpenOptions, io::Write as _};

    use super::*;

    fn append(path: &Path, text: &str) {
        let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn began(index: &SentIndex) -> Vec<(String, u64)> {
        let mut began: Vec<_> =
            index.began_since(0).map(|(run, at)| (run.to_owned(), at)).collect();
        began.sort();
        began
    }

    #[test]
    fn lines_are_known_however_they_come() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("1"), folder.path().join("2"));
        let line = |kind, run, number| SentLine::of_run(kind, run, number).text();
        let mut index = SentIndex::default();
        index.refresh(&folder.path().join("missing"));
        assert_eq!(began(&index), []);

        append(&one, &line(SentKind::Began, "a", 1));
        let second = line(SentKind::Began, "b", 2);
        append(&one, &second[..10]);
        index.refresh(folder.path());
        assert_eq!(began(&index), [(String::from("a"), 1)]);
        assert_eq!(index.of_run("a").1, SentDamage { lines: 1, is_countable: false });

        // The rest of the line, and a line of another process about a run of the first.
        append(&one, &second[10..]);
        append(&other, &line(SentKind::Removed, "a", 0));
        index.refresh(folder.path());
        assert_eq!(began(&index), [(String::from("b"), 2)]);
        assert_eq!(index.began("a"), None);
        assert_eq!(index.began("b"), Some(2));
        assert_eq!(index.of_run("a").0.len(), 2);
        assert_eq!(index.of_run("a").1.lines, 0);

        // A file that is replaced by one of the same length.
        let length = fs::metadata(&one).unwrap().len();
        let replaced = folder.path().join("new");
        append(&replaced, &line(SentKind::Began, "c", 3));
        append(&replaced, &line(SentKind::Began, "d", 4));
        assert_eq!(fs::metadata(&replaced).unwrap().len(), length);
        fs::rename(&replaced, &one).unwrap();
        index.refresh(folder.path());
        assert_eq!(began(&index), [(String::from("c"), 3), (String::from("d"), 4)]);

        fs::remove_file(&one).unwrap();
        index.refresh(folder.path());
        assert_eq!(began(&index), []);
    }
}
