//! Scripts: `run_code`, `read_output`, `toolgate run`, `toolgate doctor`.

mod command;
mod durable;
mod extract;
mod killed;
mod machine_python;
mod reading;
mod results;
mod runs;
mod trouble;

use serde_json::{Value, json};
use toolgate_testkit::RawClient;

use crate::{
    fixtures::kit,
    support::{Workplace, call, entry},
};

/// A gateway in front of one server with all built-in tools, for scripts.
pub(super) fn workplace(code_mode: &Value) -> Workplace {
    Workplace::new(&json!({
        "mcpServers": { "kit": entry(&kit()) },
        "toolSearch": { "enabled": true },
        "codeMode": code_mode,
    }))
}

/// Runs a script in TypeScript; gives the result.
pub(super) async fn run(client: &mut RawClient, code: &str) -> Value {
    call(client, "run_code", json!({ "code": code })).await
}

/// Runs a script in Python; gives the result.
pub(super) async fn python(client: &mut RawClient, code: &str) -> Value {
    call(client, "run_code", json!({ "code": code, "language": "python" })).await
}
