use std::path::Path;

use super::*;

/// The log of a state folder.
fn log_in(folder: &Path) -> UsageFile {
    UsageFile::new(folder.join("usage").join("usage.jsonl"))
}

fn past(server: &str, tool: &str, query: &str, at: u64) -> PastUse {
    PastUse { at, ..PastUse::now(server, tool, query) }
}

fn queries(uses: &[PastUse]) -> Vec<&str> {
    uses.iter().map(|past| past.query.as_str()).collect()
}

#[test]
fn what_was_added_comes_back_merged_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let log = log_in(folder.path());
    assert!(log.read().is_empty());
    log.append(&[past("mail", "send", "write to Ada", 7), past("disk", "read", "open it", 5)])
        .unwrap();
    log.append(&[past("mail", "send", "write to Ada", 9)]).unwrap();
    let read = log.read();
    assert_eq!(queries(&read), ["open it", "write to Ada"]);
    assert_eq!((read[1].at, read[1].count), (9, 2));
}

#[test]
fn calls_of_no_use_are_counted_apart_and_callers_too() {
    let folder = tempfile::tempdir().unwrap();
    let log = log_in(folder.path());
    let good = past("s", "t", "query", 1);
    let bad = PastUse { count: 0, against: 1, ..good.clone() };
    let other = PastUse { caller: "bob".to_owned(), at: 2, ..good.clone() };
    log.append(&[good.clone(), bad, good, other.clone()]).unwrap();
    let read = log.read();
    assert_eq!((read[0].count, read[0].against), (2, 1), "{read:?}");
    assert_eq!(read[1], other);
}

#[test]
fn no_caller_pushes_out_the_entries_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let log = log_in(folder.path());
    let many = (0..5_000).map(|at| PastUse {
        caller: "mallory".to_owned(),
        ..past("s", &format!("t{at}"), "x", 10 + at)
    });
    log.append(&many.collect::<Vec<_>>()).unwrap();
    log.append(&[past("s", "mine", "y", 1)]).unwrap();
    let read = log.read();
    assert!(read.len() <= UsageFile::MAX_TOTAL);
    assert_eq!(read[0].tool, "mine");
}

#[test]
fn entries_that_cannot_be_stored_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let log = log_in(folder.path());
    log.append(&[past("s", &"t".repeat(600), "long name", 1), past("s", "t", " \n ", 1)]).unwrap();
    assert!(!log.path.exists());
    log.append(&[past("s", "t", &format!("a\u{1b}b\nc {}", "é".repeat(1_000)), 1)]).unwrap();
    let read = log.read();
    assert!(read[0].query.starts_with("a b c é"), "{read:?}");
    assert!(read[0].query.len() <= UsageFile::MAX_QUERY_BYTES);
}

#[test]
fn damaged_lines_do_not_affect_others() {
    let folder = tempfile::tempdir().unwrap();
    let log = log_in(folder.path());
    log.append(&[past("s", "t", "first", 1)]).unwrap();
    let mut text = fs::read(&log.path).unwrap();
    text.extend(b"\xff\x00{\n{\"server\":\"s\"}\n[]\n{\"server\":\"s\",\"tool");
    fs::write(&log.path, text).unwrap();
    log.append(&[past("s", "t", "second", 2)]).unwrap();
    assert_eq!(queries(&log.read()), ["first", "second"]);
}

#[test]
fn the_latest_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let log = log_in(folder.path());
    let many: Vec<_> = (0..20).map(|at| past("s", "t", &format!("query {at}"), at)).collect();
    log.append(&many).unwrap();
    let read = log.read();
    assert_eq!(read.len(), UsageFile::MAX_FOR_TOOL);
    assert_eq!((read[0].at, read[11].at), (8, 19));
    let many: Vec<_> = (0..5_000).map(|at| past("s", &format!("t{at}"), "x", at)).collect();
    log.append(&many).unwrap();
    assert_eq!(log.read().len(), UsageFile::MAX_TOTAL);
}

#[test]
fn the_size_of_the_file_is_limited() {
    let folder = tempfile::tempdir().unwrap();
    let log = log_in(folder.path());
    let batch: Vec<_> =
        (0..100).map(|at| past("s", "t", &format!("{at} {}", "x".repeat(500)), at)).collect();
    let mut place = UsagePosition::default();
    let mut anew = 0;
    for _ in 0..200 {
        log.append(&batch).unwrap();
        assert!(fs::metadata(&log.path).unwrap().len() <= COMPACTED_BYTES);
        anew += usize::from(matches!(log.follow(&mut place), UsageChange::Replaced(_)));
    }
    assert_eq!(anew, 2, "at the start and where it was written anew");
    assert_eq!(log.read().len(), UsageFile::MAX_FOR_TOOL);
}

#[test]
fn a_reader_follows() {
    let folder = tempfile::tempdir().unwrap();
    let (log, other) = (log_in(folder.path()), log_in(folder.path()));
    let mut place = UsagePosition::default();
    assert_eq!(log.follow(&mut place), UsageChange::None);
    let [first, second, third] =
        [past("s", "t", "first", 1), past("s", "t", "second", 2), past("s", "u", "third", 3)];
    other.append(std::slice::from_ref(&first)).unwrap();
    assert_eq!(log.follow(&mut place), UsageChange::Replaced(vec![first.clone()]));
    assert_eq!(log.follow(&mut place), UsageChange::None);
    other.append(&[second.clone(), third.clone()]).unwrap();
    assert_eq!(log.follow(&mut place), UsageChange::Added(vec![second.clone(), third.clone()]));
    assert_eq!(other.erase(&|past: &PastUse| past.tool == "u").unwrap(), [first, second]);
    assert_eq!(log.follow(&mut place), UsageChange::Replaced(vec![third.clone()]));
    assert_eq!(other.erase(&|_: &PastUse| false).unwrap(), [third]);
    assert_eq!(log.follow(&mut place), UsageChange::Replaced(vec![]));
    assert_eq!(log.follow(&mut place), UsageChange::None);
    assert!(!log.path.exists());
}

#[test]
fn several_writers_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let log = log_in(folder.path());
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let log = log.clone();
            scope.spawn(move || {
                for number in 0..10 {
                    let tool = format!("t{writer}");
                    log.append(&[past("s", &tool, &format!("q{number}"), 1)]).unwrap();
                    // Replaces the file under the others.
                    log.erase(&|past: &PastUse| past.query != "q3").unwrap();
                }
            });
        }
    });
    assert_eq!(log.read().len(), 4 * 9);
}
