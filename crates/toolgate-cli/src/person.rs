//! The person at the terminal that this program opens itself.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead as _, BufReader, Write as _},
};

use crate::failure::Failure;

/// A person at the controlling terminal. Questions and answers use this terminal, regardless of
/// stdin and stdout. So a program without a terminal cannot answer.
pub(crate) struct Person {
    typed: BufReader<File>,
    screen: File,
}

impl Person {
    /// Opens the terminal. Fails if there is none.
    pub(crate) fn at_terminal() -> Result<Self, Failure> {
        let (keyboard, screen) =
            if cfg!(windows) { ("CONIN$", "CONOUT$") } else { ("/dev/tty", "/dev/tty") };
        let nobody = || {
            Failure::usage("a person has to agree to this, and there is no terminal to ask at")
                .hint("run it yourself in a terminal")
        };
        let open = |path| OpenOptions::new().read(true).write(true).open(path);
        let (keyboard, screen) =
            (open(keyboard).map_err(|_| nobody())?, open(screen).map_err(|_| nobody())?);
        if !in_foreground(&keyboard) {
            return Err(nobody());
        }
        Ok(Self { typed: BufReader::new(keyboard), screen })
    }

    /// Asks. Every answer except yes is a failure.
    pub(crate) fn agrees(&mut self, question: &str) -> Result<(), Failure> {
        match self.answer(question)?.as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(Failure::new("nothing was allowed")),
        }
    }

    /// Asks, and returns what was typed in small letters; nothing at the end of the input.
    pub(crate) fn answer(&mut self, question: &str) -> Result<String, Failure> {
        let failed = |error| Failure::new(format!("no answer can be read: {error}"));
        write!(self.screen, "{question}").and_then(|()| self.screen.flush()).map_err(failed)?;
        let mut line = String::new();
        self.typed.read_line(&mut line).map_err(failed)?;
        Ok(line.trim().to_ascii_lowercase())
    }
}

/// Whether this program runs in the foreground of the terminal.
#[cfg(unix)]
fn in_foreground(terminal: &File) -> bool {
    rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}

#[cfg(not(unix))]
fn in_foreground(_terminal: &File) -> bool {
    true
}
