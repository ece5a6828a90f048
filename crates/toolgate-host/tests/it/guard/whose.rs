//! Whose a yes is, and where one is kept.

use serde_json::json;
use toolgate_broker::{Caller, SessionContext, read_grants};
use toolgate_host::{AuditSettings, Host, HostSettings, Session};
use toolgate_policy::PolicySettings;
use toolgate_store::{ApprovalState, SwitchedBy};
use toolgate_testkit::Fixture;
use toolgate_upstream::{Endpoint, HttpEndpoint};

use super::{
    asking,
    house::{House, Voice, said},
};

fn session_of(host: &Host, identity: &str) -> Session {
    host.session_of(SessionContext::new(Caller::model(identity)))
}

/// The questions that wait.
fn questions(house: &House) -> Vec<String> {
    let open = house.store().journal().unwrap().open_approvals().unwrap();
    open.into_iter().map(|approval| approval.id).collect()
}

#[tokio::test]
async fn nobody_uses_up_a_yes_that_was_given_to_another() {
    let house = House::new(asking()).await;
    let (laptop, desk) = (session_of(&house.host, "laptop"), session_of(&house.host, "desk"));
    let arguments = json!({ "id": "1" });
    assert!(house.call(&laptop, None, "store_delete", arguments.clone()).await.1);
    house.approve(&questions(&house)[0]);
    let (text, failed) = house.call(&desk, None, "store_delete", arguments.clone()).await;
    assert!(failed && text.contains("waiting for approval"), "{text}");
    assert_eq!(house.calls(), 0);
    // Each conversation of the caller who asked may use it, and one does.
    let later = session_of(&house.host, "laptop");
    assert!(!house.call(&later, None, "store_delete", arguments.clone()).await.1);
    assert!(house.call(&laptop, None, "store_delete", arguments).await.1);
    assert_eq!(house.calls(), 1);
    let voice = Voice::new([said("allow always")]);
    let arguments = json!({ "id": "2" });
    assert!(!house.call(&laptop, Some(&voice), "store_delete", arguments.clone()).await.1);
    assert!(!house.call(&later, None, "store_delete", arguments.clone()).await.1);
    assert!(house.call(&desk, None, "store_delete", arguments).await.1, "always is theirs, too");
    house.end().await;
}

#[tokio::test]
async fn another_server_of_the_same_name_is_asked_for_again() {
    let house = House::new(asking()).await;
    let voice = Voice::new([said("allow always")]);
    let session = house.host.session();
    assert!(!house.call(&session, Some(&voice), "store_delete", json!({ "id": "1" })).await.1);
    assert!(!house.call(&session, None, "store_delete", json!({ "id": "2" })).await.1);
    assert_eq!(read_grants(house.host.journal().unwrap()).unwrap().len(), 1);
    house.host.shutdown().await;
    let delete = json!({ "name": "delete", "inputSchema": { "type": "object" } });
    let (store, was) = (house.store(), house.host.settings().servers.clone());
    let take_over =
        |settings: HostSettings| HostSettings { store: Some(store.clone()), ..settings };
    let fixture = Fixture::new("store").with_tool(delete);
    let other = House::of([fixture], asking(), take_over).await;
    let session = other.host.session();
    let (text, failed) = other.call(&session, None, "store_delete", json!({ "id": "3" })).await;
    assert!(failed && text.contains("waiting for approval"), "{text}");
    assert_eq!(other.calls(), 0);
    // A new password makes no other server.
    let back = House::of([], asking(), |mut settings| {
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
async fn a_caller_is_asked_about_once_however_many_conversations_it_has() {
    let house = House::new(asking()).await;
    let sessions = [(); 3].map(|()| session_of(&house.host, "laptop"));
    for session in &sessions {
        assert!(house.call(session, None, "store_delete", json!({ "id": "1" })).await.1);
    }
    let open = questions(&house);
    assert_eq!(open.len(), 1);
    let other = session_of(&house.host, "desk");
    assert!(house.call(&other, None, "store_delete", json!({ "id": "1" })).await.1);
    assert_eq!(questions(&house).len(), 2, "another caller is another question");
    // A no ends with the conversation that it was said to.
    let journal = house.store().journal().unwrap();
    assert!(journal.answer(&open[0], ApprovalState::Denied, "{}").unwrap());
    let first = house.call(&sessions[0], None, "store_delete", json!({ "id": "1" })).await.0;
    assert!(first.contains("a person said no"), "{first}");
    let second = house.call(&sessions[1], None, "store_delete", json!({ "id": "1" })).await.0;
    assert!(second.contains("waiting for approval"), "{second}");
    house.end().await;
}

#[tokio::test]
async fn without_a_folder_nothing_is_called_where_a_record_is_required() {
    let house = House::with(PolicySettings::default(), |settings| HostSettings {
        audit: Some(AuditSettings { required: true, ..AuditSettings::default() }),
        store: None,
        ..settings
    })
    .await;
    let session = house.host.session();
    let (text, failed) = house.call(&session, None, "store_delete", json!({ "id": "1" })).await;
    assert!(failed && text.contains("the audit log cannot be written"), "{text}");
    assert_eq!(house.calls(), 0);
    house.end().await;
}

#[tokio::test]
async fn servers_stay_off_where_nobody_knows_which_are() {
    let folder = tempfile::tempdir().unwrap();
    let choices = toolgate_store::Store::new(folder.path()).choices("c");
    choices.change(|all| all.disabled.insert("store".into(), SwitchedBy::Person)).unwrap();
    std::fs::write(choices.path(), "{").unwrap();
    let file = choices.clone();
    let house = House::with(PolicySettings::default(), |settings| HostSettings {
        choices: Some(file),
        ..settings
    })
    .await;
    let session = house.host.session();
    assert!(house.call(&session, None, "store_delete", json!({ "id": "1" })).await.1);
    assert!(house.host.is_off(&"store".into()) && house.host.is_off(&"crm".into()));
    assert_eq!(house.calls(), 0);
    assert_eq!(std::fs::read_to_string(choices.path()).unwrap(), "{");
    house.end().await;
}
