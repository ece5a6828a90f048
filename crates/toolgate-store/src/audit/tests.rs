use std::{fs, io::Write};

use super::*;
use crate::files;

fn record(tool: &str) -> AuditRecord {
    AuditRecord {
        kind: "call".into(),
        tool: tool.into(),
        argument_bytes: 7,
        ..AuditRecord::default()
    }
}

fn line(line: u64) -> AuditPosition {
    AuditPosition { file: "audit.jsonl".to_owned(), line }
}

fn seen(log: &AuditFile) -> (Vec<String>, Vec<AuditProblem>) {
    let (mut tools, mut problems) = (Vec::new(), Vec::new());
    log.read(&mut |line| match line {
        Ok((_, record)) => tools.push(record.tool),
        Err(problem) => problems.push(problem),
    })
    .unwrap();
    (tools, problems)
}

fn log_of(tools: &[&str]) -> (tempfile::TempDir, AuditFile) {
    let folder = tempfile::tempdir().unwrap();
    let log = AuditFile::new(folder.path().join("audit").join("audit.jsonl"));
    for tool in tools {
        log.append(&record(tool)).unwrap();
    }
    (folder, log)
}

#[test]
fn what_was_appended_is_read_and_in_order() {
    let (_folder, log) = log_of(&["a", "b", "c"]);
    // Another process, which knows nothing of the first.
    AuditFile::new(log.path().to_owned()).append(&record("d")).unwrap();
    log.append(&record("e")).unwrap();
    let (tools, problems) = seen(&log);
    assert_eq!(tools, ["a", "b", "c", "d", "e"]);
    assert_eq!(problems, []);
}

#[test]
fn every_change_of_a_line_is_found() {
    let change = |edit: &dyn Fn(&mut Vec<String>)| {
        let (_folder, log) = log_of(&["a", "b", "c", "d"]);
        let text = fs::read_to_string(log.path()).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        edit(&mut lines);
        fs::write(log.path(), lines.join("\n") + "\n").unwrap();
        seen(&log).1
    };
    assert_eq!(change(&|lines| drop(lines.remove(1))), [AuditProblem::Broken(line(2))]);
    assert_eq!(change(&|lines| drop(lines.pop())), [AuditProblem::Cut { found: 3, expected: 4 }]);
    assert_eq!(change(&|lines| lines.swap(1, 2)).len(), 3);
    let changed = change(&|lines| lines[2] = lines[2].replace("\"c\"", "\"x\""));
    assert_eq!(changed, [AuditProblem::Changed(line(3))]);
    assert_eq!(change(&|lines| lines[0] = "{".into())[0], AuditProblem::Unreadable(line(1)));
    // Something that was never there, too.
    let added = change(&|lines| lines[2] = lines[2].replace("\"tool\"", "\"x\":1,\"tool\""));
    assert_eq!(added, [AuditProblem::Changed(line(3))]);
    let first = change(&|lines| drop(lines.remove(0)));
    assert_eq!(first, [AuditProblem::StartMissing { found: 2, expected: 1 }]);
    let repeated = change(&|lines| lines.insert(1, lines[0].clone()));
    assert_eq!(repeated[0], AuditProblem::Broken(line(2)));
}

#[test]
fn a_truncated_log_is_reported_after_further_writes() {
    let (_folder, log) = log_of(&["a", "b", "c"]);
    let text = fs::read_to_string(log.path()).unwrap();
    let shorter: Vec<&str> = text.lines().take(2).collect();
    fs::write(log.path(), shorter.join("\n") + "\n").unwrap();
    AuditFile::new(log.path().to_owned()).append(&record("d")).unwrap();
    assert_eq!(seen(&log).1, [AuditProblem::Broken(line(3))]);
}

#[test]
fn half_a_line_is_reported_and_affects_no_other_line() {
    let (_folder, log) = log_of(&["a"]);
    let mut file = files::private_options().append(true).open(log.path()).unwrap();
    file.write_all(b"{\"number\":2,\"ti").unwrap();
    AuditFile::new(log.path().to_owned()).append(&record("b")).unwrap();
    let (tools, problems) = seen(&log);
    assert_eq!(tools, ["a", "b"]);
    assert_eq!(problems[0], AuditProblem::Unreadable(line(2)));
}

#[test]
fn many_writers_make_one_chain() {
    let (_folder, log) = log_of(&[]);
    let path = log.path().to_owned();
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let log = AuditFile::new(path.clone());
            std::thread::spawn(move || (0..50).for_each(|_| log.append(&record("t")).unwrap()))
        })
        .collect();
    for writer in writers {
        writer.join().unwrap();
    }
    let (tools, problems) = seen(&log);
    assert_eq!((tools.len(), problems), (200, Vec::new()));
}

