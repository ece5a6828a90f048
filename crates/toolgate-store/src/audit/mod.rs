//! Every decision and call, in a chain that shows where a line is missing.
//!
//! A file of JSON lines that is only appended to. Each line holds the hash of the one before it and
//! its own, so that a line that was changed, removed or put in breaks the chain at its place; how
//! far the chain goes is kept in a file beside it, so that a missing end shows too. Who can write both
//! files can of course write a new chain: for that, copies are to be kept elsewhere (`export`).

#[cfg(test)]
mod tests;

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::files;

/// What was decided and done. What is not known, or does not apply, is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AuditRecord {
    /// What happened: `call`, `approval`, `grant`, `login`, `server`.
    pub kind: String,
    /// Who asked for it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub caller: String,
    /// The conversation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub session: String,
    /// The run of a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The tool, by its exposed name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// The server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// `allow`, `ask`, `deny`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub verdict: String,
    /// The rule, grant or answer that decided.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// The hash of the arguments.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub arguments_hash: String,
    /// The arguments themselves, where that was asked for, with secrets taken out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<serde_json::Value>,
    /// Bytes of the arguments.
    pub argument_bytes: u64,
    /// Bytes of the result.
    pub result_bytes: u64,
    /// How long it took, in microseconds.
    pub duration: u64,
    /// `ok`, `error`, `refused`, `unknown`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub outcome: String,
}

/// The log. Clones are the same log.
#[derive(Debug, Clone)]
pub struct AuditLog {
    path: PathBuf,
    open: Arc<Mutex<Option<Open>>>,
}

/// The log could not be read or written. What is in it is still there.
#[derive(Debug, Error)]
#[error("the audit log {path} cannot be used: {source}")]
pub struct AuditError {
    path: PathBuf,
    source: io::Error,
}

/// Something that is wrong with the chain.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AuditProblem {
    /// A line that is none.
    #[error("line {line} cannot be read")]
    Unreadable {
        /// From 1.
        line: u64,
    },
    /// A line that was changed.
    #[error("line {line} was changed: its hash is not its own")]
    Changed {
        /// From 1.
        line: u64,
    },
    /// A line that does not follow the one before it.
    #[error("before line {line} something is missing, or was put in: it follows another line")]
    Broken {
        /// From 1.
        line: u64,
    },
    /// The end is missing.
    #[error("the log ends at number {found}, but went on to number {expected}")]
    Cut {
        /// The last number that is there.
        found: u64,
        /// The last number that was written.
        expected: u64,
    },
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    number: u64,
    /// Milliseconds since 1970.
    time: u64,
    before: String,
    #[serde(flatten)]
    record: AuditRecord,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    hash: String,
}

/// What is open for writing.
#[derive(Debug)]
struct Open {
    file: File,
    head: File,
    /// What we know of the end: who else writes makes it longer.
    end: u64,
    number: u64,
    hash: String,
}

/// The end of a chain.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Head {
    number: u64,
    hash: String,
}

const FIRST: &str = "";
/// A line is not longer than this; what is longer is no line of ours.
const LONGEST: u64 = 4 * 1024 * 1024;

impl AuditLog {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, open: Arc::default() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a record.
    pub fn append(&self, record: &AuditRecord) -> Result<(), AuditError> {
        let mut open = self.open.lock();
        let appended = self.append_to(&mut open, record);
        if appended.is_err() {
            // The next one starts from what is really there.
            *open = None;
        }
        appended.map_err(|source| AuditError { path: self.path.clone(), source })
    }

    /// Looks at the whole chain, and gives `seen` each record with its time and whatever is wrong.
    pub fn read(
        &self,
        seen: &mut dyn FnMut(Result<(u64, AuditRecord), AuditProblem>),
    ) -> Result<(), AuditError> {
        self.read_all(seen).map_err(|source| AuditError { path: self.path.clone(), source })
    }

    fn append_to(&self, open: &mut Option<Open>, record: &AuditRecord) -> io::Result<()> {
        let open = match open {
            Some(open) => open,
            None => open.insert(self.open()?),
        };
        // Others may write, in other processes.
        open.file.lock()?;
        let appended = open.append(record);
        let unlocked = open.file.unlock();
        appended.and(unlocked)
    }

