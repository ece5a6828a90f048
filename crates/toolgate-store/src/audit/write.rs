//! Appends to the log, while other processes may append too.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::{
    AuditLimits, AuditRecord,
    chain::{
        AuditLine, ChainHead, FIRST, LONGEST, LOST, WrittenLine, aside_path, began_path, head_path,
        put_aside, was_begun,
    },
    unwritten::{self, UnwrittenMark},
};
use crate::files;

/// The log, open for writing. A writer holds the lock of the head file.
#[derive(Debug)]
pub(super) struct OpenAuditLog {
    path: PathBuf,
    /// Opened with the first line, so that the head file can count what is missing without it.
    file: Option<File>,
    head_file: File,
    /// The known end of the file. Other processes may have appended more.
    end: u64,
    known: ChainHead,
    /// The head file as it was last written, from `known`.
    known_text: Vec<u8>,
    /// Whether it is written beside the folder that there is a log.
    marked: bool,
}

/// Where lines are removed by their age, a file has the lines of about so long.
const A_DAY: Duration = Duration::from_hours(24);
/// The head is one short line.
const LONGEST_HEAD: usize = 4_096;
/// The bytes of most lines.
const USUAL_LINE: usize = 640;

impl OpenAuditLog {
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            files::make_folder(folder).map_err(io::Error::other)?;
        }
        let head_file = files::private_options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(head_path(path))?;
        Ok(Self {
            path: path.to_owned(),
            file: None,
            head_file,
            end: u64::MAX,
            known: ChainHead::default(),
            known_text: Vec::new(),
            marked: false,
        })
    }

    /// The open log, which is opened if there is none.
    pub(super) fn of<'l>(open: &'l mut Option<Self>, path: &Path) -> io::Result<&'l mut Self> {
        match open {
            Some(open) => Ok(open),
            none => Ok(none.insert(Self::new(path)?)),
        }
    }

    /// Waits for the lock.
    pub(super) fn lock(&self) -> io::Result<()> {
        self.head_file.lock()
    }

    /// Takes the lock, unless another process has it.
    pub(super) fn try_lock(&self) -> io::Result<bool> {
        match self.head_file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Appends, and gives the lock back.
    pub(super) fn append(
        &mut self,
        records: &[AuditRecord],
        missing: &mut u64,
        mark: &mut UnwrittenMark,
        limits: AuditLimits,
    ) -> io::Result<()> {
        // Read once: the marks of other processes are reported by the next process at the latest.
        let is_new = self.end == u64::MAX;
        let marks = if is_new || *missing > 0 { unwritten::all(&self.path) } else { Vec::new() };
        let own = mark.count(&self.path);
        let elsewhere = marks.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
        let elsewhere = elsewhere.saturating_sub(own);
        *missing = mark.left_of(&self.path, *missing).saturating_add(elsewhere);
        let appended = self.append_locked(records, missing, limits);
        if appended.is_ok() {
            for (path, _) in marks {
                let _ = fs::remove_file(path);
            }
            mark.set(&self.path, 0);
        } else {
            *missing = missing.saturating_sub(elsewhere);
        }
        let unlocked = self.head_file.unlock();
        appended.and(unlocked)
    }

    /// Writes the head of a log that has no lines. Does nothing if there is, or was, a log.
    pub(super) fn prepare(&mut self) -> io::Result<()> {
        self.head_file.lock()?;
        let is_new = !was_begun(&self.path) && !self.path.exists();
        let prepared = match self.head() {
            Ok(None) if is_new => self.write_head(),
            other => other.map(drop),
        };
        prepared.and(self.head_file.unlock())
    }

    /// Counts missing records in the head file. Its length does not change, so it needs no disk
    /// space.
    pub(super) fn note_missing(
        &mut self,
        missing: &mut u64,
        mark: &mut UnwrittenMark,
    ) -> io::Result<()> {
        self.head_file.lock()?;
        let noted = self.head().and_then(|head| {
            let Some(head) = head else { return Ok(()) };
            let before = std::mem::replace(&mut self.known, head);
            *missing = mark.left_of(&self.path, *missing);
            self.known.missing = self.known.missing.saturating_add(*missing);
            self.write_head().inspect_err(|_| self.known = before)?;
            *missing = 0;
            mark.set(&self.path, 0);
            Ok(())
        });
        noted.and(self.head_file.unlock())
    }

    fn append_locked(
        &mut self,
        records: &[AuditRecord],
        missing: &mut u64,
        limits: AuditLimits,
    ) -> io::Result<()> {
        let found = self.head()?;
        let head = found.clone().unwrap_or_default();
        if head.rolled != self.known.rolled || self.end == u64::MAX {
            // Somebody else has put the file aside, or nothing is known yet.
            self.file = None;
        }
        let mut end = self.file()?.seek(SeekFrom::End(0))?;
        if end != self.end || head != self.known {
            self.known = head;
            end = self.catch_up(end)?;
        }
        let began = began_path(&self.path);
        if found.is_none() {
            if end > 0 || was_begun(&self.path) {
                LOST.clone_into(&mut self.known.hash);
            }
            // Written before the first line, so that toolgate never writes lines without a head
            // file.
            self.write_head()?;
        }
        if !self.marked
            && let Some(began) = began
        {
            files::private_options().append(true).create(true).open(began)?;
            self.marked = true;
        }
        if end >= limits.file_bytes || end > 0 && self.is_old(limits) {
            self.roll(limits)?;
            end = 0;
        }
        let time = u64::try_from(crate::since_epoch().as_millis()).unwrap_or(u64::MAX);
        let mut text = Vec::with_capacity(records.len() * USUAL_LINE);
        let (mut number, mut hash) = (self.known.number, self.known.hash.clone());
        let lost = self.known.missing.saturating_add(*missing);
        let missed = (lost > 0).then(|| AuditRecord {
            kind: "missing".to_owned(),
            missing: lost,
            ..AuditRecord::default()
        });
        for record in missed.iter().chain(records) {
            number = number.saturating_add(1);
            hash = WrittenLine { number, time, before: &hash, record }.write(&mut text)?;
        }
        let file = self.file()?;
        if let Err(error) = file.write_all(&text) {
            // On a full disk a part of the line may have been written. It is removed.
            file.set_len(end)?;
            return Err(error);
        }
        self.end = end + u64::try_from(text.len()).unwrap_or_default();
        if lost > 0 {
            let told = self.known.unrecorded().saturating_sub(self.known.missing);
            self.known.told = told.saturating_add(lost);
            self.known.told_at = self.known.number.saturating_add(1);
            (self.known.missing, *missing) = (0, 0);
        }
        (self.known.number, self.known.hash) = (number, hash);
        self.known.from = self.known.from.max(1);
        self.write_head()
    }

    fn head(&mut self) -> io::Result<Option<ChainHead>> {
        // One read, which is short only at the end of the file.
        let mut text = [0; LONGEST_HEAD];
        let length = read_at_start(&mut self.head_file, &mut text)?;
        let text = &text[..length];
        if !text.is_empty() && text == self.known_text {
            return Ok(Some(self.known.clone()));
        }
        Ok(ChainHead::read(text))
    }

    fn write_head(&mut self) -> io::Result<()> {
        let text = self.known.text().into_bytes();
        self.known_text.clear();
        write_at_start(&mut self.head_file, &text)?;
        self.known_text = text;
        Ok(())
    }

    /// Whether the file was begun a day ago or earlier, and lines are removed by their age. Then the next file is begun,
    /// so that a file has lines of about one age.
    fn is_old(&self, limits: AuditLimits) -> bool {
        let begun = || fs::metadata(&self.path).and_then(|about| about.created());
        let is_old = |at: SystemTime| at.elapsed().is_ok_and(|age| age >= A_DAY);
        limits.age().is_some() && begun().is_ok_and(is_old)
    }

    /// Renames the file, removes old files, and begins a new file.
    fn roll(&mut self, limits: AuditLimits) -> io::Result<()> {
        fs::rename(&self.path, aside_path(&self.path, self.known.number))?;
        self.known.rolled = self.known.rolled.wrapping_add(1);
        let aside = put_aside(&self.path)?;
        let is_old = |path: &Path| limits.age().is_some_and(|age| is_older(path, age));
        let old = aside.iter().take_while(|(_, path)| is_old(path)).count();
        let too_many = aside.len().saturating_sub(limits.files).max(old);
        if let Some((last, _)) = too_many.checked_sub(1).and_then(|at| aside.get(at)) {
            self.known.from = last.saturating_add(1);
        }
        // First that they may be missing, and then that they are.
        self.write_head()?;
        for (_, path) in &aside[..too_many] {
            fs::remove_file(path)?;
        }
        self.file = None;
        self.file().map(drop)
    }

    /// Finds the line to continue from: the last line of the file, or the head file if the file is
    /// new. Returns the end of the file.
    fn catch_up(&mut self, end: u64) -> io::Result<u64> {
        if end == 0 {
            return Ok(0);
        }
        let (mut number, mut hash) = (0, FIRST.to_owned());
        let mut size = 4_096_u64;
        loop {
            let start = end.saturating_sub(size);
            let file = self.file()?;
            file.seek(SeekFrom::Start(start))?;
            let mut tail = Vec::new();
            Read::by_ref(file).take(end - start).read_to_end(&mut tail)?;
            let whole = tail.strip_suffix(b"\n");
            let lines = whole.unwrap_or(&tail);
            let last = lines.iter().rposition(|byte| *byte == b'\n').map(|at| &lines[at + 1..]);
            match last.or((start == 0).then_some(lines)) {
                Some(last) => {
                    if let Ok(line) = serde_json::from_slice::<AuditLine>(last) {
                        (number, hash) = (line.number, line.hash);
                    }
                    if whole.is_none() && !tail.is_empty() {
                        // Half a line of a killed process. The next line starts after it.
                        file.write_all(b"\n")?;
                    }
                    break;
                }
                None if size > LONGEST => break,
                None => size *= 8,
            }
        }
        // Further lines must not hide that the end was cut off.
        self.known.number = self.known.number.max(number);
        self.known.hash = hash;
        self.file()?.seek(SeekFrom::End(0))
    }

    /// The file with the lines.
    fn file(&mut self) -> io::Result<&mut File> {
        match &mut self.file {
            Some(file) => Ok(file),
            none => Ok(none.insert(open(&self.path)?)),
        }
    }
}

#[cfg(unix)]
fn read_at_start(file: &mut File, text: &mut [u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, text, 0)
}

#[cfg(unix)]
fn write_at_start(file: &mut File, text: &[u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, text, 0)
}

#[cfg(not(unix))]
fn read_at_start(file: &mut File, text: &mut [u8]) -> io::Result<usize> {
    file.seek(SeekFrom::Start(0))?;
    file.read(text)
}

#[cfg(not(unix))]
fn write_at_start(file: &mut File, text: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    file.write_all(text)
}

fn open(path: &Path) -> io::Result<File> {
    files::private_options().read(true).append(true).create(true).open(path)
}

/// Whether nothing was written to a file for so long.
fn is_older(path: &Path, age: Duration) -> bool {
    let written = fs::metadata(path).and_then(|about| about.modified());
    written.is_ok_and(|at| at.elapsed().is_ok_and(|elapsed| elapsed > age))
}
