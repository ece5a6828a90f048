//! What needs a person, and what happens now.

use std::collections::HashMap;

use axum::{
    Extension,
    extract::State,
    response::{IntoResponse, Response},
};
use maud::{Markup, html};
use serde_json::Value;
use toolgate_host::ServerOverview;

use super::{
    Asked, Shared, in_background, runs,
    servers::{self, buttons, state},
};
use crate::{
    FlaggedDefinition, PageState, definitions,
    form::path_part,
    guard::PageRequest,
    lately::{self, HOURS},
    layout::{self, Screen},
    live,
    plot::{Parts, bars},
    text::{counted, grouped, line, name},
};

const LAST_RUNS: u32 = 5;
/// More definitions of a kind are on the screens of their servers.
const MOST_DEFINITIONS: usize = 20;

pub(crate) async fn show(State(page): Shared, Extension(request): Asked) -> Response {
    let asked = request.clone();
    let part = in_background(&page, move |page| part(page, &asked)).await.unwrap_or_default();
    let content = html! {
        p.lead { "The configuration is " code { (line(&page.source.configuration(), 200)) } "." }
        (layout::live(&page, &request, "overview", "/ui/overview/live", &part))
    };
    layout::page(&page, &request, Screen::Overview, "Overview", &content).into_response()
}

pub(crate) async fn live(State(page): Shared, Extension(request): Asked) -> Response {
    let asked = request.clone();
    live::stream_of(&page, &request, lately::stamp, None, move |page| part(page, &asked))
}

fn part(page: &PageState, request: &PageRequest) -> Markup {
    let host = page.source.host();
    let exposure = host.exposure();
    let servers = host.overview(&exposure);
    let troubled: Vec<&ServerOverview> =
        servers.iter().filter(|server| server.reason.is_some()).collect();
    let unused = page.source.unused_servers();
    let unusable: Vec<(&str, &str)> = unused
        .iter()
        .filter_map(|server| Some((server.name.as_str(), server.problem.as_deref()?)))
        .collect();
    let ready = servers.iter().filter(|server| server.state == "ready").count();
    let tokens: u64 = servers.iter().map(|server| server.tokens).sum();
    let tools: usize = servers.iter().map(|server| server.tools).sum();
    let sessions = sessions(page);
    let saved: u64 = sessions.iter().map(Session::saved).sum();
    let waiting = page.waiting().len();
    let activity = lately::activity(page);
    let last: (u64, u64) = activity.minutes.last().copied().unwrap_or_default();
    let hours = lately::saved(page);
    let day: u64 = hours.iter().map(|(definitions, results)| definitions + results).sum();
    html! {
        div.tiles {
            (tile("Waiting for you", &grouped(waiting as u64), if waiting == 1 { "call" } else { "calls" }))
            (tile("Servers ready", &format!("{ready} of {}", servers.len() + unusable.len()), ""))
            (tile("Tools", &grouped(tools as u64), &format!("{} tokens", grouped(tokens))))
            (tile("Calls in the last minute", &grouped(last.0 + last.1), ""))
            (tile("Tokens saved in open sessions", &grouped(saved), ""))
            (tile("Tokens saved in 24 hours", &grouped(day), "about"))
        }
        @if waiting > 0 {
            p.notice { a href="/ui/approvals" { (counted(waiting as u64, "call")) } " waiting for your decision." }
        }
        (servers::waiting(page, &page.source.notices()))
        @if !troubled.is_empty() || !unusable.is_empty() {
            h2 { "Servers that need attention" }
            div.scroll tabindex="0" role="region" aria-label="Servers that need attention" {
                table.stack {
                    thead { tr { th scope="col" { "Server" } th scope="col" { "State" } th scope="col" { "Why, and what to do" } th scope="col" { "Action" } } }
                    tbody {
                        @for server in troubled {
                            tr {
                                th scope="row" { a href=(format!("/ui/servers/{}", path_part(server.server.as_str()))) { (name(server.server.as_str())) } }
                                td data-label="State" { (state(server.state)) }
                                td data-label="Why, and what to do" {
                                    (line(&page.clean(server.reason.as_deref().unwrap_or_default()), 300))
                                    @if let Some(action) = &server.action { br; span.quiet { (line(&page.clean(action), 300)) } }
                                }
                                td data-label="Action" { (buttons(page, request, server)) }
                            }
                        }
                        @for (server, problem) in &unusable {
                            tr {
                                th scope="row" { (name(server)) }
                                td data-label="State" { (state("unusable")) }
                                td data-label="Why, and what to do" { (line(&page.clean(problem), 500)) }
                                td {}
                            }
                        }
                    }
                }
            }
        }
        (attention(page))
        h2 { "Calls in the last hour" }
        (bars(&activity.minutes, &Parts { title: "Calls of each minute of the last hour", first: "went well", second: "refused or failed", each: "a minute", unit: "minutes ago" }))
        h2 { "Tokens saved" }
        (bars(&hours, &Parts { title: "Tokens that sessions did not have to read, by hour", first: "of definitions", second: "of results (about)", each: "an hour", unit: "hours ago" }))
        p.quiet.small { code { "toolgate tokens --saved" } " shows the same for all " (HOURS) " hours and before." }
        h2 { "Open sessions" }
        (session_table(&sessions))
        h2 { "Last runs" }
        (runs::table(page, &runs::newest(page, LAST_RUNS)))
    }
}

