//! The servers: their states, tools, definitions and logs.

use axum::{
    Extension,
    extract::{Path, State},
    response::{Html, IntoResponse, Response},
};
use maud::{Markup, html};
use toolgate_catalog::Tool;
use toolgate_host::{HiddenReason, HiddenTool, ServerCalls, ServerOverview};
use toolgate_policy::{
    Decision, Flow, Ground, Presence,
    definitions::{shown, spelled_out},
};
use toolgate_store::{AuditRecord, Choices, SwitchedBy};

use super::{Asked, Shared, done, in_background};
use crate::{
    FlaggedDefinition, HeldDefinition, PageState, UnusedServer, definitions,
    form::path_part,
    guard::PageRequest,
    lately,
    layout::{self, Screen, form_token},
    live,
    text::{counted, grouped, line, moment, name, took},
};

/// How many lines of a log are shown.
const LOG_LINES: usize = 200;
/// More tools of a server are not listed here; a search finds them.
const MOST_TOOLS: usize = 500;

pub(crate) async fn show(State(page): Shared, Extension(request): Asked) -> Response {
    page.source.host().notice_choices().await;
    let asked = request.clone();
    let list = in_background(&page, move |page| list(page, &asked)).await.unwrap_or_default();
    let content = html! {
        p.lead { code { "toolgate status" } " and " code { "toolgate status --calls" } " show the same in a terminal." }
        p { a.button href="/ui/servers-add" { "Add a server" } }
        (layout::live(&page, &request, "servers", "/ui/servers-live", &list))
    };
    layout::page(&page, &request, Screen::Servers, "Servers", &content).into_response()
}

pub(crate) async fn live_list(State(page): Shared, Extension(request): Asked) -> Response {
    let asked = request.clone();
    live::stream(&page, &request, move |page| list(page, &asked))
}

pub(crate) async fn show_one(
    State(page): Shared,
    Extension(request): Asked,
    Path(server): Path<String>,
) -> Response {
    page.source.host().notice_choices().await;
    let path = format!("/ui/servers/{}", path_part(&server));
    let title = shown(&server, 80);
    let asked = request.clone();
    let part = in_background(&page, move |page| {
        let stamp = tools_stamp(page);
        Some((detail(page, &asked, &server)?, tools_part(page, &asked, &server), stamp))
    });
    let Some((top, rest, stamp)) = part.await.flatten() else {
        return super::nothing_here(State(page), Extension(request)).await;
    };
    let content = html! {
        p { a href="/ui/servers" { "All servers" } }
        (layout::live(&page, &request, "server", &format!("{path}/live?signal={stamp}"), &top))
        // The list may be long, so it comes only when the stream says that it has changed.
        div id="server-tools" hx-nonce=(request.nonce) hx-get=(format!("{path}/tools")) hx-trigger="tools from:#server" hx-swap="innerMorph" { (rest) }
    };
    layout::page(&page, &request, Screen::Servers, &title, &content).into_response()
}

pub(crate) async fn live_one(
    State(page): Shared,
    Extension(request): Asked,
    Path(server): Path<String>,
) -> Response {
    let (name, asked) = (server.clone(), request.clone());
    let log = move |page: &PageState| page.source.store().log(&name).stamp();
    let signal = live::Signal { event: "tools", number: Box::new(tools_stamp) };
    live::stream_of(&page, &request, log, Some(signal), move |page| {
        detail(page, &asked, &server).unwrap_or_default()
    })
}

/// Changes when the tools of servers, or what is known of their definitions, do.
fn tools_stamp(page: &PageState) -> u64 {
    // Both only grow.
    *page.source.host().changes().borrow() + page.definitions.version()
}

/// The part of a server's screen that its stream only announces.
pub(crate) async fn tools_of_one(
    State(page): Shared,
    Extension(request): Asked,
    Path(server): Path<String>,
) -> Html<String> {
    let part = in_background(&page, move |page| tools_part(page, &request, &server)).await;
    Html(part.unwrap_or_default().into_string())
}

