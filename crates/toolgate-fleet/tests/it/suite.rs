//! What holds for every store, wherever it keeps its rows. Each test runs on files and on PostgreSQL.

use std::sync::Arc;

use serde_json::json;
use toolgate_store::{
    ApprovalState, AuditRecord, CallDecision, CallEnd, Consent, DefinitionEntry, GrantRow, Journal,
    LoginKey, MAX_REQUESTS, NewCall, NewRun, NodeMessage, PastEvent, PastUse, PinText,
    QuotaOutcome, QuotaRequest, Retention, RunEntry, RunState, ServerConsentRequest, ServerKey,
    ServerMemory, Store, StoredApproval, SwitchedBy, TaskRow, TimedKind, TimedValue, TokenError,
    TokenHash, TokenOrder, UsageChange, UsagePosition, VaultKey,
};

use super::Shared;

/// Runs a test on both.
fn on_both(test: impl Fn(&Store)) {
    let folder = tempfile::tempdir().unwrap();
    test(&Store::new(folder.path()));
    if let Some(shared) = Shared::start() {
        let (_folder, store) = shared.store();
        test(&store);
    }
}

fn run(id: &str) -> NewRun {
    NewRun {
        id: id.into(),
        language: "typescript".into(),
        code: "return '\0'".into(),
        session: "s1".into(),
        began: 1_700_000_000_000_000,
        seed: u64::MAX - 3,
        before: "[1]".into(),
        namespace: "dev".into(),
    }
}

fn decided(sent: bool, once: bool) -> CallDecision<'static> {
    CallDecision {
        verdict: "allow",
        rule: "rule 1",
        sent,
        once,
        flow: Some("[2]"),
        origin: Some("{}"),
    }
}

fn call<'a>(
    number: u64,
    name: &'a str,
    arguments: &'a str,
    decision: Option<CallDecision<'a>>,
) -> NewCall<'a> {
    NewCall { number, name, arguments, decision, lost: false }
}

fn write(journal: &dyn Journal, entry: RunEntry<'_>) {
    journal.write(entry).unwrap();
}

#[test]
fn a_run_is_read_as_it_was_written() {
    on_both(|store| {
        let journal = store.journal().unwrap();
        let long = format!("\"{}\"", "x".repeat(20_000));
        journal.write_soon(RunEntry::began(&run("run_1"))).unwrap();
        journal
            .write_soon(RunEntry::called(
                "run_1",
                &call(0, "a_b", &long, Some(decided(true, false))),
            ))
            .unwrap();
        journal.write_soon(RunEntry::answered("run_1", 0, 5, CallEnd::Returned(&long))).unwrap();
        journal.write_soon(RunEntry::time("run_1", 6)).unwrap();
        journal.write_soon(RunEntry::flows("run_1", "{\"f\":1}")).unwrap();
        write(
            &*journal,
            RunEntry::called("run_1", &call(1, "a_c", "{}", Some(decided(true, true)))),
        );
        journal.sync().unwrap();
        let threw = CallEnd::Unknown { tool: "a_c", message: "who knows" };
        write(&*journal, RunEntry::answered("run_1", 1, 9, threw));
        write(
            &*journal,
            RunEntry::called("run_1", &call(2, "a_d", "{}", Some(decided(true, true)))),
        );

        let history = journal.history("run_1").unwrap().unwrap();
        assert_eq!(history.run, run("run_1"));
        assert_eq!((history.state, &history.first_code), (RunState::Running, &None));
        let past = |call: Option<u64>, at| PastEvent { call, at };
        assert_eq!(history.events, [past(Some(0), 5), past(None, 6), past(Some(1), 9)]);
        let outcomes: Vec<_> =
            history.calls.iter().map(|it| (it.sent, it.unknown, it.outcome.clone())).collect();
        let unknown = Some(Err(("a_c".to_owned(), "who knows".to_owned())));
        assert_eq!(
            outcomes,
            [(true, false, Some(Ok(long.clone()))), (true, true, unknown), (true, false, None)]
        );
        assert_eq!(history.calls[0].arguments, long);
        assert_eq!(history.calls[0].origin.as_deref(), Some("{}"));
        assert!(history.lost.is_empty());

        assert!(journal.is_running("run_1").unwrap());
        assert!(!journal.resume_run("run_1").unwrap(), "it runs");
        write(&*journal, RunEntry::ended("run_1", RunState::Failed, "out\0put", Some("no")));
        assert!(!journal.is_running("run_1").unwrap());
        let detail = journal.run("run_").unwrap().unwrap();
        assert_eq!((&*detail.output, detail.error.as_deref()), ("out\0put", Some("no")));
        assert_eq!(detail.graph.as_deref(), Some("{\"f\":1}"));
        assert_eq!((detail.summary.calls, detail.summary.failed), (3, 1));
        assert_eq!(detail.calls[0].verdict, Some(("allow".to_owned(), "rule 1".to_owned())));
        assert!(detail.calls[1].unknown);
        assert_eq!(journal.run("other").unwrap(), None);

        assert!(journal.resume_run("run_1").unwrap());
        assert!(journal.is_running("run_1").unwrap());
        journal.code_changed("run_1", "return 2").unwrap();
        journal.read_before("run_1", "[2]").unwrap();
        assert!(journal.forget_end("run_1", 1).unwrap(), "of unknown outcome");
        assert!(!journal.forget_end("run_1", 0).unwrap(), "it has a result");
        journal.keep_media("run_1", "m1", "data\0").unwrap();
        let history = journal.history("run_1").unwrap().unwrap();
        assert_eq!(
            (&*history.run.code, history.first_code.as_deref()),
            ("return 2", Some("return '\0'"))
        );
        assert_eq!(history.run.before, "[2]");
        assert_eq!((history.calls[1].sent, &history.calls[1].outcome), (false, &None));
        assert_eq!(history.events.len(), 2);
        assert_eq!(journal.media("run_1").unwrap(), [("m1".to_owned(), "data\0".to_owned())]);
        write(&*journal, RunEntry::ended("run_1", RunState::Done, "", None));
        assert!(!journal.resume_run("unknown").unwrap());
    });
}

