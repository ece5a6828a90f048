//! What several nodes do together.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use toolgate_fleet::{Fleet, FleetError, FleetOptions, ImportedChoices, RestoreSummary};
use toolgate_store::{
    ApprovalState, AuditLimits, AuditProblem, AuditRecord, CallDecision, CallEnd, Choices,
    GrantRow, Journal, NewCall, NewRun, NodeMessage, QuotaOutcome, QuotaRequest, Retention,
    RunEntry, RunState, SharedStore as _, Store, StoredApproval, SwitchedBy, TimedKind, TimedValue,
    TokenOrder, VersionedText,
};
use toolgate_testkit::deadline;

use super::Shared;

/// Long enough for a test.
const LONG: Duration = Duration::from_mins(10);

fn journal(fleet: &Arc<Fleet>) -> Arc<dyn Journal> {
    fleet.journal().unwrap()
}

fn run(id: &str) -> NewRun {
    NewRun {
        id: id.into(),
        language: "typescript".into(),
        code: "return 1".into(),
        session: "s1".into(),
        began: 1,
        seed: 2,
        before: String::new(),
        namespace: String::new(),
    }
}

fn sent(number: u64) -> NewCall<'static> {
    let decision = CallDecision {
        verdict: "allow",
        rule: "",
        sent: true,
        once: true,
        flow: None,
        origin: None,
    };
    NewCall { number, name: "s_pay", arguments: "{}", decision: Some(decision), lost: false }
}

