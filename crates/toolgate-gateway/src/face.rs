//! What answers requests, at the level of JSON.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolgate_mcp::{ErrorObject, JsonObject};

use crate::{caller::Caller, era::Era, greeting::Greeting, link::Link};

/// A request, and the way back to who asks.
#[derive(Debug)]
pub struct Asked {
    /// The client's id for it, as it was sent.
    pub id: Value,
    /// What is asked.
    pub method: String,
    /// As it was sent, `_meta` included.
    pub params: Option<Value>,
    /// The era of the client.
    pub era: Era,
    /// Where notifications and questions about it go.
    pub link: Link,
    /// Cancelled when nobody wants the answer any more.
    pub cancel: CancellationToken,
}

/// Who will talk to a face.
#[derive(Debug)]
pub struct Client {
    /// As the endpoint knows it.
    pub caller: Caller,
    /// How it speaks.
    pub era: Era,
    /// What it calls itself: `clientInfo`, as it was sent.
    pub info: Value,
    /// What it can be asked.
    pub capabilities: JsonObject,
    /// The way to it outside of any request. There is none in the modern era.
    pub outlet: Option<Link>,
}

impl Client {
    /// What it calls itself, with its version. It can say what it likes.
    pub fn own_name(&self) -> String {
        own_name(&self.info)
    }
}

/// What a client calls itself in its `clientInfo`.
pub(crate) fn own_name(info: &Value) -> String {
    let said = |key: &str| info.get(key).and_then(Value::as_str).unwrap_or_default();
    let cut = |text: &str| text.chars().take(NAME).collect::<String>();
    format!("{} {}", cut(said("name")), cut(said("version")))
}

/// What is looked at of a client's name, and of its version.
const NAME: usize = 64;

/// What stands behind an endpoint. The handshake is done by the endpoint, as is everything about
/// framing, ids, sessions and eras; a face gets the rest.
pub trait Face: fmt::Debug + Send + Sync + 'static {
    /// What it says of itself at the start.
    fn greeting(&self, era: Era) -> BoxFuture<'_, Result<Greeting, ErrorObject>>;

    /// Answers.
    fn request(&self, asked: Asked) -> BoxFuture<'_, Result<Value, ErrorObject>>;

    /// Takes note.
    fn notification(&self, method: String, params: Option<Value>) -> BoxFuture<'_, ()>;

    /// The input schema of a tool, where it asks for arguments to be repeated as headers.
    fn header_schema<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, Option<Value>>;

    /// Whether a `requestState` that the endpoint did not make may be one of a server behind it.
    fn has_states(&self) -> bool {
        false
    }

    /// Ends what it holds, in order.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// Ready once it can answer no more. Who talks to it then has to begin anew.
    fn closed(&self) -> BoxFuture<'_, ()>;
}

/// Makes faces: one a session in the legacy era, one a caller in the modern.
pub trait Source: fmt::Debug + Send + Sync + 'static {
    /// Makes one.
    fn open(&self, client: Client) -> BoxFuture<'_, Result<Arc<dyn Face>, ErrorObject>>;

    /// Whether clients of the modern era with different capabilities need faces of their own.
    fn minds_capabilities(&self) -> bool {
        false
    }

    /// Whether the trace that headers name is taken for that of the request. Who passes requests on
    /// as they were sent does not.
    fn takes_trace_headers(&self) -> bool {
        false
    }
}
