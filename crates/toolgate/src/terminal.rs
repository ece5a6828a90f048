//! The person at a terminal.

use std::{
    io::{self, BufRead, IsTerminal, Write},
    sync::Arc,
};

use futures::{FutureExt, future::BoxFuture};
use toolgate_broker::{Asker, Caller, Inquiry, Lasts, PersonAnswer, SessionContext};

/// A session of the person at this shell, who is asked where stdin and stderr are a terminal.
pub(crate) fn session() -> SessionContext {
    let context = SessionContext::new(Caller::person());
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        context.with_asker(Arc::new(Terminal))
    } else {
        context
    }
}

#[derive(Debug)]
struct Terminal;

impl Asker for Terminal {
    fn ask<'a>(&'a self, inquiry: &'a Inquiry) -> BoxFuture<'a, Option<PersonAnswer>> {
        let inquiry = inquiry.clone();
        async move {
            let asked = tokio::task::spawn_blocking(move || ask(&inquiry));
            asked.await.ok()?.ok()
        }
        .boxed()
    }
}

fn ask(inquiry: &Inquiry) -> io::Result<PersonAnswer> {
    let mut screen = io::stderr().lock();
    let run = if inquiry.run.is_some() { ", [r]un" } else { "" };
    writeln!(screen, "{inquiry}")?;
    loop {
        write!(screen, "Allow [o]nce{run}, [s]ession, [a]lways, or [N]o? ")?;
        screen.flush()?;
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line)? == 0 {
            return Ok(PersonAnswer::Deny);
        }
        if let Some(answer) = read(inquiry, &line) {
            return Ok(answer);
        }
    }
}

/// What was typed, if it is an answer; nothing typed is a no.
fn read(inquiry: &Inquiry, line: &str) -> Option<PersonAnswer> {
    let lasts = match line.trim().to_ascii_lowercase().as_str() {
        "o" | "once" | "y" | "yes" => Lasts::Once,
        "r" | "run" if inquiry.run.is_some() => Lasts::Run,
        "s" | "session" => Lasts::Session,
        "a" | "always" => Lasts::Always,
        "" | "n" | "no" => return Some(PersonAnswer::Deny),
        _ => return None,
    };
    Some(PersonAnswer::Allow { lasts, these_arguments: false })
}
