//! The values that a configuration keeps elsewhere: in a file, behind a command, in the vault.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use toolgate_config::{MAX_STORED_BYTES, StoredReference, StoredValueError};
use toolgate_store::{Store, VaultKey};

/// How long the command of a value may run.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// The name in the vault of a value that people store by name.
pub fn vault_name(name: &str) -> String {
    format!("secret {name}")
}

/// Reads a stored value. The path of a file is absolute.
pub fn read_stored(
    reference: StoredReference<'_>,
    store: Option<&Store>,
    key: &VaultKey,
) -> Result<String, StoredValueError> {
    match reference {
        StoredReference::File(path) => read_stored_file(Path::new(path)),
        StoredReference::Command(line) => printed_by(line, COMMAND_TIMEOUT),
        StoredReference::Keychain(name) | StoredReference::Input(name) => {
            let vault = store.ok_or(StoredValueError::NoAccess)?.vault(key.clone());
            let stored = vault.load(&vault_name(name));
            let stored = stored.map_err(|error| StoredValueError::Failed(error.to_string()))?;
            stored.ok_or(StoredValueError::Missing)
        }
    }
}

/// Reads a value from a file, without the line break at its end.
pub fn read_stored_file(path: &Path) -> Result<String, StoredValueError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => StoredValueError::Missing,
        kind => StoredValueError::Failed(kind.to_string()),
    };
    // A pipe or a device would block, or never end.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(StoredValueError::Failed("it is not a file".to_owned()));
    }
    value_of(bounded(File::open(path).map_err(failed)?).map_err(failed)?)
}

fn bounded(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_STORED_BYTES).unwrap_or(u64::MAX);
    from.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn value_of(bytes: Vec<u8>) -> Result<String, StoredValueError> {
    if bytes.len() > MAX_STORED_BYTES {
        return Err(StoredValueError::TooLarge);
    }
    let mut text = String::from_utf8(bytes).map_err(|_| StoredValueError::NotText)?;
    let length = text.trim_end_matches(['\n', '\r']).len();
    text.truncate(length);
    Ok(text)
}

/// What a command line of the shell prints to stdout. What it prints to stderr may be a part of the value, so
/// that nobody sees it.
fn printed_by(line: &str, timeout: Duration) -> Result<String, StoredValueError> {
    let mut command = if cfg!(windows) { Command::new("cmd") } else { Command::new("/bin/sh") };
    command.args([if cfg!(windows) { "/C" } else { "-c" }, line]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let failed = |error: io::Error| StoredValueError::Failed(error.kind().to_string());
    let mut child = command.spawn().map_err(failed)?;
    let ends = Instant::now() + timeout;
    let (sender, printed) = mpsc::channel();
    let output = child.stdout.take();
    // The thread ends when the last holder of the pipe does.
    thread::spawn(move || sender.send(output.map_or(Ok(Vec::new()), bounded)));
    let printed = printed.recv_timeout(timeout);
    let status = printed.is_ok().then(|| wait_until(&mut child, ends)).flatten();
    let Some(status) = status else {
        end_group(&mut child);
        return Err(StoredValueError::TimedOut);
    };
    // Of a command that prints too much nobody reads the end: it ends by a signal.
    let value = value_of(printed.map_err(|_| StoredValueError::TimedOut)?.map_err(failed)?)?;
    if status.success() { Ok(value) } else { Err(StoredValueError::Exited(status.code())) }
}

/// Ends a command with everything that it has started and that stayed in its group.
fn end_group(child: &mut Child) {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        // The child is not reaped yet, so the number is that of its group.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

fn wait_until(child: &mut Child, ends: Instant) -> Option<std::process::ExitStatus> {
    while Instant::now() < ends {
        if let Some(status) = child.try_wait().ok()? {
            return Some(status);
        }
        thread::sleep(Duration::from_millis(5));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_without_its_last_line_break() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("key"), "hunter2\r\n").unwrap();
        fs::write(at("big"), "x".repeat(MAX_STORED_BYTES + 1)).unwrap();
        fs::write(at("latin"), b"\xe9").unwrap();
        assert_eq!(read_stored_file(&at("key")), Ok("hunter2".to_owned()));
        assert_eq!(read_stored_file(&at("big")), Err(StoredValueError::TooLarge));
        assert_eq!(read_stored_file(&at("latin")), Err(StoredValueError::NotText));
        assert_eq!(read_stored_file(&at("none")), Err(StoredValueError::Missing));
        assert!(read_stored_file(folder.path()).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_command_is_bounded_in_size_and_time() {
        let long = Duration::from_mins(1);
        assert_eq!(printed_by("echo hunter2; echo no >&2", long), Ok("hunter2".to_owned()));
        assert_eq!(
            printed_by("echo hunter2; exit 3", long),
            Err(StoredValueError::Exited(Some(3)))
        );
        assert_eq!(printed_by("yes", long), Err(StoredValueError::TooLarge));
        let short = Duration::from_millis(50);
        assert_eq!(printed_by("sleep 1000", short), Err(StoredValueError::TimedOut));
        assert_eq!(printed_by("exec >&-; sleep 1000", short), Err(StoredValueError::TimedOut));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn nothing_of_a_command_that_took_too_long_lives_on() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("process");
        let line = format!("sleep 1000 & echo $! > {}; wait", file.display());
        let mut time = Duration::from_millis(200);
        let process = loop {
            assert_eq!(printed_by(&line, time), Err(StoredValueError::TimedOut));
            // A busy machine may not have come to the second command.
            if let Ok(process) = fs::read_to_string(&file)
                && process.ends_with('\n')
            {
                break process;
            }
            time *= 2;
        };
        let status = format!("/proc/{}/status", process.trim());
        let is_alive = || fs::read_to_string(&status).is_ok_and(|text| !text.contains("State:\tZ"));
        while is_alive() {
            thread::yield_now();
        }
    }

    #[test]
    fn a_name_is_looked_up_in_the_vault() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().to_owned());
        let read =
            |name| read_stored(StoredReference::Keychain(name), Some(&store), &VaultKey::File);
        assert_eq!(read("crm"), Err(StoredValueError::Missing));
        store.vault(VaultKey::File).save(&vault_name("crm"), "hunter2").unwrap();
        assert_eq!(read("crm"), Ok("hunter2".to_owned()));
        assert_eq!(read("other"), Err(StoredValueError::Missing));
        let input = read_stored(StoredReference::Input("crm"), Some(&store), &VaultKey::File);
        assert_eq!(input, Ok("hunter2".to_owned()));
    }
}
