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

    #[expect(unsafe_code, reason = "a controlling terminal can only be taken in the child")]
    pub(crate) fn run_command(mut command: Command) -> Self {
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
        let child = command
            .stdin(Stdio::from(OwnedFd::from(terminal.try_clone().unwrap())))
            .stderr(Stdio::from(OwnedFd::from(terminal)))
            .spawn()
            .unwrap();
        // The command has the terminal open too, so it is dropped.
        drop(command);
        let keyboard = File::from(keyboard);
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

/// A screen without the progress output.
fn plain(screen: &str) -> String {
    let lines = screen.split('\n').map(|line| {
        let line = line.trim_end_matches('\r');
        let line = line.rsplit("\u{1b}[2K").next().unwrap_or_default();
        line.rsplit('\r').next().unwrap_or_default().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}
