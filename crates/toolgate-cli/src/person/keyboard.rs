//! The keyboard of the person who is asked.

use std::{
    fs::File,
    io::{self, PipeReader, PipeWriter, Read},
};

/// Whether a question was withdrawn: the call that it is about was cancelled.
#[derive(Debug)]
pub(crate) struct Withdrawn(PipeReader);

/// The keyboard. A read ends when the question is withdrawn, so that the line that is typed next belongs to whoever reads
/// next.
pub(crate) struct Keyboard {
    file: File,
    withdrawn: Option<Withdrawn>,
}

impl Withdrawn {
    /// The question is withdrawn when the second value is dropped.
    pub(crate) fn new() -> io::Result<(Self, PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        Ok((Self(reader), writer))
    }

    pub(crate) fn is_set(&self) -> bool {
        #[cfg(unix)]
        return is_ready(&self.0);
        #[cfg(not(unix))]
        return false;
    }
}

impl Keyboard {
    pub(super) fn new(file: File) -> Self {
        Self { file, withdrawn: None }
    }

    /// Waits until something can be read.
    pub(super) fn wait(&self) -> io::Result<()> {
        #[cfg(unix)]
        loop {
            use rustix::event::{PollFd, PollFlags, poll};

            match poll(&mut [PollFd::new(&self.file, PollFlags::IN)], None) {
                Ok(1..) => break,
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    pub(super) fn is_in_foreground(&self) -> bool {
        super::in_foreground(&self.file)
    }

    pub(super) fn unless(&mut self, withdrawn: Withdrawn) {
        self.withdrawn = Some(withdrawn);
    }
}

impl Read for Keyboard {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        #[cfg(unix)]
        if let Some(Withdrawn(pipe)) = &self.withdrawn {
            wait_for_one(&self.file, pipe)?;
            if is_ready(pipe) {
                return Err(io::Error::other("the question was withdrawn"));
            }
        }
        self.file.read(bytes)
    }
}

/// Waits until a line was typed, or the other end of the pipe is closed.
#[cfg(unix)]
fn wait_for_one(keyboard: &File, pipe: &PipeReader) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};

    loop {
        let mut both = [PollFd::new(keyboard, PollFlags::IN), PollFd::new(pipe, PollFlags::IN)];
        match poll(&mut both, None) {
            Ok(1..) => return Ok(()),
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether the other end of the pipe is closed. Nothing is ever written to it.
#[cfg(unix)]
fn is_ready(pipe: &PipeReader) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}
