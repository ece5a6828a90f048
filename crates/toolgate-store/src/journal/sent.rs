//! Lists the runs and the sent calls in files beside the database. They show what a damaged
//! database has lost, so that no call is repeated.
//!
//! Each process appends lines to its own file. A damaged line may have listed a sent call. If the
//! database does not have a call that explains it, the run has a call of which nothing is known.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, Write as _},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::UNIX_EPOCH,
};

use parking_lot::{Mutex, MutexGuard};

use super::sent_index::SentIndex;
use crate::files;

/// The files of all processes that use one journal.
#[derive(Debug)]
pub(super) struct SentLog {
    folder: PathBuf,
    own: Mutex<Option<OwnFile>>,
    /// Whether the file of this process is known to be on the disk by its name.
    is_named: AtomicBool,
    index: Mutex<SentIndex>,
}

/// The file of this process.
#[derive(Debug)]
struct OwnFile {
    file: Arc<File>,
    path: PathBuf,
    end: u64,
}

/// The content of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SentKind {
    /// The run began; `number` is the time in milliseconds.
    Began,
    /// A call that must not be repeated is about to be sent.
    Sent,
    /// The call may be made again.
    Forgotten,
    /// The run was removed.
    Removed,
}

/// The content of one file.
#[derive(Debug)]
struct SentFile {
    name: String,
    lines: Vec<SentLine>,
    /// Lines that cannot be read.
    damaged: Vec<Vec<u8>>,
    /// When it was last written, in milliseconds since 1970.
    changed: u64,
}

/// The damaged lines that may be about one run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SentDamage {
    pub(super) lines: u64,
    /// Whether each of them can only be one line. Calls in the database can then explain them.
    pub(super) is_countable: bool,
}

/// The key of a line that says how many damaged lines a person has decided about.
pub(super) const DAMAGE: &str = "damage";

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SentLine {
    pub(super) kind: SentKind,
    pub(super) run: String,
    pub(super) number: u64,
    /// Identifies the call: [`call_key`].
    pub(super) key: String,
    pub(super) tool: String,
}

/// The same for calls of the same tool with the same arguments.
pub(super) fn call_key(name: &str, arguments: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(name.as_bytes()).update(b"\0").update(arguments.as_bytes());
    hasher.finalize().to_hex()[..16].to_owned()
}

impl SentLog {
    pub(super) fn new(folder: PathBuf) -> Self {
        let is_named = AtomicBool::new(false);
        Self { folder, own: Mutex::default(), is_named, index: Mutex::default() }
    }

    /// Appends to the file of this process, which is named `life`.
    #[expect(clippy::similar_names, reason = "both are terms of the journal")]
    pub(super) fn append(&self, life: &str, line: &SentLine) -> io::Result<()> {
        let mut own = self.own.lock();
        let OwnFile { file, end, .. } = match &mut *own {
            Some(own) => own,
            none => {
                files::make_folder(&self.folder).map_err(io::Error::other)?;
                let path = self.folder.join(life);
                let file = files::private_options().append(true).create(true).open(&path)?;
                let end = file.metadata()?.len();
                none.insert(OwnFile { file: Arc::new(file), path, end })
            }
        };
        let text = line.text();
        if let Err(error) = file.as_ref().write_all(text.as_bytes()) {
            // Half a line would damage the next one too.
            file.set_len(*end)?;
            return Err(error);
        }
        *end += text.len() as u64;
        Ok(())
    }

    /// Returns once the lines of this process are on the disk. Lines can be appended meanwhile.
    pub(super) fn sync(&self) -> io::Result<()> {
        let own = self.own.lock().as_ref().map(|own| (Arc::clone(&own.file), own.path.clone()));
        let Some((file, path)) = own else { return Ok(()) };
        files::sync(&file, &path)?;
        if !self.is_named.load(Ordering::Acquire) {
            // The folder of the journal has the names of its database too.
            files::sync_folder(&self.folder)?;
            self.folder.parent().map_or(Ok(()), files::sync_folder)?;
            self.is_named.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// The contents of all files.
    fn files(&self) -> Vec<SentFile> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let read = |entry: fs::DirEntry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let changed = entry.metadata().ok().and_then(|metadata| metadata.modified().ok());
            let changed = changed.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            let changed =
                changed.map_or(u64::MAX, |at| u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
            match fs::read(entry.path()) {
                Ok(bytes) => Some(SentFile::new(name, &bytes, changed)),
                // Another process has removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(_) => {
                    let damaged = vec![Vec::new()];
                    Some(SentFile { name, lines: Vec::new(), damaged, changed })
                }
            }
        };
        entries.flatten().filter_map(read).collect()
    }

