//! How far a call has come.

use serde_json::{Number, Value};
use toolgate_mcp::{JsonObject, meta};

/// A report of how far a call has come. One of a server keeps everything that the server sent, except the token.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress(JsonObject);

impl Progress {
    /// A report of toolgate itself, with a text for a person.
    pub fn new(progress: impl Into<Number>, message: Option<String>) -> Self {
        let mut fields = JsonObject::new();
        fields.insert("progress".to_owned(), Value::Number(progress.into()));
        fields.extend(message.map(|message| ("message".to_owned(), Value::String(message))));
        Self(fields)
    }

    /// The same, with what it grows towards.
    #[must_use]
    pub fn of_total(mut self, total: impl Into<Number>) -> Self {
        self.0.insert("total".to_owned(), Value::Number(total.into()));
        self
    }

    /// The report of a server with these parameters. `None` if it says nothing of progress.
    pub(crate) fn read(params: Value) -> Option<Self> {
        let Value::Object(mut params) = params else { return None };
        params.get("progress")?.as_f64()?;
        // It is the token of the connection to the server. The client has chosen another one.
        params.shift_remove(meta::PROGRESS_TOKEN);
        Some(Self(params))
    }

    /// The parameters of the notification for a client that has chosen this token.
    pub fn into_params(self, token: &Value) -> Value {
        let mut params = JsonObject::from_iter([(meta::PROGRESS_TOKEN.to_owned(), token.clone())]);
        params.extend(self.0);
        Value::Object(params)
    }

    /// Grows with each report.
    pub fn progress(&self) -> f64 {
        self.0.get("progress").and_then(Value::as_f64).unwrap_or_default()
    }

    /// What it grows towards, if known.
    pub fn total(&self) -> Option<f64> {
        self.0.get("total").and_then(Value::as_f64)
    }

    /// A text for a person.
    pub fn message(&self) -> Option<&str> {
        self.0.get("message").and_then(Value::as_str)
    }
}
