//! From the text of an `mcpServers` file to a call.

use std::error::Error;

use serde_json::json;
use toolgate::{Format, HostBuilder};
use toolgate_testkit::{Builtin, Fixture};

#[tokio::test]
async fn a_server_of_a_text_starts_and_answers() -> Result<(), Box<dyn Error>> {
    let fixture = Fixture::new("fixture").with_builtins([Builtin::Echo]);
    let mut entry = fixture.entry()?.to_json();
    entry["description"] = json!("${PURPOSE}");
    entry["prefix"] = json!("fix");
    let text = json!({ "mcpServers": { "fixture": entry }, "toolSearch": { "enabled": false } });
    let state = tempfile::tempdir()?;
    let host = HostBuilder::new()
        .config_text(text.to_string(), Format::Jsonc)
        .environment(|name| (name == "PURPOSE").then(|| "to repeat".to_owned()))
        .state_folder(state.path())
        .start()?;
    let session = host.session();
    let names: Vec<String> =
        session.list_tools().await.iter().map(|tool| tool["name"].to_string()).collect();
    assert!(names.contains(&"\"fix_echo\"".to_owned()), "{names:?}");
    host.shutdown().await;
    assert!(state.path().read_dir()?.next().is_some(), "the state folder is used");
    Ok(())
}

#[tokio::test]
async fn an_unusable_configuration_is_an_error() {
    let missing = HostBuilder::new().config_file("no/such/file.json");
    assert!(missing.is_err());
    let broken = HostBuilder::new().config_text("{", Format::Jsonc).settings();
    assert!(broken.is_err());
    let namespace = HostBuilder::new().namespace("work").settings();
    assert_eq!(
        namespace.err().map(|error| error.to_string()).as_deref(),
        Some("the configuration has no namespace `work`")
    );
}