/// Connects, enables or disables a server.
pub(crate) async fn change(
    State(page): Shared,
    Extension(request): Asked,
    Path(server): Path<String>,
) -> Response {
    let path = format!("/ui/servers/{}", path_part(&server));
    let action = request.form.get("action").to_owned();
    let host = page.source.host();
    let said = match action.as_str() {
        "connect" => {
            host.servers().retry(&server);
            Ok(format!("{} connects.", shown(&server, 80)))
        }
        "restart" if host.restart(&server).await => Ok(restarted(&page, &server)),
        "restart" => Err(not_restarted(&page, &server)),
        "approve" if page.source.presence() > Presence::Terminal => {
            Err("your configuration asks for more than this page".to_owned())
        }
        "approve" => {
            let (name, digest) = (request.form.get("definition"), request.form.get("digest"));
            let by = page.person(&request);
            let approved = page.source.approve_definition(name, digest, &by);
            approved.await.map_err(|why| page.clean(&why))
        }
        "login" => match page.source.login(&server).await {
            Ok(address) => return login(&page, &request, &server, &address),
            Err(why) => Err(page.clean(&why)),
        },
        "enable" | "disable" => {
            let on = action == "enable";
            let (name, by) = (server.clone(), page.person(&request));
            let switched = in_background(&page, move |page| switch(page, &name, on, by)).await;
            host.notice_choices().await;
            switched.unwrap_or_else(|| Err("toolgate stops".to_owned()))
        }
        _ => Err("the action is not known".to_owned()),
    };
    done(&page, &request, &path, said.unwrap_or_else(|why| format!("Nothing was changed: {why}.")))
}

/// What became of a server that was ended and started.
fn restarted(page: &PageState, server: &str) -> String {
    let name = shown(server, 80);
    let failure = page.source.host().servers().state(server).and_then(|state| state.failure);
    match failure {
        None => format!("{name} was restarted."),
        Some(failure) => {
            let why = page.clean(&format!("{}; {}", failure.reason, failure.action));
            format!("{name} was ended, and did not start again: {why}.")
        }
    }
}

/// Why a server was not restarted.
fn not_restarted(page: &PageState, server: &str) -> String {
    let host = page.source.host();
    let overview = host.overview(&host.exposure());
    let state = overview.iter().find(|known| known.server.as_str() == server);
    let why = match state.map(|known| known.state) {
        None => "there is no such server",
        Some("disabled") => "it is disabled: enable it first",
        Some(_) => "its calls do not end; disable it, and enable it again",
    };
    why.to_owned()
}

/// Disables or enables a server, as `toolgate disable` and `toolgate enable` do.
fn switch(page: &PageState, server: &str, on: bool, by: String) -> Result<String, String> {
    let choices = page.source.choices().ok_or("nothing can be stored here")?;
    if page.source.host().catalog().read().server(server).is_none() {
        return Err("there is no such server".to_owned());
    }
    let before = choices.read().map_err(|error| error.to_string())?;
    // What a person has disabled, only a person enables, and shows that they are there as they want to.
    let by_person = before.disabled.get(server) == Some(&SwitchedBy::Person);
    if on && by_person && page.source.presence() > Presence::Terminal {
        return Err(format!(
            "your configuration asks for more than this page; run `toolgate enable {}`",
            shown(server, 80)
        ));
    }
    let switch = |choices: &mut Choices| {
        if on {
            choices.disabled.remove(server);
        } else {
            choices.disabled.insert(server.to_owned(), SwitchedBy::Person);
        }
    };
    choices.change(switch).map_err(|error| error.to_string())?;
    let record = AuditRecord {
        kind: "server".to_owned(),
        caller: by,
        verdict: if on { "allow" } else { "deny" }.to_owned(),
        rule: if on { "enabled" } else { "disabled" }.to_owned(),
        server: server.to_owned(),
        ..AuditRecord::default()
    };
    page.source.store().audit().append(&record).map_err(|error| error.to_string())?;
    Ok(format!("{} is {}.", shown(server, 80), record.rule))
}

/// A state, in a word and a sign.
pub(crate) fn state(state: &str) -> Markup {
    let kind = match state {
        "ready" | "done" | "completed" | "allow" | "ok" => "state good",
        "failed" | "unusable" | "damaged" | "deny" | "error" | "refused" => "state bad",
        "connecting" | "waiting" | "running" | "in flight" | "ask" | "interrupted" | "unknown" => {
            "state warn"
        }
        "disabled" | "stopped" | "not made" => "state off",
        _ => "state",
    };
    html! { span class=(kind) { (state) } }
}

/// Where a person logs in. The page leads nowhere by itself.
fn login(page: &PageState, request: &PageRequest, server: &str, address: &str) -> Response {
    let path = format!("/ui/servers/{}", path_part(server));
    let address = url::Url::parse(address).ok();
    let address = address.filter(|it| matches!(it.scheme(), "http" | "https"));
    let content = html! {
        p { a href=(path) { "Back to " (name(server)) } }
        @if let Some(address) = &address {
            p { "You log in at " strong { (line(address.host_str().unwrap_or_default(), 200)) } ", in another tab. toolgate connects when you have." }
            p { a.button href=(address.as_str()) target="_blank" rel="noopener noreferrer" { "Log in at " (line(address.host_str().unwrap_or_default(), 80)) } }
        } @else { p.notice.bad { "The server names no address of a page." } }
    };
    layout::page(page, request, Screen::Servers, "Log in", &content).into_response()
}

