//! `toolgate search`

use std::process::ExitCode;

use serde_json::json;

use super::{is_error, meta_call, text_of};
use crate::{
    cli::{Detail, Globals, Search},
    failure::Failure,
    printer::Printer,
};

pub(crate) async fn run(
    globals: &Globals,
    arguments: Search,
    printer: &mut Printer,
) -> Result<ExitCode, Failure> {
    let (_, host) = super::start_when_needed(globals, &[], arguments.strategy, printer).await?;
    super::encode(&host).await;
    let session = host.session();
    let mut request = json!({
        "queries": arguments.queries,
        "detail": match arguments.detail {
            Detail::Name => "name",
            Detail::Description => "description",
            Detail::Schema => "schema",
        },
    });
    if let Some(server) = arguments.server {
        request["server"] = json!(server);
    }
    if let Some(limit) = arguments.limit {
        request["limit"] = json!(limit);
    }
    let result = meta_call(&session, "search_tools", request).await?;
    host.shutdown().await;
    if is_error(&result) {
        return Err(Failure::usage(text_of(&result)));
    }
    if arguments.output.json {
        printer.json(&result["structuredContent"])?;
    } else {
        printer.line(text_of(&result));
    }
    // As with grep: nothing found is no success.
    let found = result["structuredContent"]["found"].as_u64().unwrap_or_default();
    Ok(if found > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
