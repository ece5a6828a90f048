//! The values that a configuration keeps elsewhere: in a file, behind a command, in the vault.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use futures::future::{BoxFuture, FutureExt as _, join_all};
use tokio::sync::oneshot;
use toolgate_config::{MAX_STORED_BYTES, StoredReference, StoredValueError, fits_header};
use toolgate_store::{Store, VaultKey};
use toolgate_upstream::{ConnectFailure, Endpoint, LateValues, Redactor};

/// How long the command of a value may run.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);
/// How soon it is noticed that nobody needs a value any more.
const POLL: Duration = Duration::from_millis(5);
/// The longest value of a server; no operating system takes a longer argument.
const MAX_VALUE_BYTES: usize = 128 * 1024;

/// The values that commands print when their server starts.
#[derive(Debug)]
pub(crate) struct CommandValues {
    lines: Vec<String>,
    redactor: Redactor,
}

impl CommandValues {
    /// The values of these lines; none if there are no lines.
    pub(crate) fn of<'l>(lines: impl IntoIterator<Item = &'l String>) -> Option<Arc<Self>> {
        let lines: Vec<String> = lines.into_iter().cloned().collect();
        (!lines.is_empty()).then(|| Arc::new(Self { lines, redactor: Redactor::default() }))
    }
}

impl LateValues for CommandValues {
    fn complete(
        &self,
        endpoint: &Endpoint,
    ) -> BoxFuture<'static, Result<Endpoint, ConnectFailure>> {
        let commands: Vec<RunningCommand> =
            self.lines.iter().map(|line| RunningCommand::start(line)).collect();
        let (redactor, mut endpoint) = (self.redactor.clone(), endpoint.clone());
        async move {
            for (line, value) in join_all(commands.into_iter().map(RunningCommand::value)).await {
                let reference = StoredReference::Command(&line);
                let value = value.map_err(|error| {
                    ConnectFailure::new(format!("{reference} {error}"), reference.hint(&error))
                })?;
                redactor.hide(value.lines().chain([&*value]).map(str::to_owned));
                replace(&mut endpoint, &reference.to_string(), &value);
            }
            check(&endpoint)?;
            Ok(endpoint)
        }
        .boxed()
    }

    fn redactor(&self, endpoint: &Endpoint) -> Redactor {
        // Messages name the references.
        let mut known = endpoint.clone();
        for line in &self.lines {
            replace(&mut known, &StoredReference::Command(line).to_string(), "");
        }
        known.redactor().with(&self.redactor)
    }
}

/// Writes a value wherever its reference is.
fn replace(endpoint: &mut Endpoint, reference: &str, value: &str) {
    let put = |text: &mut String| {
        if text.contains(reference) {
            *text = text.replace(reference, value);
        }
    };
    match endpoint {
        Endpoint::Stdio(stdio) => {
            stdio.args.iter_mut().chain(stdio.env.values_mut()).for_each(put);
        }
        Endpoint::Http(http) => http.headers.values_mut().for_each(put),
        Endpoint::InProcess(_) => {}
    }
}

/// Refuses values that neither a process nor a header can carry.
fn check(endpoint: &Endpoint) -> Result<(), ConnectFailure> {
    let (fits, what) = match endpoint {
        Endpoint::Stdio(stdio) => {
            let mut values = stdio.args.iter().chain(stdio.env.values());
            (values.all(|it| !it.contains('\0') && it.len() <= MAX_VALUE_BYTES), "a NUL character")
        }
        Endpoint::Http(http) => {
            let mut values = http.headers.values();
            let fits = values.all(|it| fits_header(it) && it.len() <= MAX_VALUE_BYTES);
            (fits, "a line break or another control character, which a header cannot have,")
        }
        Endpoint::InProcess(_) => return Ok(()),
    };
    let reason = || format!("what a `${{command:…}}` prints has {what} or is too long");
    fits.then_some(()).ok_or_else(|| ConnectFailure::new(reason(), "run it in a shell to see it"))
}

