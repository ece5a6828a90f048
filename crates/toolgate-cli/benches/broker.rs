//! What the broker costs a call: validation, policy, data, grants, the record, and for scripts the
//! journal, against dispatch alone.
//!
//! A program, not a timed test. What is compared is measured in turns in one run, because machines
//! are noisy; what is told is the median of the ratios, and where the middle half of them lies.
//!
//!     cargo bench -p toolgate-cli --bench broker

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and ends where something is wrong"
)]

use std::{
    collections::BTreeMap,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Map, Value, json};
use toolgate_catalog::ServerName;
use toolgate_host::{
    AuditSettings, CodeSettings, HostSettings, ServerSetup, ToolHost, ToolSession,
};
use toolgate_policy::{Label, LabelSet, Mode, Rule, RuleOrigin, RuleTarget, ServerPolicy, Verdict};
use toolgate_sandbox::{Language, PoolSettings};
use toolgate_store::Store;
use toolgate_testkit::{Builtin, Fixture};
use toolgate_upstream::{
    CallOptions, Endpoint, Handshake, Listing, ServerObserver, ServerSpec, StdioEndpoint, Upstream,
};

/// Calls in one turn, and turns.
const CALLS: usize = 200;
const ROUNDS: usize = 61;
const SCRIPT_CALLS: usize = 1_000;
const SCRIPT_ROUNDS: usize = 21;

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    // As a task, like all that a gateway does: the thread that blocks is one more to be woken.
    let work = runtime.spawn(async {
        let dispatch = Dispatch::start().await;
        println!("a call of a stdio server with a small result, {ROUNDS} turns of {CALLS} calls");
        for (name, part) in [
            ("the broker with nothing to decide", Part::Bare),
            ("with 20 rules", Part::Rules),
            ("with data watched", Part::Watched),
            ("with the record", Part::Recorded),
            ("with all of it", Part::All),
        ] {
            measure(name, part, &dispatch).await;
        }
        scripts().await;
        dispatch.upstream.shutdown().await;
    });
    runtime.block_on(work).expect("no panic");
}

/// What of the broker's work there is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Bare,
    Rules,
    Watched,
    Recorded,
    All,
}

/// A client of the server, and nothing else.
struct Dispatch {
    upstream: Upstream,
    server: ServerName,
}

impl Dispatch {
    async fn start() -> Self {
        let upstream =
            Upstream::start(vec![spec()], &(Arc::new(Nobody) as Arc<dyn ServerObserver>));
        upstream.settled("bench").await;
        Self { upstream, server: "bench".into() }
    }

    async fn call(&self, number: usize) {
        let (arguments, options) = (arguments(number), CallOptions::default());
        let called = self.upstream.call(&self.server, "add", Some(arguments), options);
        called.await.expect("a result");
    }
}

/// Calls through the broker against dispatch, in turns.
async fn measure(name: &str, part: Part, dispatch: &Dispatch) {
    let folder = tempfile::tempdir().expect("a folder");
    let host = host(part, folder.path());
    host.all_known().await;
    let session = host.session();
    let (mut ratios, mut with, mut without) = (Vec::new(), Vec::new(), Vec::new());
    // What is compiled and learnt at the first call is no part of a call.
    turn(&session, dispatch).await;
    for _ in 0..ROUNDS {
        let (brokered, directly) = turn(&session, dispatch).await;
        ratios.push(brokered.as_secs_f64() / directly.as_secs_f64());
        with.push(brokered);
        without.push(directly);
    }
    let each = |times: &mut Vec<Duration>| {
        times.sort();
        times[times.len() / 2] / u32::try_from(CALLS).expect("a small number")
    };
    println!(
        "  {name:34} {:>8.1?} against {:>8.1?}: {}",
        each(&mut with),
        each(&mut without),
        spread(&mut ratios)
    );
    host.shutdown().await;
}

/// One after the other, call by call, so that whatever else the machine does meets both.
async fn turn(session: &ToolSession, dispatch: &Dispatch) -> (Duration, Duration) {
    let (mut brokered, mut directly) = (Duration::ZERO, Duration::ZERO);
    for number in 0..CALLS {
        let started = Instant::now();
        let (arguments, options) = (arguments(number), CallOptions::default());
        let result = session.call("bench_add", arguments, options).await.expect("a result");
        // What is refused is fast.
        assert!(result.get("isError").is_none(), "{result}");
        brokered += started.elapsed();
        let started = Instant::now();
        dispatch.call(number).await;
        directly += started.elapsed();
    }
    (brokered, directly)
}

