//! A client for the suite's client scenarios: it connects, lists everything, and uses what it
//! finds.

mod answers;
mod authorise;
mod direct;
mod steps;
mod through;

pub(crate) use through::{browse, page};

use std::path::PathBuf;

use rmcp::model::ProtocolVersion;
use rmcp::service::ClientLifecycleMode;
use serde_json::Value;

use crate::Failure;

/// The arguments of the client.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Connect through this toolgate program instead of directly
    #[arg(long, value_name = "PROGRAM")]
    through: Option<PathBuf>,
    /// Let that toolgate serve all servers as one, instead of passing one through
    #[arg(long, requires = "through")]
    aggregate: bool,
    /// The server, which the suite names
    url: String,
}

/// What the suite says of the scenario, in variables of the environment.
#[derive(Debug)]
struct Scenario {
    name: String,
    /// How a connection begins.
    lifecycle: ClientLifecycleMode,
    /// Whatever else the scenario wants its client to know.
    context: Value,
}

/// Does what the scenario wants.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let scenario = Scenario::read();
    match arguments.through {
        None => direct::run(&arguments.url, &scenario).await,
        Some(program) => {
            through::run(&program, arguments.aggregate, &arguments.url, &scenario).await
        }
    }
}

impl Scenario {
    fn read() -> Self {
        let variable = |name: &str| std::env::var(format!("MCP_CONFORMANCE_{name}"));
        let modern = variable("PROTOCOL_VERSION")
            .is_ok_and(|version| version == ProtocolVersion::V_2026_07_28.as_str());
        let lifecycle = if modern {
            let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
            ClientLifecycleMode::Discover { preferred_versions }
        } else {
            ClientLifecycleMode::Initialize
        };
        let context = variable("CONTEXT").ok().and_then(|text| serde_json::from_str(&text).ok());
        Self {
            name: variable("SCENARIO").unwrap_or_default(),
            lifecycle,
            context: context.unwrap_or_default(),
        }
    }

    /// A text of the context.
    fn said(&self, key: &str) -> Option<&str> {
        self.context[key].as_str()
    }
}
