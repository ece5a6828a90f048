//! The system's keychain.

use std::io;

/// Why the keychain cannot be used. A new vault then has its key in a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeychainError {
    /// The program that talks to the keychain does not run.
    #[error("{0}")]
    Program(#[from] io::Error),
    /// The keychain refused, in its own words.
    #[error("{0}")]
    Refused(String),
    /// The person did not unlock the keychain.
    #[error("nobody unlocked it in time")]
    Locked,
    /// The keychain returned another key than the one that was stored.
    #[error("it does not keep what it is given")]
    Forgot,
}

/// The names under which the key is found.
const SERVICE: &str = "toolgate";
const ACCOUNT: &str = "vault";

#[cfg(any(target_os = "macos", windows))]
mod system {
    use super::{ACCOUNT, KeychainError, SERVICE};

    fn refused(error: keyring::Error) -> KeychainError {
        KeychainError::Refused(error.to_string())
    }

    fn entry() -> Result<keyring::Entry, KeychainError> {
        keyring::Entry::new(SERVICE, ACCOUNT).map_err(refused)
    }

    pub(in super::super) fn read() -> Result<Option<[u8; 32]>, KeychainError> {
        match entry()?.get_secret() {
            // A secret of another length does not belong to toolgate.
            Ok(secret) => Ok(secret.try_into().ok()),
            Err(keyring::Error::NoEntry) => Ok(None),
            Err(error) => Err(refused(error)),
        }
    }

    pub(in super::super) fn write(key: &[u8; 32]) -> Result<(), KeychainError> {
        entry()?.set_secret(key).map_err(refused)
    }
}

/// Elsewhere the keychain is a service on the session's bus. A client for it is a hundred crates;
/// its own command-line client is there wherever people use it.
#[cfg(not(any(target_os = "macos", windows)))]
mod system {
    use std::{
        io::{Read as _, Write as _},
        process::{Child, Command, Stdio},
        thread,
        time::{Duration, Instant},
    };

    use super::{ACCOUNT, KeychainError, SERVICE};
    use crate::vault::key::parse;

    /// The keychain may have to be unlocked by the person.
    const TIMEOUT: Duration = Duration::from_mins(1);
    const PAUSE: Duration = Duration::from_millis(10);

    pub(in super::super) fn read() -> Result<Option<[u8; 32]>, KeychainError> {
        let (found, said) = run(&["lookup", "service", SERVICE, "account", ACCOUNT], None)?;
        match found {
            Some(text) => Ok(parse(&text)),
            // `secret-tool` prints nothing if it finds nothing.
            None if said.trim().is_empty() => Ok(None),
            None => Err(refused(&said)),
        }
    }

    pub(in super::super) fn write(key: &[u8; 32]) -> Result<(), KeychainError> {
        let text = blake3::Hash::from_bytes(*key).to_hex();
        let store = ["store", "--label=toolgate", "service", SERVICE, "account", ACCOUNT];
        match run(&store, Some(text.as_str()))? {
            (Some(_), _) => Ok(()),
            (None, said) => Err(refused(&said)),
        }
    }

    /// The first line that `secret-tool` printed as an error.
    fn refused(said: &str) -> KeychainError {
        let line = said.lines().next().unwrap_or_default();
        KeychainError::Refused(line.chars().take(200).collect())
    }

    /// The output of `secret-tool`, or its error.
    fn run(
        arguments: &[&str],
        input: Option<&str>,
    ) -> Result<(Option<String>, String), KeychainError> {
        let mut child = Command::new("secret-tool")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // Closed at once, which is the end of the secret.
            let _ = stdin.write_all(input.unwrap_or_default().as_bytes());
        }
        let ended_well = wait(&mut child)?;
        let (mut printed, mut said) = (String::new(), String::new());
        if let Some(stdout) = child.stdout.take() {
            let _ = stdout.take(4096).read_to_string(&mut printed);
        }
        if let Some(stderr) = child.stderr.take() {
            let _ = stderr.take(4096).read_to_string(&mut said);
        }
        Ok((ended_well.then_some(printed), said))
    }

    fn wait(child: &mut Child) -> Result<bool, KeychainError> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status.success()),
                Ok(None) if Instant::now() < deadline => thread::sleep(PAUSE),
                Ok(None) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(KeychainError::Locked);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

pub(super) use system::{read, write};