/// Waits until the clock of the runs shows another time: of runs of one millisecond, any may be the older one.
fn another_millisecond() {
    let now = || std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
    let began = now();
    while now() == began {
        std::hint::spin_loop();
    }
}

#[test]
fn old_runs_are_removed_and_waiting_ones_stay() {
    on_both(|store| {
        let journal = store.journal().unwrap();
        for number in 0..20 {
            let id = format!("run_{number:02}");
            write(&*journal, RunEntry::began(&run(&id)));
            let state = if number == 0 { RunState::Waiting } else { RunState::Done };
            write(&*journal, RunEntry::ended(&id, state, "", None));
            another_millisecond();
        }
        write(&*journal, RunEntry::began(&run("run_now")));
        let few = Retention { runs: 16, ..Retention::default() };
        assert!(journal.may_be_beyond(few));
        assert!(journal.is_beyond(few).unwrap());
        assert!(journal.prune(few).unwrap() >= 3);
        assert!(!journal.is_beyond(few).unwrap());
        let left = journal.runs(100).unwrap();
        assert!((10..=18).contains(&left.len()), "{}", left.len());
        for kept in ["run_00", "run_19", "run_now"] {
            assert!(left.iter().any(|run| run.id == kept), "{kept}");
        }
        assert_eq!(journal.runs(2).unwrap().len(), 2);
        assert_eq!(journal.history("run_01").unwrap(), None);
    });
}

