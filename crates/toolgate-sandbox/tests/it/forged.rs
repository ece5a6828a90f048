//! Frames that no worker of ours sends.

use tokio_util::sync::CancellationToken;
use toolgate_sandbox::{Language, SandboxScript};

use crate::support::{
    TestTools, assert_unharmed, broken, ending, limits, pool, pool_for_crashes, python, run,
    typescript,
};

/// A frame in hexadecimal: its length, its kind, its body.
fn frame(kind: u8, body: &[u8]) -> String {
    let length = u32::try_from(body.len() + 1).unwrap();
    let bytes = length.to_le_bytes().into_iter().chain([kind]).chain(body.iter().copied());
    bytes.fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// A frame with a JSON body.
fn json(body: &str) -> String {
    frame(0, body.as_bytes())
}

fn call(id: u64, name: &str, arguments: &str) -> String {
    json(&format!(r#"{{"Call":{{"id":{id},"name":"{name}","arguments":{arguments}}}}}"#))
}

/// The flows of a script with one call, from the call `from` to itself.
fn flows(from: u32, through: &str) -> String {
    json(&format!(
        r#"{{"Flow":{{"calls":[{{"tool":"echo","line":1}}],"flows":[{{"from":{from},"to":0,
            "argument":null,"is_choice":false,"through":["{through}"]}}]}}}}"#
    ))
}

#[tokio::test]
async fn flows_come_once_before_the_first_call_and_are_bounded() {
    const INVALID: &str = "a frame with an invalid body";
    const LATE: &str = "the flows of a script that runs";
    const TWICE: &str = "flows a second time";
    let cases = [
        ("a call that does not exist", flows(1, "x"), INVALID),
        ("a long variable", flows(0, &"x".repeat(300)), INVALID),
        ("twice", flows(0, "x") + &flows(0, "x"), TWICE),
        ("after a call", call(0, "echo", "{}") + &flows(0, "x"), LATE),
    ];
    let pool = pool_for_crashes();
    for (name, bytes, expected) in cases {
        let report = run(&pool, broken(&[&format!("raw {bytes}"), "spin"]), &limits()).await;
        let ending = ending(&report);
        assert!(ending.contains(expected), "{name}: {ending}");
    }
}

