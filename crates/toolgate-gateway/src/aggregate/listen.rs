//! `subscriptions/listen`: a stream of what changes.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolgate_host::Session;
use toolgate_mcp::ErrorObject;

use super::{
    news::Listening,
    watch_list::{Changes, Given},
};
use crate::{era::META_SUBSCRIPTION, face::Asked};

/// Tells of changes until nobody listens any more.
pub(crate) async fn listen(
    session: &Arc<Session>,
    params: &Map<String, Value>,
    asked: Asked,
) -> Result<Value, ErrorObject> {
    let Some(wanted) = params.get("notifications").and_then(Value::as_object) else {
        let message = "`notifications` says what to listen to";
        return Err(ErrorObject::invalid_params(message, None));
    };
    let tools = wanted.get("toolsListChanged") == Some(&json!(true));
    let meta = json!({ META_SUBSCRIPTION: asked.id });
    // What is there now is what the client may already know.
    let mut changes = Changes::new(session);
    let given = Given::default();
    if tools {
        given.note(&session.list_tools().await);
    }
    let listening = Listening::begin(session, wanted, &asked).await;
    let mut accepted = Map::new();
    if tools {
        accepted.insert("toolsListChanged".to_owned(), json!(true));
    }
    listening.accepted(&mut accepted);
    let params = json!({ "_meta": meta, "notifications": accepted });
    asked.link.notify("notifications/subscriptions/acknowledged", Some(params));
    let telling = async {
        if !tools {
            return std::future::pending().await;
        }
        while changes.next().await {
            let list = session.list_tools().await;
            if given.differs(&list) {
                given.note(&list);
                let params = json!({ "_meta": meta });
                asked.link.notify("notifications/tools/list_changed", Some(params));
            }
        }
    };
    tokio::select! {
        () = telling => {}
        () = listening.tell(&asked) => {}
        () = asked.cancel.cancelled() => {}
    }
    Ok(json!({ "_meta": meta }))
}