#[test]
fn old_runs_are_removed_when_all_have_too_many_bytes() {
    on_both(|store| {
        let journal = store.journal().unwrap();
        // Bytes that no store makes shorter.
        let mut random = blake3::Hasher::new().finalize_xof();
        let mut noise = || {
            let mut bytes = vec![0; 100_000];
            random.fill(&mut bytes);
            bytes.iter().map(|byte| char::from(b'!' + byte % 64)).collect::<String>()
        };
        let few = Retention { bytes: 1 << 20, ..Retention::default() };
        let add = |number: u64, output: &str| {
            let id = format!("run_{number:02}");
            write(&*journal, RunEntry::began(&run(&id)));
            write(&*journal, RunEntry::ended(&id, RunState::Done, output, None));
            another_millisecond();
        };
        for number in 0..4 {
            add(number, &noise());
        }
        assert!(!journal.is_beyond(few).unwrap());
        assert_eq!(journal.prune(few).unwrap(), 0);
        for number in 4..30 {
            add(number, &noise());
        }
        assert!(journal.may_be_beyond(few), "by what this process has written");
        assert!(journal.is_beyond(few).unwrap());
        let removed = journal.prune(few).unwrap();
        assert!((18..=26).contains(&removed), "{removed}");
        assert!(!journal.is_beyond(few).unwrap());
        let left = journal.runs(100).unwrap();
        assert_eq!((left.len(), left[0].id.as_str()), (30 - removed, "run_29"), "the newest stay");
        assert_eq!(journal.prune(few).unwrap(), 0);
        // What a resumed run has written besides counts too, and once.
        assert!(journal.resume_run("run_29").unwrap());
        let long: String = (0..12).map(|_| noise()).collect();
        write(&*journal, RunEntry::ended("run_29", RunState::Done, &long, None));
        assert!(journal.is_beyond(few).unwrap());
        assert!(journal.prune(few).unwrap() > 0);
        assert!(!journal.is_beyond(few).unwrap());
    });
}

#[test]
fn pages_of_runs_follow_each_other() {
    on_both(|store| {
        let journal = store.journal().unwrap();
        for number in 0..25 {
            let id = format!("run_{number:02}");
            write(&*journal, RunEntry::began(&run(&id)));
            write(&*journal, RunEntry::ended(&id, RunState::Done, "", None));
        }
        let all = journal.runs(100).unwrap();
        let mut paged = journal.runs(10).unwrap();
        while let Some(last) = paged.last().cloned() {
            let next = journal.runs_before((last.created, &last.id), 10).unwrap();
            if next.is_empty() {
                break;
            }
            paged.extend(next);
        }
        assert_eq!(paged, all);
    });
}

#[test]
fn timed_values_belong_to_their_owner_and_expire() {
    on_both(|store| {
        let values = store.timed_values();
        for kind in [TimedKind::Session, TimedKind::Parked, TimedKind::Output] {
            let value = |content: &str, expires| TimedValue {
                owner: "ada".into(),
                content: content.into(),
                expires,
            };
            values.put(kind, "k", &value("first", u64::MAX / 4)).unwrap();
            values.put(kind, "k", &value("{\0}", u64::MAX / 4)).unwrap();
            values.put(kind, "old", &value("{}", 1)).unwrap();
            assert_eq!(values.get(kind, "k", "ada").unwrap().as_deref(), Some("{\0}"));
            assert_eq!(values.get(kind, "k", "bob").unwrap(), None);
            assert_eq!(values.get(kind, "old", "ada").unwrap(), None);
            assert!(!values.remove(kind, "k", "bob").unwrap());
        }
        // A clone of the store has the same values.
        let again = store.clone().timed_values();
        assert!(again.remove(TimedKind::Session, "k", "ada").unwrap());
        assert!(!values.remove(TimedKind::Session, "k", "ada").unwrap());
        assert!(values.get(TimedKind::Output, "k", "ada").unwrap().is_some(), "of another kind");
        let (heard, messages) = std::sync::mpsc::channel();
        again.on_message(Box::new(move |message| drop(heard.send(message.clone()))));
        let message = NodeMessage { topic: "t".into(), key: "k".into(), content: "c".into() };
        values.send(&message).unwrap();
        assert_eq!(messages.recv_timeout(toolgate_testkit::deadline()).unwrap(), message);
    });
}

#[test]
fn changes_of_approved_definitions_are_all_kept() {
    on_both(|store| {
        let folder = tempfile::tempdir().unwrap();
        let file = PinText::new(folder.path().join("toolgate.lock"), 1_000);
        let pins = store.pins(file);
        assert_eq!(pins.read().unwrap(), None);
        pins.change(&mut |text| text.map(str::to_owned)).unwrap();
        assert_eq!(pins.read().unwrap(), None, "nothing was approved");
        let before = pins.stamp();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..5 {
                        let add =
                            &mut |text: Option<&str>| Some(format!("{}x", text.unwrap_or("")));
                        pins.change(add).unwrap();
                    }
                });
            }
        });
        assert_eq!(pins.read().unwrap().unwrap(), "x".repeat(20));
        assert_ne!(pins.stamp(), before);
    });
}