/// Each line is longer than a file may be, so every line except the first begins a new file.
fn tiny(log: &AuditFile, files: usize) -> AuditFile {
    AuditFile::new(log.path().to_owned()).with_limits(AuditLimits { file_bytes: 1, files, days: 0 })
}

fn aside(log: &AuditFile) -> Vec<std::path::PathBuf> {
    chain::put_aside(log.path()).unwrap().into_iter().map(|(_, path)| path).collect()
}

#[test]
fn the_chain_continues_in_the_next_file() {
    let (_folder, log) = log_of(&[]);
    let (one, other) = (tiny(&log, 10), tiny(&log, 10));
    for tool in ["a", "b", "c", "d"] {
        one.append(&record(tool)).unwrap();
        // Another process whose file was renamed by the first.
        other.append(&record(tool)).unwrap();
    }
    let (tools, problems) = seen(&log);
    assert_eq!(tools.concat(), "aabbccdd");
    assert_eq!(problems, []);
    assert_eq!(aside(&log).len(), 7);
    let extent = log.read(&mut |_| {}).unwrap();
    assert_eq!((extent.first.unwrap().0, extent.lines, extent.files), (1, 8, 8));
    // A missing file is reported, wherever it was.
    fs::remove_file(&aside(&log)[3]).unwrap();
    let gone = aside(&log)[3].file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(seen(&log).1, [AuditProblem::Broken(AuditPosition { file: gone, line: 1 })]);
    fs::remove_file(&aside(&log)[0]).unwrap();
    assert_eq!(seen(&log).1[0], AuditProblem::StartMissing { found: 2, expected: 1 });
}

#[test]
fn removed_old_files_are_no_gap() {
    let (_folder, log) = log_of(&[]);
    let tiny = tiny(&log, 2);
    for number in 0..6 {
        tiny.append(&record(&number.to_string())).unwrap();
    }
    let (tools, problems) = seen(&log);
    assert_eq!((tools.concat().as_str(), problems), ("345", Vec::new()));
    assert_eq!(log.read(&mut |_| {}).unwrap().first.unwrap().0, 4);
    // A file that somebody else removed is a gap.
    fs::remove_file(&aside(&log)[0]).unwrap();
    assert_eq!(seen(&log).1, [AuditProblem::StartMissing { found: 5, expected: 4 }]);
}

#[test]
fn old_files_are_removed_by_their_age() {
    let (_folder, log) = log_of(&[]);
    let limits = AuditLimits { file_bytes: 1, files: 100, days: 2 };
    let aging = AuditFile::new(log.path().to_owned()).with_limits(limits);
    for number in 0..4 {
        aging.append(&record(&number.to_string())).unwrap();
    }
    let days_ago = |days: u32| {
        std::time::SystemTime::now().checked_sub(Duration::from_hours(24) * days).unwrap()
    };
    for (path, days) in aside(&log).iter().zip([9, 3, 1]) {
        fs::File::options().append(true).open(path).unwrap().set_modified(days_ago(days)).unwrap();
    }
    aging.append(&record("4")).unwrap();
    let (tools, problems) = seen(&log);
    assert_eq!((tools.concat().as_str(), problems), ("234", Vec::new()));
}

#[test]
fn a_missing_file_is_reported_after_further_writes() {
    let (_folder, log) = log_of(&["a", "b"]);
    fs::remove_file(log.path()).unwrap();
    AuditFile::new(log.path().to_owned()).append(&record("c")).unwrap();
    assert_eq!(seen(&log).1, [AuditProblem::StartMissing { found: 3, expected: 1 }]);
}

#[test]
fn rotation_with_many_writers_loses_nothing() {
    let (_folder, log) = log_of(&[]);
    let path = log.path().to_owned();
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let limits = AuditLimits { file_bytes: 2_000, files: 400, days: 0 };
            let log = AuditFile::new(path.clone()).with_limits(limits);
            let batch = [record("t"), record("u")];
            std::thread::spawn(move || (0..40).for_each(|_| log.append_all(&batch).unwrap()))
        })
        .collect();
    for writer in writers {
        writer.join().unwrap();
    }
    let (tools, problems) = seen(&log);
    assert_eq!((tools.len(), problems), (320, Vec::new()));
    assert!(aside(&log).len() > 10);
}

