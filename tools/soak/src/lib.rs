//! A soak test: many clients call many servers that crash, stall and lose sessions.
//!
//! Every call carries an id that no other call has. The client records how it ended, the server's
//! log records that it arrived, and [`SoakReport::problems`] compares the two at the end: no call
//! without an answer, none that arrived twice, none answered that never arrived. The gateway's
//! processes, descriptors and memory are watched from outside.

mod call_log;
mod clients;
mod servers;
mod watch;

use std::{
    path::PathBuf,
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use self::{call_log::CallLog, clients::Clients, servers::Servers, watch::Watch};
pub use call_log::Counts;
pub use watch::ResourceReading;

/// The settings of a soak.
#[derive(Debug, Clone)]
pub struct Soak {
    /// The gateway's program.
    pub program: PathBuf,
    /// Where configuration, state and logs are kept.
    pub folder: PathBuf,
    /// Clients at a time. Every second one speaks 2026-07-28.
    pub sessions: usize,
    /// Servers behind the gateway.
    pub servers: usize,
    /// For how long calls are made.
    pub duration: Duration,
    /// The number of calls that a client makes before it leaves.
    pub calls_a_session: u64,
    /// How long a client waits between two calls.
    pub pause: Duration,
}

/// Why a soak could not be run, or not to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SoakError {
    /// The gateway or a client failed in a way that leaves nothing to measure.
    #[error("the soak failed: {0}")]
    Failed(String),
    /// A fixture server could not be started.
    #[error(transparent)]
    Fixture(#[from] toolgate_testkit::TestkitError),
    /// A log or a fixture is not the JSON that it should be.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A file or a socket failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// The result of a soak.
#[derive(Debug)]
pub struct SoakReport {
    /// The numbers of calls, from clients and servers.
    pub counts: Counts,
    /// Sessions that were opened, one after the other by the same clients.
    pub sessions: u64,
    /// The servers that the soak killed.
    pub crashes: u64,
    /// The gateway over time, oldest first.
    pub readings: Vec<ResourceReading>,
    /// The gateway when all clients had left.
    pub at_rest: ResourceReading,
    /// The problems; empty if there are none.
    pub problems: Vec<String>,
}

/// How long the gateway may take to start, and to end.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long the gateway may keep resources after its last client left.
const REST: Duration = Duration::from_secs(10);

impl Soak {
    /// Runs it. `observe` is called every second with the resources that the gateway uses and the number of
    /// answered calls.
    pub async fn run(
        &self,
        mut observe: impl FnMut(ResourceReading, u64),
    ) -> Result<SoakReport, SoakError> {
        std::fs::create_dir_all(&self.folder)?;
        let mut servers = Servers::start(self.servers, &self.folder).await?;
        let config = self.folder.join("toolgate.json");
        // The mode `direct`, because the test measures calls, not searches.
        let settings =
            json!({ "mcpServers": servers.entries()?, "toolSearch": { "enabled": false } });
        std::fs::write(&config, settings.to_string())?;
        let (mut gateway, url) = self.start_gateway(&config).await?;
        let pid = gateway.id().unwrap_or_default();

        let call_log = Arc::new(CallLog::default());
        let clients = Clients::start(self, &url, &call_log);
        let mut watch = Watch::new(pid);
        let ends = Instant::now() + self.duration;
        let mut crashes = 0;
        let mut second = tokio::time::interval(Duration::from_secs(1));
        while Instant::now() < ends {
            second.tick().await;
            crashes += u64::from(servers.disturb().await?);
            if let Some(reading) = watch.read() {
                observe(reading, call_log.answered());
            }
            if let Ok(Some(status)) = gateway.try_wait() {
                let reason = format!("the gateway ended in the middle: {status}");
                return Err(SoakError::Failed(reason));
            }
        }
        let sessions = clients.finish().await;
        let at_rest = watch.settle(REST).await;
        let mut problems = end_in_order(&mut gateway, pid).await;
        servers.stop().await;
        problems.extend(watch::left_behind(&self.folder));
        let counts = call_log.compare(&servers.logs(), &mut problems)?;
        watch.judge(at_rest, &mut problems);
        Ok(SoakReport {
            counts,
            sessions,
            crashes,
            readings: watch.into_readings(),
            at_rest,
            problems,
        })
    }

    async fn start_gateway(&self, config: &std::path::Path) -> Result<(Child, String), SoakError> {
        let log = std::fs::File::create(self.folder.join("gateway.log"))?;
        let mut gateway = Command::new(&self.program)
            .args(["serve", "--http", "127.0.0.1:0", "--config"])
            .arg(config)
            .env("HOME", &self.folder)
            .env("TOOLGATE_HOME", self.folder.join("state"))
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let failure = |reason: &str| SoakError::Failed(reason.to_owned());
        let stderr = gateway.stderr.take().ok_or_else(|| failure("no stderr"))?;
        let mut lines = BufReader::new(stderr).lines();
        let listening = async {
            while let Some(line) = lines.next_line().await? {
                if let Some(start) = line.find("http://") {
                    let url = line[start..].split_whitespace().next().unwrap_or_default();
                    return Ok(url.to_owned());
                }
            }
            Err(SoakError::Failed("the gateway did not say where it listens".to_owned()))
        };
        let url = tokio::time::timeout(TIMEOUT, listening)
            .await
            .map_err(|_| failure("the gateway did not start in time"))??;
        // The rest of its output is read, so that its pipe never fills.
        tokio::spawn(async move {
            use std::io::Write as _;
            let mut log = log;
            while let Ok(Some(line)) = lines.next_line().await {
                let _ = writeln!(log, "{line}");
            }
        });
        Ok((gateway, url))
    }
}

/// Stops the gateway, and returns the problems of its end.
async fn end_in_order(gateway: &mut Child, pid: u32) -> Vec<String> {
    let asked = Command::new("kill").args(["-TERM", &pid.to_string()]).status().await;
    if let Err(error) = asked {
        return vec![format!("the gateway could not be asked to end: {error}")];
    }
    match tokio::time::timeout(TIMEOUT, gateway.wait()).await {
        Ok(Ok(status)) if status.success() => Vec::new(),
        Ok(Ok(status)) => vec![format!("the gateway ended with {status}")],
        Ok(Err(error)) => vec![format!("the gateway's end is unknown: {error}")],
        Err(_) => vec!["the gateway did not end when it was asked to".to_owned()],
    }
}