fn entry(server: &str, fingerprint: &str) -> DefinitionEntry {
    let memory = ServerMemory {
        era: toolgate_mcp::Era::Legacy,
        protocol_version: "2025-11-25".into(),
        server_info: json!({ "name": "\0" }),
        instructions: Some("use it".into()),
        capabilities: None,
    };
    DefinitionEntry { server: server.into(), memory, fingerprint: fingerprint.into() }
}

#[test]
fn contents_of_definitions_are_kept_as_long_as_a_server_has_them() {
    on_both(|store| {
        let definitions = store.definition_store();
        let (one, other) = (ServerKey::new("one", "a"), ServerKey::new("other", "b"));
        let (first, second) = ("1".repeat(64), "2".repeat(64));
        // Empty lists, as they are written.
        let content = [0_u8; 4];
        assert_eq!(definitions.entry(&one), None);
        definitions.put(&one, &entry("one", &first), &content).unwrap();
        definitions.put(&other, &entry("other", &first), &content).unwrap();
        assert_eq!(definitions.entry(&one), Some(entry("one", &first)));
        assert_eq!(definitions.content(&first).as_deref(), Some(&content[..]));
        definitions.put(&one, &entry("one", &second), &content).unwrap();
        assert!(definitions.content(&first).is_some(), "the other one has it");
        definitions.put(&other, &entry("other", &second), &content).unwrap();
        assert_eq!(definitions.content(&first), None);
        assert_eq!(definitions.entry(&other), Some(entry("other", &second)));
        assert_eq!(definitions.entry(&ServerKey::new("one", "c")), None, "another command");
    });
}

#[test]
fn a_node_reads_what_another_node_has_listed() {
    let Some(shared) = Shared::start() else { return };
    let ((_first, first), (folder, second)) = (shared.store(), shared.store());
    let key = ServerKey::new("kit", "command");
    let definition = |name: &str| {
        let tool = json!({ "name": name, "inputSchema": { "type": "object" } });
        toolgate_catalog::Definition::from_value(&tool).unwrap()
    };
    let memory = entry("kit", "").memory;
    assert!(second.definitions().load(&key).is_none());
    first.definitions().save(&key, "kit", &memory, &[definition("a")]).unwrap();
    assert_eq!(second.definitions().memory(&key), Some(memory.clone()));
    let loaded = second.definitions().load(&key).unwrap();
    assert_eq!(loaded.definitions.iter().map(|it| &**it.name()).collect::<Vec<_>>(), ["a"]);
    // From now on it is in the files of the node too.
    let alone = Store::new(folder.path()).definitions();
    assert_eq!(alone.load(&key).unwrap().memory, memory);
}

fn question(id: &str, subject: &str, run: Option<(String, u64)>) -> StoredApproval {
    StoredApproval {
        id: id.into(),
        created: 0,
        kind: "call".into(),
        subject: subject.into(),
        run,
        question: "{\"q\":\"\0\"}".into(),
        state: ApprovalState::Open,
        answer: None,
    }
}

#[test]
fn a_question_is_asked_once_and_answered_once() {
    on_both(|store| {
        let journal = store.journal().unwrap();
        assert_eq!(journal.ask(&question("a_1", "x", None)).unwrap().as_deref(), Some("a_1"));
        assert_eq!(
            journal.ask(&question("a_2", "x", None)).unwrap().as_deref(),
            Some("a_1"),
            "the same"
        );
        let of_run = question("a_3", "x", Some(("run_1".into(), 4)));
        assert_eq!(journal.ask(&of_run).unwrap().as_deref(), Some("a_3"));
        let open: Vec<String> =
            journal.open_approvals().unwrap().into_iter().map(|it| it.id).collect();
        assert_eq!(open, ["a_1", "a_3"]);
        assert!(journal.answer("a_1", ApprovalState::Denied, "{}", None).unwrap());
        assert!(!journal.answer("a_1", ApprovalState::Approved, "{}", None).unwrap(), "only once");
        assert!(!journal.answer("a_9", ApprovalState::Approved, "{}", None).unwrap());
        let answered = journal.answered("x", None).unwrap().unwrap();
        assert_eq!((answered.id.as_str(), answered.state), ("a_1", ApprovalState::Denied));
        assert_eq!(answered.question, "{\"q\":\"\0\"}");
        assert_eq!(journal.answered("x", Some("run_1")).unwrap(), None);
        let third = journal.approval("a_3").unwrap().unwrap();
        assert_eq!(third.run, Some(("run_1".into(), 4)));
        assert_eq!(journal.approval("a_").unwrap(), None);
    });
}