#[test]
fn a_missing_head_file_is_reported_after_further_writes() {
    for remove in [true, false] {
        let (_folder, log) = log_of(&["a", "b", "c"]);
        let text = fs::read_to_string(log.path()).unwrap();
        let shorter: Vec<&str> = text.lines().take(2).collect();
        fs::write(log.path(), shorter.join("\n") + "\n").unwrap();
        let head = chain::head_path(log.path());
        if remove {
            fs::remove_file(head).unwrap();
        } else {
            fs::write(head, "").unwrap();
        }
        assert_eq!(seen(&log).1, [AuditProblem::HeadMissing]);
        let another = AuditFile::new(log.path().to_owned());
        another.append(&record("d")).unwrap();
        another.append(&record("e")).unwrap();
        assert_eq!(seen(&log).1, [AuditProblem::Broken(line(3))]);
    }
    let (_folder, log) = log_of(&[]);
    assert_eq!(seen(&log), (Vec::new(), Vec::new()));
}

/// Limits the size of files to a few lines, in a separate process.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_no_half_line() {
    const PLACE: &str = "TOOLGATE_TEST_FULL_DISK";
    if let Some(path) = std::env::var_os(PLACE) {
        let log = AuditFile::new(path.into());
        let failed = (0..100).filter(|_| log.append(&record("a")).is_err()).count() as u64;
        assert!(failed > 0, "it is never full");
        assert_eq!(log.unrecorded(), failed);
        return;
    }
    let (_folder, log) = log_of(&["first"]);
    let status = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 2; exec \"$0\" a_full_disk_leaves_no_half_line"])
        .arg(std::env::current_exe().unwrap())
        .env(PLACE, log.path())
        .status()
        .unwrap();
    assert!(status.success());
    assert!(fs::read(log.path()).unwrap().ends_with(b"\n"));
    // The other process has ended, and the number of its lost records is known.
    let written = seen(&log).0.len() as u64 - 1;
    let count = 100 - written;
    assert_eq!(seen(&log).1, [AuditProblem::UnwrittenEnd(count)]);
    assert_eq!(AuditFile::new(log.path().to_owned()).unrecorded(), count);
    log.append(&record("last")).unwrap();
    let (tools, problems) = seen(&log);
    assert_eq!(tools.last().unwrap().as_str(), "last");
    let position = line(written + 2);
    assert_eq!(
        problems,
        [AuditProblem::Unwritten { position, count }],
        "for as long as it is kept"
    );
    assert_eq!(log.unrecorded(), count);
}

#[test]
fn a_missing_folder_of_the_log_is_reported() {
    let (_folder, log) = log_of(&["a"]);
    fs::remove_dir_all(log.path().parent().unwrap()).unwrap();
    assert_eq!(seen(&log).1, [AuditProblem::Gone]);
    // A new one does not hide it.
    AuditFile::new(log.path().to_owned()).append(&record("b")).unwrap();
    assert_eq!(seen(&log).1, [AuditProblem::Broken(line(1))]);
}

/// The disk is full before the first line: files can be made, and nothing can be written to them.
#[cfg(unix)]
#[test]
fn a_disk_that_is_full_before_the_first_line_leaves_a_mark() {
    const PLACE: &str = "TOOLGATE_TEST_FULL_FROM_THE_START";
    if let Some(path) = std::env::var_os(PLACE) {
        let log = AuditFile::new(path.into());
        let before = log.unrecorded();
        assert!((0..20).all(|_| log.append(&record("a")).is_err()));
        assert_eq!(log.unrecorded(), before + 20);
        return;
    }
    let (_folder, log) = log_of(&[]);
    for count in [20, 40] {
        let test = "a_disk_that_is_full_before_the_first_line_leaves_a_mark";
        let status = std::process::Command::new("sh")
            .args(["-c", &format!("trap '' XFSZ; ulimit -f 0; exec \"$0\" {test}")])
            .arg(std::env::current_exe().unwrap())
            .env(PLACE, log.path())
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        assert_eq!(seen(&log), (Vec::new(), vec![AuditProblem::UnwrittenEnd(count)]));
        let now = AuditFile::new(log.path().to_owned());
        assert_eq!(now.unrecorded(), count);
        // Not beside that number also "it is not known how many".
        assert_eq!(now.damage(), None);
    }
    // The disk has space again, and the first line says what is missing.
    log.append(&record("b")).unwrap();
    let unwritten = AuditProblem::Unwritten { position: line(1), count: 40 };
    assert_eq!(seen(&log).1, std::slice::from_ref(&unwritten));
    assert_eq!(log.unrecorded(), 40);
    log.append(&record("c")).unwrap();
    assert_eq!(seen(&log).1, [unwritten]);
    assert_eq!(unwritten::all(log.path()), []);
}

