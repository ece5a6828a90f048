//! What a Python script costs in process: to start, and for each call.
//!
//! `cargo bench -p toolgate-engines --no-default-features --features python --bench python`

use std::{collections::VecDeque, time::Duration};

use serde_json::value::RawValue;
use toolgate_engines::{
    Completion, Engine, EngineCall, EngineLimits, EngineOutcome, EngineScript, Function,
    HostClosed, RunSeed, Stream, World, python::Python,
};

fn main() {
    divan::main();
}

/// From nothing to the value of the smallest script.
#[divan::bench]
fn trivial() {
    run("1 + 1");
}

/// With a module of the prelude.
#[divan::bench]
fn trivial_with_prelude() {
    run("import statistics\nstatistics.mean([1, 2])");
}

/// With the largest part of the prelude.
#[divan::bench]
fn trivial_with_tasks() {
    run("import asyncio\nawait asyncio.create_task(echo(1))");
}

/// Calls that wait for each other.
#[divan::bench(args = [1_000, 4_000])]
fn sequential_calls(count: usize) {
    run(&format!("for i in range({count}):\n    r = await echo(i)\nr['x']"));
}

/// Calls that are made at once.
#[divan::bench(args = [1_000, 4_000])]
fn parallel_calls(count: usize) {
    run(&format!("import asyncio\nlen(await asyncio.gather(*[echo(i) for i in range({count})]))"));
}

/// The trivial script with tasks on an interpreter that was prepared while it waited.
#[divan::bench]
fn prepared_with_tasks(bencher: divan::Bencher<'_, '_>) {
    bencher.with_inputs(Python::prepared).bench_values(|python| {
        run_on(python, "import asyncio\nawait asyncio.create_task(echo(1))");
    });
}

/// The preparation itself.
#[divan::bench]
fn prepare() -> Python {
    Python::prepared()
}

fn run(source: &str) {
    run_on(Python::new(), source);
}

fn run_on(python: Python, source: &str) {
    let functions = [Function {
        name: "echo".to_owned(),
        parameters: vec!["x".to_owned()],
        first_takes_object: true,
    }];
    let limits = EngineLimits { memory_bytes: 128 << 20, stack_bytes: 1 << 20 };
    let outcome = Box::new(python).run(
        &EngineScript { source, functions: &functions, places: &[] },
        &limits,
        &mut Echo(VecDeque::new()),
    );
    assert!(matches!(outcome, EngineOutcome::Value(Some(_))), "{outcome:?}");
}

/// Answers every call with its arguments.
struct Echo(VecDeque<Completion>);

impl World for Echo {
    fn submit(&mut self, call: EngineCall) -> Result<(), HostClosed> {
        self.0.push_back(Completion { id: call.id, outcome: Ok(call.arguments) });
        Ok(())
    }

    fn wait(&mut self, _deadline: Option<Duration>) -> Result<Option<Completion>, HostClosed> {
        Ok(self.0.pop_front())
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

    fn write(&mut self, _stream: Stream, _text: &str) {}

    fn emit(&mut self, _block: Box<RawValue>) {}
}