#[test]
fn the_waits_of_a_run_are_in_the_order_in_which_a_person_was_asked() {
    on_both(|store| {
        let journal = store.journal().unwrap();
        let asked = [("a_1", "run_1", 4), ("a_2", "run_2", 1), ("a_3", "run_1", 2)];
        for (id, run, call) in asked {
            journal.ask(&question(id, id, Some((run.into(), call)))).unwrap();
            another_millisecond();
        }
        journal.ask(&question("a_4", "of no run", None)).unwrap();
        assert!(journal.answer("a_1", ApprovalState::Approved, "{}", None).unwrap());
        let waits = journal.waits_of("run_1").unwrap();
        assert_eq!(waits.iter().map(|wait| wait.call).collect::<Vec<_>>(), [4, 2]);
        assert!(waits[0].asked < waits[1].asked, "{waits:?}");
        assert!(waits[0].answered.is_some_and(|answered| answered > waits[0].asked), "{waits:?}");
        assert_eq!(waits[1].answered, None, "nobody has answered");
        assert_eq!(journal.waits_of("run_2").unwrap().len(), 1);
        assert_eq!(journal.waits_of("run_").unwrap(), []);
    });
}

#[test]
fn an_answer_and_its_grant_are_stored_together() {
    on_both(|store| {
        let journal = store.journal().unwrap();
        let grant =
            |id: &str| GrantRow { id: id.into(), created: 5, expires: None, text: "{}".into() };
        journal.ask(&question("a_1", "x", None)).unwrap();
        let before = journal.version().unwrap();
        let allow = |id| journal.answer("a_1", ApprovalState::Approved, "{}", Some(&grant(id)));
        assert!(allow("g_1").unwrap());
        assert_ne!(journal.version().unwrap(), before);
        assert!(!allow("g_2").unwrap(), "somebody else was faster");
        assert_eq!(journal.grants().unwrap(), [grant("g_1")]);
    });
}

#[test]
fn grants_change_the_version() {
    on_both(|store| {
        let journal = store.journal().unwrap();
        let grant =
            |id: &str, expires| GrantRow { id: id.into(), created: 5, expires, text: "{}".into() };
        let before = journal.version().unwrap();
        journal.grant(&grant("g_1", None)).unwrap();
        assert_ne!(journal.version().unwrap(), before);
        journal.grant(&grant("g_2", Some(7))).unwrap();
        assert_eq!(journal.grants().unwrap(), [grant("g_1", None)], "the other one has expired");
        let before = journal.version().unwrap();
        assert!(journal.revoke("g_1").unwrap());
        assert!(!journal.revoke("g_1").unwrap());
        assert_ne!(journal.version().unwrap(), before);
    });
}

#[test]
fn a_task_belongs_to_its_owner() {
    on_both(|store| {
        let journal = store.journal().unwrap();
        let row = |id: &str, expires: u64, state: &str| TaskRow {
            id: id.into(),
            owner: "ada".into(),
            expires,
            state: state.into(),
        };
        let later = u64::MAX / 4;
        journal.write_task(&row("one", later, "working")).unwrap();
        journal.write_task(&row("one", later, "completed")).unwrap();
        journal.write_task(&row("gone", 1, "working")).unwrap();
        assert_eq!(
            journal.task("one", "ada").unwrap(),
            Some((row("one", later, "completed"), true))
        );
        assert_eq!(journal.task("one", "bob").unwrap(), None);
        assert_eq!(journal.task("gone", "ada").unwrap(), None);
    });
}

fn record(tool: &str) -> AuditRecord {
    AuditRecord {
        kind: "call".into(),
        tool: tool.into(),
        outcome: "ok".into(),
        ..AuditRecord::default()
    }
}

