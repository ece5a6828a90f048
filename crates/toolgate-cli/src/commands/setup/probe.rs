//! Starts the servers once, to see which work and what their tools cost.

use std::env;

use serde::Serialize;
use toolgate::setup::{
    CommandTime, FileAccess, Format, HostConfig, StoredReference, StoredValueError, parse_file,
    read_env_file, read_stored,
};
use toolgate_config::{Configuration, StoredValues, Transport};
use toolgate_host::ToolHost;

use super::{Connection, OWN_NAME, plan::Plan, source::Source};
use crate::{cli::Unit, commands, failure::Failure, folders, load};

/// The reason of a server that answers as toolgate does.
const ITSELF: &str = "it is toolgate itself, and is left out";

/// What the servers said.
#[derive(Debug, Default)]
pub(super) struct Probe {
    pub(super) rows: Vec<ProbedServer>,
    /// The tokens that a session with all servers starts with, without and with toolgate.
    costs: Option<(u64, u64)>,
    /// The servers on this machine that are toolgate itself.
    pub(super) own: Vec<String>,
}

/// A server, and its tools or why it has none.
#[derive(Debug, Serialize)]
pub(super) struct ProbedServer {
    pub(super) name: String,
    pub(super) state: String,
    pub(super) tools: u64,
    /// Of its definitions and instructions.
    pub(super) tokens: u64,
    pub(super) reason: Option<String>,
    pub(super) action: Option<String>,
}

impl ProbedServer {
    /// A server that cannot be started.
    fn unusable(name: &str, problem: &str, hint: Option<&str>) -> Self {
        let row = Self {
            name: name.to_owned(),
            state: "unusable".to_owned(),
            tools: 0,
            tokens: 0,
            reason: Some(problem.to_owned()),
            action: hint.map(str::to_owned),
        };
        if !problem.contains("${command:") {
            return row;
        }
        let why = "a value of it comes from a command, which setup does not run";
        Self { state: "not started".to_owned(), reason: None, action: Some(why.to_owned()), ..row }
    }
}

/// Leaves the servers that cannot be used where they are: they may well work in their clients. Returns a row for
/// each.
pub(super) fn leave_unusable(
    plan: &mut Plan,
    is_project: bool,
    connection: &Connection,
) -> Result<Vec<ProbedServer>, Failure> {
    let stored = |reference: StoredReference<'_>| match reference {
        // Nothing of a folder is read before it is trusted, and no command is run.
        StoredReference::Command(_) => Ok("http://value".to_owned()),
        _ if is_project => Ok("http://value".to_owned()),
        reference => plan.stored(reference),
    };
    let configuration = parsed(plan, &stored)?;
    let mut rows = Vec::new();
    for server in &configuration.servers {
        let clients = plan.taken_by(&server.name);
        let Some(problem) = server.transport.as_ref().err().filter(|_| !clients.is_empty()) else {
            continue;
        };
        let mut row =
            ProbedServer::unusable(&server.name, &problem.message, problem.hint.as_deref());
        let stays = format!("it stays in {} as it is", clients.join(", "));
        row.action = Some(match row.action {
            Some(action) => format!("{stays}; {action}, and run setup again"),
            None => stays,
        });
        rows.push(row);
    }
    let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
    plan.leave_out(&names, connection, |_, _| None)?;
    Ok(rows)
}

/// The configuration of the plan.
fn parsed(plan: &Plan, stored: StoredValues<'_>) -> Result<Configuration, Failure> {
    let working_folder = env::current_dir().ok();
    let access = FileAccess {
        variables: &load::variable,
        env_file: &read_env_file,
        stored,
        commands: CommandTime::Reading,
        workspace_folder: working_folder.as_deref(),
        working_folder: working_folder.as_deref(),
        saved_policy: None,
    };
    let (format, name) = (Format::of_file(&plan.target), folders::shown(&plan.target));
    parse_file(plan.target_text(), format, &name, Some(&plan.target), &access)
        .map_err(|error| Failure::usage(error.to_string()))
}

impl Plan {
    /// A stored value, also one that is going to be stored.
    fn stored(&self, reference: StoredReference<'_>) -> Result<String, StoredValueError> {
        if let StoredReference::Keychain(name) | StoredReference::Input(name) = reference
            && let Some((_, value)) = self.secrets.iter().find(|(stored, _)| stored == name)
        {
            return Ok(value.clone());
        }
        let environment = load::environment();
        read_stored(reference, environment.store.as_ref(), &environment.vault_key)
    }
}

