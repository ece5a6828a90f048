//! What went wrong with a call, in the words of its caller.

use std::time::Duration;

use rmcp::service::ServiceError;
use toolgate_catalog::ServerName;

use super::{CallFailure, Connection};
use crate::{
    error::{CallError, ConnectFailure},
    input::{self, Unanswered},
    raw, reasons,
};

impl Connection {
    pub(super) fn failed(&self, about: &str, error: ServiceError) -> CallFailure {
        CallFailure::Failed(self.call_error(about, error))
    }

    pub(super) fn timed_out(&self, about: &str, limit: Duration, total: bool) -> CallFailure {
        let (server, tool) = (self.about.server.clone(), about.to_owned());
        CallFailure::Failed(CallError::TimedOut { server, tool, limit, total })
    }

    /// Others' calls did not end.
    pub(super) fn no_turn(&self, about: &str, limit: Duration) -> CallFailure {
        let (server, tool) = (self.about.server.clone(), about.to_owned());
        let message = format!(
            "the server asks questions, so that it is given the calls of one client at a time; \
             those of others did not end within {} s, and nothing was sent",
            limit.as_secs_f64()
        );
        CallFailure::Failed(CallError::Transport { server, tool, message })
    }

    /// The turn is that of a client at which a person does not answer.
    pub(super) fn person_elsewhere(&self, about: &str) -> CallFailure {
        let (server, tool) = (self.about.server.clone(), about.to_owned());
        let message = "the server has asked a question and waits for a person at another client; \
                       nothing was sent, try again later";
        CallFailure::Failed(CallError::Transport { server, tool, message: message.to_owned() })
    }

    /// An `input_required` that leads nowhere.
    pub(super) fn unusable(&self, about: &str, why: &str) -> CallFailure {
        let (server, tool) = (self.about.server.clone(), about.to_owned());
        let message = format!("it asks for input, but {why}");
        CallFailure::Failed(CallError::Transport { server, tool, message })
    }

    pub(super) fn unanswered(&self, about: &str, unanswered: Unanswered) -> CallError {
        let (asked, why) = match unanswered {
            Unanswered::CannotBeAsked(question) => {
                (input::in_words(&question), "this client cannot be asked".to_owned())
            }
            Unanswered::Refused(question, error) => {
                let refusal = error.message.chars().take(200).collect::<String>();
                (input::in_words(&question), format!("the client refused: {refusal}"))
            }
            Unanswered::Late => ("input".to_owned(), "nobody gave it in time".to_owned()),
        };
        let (server, tool) = (self.about.server.clone(), about.to_owned());
        CallError::Unanswered { server, tool, asked: self.about.redactor.line(&asked), why }
    }

    fn call_error(&self, tool: &str, error: ServiceError) -> CallError {
        let (server, tool) = (self.about.server.clone(), tool.to_owned());
        let redactor = &self.about.redactor;
        match error {
            ServiceError::McpError(error)
                if raw::is_unreadable(&raw::error_object(error.clone())) =>
            {
                CallError::Transport {
                    server,
                    tool,
                    message: format!(
                        "its answer cannot be used: {}; the call itself was made",
                        redactor.line(&error.message)
                    ),
                }
            }
            ServiceError::McpError(error) => {
                let mut error = raw::error_object(error);
                error.message = redactor.clean(&error.message);
                if let Some(data) = &mut error.data {
                    redactor.clean_value(data);
                }
                CallError::Refused { server, tool, error }
            }
            ServiceError::Cancelled { .. } => CallError::Cancelled,
            // A pipe that is closed is a child that is gone.
            ServiceError::TransportClosed | ServiceError::TransportSend(_)
                if self.process.is_some() =>
            {
                CallError::Stopped { server, tool }
            }
            ServiceError::TransportClosed => {
                self.doubt();
                let message = "the connection ended before the answer came, so that it is unknown \
                               whether the call took effect; it was not repeated"
                    .to_owned();
                CallError::Transport { server, tool, message }
            }
            other => self.transport_error(server, tool, &other),
        }
    }

    fn transport_error(&self, server: ServerName, tool: String, error: &ServiceError) -> CallError {
        let place = self.about.place.as_deref().unwrap_or("the server");
        if let Some(trouble) = reasons::trouble(error) {
            if !trouble.only_this_request {
                self.doubt();
            }
            return CallError::Unauthorized { server, tool, failure: trouble.failure.clone() };
        }
        let status = reasons::status(error);
        if status.is_none() {
            self.doubt();
        }
        if let Some(reason) = reasons::unreachable(error, place) {
            let reason = self.about.redactor.line(&reason);
            let failure = ConnectFailure { reason, action: reasons::START_OR_CORRECT.to_owned() };
            return CallError::NotConnected { server, failure };
        }
        let message = match status {
            Some(status) => format!("{place} answered HTTP {status}"),
            None => format!(
                "{}; whether the call took effect is unknown, and it was not repeated",
                reasons::plain(error)
            ),
        };
        CallError::Transport { server, tool, message: self.about.redactor.line(&message) }
    }
}