#[tokio::test]
async fn valid_flows_are_taken_and_calls_follow_them() {
    let pool = pool();
    let tools = TestTools::new();
    // The worker sends no flows of its own, because it cannot follow the first line. Otherwise its
    // own ones would come after these, with the first call.
    let call = r#"{"Call":{"id":0,"name":"echo","arguments":{},"place":4294967295}}"#;
    let frames = flows(0, "x") + &json(call) + &json(r#"{"Done":{"Value":7}}"#);
    let code = format!("# broken\n(1).__dict__\n# raw {frames}\n# spin\n");
    let script = SandboxScript::new(code, Language::Python);
    let limits = limits();
    let report = pool.run(script, &limits, tools.clone(), CancellationToken::new()).await;
    assert_eq!(ending(&report), "value: 7", "{}", report.output.head);
    let flows = tools.flows.lock();
    assert_eq!(flows.len(), 1);
    assert_eq!((flows[0].calls[0].tool.as_deref(), flows[0].flows[0].from), (Some("echo"), 0));
    assert_eq!(tools.places.lock()[0], Some(u32::MAX), "the host decides what a place means");
}

#[tokio::test]
async fn flows_of_a_worker_come_before_its_calls() {
    let pool = pool();
    let scripts = [
        typescript("const a = await echo({ n: 1 });\nconst f = echo;\nawait f({ a });"),
        python("a = await echo(n=1)\nf = echo\nawait f(a=a)"),
    ];
    for script in scripts {
        let tools = TestTools::new();
        let limits = limits();
        let report = pool.run(script, &limits, tools.clone(), CancellationToken::new()).await;
        assert!(!ending(&report).starts_with("crashed"), "{}", ending(&report));
        assert_eq!(*tools.places.lock(), [Some(0), None]);
        let flows = tools.flows.lock();
        let sites: Vec<_> = flows[0].calls.iter().map(|call| (call.line, call.place)).collect();
        assert_eq!(sites, [(1, Some(0)), (3, None)]);
        assert_eq!((flows[0].flows[0].from, flows[0].flows[0].to), (0, 1));
    }
}

#[tokio::test]
async fn an_invalid_frame_ends_the_run() {
    const INVALID: &str = "a frame with an invalid body";
    let long_name = format!(r#"{{"Describe":["{}"]}}"#, "x".repeat(5_000));
    let describe = json(r#"{"Describe":["echo"]}"#);
    let cases = [
        ("an unknown kind", frame(99, b""), "unknown kind 99"),
        ("kind three", frame(3, b"abc"), "unknown kind 3"),
        ("nothing", String::from("00000000"), "an empty frame"),
        ("four gigabytes", String::from("ffffffff"), "a frame of 4294967295 bytes"),
        ("more than allowed", String::from("00000010"), "a frame of 268435456 bytes"),
        ("ready again", json(r#"{"Ready":{"measures":[]}}"#), "ready a second time"),
        ("ready with nonsense", json(r#"{"Ready":{"#), INVALID),
        ("names that are no list", json(r#"{"Describe":{}}"#), INVALID),
        ("names that are numbers", json(r#"{"Describe":[1]}"#), INVALID),
        ("a name without end", json(&long_name), INVALID),
        (
            "two questions at once",
            describe.clone() + &describe,
            "a question before the last one was answered",
        ),
        ("flows of nonsense", json(r#"{"Flow":{"calls":1}}"#), INVALID),
        ("half a call", json(r#"{"Call":{"id":1"#), INVALID),
        ("a call without arguments", json(r#"{"Call":{"id":1,"name":"echo"}}"#), INVALID),
        ("a call of bytes", frame(0, b"{\"Call\":{\"id\":1,\"name\":\"\xff\xfe\"}}"), INVALID),
        ("a call with a list", call(0, "echo", "[]"), INVALID),
        ("a call with nonsense", call(0, "echo", "{\"a\":"), INVALID),
        ("a call with two objects", call(0, "echo", "{}{}"), INVALID),
        (
            "a call with bytes",
            frame(0, b"{\"Call\":{\"id\":0,\"name\":\"echo\",\"arguments\":{\"\xff\":1}}}"),
            INVALID,
        ),
        ("a long name", call(0, &"x".repeat(300), "{}"), INVALID),
        (
            "a number twice",
            call(5, "echo", "{}") + &call(5, "echo", "{}"),
            "the number of an earlier call",
        ),
        (
            "a number that goes back",
            call(5, "echo", "{}") + &call(4, "echo", "{}"),
            "the number of an earlier call",
        ),
        ("output as JSON", json(r#"{"Output":["Output",[65]]}"#), INVALID),
        ("a block of nonsense", json(r#"{"Emit":nonsense}"#), INVALID),
        ("a value of nonsense", json(r#"{"Done":{"Value":{]}}"#), INVALID),
        ("an end of nonsense", json(r#"{"Done":{"Escaped":1}}"#), INVALID),
    ];
    let pool = pool_for_crashes();
    for (name, bytes, expected) in cases {
        let report = run(&pool, broken(&[&format!("raw {bytes}"), "spin"]), &limits()).await;
        let ending = ending(&report);
        assert!(ending.starts_with("crashed: the worker broke the protocol: "), "{name}: {ending}");
        assert!(ending.contains(expected), "{name}: {ending}");
        assert_unharmed(&pool).await;
    }
}

#[tokio::test]
async fn frames_after_the_end_are_ignored() {
    let pool = pool();
    let tools = TestTools::new();
    let bytes = json(r#"{"Done":{"Value":1}}"#) + &call(0, "echo", "{}");
    let script = broken(&[&format!("raw {bytes}"), "spin"]);
    let limits = limits();
    let report = pool.run(script, &limits, tools.clone(), CancellationToken::new()).await;
    assert_eq!(ending(&report), "value: 1");
    assert_eq!(tools.calls.load(std::sync::atomic::Ordering::Relaxed), 0);
    assert_unharmed(&pool).await;
}

#[tokio::test]
async fn half_a_frame_is_not_used() {
    let pool = pool();
    let script = broken(&["print before", "raw 10000000", "exit 0"]);
    let report = run(&pool, script, &limits()).await;
    assert!(ending(&report).starts_with("crashed: "), "{}", ending(&report));
    assert_unharmed(&pool).await;
}

#[tokio::test]
async fn an_error_of_any_size_is_cut() {
    let pool = pool();
    let failure = format!(
        r#"{{"Done":{{"Failed":{{"kind":"Exception","message":"{0}","stack":[{1}],"hint":null}}}}}}"#,
        "m".repeat(100_000),
        vec![r#"{"function":"f","position":{"line":1,"column":1}}"#; 1_000].join(","),
    );
    let script = broken(&[&format!("raw {}", json(&failure)), "spin"]);
    let report = run(&pool, script, &limits()).await;
    let toolgate_sandbox::RunOutcome::Failed(failure) = report.outcome else {
        panic!("{report:?}")
    };
    assert_eq!((failure.message.len(), failure.stack.len()), (16 * 1024, 64));
}

#[tokio::test]
async fn calls_that_are_not_awaited_are_bounded() {
    let pool = pool();
    // It never reads an answer, so it is not listened to any more after a while.
    let limits =
        toolgate_sandbox::RunLimits { wall: std::time::Duration::from_millis(700), ..limits() };
    let report = run(&pool, broken(&["forge-calls 1000"]), &limits).await;
    assert!(
        ending(&report).starts_with("stopped: the script took more than 0.7 s"),
        "{}",
        ending(&report)
    );
    assert!(report.calls.len() <= 600, "{}", report.calls.len());
    // What was refused was answered too, until nobody read it.
    assert!(report.calls_left_out < 100_000, "{}", report.calls_left_out);
    assert_unharmed(&pool).await;
}