/// A script's calls with everything, against the same script with nothing to decide or write down.
async fn scripts() {
    let (one, other) = (tempfile::tempdir(), tempfile::tempdir());
    let (one, other) = (one.expect("a folder"), other.expect("a folder"));
    let (bare, all) = (host(Part::Bare, one.path()), host(Part::All, other.path()));
    let code = format!(
        "for (let n = 0; n < {SCRIPT_CALLS}; n++) await bench_add({{ a: n, b: 1 }}); return 1"
    );
    let mut ratios = Vec::new();
    for round in 0..=SCRIPT_ROUNDS {
        let plain = run(&bare, &code).await;
        let guarded = run(&all, &code).await;
        if round > 0 {
            ratios.push(guarded.as_secs_f64() / plain.as_secs_f64());
        }
    }
    println!(
        "{SCRIPT_CALLS} calls of a script in turn, with all of it and the journal, against without: {}",
        spread(&mut ratios)
    );
    bare.shutdown().await;
    all.shutdown().await;
}

async fn run(host: &ToolHost, code: &str) -> Duration {
    let started = Instant::now();
    let ran = host.session().run_code(code, Language::TypeScript, CallOptions::default()).await;
    let run = ran.expect("scripts are on");
    assert!(!run.is_error, "{}", run.text);
    started.elapsed()
}

/// The median, and the middle half.
fn spread(ratios: &mut [f64]) -> String {
    ratios.sort_by(f64::total_cmp);
    let at = |part: usize| ratios[ratios.len() * part / 4];
    format!("{:.2} ({:.2}–{:.2})", at(2), at(1), at(3))
}

fn host(part: Part, folder: &Path) -> ToolHost {
    let pool = PoolSettings::new(env!("CARGO_BIN_EXE_toolgate"), ["sandbox-worker"]);
    let mut code = CodeSettings::new(PoolSettings { warm: 2, ..pool });
    code.limits.calls = 10_000;
    let mut settings = HostSettings::new(vec![ServerSetup::new(spec())]);
    settings.code = Some(code);
    settings.usage_memory = false;
    settings.audit = None;
    let has = |wanted: Part| part == wanted || part == Part::All;
    if has(Part::Rules) {
        settings.policy.rules = rules();
        settings.policy.mode = Mode::Ask;
    }
    if has(Part::Watched) {
        // What it returns is looked for in all that it is sent.
        let labels: LabelSet = Label::Private.into();
        let policy = ServerPolicy { labels, ..ServerPolicy::default() };
        settings.policy.servers = BTreeMap::from([("bench".into(), policy)]);
    }
    if has(Part::Recorded) {
        settings.audit = Some(AuditSettings::default());
        settings.store = Some(Store::new(folder));
    }
    let host = ToolHost::start(settings);
    host.code().warm_up();
    host
}

/// Twenty, of all kinds; the last of them lets the calls through.
fn rules() -> Vec<Rule> {
    let origin = |number: usize| RuleOrigin::Configured {
        path: format!("policy.rules[{number}]").into(),
        position: None,
    };
    let rule = |number: usize, server: Option<&str>, tool: Option<&str>, verdict: Verdict| {
        Rule::new(RuleTarget::read(server, tool).expect("a pattern"), verdict, origin(number))
    };
    let mut rules: Vec<Rule> = (0..9)
        .map(|number| rule(number, None, Some(&format!("other{number}_delete_*")), Verdict::Deny))
        .chain(
            (9..17).map(|number| rule(number, None, Some(&format!("*_{number}_*")), Verdict::Ask)),
        )
        .collect();
    rules.push(rule(17, Some("elsewhere"), None, Verdict::Deny));
    rules.push(rule(18, Some("bench"), None, Verdict::Ask));
    rules.push(rule(19, None, Some("bench_a*"), Verdict::Allow));
    rules
}

fn arguments(number: usize) -> Map<String, Value> {
    Map::from_iter([("a".to_owned(), json!(number)), ("b".to_owned(), json!(1))])
}

fn spec() -> ServerSpec {
    let fixture = Fixture::new("bench").with_builtins([Builtin::Add]);
    let entry = fixture.entry().expect("the fixture's program");
    let endpoint = Endpoint::Stdio(StdioEndpoint {
        command: entry.command,
        args: entry.args,
        env: BTreeMap::default(),
        cwd: None,
    });
    ServerSpec::new("bench", endpoint)
}

struct Nobody;

impl ServerObserver for Nobody {
    fn listed(&self, _: &ServerName, _: &Handshake, _: Listing) {}
}
