//! From a configuration to a call, and what is refused before the start.

use std::error::Error;

use serde_json::json;
use toolgate::{Host, StartError, Stdio, ToolCallError};
use toolgate_testkit::{Builtin, Fixture};

fn started(error: Result<Host, StartError>) -> String {
    error.err().map_or_else(|| "it started".to_owned(), |error| error.to_string())
}

#[tokio::test]
async fn a_server_of_a_text_starts_and_answers() -> Result<(), Box<dyn Error>> {
    let fixture = Fixture::new("fixture").with_builtins([Builtin::Echo]);
    let mut entry = fixture.entry()?.to_json();
    entry["description"] = json!("${PURPOSE}");
    entry["prefix"] = json!("fix");
    let text = json!({ "mcpServers": { "fixture": entry }, "toolSearch": { "enabled": false } });
    let state = tempfile::tempdir()?;
    let host = Host::builder()
        .config_json(text.to_string())
        .environment(|name| (name == "PURPOSE").then(|| "to repeat".to_owned()))
        .state_folder(state.path())
        .without_scripts()
        .start()
        .await?;
    host.ready().await;
    let names: Vec<String> =
        host.session().loaded().await.into_iter().map(|tool| tool.name).collect();
    assert!(names.contains(&"fix_echo".to_owned()), "{names:?}");
    host.shutdown().await;
    assert!(state.path().read_dir()?.next().is_some(), "the state folder is used");
    Ok(())
}

#[tokio::test]
async fn an_added_server_replaces_one_of_the_configuration() -> Result<(), Box<dyn Error>> {
    let entry = Fixture::new("fixture").with_builtins([Builtin::Echo]).entry()?;
    let host = Host::builder()
        .config_json(json!({ "mcpServers": { "one": { "command": "/nonexistent" } } }).to_string())
        .server(Stdio::new("one", entry.command).args(entry.args).prefix("first"))
        .without_scripts()
        .start()
        .await?;
    host.ready().await;
    let session = host.session();
    let said = session.call("first_echo", json!({ "text": "hello" })).await?;
    assert!(said.text().contains("hello"), "{said:?}");
    assert_eq!(host.servers().len(), 1);
    host.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn an_unusable_configuration_is_an_error() {
    assert!(Host::builder().config_file("no/such/file.json").is_err());
    let broken = Host::builder().config_json("{").without_scripts().start().await;
    assert!(matches!(broken, Err(StartError::Configuration(_))), "{broken:?}");
    let namespace = Host::builder().namespace("work").without_scripts().start().await;
    assert_eq!(started(namespace), "the configuration has no namespace `work`");
}

#[tokio::test]
async fn a_program_that_did_not_call_init_is_told_so() {
    let refused = started(Host::builder().start().await);
    assert!(refused.contains("toolgate::init()"), "{refused}");
    assert!(refused.contains("without_scripts"), "{refused}");
    // Here it is too late, because the runtime of the test runs already.
    toolgate::init();
    let refused = started(Host::builder().start().await);
    assert!(refused.contains("inside of a Tokio runtime"), "{refused}");
    // Where scripts are off, nothing is needed.
    let off = json!({ "codeMode": { "enabled": false } }).to_string();
    assert_eq!(started(Host::builder().config_json(off).start().await), "it started");
}

#[tokio::test]
async fn wrong_names_arguments_and_types_are_typed_errors() -> Result<(), Box<dyn Error>> {
    let entry = Fixture::new("fixture").with_builtins([Builtin::Echo, Builtin::Add]).entry()?;
    let host = Host::builder()
        .server(Stdio::new("x", entry.command).args(entry.args))
        .without_scripts()
        .start()
        .await?;
    host.ready().await;
    let session = host.session();
    match session.call("x_ecko", json!({})).await {
        Err(ToolCallError::UnknownTool(unknown)) => assert_eq!(unknown.nearest, ["x_echo"]),
        other => panic!("{other:?}"),
    }
    match session.call("x_add", json!({ "a": "one" })).await {
        Err(ToolCallError::InvalidArguments { tool, violations, .. }) => {
            assert_eq!(tool, "x_add");
            assert!(!violations.is_empty());
        }
        other => panic!("{other:?}"),
    }
    let no_object = session.call("x_add", json!([1])).await.unwrap_err().to_string();
    assert!(no_object.contains("are not an object"), "{no_object}");
    let sum = session.call("x_add", json!({ "a": 1, "b": 2 })).await?;
    assert!(sum.parse::<Vec<String>>().is_err());
    assert_eq!(sum.parse::<std::collections::BTreeMap<String, u8>>()?["sum"], 3);
    assert!(session.details("x_ecko").await.is_err());
    host.shutdown().await;
    Ok(())
}
