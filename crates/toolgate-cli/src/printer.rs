//! Data goes to stdout, everything else to stderr.

use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::failure::Failure;

/// Where commands write to. A reader that has gone away ends the output, not the program with a
/// panic.
pub(crate) struct Printer {
    out: anstream::AutoStream<io::Stdout>,
    err: anstream::AutoStream<io::Stderr>,
}

impl Printer {
    pub(crate) fn new() -> Self {
        Self { out: anstream::stdout(), err: anstream::stderr() }
    }

    /// A line of data.
    pub(crate) fn line(&mut self, text: impl Display) {
        if let Err(error) = writeln!(self.out, "{text}") {
            if error.kind() == io::ErrorKind::BrokenPipe {
                // Whoever read us has seen enough.
                std::process::exit(0);
            }
            self.note(format!("error: cannot write the output: {error}"));
            std::process::exit(1);
        }
    }

    /// Data for a program.
    pub(crate) fn json(&mut self, data: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(data)
            .map_err(|error| Failure::new(format!("the result cannot be written: {error}")))?;
        self.line(text);
        Ok(())
    }

    /// A word to the person, beside the data.
    pub(crate) fn note(&mut self, text: impl Display) {
        // Where stderr is closed nobody wants to know.
        let _ = writeln!(self.err, "{text}");
    }

    pub(crate) fn failure(&mut self, failure: &Failure) {
        self.note(failure);
    }

    /// A sign of life for work that takes a while: shown on a terminal only, and gone when done.
    pub(crate) fn progress(total: u64, what: &'static str) -> ProgressBar {
        if !io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {pos}/{len}") {
            bar.set_style(style);
        }
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_millis(100));
        bar
    }
}
