use super::*;

fn journal() -> (tempfile::TempDir, JournalFile) {
    let folder = tempfile::tempdir().unwrap();
    let journal = JournalFile::open(&folder.path().join("state").join("journal.db")).unwrap();
    (folder, journal)
}

pub(super) fn run(id: &str) -> NewRun {
    NewRun {
        id: id.into(),
        language: "typescript".into(),
        code: "return 1".into(),
        session: "s1".into(),
        began: 1_700_000_000_000_000,
        seed: u64::MAX - 3,
        before: "[1]".into(),
        namespace: "dev".into(),
    }
}

/// The entries that are written now, by their names.
impl JournalFile {
    pub(super) fn begin_run(&self, run: &NewRun) -> Result<(), JournalError> {
        self.write(RunEntry::began(run))
    }

    pub(super) fn call_made(&self, run: &str, call: &NewCall<'_>) -> Result<(), JournalError> {
        self.write(RunEntry::called(run, call))
    }

    pub(super) fn call_ended(
        &self,
        run: &str,
        number: u64,
        at: u64,
        end: CallEnd<'_>,
    ) -> Result<(), JournalError> {
        self.write(RunEntry::answered(run, number, at, end))
    }

    pub(super) fn time_told(&self, run: &str, at: u64) -> Result<(), JournalError> {
        self.write(RunEntry::time(run, at))
    }

    pub(super) fn end_run(
        &self,
        run: &str,
        state: RunState,
        output: &str,
        error: Option<&str>,
    ) -> Result<(), JournalError> {
        self.write(RunEntry::ended(run, state, output, error))
    }
}

fn call<'a>(number: u64, name: &'a str, arguments: &'a str) -> NewCall<'a> {
    NewCall { number, name, arguments, decision: None, lost: false }
}

#[test]
fn a_run_is_read_as_it_was_written() {
    let (_folder, journal) = journal();
    journal.begin_run(&run("r1")).unwrap();
    let decision = CallDecision {
        verdict: "allow",
        rule: "default",
        sent: true,
        once: true,
        flow: Some("[]"),
        origin: Some("{}"),
    };
    let decided = NewCall { decision: Some(decision), ..call(0, "a_tool", "{\"x\":1}") };
    journal.call_made("r1", &decided).unwrap();
    journal.call_made("r1", &call(1, "b_tool", "{}")).unwrap();
    journal.call_ended("r1", 0, 1_500, CallEnd::Returned("{\"y\":2}")).unwrap();
    journal.time_told("r1", 2_000).unwrap();
    let thrown = CallEnd::Threw { tool: "b_tool", message: "no" };
    journal.call_ended("r1", 1, 2_500, thrown).unwrap();
    journal.call_made("r1", &call(2, "c_tool", "{}")).unwrap();

    let history = journal.history("r1").unwrap().unwrap();
    assert_eq!(history.run, run("r1"));
    assert_eq!(history.state, RunState::Running);
    let outcomes: Vec<_> =
        history.calls.iter().map(|call| (call.sent, call.outcome.clone())).collect();
    let thrown = Err(("b_tool".to_owned(), "no".to_owned()));
    assert_eq!(
        outcomes,
        [(true, Some(Ok("{\"y\":2}".into()))), (false, Some(thrown)), (false, None)]
    );
    let told: Vec<_> = history.events.iter().map(|event| (event.call, event.at)).collect();
    assert_eq!(told, [(Some(0), 1_500), (None, 2_000), (Some(1), 2_500)]);
    assert_eq!(journal.history("r2").unwrap(), None);

    journal.end_run("r1", RunState::Failed, "out", Some("TypeError")).unwrap();
    let detail = journal.run("r").unwrap().unwrap();
    assert_eq!((detail.summary.calls, detail.summary.failed), (3, 1));
    assert_eq!((detail.output.as_str(), detail.error.as_deref()), ("out", Some("TypeError")));
    assert_eq!(detail.calls[0].verdict, Some(("allow".into(), "default".into())));
}

