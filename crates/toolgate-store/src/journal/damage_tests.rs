//! Cuts and flips at every page, in the manner of SQLite's own tests.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::*;

/// Effects of the run, and how far it got: the last one was sent, and not answered.
const EFFECTS: u64 = 24;
const REACHED: u64 = 18;

/// The effects of a run.
type Counts = Vec<u32>;

fn arguments(number: u64) -> String {
    // Long enough that the rows are on many pages.
    format!("{{\"id\":{number},\"note\":\"{}\"}}", "x".repeat(600))
}

fn make(journal: &JournalFile, number: u64, counts: &mut Counts) {
    let arguments = arguments(number);
    let decision = CallDecision {
        verdict: "allow",
        rule: "default",
        sent: true,
        once: true,
        flow: None,
        origin: None,
    };
    let decision = Some(decision);
    let new = NewCall { number, name: "write", arguments: &arguments, decision, lost: false };
    if journal.call_made("run_1", &new).and_then(|()| journal.sync()).is_ok() {
        counts[usize::try_from(number).unwrap()] += 1;
    }
}

/// Continues like a run. Returns the effects that count as done, and those that are unknown.
fn go_on(journal: &JournalFile, counts: &mut Counts) -> Option<(Vec<u64>, Vec<u64>)> {
    let history = journal.history("run_1").ok()?;
    let history = history.filter(|history| history.state != RunState::Damaged)?;
    if !journal.resume_run("run_1").ok()? {
        return None;
    }
    let (mut done, mut unknown) = (Vec::new(), Vec::new());
    let mut lost = history.lost;
    for number in 0..EFFECTS {
        let past = history.calls.iter().find(|call| call.number == number);
        let exact = lost.iter().position(|lost| lost.is(number, "write", &arguments(number)));
        if past.is_some_and(|past| past.outcome.is_some()) {
            done.push(number);
        } else if past.is_some_and(|past| past.sent) {
            unknown.push(number);
        } else if let Some(exact) = exact {
            lost.remove(exact);
            unknown.push(number);
        } else if lost.iter().any(|lost| lost.may_be("write")) {
            unknown.push(number);
        } else {
            make(journal, number, counts);
            done.push(number);
        }
    }
    Some((done, unknown))
}

/// The state folder of a killed process, and its effects. Half of them are in the database, half in
/// the write-ahead log.
fn killed(folder: &Path) -> Counts {
    let journal = JournalFile::open(&folder.join("journal.db")).unwrap();
    let mut counts = vec![0; usize::try_from(EFFECTS).unwrap()];
    let run = |id: &str| NewRun { id: id.to_owned(), ..super::tests::run("") };
    journal.begin_run(&run("run_other")).unwrap();
    journal.end_run("run_other", RunState::Done, "", None).unwrap();
    journal.begin_run(&run("run_1")).unwrap();
    for number in 0..REACHED {
        if number == REACHED / 2 {
            journal
                .with(|connection| {
                    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
                })
                .unwrap();
        }
        make(&journal, number, &mut counts);
        if number + 1 < REACHED {
            // Some are stored outside of their rows.
            let result = number.to_string().repeat(if number % 8 == 0 { 5_000 } else { 1 });
            journal.call_ended("run_1", number, number + 1, CallEnd::Returned(&result)).unwrap();
        }
    }
    // A process that is killed closes nothing: the files are copied while they are open.
    let copy = folder.with_file_name("killed");
    copy_all(folder, &copy);
    drop(journal);
    fs::remove_dir_all(folder).unwrap();
    fs::rename(copy, folder).unwrap();
    counts
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_all(&entry.path(), &target);
        } else if !entry.file_name().to_string_lossy().ends_with("-shm") {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Damages a copy of the state, and checks what a resumption does. Returns the number of unknown
/// effects; `None` if the run cannot resume.
fn after(original: &Path, counts: &Counts, damage: &dyn Fn(&Path)) -> Option<usize> {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("state");
    copy_all(original, &place);
    damage(&place);
    // A journal that cannot be opened does nothing.
    let journal = JournalFile::open(&place.join("journal.db")).ok()?;
    if let Ok(runs) = journal.runs(10) {
        let ids: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
        assert!(
            ids.contains(&"run_other") && ids.contains(&"run_1"),
            "a run has vanished: {ids:?}"
        );
    }
    let mut counts = counts.clone();
    let (done, unknown) = go_on(&journal, &mut counts)?;
    for number in 0..EFFECTS {
        let count = counts[usize::try_from(number).unwrap()];
        assert!(count <= 1, "effect {number} was done {count} times");
        assert!(unknown.contains(&number) || (done.contains(&number) && count == 1), "{number}");
    }
    Some(unknown.len())
}

#[test]
fn no_effect_is_repeated_whichever_page_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let counts = killed(&state);
    assert_eq!(after(&state, &counts, &|_| {}), Some(1), "the last one was under way");
    let (mut cases, mut went_on, mut unknown) = (0, 0, 0);
    let mut count = |outcome: Option<usize>| {
        cases += 1;
        went_on += usize::from(outcome.is_some());
        unknown += outcome.unwrap_or_default();
    };
    for (name, page, header) in [("journal.db-wal", 4_096 + 24, 32), ("journal.db", 4_096, 0)] {
        let length = usize::try_from(fs::metadata(state.join(name)).unwrap().len()).unwrap();
        assert!(length > 10 * page, "{name} has {length} bytes");
        for start in (header..length).step_by(page) {
            let change = |edit: &dyn Fn(&mut Vec<u8>)| {
                after(&state, &counts, &|place: &Path| {
                    let path: PathBuf = place.join(name);
                    let mut bytes = fs::read(&path).unwrap();
                    edit(&mut bytes);
                    fs::write(path, bytes).unwrap();
                })
            };
            count(change(&|bytes| bytes.truncate(start)));
            count(change(&|bytes| bytes.truncate((start + page / 2).min(length))));
            // The header of the page, its pointers, the middle, and the end, where rows begin.
            for at in [0, 3, 9, 200, page / 2, page - 700, page - 40] {
                let at = (start + at).min(length - 1);
                count(change(&|bytes| bytes[at] ^= 0x10));
            }
            count(change(&|bytes| bytes[start..(start + page).min(length)].fill(0)));
        }
    }
    assert!(cases > 300 && went_on > cases / 3 && unknown > went_on, "{cases} {went_on} {unknown}");
}

