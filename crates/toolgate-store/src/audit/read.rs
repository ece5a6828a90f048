//! Reads and verifies the whole chain.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
};

use super::{
    AuditExtent, AuditPosition, AuditProblem, AuditRecord,
    chain::{AuditLine, ChainHead, FIRST, LONGEST, head_path, put_aside, was_begun},
    unwritten,
};

type RecordVisitor<'s> = &'s mut dyn FnMut(Result<(u64, AuditRecord), AuditProblem>);

/// The files of the log at one moment.
struct Snapshot {
    head: Option<ChainHead>,
    /// Oldest first, with their names and how much of them there was.
    files: Vec<(String, File, u64)>,
}

/// Checks each line against the one before it.
struct ChainReader {
    before: Option<String>,
    number: u64,
    extent: AuditExtent,
}

pub(super) fn read(path: &Path, seen: RecordVisitor<'_>) -> io::Result<AuditExtent> {
    let Snapshot { head: found, files } = snapshot(path)?;
    let head = found.clone().unwrap_or_default();
    let mut walk = ChainReader { before: None, number: 0, extent: AuditExtent::default() };
    for (name, file, length) in files {
        walk.extent.files += 1;
        walk.file(&name, file.take(length), &head, seen)?;
    }
    let missing = head.missing.saturating_add(unwritten::count(path));
    if missing > 0 {
        seen(Err(AuditProblem::UnwrittenEnd(missing)));
    }
    if found.is_none()
        && let Some(problem) = without_head(path, walk.extent.lines > 0)
        && !(missing > 0 && problem == AuditProblem::NeverWritten)
    {
        seen(Err(problem));
    }
    if head.number > walk.number {
        seen(Err(AuditProblem::Cut { found: walk.number, expected: head.number }));
    }
    Ok(walk.extent)
}

/// What is wrong if there is no readable head file.
pub(super) fn without_head(path: &Path, has_lines: bool) -> Option<AuditProblem> {
    if has_lines {
        Some(AuditProblem::HeadMissing)
    } else if was_begun(path) {
        Some(AuditProblem::Gone)
    } else {
        path.parent().is_some_and(Path::exists).then_some(AuditProblem::NeverWritten)
    }
}

/// Opens all files while no process writes, so that the chain and its head match. Open files can be
/// read even if they are renamed.
fn snapshot(path: &Path) -> io::Result<Snapshot> {
    let head_file = match File::open(head_path(path)) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let mut text = Vec::new();
    if let Some(mut file) = head_file.as_ref() {
        file.lock_shared()?;
        file.read_to_end(&mut text)?;
    }
    let aside = match put_aside(path) {
        Ok(aside) => aside,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let paths = aside.into_iter().map(|(_, path)| path).chain([path.to_owned()]);
    let mut files = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match File::open(&path) {
            Ok(file) => {
                let length = file.metadata()?.len();
                files.push((name, file, length));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    // Closing the head file releases the lock.
    Ok(Snapshot { head: ChainHead::read(&text), files })
}

impl ChainReader {
    fn file(
        &mut self,
        name: &str,
        file: io::Take<File>,
        head: &ChainHead,
        seen: RecordVisitor<'_>,
    ) -> io::Result<()> {
        let mut reader = BufReader::new(file);
        let mut text = Vec::new();
        let mut at = 0;
        loop {
            text.clear();
            if reader.by_ref().take(LONGEST).read_until(b'\n', &mut text)? == 0 {
                return Ok(());
            }
            at += 1;
            let position = || AuditPosition { file: name.to_owned(), line: at };
            let Ok(line) = serde_json::from_slice::<AuditLine>(&text) else {
                seen(Err(AuditProblem::Unreadable(position())));
                continue;
            };
            if !line.is_own(&text) {
                seen(Err(AuditProblem::Changed(position())));
            }
            self.follow(&line, head, position, seen);
            (self.before, self.number) = (Some(line.hash), line.number);
            self.extent.lines += 1;
            if line.record.missing > 0 {
                let (position, count) = (position(), line.record.missing);
                seen(Err(AuditProblem::Unwritten { position, count }));
            }
            seen(Ok((line.time, line.record)));
        }
    }

    /// Whether a line continues the chain.
    fn follow(
        &mut self,
        line: &AuditLine,
        head: &ChainHead,
        position: impl Fn() -> AuditPosition,
        seen: RecordVisitor<'_>,
    ) {
        let follows = match &self.before {
            Some(before) => {
                line.before == *before && self.number.checked_add(1) == Some(line.number)
            }
            // Lines before the first one were removed.
            None => line.number > 1 || line.before == FIRST,
        };
        if self.extent.first.is_none() {
            self.extent.first = Some((line.number, line.time));
            let expected = head.from.max(1);
            if line.number > expected {
                seen(Err(AuditProblem::StartMissing { found: line.number, expected }));
            }
        }
        if !follows {
            seen(Err(AuditProblem::Broken(position())));
        }
    }
}
