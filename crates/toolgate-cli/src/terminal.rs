//! The person who is asked about the calls of `toolgate call` and `toolgate run`.

use std::{
    io::{self, BufRead, IsTerminal, Write},
    sync::Arc,
};

use futures::{FutureExt, future::BoxFuture};
use indicatif::ProgressBar;
use parking_lot::Mutex;
use toolgate_broker::{
    ApprovalPrompt, ApprovalRequest, Caller, GrantDuration, GrantExtent, PersonAnswer,
    SessionContext,
};
use toolgate_config::Presence;
use toolgate_policy::{
    ArgumentConditions, ConditionTextError,
    definitions::{shown, spelled_out},
};

use crate::{
    person::{Person, Withdrawn},
    print,
};

/// A session of the person at this shell. The person is asked if stdin and stderr are a terminal, or
/// on the desktop. The first question ends `bar`.
pub(crate) fn session(bar: &ProgressBar, presence: Presence) -> SessionContext {
    session_of(Caller::person(), bar, presence)
}

/// A session of a model that the person at this shell talks to. The same person is asked.
pub(crate) fn model_session(bar: &ProgressBar, presence: Presence) -> SessionContext {
    session_of(Caller::model("chat"), bar, presence)
}

fn session_of(caller: Caller, bar: &ProgressBar, presence: Presence) -> SessionContext {
    let context = SessionContext::new(caller);
    let is_at_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    if is_at_terminal || presence == Presence::Desktop {
        let prompt = Terminal { bar: bar.clone(), presence, turn: Arc::default() };
        context.with_prompt(Arc::new(prompt))
    } else {
        context
    }
}

/// Asks one question after the other, even if several calls wait.
#[derive(Debug)]
struct Terminal {
    bar: ProgressBar,
    presence: Presence,
    turn: Arc<Mutex<()>>,
}

/// The typed answer.
enum Typed {
    Yes(GrantDuration),
    No,
    Unclear,
}

impl ApprovalPrompt for Terminal {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Option<PersonAnswer>> {
        let (request, turn) = (request.clone(), Arc::clone(&self.turn));
        let presence = self.presence;
        async move {
            self.bar.finish_and_clear();
            // The other end is closed when nobody waits for the answer any more.
            let (withdrawn, _waits) = Withdrawn::new().ok()?;
            let answer = tokio::task::spawn_blocking(move || {
                let _turn = turn.lock();
                if withdrawn.is_set() {
                    return None;
                }
                let person = Person::present(presence).inspect_err(|nobody| print::note(nobody));
                person.and_then(|person| person.unless(withdrawn).answers(&request)).ok()
            });
            answer.await.ok()?
        }
        .boxed()
    }
}

/// Asks until there is an answer. The end of the input is a denial.
pub(crate) fn ask(
    request: &ApprovalRequest,
    typed: &mut dyn BufRead,
    screen: &mut dyn Write,
) -> io::Result<PersonAnswer> {
    let run = if request.run.is_some() { ", [r]un" } else { "" };
    let who = shown(&request.identity, 128);
    writeln!(screen, "{}", spelled_out(&request.to_string()))?;
    let lasts = loop {
        let question = format!("Allow [o]nce{run}, [s]ession, [a]lways (for {who}), or [N]o? ");
        let Some(line) = line(&question, typed, screen)? else { return Ok(PersonAnswer::Deny) };
        match duration(request, &line) {
            Typed::No => return Ok(PersonAnswer::Deny),
            Typed::Yes(GrantDuration::Once) => return Ok(PersonAnswer::ONCE),
            Typed::Yes(lasts) => break lasts,
            Typed::Unclear => {}
        }
    };
    loop {
        let question = "With [T]hese arguments, [a]ny, or only where (such as path=src/*)? ";
        let Some(line) = line(question, typed, screen)? else { return Ok(PersonAnswer::Deny) };
        match extent(&line) {
            Ok(extent) if request.is_covered_by(&extent) != Some(false) => {
                return Ok(PersonAnswer::Allow { lasts, extent });
            }
            Ok(_) => writeln!(screen, "the call itself does not meet this condition")?,
            Err(problem) => writeln!(screen, "{problem}")?,
        }
    }
}

/// The line that is typed; none at the end of the input.
fn line(
    question: &str,
    typed: &mut dyn BufRead,
    screen: &mut dyn Write,
) -> io::Result<Option<String>> {
    write!(screen, "{question}")?;
    screen.flush()?;
    let mut line = String::new();
    let read = typed.read_line(&mut line)?;
    Ok((read > 0).then_some(line))
}

/// For how long it is allowed, or that it is denied. An empty line is a denial.
fn duration(request: &ApprovalRequest, line: &str) -> Typed {
    match line.trim().to_ascii_lowercase().as_str() {
        "o" | "once" | "y" | "yes" => Typed::Yes(GrantDuration::Once),
        "r" | "run" if request.run.is_some() => Typed::Yes(GrantDuration::Run),
        "s" | "session" => Typed::Yes(GrantDuration::Session),
        "a" | "always" => Typed::Yes(GrantDuration::Always),
        "" | "n" | "no" => Typed::No,
        _ => Typed::Unclear,
    }
}

/// The arguments that the grant covers. An empty line means these.
fn extent(line: &str) -> Result<GrantExtent, ConditionTextError> {
    match line.trim() {
        "" | "t" | "T" | "these" => Ok(GrantExtent::These),
        "a" | "A" | "any" => Ok(GrantExtent::Any),
        conditions => ArgumentConditions::from_line(conditions).map(GrantExtent::Where),
    }
}