#[test]
fn the_audit_log_is_read_in_its_order_and_verifies() {
    on_both(|store| {
        let log = store.audit();
        log.prepare().unwrap();
        log.append(&record("a\0")).unwrap();
        let threads = 4;
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let log = &log;
                scope.spawn(move || {
                    for number in 0..5 {
                        log.append_all(&[record(&format!("{thread}-{number}")), record("b")])
                            .unwrap();
                    }
                });
            }
        });
        let mut tools = Vec::new();
        let extent = log.read(&mut |line| tools.push(line.unwrap().1.tool)).unwrap();
        assert_eq!((extent.lines, tools.len()), (41, 41));
        assert_eq!(tools[0], "a\0");
        assert_eq!((log.unrecorded(), log.damage()), (0, None));
    });
}

#[test]
fn tokens_are_created_listed_and_revoked() {
    on_both(|store| {
        let tokens = store.access_tokens();
        assert_eq!(tokens.list().unwrap(), []);
        let order = TokenOrder {
            name: Some("ci".into()),
            expires: Some(9),
            namespaces: vec!["work".into()],
        };
        let before = tokens.stamp();
        let (record, secret) = tokens.create(&order, 7).unwrap();
        assert_ne!(tokens.stamp(), before);
        assert_eq!(record.hash, TokenHash::of(secret.expose()));
        assert!(matches!(tokens.create(&order, 7), Err(TokenError::Taken(_))));
        let bad = TokenOrder { name: Some("a b".into()), ..TokenOrder::default() };
        assert!(matches!(tokens.create(&bad, 7), Err(TokenError::Name(_))));
        let (second, _) = tokens.create(&TokenOrder::default(), 8).unwrap();
        assert_eq!(tokens.list().unwrap(), [record.clone(), second]);
        assert_eq!(tokens.last_use(record.hash), None);
        tokens.note_use(record.hash, 7_300).unwrap();
        assert_eq!(tokens.last_use(record.hash), Some(7_200));
        let before = tokens.stamp();
        assert_eq!(tokens.revoke("ci").unwrap(), record);
        assert_ne!(tokens.stamp(), before);
        assert!(matches!(tokens.revoke("ci"), Err(TokenError::Unknown(_))));
        assert_eq!(tokens.list().unwrap().len(), 1);
    });
}

#[test]
fn changes_of_choices_are_all_kept() {
    on_both(|store| {
        let choices = store.choices("/a/toolgate.json");
        let before = choices.stamp();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let choices = Arc::clone(&choices);
                scope.spawn(move || {
                    for number in 0..5 {
                        let name = format!("{writer}-{number}");
                        choices.change(|it| it.disabled.insert(name, SwitchedBy::Person)).unwrap();
                    }
                });
            }
        });
        choices.change(|it| it.consents.insert("x".into(), Consent::now("f", json!(1)))).unwrap();
        assert_ne!(choices.stamp(), before);
        let stamp = choices.stamp();
        for number in 0..MAX_REQUESTS as u64 + 3 {
            let mut request = ServerConsentRequest::now("s", "f", json!(null), "", json!(null));
            request.at = number;
            choices.change(|it| it.requests.insert(format!("{number}"), request)).unwrap();
        }
        assert_ne!(choices.stamp(), stamp);
        let read = store.choices("/a/toolgate.json").read().unwrap();
        assert_eq!((read.disabled.len(), read.requests.len()), (20, MAX_REQUESTS));
        assert_eq!(read.consents["x"].plan, 1);
        assert!(store.choices("/b/toolgate.json").read().unwrap().disabled.is_empty());
    });
}

#[test]
fn past_uses_are_merged_followed_and_erased() {
    on_both(|store| {
        let log = store.usage();
        let mut position = UsagePosition::default();
        assert_eq!(log.follow(&mut position), UsageChange::None);
        let found = PastUse::now("crm", "find", "find a customer");
        log.append(&[found.clone(), found]).unwrap();
        let merged = log.read();
        assert_eq!((merged.len(), merged[0].count), (1, 2));
        assert!(matches!(
            log.follow(&mut position),
            UsageChange::Added(_) | UsageChange::Replaced(_)
        ));
        assert_eq!(log.follow(&mut position), UsageChange::None);
        let other = PastUse::now("git", "log", "history");
        log.append(std::slice::from_ref(&other)).unwrap();
        assert_eq!(log.follow(&mut position), UsageChange::Added(vec![other.clone()]));
        let gone = log.erase(&|past| past.server != "crm").unwrap();
        assert_eq!(gone.len(), 1);
        assert_eq!(log.read(), std::slice::from_ref(&other));
        assert_eq!(log.follow(&mut position), UsageChange::Replaced(vec![other]));
    });
}