fn list(page: &PageState, request: &PageRequest) -> Markup {
    let host = page.source.host();
    let servers = host.overview(&host.exposure());
    let activity = lately::activity(page);
    let known = definitions::latest(page);
    let held = |server: &ServerOverview| {
        let is_its = |held: &&HeldDefinition| held.server == server.server.as_str();
        known.held.iter().filter(is_its).count()
    };
    let flagged = |server: &ServerOverview| {
        let is_its = |flagged: &&FlaggedDefinition| flagged.server == server.server.as_str();
        known.flagged.iter().filter(is_its).count()
    };
    let unused = page.source.unused_servers();
    let notices = page.source.notices();
    if servers.is_empty() && unused.is_empty() {
        return html! {
            (waiting(page, &notices))
            @if notices.is_empty() { p { "The configuration has no servers. " code { "toolgate add" } " adds one." } }
        };
    }
    html! {
        (waiting(page, &notices))
        div.scroll tabindex="0" role="region" aria-label="Servers" {
            table.stack.servers {
                thead { tr {
                    th scope="col" { "Server" } th scope="col" { "State" } th.number scope="col" { "Tools" } th.number scope="col" { "Tokens" }
                    th.number scope="col" { "Calls" } th.number scope="col" { "Latency" } th.number scope="col" { "Restarts" }
                    th scope="col" { "Last error" } th scope="col" { "Actions" }
                } }
                tbody {
                    @for server in &servers {
                        @let calls = activity.servers.get(server.server.as_str());
                        tr {
                            th scope="row" { a href=(format!("/ui/servers/{}", path_part(server.server.as_str()))) { (name(server.server.as_str())) } }
                            td data-label="State" { (state(server.state)) @if let Some(why) = why_idle(server) { br; span.quiet.small { (why) } } }
                            td.number data-label="Tools" { (grouped(server.tools as u64)) br; span.quiet.small { (grouped(server.loaded.len() as u64)) " listed" } }
                            td.number data-label="Tokens" { (grouped(server.tokens)) }
                            td.number data-label="Calls" { @if let Some(calls) = calls { (grouped(calls.calls)) @if calls.failed > 0 { br; span.bad.small { (grouped(calls.failed)) " failed" } } } }
                            td.number data-label="Latency" { @if let Some(calls) = calls { (quick(calls.median)) br; span.quiet.small { "95 %: " (quick(calls.slow)) } } }
                            td.number data-label="Restarts" { (server.restarts) }
                            td data-label="Last error" { (last_error(page, server, calls)) @if held(server) > 0 { " " span.warn { (counted(held(server) as u64, "definition")) " held back" } } @if flagged(server) > 0 { " " span.bad { (counted(flagged(server) as u64, "suspicious finding")) } } }
                            td data-label="Actions" { (buttons(page, request, server)) }
                        }
                    }
                }
            }
        }
        (unused_part(page, &unused))
        p.quiet.small { "Calls and latency of the last hour, from the audit log." }
    }
}

/// What is not used before somebody does something, such as the configuration of a folder.
pub(crate) fn waiting(page: &PageState, notices: &[String]) -> Markup {
    html! { @for notice in notices { p.notice { (line(&page.clean(notice), 500)) } } }
}

/// The servers of the configuration that nobody can use.
fn unused_part(page: &PageState, unused: &[UnusedServer]) -> Markup {
    let off: Vec<&UnusedServer> = unused.iter().filter(|server| server.problem.is_none()).collect();
    html! {
        @if unused.len() > off.len() {
            h2 { "Servers that cannot be used" }
            div.scroll tabindex="0" role="region" aria-label="Servers that cannot be used" {
                table.stack {
                    thead { tr { th scope="col" { "Server" } th scope="col" { "State" } th scope="col" { "Why, and what to do" } } }
                    tbody { @for server in unused { @if let Some(problem) = &server.problem {
                        tr {
                            th scope="row" { (name(&server.name)) }
                            td data-label="State" { (state("unusable")) }
                            td data-label="Why, and what to do" { (line(&page.clean(problem), 500)) }
                        }
                    } } }
                }
            }
        }
        @if !off.is_empty() {
            p { "The configuration switches off: " @for (index, server) in off.iter().enumerate() { @if index > 0 { ", " } (name(&server.name)) } ". Correct " code { "enabled" } " or " code { "disabled" } " of a server there to use it." }
        }
    }
}

