//! `toolgate call`

use std::{fs, io::Read, process::ExitCode};

use indicatif::ProgressBar;
use serde_json::{Map, Value, json};
use toolgate_host::ToolSession;

use super::{Needed, failed_call, is_error, text_of};
use crate::{
    cli::{Call, Globals},
    failure::{CommandResult, Failure},
    print, terminal,
};

pub(crate) async fn run(globals: &Globals, arguments: Call) -> CommandResult {
    let values = read_arguments(&arguments)?;
    let needed = Needed::Names(std::slice::from_ref(&arguments.name));
    let (loaded, host) = super::start_when_needed(globals, needed, None).await?;
    let tool = host.catalog().read().resolve(&arguments.name).cloned();
    // The cached definition may be out of date, and the call needs the server anyway. Arguments that do not
    // even fit the cached one need no server.
    if let Some(tool) = tool
        && host.broker().accepts(&tool, Value::Object(values.clone())).await
    {
        host.connect(tool.id.server.as_str()).await;
    }
    let bar = print::progress(0, "calling");
    let session = host.session_of(terminal::session(&bar, loaded.presence_or_strictest()));
    let outcome = call(&session, &bar, &arguments.name, values).await;
    bar.finish_and_clear();
    host.shutdown().await;
    let result = outcome?;
    let failed = is_error(&result);
    if arguments.output.json {
        print::json(&result)?;
    } else if failed {
        print::note(format!("error: {}", text_of(&result)));
    } else {
        print::line(text_of(&result));
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Calls through `call_tool`, as an agent does, with the whole result. Ctrl-C cancels the call and notifies the server.
async fn call(
    session: &ToolSession,
    bar: &ProgressBar,
    name: &str,
    arguments: Map<String, Value>,
) -> Result<Value, Failure> {
    let options = super::interruptible(bar, |report| {
        let total = report.total().map(|total| format!("/{total}")).unwrap_or_default();
        format!("calling: {}{total} {}", report.progress(), report.message().unwrap_or_default())
    });
    let request = Map::from_iter([
        ("name".to_owned(), json!(name)),
        ("arguments".to_owned(), Value::Object(arguments)),
    ]);
    session.call_exact("call_tool", request, options).await.map_err(failed_call)
}

fn read_arguments(arguments: &Call) -> Result<Map<String, Value>, Failure> {
    let text = match arguments.arguments.as_deref() {
        None => None,
        Some("-") => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .map_err(|error| Failure::usage(format!("cannot read stdin: {error}")))?;
            Some(text)
        }
        Some(text) => match text.strip_prefix('@') {
            Some(path) => Some(
                fs::read_to_string(path)
                    .map_err(|error| Failure::usage(format!("cannot read {path}: {error}")))?,
            ),
            None => Some(text.to_owned()),
        },
    };
    let mut values = match text {
        None => Map::new(),
        Some(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(values)) => values,
            other => {
                let reason = match other {
                    Ok(_) => "the arguments are JSON, but not an object".to_owned(),
                    Err(error) => format!("the arguments are not JSON: {error}"),
                };
                return Err(Failure::usage(reason)
                    .hint("write them as '{\"key\": \"value\"}', or as --arg key=value"));
            }
        },
    };
    for pair in &arguments.pairs {
        let (key, value) = pair.split_once('=').ok_or_else(|| {
            Failure::usage(format!("--arg {pair} has no `=`")).hint("write --arg KEY=VALUE")
        })?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
        values.insert(key.to_owned(), value);
    }
    Ok(values)
}