    fn open(&self) -> io::Result<Open> {
        if let Some(folder) = self.path.parent() {
            files::make_folder(folder).map_err(io::Error::other)?;
        }
        let file =
            files::private_options().read(true).append(true).create(true).open(&self.path)?;
        let head = self.path.with_extension("head");
        let head = files::private_options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(head)?;
        Ok(Open { file, head, end: u64::MAX, number: 0, hash: FIRST.to_owned() })
    }

    fn read_all(
        &self,
        seen: &mut dyn FnMut(Result<(u64, AuditRecord), AuditProblem>),
    ) -> io::Result<()> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        // No writer in the middle of it: the chain and its head belong together.
        file.lock_shared()?;
        let head = fs::read(self.path.with_extension("head")).unwrap_or_default();
        let head: Head = read_head(&head);
        let mut reader = BufReader::new(&file);
        let (mut before, mut number, mut at) = (FIRST.to_owned(), 0, 0);
        let mut text = Vec::new();
        loop {
            text.clear();
            if reader.by_ref().take(LONGEST).read_until(b'\n', &mut text)? == 0 {
                break;
            }
            at += 1;
            let Ok(line) = serde_json::from_slice::<Line>(&text) else {
                seen(Err(AuditProblem::Unreadable { line: at }));
                continue;
            };
            if line.hash != digest(&line) {
                seen(Err(AuditProblem::Changed { line: at }));
            }
            if line.before != before || (number > 0 && line.number != number + 1) {
                seen(Err(AuditProblem::Broken { line: at }));
            }
            (before, number) = (line.hash, line.number);
            seen(Ok((line.time, line.record)));
        }
        if head.number > number {
            seen(Err(AuditProblem::Cut { found: number, expected: head.number }));
        }
        file.unlock()
    }
}

impl Open {
    fn append(&mut self, record: &AuditRecord) -> io::Result<()> {
        let end = self.file.seek(SeekFrom::End(0))?;
        if end != self.end {
            self.catch_up(end)?;
        }
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let mut line = Line {
            number: self.number + 1,
            time: u64::try_from(time).unwrap_or(u64::MAX),
            before: self.hash.clone(),
            record: record.clone(),
            hash: String::new(),
        };
        line.hash = digest(&line);
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        self.file.write_all(&text)?;
        self.end = end + u64::try_from(text.len()).unwrap_or_default();
        (self.number, self.hash) = (line.number, line.hash);
        self.write_head()
    }

    /// Reads the last line, which somebody else wrote.
    fn catch_up(&mut self, end: u64) -> io::Result<()> {
        (self.number, self.hash) = (0, FIRST.to_owned());
        let mut size = 4096_u64;
        loop {
            let start = end.saturating_sub(size);
            self.file.seek(SeekFrom::Start(start))?;
            let mut tail = Vec::new();
            Read::by_ref(&mut self.file).take(end - start).read_to_end(&mut tail)?;
            let whole = tail.strip_suffix(b"\n");
            let lines = whole.unwrap_or(&tail);
            let last = lines.iter().rposition(|byte| *byte == b'\n').map(|at| &lines[at + 1..]);
            match last.or((start == 0).then_some(lines)) {
                Some(last) => {
                    if let Ok(line) = serde_json::from_slice::<Line>(last) {
                        (self.number, self.hash) = (line.number, line.hash);
                    }
                    if whole.is_none() && !tail.is_empty() {
                        // Half a line, of a process that was killed: what follows is a line of its own.
                        self.file.write_all(b"\n")?;
                    }
                    break;
                }
                None if size > LONGEST => break,
                None => size *= 8,
            }
        }
        // What was cut off at the end must not be forgotten by writing on.
        let mut head = Vec::new();
        self.head.seek(SeekFrom::Start(0))?;
        self.head.read_to_end(&mut head)?;
        self.number = self.number.max(read_head(&head).number);
        self.file.seek(SeekFrom::End(0)).map(drop)
    }

    fn write_head(&mut self) -> io::Result<()> {
        let head = format!("{{\"number\":{:>20},\"hash\":\"{}\"}}\n", self.number, self.hash);
        self.head.seek(SeekFrom::Start(0))?;
        self.head.write_all(head.as_bytes())
    }
}

fn read_head(text: &[u8]) -> Head {
    serde_json::from_slice(text).unwrap_or_default()
}

/// The hash of a line, which covers all of it but itself.
fn digest(line: &Line) -> String {
    let line = Line { hash: String::new(), ..line.clone() };
    let text = serde_json::to_vec(&line).unwrap_or_default();
    blake3::hash(&text).to_hex().to_string()
}