/// Why a server that is not connected needs nobody.
fn why_idle(server: &ServerOverview) -> Option<&'static str> {
    match server.state {
        "idle" if server.per_caller => Some("each caller logs in with their first call"),
        "idle" => Some("connects when it is needed"),
        _ => None,
    }
}

/// What went wrong last, in words.
fn last_error(page: &PageState, server: &ServerOverview, calls: Option<&ServerCalls>) -> Markup {
    html! {
        @if let Some(reason) = &server.reason {
            (line(&page.clean(reason), 200))
            @if let Some(action) = &server.action { br; span.quiet.small { (line(&page.clean(action), 200)) } }
        } @else if let Some((time, tool, how)) = calls.and_then(|calls| calls.last_failure.as_ref()) {
            (name(tool)) ": " (line(how, 40)) " " span.quiet.small { (moment(*time)) }
        }
    }
}

/// A short time.
fn quick(micros: u64) -> String {
    if micros < 10_000 {
        format!("{}.{} ms", micros / 1_000, micros / 100 % 10)
    } else {
        took(micros / 1_000)
    }
}

/// A server, and its log.
fn detail(page: &PageState, request: &PageRequest, server: &str) -> Option<Markup> {
    let host = page.source.host();
    let overview = host.overview(&host.exposure());
    let overview = overview.into_iter().find(|it| it.server.as_str() == server)?;
    let activity = lately::activity(page);
    let calls = activity.servers.get(server);
    let log = page.source.store().log(server).tail(LOG_LINES).unwrap_or_default();
    Some(html! {
        dl.facts {
            dt { "State" } dd { (state(overview.state)) @if let Some(why) = why_idle(&overview) { " " span.quiet { (why) } } }
            @if let Some(reason) = &overview.reason {
                dt { "Why" } dd { (line(&page.clean(reason), 1_000)) }
            }
            @if let Some(action) = &overview.action {
                dt { "What to do" } dd { (line(&page.clean(action), 1_000)) }
            }
            @if let Some(version) = &overview.protocol_version {
                dt { "Protocol" } dd { (line(version, 40)) }
            }
            dt { "Tools" } dd { (grouped(overview.tools as u64)) ", " (grouped(overview.tokens)) " tokens; a session starts with " (grouped(overview.loaded.len() as u64)) }
            dt { "Restarts" } dd { (overview.restarts) }
            @if let Some(calls) = calls {
                dt { "Calls in an hour" } dd { (grouped(calls.calls)) ", " (grouped(calls.failed)) " failed; half within " (quick(calls.median)) ", 95 of 100 within " (quick(calls.slow)) }
            }
            @let error = last_error(page, &overview, calls);
            @if overview.reason.is_none() && !error.0.is_empty() { dt { "Last error" } dd { (error) } }
            @for problem in &overview.problems { dt { "Problem" } dd { (line(&page.clean(problem), 1_000)) } }
        }
        (buttons(page, request, &overview))
        h2 id="log" { "Log, as it is written" }
        @if log.is_empty() { p.quiet { "The server has written nothing yet." } }
        @else {
            div.log tabindex="0" role="region" aria-label="Log" {
                pre { (spelled_out(&page.clean(&log.join("\n")))) }
            }
        }
    })
}

/// The tools of a server, and what is held back of it.
fn tools_part(page: &PageState, request: &PageRequest, server: &str) -> Markup {
    let host = page.source.host();
    let tools: Vec<Tool> = host.catalog().read().tools_of(server).to_vec();
    let hidden: Vec<HiddenTool> =
        host.hidden_tools().into_iter().filter(|tool| tool.id.server.as_str() == server).collect();
    let known = definitions::latest(page);
    let flagged: Vec<&FlaggedDefinition> =
        known.flagged.iter().filter(|flagged| flagged.server == server).collect();
    let held: Vec<&HeldDefinition> =
        known.held.iter().filter(|held| held.server == server).collect();
    let denied: Vec<&HiddenTool> =
        hidden.iter().filter(|tool| matches!(tool.why, HiddenReason::Denied)).collect();
    html! {
        @if !flagged.is_empty() {
            h2 id="flagged" { "Suspicious definitions" }
            ul.notice.bad { @for one in flagged.iter().take(MOST_TOOLS) { li { (line(&page.clean(&one.text), 500)) } } }
        }
        @if !held.is_empty() { h2 id="held" { "Held back until you approve" } (held_back(page, request, &held)) }
        @if !denied.is_empty() {
            h2 { "Denied by the policy" }
            p.quiet { "Nobody may call these tools, so nobody is shown them." }
            ul { @for tool in denied.iter().take(MOST_TOOLS) { li { (name(&tool.name)) } } }
        }
        h2 { "Tools" }
        (tool_table(page, &tools))
    }
}

