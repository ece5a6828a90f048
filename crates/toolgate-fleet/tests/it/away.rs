//! The database goes away, and comes back.

use std::time::Duration;

use toolgate_store::{
    AuditProblem, AuditRecord, NewRun, RunEntry, RunState, SharedStore as _, TokenOrder,
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
