//! The system's keychain.

/// The names under which the key is found.
const SERVICE: &str = "toolgate";
const ACCOUNT: &str = "vault";

#[cfg(any(target_os = "macos", windows))]
mod system {
    use super::{ACCOUNT, SERVICE};

    fn entry() -> Result<keyring::Entry, String> {
        keyring::Entry::new(SERVICE, ACCOUNT).map_err(|error| error.to_string())
    }

    pub(in super::super) fn read() -> Result<Option<[u8; 32]>, String> {
        match entry()?.get_secret() {
            // A secret of another length does not belong to toolgate.
            Ok(secret) => Ok(secret.try_into().ok()),
            Err(keyring::Error::NoEntry) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    pub(in super::super) fn write(key: &[u8; 32]) -> Result<(), String> {
        entry()?.set_secret(key).map_err(|error| error.to_string())
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

    use super::{ACCOUNT, SERVICE};
    use crate::vault::key::parse;

    /// The keychain may have to be unlocked by the person.
    const TIMEOUT: Duration = Duration::from_mins(1);
    const PAUSE: Duration = Duration::from_millis(10);

    pub(in super::super) fn read() -> Result<Option<[u8; 32]>, String> {
        let (found, said) = run(&["lookup", "service", SERVICE, "account", ACCOUNT], None)?;
        match found {
            Some(text) => Ok(parse(&text)),
            // `secret-tool` prints nothing if it finds nothing.
            None if said.trim().is_empty() => Ok(None),
            None => Err(said.lines().next().unwrap_or_default().chars().take(200).collect()),
        }
    }

    pub(in super::super) fn write(key: &[u8; 32]) -> Result<(), String> {
        let text = blake3::Hash::from_bytes(*key).to_hex();
        let store = ["store", "--label=toolgate", "service", SERVICE, "account", ACCOUNT];
        match run(&store, Some(text.as_str()))? {
            (Some(_), _) => Ok(()),
            (None, said) => {
                Err(said.lines().next().unwrap_or_default().chars().take(200).collect())
            }
        }
    }

    /// The output of `secret-tool`, or its error.
    fn run(arguments: &[&str], input: Option<&str>) -> Result<(Option<String>, String), String> {
        let mut child = Command::new("secret-tool")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
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

    fn wait(child: &mut Child) -> Result<bool, String> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status.success()),
                Ok(None) if Instant::now() < deadline => thread::sleep(PAUSE),
                Ok(None) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err("nobody unlocked it in time".to_owned());
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

pub(super) use system::{read, write};
