//! Data goes to stdout, everything else to stderr.

use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;

/// The output of commands. A closed pipe ends the output without a panic.
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
                // The reader has closed the pipe, such as `head`.
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

    /// Prints a list: as JSON, as a table, or as a note that it is empty.
    pub(crate) fn list(
        &mut self,
        as_json: bool,
        rows: &[Value],
        empty: &str,
        table: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        match rows {
            _ if as_json => self.json(&rows)?,
            [] => self.note(empty),
            _ => self.line(table()),
        }
        Ok(())
    }

    /// A remark for the person, beside the data.
    pub(crate) fn note(&mut self, text: impl Display) {
        // Nobody can be told that stderr is closed.
        let _ = writeln!(self.err, "{text}");
    }

    pub(crate) fn failure(&mut self, failure: &Failure) {
        self.note(failure);
    }

    /// A progress bar, on a terminal only; it disappears when the work is done.
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
