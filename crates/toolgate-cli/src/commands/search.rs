//! `toolgate search`

use std::process::ExitCode;

use serde_json::{Value, json};
use toolgate_host::{ExplainedSearch, ExplainedTool, ToolQuery, ToolSession};

use super::{Needed, meta_call, text_of};
use crate::{
    cli::{Globals, Search},
    failure::{CommandResult, Failure},
    print,
    table::table,
};

pub(crate) async fn run(globals: &Globals, arguments: Search) -> CommandResult {
    let needed = match arguments.server.as_deref() {
        Some(server) => Needed::Tools(Some(server)),
        None => Needed::Soon,
    };
    let (_, host) = super::start_when_needed(globals, needed, arguments.strategy).await?;
    super::encode(&host).await;
    let session = host.session();
    if arguments.explain {
        let explained = explain(&session, &arguments).await;
        drop(session);
        host.shutdown().await;
        return explained;
    }
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

/// Shows why tools are ranked as they are. Each query by itself: scores of two queries cannot be compared.
async fn explain(session: &ToolSession, arguments: &Search) -> CommandResult {
    let mut all = Vec::new();
    for text in &arguments.queries {
        let query = ToolQuery {
            queries: vec![text.clone()],
            server: arguments.server.clone(),
            limit: arguments.limit,
            offset: arguments.offset.unwrap_or_default(),
            strategy: arguments.strategy,
            ..ToolQuery::default()
        };
        let explained = session.explain_search(&query).await;
        all.push((text, explained.map_err(|error| Failure::usage(error.to_string()))?));
    }
    let found = all.iter().any(|(_, explained)| !explained.tools.is_empty());
    if arguments.output.json {
        let rows = all.iter().map(|(text, explained)| {
            let strategies: Vec<&str> = explained.strategies.iter().map(|it| it.as_str()).collect();
            json!({
                "query": text, "corrected": explained.corrected,
                "strategies": strategies, "tools": explained.tools,
            })
        });
        print::json(&rows.collect::<Vec<Value>>())?;
    } else {
        for (text, explained) in &all {
            show(text, explained);
        }
    }
    Ok(if found { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(text: &str, explained: &ExplainedSearch) {
    print::line(format!("\"{text}\""));
    if let Some(corrected) = &explained.corrected {
        print::line(format!("searched as \"{corrected}\""));
    }
    let mut columns =
        vec![">place", "tool", ">score", ">fit", ">words", ">meaning", ">named", "past use"];
    let strategies: Vec<String> = explained.strategies.iter().map(|it| format!(">{it}")).collect();
    columns.extend(strategies.iter().map(String::as_str));
    let number = |value: Option<f32>| value.map(|it| format!("{it:.2}")).unwrap_or_default();
    let row = |(index, tool): (usize, &ExplainedTool)| {
        let past = match (tool.is_remembered, tool.without_past_use) {
            (false, _) => String::new(),
            (true, Some(before)) => format!("raised from {before}"),
            (true, None) => "raised".to_owned(),
        };
        let own = [
            (index + 1).to_string(),
            tool.name.clone(),
            number(tool.score),
            number(tool.fit),
            number(tool.parts.map(|parts| parts.words)),
            number(tool.parts.map(|parts| parts.meaning)),
            number(tool.parts.map(|parts| parts.named)),
            past,
        ];
        let places = tool.places.iter();
        let places = places.map(|place| place.map(|it| it.rank.to_string()).unwrap_or_default());
        own.into_iter().chain(places).collect()
    };
    print::line(table(&columns, explained.tools.iter().enumerate().map(row)));
}