#[test]
fn a_run_is_resumed_by_one() {
    let (folder, journal) = journal();
    let other = JournalFile::open(&folder.path().join("state").join("journal.db")).unwrap();
    journal.begin_run(&run("r1")).unwrap();
    assert!(journal.is_running("r1").unwrap());
    assert!(!journal.resume_run("r9").unwrap());
    // It runs, here and for everybody else.
    assert!(!journal.resume_run("r1").unwrap() && !other.resume_run("r1").unwrap());
    journal.end_run("r1", RunState::Waiting, "", None).unwrap();
    assert!(!journal.is_running("r1").unwrap());
    assert!(other.resume_run("r1").unwrap());
    assert!(!journal.resume_run("r1").unwrap());
    // Its process has ended.
    drop(other);
    assert!(!journal.is_running("r1").unwrap());
    assert!(journal.resume_run("r1").unwrap());
    journal.code_changed("r1", "return 2").unwrap();
    assert_eq!(journal.history("r1").unwrap().unwrap().run.code, "return 2");
}

#[test]
fn an_unknown_outcome_can_be_reset_and_a_result_cannot() {
    let (_folder, journal) = journal();
    journal.begin_run(&run("r1")).unwrap();
    for number in 0..2 {
        let decision = CallDecision {
            verdict: "allow",
            rule: "default",
            sent: true,
            once: true,
            flow: None,
            origin: None,
        };
        let decided = NewCall { decision: Some(decision), ..call(number, "t", "{}") };
        journal.call_made("r1", &decided).unwrap();
    }
    journal.call_ended("r1", 0, 1, CallEnd::Returned("1")).unwrap();
    journal.call_ended("r1", 1, 2, CallEnd::Unknown { tool: "t", message: "?" }).unwrap();
    assert!(journal.run("r1").unwrap().unwrap().calls[1].unknown);
    assert!(!journal.forget_end("r1", 0).unwrap() && !journal.forget_end("r1", 7).unwrap());
    assert!(journal.forget_end("r1", 1).unwrap());
    let history = journal.history("r1").unwrap().unwrap();
    assert_eq!(history.events, [PastEvent { call: Some(0), at: 1 }]);
    let call = &history.calls[1];
    assert!(!call.sent && !call.unknown && call.outcome.is_none());
    journal.keep_media("r1", "m:1", "AAAA").unwrap();
    assert_eq!(journal.media("r1").unwrap(), [("m:1".to_owned(), "AAAA".to_owned())]);
}

#[test]
fn the_graph_of_a_run_is_replaced_and_goes_with_the_run() {
    let (_folder, journal) = journal();
    let graph = || journal.run("r1").unwrap().unwrap().graph;
    journal.begin_run(&run("r1")).unwrap();
    assert_eq!(graph(), None);
    for text in ["{}", "[1]"] {
        journal.write(RunEntry::flows("r1", text)).unwrap();
        assert_eq!(graph().as_deref(), Some(text));
    }
    journal.end_run("r1", RunState::Done, "", None).unwrap();
    assert_eq!(journal.prune(Retention { runs: 0, ..Retention::default() }).unwrap(), 1);
    journal.begin_run(&run("r1")).unwrap();
    assert_eq!(graph(), None);
}

#[test]
fn old_runs_are_removed_and_waiting_ones_are_not() {
    let (_folder, journal) = journal();
    for id in ["a", "b", "c", "w"] {
        journal.begin_run(&run(id)).unwrap();
        journal.call_made(id, &call(0, "t", "{}")).unwrap();
        let state = if id == "w" { RunState::Waiting } else { RunState::Done };
        journal.end_run(id, state, "", None).unwrap();
    }
    assert_eq!(journal.prune(Retention { runs: 1, ..Retention::default() }).unwrap(), 2);
    assert_eq!(journal.runs(10).unwrap().len(), 2);
    assert_eq!(journal.prune(Retention { runs: 0, ..Retention::default() }).unwrap(), 1);
    assert_eq!(journal.runs(10).unwrap()[0].id, "w");
    // Waiting runs are removed when they are too old.
    journal
        .with(|connection| connection.execute("UPDATE runs SET created = 1, sum = NULL", []))
        .unwrap();
    assert_eq!(journal.prune(Retention::default()).unwrap(), 1);
}

