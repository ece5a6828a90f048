//! Grants belong to their callers and servers.

use serde_json::json;
use toolgate_broker::{Caller, SessionContext, read_grants};
use toolgate_host::{AuditSettings, HostSettings, ToolHost, ToolSession};
use toolgate_policy::PolicySettings;
use toolgate_store::{ApprovalState, SwitchedBy};
use toolgate_testkit::Fixture;
use toolgate_upstream::{Endpoint, HttpEndpoint};

use super::{
    asking,
    fixture::{GuardFixture, Voice, said, said_widely},
};

fn session_of(host: &ToolHost, identity: &str) -> ToolSession {
    host.session_of(SessionContext::new(Caller::model(identity)))
}

/// The questions that wait.
fn questions(fixture: &GuardFixture) -> Vec<String> {
    let open = fixture.store().journal().unwrap().open_approvals().unwrap();
    open.into_iter().map(|approval| approval.id).collect()
}

#[tokio::test]
async fn no_caller_uses_the_grant_of_another() {
    let fixture = GuardFixture::new(asking()).await;
    let (laptop, desk) = (session_of(&fixture.host, "laptop"), session_of(&fixture.host, "desk"));
    let arguments = json!({ "id": "1" });
    assert!(fixture.call(&laptop, None, "store_delete", arguments.clone()).await.1);
    fixture.approve(&questions(&fixture)[0]);
    let (text, failed) = fixture.call(&desk, None, "store_delete", arguments.clone()).await;
    assert!(failed && text.contains("waiting for approval"), "{text}");
    assert_eq!(fixture.calls(), 0);
    // Each session of the caller may use it, and one does.
    let later = session_of(&fixture.host, "laptop");
    assert!(!fixture.call(&later, None, "store_delete", arguments.clone()).await.1);
    assert!(fixture.call(&laptop, None, "store_delete", arguments).await.1);
    assert_eq!(fixture.calls(), 1);
    let voice = Voice::new([said("allow always")]);
    let arguments = json!({ "id": "2" });
    assert!(!fixture.call(&laptop, Some(&voice), "store_delete", arguments.clone()).await.1);
    assert!(!fixture.call(&later, None, "store_delete", arguments.clone()).await.1);
    assert!(fixture.call(&desk, None, "store_delete", arguments).await.1, "always is theirs, too");
    fixture.end().await;
}

#[tokio::test]
async fn a_grant_does_not_cover_another_server_of_the_same_name() {
    let fixture = GuardFixture::new(asking()).await;
    let voice = Voice::new([said_widely("allow always")]);
    let session = fixture.host.session();
    assert!(!fixture.call(&session, Some(&voice), "store_delete", json!({ "id": "1" })).await.1);
    assert!(!fixture.call(&session, None, "store_delete", json!({ "id": "2" })).await.1);
    assert_eq!(read_grants(&**fixture.host.journal().unwrap()).unwrap().len(), 1);
    fixture.host.shutdown().await;
    let delete = json!({ "name": "delete", "inputSchema": { "type": "object" } });
    let (store, was) = (fixture.store(), fixture.host.settings().servers.clone());
    let take_over =
        |settings: HostSettings| HostSettings { store: Some(store.clone()), ..settings };
    let fixture = Fixture::new("store").with_tool(delete);
    let other = GuardFixture::of([fixture], asking(), take_over).await;
    let session = other.host.session();
    let (text, failed) = other.call(&session, None, "store_delete", json!({ "id": "3" })).await;
    assert!(failed && text.contains("waiting for approval"), "{text}");
    assert_eq!(other.calls(), 0);
    // A new password makes no other server.
    let back = GuardFixture::of([], asking(), |mut settings| {
        settings.servers = was;
        for setup in &mut settings.servers {
            if let Endpoint::Http(HttpEndpoint { headers, .. }) = &mut setup.spec.endpoint {
                headers.insert("X-Key".to_owned(), "new".to_owned());
            }
        }
        take_over(settings)
    })
    .await;
    let session = back.host.session();
    assert!(!back.call(&session, None, "store_delete", json!({ "id": "4" })).await.1);
    other.end().await;
    back.end().await;
}

#[tokio::test]
async fn one_call_in_several_sessions_is_one_question() {
    let fixture = GuardFixture::new(asking()).await;
    let sessions = [(); 3].map(|()| session_of(&fixture.host, "laptop"));
    for session in &sessions {
        assert!(fixture.call(session, None, "store_delete", json!({ "id": "1" })).await.1);
    }
    let open = questions(&fixture);
    assert_eq!(open.len(), 1);
    let other = session_of(&fixture.host, "desk");
    assert!(fixture.call(&other, None, "store_delete", json!({ "id": "1" })).await.1);
    assert_eq!(questions(&fixture).len(), 2, "another caller is another question");
    // A denial ends with its session.
    let journal = fixture.store().journal().unwrap();
    assert!(journal.answer(&open[0], ApprovalState::Denied, "{}", None).unwrap());
    let first = fixture.call(&sessions[0], None, "store_delete", json!({ "id": "1" })).await.0;
    assert!(first.contains("a person denied it"), "{first}");
    let second = fixture.call(&sessions[1], None, "store_delete", json!({ "id": "1" })).await.0;
    assert!(second.contains("waiting for approval"), "{second}");
    fixture.end().await;
}

#[tokio::test]
async fn a_required_audit_log_without_a_folder_refuses_calls() {
    let fixture = GuardFixture::with(PolicySettings::default(), |settings| HostSettings {
        audit: Some(AuditSettings { required: true, ..AuditSettings::default() }),
        store: None,
        ..settings
    })
    .await;
    let session = fixture.host.session();
    let (text, failed) = fixture.call(&session, None, "store_delete", json!({ "id": "1" })).await;
    let why = "`audit.required` is set, and there is no audit log";
    assert!(failed && text.contains(why), "{text}");
    assert_eq!(fixture.calls(), 0);
    fixture.end().await;
}

#[tokio::test]
async fn a_damaged_list_of_disabled_servers_enables_none() {
    let folder = tempfile::tempdir().unwrap();
    let choices = toolgate_store::Store::new(folder.path()).choices("c");
    choices.change(|all| all.disabled.insert("store".into(), SwitchedBy::Person)).unwrap();
    std::fs::write(choices.file().unwrap(), "{").unwrap();
    let file = choices.clone();
    let fixture = GuardFixture::with(PolicySettings::default(), |settings| HostSettings {
        choices: Some(file),
        ..settings
    })
    .await;
    let session = fixture.host.session();
    assert!(fixture.call(&session, None, "store_delete", json!({ "id": "1" })).await.1);
    assert!(fixture.host.is_off(&"store".into()) && fixture.host.is_off(&"crm".into()));
    assert_eq!(fixture.calls(), 0);
    assert_eq!(std::fs::read_to_string(choices.file().unwrap()).unwrap(), "{");
    fixture.end().await;
}
