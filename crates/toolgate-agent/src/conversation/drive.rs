//! The loop of a turn.

use tokio::sync::mpsc::UnboundedSender;

use super::{AgentCancel, Conversation};
use crate::{
    AgentError, AgentEvent, AgentLimit, AnsweredCall, CallAnswer, EndReason, ProviderError,
    ProviderReply, ReplyDelta, ReplyStop, RequestParts, TokenUse, ToolCaller, ToolOutput, TurnEnd,
    WireCall, WireMessage,
};

/// What a turn carries along.
pub(super) struct TurnState {
    pub(super) events: UnboundedSender<AgentEvent>,
    pub(super) cancel: AgentCancel,
    tokens: TokenUse,
    requests: u32,
    text: String,
    /// Whether a full window was compacted in this turn. A second time would not help.
    pub(super) compacted: bool,
    /// What the person asked in this turn. A summary must not change it.
    pub(super) question: Option<String>,
}

impl TurnState {
    pub(super) fn emit(&self, event: AgentEvent) {
        // Nobody listens to a turn that was dropped.
        let _ = self.events.send(event);
    }

    fn end(&self, reason: EndReason) -> TurnEnd {
        TurnEnd { reason, text: self.text.clone(), tokens: self.tokens, requests: self.requests }
    }
}

impl Conversation {
    pub(super) async fn drive(
        &mut self,
        question: Option<String>,
        events: UnboundedSender<AgentEvent>,
        cancel: AgentCancel,
    ) -> Result<TurnEnd, AgentError> {
        let mut turn = TurnState {
            events,
            cancel,
            tokens: TokenUse::default(),
            requests: 0,
            text: String::new(),
            compacted: false,
            question: None,
        };
        self.answer_dropped_calls();
        let mut question = question;
        let mut asked_at = None;
        loop {
            if let Some(reason) = self.reason_to_stop(&turn) {
                return Ok(turn.end(reason));
            }
            // Code at the provider must get its results before anything else is said.
            if !self.code_waits {
                if self.window_used() >= self.settings.compact_at && !turn.compacted {
                    asked_at = None;
                    self.compact(&mut turn).await?;
                }
                if let Some(text) = question.take() {
                    asked_at = Some(self.history.len());
                    self.history.push(self.provider.user_text(&text));
                    turn.question = Some(text);
                }
                self.tell_changes(&turn);
            }
            let reply = match self.send(&mut turn, &self.history.clone(), true).await {
                Ok(Some(reply)) => reply,
                Ok(None) => return Ok(turn.end(EndReason::Cancelled)),
                Err(ProviderError::Window(_)) => return Err(AgentError::Window),
                Err(error) => return Err(error.into()),
            };
            if reply.stop == ReplyStop::Refused {
                turn.text = reply.text;
                self.forget_refused(asked_at);
                return Ok(turn.end(EndReason::Refused));
            }
            turn.text = reply.text;
            self.history.extend(reply.messages);
            for (query, names) in reply.searches {
                self.loaded.extend(names.iter().cloned());
                turn.emit(AgentEvent::ToolsFound { query, names });
            }
            if !reply.calls.is_empty() {
                let by_code = |caller: &ToolCaller| matches!(caller, ToolCaller::Code { .. });
                let has_code = reply.calls.iter().any(|call| by_code(&call.caller));
                let refusal = if question.is_some() {
                    Some("the person has stopped this; end the program")
                } else if reply.stop == ReplyStop::MaxTokens {
                    Some(
                        "the reply reached its limit of tokens, so the call may be incomplete; make it shorter",
                    )
                } else {
                    None
                };
                self.unanswered.clone_from(&reply.calls);
                let answered = match refusal {
                    Some(why) => calls_refused(reply.calls, why),
                    None => self.make_calls(reply.calls, &turn).await,
                };
                let results = self.provider.results(&answered, &self.catalogue);
                self.history.extend(results);
                self.unanswered.clear();
                self.code_waits = has_code;
                continue;
            }
            self.code_waits = false;
            if question.is_some() {
                continue;
            }
            let reason = match reply.stop {
                ReplyStop::Paused => continue,
                ReplyStop::Window if !turn.compacted => {
                    asked_at = None;
                    self.compact(&mut turn).await?;
                    continue;
                }
                ReplyStop::Window => EndReason::Window,
                ReplyStop::MaxTokens => EndReason::MaxTokens,
                ReplyStop::Other(why) => EndReason::Other(why),
                ReplyStop::End | ReplyStop::Refused => EndReason::Answered,
            };
            self.unload_if_asked();
            return Ok(turn.end(reason));
        }
    }

