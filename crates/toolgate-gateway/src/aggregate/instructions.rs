//! The `instructions` of the handshake, which the client gives to its model.

use std::fmt::Write;

use toolgate_catalog::RequestedMode;
use toolgate_host::{ToolSession, one_line};

const MAX_NAMED_SERVERS: usize = 40;
const MAX_DESCRIPTION_CHARACTERS: usize = 80;

/// A few sentences, the names of the servers, and their own instructions. The text does not change during
/// a session, so that prompt caches hold.
pub(crate) fn instructions(session: &ToolSession) -> String {
    let only_scripts = session.host().settings().exposure.mode == RequestedMode::Code;
    instructions_in(session, only_scripts)
}

/// The instructions of a session, in the mode `code` or in another one.
pub fn instructions_in(session: &ToolSession, only_scripts: bool) -> String {
    let host = session.host();
    let mut text = String::from(
        "This server gives access to other servers. Where search_tools is listed, most of their \
         tools are not: search_tools finds them by what they do, get_tool_details shows their \
         parameters, ",
    );
    text.push_str(match (host.code().is_enabled(), only_scripts) {
        (true, true) => "run_code runs a script that calls them.",
        (true, false) => {
            "call_tool calls them. For several calls in a row, run_code runs a script that makes \
             them."
        }
        (false, _) => "call_tool calls them.",
    });
    let settings = host.settings();
    for notice in &settings.notices {
        text.push(' ');
        text.push_str(notice);
    }
    let servers = &settings.servers;
    if servers.is_empty() {
        return text;
    }
    text.push_str(" Servers: ");
    for (index, setup) in servers.iter().take(MAX_NAMED_SERVERS).enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        let _ = write!(text, "{separator}{}", setup.entry.name);
        if let Some(description) = &setup.entry.description {
            let _ = write!(text, " ({})", one_line(description, MAX_DESCRIPTION_CHARACTERS));
        }
    }
    if servers.len() > MAX_NAMED_SERVERS {
        let _ = write!(text, " and {} more", servers.len() - MAX_NAMED_SERVERS);
    }
    text.push('.');
    let words = session.server_instructions();
    if !words.is_empty() {
        text.push_str("\n\n");
        text.push_str(words);
    }
    text
}
