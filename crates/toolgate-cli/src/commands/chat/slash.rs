//! The commands of a chat that begin with a slash.

use clap::ValueEnum as _;
use serde_json::json;
use toolgate_agent::ToolDiscovery;
use toolgate_catalog::grouped;

use super::{ChatState, screen};
use crate::{
    cli::ChatMode,
    commands::{meta_call, text_of},
    failure::Failure,
    print,
    table::table,
};

/// A command of a chat.
#[derive(Debug, PartialEq)]
pub(super) enum Slash {
    Help,
    Tools,
    Search(String),
    Servers,
    Reset,
    Mode(Option<ChatMode>),
    Cost,
    ToolSearchStatus,
    ToolSearchReset,
    Exit,
}

/// What a search tells a model to do next.
const SEARCH_ADVICE: &str = "To call: call_tool. What parameters mean: get_tool_details.";

const HELP: &str = "\
/tools               List the tools that the model can use
/search QUERY        Search for tools, as the model does
/mcp                 Show the state of each server
/mode [MODE]         Show how the model finds tools, or begin a new chat in another mode
/tool-search status  Show the mode, its reason, what was found and loaded, and what it saved
/tool-search reset   Unload the tools that searches have loaded
/cost                Show the tokens so far, their cost, and what was saved
/reset               Begin a new chat; this one stays stored
/exit                End; Ctrl-D does the same
Ctrl-C stops the turn.";

impl Slash {
    /// The command of a line; `None` for a question to the model.
    pub(super) fn parse(line: &str) -> Option<Result<Self, String>> {
        let rest = line.strip_prefix('/')?;
        let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        Some(match (name, argument.trim()) {
            ("help" | "?", _) => Ok(Self::Help),
            ("tools", _) => Ok(Self::Tools),
            ("search", "") => Err("say what the tool must do: /search QUERY".to_owned()),
            ("search", query) => Ok(Self::Search(query.to_owned())),
            ("mcp", _) => Ok(Self::Servers),
            ("reset", _) => Ok(Self::Reset),
            ("mode", "") => Ok(Self::Mode(None)),
            ("mode", mode) => {
                ChatMode::named(mode).map(|mode| Self::Mode(Some(mode))).ok_or_else(|| {
                    let modes: Vec<String> =
                        ChatMode::value_variants().iter().map(|mode| mode.name()).collect();
                    format!("there is no mode `{mode}`; modes are {}", modes.join(", "))
                })
            }
            ("cost", _) => Ok(Self::Cost),
            ("tool-search", "status" | "") => Ok(Self::ToolSearchStatus),
            ("tool-search", "reset") => Ok(Self::ToolSearchReset),
            ("tool-search", _) => {
                Err("write /tool-search status, or /tool-search reset".to_owned())
            }
            ("exit" | "quit", _) => Ok(Self::Exit),
            _ => Err(format!("there is no command `/{name}`; /help lists them")),
        })
    }
}

pub(super) async fn run(state: &mut ChatState, command: Slash) -> Result<(), Failure> {
    match command {
        Slash::Help => print::line(HELP),
        Slash::Tools => print::line(tools(state)),
        Slash::Search(query) => {
            let found = meta_call(state.tools.inner(), "search_tools", json!({ "query": query }));
            let found = text_of(&found.await?);
            // The last line is for a model.
            print::line(found.trim_end().trim_end_matches(SEARCH_ADVICE).trim_end());
        }
        Slash::Servers => print::line(servers(state)),
        Slash::Reset => {
            state.begin_anew(None)?;
            print::note("A new chat has begun.");
        }
        Slash::Mode(None) => print::line(mode(state)),
        Slash::Mode(Some(chosen)) => {
            state.begin_anew(Some(chosen))?;
            print::note(format!("A new chat has begun: {}", mode(state)));
        }
        Slash::Cost => cost(state),
        Slash::ToolSearchStatus => {
            print::line(mode(state));
            let found = state.ledger.found();
            print::line(if found.is_empty() {
                "Searches have loaded no tool.".to_owned()
            } else {
                let names: Vec<&str> = found.iter().map(String::as_str).collect();
                format!("Searches have loaded {}.", names.join(", "))
            });
            print::line(state.ledger.shown());
        }
        Slash::ToolSearchReset => reset_search(state),
        Slash::Exit => {}
    }
    Ok(())
}

