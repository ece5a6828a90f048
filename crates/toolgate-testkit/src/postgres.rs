//! A PostgreSQL for tests, which `scripts/install-test-postgres` installs.

use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::Instant,
};

use crate::{TestkitError, deadline, real_servers::servers_directory};

/// The environment variable with the folder of the programs of PostgreSQL, if they are not in `.servers`.
const PROGRAMS_VARIABLE: &str = "TOOLGATE_TEST_POSTGRES";
/// PostgreSQL does not run as root. Where the tests do, it runs as nobody.
const NOBODY: u32 = 65_534;

/// A running PostgreSQL with its own folder, which is stopped and removed on drop.
#[derive(Debug)]
pub struct Postgres {
    programs: PathBuf,
    folder: PathBuf,
    process: Option<std::process::Child>,
}

impl Postgres {
    /// Starts one; `None` if it is not installed. Where `CI` is set, that is an error.
    pub fn start() -> Result<Option<Self>, TestkitError> {
        let Some(programs) = programs() else {
            let missing = "PostgreSQL is not installed; run scripts/install-test-postgres";
            return if std::env::var_os("CI").is_some() { Err(failed(missing)) } else { Ok(None) };
        };
        let mut postgres = Self { programs, folder: new_folder()?, process: None };
        let data = postgres.data();
        let made = postgres
            .command("initdb")
            .args([
                "--no-sync",
                "--auth=trust",
                "--username=postgres",
                "--encoding=UTF8",
                "--locale=C",
                "-D",
            ])
            .arg(&data)
            .output()
            .map_err(|error| failed(&error.to_string()))?;
        if !made.status.success() {
            return Err(failed(&String::from_utf8_lossy(&made.stderr)));
        }
        postgres.resume()?;
        Ok(Some(postgres))
    }