/// Looks until something is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + deadline();
    while !is_so() {
        assert!(std::time::Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_run_of_a_dead_node_is_resumed_and_the_dead_node_writes_nothing_more() {
    let Some(shared) = Shared::start() else { return };
    let (dead, living) = (shared.node(LONG), shared.node(LONG));
    let (old, new) = (journal(&dead), journal(&living));
    old.write(RunEntry::began(&run("run_1"))).unwrap();
    old.write(RunEntry::called("run_1", &sent(0))).unwrap();
    old.write(RunEntry::answered("run_1", 0, 1, CallEnd::Returned("1"))).unwrap();
    old.write(RunEntry::called("run_1", &sent(1))).unwrap();
    assert!(new.is_running("run_1").unwrap());
    // Its lease ends, and it does not renew it: it hangs.
    let end = format!("UPDATE node SET lease_until = now() WHERE id = '{}'", dead.node());
    shared.postgres.execute(&shared.name(), &end).unwrap();
    assert!(!new.is_running("run_1").unwrap());
    assert_eq!(living.status().unwrap().abandoned, 1);
    assert!(new.resume_run("run_1").unwrap());
    assert!(!new.resume_run("run_1").unwrap(), "it runs now");
    assert!(!old.resume_run("run_1").unwrap(), "also for others");
    let history = new.history("run_1").unwrap().unwrap();
    let outcomes: Vec<_> =
        history.calls.iter().map(|call| (call.sent, call.outcome.is_some())).collect();
    assert_eq!(outcomes, [(true, true), (true, false)], "answered, and of unknown outcome");
    // The first node is not dead after all.
    for entry in [
        RunEntry::called("run_1", &sent(2)),
        RunEntry::answered("run_1", 1, 2, CallEnd::Returned("2")),
        RunEntry::time("run_1", 3),
        RunEntry::ended("run_1", RunState::Done, "", None),
    ] {
        let error = old.write(entry).unwrap_err().to_string();
        assert!(error.contains("another node has taken over this run"), "{error}");
    }
    assert_eq!(new.history("run_1").unwrap().unwrap().calls, history.calls);
    new.write(RunEntry::ended("run_1", RunState::Done, "", None)).unwrap();
    assert_eq!(new.history("run_1").unwrap().unwrap().state, RunState::Done);
}

#[test]
fn a_run_of_a_node_that_left_is_free_at_once() {
    let Some(shared) = Shared::start() else { return };
    let (leaving, staying) = (shared.node(LONG), shared.node(LONG));
    journal(&leaving).write(RunEntry::began(&run("run_1"))).unwrap();
    assert!(!journal(&staying).resume_run("run_1").unwrap());
    leaving.leave();
    assert!(journal(&staying).resume_run("run_1").unwrap());
}

#[test]
fn an_answer_on_one_node_wakes_another() {
    let Some(shared) = Shared::start() else { return };
    let (asking, answering) = (shared.node(LONG), shared.node(LONG));
    let question = StoredApproval {
        id: "a_1".into(),
        created: 0,
        kind: "call".into(),
        subject: "x".into(),
        run: None,
        question: "{}".into(),
        state: ApprovalState::Open,
        answer: None,
    };
    let (woken, wakes) = mpsc::channel();
    journal(&asking).on_answer(Box::new(move || woken.send(()).unwrap_or_default()));
    journal(&asking).ask(&question).unwrap();
    assert_eq!(journal(&answering).open_approvals().unwrap().len(), 1);
    assert!(journal(&answering).answer("a_1", ApprovalState::Approved, "{}", None).unwrap());
    wakes.recv_timeout(deadline()).unwrap();
    let answered = journal(&asking).approval("a_1").unwrap().unwrap();
    assert_eq!(answered.state, ApprovalState::Approved);
}

#[test]
fn changes_reach_all_nodes() {
    let Some(shared) = Shared::start() else { return };
    let (one, other) = (shared.node(LONG), shared.node(LONG));
    let before = (
        other.access_tokens().stamp(),
        other.choices("c").stamp(),
        journal(&other).version().unwrap(),
    );
    one.access_tokens().create(&TokenOrder::default(), 1).unwrap();
    one.choices("c")
        .change(|choices| choices.disabled.insert("crm".into(), SwitchedBy::Person))
        .unwrap();
    journal(&one)
        .grant(&GrantRow { id: "g".into(), created: 1, expires: None, text: "{}".into() })
        .unwrap();
    until("the tokens", || other.access_tokens().stamp() != before.0);
    until("the choices", || other.choices("c").stamp() != before.1);
    until("the grants", || journal(&other).version().unwrap() != before.2);
    assert_eq!(other.access_tokens().list().unwrap().len(), 1);
    assert_eq!(other.choices("c").read().unwrap().disabled.len(), 1);
}

#[test]
fn a_grant_for_one_call_is_used_by_one_node() {
    let Some(shared) = Shared::start() else { return };
    let nodes = [shared.node(LONG), shared.node(LONG), shared.node(LONG)];
    for number in 0..20 {
        let id = format!("g_{number}");
        journal(&nodes[0])
            .grant(&GrantRow { id: id.clone(), created: 1, expires: None, text: "{}".into() })
            .unwrap();
        let used: usize = std::thread::scope(|scope| {
            let users: Vec<_> = nodes
                .iter()
                .map(|node| scope.spawn(|| journal(node).revoke(&id).unwrap()))
                .collect();
            users.into_iter().map(|user| usize::from(user.join().unwrap())).sum()
        });
        assert_eq!(used, 1);
    }
}

#[test]
fn all_nodes_write_one_chain() {
    let Some(shared) = Shared::start() else { return };
    let nodes = [shared.node(LONG), shared.node(LONG), shared.node(LONG)];
    std::thread::scope(|scope| {
        for (number, node) in nodes.iter().enumerate() {
            scope.spawn(move || {
                for line in 0..20 {
                    let tool = format!("{number}-{line}");
                    let record =
                        AuditRecord { kind: "call".into(), tool, ..AuditRecord::default() };
                    node.audit().append(&record).unwrap();
                }
            });
        }
    });
    let mut lines = Vec::new();
    nodes[1].audit().read(&mut |line| lines.push(line.unwrap().1.tool)).unwrap();
    assert_eq!(lines.len(), 60);
    let own: Vec<&String> = lines.iter().filter(|tool| tool.starts_with("0-")).collect();
    assert!(
        own.is_sorted_by_key(|tool| tool[2..].parse::<u32>().unwrap()),
        "in the order of each node"
    );
}

#[test]
fn a_daily_count_holds_for_all_nodes_together() {
    let Some(shared) = Shared::start() else { return };
    let nodes = [shared.node(LONG), shared.node(LONG), shared.node(LONG)];
    let request = [QuotaRequest { limit: "l", caller: "ada", most: 1_000 }];
    let counted = |node: &Arc<Fleet>, most: usize| {
        let quotas = node.quotas();
        let is_counted = |outcome| matches!(outcome, QuotaOutcome::Counted(_));
        (0..most).take_while(|_| is_counted(quotas.count(5, &request).unwrap())).count()
    };
    let all: usize = std::thread::scope(|scope| {
        let counting: Vec<_> =
            nodes.iter().map(|node| scope.spawn(move || counted(node, usize::MAX))).collect();
        counting.into_iter().map(|count| count.join().unwrap()).sum()
    });
    assert_eq!(all, 1_000);
    // What a node has leased and not used is free again when it leaves.
    let request = [QuotaRequest { limit: "other", caller: "ada", most: 1_000 }];
    assert!(matches!(nodes[0].quotas().count(5, &request).unwrap(), QuotaOutcome::Counted(_)));
    let leased = nodes[1].quotas().counts(5).unwrap();
    assert!(
        leased.iter().any(|count| count.limit == "other" && count.used > 1),
        "more than one at once"
    );
    nodes[0].leave();
    let left = nodes[1].quotas().counts(5).unwrap();
    assert!(left.iter().any(|count| count.limit == "other" && count.used == 1), "{left:?}");
}

#[test]
fn the_shares_of_all_nodes_are_the_whole() {
    let Some(shared) = Shared::start() else { return };
    let first = shared.node(LONG);
    assert_eq!(first.quotas().share(10), 10);
    let second = shared.node(LONG);
    let third = shared.node(Duration::from_millis(300));
    // The last one knows of the others; the others learn of it when they renew their leases.
    assert!((3..=4).contains(&third.quotas().share(10)));
    assert_eq!(second.quotas().share(10), 5);
    drop(first);
}

#[test]
fn the_oldest_outputs_are_removed_if_there_are_too_many_bytes() {
    let Some(shared) = Shared::start() else { return };
    let options = FleetOptions { lease: LONG, output_bytes: 250, ..FleetOptions::default() };
    let fleet = shared.node_with(options).unwrap();
    let values = fleet.timed_values();
    let (begin, content) = (u64::MAX / 4, "x".repeat(100));
    for number in 0..4 {
        let value =
            TimedValue { owner: "ada".into(), content: content.clone(), expires: begin + number };
        values.put(TimedKind::Output, &number.to_string(), &value).unwrap();
        values.put(TimedKind::Session, &number.to_string(), &value).unwrap();
    }
    fleet.tidy().unwrap();
    let kept = |kind: TimedKind| {
        let is_kept = |key: &String| values.get(kind, key, "ada").unwrap().is_some();
        (0..4).map(|number| number.to_string()).filter(is_kept).collect::<Vec<_>>()
    };
    assert_eq!(kept(TimedKind::Output), ["2", "3"], "the newest");
    assert_eq!(kept(TimedKind::Session).len(), 4, "sessions are no outputs");
}

#[test]
fn one_living_node_has_a_server_that_runs_once() {
    let Some(shared) = Shared::start() else { return };
    let node = |lease: Duration, url: &str| {
        let advertise = url.to_owned();
        shared.node_with(FleetOptions { lease, advertise, ..FleetOptions::default() }).unwrap()
    };
    let take = |fleet: &Arc<Fleet>| fleet.server_leases().take("kit", "scope").unwrap();
    let command =
        Fleet::open(&FleetOptions { database: shared.url.clone(), ..FleetOptions::default() })
            .unwrap();
    assert_eq!(take(&command), None, "no node lives");
    let hidden = node(LONG, "");
    assert_eq!(take(&hidden), None, "nobody reaches it");
    let (one, other) = (node(LONG, "https://one"), node(LONG, "https://other"));
    let held = std::thread::scope(|scope| {
        let taking: Vec<_> = [&one, &other, &hidden, &command]
            .into_iter()
            .map(|fleet| scope.spawn(move || take(fleet).unwrap()))
            .collect();
        taking.into_iter().map(|taking| taking.join().unwrap()).collect::<Vec<_>>()
    });
    let (holder, is_one) = (held[0].clone(), held[0].url == "https://one");
    assert!(held.iter().all(|it| (&it.node, it.epoch) == (&holder.node, 1)), "{held:?}");
    let (owner, next) = if is_one { (one, other) } else { (other, one) };
    let leases = next.server_leases();
    assert!(leases.has("scope", &holder).unwrap() && owner.server_leases().is_sure());
    let status = next.status().unwrap();
    assert_eq!((status.servers.len(), &status.servers[0].node), (1, &holder.node));
    let before = leases.changes();
    owner.leave();
    until("the others hear of it", || leases.changes() != before);
    assert!(!leases.has("scope", &holder).unwrap());
    let taken = take(&next).unwrap();
    assert!(taken.is_own && taken.epoch == 2, "{taken:?}");
}

#[test]
fn a_node_is_not_sure_of_a_lease_that_it_cannot_renew() {
    let Some(mut shared) = Shared::start() else { return };
    let fleet = shared.node(Duration::from_secs(2));
    assert!(fleet.server_leases().is_sure());
    shared.postgres.kill();
    until("the lease is nearly over", || !fleet.server_leases().is_sure());
    shared.postgres.resume().unwrap();
    until("it is renewed", || fleet.server_leases().is_sure());
}

#[test]
fn runs_and_lines_are_removed_by_their_age() {
    let Some(shared) = Shared::start() else { return };
    let fleet = shared.node(LONG);
    let journal = journal(&fleet);
    for id in ["run_1", "run_2"] {
        journal.write(RunEntry::began(&run(id))).unwrap();
        journal.write(RunEntry::ended(id, RunState::Done, "", None)).unwrap();
    }
    let few = Retention { days: 30, ..Retention::default() };
    assert!(!journal.is_beyond(few).unwrap());
    let old = "UPDATE run SET created = created - 31 * 24 * 3600 * 1000::bigint WHERE id = 'run_1'";
    shared.postgres.execute(&shared.name(), old).unwrap();
    assert!(journal.is_beyond(few).unwrap());
    assert_eq!(journal.prune(few).unwrap(), 1);
    assert!(journal.history("run_1").unwrap().is_none() && !journal.is_beyond(few).unwrap());

    // Lines of three days, of which two are old.
    let day = 24 * 60 * 60 * 1000;
    let now = u64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    for days in [9, 3, 1] {
        let line = serde_json::json!({ "time": now - days * day, "node": "n", "sequence": days, "kind": "call" });
        let append = format!("SELECT append_audit(ARRAY['{line}'::bytea], 0)");
        shared.postgres.execute(&shared.name(), &append).unwrap();
    }
    fleet.limit_audit(AuditLimits { days: 2, ..AuditLimits::default() });
    fleet.prune_audit().unwrap();
    let mut problems = Vec::new();
    let extent = fleet.audit().read(&mut |line| problems.extend(line.err())).unwrap();
    assert_eq!((extent.lines, extent.first.unwrap().0, problems), (1, 3, vec![]));
}

#[test]
fn an_import_of_the_audit_log_that_breaks_off_goes_on() {
    let Some(shared) = Shared::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    let records: Vec<AuditRecord> = (0..1_200)
        .map(|number| AuditRecord {
            kind: "call".into(),
            tool: number.to_string(),
            ..AuditRecord::default()
        })
        .collect();
    store.audit().append_all(&records).unwrap();
    let fleet = shared.node(LONG);
    let full = "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'the disk is full'; END $$;
        CREATE TRIGGER full_disk BEFORE INSERT ON audit FOR EACH ROW WHEN (NEW.number > 700)
        EXECUTE FUNCTION full_disk()";
    shared.postgres.execute(&shared.name(), full).unwrap();
    let broken = fleet.import(&store, &[], &mut |_| {}).unwrap_err().to_string();
    assert!(broken.contains("the disk is full"), "{broken}");
    shared.postgres.execute(&shared.name(), "DROP TRIGGER full_disk ON audit").unwrap();
    let copied = fleet.import(&store, &[], &mut |_| {}).unwrap();
    assert_eq!((copied.audit_lines, copied.audit_left_out), (700, false), "500 were there");
    let mut tools = Vec::new();
    fleet.audit().read(&mut |line| tools.push(line.unwrap().1.tool)).unwrap();
    assert_eq!(tools, records.into_iter().map(|record| record.tool).collect::<Vec<_>>());
}

#[test]
fn a_message_reaches_the_other_nodes() {
    let Some(shared) = Shared::start() else { return };
    let (one, other) = (shared.node(LONG), shared.node(LONG));
    let (heard, messages) = mpsc::channel();
    other.timed_values().on_message(Box::new(move |message| drop(heard.send(message.clone()))));
    let long =
        NodeMessage { topic: "session".into(), key: "k".into(), content: "x".repeat(20_000) };
    one.timed_values().send(&long).unwrap();
    assert_eq!(messages.recv_timeout(deadline()).unwrap(), long);
}

#[test]
fn the_oldest_lines_are_removed_and_the_rest_verifies() {
    let Some(shared) = Shared::start() else { return };
    let (one, other) = (shared.node(LONG), shared.node(LONG));
    let append = |range: std::ops::Range<u32>| {
        for number in range {
            let tool = format!("{number} {}", "x".repeat(1_000));
            let record = AuditRecord { kind: "call".into(), tool, ..AuditRecord::default() };
            one.audit().append(&record).unwrap();
        }
    };
    let tools = || {
        let mut tools = Vec::new();
        let extent = other.audit().read(&mut |line| tools.push(line.unwrap().1.tool)).unwrap();
        let numbers = tools.iter().map(|tool| tool.split_once(' ').unwrap().0.parse().unwrap());
        (extent.first.unwrap().0, numbers.collect::<Vec<u32>>())
    };
    append(0..100);
    one.prune_audit().unwrap();
    assert_eq!(tools().1.len(), 100, "without a limit everything stays");
    one.limit_audit(AuditLimits { file_bytes: 50_000, files: 0, days: 0 });
    one.prune_audit().unwrap();
    let (first, left) = tools();
    assert!((30..50).contains(&left.len()), "{}", left.len());
    assert_eq!((u64::from(left[0]) + 1, *left.last().unwrap()), (first, 99), "the newest stay");
    append(100..110);
    assert_eq!(tools().1.len(), left.len() + 10);
    assert_eq!(other.audit().damage(), None);
    // Somebody removes more than that.
    let gone = format!("DELETE FROM audit WHERE number = {first}");
    shared.postgres.execute(&shared.name(), &gone).unwrap();
    let mut problems = Vec::new();
    other.audit().read(&mut |line| problems.extend(line.err())).unwrap();
    let expected = AuditProblem::StartMissing { found: first + 1, expected: first };
    assert_eq!(problems, [expected]);
}

#[test]
fn approved_definitions_reach_all_nodes_and_none_is_lost() {
    let Some(shared) = Shared::start() else { return };
    let nodes = [shared.node(LONG), shared.node(LONG)];
    let before = nodes[1].pins().stamp();
    assert_eq!(nodes[0].pins().read().unwrap(), None);
    nodes[0].pins().change(&mut |text| text.map(str::to_owned)).unwrap();
    assert_eq!(nodes[0].pins().read().unwrap(), None, "nothing was approved");
    std::thread::scope(|scope| {
        for node in &nodes {
            scope.spawn(|| {
                for _ in 0..10 {
                    let add = &mut |text: Option<&str>| Some(format!("{}x", text.unwrap_or("")));
                    node.pins().change(add).unwrap();
                }
            });
        }
    });
    assert_eq!(nodes[1].pins().read().unwrap().unwrap(), "x".repeat(20));
    until("the change", || nodes[1].pins().stamp() != before);
}

#[test]
fn a_policy_is_saved_only_in_place_of_the_one_that_was_seen() {
    let Some(shared) = Shared::start() else { return };
    let nodes = [shared.node(LONG), shared.node(LONG)];
    let [one, other] = [nodes[0].policy(), nodes[1].policy()];
    assert_eq!(one.read().unwrap(), VersionedText::default(), "nothing was saved");
    let woken = Arc::new(AtomicBool::new(false));
    let waking = Arc::clone(&woken);
    other.on_change(Box::new(move || waking.store(true, Ordering::Relaxed)));
    let before = other.stamp();
    assert_eq!(one.replace(0, Some("first")).unwrap(), Some(1));
    until("the change", || other.stamp() != before && woken.load(Ordering::Relaxed));
    assert_eq!(other.replace(0, Some("second")).unwrap(), None, "somebody was faster");
    let first = VersionedText { version: 1, text: Some("first".to_owned()) };
    assert_eq!(other.read().unwrap(), first);
    // Of several who have seen the same version, one saves.
    let saved: usize = std::thread::scope(|scope| {
        let savers = [&one, &other, &one, &other];
        let savers = savers.map(|policy| scope.spawn(|| policy.replace(1, Some("x")).unwrap()));
        savers.map(|saver| usize::from(saver.join().unwrap().is_some())).into_iter().sum()
    });
    assert_eq!(saved, 1);
    assert_eq!(one.replace(2, None).unwrap(), Some(3));
    let none = VersionedText { version: 3, text: None };
    assert_eq!(other.read().unwrap(), none, "the version goes on");
}

#[test]
fn a_node_with_another_secret_does_not_join() {
    let Some(shared) = Shared::start() else { return };
    let with = |secret: &str| {
        let secret = Some(secret.to_owned());
        shared.node_with(FleetOptions { secret, lease: LONG, ..FleetOptions::default() })
    };
    let first = with("one secret").unwrap();
    let wrong = with("another secret").unwrap_err();
    assert!(matches!(wrong, FleetError::OtherSecret), "{wrong}");
    let second = with("one secret").unwrap();
    let stored = shared.postgres.query(&shared.name(), "SELECT value FROM fingerprint").unwrap();
    assert!(stored.len() == 64 && !stored.contains("secret"), "{stored}");
    // Once no node lives, the next one may bring a new secret.
    first.leave();
    second.leave();
    drop(with("another secret").unwrap());
}

#[test]
fn a_state_folder_is_copied() {
    let Some(shared) = Shared::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    let journal = store.journal().unwrap();
    journal.write(RunEntry::began(&run("run_1"))).unwrap();
    journal.write(RunEntry::called("run_1", &sent(0))).unwrap();
    journal.write(RunEntry::answered("run_1", 0, 1, CallEnd::Returned("1"))).unwrap();
    journal.write(RunEntry::called("run_1", &sent(1))).unwrap();
    journal.write(RunEntry::ended("run_1", RunState::Failed, "out", Some("no"))).unwrap();
    journal.keep_media("run_1", "m", "data").unwrap();
    journal
        .grant(&GrantRow { id: "g".into(), created: 1, expires: None, text: "{}".into() })
        .unwrap();
    store.audit().append(&AuditRecord { kind: "call".into(), ..AuditRecord::default() }).unwrap();
    store.access_tokens().create(&TokenOrder::default(), 1).unwrap();
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let day = i64::try_from(since.as_secs() / 86_400).unwrap();
    let quota = QuotaRequest { limit: "writes", caller: "ada", most: 100 };
    store.quotas().count(day, &[quota]).unwrap();
    let fleet = shared.node(LONG);
    let disabled = |name: &'static str| {
        move |it: &mut Choices| {
            it.disabled.insert(name.into(), SwitchedBy::Person);
        }
    };
    store.choices("/a/toolgate.json").change(disabled("crm")).unwrap();
    // The fleet has been in use already.
    let used = AuditRecord { kind: "grant".into(), tool: "a\0".into(), ..AuditRecord::default() };
    fleet.audit().append(&used).unwrap();
    fleet.choices("fleet").change(disabled("wiki")).unwrap();
    let choices = [ImportedChoices { from: "/a/toolgate.json".into(), to: "fleet".into() }];
    let copied = fleet.import(&store, &choices, &mut |_| {}).unwrap();
    assert_eq!((copied.runs, copied.grants, copied.audit_lines, copied.tokens), (1, 1, 1, 1));
    assert_eq!((copied.choices, copied.audit_left_out), (1, false));
    assert_eq!(copied.limits, 1);
    let counted = fleet.quotas().count(day, &[quota]).unwrap();
    assert_eq!(counted, QuotaOutcome::Counted(vec![2]), "the limit goes on");
    let there: Vec<String> = fleet.choices("fleet").read().unwrap().disabled.into_keys().collect();
    assert_eq!(there, ["crm", "wiki"]);
    let there = fleet.journal().unwrap();
    let (from, to) =
        (journal.history("run_1").unwrap().unwrap(), there.history("run_1").unwrap().unwrap());
    assert_eq!((to.calls, to.events, to.state), (from.calls, from.events, from.state));
    assert_eq!(there.media("run_1").unwrap().len(), 1);
    let again = fleet.import(&store, &choices, &mut |_| {}).unwrap();
    assert_eq!((again.runs, again.grants, again.audit_lines, again.tokens), (0, 0, 0, 0));
    assert_eq!((again.choices, again.audit_left_out), (0, false));
    store.audit().append(&AuditRecord { kind: "token".into(), ..AuditRecord::default() }).unwrap();
    assert_eq!(fleet.import(&store, &choices, &mut |_| {}).unwrap().audit_lines, 1, "what is new");
    let mut kinds = Vec::new();
    fleet.audit().read(&mut |line| kinds.push(line.unwrap().1.kind)).unwrap();
    assert_eq!(kinds, ["grant", "call", "token"], "the chain verifies");
    // Another log may be an earlier time of the same one.
    let other = tempfile::tempdir().unwrap();
    let other = Store::new(other.path());
    other.audit().append(&AuditRecord { kind: "call".into(), ..AuditRecord::default() }).unwrap();
    let left_out = fleet.import(&other, &[], &mut |_| {}).unwrap();
    assert_eq!((left_out.audit_lines, left_out.audit_left_out), (0, true));
}

/// After a restore, nothing goes on that was open at the time of the back-up.
#[test]
fn a_restored_database_lets_no_run_go_on() {
    let Some(shared) = Shared::start() else { return };
    let node = shared.node(LONG);
    let journal = node.journal().unwrap();
    for (id, state) in [("run_1", RunState::Failed), ("run_2", RunState::Done)] {
        journal.write(RunEntry::began(&run(id))).unwrap();
        journal.write(RunEntry::ended(id, state, "out", None)).unwrap();
    }
    journal.write(RunEntry::began(&run("run_3"))).unwrap();
    let refused = node.restored().unwrap_err().to_string();
    assert!(refused.contains("nodes live"), "{refused}");
    node.leave();
    let options = FleetOptions { database: shared.url.clone(), ..FleetOptions::default() };
    let command = Fleet::open(&options).unwrap();
    assert_eq!(command.restored().unwrap().runs, 2);
    let journal = command.journal().unwrap();
    for id in ["run_1", "run_2", "run_3"] {
        assert_eq!(journal.history(id).unwrap().unwrap().state, RunState::Done, "{id}");
    }
    let why = journal.run("run_3").unwrap().unwrap().error.unwrap();
    assert!(why.contains("restored from a back-up"), "{why}");
    let mut kinds = Vec::new();
    command.audit().read(&mut |line| kinds.push(line.unwrap().1.kind)).unwrap();
    assert_eq!(kinds, ["restored"]);
    assert_eq!(command.restored().unwrap(), RestoreSummary::default(), "nothing is left to end");
}

#[test]
fn an_audit_log_that_was_emptied_does_not_verify() {
    let Some(shared) = Shared::start() else { return };
    let node = shared.node(LONG);
    let record = AuditRecord { kind: "call".into(), ..AuditRecord::default() };
    node.audit().append(&record).unwrap();
    let mut nodes = Vec::new();
    node.audit().read(&mut |line| nodes.push(line.unwrap().1.node)).unwrap();
    assert!(nodes.len() == 1 && nodes[0].starts_with("n_"), "{nodes:?}");
    assert_eq!(node.audit().damage(), None);
    shared.postgres.execute(&shared.name(), "TRUNCATE audit; DELETE FROM audit_head").unwrap();
    assert_eq!(node.audit().damage(), Some(AuditProblem::HeadMissing));
    let mut problems = Vec::new();
    node.audit().read(&mut |line| problems.extend(line.err())).unwrap();
    assert_eq!(problems, [AuditProblem::HeadMissing]);
    assert_eq!(node.status().unwrap().audit_lines, None);
}

#[test]
fn a_database_that_refuses_is_not_said_to_be_silent() {
    let Some(shared) = Shared::start() else { return };
    let database = shared.url.replace(&shared.name(), "nope");
    let options = FleetOptions { database, ..FleetOptions::default() };
    let error = Fleet::open(&options).unwrap_err();
    assert!(matches!(error, FleetError::Refused(_)), "{error}");
}
