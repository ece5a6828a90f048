//! Scripts against a world of a few tools, in memory.

mod calls;
mod failures;
#[cfg(unix)]
mod growth;
mod hostile;
mod lines;
mod scripts;
mod values;

use std::{collections::VecDeque, sync::RwLock, thread, time::Duration};

use serde_json::{Value, value::RawValue};

use super::Python;
use crate::{
    engine::{
        Engine, EngineLimits, EngineOutcome, EngineScript, Function, ScriptFailure, ScriptPlace,
    },
    world::{Completion, EngineCall, HostClosed, RunSeed, Stream, ToolException, World},
};

/// Counts what is allocated, as the allocator of a worker does.
#[global_allocator]
static ALLOCATOR: monty_alloc::LimitedAllocator = monty_alloc::LimitedAllocator;

/// The count is that of the process: a test that fills the memory runs alone.
static MEMORY: RwLock<()> = RwLock::new(());

/// What a script did and how it ended.
#[derive(Debug)]
pub(super) struct PythonRun {
    pub(super) output: String,
    pub(super) errors: String,
    /// The calls as they were made.
    pub(super) calls: Vec<(String, Value)>,
    /// The places of the calls.
    pub(super) places: Vec<Option<u32>>,
    /// How many calls were open at the same time at most.
    pub(super) most_open: usize,
    pub(super) outcome: Result<Option<Value>, ScriptFailure>,
}

impl PythonRun {
    pub(super) fn failure(&self) -> &ScriptFailure {
        self.outcome.as_ref().expect_err("the script fails")
    }

    pub(super) fn value(&self) -> Value {
        self.outcome.clone().expect("the script ends well").expect("it has a value")
    }
}

/// The order in which calls come back.
#[derive(Debug, Clone, Copy)]
pub(super) enum Order {
    First,
    Last,
}

pub(super) const LIMITS: EngineLimits =
    EngineLimits { memory_bytes: 64 << 20, stack_bytes: 8 << 20 };

/// Runs a script with the tools `echo`, `fail`, `deep`, `silent` and those of the team.
pub(super) fn run(source: &str) -> PythonRun {
    let _shared = MEMORY.read();
    run_with(source, LIMITS, Order::First)
}

pub(super) fn run_with(source: &str, limits: EngineLimits, order: Order) -> PythonRun {
    let source = source.to_owned();
    // Without optimisation the interpreter's frames are many times their size.
    let thread = thread::Builder::new().stack_size(256 << 20);
    let worker = thread.spawn(move || run_here(&source, limits, order)).expect("a thread starts");
    worker.join().expect("an engine never panics")
}

fn run_here(source: &str, limits: EngineLimits, order: Order) -> PythonRun {
    run_on(Python::new(), source, limits, order)
}

pub(super) fn run_on(
    python: Python,
    source: &str,
    limits: EngineLimits,
    order: Order,
) -> PythonRun {
    let functions: Vec<Function> = [
        ("echo", &["x", "y"][..]),
        ("fail", &["x"]),
        ("deep", &["levels"]),
        ("silent", &[]),
        ("get_team_members", &["department"]),
        ("get_budget_by_level", &["level"]),
        ("get_expenses", &["user_id", "quarter"]),
    ]
    .into_iter()
    .map(|(name, parameters)| Function {
        name: name.to_owned(),
        parameters: parameters.iter().map(ToString::to_string).collect(),
        first_takes_object: !matches!(name, "silent" | "get_expenses"),
    })
    .collect();
    let mut world = FakeWorld { order, ..FakeWorld::default() };
    // No other script has these names.
    let place = |alias: &str| ScriptPlace { alias: alias.into(), function: "echo".into() };
    let places = [place("_place_0"), place("_place_1")];
    let script = EngineScript { source, functions: &functions, places: &places };
    let outcome = Box::new(python).run(&script, &limits, &mut world);
    let outcome = match outcome {
        EngineOutcome::Value(value) => Ok(value.map(|value| parse(&value))),
        EngineOutcome::Failed(failure) => Err(failure),
    };
    let FakeWorld { output, errors, calls, places, most_open, .. } = world;
    PythonRun { output, errors, calls, places, most_open, outcome }
}

