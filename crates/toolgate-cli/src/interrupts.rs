//! Ctrl-C.

use crate::failure::Failure;

/// Ctrl-C, from the moment when this is made. None is lost between two waits.
pub(crate) struct Interrupts {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
    #[cfg(windows)]
    signal: tokio::signal::windows::CtrlC,
}

impl Interrupts {
    pub(crate) fn listen() -> Result<Self, Failure> {
        #[cfg(unix)]
        let signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt());
        #[cfg(windows)]
        let signal = tokio::signal::windows::ctrl_c();
        let signal =
            signal.map_err(|error| Failure::new(format!("Ctrl-C cannot be noticed: {error}")))?;
        Ok(Self { signal })
    }

    pub(crate) async fn next(&mut self) {
        if self.signal.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}
