//! Frames that no worker of ours sends.

use tokio_util::sync::CancellationToken;

use crate::support::{TestTools, assert_unharmed, broken, ending, limits, pool, run};

/// A frame in hexadecimal: its length, its kind, its body.
fn frame(kind: u8, body: &[u8]) -> String {
    let length = u32::try_from(body.len() + 1).unwrap();
    let bytes = length.to_le_bytes().into_iter().chain([kind]).chain(body.iter().copied());
    bytes.fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn call(id: u64, name: &[u8], arguments: &[u8]) -> String {
    let mut body = id.to_le_bytes().to_vec();
    body.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
    body.extend(name);
    body.extend(arguments);
    frame(3, &body)
}

#[tokio::test]
async fn a_frame_that_is_none_ends_the_run() {
    let cases = [
        ("an unknown kind", frame(99, b""), "unknown kind 99"),
        ("kind zero", frame(0, b"abc"), "unknown kind 0"),
        ("nothing", String::from("00000000"), "an empty frame"),
        ("four gigabytes", String::from("ffffffff"), "a frame of 4294967295 bytes"),
        ("more than allowed", String::from("00000010"), "a frame of 268435456 bytes"),
        ("ready again", frame(1, br#"{"measures":[]}"#), "ready a second time"),
        ("ready with nonsense", frame(1, b"{"), "bytes that are no ready frame"),
        ("names that are no list", frame(2, b"{}"), "bytes that are no describe frame"),
        ("names that are numbers", frame(2, b"[1]"), "bytes that are no describe frame"),
        (
            "a name without end",
            frame(2, format!("[\"{}\"]", "x".repeat(5_000)).as_bytes()),
            "bytes that are no describe frame",
        ),
        (
            "two questions at once",
            frame(2, b"[\"echo\"]") + &frame(2, b"[\"echo\"]"),
            "a question before the last one was answered",
        ),
        ("half a call", frame(3, &[1, 2]), "bytes that are no call frame"),
        ("a call whose name has no end", frame(3, &[0; 9]), "bytes that are no call frame"),
        ("a call of bytes", call(0, b"\xff\xfe", b"{}"), "bytes that are no call frame"),
        ("a call with a list", call(0, b"echo", b"[]"), "bytes that are no call frame"),
        ("a call with nonsense", call(0, b"echo", b"{\"a\":"), "bytes that are no call frame"),
        ("a call with two objects", call(0, b"echo", b"{}{}"), "bytes that are no call frame"),
        ("a call with bytes", call(0, b"echo", b"{\"\xff\":1}"), "bytes that are no call frame"),
        ("a long name", call(0, &[b'x'; 300], b"{}"), "bytes that are no call frame"),
        (
            "a number twice",
            call(5, b"echo", b"{}") + &call(5, b"echo", b"{}"),
            "the number of an earlier call",
        ),
        (
            "a number that goes back",
            call(5, b"echo", b"{}") + &call(4, b"echo", b"{}"),
            "the number of an earlier call",
        ),
        ("output without a stream", frame(4, b""), "bytes that are no output frame"),
        ("a third stream", frame(4, &[2, 65]), "bytes that are no output frame"),
        ("a block of nonsense", frame(5, b"nonsense"), "bytes that are no emit frame"),
        ("a value of nonsense", frame(6, b"{]"), "bytes that are no value frame"),
        ("an end of nonsense", frame(7, b"{\"Escaped\":1}"), "bytes that are no ended frame"),
    ];
    let pool = pool();
    for (name, bytes, expected) in cases {
        let report = run(&pool, broken(&[&format!("raw {bytes}"), "spin"]), &limits()).await;
        let ending = ending(&report);
        assert!(ending.starts_with("crashed: the worker broke the protocol: "), "{name}: {ending}");
        assert!(ending.contains(expected), "{name}: {ending}");
        assert_unharmed(&pool).await;
    }
}

#[tokio::test]
async fn what_comes_after_the_end_is_not_heard() {
    let pool = pool();
    let tools = TestTools::new();
    let bytes = frame(6, b"1") + &call(0, b"echo", b"{}");
    let script = broken(&[&format!("raw {bytes}"), "spin"]);
    let limits = limits();
    let report = pool.run(script, &limits, tools.clone(), CancellationToken::new()).await;
    assert_eq!(ending(&report), "value: 1");
    assert_eq!(tools.calls.load(std::sync::atomic::Ordering::Relaxed), 0);
    assert_unharmed(&pool).await;
}

#[tokio::test]
async fn half_a_frame_is_no_frame() {
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
        r#"{{"Failed":{{"kind":"Exception","message":"{0}","stack":[{1}],"hint":null}}}}"#,
        "m".repeat(100_000),
        vec![r#"{"function":"f","position":{"line":1,"column":1}}"#; 1_000].join(","),
    );
    let script = broken(&[&format!("raw {}", frame(7, failure.as_bytes())), "spin"]);
    let report = run(&pool, script, &limits()).await;
    let toolgate_sandbox::RunOutcome::Failed(failure) = report.outcome else {
        panic!("{report:?}")
    };
    assert_eq!((failure.message.len(), failure.stack.len()), (16 * 1024, 64));
}

#[tokio::test]
async fn calls_without_end_that_nobody_awaits_are_bounded() {
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