#[test]
fn large_texts_are_stored_once_and_outside_of_the_rows() {
    let (_folder, journal) = journal();
    let large = format!("\"{}\"", "result ".repeat(1 << 16));
    let other = large.replace("result", "argument");
    for id in ["r1", "r2"] {
        journal.begin_run(&run(id)).unwrap();
        journal.call_made(id, &call(0, "a_tool", &other)).unwrap();
        journal.call_ended(id, 0, 1, CallEnd::Returned(&large)).unwrap();
        journal.keep_media(id, "m1", &large).unwrap();
        journal.end_run(id, RunState::Done, "", None).unwrap();
    }
    let number = |query: &str| {
        journal.with(|it| it.query_row(query, [], |row| row.get::<_, i64>(0))).unwrap()
    };
    let longest = number("SELECT max(length(arguments), length(result)) FROM calls");
    assert!(longest < 100 && number("SELECT max(length(data)) FROM media") < 100);
    assert_eq!(number("SELECT count(*) FROM contents"), 2);

    // The last run that refers to a content takes it along.
    journal.prune(Retention { runs: 1, ..Retention::default() }).unwrap();
    let history = journal.history("r2").unwrap().or(journal.history("r1").unwrap()).unwrap();
    assert_eq!(history.calls[0].arguments, other);
    assert_eq!(history.calls[0].outcome, Some(Ok(large.clone())));
    let id = history.run.id;
    assert_eq!(journal.media(&id).unwrap(), [("m1".to_owned(), large)]);
    assert_eq!(journal.run(&id).unwrap().unwrap().calls[0].arguments, other);
    journal.prune(Retention { runs: 0, ..Retention::default() }).unwrap();
    assert_eq!(number("SELECT count(*) FROM contents"), 0);
    assert_eq!(number("SELECT count(*) FROM content_uses"), 0);
}

#[test]
fn a_call_with_a_damaged_content_has_an_unknown_outcome() {
    let (_folder, journal) = journal();
    let large = "x".repeat(1 << 16);
    journal.begin_run(&run("r1")).unwrap();
    journal.call_made("r1", &call(0, "a_tool", "{}")).unwrap();
    journal.call_ended("r1", 0, 1, CallEnd::Returned(&large)).unwrap();
    for damage in ["UPDATE contents SET data = data || ' '", "DELETE FROM contents"] {
        journal.with(|connection| connection.execute(damage, [])).unwrap();
        let history = journal.history("r1").unwrap().unwrap();
        assert_eq!(history.calls, []);
        assert!(history.lost[0].is(0, "a_tool", "{}"), "{:?}", history.lost);
    }
}

#[test]
fn the_size_of_the_journal_is_limited() {
    let (_folder, journal) = journal();
    for id in ["a", "b", "c", "d"] {
        let large = id.repeat(1 << 20);
        journal.begin_run(&run(id)).unwrap();
        journal.call_made(id, &call(0, "t", &large)).unwrap();
        journal.end_run(id, RunState::Done, "", None).unwrap();
    }
    journal.begin_run(&run("now")).unwrap();
    assert_eq!(journal.prune(Retention { bytes: 2_500_000, ..Retention::default() }).unwrap(), 2);
    assert_eq!(journal.runs(10).unwrap().len(), 3);
    // Active runs stay, however small the limit is.
    assert_eq!(journal.prune(Retention { bytes: 0, ..Retention::default() }).unwrap(), 2);
    assert!(journal.is_running("now").unwrap());
}

fn question(id: &str, subject: &str) -> StoredApproval {
    StoredApproval {
        id: id.into(),
        created: 0,
        kind: "call".into(),
        subject: subject.into(),
        run: Some(("r1".into(), 3)),
        question: "{}".into(),
        state: ApprovalState::Open,
        answer: None,
    }
}

