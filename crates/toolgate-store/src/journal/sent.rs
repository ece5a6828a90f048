//! Lists the runs and the sent calls in files beside the database. They show what a damaged
//! database has lost, so that no call is repeated.
//!
//! Each process appends lines to its own file. A damaged line is skipped, because its content is in
//! the database too.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    io::{self, Write},
    path::PathBuf,
};

use parking_lot::Mutex;

use crate::files;

/// The files of all processes that use one journal.
#[derive(Debug)]
pub(super) struct SentLog {
    folder: PathBuf,
    own: Mutex<Option<(File, u64)>>,
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
        Self { folder, own: Mutex::default() }
    }

    /// Appends to the file of this process, which is named `life`.
    pub(super) fn append(&self, life: &str, line: &SentLine) -> io::Result<()> {
        let mut own = self.own.lock();
        let (file, end) = match &mut *own {
            Some(own) => own,
            none => {
                files::make_folder(&self.folder).map_err(io::Error::other)?;
                let path = self.folder.join(life);
                let file = files::private_options().append(true).create(true).open(path)?;
                let end = file.metadata()?.len();
                none.insert((file, end))
            }
        };
        let text = line.text();
        if let Err(error) = file.write_all(text.as_bytes()) {
            // Half a line would damage the next one too.
            file.set_len(*end)?;
            return Err(error);
        }
        *end += text.len() as u64;
        Ok(())
    }

    /// All lines of all files, by the names of the files.
    fn files(&self) -> Vec<(String, Vec<SentLine>)> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let read = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            let text = String::from_utf8_lossy(&fs::read(entry.path()).ok()?).into_owned();
            Some((name, text.lines().filter_map(SentLine::read).collect()))
        };
        entries.flatten().filter_map(read).collect()
    }

    /// All lines about one run.
    pub(super) fn of_run(&self, run: &str) -> Vec<SentLine> {
        let lines = self.files().into_iter().flat_map(|(_, lines)| lines);
        lines.filter(|line| line.run == run).collect()
    }

    /// The runs that began and were not removed, with the time of their beginning.
    pub(super) fn runs(&self) -> HashMap<String, u64> {
        let (mut began, mut removed) = (HashMap::new(), HashSet::new());
        for line in self.files().into_iter().flat_map(|(_, lines)| lines) {
            match line.kind {
                SentKind::Began => drop(began.insert(line.run, line.number)),
                SentKind::Removed => drop(removed.insert(line.run)),
                SentKind::Sent | SentKind::Forgotten => {}
            }
        }
        began.retain(|run, _| !removed.contains(run));
        began
    }

    /// Removes the lines of removed runs, and of runs before `oldest`, from the files of ended
    /// processes and of this process.
    pub(super) fn sweep(&self, own: Option<&str>, is_alive: impl Fn(&str) -> bool, oldest: u64) {
        // No thread of this process may append meanwhile.
        let mut open = self.own.lock();
        let files = self.files();
        let lines = || files.iter().flat_map(|(_, lines)| lines);
        let mut over: HashSet<&str> = HashSet::new();
        over.extend(lines().filter(|it| it.kind == SentKind::Removed).map(|it| it.run.as_str()));
        let old = |it: &&SentLine| it.kind == SentKind::Began && it.number < oldest;
        over.extend(lines().filter(old).map(|it| it.run.as_str()));
        let (theirs, mut ours): (Vec<_>, Vec<_>) =
            files.iter().partition(|(name, _)| Some(name.as_str()) != own && is_alive(name));
        // That a run was removed must be known as long as another file has something about it.
        let elsewhere: HashSet<&str> =
            theirs.iter().flat_map(|(_, lines)| lines).map(|line| line.run.as_str()).collect();
        ours.sort_by_key(|(name, _)| Some(name.as_str()) == own);
        for (name, lines) in ours {
            let keep = |line: &&SentLine| {
                let run = line.run.as_str();
                !over.contains(run) || elsewhere.contains(run)
            };
            let kept: Vec<&SentLine> = lines.iter().filter(keep).collect();
            if kept.len() == lines.len() && !lines.is_empty() {
                continue;
            }
            let is_own = Some(name.as_str()) == own;
            let path = self.folder.join(name);
            let text: String = kept.into_iter().map(SentLine::text).collect();
            // A file that cannot be replaced now is replaced the next time.
            if text.is_empty() && !is_own {
                let _ = fs::remove_file(&path);
            } else if files::replace(&path, text.as_bytes()).is_ok() && is_own {
                *open = None;
            }
        }
    }
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

    fn text(&self) -> String {
        let Self { kind, run, number, key, tool } = self;
        let tool = tool.replace(char::is_control, " ");
        let text = format!("{}\t{run}\t{number}\t{key}\t{tool}", kind.letter());
        format!("{}\t{text}\n", checksum(&text))
    }

    /// `None` if it is damaged.
    fn read(line: &str) -> Option<Self> {
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
