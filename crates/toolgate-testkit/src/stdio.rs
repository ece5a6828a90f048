//! Serving over stdin and stdout: one message a line.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Stdout};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::engine::Engine;
use crate::outbox::{Frame, Outbox};
use crate::peer::Peer;
use crate::{Fixture, StrayOutput};

/// How long open responses may take after the end of stdin.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long a fixture lives that ignores its shutdown.
const LONGEST_LIFE: Duration = Duration::from_mins(10);

impl Fixture {
    /// Serves over this process's stdin and stdout until stdin ends, a tool crashes the process,
    /// or a fault has it otherwise; returns the exit code.
    ///
    /// The process should exit at once afterwards: a read of stdin may still be pending.
    pub async fn serve_stdio(self) -> std::io::Result<i32> {
        if let Some(code) = self.prepare().await? {
            return Ok(code);
        }
        // Registering for the signal is enough to ignore it.
        let _terminate = if self.faults.ignores_shutdown {
            Some(signal(SignalKind::terminate())?)
        } else {
            None
        };
        serve(&Engine::new(self)).await
    }

    /// What happens before the first message, over either transport. An exit code ends the process.
    pub(crate) async fn prepare(&self) -> std::io::Result<Option<i32>> {
        let faults = &self.faults;
        if let Some(exit) = &faults.exit_at_start {
            writeln!(std::io::stderr(), "{}", exit.message)?;
            return Ok(Some(exit.code));
        }
        if faults.stderr_bytes > 0 {
            let bytes = faults.stderr_bytes;
            let flood = tokio::task::spawn_blocking(move || flood_stderr(bytes));
            flood.await.map_err(std::io::Error::other)??;
        }
        tokio::time::sleep(Duration::from_millis(faults.start_delay_ms)).await;
        while faults.starts_with_file.as_ref().is_some_and(|file| !file.exists()) {
            tokio::time::sleep(FILE_POLL).await;
        }
        Ok(None)
    }
}

/// The pause between two looks for the file that a fixture starts with.
const FILE_POLL: Duration = Duration::from_millis(20);

/// Serves until the session has ended or the engine stops.
async fn serve(engine: &Arc<Engine>) -> std::io::Result<i32> {
    tokio::select! {
        code = engine.died() => Ok(code),
        result = converse(engine) => {
            result?;
            if engine.fixture.faults.ignores_shutdown {
                writeln!(std::io::stderr(), "fixture: stdin has ended; staying")?;
                tokio::time::sleep(LONGEST_LIFE).await;
            }
            Ok(0)
        }
    }
}

/// Reads messages until stdin ends, then waits for the open responses.
async fn converse(engine: &Arc<Engine>) -> std::io::Result<()> {
    let (outbox, frames) = Outbox::new();
    let stray_output = engine.fixture.faults.stray_output.clone();
    let writer = tokio::spawn(write_frames(frames, stray_output));
    let peer = Arc::new(Peer::new(outbox.clone()));

    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        if !line.trim().is_empty() {
            engine.receive_text(&peer, &outbox, &line);
        }
    }

    // The writer ends when all senders are gone.
    peer.cancel_all();
    engine.disconnect();
    drop((peer, outbox));
    // A client that no longer reads must not delay the end.
    let _ = tokio::time::timeout(FAREWELL, writer).await;
    Ok(())
}

async fn write_frames(
    mut frames: mpsc::UnboundedReceiver<Frame>,
    stray_output: StrayOutput,
) -> std::io::Result<()> {
    let mut stdout = tokio::io::stdout();
    if stray_output.at_start {
        write_line(&mut stdout, "Fixture server starting up…").await?;
    }
    if stray_output.long_line_bytes > 0 {
        write_line(&mut stdout, &"z".repeat(stray_output.long_line_bytes)).await?;
    }
    while let Some(frame) = frames.recv().await {
        if stray_output.between_messages {
            write_line(&mut stdout, "[debug] about to send a message").await?;
        }
        write_line(&mut stdout, &frame.text).await?;
    }
    Ok(())
}

async fn write_line(stdout: &mut Stdout, text: &str) -> std::io::Result<()> {
    stdout.write_all(text.as_bytes()).await?;
    stdout.write_all(b"\n").await?;
    stdout.flush().await
}

fn flood_stderr(bytes: u64) -> std::io::Result<()> {
    let line = [&[b'e'; 79][..], b"\n"].concat();
    let mut stderr = std::io::stderr().lock();
    let mut left = bytes;
    while left > 0 {
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(line.len());
        stderr.write_all(&line[line.len() - length..])?;
        left -= length as u64;
    }
    Ok(())
}