#[test]
fn a_question_is_asked_once_and_answered_once() {
    let (folder, journal) = journal();
    assert_eq!(journal.ask(&question("q1", "delete x")).unwrap().as_deref(), Some("q1"));
    assert_eq!(journal.ask(&question("q2", "delete x")).unwrap().as_deref(), Some("q1"));
    assert_eq!(journal.ask(&question("q3", "delete y")).unwrap().as_deref(), Some("q3"));
    // A person answers from another process.
    let other = JournalFile::open(&folder.path().join("state").join("journal.db")).unwrap();
    let before = journal.version().unwrap();
    assert_eq!(other.open_approvals().unwrap().len(), 2);
    assert!(other.answer("q1", ApprovalState::Approved, "{\"scope\":\"once\"}", None).unwrap());
    assert!(!other.answer("q1", ApprovalState::Denied, "{}", None).unwrap());
    assert_ne!(journal.version().unwrap(), before);
    let answered = journal.answered("delete x", Some("r1")).unwrap().unwrap();
    assert_eq!(answered.state, ApprovalState::Approved);
    assert_eq!(journal.answered("delete y", Some("r1")).unwrap(), None);
    assert_eq!(journal.approval("q3").unwrap().unwrap().run, Some(("r1".into(), 3)));
    assert_eq!(journal.approval("q").unwrap(), None);
}

#[test]
fn grants_expire_and_are_revoked() {
    let (_folder, journal) = journal();
    let grant =
        |id: &str, expires| GrantRow { id: id.into(), created: 1, expires, text: "{}".into() };
    journal.grant(&grant("g1", None)).unwrap();
    journal.grant(&grant("g2", Some(1))).unwrap();
    journal.grant(&grant("g3", Some(u64::MAX >> 1))).unwrap();
    let ids = || journal.grants().unwrap().into_iter().map(|grant| grant.id).collect::<Vec<_>>();
    assert_eq!(ids(), ["g1", "g3"]);
    assert!(journal.revoke("g1").unwrap() && !journal.revoke("g1").unwrap());
    assert_eq!(ids(), ["g3"]);
}

#[test]
fn a_file_that_is_no_journal_is_an_error_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    std::fs::write(&path, "this is not a database, and somebody may need it ".repeat(100)).unwrap();
    let error = JournalFile::open(&path).unwrap_err().to_string();
    assert!(error.contains("journal.db") && error.contains("not a database"), "{error}");
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("this is"));
}

#[test]
fn what_says_that_a_call_was_sent_is_on_the_disk_before_it_is_sent() {
    let (folder, journal) = journal();
    let state = folder.path().join("state");
    let synced = || {
        let mut synced = files::synced::take(&state);
        synced.sort();
        synced
    };
    journal.begin_run(&run("r1")).unwrap();
    let decision = |once| CallDecision {
        verdict: "allow",
        rule: "default",
        sent: true,
        once,
        flow: None,
        origin: None,
    };
    let made = |number, once| {
        let call = NewCall { decision: Some(decision(once)), ..call(number, "a_tool", "{}") };
        journal.call_made("r1", &call).unwrap();
    };
    made(0, false);
    assert!(synced().is_empty(), "a call that may be repeated needs no sync");
    made(1, true);
    journal.sync().unwrap();
    let own = Path::new("journal.sent").join(journal.life().unwrap());
    let (log, sent) = (PathBuf::from("journal.db-wal"), PathBuf::from("journal.sent"));
    // The rows follow at some time; no call waits for them.
    let at_once = || synced().into_iter().filter(|path| *path != log).collect::<Vec<_>>();
    // The first time also by name: the state folder is the empty path.
    assert_eq!(at_once(), [PathBuf::new(), sent, own.clone()]);
    made(2, true);
    journal.sync().unwrap();
    assert_eq!(at_once(), std::slice::from_ref(&own));
    // A file that replaces the list is on the disk before it does.
    journal.end_run("r1", RunState::Done, "", None).unwrap();
    journal.begin_run(&run("r2")).unwrap();
    made(3, true);
    journal.sync().unwrap();
    synced();
    journal.prune(Retention { runs: 0, ..Retention::default() }).unwrap();
    assert!(synced().contains(&own));
}

#[test]
fn the_rows_of_sent_calls_are_on_the_disk_soon_after() {
    let (folder, journal) = journal();
    let state = folder.path().join("state");
    journal.begin_run(&run("r1")).unwrap();
    files::synced::take(&state);
    journal.sync().unwrap();
    // It ends when all is done.
    drop(journal);
    assert!(files::synced::take(&state).contains(&PathBuf::from("journal.db-wal")));
}

