//! The database goes away, and comes back.

use std::time::Duration;

use toolgate_fleet::FleetOptions;
use toolgate_store::{
    AuditLog, AuditProblem, AuditRecord, NewRun, RunEntry, RunState, SharedStore as _, TokenOrder,
};
use toolgate_testkit::deadline;

use super::Shared;

fn record(tool: &str) -> AuditRecord {
    AuditRecord { kind: "call".into(), tool: tool.into(), ..AuditRecord::default() }
}

#[test]
fn nothing_that_was_written_is_lost_and_what_is_refused_is_counted() {
    let Some(mut shared) = Shared::start() else { return };
    let fleet = shared.node(Duration::from_secs(15));
    let (journal, audit, tokens) = (fleet.journal().unwrap(), fleet.audit(), fleet.access_tokens());
    let run = |id: &str| NewRun {
        id: id.into(),
        language: "python".into(),
        code: String::new(),
        session: "s".into(),
        began: 0,
        seed: 0,
        before: String::new(),
        namespace: String::new(),
    };
    journal.write(RunEntry::began(&run("run_1"))).unwrap();
    audit.append(&record("before")).unwrap();
    tokens.create(&TokenOrder { name: Some("ci".into()), ..TokenOrder::default() }, 1).unwrap();
    let stamp = tokens.stamp();

    shared.postgres.kill();
    let refused = journal.write(RunEntry::began(&run("run_2"))).unwrap_err().to_string();
    assert!(
        refused.starts_with("the shared database cannot be used: it does not answer"),
        "{refused}"
    );
    // The reason is there once, whoever noticed it first.
    assert_eq!(refused.matches("does not answer").count(), 1, "{refused}");
    assert!(audit.append(&record("lost")).is_err());
    assert!(fleet.check().is_err());
    assert_eq!(tokens.stamp(), stamp, "what was read before still counts");
    // The end of a run is not lost: it is written when the database is back.
    assert!(journal.write(RunEntry::ended("run_1", RunState::Waiting, "out", None)).is_err());

    shared.postgres.resume().unwrap();
    let until = std::time::Instant::now() + deadline();
    while journal.history("run_1").map_or(true, |it| it.unwrap().state != RunState::Waiting) {
        assert!(std::time::Instant::now() < until, "the end of the run is written");
        std::thread::sleep(Duration::from_millis(20));
    }
    audit.append(&record("after")).unwrap();
    let (mut tools, mut problems) = (Vec::new(), Vec::new());
    audit
        .read(&mut |line| match line {
            Ok((_, record)) => tools.push(record.tool),
            Err(problem) => problems.push(problem),
        })
        .unwrap();
    assert_eq!(tools, ["before", "", "after"]);
    assert!(matches!(&*problems, [AuditProblem::Unwritten { count: 1, .. }]), "{problems:?}");
    assert_eq!(audit.unrecorded(), 1);
    assert_eq!(tokens.list().unwrap().len(), 1);
    assert_eq!(journal.history("run_2").unwrap(), None);
}

#[test]
fn a_url_is_not_shown() {
    let wrong = toolgate_fleet::Fleet::migrate("postgresql://u:hunter2@[x/db").unwrap_err();
    let text = format!("{wrong} {wrong:?}");
    assert!(!text.contains("hunter2"), "{text}");
    let options = toolgate_fleet::FleetOptions {
        database: "postgresql://u:hunter2@127.0.0.1:1/db".into(),
        ..toolgate_fleet::FleetOptions::default()
    };
    assert!(!format!("{options:?}").contains("hunter2"));
    let away = toolgate_fleet::Fleet::open(&options).unwrap_err();
    let text = format!("{away} {away:?}");
    assert!(!text.contains("hunter2") && text.contains("does not answer"), "{text}");
}

/// The tools of all lines, and the problems of the chain.
fn audited(log: &dyn AuditLog) -> (Vec<String>, Vec<AuditProblem>) {
    let (mut tools, mut problems) = (Vec::new(), Vec::new());
    log.read(&mut |line| match line {
        Ok((_, record)) => tools.push(record.tool),
        Err(problem) => problems.push(problem),
    })
    .unwrap();
    (tools, problems)
}

