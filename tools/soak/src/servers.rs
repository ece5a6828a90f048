//! The servers of a soak, and their disturbances.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use toolgate_testkit::{Builtin, Faults, Fixture, FixtureEra, fixture_binary};

use crate::SoakError;

/// The tool that every server has.
pub(super) const TOOL: &str = "echo";

/// How a server behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerKind {
    /// Over stdio, without faults.
    Steady,
    /// Its process ends in the middle of every 41st call.
    Crashing,
    /// Every call takes a while.
    Slow,
    /// Over HTTP; forgets its sessions now and then.
    Forgetful,
    /// Over HTTP, 2026-07-28; killed and started again from outside.
    Killed,
}

impl ServerKind {
    const ALL: [Self; 5] =
        [Self::Steady, Self::Crashing, Self::Slow, Self::Forgetful, Self::Killed];

    fn is_http(self) -> bool {
        matches!(self, Self::Forgetful | Self::Killed)
    }

    fn fixture(self, name: &str, log: &Path) -> Fixture {
        let faults = match self {
            Self::Steady | Self::Killed => Faults::default(),
            Self::Crashing => Faults { crash_after_calls: Some(40), ..Faults::default() },
            Self::Slow => Faults { call_delay_ms: 250, ..Faults::default() },
            Self::Forgetful => Faults { sessions_lost_after_calls: Some(100), ..Faults::default() },
        };
        let era = if self == Self::Killed { FixtureEra::Modern } else { FixtureEra::Legacy };
        let tools = [Builtin::Echo, Builtin::Counter];
        Fixture::new(name).with_builtins(tools).with_era(era).with_faults(faults).with_call_log(log)
    }
}

/// All servers.
#[derive(Debug)]
pub(super) struct Servers {
    servers: Vec<SoakServer>,
    /// The seconds since the start. They decide which server is killed next.
    disturbances: usize,
}

#[derive(Debug)]
struct SoakServer {
    kind: ServerKind,
    fixture: Fixture,
    log: PathBuf,
    /// The address on which it listens; it is reused after a restart.
    address: Option<SocketAddr>,
    child: Option<Child>,
}

/// The interval in seconds at which a server over HTTP is killed.
const KILLED_EVERY: usize = 5;
const TIMEOUT: Duration = Duration::from_secs(20);

/// The name of a server.
pub(super) fn name(index: usize) -> String {
    format!("server{index}")
}

impl Servers {
    pub(super) async fn start(count: usize, folder: &Path) -> Result<Self, SoakError> {
        let mut servers = Vec::new();
        for index in 0..count {
            let kind = ServerKind::ALL[index % ServerKind::ALL.len()];
            let log = folder.join(format!("{}.calls", name(index)));
            let fixture = kind.fixture(&name(index), &log);
            let mut server = SoakServer { kind, fixture, log, address: None, child: None };
            if kind.is_http() {
                server.serve().await?;
            }
            servers.push(server);
        }
        Ok(Self { servers, disturbances: 0 })
    }

    /// The `mcpServers` of a configuration.
    pub(super) fn entries(&self) -> Result<Value, SoakError> {
        let mut entries = Map::new();
        for (index, server) in self.servers.iter().enumerate() {
            let entry = match server.address {
                Some(address) => json!({ "url": format!("http://{address}/mcp") }),
                None => server.fixture.entry()?.to_json(),
            };
            entries.insert(name(index), entry);
        }
        Ok(Value::Object(entries))
    }

    /// Kills and restarts a server if it is time. Returns whether it did.
    pub(super) async fn disturb(&mut self) -> Result<bool, SoakError> {
        self.disturbances += 1;
        if !self.disturbances.is_multiple_of(KILLED_EVERY) {
            return Ok(false);
        }
        let turn = self.disturbances / KILLED_EVERY;
        let mut killed: Vec<_> =
            self.servers.iter_mut().filter(|server| server.kind == ServerKind::Killed).collect();
        if killed.is_empty() {
            return Ok(false);
        }
        let index = turn % killed.len();
        killed[index].end().await;
        killed[index].serve().await?;
        Ok(true)
    }

    pub(super) async fn stop(&mut self) {
        for server in &mut self.servers {
            server.end().await;
        }
    }

    pub(super) fn logs(&self) -> Vec<PathBuf> {
        self.servers.iter().map(|server| server.log.clone()).collect()
    }
}

impl SoakServer {
    /// Starts the server over HTTP, at its earlier address if it had one.
    async fn serve(&mut self) -> Result<(), SoakError> {
        let address = self.address.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let mut child = Command::new(fixture_binary()?)
            .args(["--http", &address.to_string(), "--fixture"])
            .arg(serde_json::to_string(&self.fixture)?)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let failure = || SoakError::Failed(format!("{} did not start", self.fixture.name));
        let stdout = child.stdout.take().ok_or_else(failure)?;
        let mut line = String::new();
        let mut reader = BufReader::new(stdout);
        let reading = reader.read_line(&mut line);
        tokio::time::timeout(TIMEOUT, reading).await.map_err(|_| failure())??;
        let listening = line.trim().trim_start_matches("http://").split('/').next();
        let address = listening.and_then(|address| address.parse().ok()).ok_or_else(failure)?;
        self.address = Some(address);
        self.child = Some(child);
        Ok(())
    }

    async fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill().await;
        }
    }
}