#[test]
fn the_file_keeps_to_the_limits() {
    let (folder, journal) = journal();
    let size = || {
        let files = std::fs::read_dir(folder.path().join("state")).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum::<u64>()
    };
    let retention = Retention { runs: 10, bytes: 4_000_000, ..Retention::default() };
    assert!(!journal.is_beyond(retention).unwrap());
    for number in 0..24_u64 {
        let id = format!("r{number}");
        journal.begin_run(&run(&id)).unwrap();
        journal.call_made(&id, &call(0, "a_tool", "{}")).unwrap();
        let result = format!("\"{number}{}\"", "x".repeat(1_500_000));
        journal.call_ended(&id, 0, 1, CallEnd::Returned(&result)).unwrap();
        journal.end_run(&id, RunState::Done, "", None).unwrap();
        if number % 6 == 5 {
            assert!(size() > 8_000_000, "{}", size());
            assert!(journal.is_beyond(retention).unwrap());
            assert!(journal.prune(retention).unwrap() >= 4);
            assert!(!journal.is_beyond(retention).unwrap());
            let file = folder.path().join("state").join("journal.db");
            let file = std::fs::metadata(file).unwrap().len();
            assert!(file <= retention.bytes, "{file}");
        }
    }
    // The newest are there, and the log becomes small with the next entry.
    assert!(journal.history("r23").unwrap().is_some());
    assert!(journal.history("r10").unwrap().is_none());
    journal.begin_run(&run("next")).unwrap();
    assert!(size() <= retention.bytes + (5 << 20), "{}", size());
    for number in 0..40 {
        let id = format!("small{number}");
        journal.begin_run(&run(&id)).unwrap();
        journal.end_run(&id, RunState::Done, "", None).unwrap();
    }
    assert!(journal.is_beyond(retention).unwrap());
    journal.prune(retention).unwrap();
    assert!(!journal.is_beyond(retention).unwrap());
}

#[test]
fn a_file_of_an_older_version_becomes_small_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let old = Connection::open(&path).unwrap();
    old.execute_batch("PRAGMA auto_vacuum = NONE; CREATE TABLE t (a); DROP TABLE t;").unwrap();
    drop(old);
    let journal = JournalFile::open(&path).unwrap();
    journal.begin_run(&run("r1")).unwrap();
    journal.call_made("r1", &call(0, "a_tool", "{}")).unwrap();
    let result = format!("\"{}\"", "x".repeat(20_000_000));
    journal.call_ended("r1", 0, 1, CallEnd::Returned(&result)).unwrap();
    journal.end_run("r1", RunState::Done, "", None).unwrap();
    journal.prune(Retention { runs: 0, ..Retention::default() }).unwrap();
    let file = std::fs::metadata(&path).unwrap().len();
    assert!(file < 1_000_000, "{file}");
}

#[test]
fn entries_that_wait_are_written_in_order_before_anything_else() {
    let (folder, journal) = journal();
    let path = folder.path().join("state").join("journal.db");
    // Another process sees only what is in the file.
    let other = JournalFile::open(&path).unwrap();
    journal.write_soon(RunEntry::began(&run("r1"))).unwrap();
    journal.write_soon(RunEntry::called("r1", &call(0, "a_read", "{}"))).unwrap();
    let answer = RunEntry::answered("r1", 0, 5, CallEnd::Returned("1"));
    journal.write_soon(answer).unwrap();
    let sent = CallDecision {
        verdict: "allow",
        rule: "",
        sent: true,
        once: true,
        flow: None,
        origin: None,
    };
    let effect = NewCall { decision: Some(sent), ..call(1, "b_write", "{}") };
    journal.write(RunEntry::called("r1", &effect)).unwrap();
    let history = other.history("r1").unwrap().unwrap();
    assert_eq!(history.calls.len(), 2);
    assert_eq!(history.calls[0].outcome, Some(Ok("1".to_owned())));
    assert!(history.calls[1].sent && history.lost.is_empty());

    // This process sees its own entries at once.
    let end = RunEntry::ended("r1", RunState::Done, "out", None);
    journal.write_soon(end).unwrap();
    assert_eq!(journal.run("r1").unwrap().unwrap().output, "out");
}