impl Probe {
    /// Starts the servers of the plan, with progress. A server that fails stops no other.
    pub(super) async fn run(plan: &Plan) -> Result<Self, Failure> {
        let environment = load::environment();
        let stored = |reference: StoredReference<'_>| {
            // Nobody has agreed to run it for this yet.
            if let StoredReference::Command(_) = reference {
                return Err(StoredValueError::NotTrusted);
            }
            plan.stored(reference)
        };
        let configuration = parsed(plan, &stored)?;
        let enabled = configuration.servers.iter().filter(|server| server.settings.enabled);
        let unusable = enabled.filter_map(|server| {
            let problem = server.transport.as_ref().err()?;
            Some(ProbedServer::unusable(&server.name, &problem.message, problem.hint.as_deref()))
        });
        let mut rows: Vec<ProbedServer> = unusable.collect();
        // A gateway of another machine can be a server.
        let is_here = |transport: &Transport| match transport {
            Transport::Stdio { .. } => true,
            Transport::Http { url, .. } => {
                ["://127.0.0.1", "://localhost", "://[::1]"].iter().any(|it| url.contains(it))
            }
        };
        let here = configuration.servers.iter();
        let here = here.filter(|server| server.transport.as_ref().is_ok_and(is_here));
        let here: Vec<String> = here.map(|server| server.name.clone()).collect();
        let config =
            HostConfig::new(configuration, Some(plan.target.clone()), environment.clone())?;
        let mut settings = config.settings(None, None);
        // Nobody searches here.
        settings.encoder = None;
        let host = ToolHost::start(settings);
        commands::settle(&host).await;
        let secrets = plan.secret_values();
        let overview = host.overview(&host.exposure());
        let probed = overview.into_iter().map(|server| {
            let catalog = host.catalog().read();
            let tools = catalog.tools_of(server.server.as_str());
            let definitions: u64 =
                tools.iter().map(|tool| u64::from(tool.definition.tokens())).sum();
            let name = server.server.as_str();
            let instructions = commands::tokens::instructions_of(&host, name, Unit::Tokens);
            ProbedServer {
                name: server.server.to_string(),
                state: server.state.to_owned(),
                tools: tools.len() as u64,
                tokens: definitions + instructions,
                reason: server.reason.map(|reason| toolgate_clients::hidden(&reason, &secrets)),
                action: server.action,
            }
        });
        rows.splice(0..0, probed);
        let costs = commands::tokens::count(&host, Unit::Tokens).await;
        let (before, after) = costs.before_and_after();
        let costs = Some((before.together, after.together));
        let answers_so = |name: &&String| {
            let handshake = host.servers().state(name).and_then(|state| state.handshake);
            handshake.is_some_and(|it| it.server_info["name"] == OWN_NAME)
                || rows
                    .iter()
                    .any(|row| row.name == **name && row.reason.as_deref() == Some(ITSELF))
        };
        let own = here.iter().filter(answers_so).cloned().collect();
        host.shutdown().await;
        Ok(Self { rows, costs, own })
    }

    /// Leaves the servers that did not start where they are, unless a person wants them all the same: they may
    /// well work in their clients, with a login or a variable that is not known here.
    pub(super) fn leave_failed(
        &mut self,
        plan: &mut Plan,
        connection: &Connection,
        ask: super::Asks<'_>,
    ) -> Result<(), Failure> {
        let mut left = Vec::new();
        for row in &mut self.rows {
            let clients = plan.taken_by(&row.name).join(", ");
            let Some(reason) = row.reason.as_deref().filter(|_| !clients.is_empty()) else {
                continue;
            };
            let question = format!(
                "`{}` of {clients} does not start here: {reason}.\nTake it over all the same? [y/N] ",
                row.name
            );
            if matches!(ask(&question)?.as_str(), "y" | "yes") {
                continue;
            }
            let stays = format!("it stays in {clients} as it is");
            row.action = Some(match row.action.take() {
                Some(action) => format!("{stays}; {action}, and run setup again, or add --all"),
                None => format!("{stays}; --all takes it over"),
            });
            left.push(row.name.clone());
        }
        plan.leave_in_clients(&left, connection)
    }

    pub(super) fn failed(&self) -> impl Iterator<Item = &ProbedServer> {
        self.rows.iter().filter(|row| row.reason.is_some())
    }

    /// The tokens that a session of a client starts with, without and with toolgate. Both have definitions and
    /// instructions.
    pub(super) fn tokens_of(&self, source: &Source) -> (Option<u64>, Option<u64>) {
        let rows = || self.rows.iter().filter(|row| source.taken.contains(&row.name));
        // What a server that did not answer costs is not known.
        let is_known = !source.keeps_failed
            && rows().all(|row| row.reason.is_none() && row.state != "not started");
        let now = self.costs.filter(|_| is_known).map(|_| rows().map(|row| row.tokens).sum());
        (now, self.costs.map(|(_, after)| after))
    }

    /// The tokens that a session with all servers starts with, without and with toolgate.
    pub(super) fn before_and_after(&self) -> Option<(u64, u64)> {
        self.costs
    }
}