fn parse(text: &RawValue) -> Value {
    serde_json::from_str(text.get()).expect("an engine gives JSON")
}

struct FakeWorld {
    order: Order,
    output: String,
    errors: String,
    calls: Vec<(String, Value)>,
    places: Vec<Option<u32>>,
    open: VecDeque<Completion>,
    most_open: usize,
    now: Duration,
}

impl Default for FakeWorld {
    fn default() -> Self {
        Self {
            order: Order::First,
            output: String::new(),
            errors: String::new(),
            calls: Vec::new(),
            places: Vec::new(),
            open: VecDeque::new(),
            most_open: 0,
            now: Duration::ZERO,
        }
    }
}

impl World for FakeWorld {
    fn submit(&mut self, call: EngineCall) -> Result<(), HostClosed> {
        assert_eq!(call.id, self.calls.len() as u64, "calls are numbered from 0");
        let arguments = parse(&call.arguments);
        if let Some(outcome) = answer(&call.name, &arguments, &call.arguments) {
            self.open.push_back(Completion { id: call.id, outcome });
        }
        self.places.push(call.place);
        self.calls.push((call.name, arguments));
        self.most_open = self.most_open.max(self.open.len());
        Ok(())
    }

    fn wait(&mut self, deadline: Option<Duration>) -> Result<Option<Completion>, HostClosed> {
        match (self.more()?, deadline) {
            (Some(completion), _) => Ok(Some(completion)),
            (None, Some(deadline)) => {
                self.now = self.now.max(deadline);
                Ok(None)
            }
            // Nothing will ever come: the host went away.
            (None, None) => Err(HostClosed),
        }
    }

    fn more(&mut self) -> Result<Option<Completion>, HostClosed> {
        Ok(match self.order {
            Order::First => self.open.pop_front(),
            Order::Last => self.open.pop_back(),
        })
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn beginning(&self) -> RunSeed {
        RunSeed { unix: Duration::from_hours(24 * 365 * 55), seed: 7 }
    }

    fn write(&mut self, stream: Stream, text: &str) {
        match stream {
            Stream::Output => self.output.push_str(text),
            Stream::Error => self.errors.push_str(text),
        }
    }

    fn emit(&mut self, _block: Box<RawValue>) {}
}

fn answer(
    name: &str,
    arguments: &Value,
    text: &RawValue,
) -> Option<Result<Box<RawValue>, ToolException>> {
    let value = match name {
        "echo" => return Some(Ok(text.to_owned())),
        "fail" => {
            let content = arguments.get("content").map(ToString::to_string);
            return Some(Err(ToolException { content, ..ToolException::new("fail", "it broke") }));
        }
        "deep" => {
            let levels = usize::try_from(arguments["levels"].as_u64()?).ok()?;
            let text = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
            return Some(Ok(RawValue::from_string(text).expect("brackets are JSON")));
        }
        "get_team_members" => team(),
        "get_budget_by_level" => {
            serde_json::json!({"travel_limit": if arguments["level"] == "senior" { 8_000 } else { 5_000 }})
        }
        "get_expenses" => expenses(arguments),
        // `silent` among them: its calls never come back.
        _ => return None,
    };
    Some(Ok(serde_json::value::to_raw_value(&value).expect("a value has a text")))
}

fn team() -> Value {
    let level = |n: u32| if n.is_multiple_of(4) { "senior" } else { "junior" };
    (0..20)
        .map(|n| serde_json::json!({"id": format!("u{n}"), "name": format!("Person {n}"), "level": level(n)}))
        .collect()
}

/// A hundred line items for each person; two of them spend too much.
fn expenses(arguments: &Value) -> Value {
    let amount = match arguments["user_id"].as_str() {
        Some("u3") => 51,
        Some("u8") => 90,
        _ => 40,
    };
    (0..100).map(|n| serde_json::json!({"item": n, "amount": amount})).collect()
}