#[test]
fn entries_that_wait_reach_the_file_by_themselves_and_at_the_end() {
    let (folder, journal) = journal();
    let path = folder.path().join("state").join("journal.db");
    let other = JournalFile::open(&path).unwrap();
    journal.write_soon(RunEntry::began(&run("r1"))).unwrap();
    let deadline = std::time::Instant::now() + Duration::from_mins(1);
    while other.history("r1").unwrap().is_none() {
        assert!(std::time::Instant::now() < deadline, "nobody writes it");
        std::thread::yield_now();
    }
    journal.write_soon(RunEntry::ended("r1", RunState::Done, "", None)).unwrap();
    drop(journal);
    assert_eq!(other.history("r1").unwrap().unwrap().state, RunState::Done);
}

#[test]
fn a_run_whose_entries_cannot_be_written_learns_of_it() {
    let (folder, journal) = journal();
    let other = JournalFile::open(&folder.path().join("state").join("journal.db")).unwrap();
    journal.begin_run(&run("r1")).unwrap();
    let read_only = |on: &str| {
        journal
            .with(|connection| connection.execute_batch(&format!("PRAGMA query_only = {on}")))
            .unwrap();
    };
    read_only("ON");
    journal.write_soon(RunEntry::time("r1", 1)).unwrap();
    journal.flush();
    let next = RunEntry::time("r1", 2);
    assert!(journal.write_soon(next).unwrap_err().to_string().contains("readonly"));
    assert!(journal.write_soon(RunEntry::time("r2", 2)).is_ok(), "another run");
    journal.write_soon(RunEntry::began(&run("r9"))).unwrap();
    journal.flush();
    assert!(!journal.is_lost("r9"), "nothing of it was ever written");
    assert!(journal.end_run("r1", RunState::Failed, "", None).is_err());
    assert!(!other.is_running("r1").unwrap(), "though its end could not be written");
    read_only("OFF");
    journal.begin_run(&run("r3")).unwrap();
    let history = other.history("r1").unwrap().unwrap();
    assert_eq!((history.events, history.state), (Vec::new(), RunState::Failed));
}

#[test]
fn the_size_is_estimated_without_a_look_at_the_file() {
    let (_folder, journal) = journal();
    let retention = Retention { runs: 20, bytes: 50_000_000, ..Retention::default() };
    assert!(journal.may_be_beyond(retention), "nothing is known yet");
    assert!(!journal.is_beyond(retention).unwrap());
    assert!(!journal.may_be_beyond(retention));
    for number in 0..21 {
        assert!(!journal.may_be_beyond(retention));
        let id = format!("r{number}");
        journal.write_soon(RunEntry::began(&run(&id))).unwrap();
        journal.write_soon(RunEntry::ended(&id, RunState::Done, "", None)).unwrap();
    }
    assert!(journal.may_be_beyond(retention) && journal.is_beyond(retention).unwrap());
    // One more than is needed, so that the next run need not remove another one.
    assert_eq!(journal.prune(retention).unwrap(), 2);
    assert!(!journal.is_beyond(retention).unwrap() && !journal.may_be_beyond(retention));
}

#[test]
fn runs_are_listed_page_by_page() {
    let folder = tempfile::tempdir().unwrap();
    let journal = JournalFile::open(&folder.path().join("journal.db")).unwrap();
    for number in 0..120 {
        journal.begin_run(&run(&format!("r{number:03}"))).unwrap();
    }
    let all: Vec<String> = journal.runs(1_000).unwrap().into_iter().map(|run| run.id).collect();
    let mut paged = Vec::new();
    let mut page = journal.runs(50).unwrap();
    while let Some(last) = page.last() {
        let (created, id) = (last.created, last.id.clone());
        paged.extend(page.into_iter().map(|run| run.id));
        page = journal.runs_before((created, &id), 50).unwrap();
    }
    assert_eq!(paged, all);
    assert_eq!(paged.len(), 120);
}
