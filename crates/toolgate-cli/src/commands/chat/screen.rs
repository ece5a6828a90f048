//! What a person, or a program, sees of a chat.

use std::io::{self, IsTerminal as _, Write as _};

use serde_json::Value;
use toolgate_agent::{AgentEvent, AgentLimit, EndReason, TokenUse, TurnEnd};
use toolgate_catalog::grouped;
use toolgate_policy::definitions::{shown, spelled_out};

use super::ledger::Ledger;
use crate::{failure::Failure, print};

/// The longest line about a call or a result.
const LONGEST: usize = 160;

/// Shows the events of turns.
pub(super) struct Screen {
    style: Style,
    /// Whether the last piece of text did not end its line.
    is_open: bool,
    /// The calls without a result: id, tool, and both with the arguments.
    open_calls: Vec<(String, String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// One event a line.
    Json,
    /// Text as it comes, and the numbers of each turn.
    Talk,
    /// Text as it comes.
    Stream,
    /// The answer whole, without what a retry has discarded.
    Whole,
}

impl Screen {
    pub(super) fn new(as_json: bool, is_talk: bool) -> Self {
        let style = match (as_json, is_talk) {
            (true, _) => Style::Json,
            (false, true) => Style::Talk,
            (false, false) if io::stdout().is_terminal() => Style::Stream,
            (false, false) => Style::Whole,
        };
        Self { style, is_open: false, open_calls: Vec::new() }
    }

    /// Shows an event: as a line of JSON, or as text.
    pub(super) fn show(&mut self, event: &AgentEvent, ledger: &Ledger) -> Result<(), Failure> {
        if self.style == Style::Json {
            if matches!(event, AgentEvent::Done(_)) {
                print::json_line(&ledger.savings())?;
            }
            return print::json_line(event);
        }
        match event {
            AgentEvent::TextDelta { text } if self.style != Style::Whole => self.text(text),
            AgentEvent::ToolCallStarted { id, name, arguments, .. } => {
                let call = call(name, arguments);
                self.note(&format!("→ {}", shown(&call, LONGEST)));
                self.open_calls.push((id.clone(), name.clone(), call));
            }
            AgentEvent::ToolResult { id, name, is_error, preview, .. } => {
                let mark = if *is_error { "✗" } else { "←" };
                let call = self.closed(id).unwrap_or_else(|| name.clone());
                self.note(&format!(
                    "{mark} {}: {}",
                    shown(&call, LONGEST / 2),
                    shown(preview, LONGEST)
                ));
            }
            AgentEvent::ToolsFound { query, names } if query.is_empty() => {
                self.note(&format!("? {}", names.join(", ")));
            }
            AgentEvent::ToolsFound { query, names } => {
                let found = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
                self.note(&format!("? {}: {found}", shown(query, LONGEST)));
            }
            AgentEvent::HostedToolUsed { name } => {
                self.note(&format!("→ {} of the provider", shown(name, LONGEST)));
            }
            AgentEvent::ToolsChanged { added, removed } => {
                let (added, removed) = (added.len(), removed.len());
                self.note(&format!("The tools have changed: {added} added, {removed} removed."));
            }
            AgentEvent::ToolsUnloaded { names } => {
                let tools = if names.len() == 1 { "tool is" } else { "tools are" };
                self.note(&format!("{} {tools} unloaded.", names.len()));
            }
            AgentEvent::Retry { attempt, wait, reason, discards_text } => {
                let discards = *discards_text && self.style != Style::Whole;
                let discards = if discards { " The text above does not count." } else { "" };
                let seconds = wait.as_secs_f64();
                self.note(&format!(
                    "Attempt {attempt} failed: {reason}. The next one is in {seconds:.1} s.{discards}"
                ));
            }
            AgentEvent::Compacted { tokens_before, .. } => {
                let before = grouped(*tokens_before);
                self.note(&format!("A summary has replaced the conversation of {before} tokens."));
            }
            // The next calls are of another reply.
            AgentEvent::Usage { .. } => self.open_calls.clear(),
            AgentEvent::Done(end) => self.done(end, ledger),
            _ => {}
        }
        Ok(())
    }

    /// A call that has ended: with its arguments if another call of the same tool is open or was made beside it.
    fn closed(&mut self, id: &str) -> Option<String> {
        let place = self.open_calls.iter().position(|(open, ..)| open == id)?;
        let (_, name, call) = &self.open_calls[place];
        let beside = self.open_calls.iter().filter(|(_, other, _)| other == name).count() > 1;
        Some(if beside { call.clone() } else { name.clone() })
    }

    fn done(&mut self, end: &TurnEnd, ledger: &Ledger) {
        self.finish();
        self.open_calls.clear();
        if self.style == Style::Whole && !end.text.is_empty() {
            print::line(&end.text);
        }
        if end.reason != EndReason::Answered {
            self.note(&ended(&end.reason));
        }
        if self.style == Style::Talk {
            self.note(&format!("({}. {})", tokens(&end.tokens), ledger.shown()));
        }
    }

    /// Ends an open line.
    pub(super) fn finish(&mut self) {
        if std::mem::take(&mut self.is_open) {
            print::line("");
        }
    }

    fn text(&mut self, text: &str) {
        // The model repeats what servers say: nothing of it controls the terminal.
        let shown = spelled_out(text);
        if shown.is_empty() {
            return;
        }
        self.is_open = !shown.ends_with('\n');
        let mut out = anstream::stdout();
        if write!(out, "{shown}").and_then(|()| out.flush()).is_err() {
            // The reader has closed the pipe.
            std::process::exit(0);
        }
    }

    fn note(&mut self, text: &str) {
        self.finish();
        print::note(text);
    }
}

/// A call, with the tool itself in place of `call_tool`.
fn call(name: &str, arguments: &Value) -> String {
    match (name, arguments["name"].as_str()) {
        ("call_tool", Some(tool)) => format!("{tool} {}", arguments["arguments"]),
        _ => format!("{name} {arguments}"),
    }
}

/// Tokens in words.
pub(super) fn tokens(used: &TokenUse) -> String {
    let TokenUse { new, cached, cache_written, output } = *used;
    let written = if cache_written > 0 {
        format!(", {} cache-written", grouped(cache_written))
    } else {
        String::new()
    };
    format!(
        "Tokens: {} new{written}, {} cached, {} out",
        grouped(new),
        grouped(cached),
        grouped(output)
    )
}

/// Why a turn ended without an answer, and what to do.
fn ended(reason: &EndReason) -> String {
    match reason {
        EndReason::Answered => String::new(),
        EndReason::MaxTokens => {
            "The answer reached the limit of output tokens; --max-output-tokens raises it."
                .to_owned()
        }
        EndReason::Refused => "The model refused; ask in another way.".to_owned(),
        EndReason::Cancelled => "The turn was stopped.".to_owned(),
        EndReason::Limit(AgentLimit::Requests) => {
            "The turn reached the limit of requests; --max-requests raises it.".to_owned()
        }
        EndReason::Limit(AgentLimit::Tokens) => {
            "The chat reached the limit of tokens; --max-tokens raises it.".to_owned()
        }
        EndReason::Limit(AgentLimit::Cost) => {
            "The chat reached the limit of its cost; --max-cost raises it.".to_owned()
        }
        EndReason::Window => "The context window is full; /reset begins a new chat.".to_owned(),
        EndReason::Other(why) => format!("The provider ended the answer: {}.", shown(why, LONGEST)),
        _ => "The turn ended without an answer.".to_owned(),
    }
}