/// The first finding about each definition, and how many more there are.
fn by_definition(flagged: &[FlaggedDefinition]) -> Vec<(&FlaggedDefinition, usize)> {
    let (mut places, mut definitions) = (HashMap::new(), Vec::<(&FlaggedDefinition, usize)>::new());
    for one in flagged {
        let place = *places.entry((&one.server, &one.tool)).or_insert(definitions.len());
        match definitions.get_mut(place) {
            Some((_, more)) => *more += 1,
            None => definitions.push((one, 0)),
        }
    }
    definitions
}

/// Definitions that a person should look at.
fn attention(page: &PageState) -> Markup {
    let known = definitions::latest(page);
    let flagged = by_definition(&known.flagged);
    let (held_left, flagged_left) = (
        known.held.len().saturating_sub(MOST_DEFINITIONS),
        flagged.len().saturating_sub(MOST_DEFINITIONS),
    );
    let link = |server: &str, at: &str| format!("/ui/servers/{}#{at}", path_part(server));
    html! {
        @if !known.held.is_empty() || !known.flagged.is_empty() {
            h2 { "Definitions that need attention" }
            div.scroll tabindex="0" role="region" aria-label="Definitions that need attention" {
                table.stack {
                    thead { tr { th scope="col" { "Server" } th scope="col" { "What" } th scope="col" { "Why" } } }
                    tbody {
                        @for held in known.held.iter().take(MOST_DEFINITIONS) {
                            tr {
                                th scope="row" { a href=(link(&held.server, "held")) { (name(&held.server)) } }
                                td data-label="What" { (name(&held.name)) }
                                td data-label="Why" { span.warn { "held back" } ": " (line(&held.summary, 100)) }
                            }
                        }
                        @for (flagged, more) in flagged.iter().take(MOST_DEFINITIONS) {
                            tr {
                                th scope="row" { a href=(link(&flagged.server, "flagged")) { (name(&flagged.server)) } }
                                td data-label="What" { @if let Some(tool) = &flagged.tool { a href=(format!("/ui/tools/{}", path_part(tool))) { (name(tool)) } } }
                                td data-label="Why" { span.bad { "suspicious" } ": " (line(&page.clean(&flagged.text), 300)) @if *more > 0 { "; and " (counted(*more as u64, "more finding")) } }
                            }
                        }
                    }
                }
            }
            @if held_left + flagged_left > 0 {
                p.notice { a href="/ui/servers" { (counted((held_left + flagged_left) as u64, "more definition")) } ": look at each server." }
            }
            p.quiet.small { code { "toolgate definitions" } " lists them in a terminal." }
        }
    }
}

fn tile(title: &str, value: &str, more: &str) -> Markup {
    html! { dl.tile { dt { (title) } dd { (value) @if !more.is_empty() { " " small { (more) } } } } }
}

/// A session of a running gateway.
struct Session {
    caller: String,
    mode: String,
    searches: u64,
    calls: u64,
    listed: u64,
    all: u64,
}

impl Session {
    fn saved(&self) -> u64 {
        if self.listed == 0 { 0 } else { self.all.saturating_sub(self.listed) }
    }
}

/// The sessions of all gateways on this machine.
fn sessions(page: &PageState) -> Vec<Session> {
    let gateways = page.source.store().live().read();
    let states = gateways.iter().filter_map(|(_, text)| serde_json::from_slice(text).ok());
    let lists = states.filter_map(|mut state: Value| match state["sessions"].take() {
        Value::Array(sessions) => Some(sessions),
        _ => None,
    });
    let read = |session: Value| {
        let number = |key: &str| session[key].as_u64().unwrap_or_default();
        let word = |key: &str| session[key].as_str().unwrap_or_default().to_owned();
        Session {
            caller: word("caller"),
            mode: word("mode"),
            searches: number("searches"),
            calls: number("calls"),
            listed: number("listedTokens"),
            all: number("allTokens"),
        }
    };
    lists.flatten().map(read).collect()
}

fn session_table(sessions: &[Session]) -> Markup {
    if sessions.is_empty() {
        return html! { p.quiet { "No client is connected." } };
    }
    html! {
        div.scroll tabindex="0" role="region" aria-label="Open sessions" {
            table.stack {
                thead { tr {
                    th scope="col" { "Client" } th scope="col" { "Mode" } th.number scope="col" { "Searches" }
                    th.number scope="col" { "Calls" } th.number scope="col" { "Tokens of its list" } th.number scope="col" { "Tokens saved" }
                } }
                tbody {
                    @for session in sessions {
                        tr {
                            th scope="row" { (line(&session.caller, 80)) }
                            td data-label="Mode" { (line(&session.mode, 40)) }
                            td.number data-label="Searches" { (grouped(session.searches)) }
                            td.number data-label="Calls" { (grouped(session.calls)) }
                            td.number data-label="Tokens of its list" { (grouped(session.listed)) }
                            td.number data-label="Tokens saved" { (grouped(session.saved())) }
                        }
                    }
                }
            }
        }
    }
}
