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
        let found = |name| LookupResult::Tool { name, input_schema: schema.clone() };
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
    warm: usize,
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
        Self { runtime: runtime.unwrap(), pool: Pool::new(settings).unwrap(), warm, limits }
    }

    /// Until all workers wait, and have had the time to make their engines.
    fn settle(&self) {
        if self.warm > 0 {
            self.pool.warm_up();
            while self.pool.waiting() < self.warm {
                std::thread::sleep(Duration::from_micros(200));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
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

#[divan::bench(args = LANGUAGES, sample_count = 50, sample_size = 1)]
fn trivial_script_warm(bencher: Bencher<'_, '_>, language: Language) {
    let bench = Bench::new(2);
    bencher
        .with_inputs(|| bench.settle())
        .bench_local_values(|()| bench.run(code(language, "return 1", "1"), language));
}

#[divan::bench(args = LANGUAGES, sample_count = 50, sample_size = 1)]
fn trivial_script_cold(bencher: Bencher<'_, '_>, language: Language) {
    let bench = Bench::new(0);
    bencher.bench_local(|| bench.run(code(language, "return 1", "1"), language));
}

#[divan::bench(args = LANGUAGES, sample_count = 20, sample_size = 1)]
fn a_thousand_calls_in_sequence(bencher: Bencher<'_, '_>, language: Language) {
    let bench = Bench::new(2);
    let typescript = "for (let i = 0; i < 1000; i++) await echo({ i }); return 1";
    let python = "for i in range(1000): await echo(i=i)\n1";
    bencher
        .with_inputs(|| bench.settle())
        .bench_local_values(|()| bench.run(code(language, typescript, python), language));
}

#[divan::bench(args = LANGUAGES, sample_count = 20, sample_size = 1)]
fn a_thousand_calls_at_once(bencher: Bencher<'_, '_>, language: Language) {
    let bench = Bench::new(2);
    let typescript =
        "await Promise.all(Array.from({ length: 1000 }, (_, i) => echo({ i }))); return 1";
    let python = "import asyncio\nawait asyncio.gather(*[echo(i=i) for i in range(1000)])\n1";
    bencher
        .with_inputs(|| bench.settle())
        .bench_local_values(|()| bench.run(code(language, typescript, python), language));
}

#[divan::bench(args = [10, 100], sample_count = 5, sample_size = 1)]
fn runs_at_once(bencher: Bencher<'_, '_>, runs: usize) {
    let bench = Bench::new(2);
    bencher.with_inputs(|| bench.settle()).bench_local_values(|()| {
        let all = (0..runs).map(|_| {
            let script = SandboxScript::new("return 1", Language::TypeScript);
            bench.pool.run(script, &bench.limits, Arc::new(Instant), CancellationToken::new())
        });
        bench.runtime.block_on(futures::future::join_all(all))
    });
}