#[test]
fn the_last_saved_shape_is_loaded() {
    on_both(|store| {
        let shapes = store.shapes();
        assert_eq!(shapes.load("a/b"), None);
        shapes.save("a/b", "{}").unwrap();
        shapes.save("a/b", "{\"x\":1}").unwrap();
        shapes.save("a/b", &"x".repeat(toolgate_store::MAX_SHAPES_BYTES + 1)).unwrap();
        assert_eq!(shapes.load("a/b").as_deref(), Some("{\"x\":1}"));
    });
}

#[test]
fn a_count_of_the_day_ends_at_its_limit() {
    on_both(|store| {
        let quotas = store.quotas();
        let one = [QuotaRequest { limit: "l", caller: "ada", most: 3 }];
        let both = [one[0], QuotaRequest { limit: "all", caller: "*", most: 2 }];
        assert_eq!(quotas.count(5, &one).unwrap(), QuotaOutcome::Counted(vec![1]));
        assert_eq!(quotas.count(5, &both).unwrap(), QuotaOutcome::Counted(vec![2, 1]));
        assert_eq!(quotas.count(5, &both).unwrap(), QuotaOutcome::Counted(vec![3, 2]));
        assert_eq!(quotas.count(5, &one).unwrap(), QuotaOutcome::Full(0));
        quotas.uncount(5, "l", "ada").unwrap();
        assert_eq!(quotas.count(5, &one).unwrap(), QuotaOutcome::Counted(vec![3]));
        quotas.refused(5, "l", "ada", 77).unwrap();
        let counts = quotas.counts(5).unwrap();
        let ada = counts.iter().find(|count| count.caller == "ada").unwrap();
        assert_eq!((ada.used, ada.refused_until), (3, 77));
        assert_eq!(quotas.day(4).unwrap(), 5, "a day never comes back");
        assert_eq!(quotas.count(4, &one).unwrap(), QuotaOutcome::Full(0));
        assert_eq!(quotas.count(6, &one).unwrap(), QuotaOutcome::Counted(vec![1]));
    });
}

#[test]
fn a_login_belongs_to_its_caller_server_and_url() {
    on_both(|store| {
        let logins = store.logins(&VaultKey::Given("k".repeat(32)));
        let crm = LoginKey::shared("crm", "https://crm.example/mcp");
        let (ada, bob) = (crm.of("ada"), crm.of("bob"));
        let elsewhere = LoginKey::shared("crm", "https://other.example/mcp").of("ada");
        assert_eq!(logins.load(&ada).unwrap(), None);
        assert!(!logins.replace(&ada, "early").unwrap(), "there is none to renew");
        logins.save(&ada, "of Ada").unwrap();
        for other in [&bob, &crm, &elsewhere, &LoginKey::shared("wiki", &crm.url).of("ada")] {
            assert_eq!(logins.load(other).unwrap(), None, "{other:?}");
        }
        logins.save(&crm, "of all").unwrap();
        logins.save(&bob, "of Bob").unwrap();
        assert!(logins.replace(&ada, "of Ada, renewed").unwrap());
        assert_eq!(logins.load(&ada).unwrap().as_deref(), Some("of Ada, renewed"));
        assert_eq!(logins.load(&crm).unwrap().as_deref(), Some("of all"));
        let listed = logins.list().unwrap();
        let own = |key: &LoginKey, secret: &str| (key.clone(), secret.to_owned());
        assert_eq!(listed, [own(&ada, "of Ada, renewed"), own(&bob, "of Bob")]);
        logins.forget(&ada).unwrap();
        logins.forget(&ada).unwrap();
        assert_eq!(logins.load(&ada).unwrap(), None);
        assert!(!logins.replace(&ada, "late").unwrap(), "it was revoked while it was renewed");
        assert_eq!((logins.load(&ada).unwrap(), logins.list().unwrap().len()), (None, 1));
        let renewing = logins.lock(&ada).unwrap();
        drop(logins.lock(&bob).unwrap());
        drop(renewing);
        drop(logins.lock(&ada).unwrap());
    });
}
