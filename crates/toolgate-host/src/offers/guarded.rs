//! What the policy says of resources and prompts. Whatever is read of a server passes the broker's gate.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_broker::{Admitted, BrokerError, CallContext};
use toolgate_catalog::ServerName;
use toolgate_mcp::codes::{INTERNAL_ERROR, NOT_ALLOWED};
use toolgate_policy::{Flow, ToolPolicy, Verdict, request_as_tool};
use toolgate_upstream::{CallError, CallOptions};

use super::{
    kind::Kind,
    links,
    requests::{invalid, refused},
};
use crate::{
    host::Host,
    session::{CallFailure, Session},
};

/// Sends a request to one server, where it may be sent, and takes in what comes back. What it is about
/// is the server's own by now.
pub(super) async fn send(
    session: &Session,
    server: &ServerName,
    method: &str,
    params: Value,
    mut options: CallOptions,
) -> Result<Value, CallFailure> {
    let host = session.host();
    let context = CallContext::direct(session.context());
    let admitted = admit(host, &context, server, method, &params, &options).await?;
    admitted.pass_on(&mut options.meta);
    let sent = host.upstream().request(server, method, Some(params), options).await;
    let sent = sent.map_err(BrokerError::from);
    admitted.finish(sent.as_ref());
    sent.map_err(|error| failure(server, error))
}

/// Lets a request to a server through, or says why not.
pub(super) async fn admit(
    host: &Host,
    context: &CallContext,
    server: &ServerName,
    method: &str,
    params: &Value,
    options: &CallOptions,
) -> Result<Admitted, CallFailure> {
    let prefix = prefix(host, server);
    let tool = request_as_tool(server, prefix, method)
        .ok_or_else(|| invalid(format!("{method} is no method")))?;
    let admitted = host.broker().gate().admit(&tool, params, context, options).await;
    admitted.map_err(|error| failure(server, error))
}

/// Whether nothing at all of a server is let through.
pub(crate) fn is_denied(host: &Host, server: &ServerName) -> bool {
    let is_hidden = |kind| is_hidden(host, server, kind);
    is_hidden(Kind::Resources)
        && is_hidden(Kind::Prompts)
        && host.catalog().read().tools_of(server.as_str()).is_empty()
}

/// Whether nothing of a kind may ever be read of a server: then nobody is shown it.
pub(super) fn is_hidden(host: &Host, server: &ServerName, kind: Kind) -> bool {
    policy(host, server, kind).is_some_and(|policy| policy.is_hidden())
}

/// Says of an entry of a server's list whether it may be shown: not where reading it is denied
/// whatever comes with it.
pub(super) fn shows(host: &Host, server: &ServerName, kind: Kind) -> impl Fn(&str) -> bool {
    let policy = policy(host, server, kind).map(|policy| (policy.is_hidden(), policy));
    move |key: &str| {
        let Some((is_hidden, policy)) = &policy else { return true };
        let arguments = match kind {
            Kind::Resources => json!({ "uri": key }),
            Kind::Prompts => json!({ "name": key }),
            // Which resource it will be is not known.
            Kind::Templates => return !is_hidden,
        };
        !is_hidden && policy.decide(&arguments, &Flow::NONE).verdict != Verdict::Deny
    }
}

/// Why a request has no result, in the words of the protocol.
pub(super) fn failure(server: &ServerName, error: BrokerError) -> CallFailure {
    match error {
        BrokerError::Call(error) => match *error {
            CallError::Cancelled => CallFailure::Cancelled,
            CallError::Refused { mut error, .. } => {
                links::own_uri(server, error.data.as_mut());
                refused(error.code, error.message, error.data)
            }
            other => refused(INTERNAL_ERROR, other.to_string(), None),
        },
        other => refused(NOT_ALLOWED, other.to_string(), None),
    }
}

fn policy(host: &Host, server: &ServerName, kind: Kind) -> Option<Arc<ToolPolicy>> {
    let method = match kind {
        Kind::Resources | Kind::Templates => "resources/read",
        Kind::Prompts => "prompts/get",
    };
    let tool = request_as_tool(server, prefix(host, server), method)?;
    Some(host.broker().policy_of(&tool))
}

fn prefix(host: &Host, server: &ServerName) -> Option<Arc<str>> {
    let catalog = host.catalog().read();
    catalog.server(server.as_str())?.prefix.as_deref().map(Into::into)
}