/// Unloads what searches have loaded. What the provider's own search has loaded is in the provider's messages, which
/// nobody else may change.
fn reset_search(state: &mut ChatState) {
    if state.ledger.found().is_empty() {
        print::note("Searches have loaded no tool.");
    } else if state.conversation.unload_tools() {
        print::note("The tools that searches have loaded are unloaded with your next question.");
    } else {
        print::note(
            "In this mode the provider has loaded the tools, and its own messages cannot be changed. /reset begins a \
             new chat without them.",
        );
    }
}

/// The mode, and why.
pub(super) fn mode(state: &ChatState) -> String {
    format!("Mode {}: {}.", mode_name(state.conversation.provider().discovery()), state.reason)
}

/// The name of a discovery on the command line.
pub(super) fn mode_name(discovery: ToolDiscovery) -> String {
    ChatMode::of(discovery).map(ChatMode::name).unwrap_or_default()
}

fn cost(state: &ChatState) {
    let conversation = &state.conversation;
    print::line(format!("{}.", screen::tokens(&conversation.tokens())));
    match conversation.cost() {
        Some(cost) => print::line(format!("Cost: {cost:.4} US dollars.")),
        None => print::line("Cost: unknown; `chat.prices` of the configuration sets the prices."),
    }
    let percent = conversation.window_used() * 100.0;
    let window = grouped(conversation.window());
    print::line(format!("Context window: {percent:.0} % of {window} tokens."));
    print::line(state.ledger.shown());
}

fn tools(state: &ChatState) -> String {
    let session = state.tools.inner();
    let catalog = session.host().catalog().read();
    let rows = catalog.tools().filter_map(|tool| {
        let way = match session.ways_of(tool) {
            (false, false) => return None,
            (false, true) => "scripts only",
            _ if state.ledger.has(tool.name.as_str()) => "loaded",
            _ => "deferred",
        };
        Some(vec![
            tool.name.to_string(),
            way.to_owned(),
            grouped(u64::from(tool.definition.tokens())),
        ])
    });
    let mut rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return "There are no tools.".to_owned();
    }
    // The list may be long, and its end is what stays on the screen.
    rows.sort_by_key(|row| row[1] == "loaded");
    table(&["tool", "state", ">tokens"], rows)
}

fn servers(state: &ChatState) -> String {
    let host = state.tools.inner().host();
    let rows = host.overview(&host.exposure()).into_iter().map(|server| {
        let remark = match (server.reason, server.action) {
            (Some(reason), Some(action)) => format!("{reason}; {action}"),
            (reason, _) => reason.unwrap_or_default(),
        };
        let (tools, tokens) = (grouped(server.tools as u64), grouped(server.tokens));
        vec![server.server.to_string(), server.state.to_owned(), tools, tokens, remark]
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return "There are no servers.".to_owned();
    }
    table(&["server", "state", ">tools", ">tokens", "remarks"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_command_or_a_question() {
        assert_eq!(Slash::parse("what is /help?"), None);
        assert_eq!(
            Slash::parse("/search send  mail"),
            Some(Ok(Slash::Search("send  mail".into())))
        );
        assert_eq!(Slash::parse("/mode code"), Some(Ok(Slash::Mode(Some(ChatMode::Code)))));
        assert_eq!(
            Slash::parse("/mode hosted-regex"),
            Some(Ok(Slash::Mode(Some(ChatMode::HostedRegex))))
        );
        assert_eq!(Slash::parse("/tool-search reset"), Some(Ok(Slash::ToolSearchReset)));
        let Some(Err(problem)) = Slash::parse("/mod") else { panic!("a problem") };
        assert!(problem.contains("/help"), "{problem}");
    }
}
