//! The person who gives a permission in a shell. All commands that do so ask here.

mod dialog;
mod keyboard;
mod password;
mod system;

use std::{
    fs::{File, OpenOptions},
    io::{BufRead as _, BufReader, Write as _},
    time::Duration,
};

use toolgate_broker::{ApprovalRequest, PersonAnswer};
use toolgate_config::Presence;
use toolgate_policy::definitions::spelled_out;

pub(crate) use self::keyboard::Withdrawn;
use self::{dialog::Dialog, keyboard::Keyboard};
use crate::{failure::Failure, lineage, print, terminal};

/// The question after what is shown.
pub(crate) const ALLOW: &str = "Allow this, and nothing else?";

/// Shows the person what would be allowed, and asks; every answer except "yes" is a failure. If
/// nobody can be asked, what would be allowed goes to stdout. There is no option that answers for the
/// person.
pub(crate) fn agrees(presence: Presence, shown: &str, question: &str) -> Result<(), Failure> {
    match Person::present(presence) {
        Ok(mut person) => person.agrees(shown, question),
        Err(nobody) => {
            print::line(shown);
            Err(nobody)
        }
    }
}

/// A person who is there, and the way in which they are asked.
pub(crate) enum Person {
    /// At the controlling terminal, and then perhaps with a password.
    Terminal(OpenTerminal, Presence),
    /// With a dialog on the desktop.
    Desktop(Dialog),
}

impl Person {
    /// Finds the person. It is a failure if nobody can be asked in this way, or if a server of toolgate
    /// has started this process.
    pub(crate) fn present(presence: Presence) -> Result<Self, Failure> {
        lineage::refuse_servers()?;
        if presence == Presence::Password {
            password::find()?;
        }
        match presence {
            Presence::Desktop => Dialog::find().map(Self::Desktop),
            Presence::Terminal | Presence::Password => {
                Ok(Self::Terminal(OpenTerminal::open()?, presence))
            }
        }
    }

    /// The same person, who is not asked any more once the question is withdrawn. A dialog stays.
    pub(crate) fn unless(mut self, withdrawn: Withdrawn) -> Self {
        if let Self::Terminal(terminal, _) = &mut self {
            terminal.typed.get_mut().unless(withdrawn);
        }
        self
    }

    /// Asks about a call, and for how long and with which arguments it is allowed. A dialog asks about
    /// this call alone.
    pub(crate) fn answers(&mut self, request: &ApprovalRequest) -> Result<PersonAnswer, Failure> {
        let failed = |error| Failure::new(format!("no answer can be read: {error}"));
        match self {
            Self::Terminal(OpenTerminal { typed, screen }, presence) => {
                let answer = terminal::ask(request, typed, screen).map_err(failed)?;
                if answer != PersonAnswer::Deny && *presence == Presence::Password {
                    password::ask()?;
                }
                Ok(answer)
            }
            Self::Desktop(dialog) => {
                let is_agreed = dialog.agrees(&format!("{request}\n\n{ALLOW}"))?;
                Ok(if is_agreed { PersonAnswer::ONCE } else { PersonAnswer::Deny })
            }
        }
    }

    /// Shows the person what would be allowed, and asks.
    fn agrees(&mut self, shown: &str, question: &str) -> Result<(), Failure> {
        let is_agreed = match self {
            Self::Terminal(terminal, presence) => {
                let is_agreed = terminal.agrees(shown, question)?;
                if is_agreed && *presence == Presence::Password {
                    password::ask()?;
                }
                is_agreed
            }
            Self::Desktop(dialog) => {
                dialog.agrees(&format!("{}\n\n{question}", shown.trim_end()))?
            }
        };
        if is_agreed { Ok(()) } else { Err(Failure::new("nothing was allowed")) }
    }
}

/// The controlling terminal. Whatever stdin and stdout are, the question goes there and the answer
/// comes from there: a program without a terminal cannot answer.
pub(crate) struct OpenTerminal {
    pub(crate) typed: BufReader<Keyboard>,
    pub(crate) screen: File,
}

impl OpenTerminal {
    /// Opens the terminal. Without one there is nobody to ask.
    pub(crate) fn open() -> Result<Self, Failure> {
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
        forget_typed(&keyboard);
        Ok(Self { typed: BufReader::new(Keyboard::new(keyboard)), screen })
    }

    fn agrees(&mut self, shown: &str, question: &str) -> Result<bool, Failure> {
        // On this screen, wherever stdout goes: the person decides on what they see here.
        let answer = self.answer(&format!("{}\n{question} [y/N] ", shown.trim_end()))?;
        Ok(matches!(answer.as_str(), "y" | "yes"))
    }

    /// Asks, and returns what was typed in small letters; nothing at the end of the input.
    pub(crate) fn answer(&mut self, question: &str) -> Result<String, Failure> {
        let failed = |error| Failure::new(format!("no answer can be read: {error}"));
        write!(self.screen, "{}", spelled_out(question))
            .and_then(|()| self.screen.flush())
            .map_err(failed)?;
        let mut line = String::new();
        self.typed.read_line(&mut line).map_err(failed)?;
        Ok(line.trim().to_ascii_lowercase())
    }

    /// Waits until a line is typed for this program; `false` if there will be none. A program that reads in the background
    /// would be stopped by the terminal.
    pub(crate) fn line_in_foreground(&mut self) -> bool {
        const AGAIN: Duration = Duration::from_secs(1);
        loop {
            let keyboard = self.typed.get_ref();
            if keyboard.wait().is_err() {
                return false;
            }
            if keyboard.is_in_foreground() {
                break;
            }
            std::thread::sleep(AGAIN);
        }
        matches!(self.typed.read_line(&mut String::new()), Ok(1..))
    }
}

/// Forgets what was typed before anything was asked.
#[cfg(unix)]
fn forget_typed(terminal: &File) {
    let _ = rustix::termios::tcflush(terminal, rustix::termios::QueueSelector::IFlush);
}

#[cfg(not(unix))]
fn forget_typed(_terminal: &File) {}

/// Whether this program runs in the foreground of the terminal.
#[cfg(unix)]
fn in_foreground(terminal: &File) -> bool {
    rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}

#[cfg(not(unix))]
fn in_foreground(_terminal: &File) -> bool {
    true
}