#[test]
fn a_process_that_can_write_again_counts_its_own_records_once() {
    let (_folder, log) = log_of(&["a"]);
    let (head, aside) = (chain::head_path(log.path()), log.path().with_file_name("aside"));
    // Nothing can be opened in place of the head file, so that only the mark can count.
    let other = AuditFile::new(log.path().to_owned());
    fs::rename(&head, &aside).unwrap();
    fs::create_dir(&head).unwrap();
    for _ in 0..3 {
        assert!(other.append(&record("b")).is_err());
    }
    fs::remove_dir(&head).unwrap();
    fs::rename(&aside, &head).unwrap();
    assert_eq!((other.unrecorded(), log.unrecorded()), (3, 3));
    assert_eq!(seen(&log).1, [AuditProblem::UnwrittenEnd(3)]);
    // Another process reports them. The one that lost them does not do it again.
    AuditFile::new(log.path().to_owned()).append(&record("c")).unwrap();
    other.append(&record("d")).unwrap();
    let unwritten = AuditProblem::Unwritten { position: line(2), count: 3 };
    assert_eq!(seen(&log).1, [unwritten]);
    assert_eq!((other.unrecorded(), log.unrecorded()), (3, 3));
}

/// Without a free inode the next file cannot be made, and no mark either. The head file counts.
#[test]
fn records_are_counted_if_the_next_file_cannot_be_made() {
    let (_folder, log) = log_of(&["a"]);
    let aside = log.path().with_file_name("aside");
    fs::rename(log.path(), &aside).unwrap();
    fs::create_dir(log.path()).unwrap();
    let other = AuditFile::new(log.path().to_owned());
    for count in 1..=3 {
        assert!(other.append(&record("b")).is_err());
        assert_eq!(unwritten::all(log.path()), [], "no file was needed");
        assert_eq!(AuditFile::new(log.path().to_owned()).unrecorded(), count);
    }
    fs::remove_dir(log.path()).unwrap();
    fs::rename(&aside, log.path()).unwrap();
    assert_eq!(seen(&log).1, [AuditProblem::UnwrittenEnd(3)]);
}

/// What a gateway makes at its start is enough to count without a free inode.
#[test]
fn records_are_counted_if_no_file_can_be_made_after_the_start() {
    let (_folder, log) = log_of(&[]);
    log.prepare().unwrap();
    assert_eq!((seen(&log), log.damage()), ((Vec::new(), Vec::new()), None), "nothing is missing");
    fs::create_dir(log.path()).unwrap();
    for count in 1..=3 {
        assert!(log.append(&record("b")).is_err());
        assert_eq!(unwritten::all(log.path()), [], "no file was needed");
        assert_eq!(AuditFile::new(log.path().to_owned()).unrecorded(), count);
    }
    fs::remove_dir(log.path()).unwrap();
    assert_eq!(seen(&log).1, [AuditProblem::UnwrittenEnd(3)]);
    // Nor does it hide that there was a log.
    log.append(&record("c")).unwrap();
    fs::remove_dir_all(log.path().parent().unwrap()).unwrap();
    AuditFile::new(log.path().to_owned()).prepare().unwrap();
    assert_eq!(seen(&log).1, [AuditProblem::Gone]);
}

#[test]
fn empty_files_of_a_log_are_reported() {
    let (_folder, log) = log_of(&[]);
    files::make_folder(log.path().parent().unwrap()).unwrap();
    fs::write(chain::head_path(log.path()), "").unwrap();
    fs::write(log.path(), "").unwrap();
    assert_eq!(seen(&log).1, [AuditProblem::NeverWritten]);
    assert_eq!(log.damage(), Some(AuditProblem::NeverWritten));
}

#[test]
fn the_journal_shows_that_there_was_a_log() {
    let folder = tempfile::tempdir().unwrap();
    let store = crate::Store::new(folder.path());
    drop(store.journal().unwrap());
    let log = AuditFile::new(folder.path().join("audit").join("audit.jsonl"));
    assert_eq!((seen(&log).1, log.damage()), (Vec::new(), None), "there is only a journal");
    log.append(&record("a")).unwrap();
    drop(store.journal().unwrap());
    fs::remove_dir_all(folder.path().join("audit")).unwrap();
    fs::remove_file(folder.path().join("audit.began")).unwrap();
    let log = AuditFile::new(folder.path().join("audit").join("audit.jsonl"));
    assert_eq!(seen(&log).1, [AuditProblem::Gone]);
    assert_eq!(log.damage(), Some(AuditProblem::Gone));
    log.append(&record("b")).unwrap();
    assert_eq!(seen(&log).1, [AuditProblem::Broken(line(1))], "a new one does not hide it");
}
