//! `toolgate status --live`: the sessions of running gateways.

use std::{fmt::Write as _, process::ExitCode, time::Duration};

use serde_json::{Value, json};
use toolgate_host::one_line;
use toolgate_store::LiveFolder;

use crate::{
    cli::Status,
    failure::{CommandResult, Failure},
    load, print,
    table::{grouped, percent},
};

/// How long a gateway is waited for, which looks twice a second.
const RESET_TIMEOUT: Duration = Duration::from_secs(10);
const RESET_LOOKS: Duration = Duration::from_millis(100);
const SHOWN_NAMES: usize = 10;

pub(super) async fn run(arguments: &Status) -> CommandResult {
    let live = load::required_store()?.live();
    if let Some(session) = &arguments.reset {
        reset(&live, session).await?;
    }
    let gateways: Vec<Value> =
        live.read().iter().map(|(process, text)| gateway(*process, text)).collect();
    if arguments.output.json {
        print::json(&gateways)?;
    } else if gateways.is_empty() {
        print::line("No gateway runs. `toolgate serve` starts one.");
    }
    if !arguments.output.json {
        for gateway in &gateways {
            print::line(render(gateway));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks the gateway of a session to reset it, and waits until it has.
async fn reset(live: &LiveFolder, session: &str) -> Result<(), Failure> {
    let known = |(process, text): &(u32, Vec<u8>)| {
        let sessions = gateway(*process, text)["sessions"].clone();
        sessions.as_array().is_some_and(|all| all.iter().any(|it| it["id"] == session))
    };
    if !live.read().iter().any(known) {
        return Err(Failure::usage(format!(
            "no running gateway has a session `{}`",
            one_line(session, 64)
        ))
        .hint("`toolgate status --live` shows the sessions"));
    }
    let asked = live.ask_for_reset(session).map_err(|error| Failure::new(error.to_string()))?;
    let done = async {
        while asked.exists() {
            tokio::time::sleep(RESET_LOOKS).await;
        }
    };
    if tokio::time::timeout(RESET_TIMEOUT, done).await.is_err() {
        // Nobody resets it later, when nobody waits for it any more.
        let _ = std::fs::remove_file(&asked);
        return Err(Failure::new("the gateway did not answer in 10 s; nothing was reset"));
    }
    Ok(())
}

/// What a gateway wrote, with its process id and what each session saved.
fn gateway(process: u32, text: &[u8]) -> Value {
    let mut gateway: Value = serde_json::from_slice(text).unwrap_or_else(|_| json!({}));
    if !gateway.is_object() {
        gateway = json!({});
    }
    gateway["process"] = json!(process);
    if let Some(sessions) = gateway.get_mut("sessions").and_then(Value::as_array_mut) {
        for session in sessions {
            let tokens = |key: &str| session[key].as_u64().unwrap_or_default();
            let saved = tokens("allTokens").saturating_sub(tokens("listedTokens"));
            if session.is_object() {
                session["savedTokens"] = json!(saved);
            }
        }
    }
    gateway
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn render(gateway: &Value) -> String {
    let none = Vec::new();
    let sessions = gateway["sessions"].as_array().unwrap_or(&none);
    let config = one_line(gateway["config"].as_str().unwrap_or_default(), 200);
    let count = counted(sessions.len() as u64, "session");
    let mut text = format!("Gateway {} of {config}: {count}", gateway["process"]);
    for session in sessions {
        let word = |key: &str| one_line(session[key].as_str().unwrap_or_default(), 200);
        let number = |key: &str| session[key].as_u64().unwrap_or_default();
        let namespace = match session["namespace"].as_str() {
            Some(name) => format!(", namespace {}", one_line(name, 64)),
            None => String::new(),
        };
        let _ = write!(text, "\n- {} of {}{namespace}", word("id"), word("caller"));
        if session["mode"].is_string() {
            let _ = write!(text, "\n  {}: {}", word("mode"), word("reason"));
        } else {
            text.push_str("\n  it has not asked for the tools yet");
        }
        if number("listedTokens") > 0 {
            let (listed, all) = (number("listedTokens"), number("allTokens"));
            let _ = write!(
                text,
                "\n  its list has {} tools, {} tokens; all {} tools would take {}: {} saved ({})",
                number("listedTools"),
                grouped(listed),
                number("allTools"),
                grouped(all),
                grouped(all.saturating_sub(listed)),
                percent(all.saturating_sub(listed), all),
            );
        }
        let (searches, calls) = (number("searches"), number("calls"));
        let searches =
            if searches == 1 { "1 search".into() } else { format!("{searches} searches") };
        let _ = write!(text, "\n  {searches}, {}", counted(calls, "call"));
        for key in ["found", "loaded"] {
            let names: Vec<&str> =
                session[key].as_array().unwrap_or(&none).iter().filter_map(Value::as_str).collect();
            if !names.is_empty() {
                let shown: Vec<String> =
                    names.iter().take(SHOWN_NAMES).map(|name| one_line(name, 64)).collect();
                let more = names.len().saturating_sub(shown.len());
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let _ = write!(text, "\n  {key}: {}{more}", shown.join(", "));
            }
        }
    }
    text
}
