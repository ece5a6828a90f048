//! What an engine costs before and while it runs: `cargo bench -p toolgate-engines --bench javascript`.
//!
//! The world answers at once, so that what is measured is the engine's own.

use std::{collections::VecDeque, time::Duration};

use divan::{Bencher, black_box};
use serde_json::value::RawValue;
use toolgate_engines::{
    Completion, Engine, EngineCall, EngineLimits, EngineOutcome, EngineScript, Function,
    HostClosed, RunSeed, Stream, World, javascript::JavaScript,
};

const LIMITS: EngineLimits = EngineLimits { memory_bytes: 64 << 20, stack_bytes: 1 << 20 };

fn main() {
    divan::main();
}

/// Gives every call its arguments back.
#[derive(Default)]
struct Mirror {
    calls: VecDeque<EngineCall>,
}

impl World for Mirror {
    fn submit(&mut self, call: EngineCall) -> Result<(), HostClosed> {
        self.calls.push_back(call);
        Ok(())
    }

    fn wait(&mut self, _deadline: Option<Duration>) -> Result<Option<Completion>, HostClosed> {
        let completed = |call: EngineCall| Completion { id: call.id, outcome: Ok(call.arguments) };
        Ok(self.calls.pop_front().map(completed))
    }

    fn more(&mut self) -> Result<Option<Completion>, HostClosed> {
        Ok(None)
    }

    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn beginning(&self) -> RunSeed {
        RunSeed::default()
    }

    fn write(&mut self, _stream: Stream, text: &str) {
        black_box(text);
    }

    fn emit(&mut self, _block: Box<RawValue>) {}
}

fn engine() -> JavaScript {
    JavaScript::new().unwrap_or_else(|error| panic!("{error}"))
}

fn warm_engine() -> JavaScript {
    let engine = engine();
    engine.warm();
    engine
}

fn run(engine: JavaScript, source: &str) {
    let functions = [Function {
        name: "echo".to_owned(),
        parameters: vec!["i".to_owned()],
        first_takes_object: true,
    }];
    let script = EngineScript { source, functions: &functions, places: &[] };
    let outcome = Box::new(engine).run(&script, &LIMITS, &mut Mirror::default());
    assert!(matches!(outcome, EngineOutcome::Value(_)), "{outcome:?}");
}

#[divan::bench]
fn start(bencher: Bencher<'_, '_>) {
    bencher.bench_local(engine);
}

#[divan::bench]
fn start_and_warm(bencher: Bencher<'_, '_>) {
    bencher.bench_local(warm_engine);
}

#[divan::bench]
fn trivial(bencher: Bencher<'_, '_>) {
    bencher.with_inputs(warm_engine).bench_local_values(|engine| run(engine, "return 1 + 1"));
}

#[divan::bench]
fn trivial_with_output(bencher: Bencher<'_, '_>) {
    let source = "console.log('answer', { value: 42 })";
    bencher.with_inputs(warm_engine).bench_local_values(|engine| run(engine, source));
}

#[divan::bench(sample_count = 30)]
fn a_thousand_calls_one_by_one(bencher: Bencher<'_, '_>) {
    let source = "for (let i = 0; i < 1000; i++) await echo({ i })";
    bencher.with_inputs(warm_engine).bench_local_values(|engine| run(engine, source));
}

#[divan::bench(sample_count = 30)]
fn a_thousand_calls_together(bencher: Bencher<'_, '_>) {
    let source = "await Promise.all(Array.from({ length: 1000 }, (_, i) => echo({ i })))";
    bencher.with_inputs(warm_engine).bench_local_values(|engine| run(engine, source));
}
