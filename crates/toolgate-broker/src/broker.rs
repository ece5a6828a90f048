//! Resolve, validate, dispatch.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::RwLock;
use serde_json::{Map, Value};
use thiserror::Error;
use toolgate_catalog::{Catalog, ServerName, Tool, ToolId, nearest};
use toolgate_upstream::{CallError, CallOptions, Upstream};

use crate::validate::{InvalidArguments, Uncheckable, Validators};

/// The catalogue, which the host keeps up to date while calls are made.
pub type SharedCatalog = Arc<RwLock<Catalog>>;

/// Decides on every call and makes it.
#[derive(Debug)]
pub struct Broker {
    catalog: SharedCatalog,
    upstream: Arc<Upstream>,
    rules: Rules,
    validators: Validators,
}

/// What the configuration says of calls.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// By server; a server that is not here gets the defaults.
    pub servers: HashMap<ServerName, ServerRules>,
}

/// What the configuration says of the calls of one server.
#[derive(Debug, Clone, Default)]
pub struct ServerRules {
    /// Leave the checking of arguments to the server.
    pub skip_validation: bool,
    /// The same for single tools, by their own names; beats the server's.
    pub skip_validation_of: HashMap<String, bool>,
}

/// Why a call has no result.
#[derive(Debug, Error)]
pub enum BrokerError {
    /// There is no such tool. Nothing was sent.
    #[error("there is no tool `{name}`{}", suggestion(nearest))]
    UnknownTool {
        /// What was asked for.
        name: String,
        /// What may have been meant.
        nearest: Vec<String>,
    },
    /// The arguments do not fit. Nothing was sent.
    #[error(transparent)]
    InvalidArguments(#[from] InvalidArguments),
    /// The schema is broken, so that arguments cannot be checked. Nothing was sent.
    #[error(transparent)]
    Uncheckable(#[from] Uncheckable),
    /// The server has no result; the error says whether the call may have had an effect.
    #[error("{0}")]
    Call(Box<CallError>),
}

const SUGGESTIONS: usize = 3;
/// How long the check of one call's arguments may take.
const CHECKING_PATIENCE: Duration = Duration::from_secs(2);

impl Broker {
    /// A broker for the tools of `catalog`, which are on the servers of `upstream`.
    pub fn new(catalog: SharedCatalog, upstream: Arc<Upstream>, rules: Rules) -> Self {
        Self { catalog, upstream, rules, validators: Validators::default() }
    }

    /// Calls the tool of this exposed name, and gives its result as the server sent it.
    pub async fn call(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        options: CallOptions,
    ) -> Result<Value, BrokerError> {
        let tool = self.resolve(name)?;
        let arguments =
            if self.validates(&tool.id) { self.check(&tool, arguments).await? } else { arguments };
        let ToolId { server, tool } = &tool.id;
        Ok(self.upstream.call(server, tool, Some(arguments), options).await?)
    }

    /// Checks the arguments. A schema that refers to itself can make that take for ever, so that
    /// it is done aside and for a limited time.
    async fn check(
        &self,
        tool: &Tool,
        arguments: Map<String, Value>,
    ) -> Result<Map<String, Value>, BrokerError> {
        let schema = self.validators.compiled(tool);
        if !schema.refers {
            return schema.check(tool, arguments);
        }
        let checked = tool.clone();
        let checking = tokio::task::spawn_blocking(move || schema.check(&checked, arguments));
        if let Ok(Ok(outcome)) = tokio::time::timeout(CHECKING_PATIENCE, checking).await {
            return outcome;
        }
        let reason = "it refers to itself so often that checking does not end".to_owned();
        Err(Uncheckable { tool: tool.name.to_string(), reason }.into())
    }

    /// What is wrong with a tool's schema, if its calls have to be refused for it.
    pub fn broken_schema(&self, tool: &Tool) -> Option<Uncheckable> {
        if !self.validates(&tool.id) {
            return None;
        }
        self.validators.compiled(tool).broken(tool)
    }

    fn resolve(&self, name: &str) -> Result<Tool, BrokerError> {
        let catalog = self.catalog.read();
        catalog.resolve(name).cloned().ok_or_else(|| {
            let known = catalog.tools().map(|tool| tool.name.as_str());
            let nearest = nearest(name, known, SUGGESTIONS);
            BrokerError::UnknownTool {
                name: name.chars().take(128).collect(),
                nearest: nearest.into_iter().map(str::to_owned).collect(),
            }
        })
    }

    fn validates(&self, id: &ToolId) -> bool {
        self.rules.servers.get(&id.server).is_none_or(|rules| {
            let skip = rules.skip_validation_of.get(id.tool.as_ref()).copied();
            !skip.unwrap_or(rules.skip_validation)
        })
    }
}

impl From<CallError> for BrokerError {
    fn from(error: CallError) -> Self {
        Self::Call(Box::new(error))
    }
}

fn suggestion(nearest: &[String]) -> String {
    match nearest {
        [] => "; a search finds those there are".to_owned(),
        [only] => format!("; did you mean `{only}`?"),
        [others @ .., last] => format!("; did you mean `{}` or `{last}`?", others.join("`, `")),
    }
}
