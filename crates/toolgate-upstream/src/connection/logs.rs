//! Log messages of a server.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolgate_catalog::ServerName;
use toolgate_mcp::{Era, JsonObject, LogLevel, methods};

use super::{CallOptions, Connection};

/// Receives the log messages of a call.
#[derive(Debug, Clone)]
pub struct LogSink {
    /// The least severe message that is wanted. Without it, all messages that the server sends by itself.
    pub level: Option<LogLevel>,
    /// Gets the parameters of `notifications/message`. A slow reader loses messages.
    pub messages: mpsc::Sender<Value>,
}

/// How long a server may take to set its level before the call is sent anyway.
const SET_LEVEL_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest name of a logger that is kept.
const LOGGER_CHARACTERS: usize = 200;

impl LogSink {
    pub(crate) fn send(&self, params: Value) {
        if level_of(&params).is_some_and(|level| self.level.is_none_or(|wanted| level >= wanted)) {
            let _ = self.messages.try_send(params);
        }
    }
}

/// The level of a log message.
pub(crate) fn level_of(params: &Value) -> Option<LogLevel> {
    LogLevel::named(params.get("level")?.as_str()?)
}

/// A log message with the server's name in front of its `logger`; `None` if it is none.
pub(crate) fn signed(server: &ServerName, params: Option<Value>) -> Option<Value> {
    let mut params = params?;
    level_of(&params)?;
    let logger = match params.get("logger").and_then(Value::as_str) {
        Some(logger) if !logger.is_empty() => {
            let logger: String = logger.chars().take(LOGGER_CHARACTERS).collect();
            format!("{server}/{logger}")
        }
        _ => server.to_string(),
    };
    params["logger"] = json!(logger);
    Some(params)
}

impl Connection {
    /// Sets the level of a legacy server that would not send what the call wants to hear. The level stays:
    /// the callers that want less are not sent more.
    pub(super) async fn set_log_level(
        &self,
        method: &str,
        params: &JsonObject,
        options: &CallOptions,
    ) {
        if self.handshake.era != Era::Legacy || !self.handshake.capabilities.contains_key("logging")
        {
            return;
        }
        if method == methods::SET_LOG_LEVEL {
            let level = params.get("level").and_then(Value::as_str).and_then(LogLevel::named);
            *self.log_level.lock() = level;
            return;
        }
        let Some(wanted) = options.log.as_ref().and_then(|log| log.level) else { return };
        if self.log_level.lock().is_some_and(|level| level <= wanted) {
            return;
        }
        *self.log_level.lock() = Some(wanted);
        let params = Some(json!({ "level": wanted.as_str() }));
        let Ok(mut request) = self.raw.begin(Value::Null, methods::SET_LOG_LEVEL, params) else {
            return;
        };
        // The call matters more than its log messages.
        tokio::select! {
            () = options.cancel.cancelled() => {}
            answer = tokio::time::timeout(SET_LEVEL_TIMEOUT, request.response()) => {
                if !matches!(answer, Ok(Ok(_))) {
                    tracing::debug!(server = %self.about.name, "the server did not set its log level");
                }
            }
        }
    }
}
