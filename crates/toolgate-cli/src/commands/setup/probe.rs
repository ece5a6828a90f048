//! Starts the servers once, to see which work and what their tools cost.

use std::env;

use serde::Serialize;
use toolgate::setup::{
    FileAccess, Format, HostConfig, StoredReference, parse_file, read_env_file, read_stored,
};
use toolgate_host::ToolHost;

use super::plan::{Plan, Source};
use crate::{cli::Unit, commands, failure::Failure, folders, load};

/// What the servers said.
#[derive(Debug, Default)]
pub(super) struct Probe {
    pub(super) rows: Vec<ProbedServer>,
    /// The tokens that a session of toolgate starts with.
    after: Option<u64>,
}

/// A server, and its tools or why it has none.
#[derive(Debug, Serialize)]
pub(super) struct ProbedServer {
    pub(super) name: String,
    pub(super) state: String,
    pub(super) tools: u64,
    pub(super) tokens: u64,
    pub(super) reason: Option<String>,
    pub(super) action: Option<String>,
}

impl Probe {
    /// Starts the servers of the plan, with progress. A server that fails stops no other.
    pub(super) async fn run(plan: &Plan) -> Result<Self, Failure> {
        let environment = load::environment();
        let stored = |reference: StoredReference<'_>| {
            if let StoredReference::Keychain(name) | StoredReference::Input(name) = reference
                && let Some((_, value)) = plan.secrets.iter().find(|(stored, _)| stored == name)
            {
                return Ok(value.clone());
            }
            read_stored(reference, environment.store.as_ref(), &environment.vault_key)
        };
        let working_folder = env::current_dir().ok();
        let access = FileAccess {
            variables: &load::variable,
            env_file: &read_env_file,
            stored: &stored,
            workspace_folder: working_folder.as_deref(),
            working_folder: working_folder.as_deref(),
        };
        let (format, name) = (Format::of_file(&plan.target), folders::shown(&plan.target));
        let configuration =
            parse_file(plan.target_text(), format, &name, Some(&plan.target), &access)
                .map_err(|error| Failure::usage(error.to_string()))?;
        let unusable =
            configuration.servers.iter().filter(|server| server.settings.enabled).filter_map(
                |server| {
                    let problem = server.transport.as_ref().err()?;
                    Some(ProbedServer {
                        name: server.name.clone(),
                        state: "unusable".to_owned(),
                        tools: 0,
                        tokens: 0,
                        reason: Some(problem.message.clone()),
                        action: problem.hint.clone(),
                    })
                },
            );
        let mut rows: Vec<ProbedServer> = unusable.collect();
        let config =
            HostConfig::new(configuration, Some(plan.target.clone()), environment.clone())?;
        let mut settings = config.settings(None, None);
        // Nobody searches here.
        settings.encoder = None;
        let host = ToolHost::start(settings);
        commands::settle(&host).await;
        let overview = host.overview(&host.exposure());
        let probed = overview.into_iter().map(|server| {
            let catalog = host.catalog().read();
            let tools = catalog.tools_of(server.server.as_str());
            ProbedServer {
                name: server.server.to_string(),
                state: server.state.to_owned(),
                tools: tools.len() as u64,
                tokens: tools.iter().map(|tool| u64::from(tool.definition.tokens())).sum(),
                reason: server.reason,
                action: server.action,
            }
        });
        rows.splice(0..0, probed);
        let costs = commands::tokens::count(&host, Unit::Tokens).await;
        let after = costs.before_and_after().1.together;
        host.shutdown().await;
        Ok(Self { rows, after: Some(after) })
    }

    pub(super) fn failed(&self) -> impl Iterator<Item = &ProbedServer> {
        self.rows.iter().filter(|row| row.reason.is_some())
    }

    /// The tokens of the tools of a client's servers, and of a session of toolgate.
    pub(super) fn tokens_of(&self, source: &Source) -> (Option<u64>, Option<u64>) {
        let rows = self.rows.iter().filter(|row| source.taken.contains(&row.name));
        let now = self.after.map(|_| rows.map(|row| row.tokens).sum());
        (now, self.after)
    }

    /// The tokens of all tools, and of a session of toolgate.
    pub(super) fn before_and_after(&self) -> Option<(u64, u64)> {
        Some((self.rows.iter().map(|row| row.tokens).sum(), self.after?))
    }
}
