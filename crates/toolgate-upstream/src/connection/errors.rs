//! Errors of calls, for their callers.

use std::time::Duration;

use toolgate_mcp::client::{ConnectFailure, RequestError, START_OR_CORRECT, TransportFailure};

use super::{CallFailure, Connection};
use crate::{
    error::CallError,
    forwarding,
    input_required::{self, InputRequired, UnansweredInput},
    server::node_is_gone,
};

const LOST: &str = "the connection ended before the response came, so it is unknown whether the \
                    call took effect; it was not repeated";

impl Connection {
    pub(super) fn failed(&self, about: &str, error: RequestError) -> CallFailure {
        let (server, tool) = (self.about.name.clone(), about.to_owned());
        let (cause, message) = match error {
            RequestError::Refused(error) if self.state.is_node() => {
                return CallFailure::Failed(forwarding::read(server, tool, error));
            }
            RequestError::Refused(error) => {
                return CallFailure::Failed(CallError::Refused { server, tool, error });
            }
            RequestError::Unreadable(why) => {
                let message = format!("its answer cannot be used: {why}; the call itself was made");
                return self.transport(about, message);
            }
            RequestError::Cancelled => return CallFailure::Failed(CallError::Cancelled),
            RequestError::TimedOut(limit) => return self.timed_out(about, limit, true),
            RequestError::Transport { cause, message } => (cause, message),
        };
        match cause {
            TransportFailure::NotSent => CallFailure::NotSent,
            TransportFailure::Closed | TransportFailure::NoResponse => self.lost(about),
            TransportFailure::Status(_) => self.transport(about, message),
            TransportFailure::Authorization(error) => {
                if !error.only_this_request {
                    self.doubt();
                }
                let failure = error.failure;
                CallFailure::Failed(CallError::Unauthorized { server, tool, failure })
            }
            TransportFailure::Unreachable => {
                self.doubt();
                let failure = match &self.state.node {
                    Some(node) => node_is_gone(node),
                    None => ConnectFailure::new(message, START_OR_CORRECT),
                };
                CallFailure::Failed(CallError::NotConnected { server, failure })
            }
            TransportFailure::Other if self.state.is_node() => self.lost(about),
            TransportFailure::Other => {
                self.doubt();
                let unknown = "whether the call took effect is unknown, and it was not repeated";
                self.transport(about, format!("{message}; {unknown}"))
            }
        }
    }

    /// The connection ended during the call.
    pub(super) fn lost(&self, about: &str) -> CallFailure {
        if self.state.is_node() {
            self.doubt();
        }
        if self.raw.is_child() || self.state.is_node() {
            let (server, tool) = (self.about.name.clone(), about.to_owned());
            let node = self.state.node.clone();
            return CallFailure::Failed(CallError::Stopped { server, tool, node });
        }
        self.doubt();
        self.transport(about, LOST.to_owned())
    }

    pub(super) fn timed_out(&self, about: &str, limit: Duration, total: bool) -> CallFailure {
        let (server, tool) = (self.about.name.clone(), about.to_owned());
        CallFailure::Failed(CallError::TimedOut { server, tool, limit, total })
    }

    /// An `input_required` that cannot be answered.
    pub(super) fn unusable(&self, about: &str, why: &str) -> CallFailure {
        self.transport(about, format!("it asks for input, but {why}"))
    }

    pub(super) fn unanswered(&self, about: &str, unanswered: UnansweredInput) -> CallError {
        let (asked, why) = match unanswered {
            UnansweredInput::CannotBeAsked(request) => {
                (input_required::describe(&request), "this client cannot be asked".to_owned())
            }
            UnansweredInput::Refused(request, error) => {
                let refusal = error.message.chars().take(200).collect::<String>();
                (input_required::describe(&request), format!("the client refused: {refusal}"))
            }
            UnansweredInput::Late => ("input".to_owned(), "there was no answer in time".to_owned()),
        };
        let (server, tool) = (self.about.name.clone(), about.to_owned());
        CallError::Unanswered { server, tool, asked: self.about.redactor.line(&asked), why }
    }

    /// The server has not said that a person is done at the pages.
    pub(super) fn unfinished(&self, about: &str, visits: &InputRequired, why: &str) -> CallError {
        let (server, tool) = (self.about.name.clone(), about.to_owned());
        let asked = format!("a person's visit to {}", self.about.redactor.clean(&visits.pages()));
        let why = format!("{why} that the visit is done; make the call again when it is");
        CallError::Unanswered { server, tool, asked, why }
    }

    pub(super) fn transport(&self, about: &str, message: String) -> CallFailure {
        let (server, tool) = (self.about.name.clone(), about.to_owned());
        CallFailure::Failed(CallError::Transport { server, tool, message })
    }
}
