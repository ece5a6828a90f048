//! `toolgate search`

use std::process::ExitCode;

use serde_json::json;

use super::{Needed, meta_call, text_of};
use crate::{
    cli::{Globals, Search},
    failure::CommandResult,
    print,
};

pub(crate) async fn run(globals: &Globals, arguments: Search) -> CommandResult {
    let needed = match arguments.server.as_deref() {
        Some(server) => Needed::Tools(Some(server)),
        None => Needed::Soon,
    };
    let (_, host) = super::start_when_needed(globals, needed, arguments.strategy).await?;
    super::encode(&host).await;
    let session = host.session();
    let mut request = json!({
        "queries": arguments.queries,
        "detail": arguments.detail,
    });
    if let Some(server) = arguments.server {
        request["server"] = json!(server);
    }
    if let Some(limit) = arguments.limit {
        request["limit"] = json!(limit);
    }
    if let Some(offset) = arguments.offset {
        request["offset"] = json!(offset);
    }
    let result = meta_call(&session, "search_tools", request).await?;
    host.shutdown().await;
    print::show(arguments.output.json, &result["structuredContent"], || text_of(&result))?;
    // As with grep, a search without a hit is not a success.
    let found = result["structuredContent"]["found"].as_u64().unwrap_or_default();
    Ok(if found > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
