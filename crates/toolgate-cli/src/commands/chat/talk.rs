//! Turns: one of `-p`, or one after the other.

use std::process::ExitCode;

use futures::StreamExt as _;
use toolgate_agent::{AgentError, AgentEvent, EndReason};

use super::{
    ChatState,
    input::{ChatInput, TypedLine},
    screen::Screen,
    slash::{self, Slash},
};
use crate::{
    failure::{CommandResult, Failure, INTERRUPTED},
    interrupts::Interrupts,
    load, print,
};

impl ChatState {
    /// One question and its answer.
    pub(super) async fn once(&mut self, question: &str, as_json: bool) -> CommandResult {
        let mut interrupts = Interrupts::listen()?;
        let mut screen = Screen::new(as_json, false);
        if as_json {
            print::json_line(&self.described())?;
        }
        let end = self.turn(question, &mut screen, &mut interrupts).await;
        screen.finish();
        self.save();
        Ok(match end? {
            EndReason::Answered => ExitCode::SUCCESS,
            EndReason::Cancelled => ExitCode::from(INTERRUPTED),
            _ => ExitCode::FAILURE,
        })
    }

    /// Questions until the end of the input.
    pub(super) async fn talk(&mut self, as_json: bool) -> CommandResult {
        let mut interrupts = Interrupts::listen()?;
        let history = load::store().and_then(|store| store.chats().history_file().ok());
        let mut input = ChatInput::start(history);
        let mut screen = Screen::new(as_json, !as_json);
        if as_json {
            print::json_line(&self.described())?;
        } else if input.is_terminal {
            print::note(self.greeting());
        }
        loop {
            let line = tokio::select! {
                line = input.next() => line,
                () = interrupts.next() => TypedLine::Interrupted,
            };
            let line = match line {
                TypedLine::Text(line) => line,
                TypedLine::Interrupted => {
                    print::note("Ctrl-D or /exit ends the chat.");
                    continue;
                }
                TypedLine::End => break,
            };
            let line = line.trim();
            match Slash::parse(line) {
                _ if line.is_empty() => {}
                Some(Ok(Slash::Exit)) => break,
                Some(Ok(command)) => {
                    if let Err(failure) = slash::run(self, command).await {
                        print::note(failure);
                    }
                }
                Some(Err(problem)) => print::note(format!("error: {problem}")),
                None => {
                    let end = self.turn(line, &mut screen, &mut interrupts).await;
                    screen.finish();
                    if let Err(failure) = end {
                        print::note(failure);
                    }
                    self.save();
                }
            }
        }
        if let Some(file) = self.file.as_ref().filter(|file| !file.head.title.is_empty()) {
            print::note(format!("`toolgate chat --resume {}` continues this chat.", file.id));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Asks, and shows what happens. Ctrl-C cancels the turn.
    async fn turn(
        &mut self,
        question: &str,
        screen: &mut Screen,
        interrupts: &mut Interrupts,
    ) -> Result<EndReason, Failure> {
        if let Some(file) = &mut self.file {
            file.asked(question);
        }
        let mut turn = self.conversation.ask(question);
        let cancel = turn.canceller();
        loop {
            let event = tokio::select! {
                event = turn.next() => event,
                () = interrupts.next(), if !cancel.is_cancelled() => {
                    cancel.cancel();
                    continue;
                }
            };
            let Some(event) = event else {
                return Err(Failure::new("the turn ended without an answer").hint("ask again"));
            };
            if matches!(event, AgentEvent::ToolsChanged { .. }) {
                self.ledger.refresh(self.tools.inner());
            }
            self.ledger.note(&event);
            screen.show(&event, &self.ledger)?;
            match event {
                AgentEvent::Done(end) => return Ok(end.reason),
                AgentEvent::Failed { error } => {
                    let advice = match &error {
                        AgentError::Provider(error) => self.model.advice(error),
                        _ => None,
                    };
                    return Err(Failure::new(error.to_string()).hint_if(advice.as_deref()));
                }
                _ => {}
            }
        }
    }

    fn greeting(&self) -> String {
        let servers = self.tools.inner().host().settings().servers.len();
        format!(
            "{} with {servers} {}. {} /help lists commands, Ctrl-D ends.",
            self.model.name,
            if servers == 1 { "server" } else { "servers" },
            slash::mode(self)
        )
    }

    /// Stores the chat. One that cannot be stored goes on.
    fn save(&mut self) {
        let Some(file) = self.file.as_mut().filter(|file| !file.head.title.is_empty()) else {
            return;
        };
        file.head.saved = self.ledger.totals();
        if let Err(failure) = file.save(&self.tools.save(&self.conversation)) {
            print::note(format!("warning: the chat is not stored: {}", failure.first_line()));
            self.file = None;
        }
    }
}
