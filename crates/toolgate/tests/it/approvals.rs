//! The callback that decides about calls, and the events.

use std::{
    error::Error,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::json;
use toolgate::{Approval, ApprovalQuestion, Event, Host, HostBuilder, Stdio, ToolCallError};
use toolgate_testkit::{Builtin, Fixture, within};

/// Deletes something.
#[toolgate::tool(destructive)]
async fn delete_it(what: String) -> String {
    format!("{what} is gone")
}

/// A host whose answers are these, one after the other, and the questions it asked.
async fn host(
    answers: &'static [Approval],
    builder: HostBuilder,
) -> Result<(Host, Arc<Mutex<Vec<ApprovalQuestion>>>), Box<dyn Error>> {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (questions, count) = (Arc::clone(&asked), AtomicUsize::new(0));
    let callback = move |question| {
        questions.lock().unwrap().push(question);
        let answer = answers[count.fetch_add(1, Ordering::SeqCst)];
        async move { answer }
    };
    let builder = builder.without_scripts().tool(delete_it).on_approval(callback);
    Ok((builder.start().await?, asked))
}

#[tokio::test]
async fn each_answer_means_what_it_says() -> Result<(), Box<dyn Error>> {
    let answers = &[Approval::Deny, Approval::Once, Approval::Session, Approval::Once];
    let (host, asked) = host(answers, Host::builder()).await?;
    let session = host.session();
    let denied = session.call("delete_it", json!({ "what": "a" })).await;
    assert!(matches!(denied, Err(ToolCallError::Denied { .. })), "{denied:?}");
    for what in ["a", "b", "c", "d"] {
        let result = session.call("delete_it", json!({ "what": what })).await?;
        assert_eq!(result.text(), format!("{what} is gone"));
    }
    // Once for the first, and for the session from the second one on.
    assert_eq!(asked.lock().unwrap().len(), 3);
    // Another session is asked again.
    let other = host.session();
    other.call("delete_it", json!({ "what": "e" })).await?;
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 4);
    let question = &asked[0];
    assert_eq!((question.tool.as_str(), question.server.as_str()), ("delete_it", "functions"));
    assert_eq!(question.arguments, Some(json!({ "what": "a" })));
    assert!(question.to_string().contains("wants to call delete_it"), "{question}");
    Ok(())
}

