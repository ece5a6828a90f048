//! Measurements of the stores: `scripts/bench-fleet`.

use std::time::{Duration, Instant};

use toolgate_store::{
    AuditRecord, CallDecision, CallEnd, Journal, NewCall, NewRun, RunEntry, RunState,
    SharedStore as _, Store,
};

use super::Shared;

fn run(id: &str) -> NewRun {
    NewRun {
        id: id.into(),
        language: "typescript".into(),
        code: "return 1".into(),
        session: "s".into(),
        began: 1,
        seed: 2,
        before: String::new(),
        namespace: String::new(),
    }
}

/// Runs that are added in one statement.
const PART: u32 = 50_000;

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1_000.0)
}

/// The two writes of a call with an effect, in milliseconds at the median.
fn call_with_effect(journal: &dyn Journal) -> f64 {
    journal.write(RunEntry::began(&run("run_calls"))).unwrap();
    let decision = CallDecision {
        verdict: "allow",
        rule: "",
        sent: true,
        once: true,
        flow: None,
        origin: None,
    };
    let times = (0..500).map(|number| {
        let began = Instant::now();
        let call =
            NewCall { number, name: "a_b", arguments: "{}", decision: Some(decision), lost: false };
        journal.write(RunEntry::called("run_calls", &call)).unwrap();
        journal.sync().unwrap();
        journal
            .write(RunEntry::answered("run_calls", number, number, CallEnd::Returned("1")))
            .unwrap();
        began.elapsed()
    });
    let median = median(times.collect());
    journal.write(RunEntry::ended("run_calls", RunState::Done, "", None)).unwrap();
    median
}

#[test]
#[ignore = "a benchmark: scripts/bench-fleet"]
fn bench_fleet_stores() {
    let folder = tempfile::tempdir().unwrap();
    let embedded = Store::new(folder.path());
    let shared = Shared::start().unwrap();
    let nodes: Vec<_> = (0..3).map(|_| shared.node(Duration::from_mins(10))).collect();
    let here = call_with_effect(&*embedded.journal().unwrap());
    let there = call_with_effect(&*nodes[0].journal().unwrap());
    println!("{}", load());
    println!(
        "| journal of a call with an effect (two writes, one of them synced) | {here:.2} ms | {there:.2} ms |"
    );

    let record = AuditRecord { kind: "call".into(), tool: "a_b".into(), ..AuditRecord::default() };
    let once = |log: &dyn toolgate_store::AuditLog| {
        let times = (0..500).map(|_| {
            let began = Instant::now();
            log.append(&record).unwrap();
            began.elapsed()
        });
        median(times.collect())
    };
    println!(
        "| one record of the audit log, alone | {:.2} ms | {:.2} ms |",
        once(&*embedded.audit()),
        once(&*nodes[0].audit())
    );
    for together in [1_usize, 16, 128] {
        let batch = vec![record.clone(); together];
        let began = Instant::now();
        std::thread::scope(|scope| {
            for node in &nodes {
                let batch = &batch;
                scope.spawn(move || (0..200).for_each(|_| node.audit().append_all(batch).unwrap()));
            }
        });
        let count = u32::try_from(3 * 200 * together).unwrap();
        println!(
            "| audit log of three nodes, {together} records together | | {:.0} records a second |",
            f64::from(count) / began.elapsed().as_secs_f64()
        );
    }

    let most: u32 = std::env::var("TOOLGATE_FLEET_RUNS")
        .ok()
        .and_then(|it| it.parse().ok())
        .unwrap_or(1_000_000);
    let name = shared.url.rsplit('/').next().unwrap();
    let (mut kept, journal) = (1_u32, nodes[0].journal().unwrap());
    let mut target = 1;
    while target <= most {
        // In parts, because each is one statement within the deadline of a test.
        while kept <= target {
            let end = target.min(kept.saturating_add(PART - 1));
            let fill = format!(
                "INSERT INTO run (id, created, state, language, code, session, began, seed, process, owner, before, namespace)
                 SELECT 'run_' || md5(n::text), n, 'done', 'typescript', 'return 1', 's', 1, 2, 3, 'n', '', ''
                 FROM generate_series({kept}, {end}) AS n ON CONFLICT DO NOTHING;
                 INSERT INTO run_call (run, number, name, arguments, made, sent, marked)
                 SELECT 'run_' || md5(n::text), 0, 'a_b', '{{}}', n, true, true
                 FROM generate_series({kept}, {end}) AS n ON CONFLICT DO NOTHING"
            );
            shared.postgres.execute(name, &fill).unwrap();
            kept = end + 1;
        }
        shared.postgres.execute(name, "ANALYZE run; ANALYZE run_call").unwrap();
        let id = journal.runs(1).unwrap().pop().unwrap().id;
        let time = |work: &dyn Fn()| {
            median(
                (0..50)
                    .map(|_| {
                        let began = Instant::now();
                        work();
                        began.elapsed()
                    })
                    .collect(),
            )
        };
        let history = time(&|| drop(journal.history(&id).unwrap()));
        let listed = time(&|| drop(journal.runs(20).unwrap()));
        // A page from the middle.
        let middle = (u64::from(target / 2), "run_");
        let page = time(&|| drop(journal.runs_before(middle, 20).unwrap()));
        let begun = time(&|| journal.write(RunEntry::began(&run("run_begun"))).unwrap());
        println!(
            "| {target} runs kept: the history of one / the last 20 / 20 before a time / a new one | | {history:.2} / {listed:.2} / {page:.2} / {begun:.2} ms |"
        );
        target *= 10;
    }
    println!("{}", load());
    if most >= 10_000 {
        assert_indexed(&shared, name, "SELECT * FROM run WHERE id = 'run_1'");
        let page = "SELECT id FROM run WHERE created <= 500 AND (created < 500 OR id > 'run_')
            ORDER BY created DESC, id LIMIT 20";
        assert_indexed(&shared, name, page);
        assert_indexed(&shared, name, "SELECT * FROM run_call WHERE run = 'run_1' ORDER BY number");
        assert_indexed(&shared, name, "SELECT id FROM run WHERE created < 10 LIMIT 500");
    }
}

/// Fails if PostgreSQL reads a whole table for a query.
#[expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
fn assert_indexed(shared: &Shared, name: &str, query: &str) {
    let plan = shared.postgres.query(name, &format!("EXPLAIN {query}")).unwrap();
    assert!(plan.contains("Index") && !plan.contains("Seq Scan"), "{query}\n{plan}");
    println!("by an index: {query}\n    {}", plan.lines().next().unwrap_or_default());
}

/// How many tasks want a processor.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!("load of the machine: {}", text.split(' ').take(3).collect::<Vec<_>>().join(" "))
}