/// A command that runs on a thread of its own. Dropping it ends the command.
struct RunningCommand {
    line: String,
    is_unneeded: Arc<AtomicBool>,
    value: oneshot::Receiver<Result<String, StoredValueError>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl RunningCommand {
    fn start(line: &str) -> Self {
        let (sender, value) = oneshot::channel();
        let is_unneeded = Arc::<AtomicBool>::default();
        let (run, unneeded) = (line.to_owned(), Arc::clone(&is_unneeded));
        let thread = thread::spawn(move || {
            let _ = sender.send(printed_by(&run, COMMAND_TIMEOUT, &unneeded));
        });
        Self { line: line.to_owned(), is_unneeded, value, thread: Some(thread) }
    }

    async fn value(mut self) -> (String, Result<String, StoredValueError>) {
        let value = (&mut self.value).await;
        let value = value.unwrap_or(Err(StoredValueError::Exited(None)));
        (std::mem::take(&mut self.line), value)
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        self.is_unneeded.store(true, Ordering::Relaxed);
        // The thread ends the command first, so that nothing of it outlives this program.
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

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
        StoredReference::Command(line) => {
            printed_by(line, COMMAND_TIMEOUT, &AtomicBool::new(false))
        }
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
fn printed_by(
    line: &str,
    timeout: Duration,
    is_unneeded: &AtomicBool,
) -> Result<String, StoredValueError> {
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
    let is_over = || Instant::now() >= ends || is_unneeded.load(Ordering::Relaxed);
    let printed = loop {
        match printed.recv_timeout(POLL) {
            Err(mpsc::RecvTimeoutError::Timeout) if !is_over() => {}
            printed => break printed.ok(),
        }
    };
    let status = printed.is_some().then(|| wait_until(&mut child, is_over)).flatten();
    let (Some(status), Some(printed)) = (status, printed) else {
        end_group(&mut child);
        return Err(StoredValueError::TimedOut);
    };
    // Of a command that prints too much nobody reads the end: it ends by a signal.
    let value = value_of(printed.map_err(failed)?)?;
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

fn wait_until(child: &mut Child, is_over: impl Fn() -> bool) -> Option<std::process::ExitStatus> {
    while !is_over() {
        if let Some(status) = child.try_wait().ok()? {
            return Some(status);
        }
        thread::sleep(POLL);
    }
    None
}

#[cfg(test)]
mod tests {
    use toolgate_upstream::{HttpEndpoint, StdioEndpoint};

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
    fn printed_by(line: &str, timeout: Duration) -> Result<String, StoredValueError> {
        super::printed_by(line, timeout, &AtomicBool::new(false))
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn commands_of_a_server_run_at_the_same_time_and_their_values_are_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        // Each of them waits for the other.
        let (reads, writes) = (
            format!("cat {}", pipe.display()),
            format!("echo hunter2x > {}; echo b", pipe.display()),
        );
        let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let values = CommandValues::of([&reads, &writes]).unwrap();
        let stdio = StdioEndpoint {
            command: "x".to_owned(),
            args: vec![format!("--key=${{command:{reads}}}")],
            env: [("B".to_owned(), format!("${{command:{writes}}}"))].into(),
            cwd: None,
        };
        let endpoint = Endpoint::Stdio(stdio);
        let Ok(Endpoint::Stdio(complete)) = values.complete(&endpoint).await else {
            panic!("a process")
        };
        assert_eq!((&*complete.args[0], &*complete.env["B"]), ("--key=hunter2x", "b"));
        let said = format!("${{command:{reads}}} gave hunter2x");
        let clean = format!("${{command:{reads}}} gave [hidden]");
        assert_eq!(values.redactor(&endpoint).clean(&said), clean);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_value_that_no_header_can_carry_is_refused_without_showing_it() {
        let line = "printf 'hunter2\\nhunter3'".to_owned();
        let values = CommandValues::of([&line]).unwrap();
        let mut http = HttpEndpoint::new("https://crm.example/mcp");
        http.headers.insert("X-Key".to_owned(), format!("${{command:{line}}}"));
        let failure = values.complete(&Endpoint::Http(http)).await.unwrap_err();
        assert!(failure.reason.contains("line break"), "{failure:?}");
        assert!(!format!("{failure:?}").contains("hunter"), "{failure:?}");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_command_that_nobody_needs_any_more_ends() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("process");
        let line = format!("echo $$ > {}.part; mv {0}.part {0}; sleep 1000", file.display());
        let running = RunningCommand::start(&line);
        while !file.exists() {
            tokio::task::yield_now().await;
        }
        drop(running);
        let process = fs::read_to_string(&file).unwrap();
        assert!(!Path::new(&format!("/proc/{}", process.trim())).exists());
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