#[tokio::test]
async fn an_answer_for_always_outlives_the_host() -> Result<(), Box<dyn Error>> {
    let state = tempfile::tempdir()?;
    let builder = || Host::builder().state_folder(state.path());
    let (first, asked) = host(&[Approval::Always], builder()).await?;
    first.session().call("delete_it", json!({ "what": "a" })).await?;
    first.shutdown().await;
    assert_eq!(asked.lock().unwrap().len(), 1);
    let (second, asked) = host(&[Approval::Deny], builder()).await?;
    second.session().call("delete_it", json!({ "what": "b" })).await?;
    assert_eq!(asked.lock().unwrap().len(), 0);
    // The grant belongs to its caller.
    let other = second.session_of("somebody else").call("delete_it", json!({ "what": "c" })).await;
    assert!(matches!(other, Err(ToolCallError::Denied { .. })), "{other:?}");
    second.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_callback_that_panics_allows_nothing() -> Result<(), Box<dyn Error>> {
    let builder = Host::builder().without_scripts().tool(delete_it);
    let host = builder.on_approval(|_| async { panic!("no answer") }).start().await?;
    let denied = host.session().call("delete_it", json!({ "what": "a" })).await;
    assert!(matches!(denied, Err(ToolCallError::Denied { .. })), "{denied:?}");
    Ok(())
}

#[tokio::test]
async fn without_a_callback_a_rule_that_asks_is_not_passed() -> Result<(), Box<dyn Error>> {
    let policy =
        json!({ "policy": { "rules": [{ "server": "functions", "verdict": "ask" }] } }).to_string();
    let start = || Host::builder().without_scripts().config_json(&*policy).tool(delete_it);
    let host = start().start().await?;
    let denied = host.session().call("delete_it", json!({ "what": "a" })).await;
    assert!(matches!(denied, Err(ToolCallError::Denied { .. })), "{denied:?}");
    // With a state folder the question waits there.
    let state = tempfile::tempdir()?;
    let host = start().state_folder(state.path()).start().await?;
    let waits = host.session().call("delete_it", json!({ "what": "a" })).await;
    assert!(matches!(waits, Err(ToolCallError::WaitsForApproval { .. })), "{waits:?}");
    host.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn events_tell_of_calls_and_lists() -> Result<(), Box<dyn Error>> {
    let (host, _) = host(&[Approval::Deny], Host::builder()).await?;
    let mut events = host.events();
    let mut session = host.session();
    session.load(["delete_it"])?;
    let _ = session.call("delete_it", json!({ "what": "a" })).await;
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let event = within("an event", events.next()).await;
        seen.push(match event {
            Some(Event::ListChanged { session: id }) => {
                assert_eq!(id, session.id());
                "list".to_owned()
            }
            Some(Event::CallStarted { call, arguments }) => {
                assert_eq!(arguments, json!({ "what": "a" }));
                format!("start {}", call.tool)
            }
            Some(Event::CallEnded { problem, .. }) => {
                format!("end {}", problem.unwrap_or_default())
            }
            _ => continue,
        });
    }
    assert_eq!(
        seen,
        ["list", "start delete_it", "end `delete_it` was not called: a person denied it"]
    );
    Ok(())
}

#[tokio::test]
async fn events_tell_of_approvals() -> Result<(), Box<dyn Error>> {
    let (host, _) = host(&[Approval::Deny, Approval::Once], Host::builder()).await?;
    let mut events = host.events();
    let session = host.session();
    let _ = session.call("delete_it", json!({ "what": "a" })).await;
    session.call("delete_it", json!({ "what": "b" })).await?;
    let mut seen = Vec::new();
    while seen.len() < 4 {
        match within("an event", events.next()).await {
            Some(Event::ApprovalAsked { tool, session: id, question, .. }) => {
                assert_eq!((tool.as_str(), id.as_str()), ("delete_it", session.id()));
                assert!(question.contains("wants to call delete_it"), "{question}");
                seen.push("asked");
            }
            Some(Event::ApprovalAnswered { is_allowed, .. }) => {
                seen.push(if is_allowed { "allowed" } else { "denied" });
            }
            _ => {}
        }
    }
    assert_eq!(seen, ["asked", "denied", "asked", "allowed"]);

    // Where nobody can be asked, the call waits.
    let policy = json!({ "policy": { "rules": [{ "server": "functions", "verdict": "ask" }] } });
    let state = tempfile::tempdir()?;
    let builder = Host::builder().without_scripts().config_json(&*policy.to_string());
    let host = builder.tool(delete_it).state_folder(state.path()).start().await?;
    let mut events = host.events();
    let Err(ToolCallError::WaitsForApproval { question: waits, .. }) =
        host.session().call("delete_it", json!({ "what": "a" })).await
    else {
        panic!("it waits")
    };
    loop {
        if let Some(Event::ApprovalWaits { call, question }) =
            within("an event", events.next()).await
        {
            assert_eq!((call.tool.as_str(), question), ("delete_it", waits));
            break;
        }
    }
    host.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn events_tell_how_far_a_call_has_come() -> Result<(), Box<dyn Error>> {
    let entry = Fixture::new("kit").with_builtins([Builtin::Progress]).entry()?;
    let server = Stdio::new("kit", entry.command).args(entry.args);
    let host = Host::builder().without_scripts().server(server).start().await?;
    let mut events = host.events();
    host.session().call("kit_progress", json!({ "steps": 3 })).await?;
    let mut steps = Vec::new();
    while steps.len() < 3 {
        if let Some(Event::CallProgress { call, progress, .. }) =
            within("an event", events.next()).await
        {
            assert_eq!(call.tool, "kit_progress");
            steps.push(progress);
        }
    }
    assert!(steps.is_sorted(), "{steps:?}");
    host.shutdown().await;
    Ok(())
}