    /// What ends the turn before the next request.
    fn reason_to_stop(&self, turn: &TurnState) -> Option<EndReason> {
        if turn.cancel.is_cancelled() {
            return Some(EndReason::Cancelled);
        }
        self.limit(turn).map(EndReason::Limit)
    }

    fn limit(&self, turn: &TurnState) -> Option<AgentLimit> {
        let limits = &self.settings.limits;
        let cost = self.cost().unwrap_or_default();
        if turn.requests >= limits.requests {
            Some(AgentLimit::Requests)
        } else if limits.tokens.is_some_and(|most| self.tokens.total() >= most) {
            Some(AgentLimit::Tokens)
        } else if limits.cost.is_some_and(|most| cost >= most) {
            Some(AgentLimit::Cost)
        } else {
            None
        }
    }

    /// Sends a request, and again after failures that may pass. `None` if the turn was cancelled.
    pub(super) async fn send(
        &mut self,
        turn: &mut TurnState,
        history: &[WireMessage],
        tools_allowed: bool,
    ) -> Result<Option<ProviderReply>, ProviderError> {
        if self.container.as_ref().is_some_and(crate::CodeContainer::is_expired) {
            self.container = None;
        }
        turn.requests += 1;
        let mut attempt = 1;
        loop {
            let parts = RequestParts {
                prefix: &self.prefix,
                history,
                container: self.container.as_ref(),
                servers: &self.catalogue.servers,
                tools_allowed,
            };
            let request = self.provider.request(&parts);
            let mut shown = false;
            let events = turn.events.clone();
            let mut show = |delta| {
                let event = match delta {
                    ReplyDelta::Text(text) => AgentEvent::TextDelta { text },
                    ReplyDelta::Thinking(text) => AgentEvent::ThinkingDelta { text },
                    ReplyDelta::Hosted(name) => AgentEvent::HostedToolUsed { name },
                };
                shown = true;
                // Nobody listens to a turn that was dropped.
                let _ = events.send(event);
            };
            // A summary is not part of the answer.
            let mut hide = |_| {};
            let deltas: &mut (dyn FnMut(ReplyDelta) + Send) =
                if tools_allowed { &mut show } else { &mut hide };
            let exchange = self.provider.client().exchange(&*self.provider, request, deltas);
            let result = tokio::select! {
                biased;
                () = turn.cancel.cancelled() => return Ok(None),
                result = exchange => result,
            };
            let error = match result {
                Ok(reply) => {
                    self.count(turn, &reply);
                    return Ok(Some(reply));
                }
                Err(error) => error,
            };
            let wait = error
                .is_temporary()
                .then(|| self.settings.retry.wait(attempt, error.retry_after()));
            let Some(wait) = wait.flatten() else { return Err(error) };
            tracing::debug!(attempt, %error, "the request is sent again");
            let reason = error.to_string();
            turn.emit(AgentEvent::Retry { attempt, wait, reason, discards_text: shown });
            tokio::select! {
                biased;
                () = turn.cancel.cancelled() => return Ok(None),
                () = tokio::time::sleep(wait) => {}
            }
            attempt += 1;
        }
    }

    fn count(&mut self, turn: &mut TurnState, reply: &ProviderReply) {
        turn.tokens += reply.tokens;
        self.tokens += reply.tokens;
        self.context = reply.tokens.total();
        if reply.container.is_some() {
            self.container.clone_from(&reply.container);
        }
        turn.emit(AgentEvent::Usage {
            request: reply.tokens,
            total: self.tokens,
            cost: self.cost(),
            window_used: self.window_used(),
        });
    }

    /// A refused reply is not kept. Neither is its question, unless tools were called since.
    fn forget_refused(&mut self, asked_at: Option<usize>) {
        self.code_waits = false;
        if let Some(place) = asked_at.filter(|place| place + 1 == self.history.len()) {
            self.history.truncate(place);
        }
    }
}

pub(super) fn calls_refused(calls: Vec<WireCall>, why: &str) -> Vec<AnsweredCall> {
    let answer = || CallAnswer::Output(ToolOutput::error(why));
    calls.into_iter().map(|call| AnsweredCall { call, answer: answer() }).collect()
}
