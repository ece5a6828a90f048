//! The person at a terminal, with a real pseudo-terminal.

use std::{
    ffi::OsStr,
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt as _, fs::OpenOptionsExt as _},
    },
    process::Stdio,
};

use rustix::{
    fs::OFlags,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};
use tokio::{
    process::{Child, Command},
    sync::mpsc,
};
use toolgate_store::QuestionReference;
use toolgate_testkit::deadline;

use crate::support::{Outcome, Workplace};

/// A command at a terminal of its own, which is its controlling terminal: stdin and stderr are the
/// terminal, stdout is not.
#[derive(Debug)]
pub(crate) struct Typist {
    child: Child,
    keyboard: File,
    heard: mpsc::UnboundedReceiver<String>,
    screen: String,
    /// How much was on the screen when something was typed last.
    seen: usize,
}

impl Typist {
    pub(crate) fn start(workplace: &Workplace, arguments: &[&str]) -> Self {
        Self::run_command(workplace.command(arguments))
    }

    /// With keys that were pressed before the command ran.
    pub(crate) fn start_after(workplace: &Workplace, arguments: &[&str], typed: &str) -> Self {
        Self::spawn(workplace.command(arguments), false, typed)
    }

    /// With stdin, stdout and stderr at the terminal.
    pub(crate) fn at_screen(workplace: &Workplace, arguments: &[&str]) -> Self {
        Self::spawn(workplace.command(arguments), true, "")
    }

    /// A command with stdin, stdout and stderr at the terminal.
    pub(crate) fn at_terminal(command: Command) -> Self {
        Self::spawn(command, true, "")
    }

    pub(crate) fn run_command(command: Command) -> Self {
        Self::spawn(command, false, "")
    }

    #[expect(unsafe_code, reason = "a controlling terminal can only be taken in the child")]
    fn spawn(mut command: Command, stdout_too: bool, typed: &str) -> Self {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let name = ptsname(&keyboard, Vec::new()).unwrap();
        let no_owner = i32::try_from(OFlags::NOCTTY.bits()).unwrap();
        let terminal = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(no_owner)
            .open(OsStr::from_bytes(name.as_bytes()))
            .unwrap();
        // SAFETY: between fork and exec these are two system calls, which allocate nothing.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
                Ok(())
            });
        }
        if stdout_too {
            command.stdout(Stdio::from(OwnedFd::from(terminal.try_clone().unwrap())));
        }
        let mut keyboard = File::from(keyboard);
        keyboard.write_all(typed.as_bytes()).unwrap();
        let child = command
            .stdin(Stdio::from(OwnedFd::from(terminal.try_clone().unwrap())))
            .stderr(Stdio::from(OwnedFd::from(terminal)))
            .spawn()
            .unwrap();
        // The command has the terminal open too, so it is dropped.
        drop(command);
        let mut screen = keyboard.try_clone().unwrap();
        let (sender, heard) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                let _ = sender.send(String::from_utf8_lossy(&bytes[..count]).into_owned());
            }
        });
        Self { child, keyboard, heard, screen: String::new(), seen: 0 }
    }

    /// Waits until the screen ends with this, after what was typed last.
    pub(crate) async fn sees(&mut self, text: &str) -> &mut Self {
        while !self.screen[self.seen..].ends_with(text) {
            let more = tokio::time::timeout(deadline(), self.heard.recv()).await;
            let Ok(Some(more)) = more else { panic!("never {text:?}: {:?}", self.screen) };
            self.screen.push_str(&more);
        }
        self
    }

    /// Waits until this is on the screen, after what was typed or heard last.
    pub(crate) async fn hears(&mut self, text: &str) -> &mut Self {
        loop {
            if let Some(place) = self.screen[self.seen..].find(text) {
                self.seen += place + text.len();
                return self;
            }
            let more = tokio::time::timeout(deadline(), self.heard.recv()).await;
            let Ok(Some(more)) = more else { panic!("never {text:?}: {:?}", self.screen) };
            self.screen.push_str(&more);
        }
    }

    /// Waits for a line with this text, after what was typed or heard last, and returns the line.
    pub(crate) async fn line_with(&mut self, text: &str) -> String {
        loop {
            let unheard = &self.screen[self.seen..];
            if let Some(place) = unheard.find(text)
                && let Some(length) = unheard[place..].find('\n')
            {
                let start = unheard[..place].rfind('\n').map_or(0, |end| end + 1);
                let line = unheard[start..place + length].trim().to_owned();
                self.seen += place + length;
                return line;
            }
            let more = tokio::time::timeout(deadline(), self.heard.recv()).await;
            let Ok(Some(more)) = more else { panic!("never {text:?}: {:?}", self.screen) };
            self.screen.push_str(&more);
        }
    }

    pub(crate) fn types(&mut self, text: &str) -> &mut Self {
        self.seen = self.screen.len();
        self.keyboard.write_all(text.as_bytes()).unwrap();
        self
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// Waits for the end; what is on the screen is what went to stderr.
    pub(crate) async fn end(mut self) -> Outcome {
        let ended = tokio::time::timeout(deadline(), self.child.wait_with_output()).await;
        let output = ended.unwrap_or_else(|_| panic!("hangs: {:?}", self.screen)).unwrap();
        while let Ok(Some(more)) = tokio::time::timeout(deadline(), self.heard.recv()).await {
            self.screen.push_str(&more);
        }
        let stdout = String::from_utf8(output.stdout).unwrap();
        Outcome { stdout, stderr: plain(&self.screen), code: output.status.code() }
    }
}

/// Runs a command at a terminal, and says yes to what it asks.
pub(crate) async fn agree(workplace: &Workplace, arguments: &[&str]) -> Outcome {
    let mut typist = Typist::start(workplace, arguments);
    typist.sees("[y/N] ").await.types("y\n");
    typist.end().await
}

/// The ids of what waits, as a person sees them at a terminal.
pub(crate) async fn waiting_ids(workplace: &Workplace) -> Vec<String> {
    let screen = Typist::at_screen(workplace, &["approve"]).end().await.stderr;
    let ids = screen.lines().filter_map(|line| line.split(' ').next());
    ids.filter(|word| word.starts_with("a_") || word.starts_with("c_")).map(str::to_owned).collect()
}

/// The id of the question that a model knows under this name.
pub(crate) async fn id_of(workplace: &Workplace, reference: &str) -> String {
    let ids = waiting_ids(workplace).await;
    let found = ids.iter().find(|id| QuestionReference::of(id).as_str() == reference);
    found.unwrap_or_else(|| panic!("{reference} does not wait: {ids:?}")).clone()
}

/// Approves at a terminal what a model knows under this name.
pub(crate) async fn approve(workplace: &Workplace, reference: &str, more: &[&str]) -> Outcome {
    let id = id_of(workplace, reference).await;
    agree(workplace, &[&["approve", &id], more].concat()).await
}

/// A screen without the progress output.
fn plain(screen: &str) -> String {
    let lines = screen.split('\n').map(|line| {
        let line = line.trim_end_matches('\r');
        let line = line.rsplit("\u{1b}[2K").next().unwrap_or_default();
        line.rsplit('\r').next().unwrap_or_default().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}