    /// The lines of all files, as they are now. Whoever also uses the database locks it first.
    pub(super) fn index(&self) -> MutexGuard<'_, SentIndex> {
        let mut index = self.index.lock();
        index.refresh(&self.folder);
        index
    }

    /// Removes the lines of removed runs, and of runs before `oldest`, from the files of ended
    /// processes and of this process.
    pub(super) fn sweep(&self, own: Option<&str>, is_alive: impl Fn(&str) -> bool, oldest: u64) {
        // No thread of this process may append meanwhile.
        let mut open = self.own.lock();
        let files = self.files();
        let lines = || files.iter().flat_map(|file| &file.lines);
        let mut over: HashSet<&str> = HashSet::new();
        over.extend(lines().filter(|it| it.kind == SentKind::Removed).map(|it| it.run.as_str()));
        let old = |it: &&SentLine| it.kind == SentKind::Began && it.number < oldest;
        over.extend(lines().filter(old).map(|it| it.run.as_str()));
        let (theirs, mut ours): (Vec<_>, Vec<_>) =
            files.iter().partition(|it| Some(it.name.as_str()) != own && is_alive(&it.name));
        // That a run was removed must be known as long as another file has something about it.
        let elsewhere: HashSet<&str> =
            theirs.iter().flat_map(|file| &file.lines).map(|line| line.run.as_str()).collect();
        ours.sort_by_key(|file| Some(file.name.as_str()) == own);
        for SentFile { name, lines, damaged, changed } in ours {
            let keep = |line: &&SentLine| {
                let run = line.run.as_str();
                !over.contains(run) || elsewhere.contains(run)
            };
            let kept: Vec<&SentLine> = lines.iter().filter(keep).collect();
            // A damaged line stays as long as a run that it may be about.
            let is_recent = !kept.is_empty() || *changed >= oldest;
            let keep = |line: &&Vec<u8>| {
                is_recent && seems_about(line).is_none_or(|run| !over.contains(run))
            };
            let kept_damage: Vec<&Vec<u8>> = damaged.iter().filter(keep).collect();
            let is_whole = kept.len() == lines.len() && kept_damage.len() == damaged.len();
            if is_whole && !(lines.is_empty() && damaged.is_empty()) {
                continue;
            }
            let is_own = Some(name.as_str()) == own;
            let path = self.folder.join(name);
            let mut text: Vec<u8> =
                kept.into_iter().flat_map(|line| line.text().into_bytes()).collect();
            for line in kept_damage {
                text.extend_from_slice(line);
                text.push(b'\n');
            }
            // A file that cannot be replaced now is replaced the next time.
            if text.is_empty() && !is_own {
                let _ = fs::remove_file(&path);
            } else if files::replace_durably(&path, &text).is_ok() && is_own {
                *open = None;
            }
        }
    }
}

impl SentFile {
    fn new(name: String, bytes: &[u8], changed: u64) -> Self {
        let mut file = Self { name, lines: Vec::new(), damaged: Vec::new(), changed };
        for bytes in bytes.split(|byte| *byte == b'\n').filter(|bytes| !bytes.is_empty()) {
            match str::from_utf8(bytes).ok().and_then(SentLine::read) {
                Some(line) => file.lines.push(line),
                None => file.damaged.push(bytes.to_owned()),
            }
        }
        file
    }
}

/// The run of a damaged line, if the rest has the form of exactly one line.
pub(super) fn seems_about(line: &[u8]) -> Option<&str> {
    let fields: Vec<&str> = str::from_utf8(line).ok()?.split('\t').collect();
    let [sum, letter, run, _, key, _] = fields[..] else { return None };
    let is_one = sum.len() == 8 && letter.len() == 1 && matches!(key.len(), 0 | 16);
    is_one.then_some(run)
}

impl SentKind {
    fn letter(self) -> &'static str {
        match self {
            Self::Began => "b",
            Self::Sent => "s",
            Self::Forgotten => "f",
            Self::Removed => "r",
        }
    }
}

impl SentLine {
    /// About a run as a whole.
    pub(super) fn of_run(kind: SentKind, run: &str, number: u64) -> Self {
        Self { kind, run: run.to_owned(), number, key: String::new(), tool: String::new() }
    }

    pub(super) fn text(&self) -> String {
        let Self { kind, run, number, key, tool } = self;
        let tool = tool.replace(char::is_control, " ");
        let text = format!("{}\t{run}\t{number}\t{key}\t{tool}", kind.letter());
        format!("{}\t{text}\n", checksum(&text))
    }

    /// `None` if it is damaged.
    pub(super) fn read(line: &str) -> Option<Self> {
        let (sum, text) = line.split_once('\t')?;
        let mut parts = (sum == checksum(text)).then(|| text.splitn(5, '\t'))?;
        let kinds = [SentKind::Began, SentKind::Sent, SentKind::Forgotten, SentKind::Removed];
        let letter = parts.next()?;
        let kind = kinds.into_iter().find(|kind| kind.letter() == letter)?;
        let mut text = || Some(parts.next()?.to_owned());
        Some(Self {
            kind,
            run: text()?,
            number: text()?.parse().ok()?,
            key: text()?,
            tool: text()?,
        })
    }
}

fn checksum(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..8].to_owned()
}
