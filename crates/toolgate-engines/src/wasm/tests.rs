use std::time::Duration;

use serde_json::value::RawValue;

use super::*;
use crate::{
    Function,
    world::{Completion, EngineCall, HostClosed, RunSeed, Stream, ToolException},
};

const LANGUAGE: &str = include_str!("../../../../components/test/language.wat");

/// A world with the tool `echo`, which answers calls in the opposite order.
#[derive(Default)]
struct TestWorld {
    calls: Vec<EngineCall>,
    written: String,
    now: Duration,
}

impl World for TestWorld {
    fn submit(&mut self, call: EngineCall) -> Result<(), HostClosed> {
        self.calls.push(call);
        Ok(())
    }

    fn wait(&mut self, deadline: Option<Duration>) -> Result<Option<Completion>, HostClosed> {
        let Some(EngineCall { id, name, arguments, .. }) = self.calls.pop() else {
            self.now = deadline.ok_or(HostClosed)?;
            return Ok(None);
        };
        let outcome = match name.as_str() {
            "echo" => RawValue::from_string(format!("[{id},{arguments}]")).map_err(|_| HostClosed),
            _ => Err(HostClosed),
        };
        let thrown = |_| ToolException::new(&*name, "it is broken");
        Ok(Some(Completion { id, outcome: outcome.map_err(thrown) }))
    }

