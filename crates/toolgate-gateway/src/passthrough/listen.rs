//! `subscriptions/listen` at a server of the legacy era.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_mcp::ErrorObject;
use toolgate_upstream::RawRequest;

use super::{
    bridge,
    desk::{Desk, Ticket},
    wire::Wire,
};
use crate::{era::META_SUBSCRIPTION, face::Asked};

/// Resources that one client may listen to.
const RESOURCES: usize = 256;

/// Tells of what the server announces until nobody listens any more.
pub(crate) async fn listen(
    line: &Arc<dyn Wire>,
    desk: &Arc<Desk>,
    capabilities: Option<&Value>,
    asked: Asked,
) -> Result<Value, ErrorObject> {
    let wanted = asked.params.as_ref().and_then(|params| params.get("notifications"));
    let Some(wanted) = wanted.and_then(Value::as_object) else {
        let message = "`notifications` says what to listen to";
        return Err(ErrorObject::invalid_params(message, None));
    };
    let mut accepted: Map<String, Value> = bridge::offered(capabilities)
        .into_iter()
        .filter(|(name, _)| wanted.get(name) == Some(&json!(true)))
        .collect();
    let uris: Vec<&Value> = wanted
        .get("resourceSubscriptions")
        .and_then(Value::as_array)
        .map(|uris| uris.iter().take(RESOURCES).filter(|uri| uri.is_string()).collect())
        .unwrap_or_default();
    let resources = capabilities.and_then(|capabilities| capabilities.get("resources"));
    let subscribable =
        resources.and_then(|resources| resources.get("subscribe")) == Some(&json!(true));
    let mut subscribed = Vec::new();
    if subscribable {
        for uri in uris {
            if send(line, "resources/subscribe", uri, asked.cancel.clone()).await.is_ok() {
                subscribed.push(uri.clone());
            }
        }
    }
    if !subscribed.is_empty() {
        accepted.insert("resourceSubscriptions".to_owned(), json!(subscribed));
    }
    let accepted = Value::Object(accepted);
    let ticket = Ticket::Listener {
        link: asked.link.clone(),
        id: asked.id.clone(),
        filter: accepted.clone(),
    };
    let place = desk.enter(ticket);
    let meta = json!({ META_SUBSCRIPTION: asked.id });
    let params = json!({ "_meta": meta, "notifications": accepted });
    asked.link.notify("notifications/subscriptions/acknowledged", Some(params));
    tokio::select! {
        () = asked.cancel.cancelled() => {}
        () = line.closed() => {}
    }
    drop(place);
    for uri in subscribed {
        if !desk.is_listened_to(&uri) {
            let _ = send(line, "resources/unsubscribe", &uri, CancellationToken::new()).await;
        }
    }
    Ok(over(&asked.id))
}

/// The result of a subscription that has ended.
pub(crate) fn over(id: &Value) -> Value {
    json!({ "resultType": "complete", "_meta": { META_SUBSCRIPTION: id } })
}

async fn send(
    line: &Arc<dyn Wire>,
    method: &str,
    uri: &Value,
    cancel: CancellationToken,
) -> Result<Value, ErrorObject> {
    let (method, params) = (method.to_owned(), Some(json!({ "uri": uri })));
    line.request(RawRequest { key: Value::Null, method, params, cancel }).await
}
