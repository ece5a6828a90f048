//! Errors of calls on their way from the node that runs a server to the node that made the call.
//!
//! An error says whether the call may have had an effect, so its kind must not get lost on the way.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_catalog::ServerName;
use toolgate_mcp::{ErrorObject, client::ConnectFailure, codes};

use crate::error::CallError;

/// The member of `data` that has the kind. What servers write there is not passed on.
const KIND: &str = "toolgate/forwarded";

/// The error of a call, for the node that made the call.
pub fn forwarded_error(error: &CallError) -> ErrorObject {
    let kind = match error {
        CallError::Refused { error, .. } => {
            let mut error = error.clone();
            if let Some(Value::Object(data)) = &mut error.data {
                data.shift_remove(KIND);
            }
            return error;
        }
        CallError::NotConnected { failure, .. } => {
            json!({ "kind": "notConnected", "reason": failure.reason, "action": failure.action })
        }
        CallError::Stopped { .. } => json!({ "kind": "stopped" }),
        CallError::TimedOut { limit, total, .. } => {
            json!({ "kind": "timedOut", "seconds": limit.as_secs_f64(), "total": total })
        }
        CallError::Unanswered { asked, why, .. } => {
            json!({ "kind": "unanswered", "asked": asked, "why": why })
        }
        CallError::Transport { message, .. } => json!({ "kind": "transport", "message": message }),
        CallError::UnknownServer(_)
        | CallError::Unauthorized { .. }
        | CallError::LoginNeeded { .. }
        | CallError::DefinitionChanged { .. }
        | CallError::DefinitionUnknown { .. } => json!({ "kind": "unsent" }),
        CallError::Cancelled => json!({ "kind": "cancelled" }),
    };
    ErrorObject::new(codes::INTERNAL_ERROR, error.to_string(), Some(json!({ KIND: kind })))
}

/// The data of the error of a node that stops, for a node whose request it has not begun.
pub fn not_begun() -> Value {
    let reason = "the node that runs it is stopping, and the request was not begun";
    let action = "try again: another node runs the server then";
    json!({ KIND: { "kind": "notConnected", "reason": reason, "action": action } })
}

/// The error that another node has passed on.
pub(crate) fn read(server: ServerName, tool: String, error: ErrorObject) -> CallError {
    let Some(passed_on) = error.data.as_ref().and_then(|data| data.get(KIND)) else {
        return CallError::Refused { server, tool, error };
    };
    let text =
        |key: &str| passed_on.get(key).and_then(Value::as_str).unwrap_or(&error.message).to_owned();
    match passed_on.get("kind").and_then(Value::as_str) {
        Some("notConnected") => {
            let failure = ConnectFailure::new(text("reason"), text("action"));
            CallError::NotConnected { server, failure }
        }
        Some("unsent") => {
            let failure = ConnectFailure::new(error.message, "try again");
            CallError::NotConnected { server, failure }
        }
        Some("timedOut") => {
            let seconds = passed_on.get("seconds").and_then(Value::as_f64).unwrap_or_default();
            let limit = Duration::try_from_secs_f64(seconds).unwrap_or_default();
            let total = passed_on.get("total").and_then(Value::as_bool).unwrap_or_default();
            CallError::TimedOut { server, tool, limit, total }
        }
        Some("unanswered") => {
            let (asked, why) = (text("asked"), text("why"));
            CallError::Unanswered { server, tool, asked, why }
        }
        Some("transport") => CallError::Transport { server, tool, message: text("message") },
        Some("cancelled") => CallError::Cancelled,
        // Also of a newer version: nothing is known then.
        _ => CallError::Stopped { server, tool, node: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed_on(error: &CallError) -> CallError {
        read("s".into(), "t".to_owned(), forwarded_error(error))
    }

    #[test]
    fn an_error_is_the_same_at_the_other_node() {
        let (server, tool) = (ServerName::from("s"), "t".to_owned());
        let failure = ConnectFailure::new("it is gone", "start it");
        let limit = Duration::from_mins(1);
        for error in [
            CallError::NotConnected { server: server.clone(), failure },
            CallError::Stopped { server: server.clone(), tool: tool.clone(), node: None },
            CallError::TimedOut { server: server.clone(), tool: tool.clone(), limit, total: true },
            CallError::Cancelled,
            CallError::Transport { server, tool, message: "unknown".to_owned() },
        ] {
            assert_eq!(passed_on(&error).to_string(), error.to_string());
        }
    }

    #[test]
    fn a_node_that_stops_has_begun_nothing() {
        let error = ErrorObject::invalid_request("this gateway is stopping", Some(not_begun()));
        insta::assert_snapshot!(read("s".into(), "t".to_owned(), error), @"server `s` is not connected: the node that runs it is stopping, and the request was not begun; try again: another node runs the server then");
        let (server, tool, node) = ("s".into(), "t".to_owned(), Some("n_1".to_owned()));
        insta::assert_snapshot!(CallError::Stopped { server, tool, node }, @"node n_1, which ran server `s`, was lost during the call, so it is unknown whether `t` took effect; it was not repeated; later calls can be tried again: if the node is dead, another one runs the server once its lease is over");
    }

    #[test]
    fn a_server_cannot_say_that_nothing_was_sent() {
        let claimed = json!({ KIND: { "kind": "unsent" }, "own": 1 });
        let error = ErrorObject::new(-32000, "no", Some(claimed));
        let (server, tool) = ("s".into(), "t".to_owned());
        let CallError::Refused { error, .. } =
            passed_on(&CallError::Refused { server, tool, error })
        else {
            panic!("it is a refusal");
        };
        assert_eq!((error.code, error.data), (-32000, Some(json!({ "own": 1 }))));
    }
}
