//! What a run and a call cost: `cargo bench -p toolgate-sandbox`.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot start has nothing to say")]

use std::{sync::Arc, time::Duration};

use divan::{Bencher, black_box};
use serde_json::value::RawValue;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use toolgate_sandbox::{
    BoxFuture, CallResponse, EngineCall, Language, LookupResult, Pool, PoolSettings, RunLimits,
    RunOutcome, SandboxScript, Tools,
};

fn main() {
    divan::main();
}

/// Tools that answer at once.
struct Instant;

impl Tools for Instant {
    fn describe(&self, names: Vec<String>) -> BoxFuture<'static, Vec<LookupResult>> {
        let schema = RawValue::from_string(String::from("{\"type\":\"object\"}")).unwrap();
        let found =
            |name| LookupResult::Tool { name, input_schema: schema.clone(), output_schema: None };
        let found = names.into_iter().map(found).collect();
        Box::pin(async { found })
    }

    fn call(
        &self,
        call: EngineCall,
        _cancel: CancellationToken,
    ) -> BoxFuture<'static, CallResponse> {
        Box::pin(async { CallResponse::Ended(Ok(call.arguments)) })
    }
}

struct Bench {
    runtime: Runtime,
    pool: Pool,
    limits: RunLimits,
}

impl Bench {
    fn new(warm: usize) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let mut settings =
            PoolSettings::new(env!("CARGO_BIN_EXE_toolgate-sandbox-worker"), [""; 0]);
        settings.warm = warm;
        let limits = RunLimits { calls: 10_000, calls_in_flight: 10_000, ..RunLimits::default() };
        Self { runtime: runtime.unwrap(), pool: Pool::new(settings), limits }
    }

    /// With a zygote that has forked before.
    fn prepared(warm: usize) -> Self {
        let bench = Self::new(warm);
        for language in LANGUAGES {
            bench.run(code(language, "return 1", "1"), language);
        }
        bench
    }

    fn run(&self, code: &str, language: Language) {
        let script = SandboxScript::new(code, language);
        let run = self.pool.run(script, &self.limits, Arc::new(Instant), CancellationToken::new());
        let report = self.runtime.block_on(run);
        assert!(matches!(report.outcome, RunOutcome::Value(Some(_))), "{report:?}");
        black_box(report);
    }
}

const LANGUAGES: [Language; 2] = [Language::TypeScript, Language::Python];

fn code<'a>(language: Language, typescript: &'a str, python: &'a str) -> &'a str {
    match language {
        Language::TypeScript => typescript,
        Language::Python => python,
    }
}

/// The languages, with different numbers of workers that are forked ahead.
const AHEAD: [(Language, usize); 8] = [
    (Language::TypeScript, 0),
    (Language::TypeScript, 1),
    (Language::TypeScript, 2),
    (Language::TypeScript, 4),
    (Language::Python, 0),
    (Language::Python, 1),
    (Language::Python, 2),
    (Language::Python, 4),
];

/// One script right after the other.
#[divan::bench(args = AHEAD, sample_count = 200, sample_size = 1)]
fn trivial_script_in_a_row(bencher: Bencher<'_, '_>, (language, warm): (Language, usize)) {
    let bench = Bench::prepared(warm);
    bencher.bench_local(|| bench.run(code(language, "return 1", "1"), language));
}

/// One script, and then a pause.
#[divan::bench(args = AHEAD, sample_count = 30, sample_size = 1)]
fn trivial_script_now_and_then(bencher: Bencher<'_, '_>, (language, warm): (Language, usize)) {
    let bench = Bench::prepared(warm);
    bencher
        .with_inputs(|| std::thread::sleep(Duration::from_millis(200)))
        .bench_local_values(|()| bench.run(code(language, "return 1", "1"), language));
}

/// The first script of a pool.
#[divan::bench(args = LANGUAGES, sample_count = 20, sample_size = 1)]
fn trivial_script_cold(bencher: Bencher<'_, '_>, language: Language) {
    bencher
        .with_inputs(|| Bench::new(2))
        .bench_local_values(|bench| bench.run(code(language, "return 1", "1"), language));
}

#[divan::bench(args = LANGUAGES, sample_count = 20, sample_size = 1)]
fn a_thousand_calls_in_sequence(bencher: Bencher<'_, '_>, language: Language) {
    let bench = Bench::prepared(2);
    let typescript = "for (let i = 0; i < 1000; i++) await echo({ i }); return 1";
    let python = "for i in range(1000): await echo(i=i)\n1";
    bencher.bench_local(|| bench.run(code(language, typescript, python), language));
}

#[divan::bench(args = LANGUAGES, sample_count = 20, sample_size = 1)]
fn a_thousand_calls_at_once(bencher: Bencher<'_, '_>, language: Language) {
    let bench = Bench::prepared(2);
    let typescript =
        "await Promise.all(Array.from({ length: 1000 }, (_, i) => echo({ i }))); return 1";
    let python = "import asyncio\nawait asyncio.gather(*[echo(i=i) for i in range(1000)])\n1";
    bencher.bench_local(|| bench.run(code(language, typescript, python), language));
}

/// A hundred scripts at once, each of which waits for 200 ms.
#[divan::bench(args = [0, 2], sample_count = 10, sample_size = 1)]
fn a_hundred_scripts_that_wait(bencher: Bencher<'_, '_>, warm: usize) {
    let bench = Bench::prepared(warm);
    bencher.bench_local(|| {
        let all = (0..100).map(|_| {
            let code = "await new Promise((done) => setTimeout(done, 200)); return 1";
            let script = SandboxScript::new(code, Language::TypeScript);
            bench.pool.run(script, &bench.limits, Arc::new(Instant), CancellationToken::new())
        });
        let reports = bench.runtime.block_on(futures::future::join_all(all));
        assert!(reports.iter().all(|report| matches!(report.outcome, RunOutcome::Value(Some(_)))));
    });
}