/// Looks until something is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + deadline();
    while !is_so() {
        assert!(std::time::Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn no_record_is_missing_after_the_database_was_away() {
    let Some(mut shared) = Shared::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let options = || {
        let spool = Some(folder.path().join("waiting"));
        FleetOptions { spool, ..FleetOptions::default() }
    };
    let fleet = shared.node_with(options()).unwrap();
    let audit = fleet.audit();
    audit.append(&record("before")).unwrap();
    shared.postgres.kill();
    audit.append(&record("away 1")).unwrap();
    // A call that must be recorded is refused, so nothing is missing; that it was refused is recorded later.
    assert!(audit.append_required(&record("not made")).is_err());
    audit.append_all(&[record("refused"), record("away 2")]).unwrap();
    shared.postgres.resume().unwrap();
    until("the records are written", || fleet.check().is_ok() && audited(&*audit).0.len() == 4);
    audit.append_required(&record("after")).unwrap();
    let (tools, problems) = audited(&*audit);
    assert_eq!(tools, ["before", "away 1", "refused", "away 2", "after"]);
    assert_eq!((problems, audit.unrecorded()), (vec![], 0));

    // A node that ends before the database is back leaves its records to the next one.
    shared.postgres.kill();
    until("the node knows", || audit.append_required(&record("x")).is_err());
    audit.append(&record("left behind")).unwrap();
    drop(audit);
    drop(fleet);
    shared.postgres.resume().unwrap();
    let next = shared.node_with(options()).unwrap();
    until("the next node writes them", || audited(&*next.audit()).0.len() == 6);
    let (tools, problems) = audited(&*next.audit());
    assert_eq!((tools.last().unwrap().as_str(), problems), ("left behind", vec![]));
    until("only the file of the node is left", || {
        std::fs::read_dir(folder.path().join("waiting")).unwrap().count() == 1
    });
}

#[test]
fn what_does_not_fit_is_counted_also_after_the_end_of_the_node() {
    let Some(mut shared) = Shared::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let options = || FleetOptions {
        spool: Some(folder.path().join("waiting")),
        spool_bytes: 2_000,
        ..FleetOptions::default()
    };
    let fleet = shared.node_with(options()).unwrap();
    let audit = fleet.audit();
    audit.append(&record("before")).unwrap();
    shared.postgres.kill();
    until("the node knows", || audit.append_required(&record("x")).is_err());
    let kept = (0..100).filter(|number| audit.append(&record(&number.to_string())).is_ok()).count();
    assert!((1..50).contains(&kept), "{kept}");
    let missing = 100 - kept as u64;
    let waiting: u64 = std::fs::read_dir(folder.path().join("waiting"))
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(waiting < 2_000 + 1_000, "{waiting} bytes");
    // The node ends before the database is back.
    drop(audit);
    drop(fleet);
    shared.postgres.resume().unwrap();
    let next = shared.node_with(options()).unwrap();
    until("the next node writes them", || next.audit().unrecorded() == missing);
    let (tools, problems) = audited(&*next.audit());
    assert_eq!(tools.len(), 1 + kept + 1, "with a line that says how many are missing");
    let is_told = |problem: &AuditProblem| matches!(problem, AuditProblem::Unwritten { count, .. } if *count == missing);
    assert!(problems.len() == 1 && problems.iter().all(is_told), "{problems:?}");
    until("only the file of the node is left", || {
        std::fs::read_dir(folder.path().join("waiting")).unwrap().count() == 1
    });
    assert_eq!(next.audit().unrecorded(), missing, "once");
}

#[test]
fn a_database_that_hangs_is_waited_for_once() {
    let Some(shared) = Shared::start() else { return };
    let fleet = shared.node(Duration::from_secs(30));
    let journal = fleet.journal().unwrap();
    fleet.check().unwrap();
    let paused = shared.postgres.pause().unwrap();
    let began = std::time::Instant::now();
    let slow = fleet.check().unwrap_err().to_string();
    let once = began.elapsed();
    assert!(slow.contains("did not answer within 3 s"), "{slow}");
    assert!(journal.check().is_err(), "it is known");
    let began = std::time::Instant::now();
    for _ in 0..50 {
        let known = fleet.check().unwrap_err().to_string();
        assert!(known.contains("does not answer"), "{known}");
    }
    assert!(
        began.elapsed() < once,
        "50 refusals take less time than one answer that does not come"
    );
    drop(paused);
    until("it goes on by itself", || fleet.check().is_ok());
    journal.check().unwrap();
}
