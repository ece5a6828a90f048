//! A summary in place of the history, when the window fills.

use super::{Conversation, drive::TurnState};
use crate::{AgentError, AgentEvent, ProviderError};

const ASK_FOR_SUMMARY: &str = "The context window is almost full. Write a summary of this conversation that can stand \
    in its place. Keep: what the person wants, in their words; what was done, with the names of tools, ids, paths and \
    numbers that are still needed; what failed; what is left to do. Do not call tools. Write the summary alone.";
const BEFORE_SUMMARY: &str =
    "This is a summary of the conversation so far. Continue with what is left to do.\n\n";
const BEFORE_QUESTION: &str = "\n\nThe last request of the person, in their words:\n";

impl Conversation {
    /// Replaces the history by a summary that the model writes. The request for it has the same prefix, so that the
    /// provider's cache is used.
    pub(super) async fn compact(&mut self, turn: &mut TurnState) -> Result<(), AgentError> {
        turn.compacted = true;
        let tokens_before = self.context;
        let mut history = self.history.clone();
        history.push(self.provider.user_text(ASK_FOR_SUMMARY));
        let reply = match self.send(turn, &history, false).await {
            Ok(Some(reply)) => reply,
            Ok(None) => return Ok(()),
            Err(ProviderError::Window(_)) => return Err(AgentError::Window),
            Err(error) => return Err(error.into()),
        };
        if reply.text.trim().is_empty() {
            return Err(AgentError::Window);
        }
        let summary = reply.text;
        let mut text = format!("{BEFORE_SUMMARY}{summary}");
        if let Some(question) = &turn.question {
            text.push_str(BEFORE_QUESTION);
            text.push_str(question);
        }
        self.history = vec![self.provider.user_text(&text)];
        self.context = 0;
        self.forget_appended_tools();
        turn.emit(AgentEvent::Compacted { tokens_before, summary });
        Ok(())
    }
}
