//! Preload, load, unload, reset, and the registry of tools.

use std::error::Error;

use serde_json::json;
use toolgate::{Host, Session, SessionMode, Stdio};
use toolgate_testkit::{Builtin, Fixture};

async fn host(mode: SessionMode) -> Result<Host, Box<dyn Error>> {
    let entry = Fixture::new("fixture").with_builtins([Builtin::Echo, Builtin::Add]).entry()?;
    let server = Stdio::new("x", entry.command).args(entry.args);
    let host = Host::builder().server(server).mode(mode).without_scripts().start().await?;
    host.ready().await;
    Ok(host)
}

/// The tools of servers that a session lists.
async fn loaded(session: &Session) -> Vec<String> {
    let tools = session.loaded().await.into_iter().filter(|tool| !tool.is_meta_tool);
    tools.map(|tool| tool.name).collect()
}

#[tokio::test]
async fn a_program_loads_and_unloads_at_any_time_in_every_mode() -> Result<(), Box<dyn Error>> {
    for mode in [SessionMode::Direct, SessionMode::Stable, SessionMode::Dynamic, SessionMode::Code]
    {
        let host = host(mode).await?;
        let mut session = host.session();
        session.preload(["x_echo"])?;
        assert_eq!(session.mode().await.mode, mode);
        let at_first = loaded(&session).await;
        assert!(at_first.contains(&"x_echo".to_owned()), "{mode:?}: {at_first:?}");
        session.load(["x_add"])?;
        let mut both = loaded(&session).await;
        both.sort();
        assert_eq!(both, ["x_add", "x_echo"], "{mode:?}");
        session.unload(["x_echo"])?;
        assert_eq!(loaded(&session).await, ["x_add"], "{mode:?}");
        // What is not listed can be found and called all the same.
        let hits = session.search("echo the text").limit(5).await?;
        assert!(hits.iter().any(|hit| hit.name == "x_echo"), "{mode:?}: {hits:?}");
        assert!(!session.call("x_echo", json!({ "text": "a" })).await?.is_error());
        session.reset();
        let again = loaded(&session).await.len();
        assert_eq!(again, if mode == SessionMode::Direct { 2 } else { 0 }, "{mode:?}");
        host.shutdown().await;
    }
    Ok(())
}

#[tokio::test]
async fn a_dynamic_session_lists_what_it_found() -> Result<(), Box<dyn Error>> {
    let host = host(SessionMode::Dynamic).await?;
    let session = host.session();
    assert!(loaded(&session).await.is_empty());
    let hits = session.search("add two numbers").limit(1).await?;
    assert!(!hits[0].is_loaded);
    assert_eq!(loaded(&session).await, [hits[0].name.clone()]);
    host.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn nothing_is_loaded_if_a_name_is_unknown() -> Result<(), Box<dyn Error>> {
    let host = host(SessionMode::Stable).await?;
    let mut session = host.session();
    let error = session.preload(["x_add", "x_ecko"]).unwrap_err();
    assert_eq!(error.to_string(), "there is no tool `x_ecko`; did you mean `x_echo`?");
    assert!(loaded(&session).await.is_empty());
    host.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn the_registry_shows_what_no_session_lists() -> Result<(), Box<dyn Error>> {
    let host = host(SessionMode::Stable).await?;
    let names: Vec<String> = host.tools().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["x_echo", "x_add"]);
    let mode = host.mode();
    assert_eq!((mode.mode, mode.reason.as_str()), (SessionMode::Stable, "it was asked for"));
    assert_eq!(host.servers()[0].tools, 2);
    let declared = host.session().typescript("x_add").await?;
    assert!(declared.contains("x_add("), "{declared}");
    // A model is answered with a result, whatever it asks.
    let session = host.session();
    let found = session.answer("search_tools", json!({ "query": "add numbers" })).await;
    assert!(found.text().contains("x_add"), "{found:?}");
    assert!(session.answer("no_such_tool", json!({})).await.is_error());
    host.shutdown().await;
    Ok(())
}
