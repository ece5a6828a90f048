//! What a worker may say, and what is made of it.

use toolgate_sandbox::CallState;

use crate::support::{assert_unharmed, broken, ending, limits, pool, run};

#[tokio::test]
async fn a_script_writes_calls_and_returns() {
    let pool = pool();
    assert_unharmed(&pool).await;
    let report = run(
        &pool,
        broken(&["print a", "call echo {\"x\":[1]}", "call fail", "wait", "wait", "throw ouch"]),
        &limits(),
    )
    .await;
    assert_eq!(ending(&report), "failed: ouch");
    assert_eq!(report.output.head, "a\n0 {\"x\":[1]}\n1 fail: it is broken\n");
    let states: Vec<_> = report.calls.iter().map(|call| call.state.clone()).collect();
    assert_eq!(states, [CallState::Completed, CallState::Failed(String::from("it is broken"))]);
    assert!(report.cpu > std::time::Duration::ZERO && report.cpu < report.wall);
}