pub(crate) fn buttons(
    page: &PageState,
    request: &PageRequest,
    overview: &ServerOverview,
) -> Markup {
    let server = overview.server.as_str();
    let action = format!("/ui/servers/{}", path_part(server));
    let of = || html! { span.skip { " " (shown(server, 80)) } };
    html! {
        form.row method="post" action=(action) {
            (form_token(request))
            @if matches!(overview.state, "idle" | "failed") {
                button name="action" value="connect" { "Connect" (of()) }
            }
            @if page.source.has_login(server) {
                button name="action" value="login" { "Log in" (of()) }
            }
            @if overview.state == "disabled" {
                button.main name="action" value="enable" { "Enable" (of()) }
            } @else {
                @if overview.state == "ready" { button name="action" value="restart" { "Restart" (of()) } }
                button.no name="action" value="disable" { "Disable" (of()) }
            }
            a.small href=(format!("{action}#log")) { "Log" (of()) }
        }
    }
}

/// Definitions that are held back, with what has changed, and the button that lets them in.
fn held_back(page: &PageState, request: &PageRequest, held: &[&HeldDefinition]) -> Markup {
    let can_approve = page.source.presence() <= Presence::Terminal;
    html! {
        p.quiet { code { "toolgate definitions approve NAME" } " does the same in a terminal." }
        @for one in held.iter().take(MOST_TOOLS) {
            article.panel {
                h3 { (name(&one.name)) }
                p { "It is " (one.summary) ":" }
                // What is approved is seen, all of it.
                pre.whole { (spelled_out(&page.clean(&one.text))) }
                @if !one.findings.is_empty() {
                    ul.bad { @for finding in &one.findings { li { (line(&page.clean(finding), 500)) } } }
                }
                @if can_approve {
                    form.row method="post" action=(format!("/ui/servers/{}", path_part(&one.server))) {
                        (form_token(request))
                        input type="hidden" name="definition" value=(one.name);
                        input type="hidden" name="digest" value=(one.digest);
                        button.main name="action" value="approve" { "Approve it as it is shown" span.skip { " " (shown(&one.name, 80)) } }
                    }
                } @else {
                    p.notice { "Your configuration asks for more than this page to approve a definition." }
                }
            }
        }
    }
}

fn tool_table(page: &PageState, tools: &[Tool]) -> Markup {
    if tools.is_empty() {
        return html! { p.quiet { "No tools are known." } };
    }
    let host = page.source.host();
    let (broker, none) = (host.broker(), serde_json::json!({}));
    html! {
        p.quiet.small { "The policy is that of a call without arguments and without data of other tools; " a href="/ui/policy" { "explain a call" } " for others." }
        div.scroll tabindex="0" role="region" aria-label="Tools of the server" {
            table.stack {
                thead { tr { th scope="col" { "Tool" } th scope="col" { "What it does" } th scope="col" { "Labels" } th scope="col" { "Policy" } th.number scope="col" { "Tokens" } } }
                tbody {
                    @for tool in tools.iter().take(MOST_TOOLS) {
                        @let policy = broker.policy_of(tool);
                        @let decision = policy.decide(&none, &Flow::NONE);
                        tr {
                            th scope="row" { a href=(format!("/ui/tools/{}", path_part(tool.name.as_str()))) { (name(tool.name.as_str())) } }
                            td data-label="What it does" { (line(&page.clean(tool.definition.description()), 160)) }
                            td data-label="Labels" { @if !policy.labels().is_empty() { (policy.labels().to_string()) } }
                            td data-label="Policy" { (state(&decision.verdict.to_string())) br; span.quiet.small { (line(&why(&decision), 120)) } }
                            td.number data-label="Tokens" { (grouped(u64::from(tool.definition.tokens()))) }
                        }
                    }
                }
            }
        }
        @if tools.len() > MOST_TOOLS { p.quiet { "and " (grouped((tools.len() - MOST_TOOLS) as u64)) " more, which a search finds." } }
    }
}

/// What decided, in words.
fn why(decision: &Decision) -> String {
    match &decision.ground {
        Ground::Rule(rule) => match &rule.reason {
            Some(reason) => format!("{}: {reason}", rule.origin),
            None => rule.origin.to_string(),
        },
        Ground::Mode(mode) => format!("default {mode}"),
    }
}