    fn more(&mut self) -> Result<Option<Completion>, HostClosed> {
        Ok(None)
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn beginning(&self) -> RunSeed {
        RunSeed { unix: Duration::from_secs(1_700_000_000), seed: 7 }
    }

    fn write(&mut self, _stream: Stream, text: &str) {
        self.written.push_str(text);
    }

    fn emit(&mut self, _block: Box<RawValue>) {}
}

#[expect(unsafe_code, reason = "it was compiled here")]
fn load(component: &str) -> LoadedComponent {
    let compiled = compile(component.as_bytes()).unwrap();
    // SAFETY: the compiler has just returned it.
    unsafe { LoadedComponent::load(&compiled) }.unwrap()
}

fn run_with(loaded: &LoadedComponent, source: &str, tool: &str, world: &mut TestWorld) -> String {
    let functions = [Function {
        name: tool.to_owned(),
        parameters: vec!["a".to_owned()],
        first_takes_object: true,
    }];
    let script = EngineScript { source, functions: &functions, places: &[] };
    let limits = EngineLimits { memory_bytes: 8 * 1024 * 1024, stack_bytes: 0 };
    match Box::new(loaded.start().unwrap()).run(&script, &limits, world) {
        EngineOutcome::Value(Some(value)) => value.get().to_owned(),
        EngineOutcome::Value(None) => "nothing".to_owned(),
        EngineOutcome::Failed(failure) => format!("{:?}: {}", failure.kind, failure.message),
    }
}

#[test]
fn a_component_returns_values_prints_and_fails() {
    let loaded = load(LANGUAGE);
    let mut world = TestWorld::default();
    let mut run = |source: &str| run_with(&loaded, source, "echo", &mut world);
    assert_eq!(run("v[1, 2]"), "[1, 2]");
    assert_eq!(run(""), "nothing");
    assert_eq!(run("fNameError: x"), "Exception: NameError: x");
    assert!(run("vno json").starts_with("Exception: the value is no JSON: "));
    assert_eq!(run("phéllo\n"), "nothing");
    assert_eq!(world.written, "héllo\n");
}

#[test]
fn calls_are_made_at_once_and_end_in_any_order() {
    let loaded = load(LANGUAGE);
    let mut world = TestWorld::default();
    assert_eq!(run_with(&loaded, "c{\"a\":1}", "echo", &mut world), "[0,{\"a\":1}]");
    assert_eq!(run_with(&loaded, "2{}", "echo", &mut world), "[0,{}]");
    assert_eq!(run_with(&loaded, "c{}", "other", &mut world), "Exception: it is broken");
    // What is no call is not sent.
    let refused = "Exception: the arguments are no JSON object";
    assert_eq!(run_with(&loaded, "c[]", "echo", &mut world), refused);
    let refused = "Exception: there is no tool with so long a name";
    assert_eq!(run_with(&loaded, "c{}", &"a".repeat(257), &mut world), refused);
    assert!(world.calls.is_empty());
}

#[test]
fn time_passes_while_a_script_waits() {
    let loaded = load(LANGUAGE);
    let mut world = TestWorld::default();
    assert_eq!(run_with(&loaded, "w", "echo", &mut world), "nothing");
    assert_eq!(world.now, Duration::from_secs(10));
    let stalled = "Stalled: the script waits for something that can no longer happen";
    assert_eq!(run_with(&loaded, "s", "echo", &mut world), stalled);
}

#[test]
fn what_goes_wrong_in_a_component_ends_the_script() {
    // The stack of a test is smaller than that of a worker.
    let checks = || {
        let loaded = load(LANGUAGE);
        let mut world = TestWorld::default();
        let mut run = |source: &str| run_with(&loaded, source, "echo", &mut world);
        assert!(run("t").starts_with("Exception: the component failed: "), "{}", run("t"));
        assert!(run("o").contains("out of bounds memory access"), "{}", run("o"));
        assert_eq!(run("m"), "Memory: the script needs more memory than it may have");
        assert_eq!(run("d"), "Stack: the stack of the component is full");
    };
    std::thread::Builder::new().stack_size(16 << 20).spawn(checks).unwrap().join().unwrap();
}

#[test]
fn what_is_no_component_of_the_world_is_refused() {
    let refused = |component: &str| compile(component.as_bytes()).unwrap_err().to_string();
    assert!(refused("(module)").starts_with("it is no valid WebAssembly component: "));
    assert!(refused("x").starts_with("it is no valid WebAssembly component: "));
    let missing = "it is no component of the world `toolgate:script/language`: it does not export \
                   the function `run`";
    assert_eq!(refused("(component)"), missing);
    let network = r#"(component (import "wasi:http/outgoing-handler@0.2.0" (instance)))"#;
    let forbidden = "which components for scripts do not get";
    assert_eq!(
        refused(network),
        format!("it imports `wasi:http/outgoing-handler@0.2.0`, {forbidden}")
    );
    let function = r#"(component (import "open" (func)))"#;
    assert_eq!(refused(function), format!("it imports `open`, {forbidden}"));
    let renamed = LANGUAGE.replace("(param \"script\" string)", "(param \"script\" (list u32))");
    assert!(refused(&renamed).contains("its `run` has another type"), "{}", refused(&renamed));
    let wider = LANGUAGE.replace("(param \"text\" string)", "(param \"text\" u32)");
    assert!(!refused(&wider).is_empty());
}

#[test]
#[expect(unsafe_code, reason = "bytes that are no machine code are never run")]
fn bytes_that_were_not_compiled_are_not_loaded() {
    // SAFETY: they are refused.
    let error = unsafe { LoadedComponent::load(b"\x7fELF") }.unwrap_err();
    assert!(matches!(error, ComponentError::Stale(_)), "{error}");
}

/// A component that uses WASI: it runs `body`, which has the functions `$now`, `$random` and `$socket`.
fn with_wasi(body: &str) -> String {
    LANGUAGE
        .replace(
            "  (core module $memory\n",
            "  (import \"wasi:clocks/monotonic-clock@0.2.9\" (instance $clock
                 (export \"now\" (func (result u64)))))
               (import \"wasi:random/random@0.2.3\" (instance $random
                 (export \"get-random-u64\" (func (result u64)))))
               (type $code (enum \"unknown\" \"access-denied\"))
               (import \"wasi:sockets/tcp-create-socket@0.2.0\" (instance $sockets
                 (export \"tcp-socket\" (type $socket (sub resource)))
                 (alias outer 1 $code (type $code))
                 (export \"error-code\" (type $error (eq $code)))
                 (export \"create\" (func (result (result (own $socket) (error $error)))))
                 (export \"close\" (func))))
               (core module $memory\n",
        )
        .replace(
            "  (core func $now (canon lower (func $host \"now\")))\n",
            "  (core func $now (canon lower (func $clock \"now\")))
               (core func $dice (canon lower (func $random \"get-random-u64\")))
               (core func $create (canon lower (func $sockets \"create\") (memory (core memory $memory \"memory\"))))
               (core func $close (canon lower (func $sockets \"close\")))\n",
        )
        .replace(
            "    (import \"host\" \"now\" (func $now (result i64)))\n",
            "    (import \"host\" \"now\" (func $now (result i64)))
                 (import \"host\" \"dice\" (func $dice (result i64)))
                 (import \"host\" \"create\" (func $create (param i32)))
                 (import \"host\" \"close\" (func $close))\n",
        )
        .replace(
            "(export \"now\" (func $now))))))\n",
            "(export \"now\" (func $now)) (export \"dice\" (func $dice))
             (export \"create\" (func $create)) (export \"close\" (func $close))))))\n",
        )
        .replace("      (call $nothing)))\n", &format!("{body}      (call $nothing)))\n"))
}

#[test]
fn wasi_has_the_clock_and_the_random_numbers_of_the_run_and_nothing_else() {
    let mut world = TestWorld::default();
    let mut run = |body: &str| run_with(&load(&with_wasi(body)), "x", "echo", &mut world);
    let same = "(if (i64.ne (call $now) (i64.const 1700000000000000000)) (then (unreachable)))\n";
    assert_eq!(run(same), "nothing");
    let differ = "(if (i64.eq (call $dice) (call $dice)) (then (unreachable)))\n";
    assert_eq!(run(differ), "nothing");
    // What could open something returns an error, of the case 1.
    let denied = "(call $create (i32.const 64))
                  (if (i32.eqz (i32.load8_u (i32.const 64))) (then (unreachable)))
                  (if (i32.ne (i32.load8_u (i32.const 68)) (i32.const 1)) (then (unreachable)))\n";
    assert_eq!(run(denied), "nothing");
    let absent = "Exception: the component called \
                  `wasi:sockets/tcp-create-socket@0.2.0#close`, which scripts do not have";
    assert_eq!(run("(call $close)\n"), absent);
    // A script that only looks at the clock gets on, too.
    let busy = "(loop $again
                  (br_if $again (i64.lt_u (call $now) (i64.const 1700000000500000000))))\n";
    assert_eq!(run(busy), "nothing");
    assert!(world.now >= Duration::from_millis(500));
}
