//! Reads the newest records first, and no more of the files than is wanted.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    ops::ControlFlow,
    path::Path,
};

use super::{
    NumberedRecord,
    chain::{AuditLine, LONGEST, put_aside},
};

type BackwardVisitor<'s> = &'s mut dyn FnMut(NumberedRecord) -> ControlFlow<()>;

/// How much is read at once.
const BLOCK: u64 = 64 * 1024;

/// Calls `seen` with the records before a number, the newest first, until it breaks.
pub(super) fn read(path: &Path, before: Option<u64>, seen: BackwardVisitor<'_>) -> io::Result<()> {
    // The newest file first: if it is put aside meanwhile, its lines are seen twice, which the numbers show.
    let mut last = before;
    let mut names = vec![path.to_owned()];
    match put_aside(path) {
        Ok(aside) => names.extend(aside.into_iter().rev().map(|(_, path)| path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    for name in names {
        let file = match File::open(&name) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if file_backwards(file, &mut last, seen)?.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

/// The lines of one file. `last` is the number of the record that was seen last.
fn file_backwards(
    mut file: File,
    last: &mut Option<u64>,
    seen: BackwardVisitor<'_>,
) -> io::Result<ControlFlow<()>> {
    let mut left = file.metadata()?.len();
    // The end of a line whose beginning is not read yet.
    let mut rest: Vec<u8> = Vec::new();
    while left > 0 {
        let size = left.min(BLOCK);
        left -= size;
        file.seek(SeekFrom::Start(left))?;
        let mut block = Vec::new();
        file.by_ref().take(size).read_to_end(&mut block)?;
        block.extend_from_slice(&rest);
        let first = if left == 0 {
            0
        } else {
            block.iter().position(|byte| *byte == b'\n').map_or(block.len(), |at| at + 1)
        };
        for line in block[first..].split(|byte| *byte == b'\n').rev() {
            let Ok(AuditLine { number, time, record, .. }) = serde_json::from_slice(line) else {
                continue;
            };
            if last.is_some_and(|last| number >= last) {
                continue;
            }
            *last = Some(number);
            if seen(NumberedRecord { number, time, record }).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        block.truncate(first);
        rest = block;
        // No line is so long: what is here is no log.
        if rest.len() as u64 > LONGEST {
            rest.clear();
        }
    }
    Ok(ControlFlow::Continue(()))
}
