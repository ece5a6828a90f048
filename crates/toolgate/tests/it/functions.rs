//! Functions as tools: errors, panics, time, names, and the way through the broker.

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use toolgate::{FunctionTool, Host, HostBuilder, StartError, Stdio, ToolCallError};
use toolgate_testkit::{Builtin, Fixture};

/// Doubles a number.
#[toolgate::tool(read_only, title = "Double")]
async fn double(
    /// The number.
    n: i8,
    /// How often; once if left out.
    times: Option<u8>,
) -> Result<i64, std::num::TryFromIntError> {
    Ok(i64::from(n) << i64::from(times.unwrap_or(1)))
}

/// Fails.
#[toolgate::tool]
async fn fail() -> Result<(), String> {
    Err("out of paper".to_owned())
}

/// Panics.
#[toolgate::tool]
async fn panic_now() {
    panic!("the password is hunter2");
}

/// Never ends.
#[toolgate::tool(timeout_seconds = 1)]
async fn hang() {
    std::future::pending::<()>().await;
}

fn builder() -> HostBuilder {
    Host::builder().without_scripts()
}

#[tokio::test]
async fn name_schema_and_documentation_come_from_the_signature() -> Result<(), Box<dyn Error>> {
    let host = builder().tool(double).start().await?;
    let details = host.session().details("double").await?;
    assert_eq!(details.server, "functions");
    assert_eq!(details.description, "Doubles a number.");
    assert_eq!(details.definition["title"], "Double");
    assert_eq!(details.definition["annotations"]["readOnlyHint"], true);
    assert_eq!(details.input_schema["required"], json!(["n"]));
    let described = details.input_schema.pointer("/properties/times/description");
    assert_eq!(described, Some(&json!("How often; once if left out.")));
    assert!(details.output_schema.is_some());
    let session = host.session();
    assert_eq!(session.call("double", json!({ "n": 4 })).await?.parse::<i64>()?, 8);
    assert_eq!(session.call("double", json!({ "n": 1, "times": 3 })).await?.parse::<i64>()?, 8);
    // Unknown arguments are refused before the function is called.
    let wrong = session.call("double", json!({ "n": 1, "m": 2 })).await;
    assert!(matches!(wrong, Err(ToolCallError::InvalidArguments { .. })), "{wrong:?}");
    host.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_function_that_fails_panics_or_hangs_is_an_error_of_its_call()
-> Result<(), Box<dyn Error>> {
    let host = builder().tool(fail).tool(panic_now).tool(hang).tool(double).start().await?;
    let session = host.session();
    let said = async |name: &str| -> Result<String, ToolCallError> {
        let result = session.call(name, Value::Null).await?;
        assert!(result.is_error(), "{result:?}");
        Ok(result.text())
    };
    assert_eq!(said("fail").await?, "out of paper");
    // What it says is for its author.
    assert_eq!(said("panic_now").await?, "the function `panic_now` panicked");
    assert_eq!(said("hang").await?, "the function `hang` took longer than 1 s");
    assert_eq!(session.call("double", json!({ "n": 2 })).await?.parse::<i64>()?, 4);
    host.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn leaving_a_call_drops_the_future_of_the_function() -> Result<(), Box<dyn Error>> {
    struct OnDrop(Arc<AtomicBool>, Arc<tokio::sync::Notify>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
            self.1.notify_one();
        }
    }
    let (dropped, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(tokio::sync::Notify::new()));
    let started = Arc::new(tokio::sync::Notify::new());
    let (guard, begun, end) = (Arc::clone(&dropped), Arc::clone(&started), Arc::clone(&ended));
    let wait = FunctionTool::new("wait", "Waits.", move |_: Value| {
        let (guard, begun) = (OnDrop(Arc::clone(&guard), Arc::clone(&end)), Arc::clone(&begun));
        async move {
            let _guard = guard;
            begun.notify_one();
            std::future::pending::<Result<(), String>>().await
        }
    });
    let host = builder().tool(wait).start().await?;
    let session = host.session();
    tokio::select! {
        result = session.call("wait", json!({})) => panic!("{result:?}"),
        () = started.notified() => {}
    }
    toolgate_testkit::within("the function ends", ended.notified()).await;
    assert!(dropped.load(Ordering::SeqCst));
    host.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_policy_decides_about_functions_as_about_all_tools() -> Result<(), Box<dyn Error>> {
    let policy =
        json!({ "policy": { "rules": [{ "tool": "functions/fail", "verdict": "deny" }] } });
    let host = builder().config_json(policy.to_string()).tool(fail).tool(double).start().await?;
    let denied = host.session().call("fail", json!({})).await;
    assert!(
        matches!(denied, Err(ToolCallError::Denied { .. } | ToolCallError::UnknownTool(_))),
        "{denied:?}"
    );
    assert!(!host.tools().iter().any(|tool| tool.name == "fail"), "nobody sees it");
    host.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn names_that_cannot_be_tools_are_refused_at_the_start() {
    let function = |name: &str| {
        FunctionTool::new(name, "d", |_: Value| async { Ok::<_, String>(()) })
            .timeout(Duration::from_secs(1))
    };
    for name in ["", "with space", "delete", "search_tools", "3d"] {
        let refused = builder().tool(function(name)).start().await;
        assert!(matches!(refused, Err(StartError::FunctionName(_))), "{name}: {refused:?}");
    }
    let twice = builder().tool(function("a")).tool(function("a")).start().await;
    assert!(matches!(twice, Err(StartError::DuplicateFunction(_))), "{twice:?}");
    let taken = builder().server(Stdio::new("functions", "x")).tool(function("a")).start().await;
    assert!(matches!(taken, Err(StartError::FunctionsServer)), "{taken:?}");
}

#[tokio::test]
async fn a_function_and_a_tool_of_a_server_may_have_one_name() -> Result<(), Box<dyn Error>> {
    let entry = Fixture::new("fixture").with_builtins([Builtin::Echo]).entry()?;
    let echo = FunctionTool::new("echo", "d", |_: Value| async { Ok::<_, String>("mine") });
    let server = Stdio::new("x", entry.command).args(entry.args).prefix("");
    let host = builder().server(server).tool(echo).start().await?;
    host.ready().await;
    let names: Vec<String> = host.tools().into_iter().map(|tool| tool.name).collect();
    assert!(names.iter().all(|name| name.starts_with("echo_")), "both get a hash: {names:?}");
    assert_eq!(names.len(), 2);
    host.shutdown().await;
    Ok(())
}