/// The state of a killed process, and the file of its sent calls.
fn killed_with_sent(folder: &Path) -> (PathBuf, Counts, PathBuf) {
    let state = folder.join("state");
    let counts = killed(&state);
    let sent = fs::read_dir(state.join("journal.sent")).unwrap().next().unwrap().unwrap();
    (state, counts, Path::new("journal.sent").join(sent.file_name()))
}

fn flip(path: &Path, at: usize, mask: u8) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= mask;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_line_of_journal_sent_is_explained_by_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let (state, counts, sent) = killed_with_sent(folder.path());
    let length = usize::try_from(fs::metadata(state.join(&sent)).unwrap().len()).unwrap();
    let mut explained = 0;
    for at in (0..length).step_by(7) {
        let outcome = after(&state, &counts, &|place| flip(&place.join(&sent), at, 0x04)).unwrap();
        explained += usize::from(outcome == 1);
    }
    // Not where the line no longer says which run it is about, or may be two lines.
    assert!(explained > length / 7 / 2, "{explained} of {}", length / 7);
}

/// The write-ahead log is cut, and each byte of the last lines of `journal.sent` is changed.
#[test]
fn a_damaged_line_of_journal_sent_is_a_call_of_unknown_outcome() {
    let folder = tempfile::tempdir().unwrap();
    let (state, counts, sent) = killed_with_sent(folder.path());
    let length = usize::try_from(fs::metadata(state.join(&sent)).unwrap().len()).unwrap();
    let log = usize::try_from(fs::metadata(state.join("journal.db-wal")).unwrap().len()).unwrap();
    for cut in [0, log / 2] {
        for at in length - 160..length {
            after(&state, &counts, &|place| {
                let log = fs::File::options().write(true).open(place.join("journal.db-wal"));
                log.unwrap().set_len(cut as u64).unwrap();
                flip(&place.join(&sent), at, 1 << (at % 8));
            });
        }
    }
}

#[test]
fn a_person_can_decide_about_a_damaged_line() {
    let folder = tempfile::tempdir().unwrap();
    let (state, _, sent) = killed_with_sent(folder.path());
    fs::write(state.join("journal.db-wal"), "").unwrap();
    let length = usize::try_from(fs::metadata(state.join(&sent)).unwrap().len()).unwrap();
    // The line break between the last two lines.
    let text = fs::read(state.join(&sent)).unwrap();
    let at = text[..length - 1].iter().rposition(|byte| *byte == b'\n').unwrap();
    flip(&state.join(&sent), at, 0x20);
    let journal = JournalFile::open(&state.join("journal.db")).unwrap();
    let lost = || journal.history("run_1").unwrap().unwrap().lost;
    assert!(lost().iter().any(LostCall::is_any), "{:?}", lost());
    let any = |lost: &LostCall| lost.may_be("another tool");
    assert!(lost().iter().any(any), "it may have been any call");
    // What is damaged stays so when old runs are removed.
    journal.prune(Retention::default()).unwrap();
    assert!(lost().iter().any(any));
    journal.forget_lost("run_1").unwrap();
    assert_eq!(lost(), []);
}

#[test]
fn a_person_can_repeat_lost_calls() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    killed(&state);
    let log = state.join("journal.db-wal");
    fs::write(&log, "").unwrap();
    let journal = JournalFile::open(&state.join("journal.db")).unwrap();
    let lost = |journal: &JournalFile| journal.history("run_1").unwrap().unwrap().lost.len() as u64;
    assert_eq!(lost(&journal), REACHED / 2);
    let detail = journal.run("run_1").unwrap().unwrap();
    let unknown = detail.calls.iter().filter(|call| call.unknown && call.name == "write").count();
    assert_eq!(unknown as u64, REACHED / 2, "they are shown");
    journal.forget_lost("run_1").unwrap();
    assert_eq!(lost(&journal), 0);
    // A run that is pruned leaves nothing.
    journal.prune(Retention { runs: 0, ..Retention::default() }).unwrap();
    assert_eq!(journal.runs(10).unwrap(), []);
    assert!(!journal.is_lost("run_1"));
}

#[test]
fn a_run_whose_end_cannot_be_written_does_not_count_as_running() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = JournalFile::open(&path).unwrap();
    for id in ["r1", "r2"] {
        journal.begin_run(&super::tests::run(id)).unwrap();
    }
    let full = |on: &str| {
        journal
            .with(|connection| connection.execute_batch(&format!("PRAGMA query_only = {on}")))
            .unwrap();
    };
    full("ON");
    assert!(journal.end_run("r1", RunState::Done, "out", None).is_err());
    let other = JournalFile::open(&path).unwrap();
    assert!(!other.is_running("r1").unwrap() && other.is_running("r2").unwrap());
    full("OFF");
    // The next thing that is written brings it along.
    journal.time_told("r2", 1).unwrap();
    let detail = other.run("r1").unwrap().unwrap();
    assert_eq!((detail.summary.state, detail.output.as_str()), (RunState::Done, "out"));
    assert!(other.is_running("r2").unwrap());
}
