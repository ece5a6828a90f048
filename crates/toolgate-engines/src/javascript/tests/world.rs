//! A world in memory.

use std::{cell::RefCell, collections::VecDeque, rc::Rc, time::Duration};

use serde_json::value::RawValue;

use crate::{
    Completion, Engine, EngineCall, EngineLimits, EngineOutcome, EngineScript, Function,
    HostClosed, RunSeed, ScriptPlace, Stream, ToolException, World, javascript::JavaScript,
};

/// What a run left behind.
#[derive(Debug)]
pub(super) struct JavaScriptRun {
    pub(super) outcome: EngineOutcome,
    pub(super) output: String,
    pub(super) complaints: String,
    pub(super) calls: Vec<(String, String)>,
    pub(super) places: Vec<Option<u32>>,
    pub(super) blocks: Vec<String>,
    /// The largest number of calls in flight.
    pub(super) most_at_once: usize,
}

/// What came through so far.
#[derive(Debug, Default)]
struct WorldLog {
    output: String,
    complaints: String,
    calls: Vec<(String, String)>,
    places: Vec<Option<u32>>,
    blocks: Vec<String>,
    most_at_once: usize,
}

/// Answers calls by their names, in no time; nobody sleeps in it.
struct FakeWorld {
    seen: Rc<RefCell<WorldLog>>,
    waiting: VecDeque<EngineCall>,
    /// After this many calls nobody is there any more.
    closes_after: usize,
    now: Duration,
}

pub(super) const LIMITS: EngineLimits =
    EngineLimits { memory_bytes: 64 << 20, stack_bytes: 512 << 10 };

/// The names of the functions that every script here is given.
const FUNCTIONS: &[&str] = &["echo", "fail", "text", "last", "never"];

pub(super) fn run(source: &str) -> JavaScriptRun {
    run_with(source, LIMITS, usize::MAX)
}

pub(super) fn run_with(source: &str, limits: EngineLimits, closes_after: usize) -> JavaScriptRun {
    run_at(source, &[], limits, closes_after)
}

/// Runs a script in which these names are places that call `echo`.
pub(super) fn run_at(
    source: &str,
    places: &[&str],
    limits: EngineLimits,
    closes_after: usize,
) -> JavaScriptRun {
    let functions: Vec<Function> = FUNCTIONS
        .iter()
        .map(|name| Function {
            name: (*name).to_owned(),
            parameters: vec!["value".to_owned()],
            first_takes_object: true,
        })
        .collect();
    let seen = Rc::new(RefCell::new(WorldLog::default()));
    let mut world = FakeWorld {
        seen: Rc::clone(&seen),
        waiting: VecDeque::new(),
        closes_after,
        now: Duration::ZERO,
    };
    let engine = Box::new(JavaScript::new().expect("the engine starts"));
    let place = |alias: &&str| ScriptPlace { alias: (*alias).into(), function: "echo".into() };
    let places: Vec<ScriptPlace> = places.iter().map(place).collect();
    let script = EngineScript { source, functions: &functions, places: &places };
    let outcome = engine.run(&script, &limits, &mut world);
    let WorldLog { output, complaints, calls, places, blocks, most_at_once } = seen.take();
    JavaScriptRun { outcome, output, complaints, calls, places, blocks, most_at_once }
}

/// How often the engine asks whether to go on while it runs a script, which must succeed.
pub(super) fn steps_of(source: &str) -> u64 {
    let engine = JavaScript::new().expect("the engine starts");
    let host = Rc::clone(&engine.host);
    let function = |name: &&str| Function {
        name: (*name).to_owned(),
        parameters: Vec::new(),
        first_takes_object: false,
    };
    let functions: Vec<Function> = FUNCTIONS.iter().map(function).collect();
    let script = EngineScript { source, functions: &functions, places: &[] };
    let limits = EngineLimits { memory_bytes: 1 << 30, ..LIMITS };
    let mut world = FakeWorld {
        seen: Rc::default(),
        waiting: VecDeque::new(),
        closes_after: usize::MAX,
        now: Duration::ZERO,
    };
    let before = host.ticks.get();
    let outcome = Box::new(engine).run(&script, &limits, &mut world);
    assert!(matches!(outcome, EngineOutcome::Value(_)), "{source}\n{outcome:?}");
    host.ticks.get() - before
}

impl World for FakeWorld {
    fn submit(&mut self, call: EngineCall) -> Result<(), HostClosed> {
        let mut seen = self.seen.borrow_mut();
        if seen.calls.len() >= self.closes_after {
            return Err(HostClosed);
        }
        seen.places.push(call.place);
        seen.calls.push((call.name.clone(), call.arguments.get().to_owned()));
        // `last` is answered after all that were made before it and right after it.
        if call.name == "last" {
            self.waiting.push_back(call);
        } else {
            self.waiting.push_front(call);
        }
        seen.most_at_once = seen.most_at_once.max(self.waiting.len());
        Ok(())
    }

    fn wait(&mut self, deadline: Option<Duration>) -> Result<Option<Completion>, HostClosed> {
        let Some(call) = self.waiting.pop_front() else {
            self.now = self.now.max(deadline.expect("waits for nothing"));
            return Ok(None);
        };
        Ok(Some(Completion { id: call.id, outcome: answer(&call) }))
    }

    fn more(&mut self) -> Result<Option<Completion>, HostClosed> {
        Ok(None)
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn beginning(&self) -> RunSeed {
        RunSeed { unix: Duration::from_hours(24 * 365 * 55), seed: 7 }
    }

    fn write(&mut self, stream: Stream, text: &str) {
        let mut seen = self.seen.borrow_mut();
        match stream {
            Stream::Output => seen.output.push_str(text),
            Stream::Error => seen.complaints.push_str(text),
        }
    }

    fn emit(&mut self, block: Box<RawValue>) {
        self.seen.borrow_mut().blocks.push(block.get().to_owned());
    }
}

fn answer(call: &EngineCall) -> Result<Box<RawValue>, ToolException> {
    let thrown = |message: &str| ToolException::new(&*call.name, message);
    match call.name.as_str() {
        "fail" if call.arguments.get().contains("content") => {
            let given: serde_json::Value =
                serde_json::from_str(call.arguments.get()).expect("arguments are JSON");
            Err(ToolException { content: Some(given["content"].to_string()), ..thrown("no") })
        }
        "echo" | "last" => Ok(call.arguments.clone()),
        "fail" => Err(thrown("the disk is full")),
        // The JSON in the argument's string, untouched.
        "text" => {
            let argument: serde_json::Value =
                serde_json::from_str(call.arguments.get()).expect("arguments are JSON");
            let text = argument["value"].as_str().expect("a string").to_owned();
            Ok(RawValue::from_string(text).expect("JSON"))
        }
        _ => Err(thrown("no such tool")),
    }
}