    /// The URL of a new database. Each test has its own.
    pub fn database(&self) -> Result<String, TestkitError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        // `postgres --single` would need the server to be down, and `psql` is not in the package.
        self.execute("postgres", &format!("CREATE DATABASE {name}"))?;
        Ok(self.url(&name))
    }

    /// The URL of a database.
    pub fn url(&self, database: &str) -> String {
        let folder = self.folder.display().to_string().replace('/', "%2F");
        format!("postgresql://postgres@{folder}/{database}")
    }

    /// The folder of the socket.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Ends it as a power cut does: nothing is written any more.
    pub fn kill(&mut self) {
        self.stop("immediate");
    }

    /// Starts it again after [`Postgres::kill`].
    pub fn resume(&mut self) -> Result<(), TestkitError> {
        let folder = self.folder.display().to_string();
        let log = fs::File::options()
            .append(true)
            .create(true)
            .open(self.folder.join("log"))
            .map_err(|error| failed(&error.to_string()))?;
        let mut command = self.command("postgres");
        command
            .arg("-D")
            .arg(self.data())
            .args(["-k", &folder, "-c", "listen_addresses=", "-c", "max_connections=200"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        self.process = Some(command.spawn().map_err(|error| failed(&error.to_string()))?);
        let until = Instant::now() + deadline();
        while self.execute("postgres", "SELECT 1").is_err() {
            if Instant::now() > until {
                let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                return Err(failed(&format!("it does not answer: {log}")));
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Ok(())
    }

    /// Makes it hang: nothing is answered, and no connection ends, until the answer is dropped.
    pub fn pause(&self) -> Result<PausedPostgres, TestkitError> {
        let Some(process) = &self.process else { return Err(failed("it does not run")) };
        let id = process.id();
        // First, so that it starts no further processes.
        signal("-STOP", &[id.to_string()])?;
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        let children = children.map_err(|error| failed(&error.to_string()))?;
        let mut processes: Vec<String> = children.split_whitespace().map(str::to_owned).collect();
        let paused = signal("-STOP", &processes);
        processes.push(id.to_string());
        let guard = PausedPostgres(processes);
        paused.map(|()| guard)
    }

    /// Runs one statement, in the simplest way that its protocol has.
    pub fn execute(&self, database: &str, statement: &str) -> Result<(), TestkitError> {
        self.query(database, statement).map(drop)
    }

    /// The first column of each row that a statement returns, one a line.
    pub fn query(&self, database: &str, statement: &str) -> Result<String, TestkitError> {
        use std::io::{Read as _, Write as _};
        let io = |error: std::io::Error| failed(&error.to_string());
        let mut socket = std::os::unix::net::UnixStream::connect(self.folder.join(".s.PGSQL.5432"))
            .map_err(io)?;
        socket.set_read_timeout(Some(deadline())).map_err(io)?;
        let start = format!("user\0postgres\0database\0{database}\0\0");
        let mut message = u32::try_from(start.len() + 8).unwrap_or_default().to_be_bytes().to_vec();
        message.extend(196_608_u32.to_be_bytes());
        message.extend(start.as_bytes());
        socket.write_all(&message).map_err(io)?;
        let (mut asked, mut problem) = (false, None);
        let mut rows = Vec::new();
        loop {
            let mut head = [0; 5];
            socket.read_exact(&mut head).map_err(io)?;
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
            let mut body = vec![0; length.saturating_sub(4)];
            socket.read_exact(&mut body).map_err(io)?;
            match (head[0], asked) {
                (b'E', _) => problem = Some(String::from_utf8_lossy(&body).replace('\0', " ")),
                (b'Z', false) => {
                    asked = true;
                    let mut query = vec![b'Q'];
                    query.extend(
                        u32::try_from(statement.len() + 5).unwrap_or_default().to_be_bytes(),
                    );
                    query.extend(statement.as_bytes());
                    query.push(0);
                    socket.write_all(&query).map_err(io)?;
                }
                // How many columns, the length of the first one, its text, and the others.
                (b'D', _) => {
                    let length = body.get(2..6).and_then(|it| it.try_into().ok());
                    let length = i32::from_be_bytes(length.unwrap_or_default());
                    let end = 6 + usize::try_from(length).unwrap_or_default();
                    let text = body.get(6..end).unwrap_or_default();
                    rows.push(String::from_utf8_lossy(text).into_owned());
                }
                (b'Z', true) => {
                    return problem.map_or(Ok(rows.join("\n")), |problem| Err(failed(&problem)));
                }
                _ => {}
            }
            if let (Some(problem), false) = (&problem, asked) {
                return Err(failed(problem));
            }
        }
    }

    fn stop(&mut self, mode: &str) {
        let Some(mut process) = self.process.take() else { return };
        let data = self.data();
        let stopped =
            self.command("pg_ctl").args(["stop", "-w", "-m", mode, "-D"]).arg(data).output();
        if !stopped.is_ok_and(|stopped| stopped.status.success()) {
            let _ = process.kill();
        }
        let _ = process.wait();
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command
            .current_dir(&self.folder)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("LC_ALL", "C");
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }
}

/// The processes of a PostgreSQL that hangs. They go on when this is dropped.
#[derive(Debug)]
pub struct PausedPostgres(Vec<String>);

impl Drop for PausedPostgres {
    fn drop(&mut self) {
        let _ = signal("-CONT", &self.0);
    }
}

fn signal(name: &str, processes: &[String]) -> Result<(), TestkitError> {
    if processes.is_empty() {
        return Ok(());
    }
    let sent = Command::new("kill").arg(name).args(processes).status();
    match sent {
        Ok(status) if status.success() => Ok(()),
        _ => Err(failed("its processes cannot be signalled")),
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop("immediate");
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn programs() -> Option<PathBuf> {
    let given = std::env::var_os(PROGRAMS_VARIABLE).map(PathBuf::from);
    let programs = given.unwrap_or_else(|| servers_directory().join("postgres/native/bin"));
    programs.join("postgres").exists().then_some(programs)
}

/// A folder that PostgreSQL owns. Its name is short, because the path of a socket must be.
fn new_folder() -> Result<PathBuf, TestkitError> {
    let io = |error: std::io::Error| failed(&error.to_string());
    let mut random = [0_u8; 6];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut random)
        .map_err(|_| failed("there are no random numbers"))?;
    let name = random.iter().fold(String::from("tgpg-"), |name, byte| format!("{name}{byte:02x}"));
    let folder = std::env::temp_dir().join(name);
    fs::create_dir(&folder).map_err(io)?;
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).map_err(io)?;
    if is_root() {
        std::os::unix::fs::chown(&folder, Some(NOBODY), Some(NOBODY)).map_err(io)?;
    }
    Ok(folder)
}

/// Whether this process is root, by what its own files say.
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn failed(why: &str) -> TestkitError {
    TestkitError::Postgres(why.trim().to_owned())
}
