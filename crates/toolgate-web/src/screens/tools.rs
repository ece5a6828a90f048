//! Tools: a search as a model makes it, definitions, and a form to call a tool.

use std::{str::FromStr as _, sync::Arc, time::Duration};

use axum::{
    Extension,
    extract::{Path, State},
    http::StatusCode,
    response::{Html, IntoResponse, Response},
};
use maud::{Markup, html};
use serde_json::{Map, Value, json};
use toolgate_catalog::Tool;
use toolgate_host::{ArgumentKind, CallFailure, ExplainedSearch, ExplainedTool, ToolQuery};
use toolgate_policy::definitions::shown;
use toolgate_sandbox::Language;
use toolgate_search::StrategyName;
use toolgate_upstream::CallOptions;

use super::{Asked, Shared, in_background};
use crate::{
    FlaggedDefinition, PageState, definitions,
    form::{Fields, path_part, query},
    guard::PageRequest,
    layout::{self, Screen, form_token},
    running::session,
    text::{block, counted, grouped, json, line, name},
};

/// How many tools a page lists without a search.
const LISTED: usize = 100;
/// How long servers that start are waited for, if some others are known.
const STARTS: Duration = Duration::from_secs(2);
/// How many tools a search shows.
const FOUND: usize = 20;
/// How many values of an argument can be chosen.
const MOST_CHOICES: usize = 200;
/// More fields of a form are not made; the arguments can be written as JSON.
const MOST_FIELDS: usize = 40;

pub(crate) async fn show(State(page): Shared, Extension(request): Asked) -> Response {
    let list = search(&page, &request.query).await;
    let strategy = request.query.get("strategy");
    let content = html! {
        p.lead { "The ranking that a model gets. " code { "toolgate search --explain" } " shows the same in a terminal." }
        // Without scripts the button asks; with them every pause of typing does.
        form.row method="get" action="/ui/tools" role="search" hx-nonce=(request.nonce) hx-get="/ui/tools/found" hx-target="#found" hx-trigger="input changed delay:200ms, change" {
            label.wide { "What a tool should do" input type="search" name="query" value=(request.query.get("query")) autocomplete="off"; }
            label {
                "Strategy"
                select name="strategy" {
                    option value="" { "as configured" }
                    @for one in StrategyName::ALL.iter().filter(|one| **one != StrategyName::Subagent) {
                        option value=(one.as_str()) selected[strategy == one.as_str()] { (one.as_str()) }
                    }
                }
            }
            button.main { "Search" }
        }
        div id="found" aria-live="polite" { (list) }
    };
    layout::page(&page, &request, Screen::Tools, "Tools", &content).into_response()
}

/// The part of the screen that changes while somebody types.
pub(crate) async fn found(State(page): Shared, Extension(request): Asked) -> Html<String> {
    Html(search(&page, &request.query).await.into_string())
}

async fn search(page: &PageState, fields: &Fields) -> Markup {
    let Some(words) = fields.some("query") else { return browse(page, fields) };
    let strategy = StrategyName::from_str(fields.get("strategy")).ok();
    let query = ToolQuery {
        queries: vec![words.to_owned()],
        limit: Some(FOUND),
        strategy: strategy.filter(|strategy| *strategy != StrategyName::Subagent),
        ..ToolQuery::default()
    };
    match session(page).explain_search(&query).await {
        Err(error) => html! { p.notice.bad { (line(&error.to_string(), 500)) } },
        Ok(found) => ranking(page, &found),
    }
}

/// All tools by server, a page at a time.
fn browse(page: &PageState, fields: &Fields) -> Markup {
    let host = page.source.host();
    let (mut tools, servers): (Vec<Tool>, usize) = {
        let catalog = host.catalog().read();
        (catalog.tools().cloned().collect(), catalog.servers().count())
    };
    tools
        .sort_by(|left, right| (&left.id.server, &left.name).cmp(&(&right.id.server, &right.name)));
    let pages = tools.len().div_ceil(LISTED).max(1);
    let number = fields.get("page").parse::<usize>().unwrap_or(1).clamp(1, pages);
    let first = (number - 1) * LISTED;
    let shown = &tools[first..(first + LISTED).min(tools.len())];
    let link = |number: usize| format!("/ui/tools?{}", query(&[("page", &number.to_string())]));
    html! {
        p.quiet {
            (counted(tools.len() as u64, "tool")) " of " (counted(servers as u64, "server"))
            @if pages > 1 { ", page " (number) " of " (pages) }
            "."
        }
        @for of_server in shown.chunk_by(|left, right| left.id.server == right.id.server) {
            @let server = of_server[0].id.server.as_str();
            h2 { a href=(format!("/ui/servers/{}", path_part(server))) { (name(server)) } }
            div.scroll tabindex="0" role="region" aria-label=(format!("Tools of {}", toolgate_policy::definitions::shown(server, 80))) {
                table.stack {
                    thead { tr { th scope="col" { "Tool" } th scope="col" { "What it does" } th.number scope="col" { "Tokens" } } }
                    tbody {
                        @for tool in of_server {
                            tr {
                                th scope="row" { a href=(format!("/ui/tools/{}", path_part(tool.name.as_str()))) { (name(tool.name.as_str())) } }
                                td data-label="What it does" { (line(&page.clean(tool.definition.description()), 160)) }
                                td.number data-label="Tokens" { (grouped(u64::from(tool.definition.tokens()))) }
                            }
                        }
                    }
                }
            }
        }
        @if pages > 1 {
            p.row {
                @if number > 1 { a.button href=(link(number - 1)) { "Page before" } }
                @if number < pages { a.button href=(link(number + 1)) { "Next page" } }
            }
        }
    }
}

fn ranking(page: &PageState, explained: &ExplainedSearch) -> Markup {
    let found = &explained.found;
    let weak = found.steps.iter().any(|step| step.is_weak);
    html! {
        @for note in found.notes() { p.notice { (line(note, 500)) } }
        @if let Some(corrected) = &explained.corrected { p.quiet { "Searched as " q { (line(corrected, 500)) } "." } }
        @if found.tools.is_empty() { p { "No tool was found." } }
        @else {
            @if weak { p.notice { "None of these fits well, and a model is told so." } }
            div.scroll tabindex="0" role="region" aria-label="Ranking" {
                table.stack.dense {
                    thead { tr {
                        th.number scope="col" { "Place" } th scope="col" { "Tool" } th scope="col" { "What it does" }
                        th.number scope="col" { "Score" } th scope="col" { "Its parts" } th.number scope="col" { "Fit" }
                        @for strategy in &explained.strategies { th.number scope="col" { (strategy.as_str()) } }
                        th.number scope="col" { "Tokens" }
                    } }
                    tbody {
                        @for (index, (hit, why)) in found.tools.iter().zip(&explained.tools).enumerate() {
                            tr {
                                td.number data-label="Place" { (index + 1) }
                                th scope="row" { a href=(format!("/ui/tools/{}", path_part(hit.tool.name.as_str()))) { (name(hit.tool.name.as_str())) } }
                                td data-label="What it does" { (line(&page.clean(hit.tool.definition.description()), 100)) }
                                td.number data-label="Score" { (number(why.score)) }
                                td data-label="Its parts" { (parts(why, hit.is_loaded)) }
                                td.number data-label="Fit" { (number(why.fit)) }
                                @for (strategy, place) in explained.strategies.iter().zip(&why.places) {
                                    td.number data-label=(strategy.as_str()) { @if let Some(place) = place { (place.rank) span.quiet.small { " (" (number(Some(place.score))) ")" } } }
                                }
                                td.number data-label="Tokens" { (grouped(u64::from(hit.tool.definition.tokens()))) }
                            }
                        }
                    }
                }
            }
            p.quiet.small { "Words, meaning and names make the score; past use moves tools. Under each strategy: the place that it alone gives, and its score. Fit can be compared between queries, scores cannot." }
        }
    }
}

/// What a score is made of, as bars that lie one after the other, and in words.
fn parts(why: &ExplainedTool, is_loaded: bool) -> Markup {
    const WIDTH: f32 = 120.0;
    let parts = why.parts.unwrap_or_default();
    let share = |part: f32| (part.clamp(0.0, 1.0) * WIDTH).round();
    let (words, meaning) = (share(parts.words), share(parts.meaning));
    html! {
        @if why.parts.is_some() {
            svg viewBox="0 0 120 8" width="120" height="8" aria-hidden="true" {
                rect.bar x="0" y="0" width=(words) height="8" {}
                rect.bar.soft x=(words) y="0" width=(meaning.min(WIDTH - words)) height="8" {}
            }
            span.small.parts {
                span { "words " (number(Some(parts.words))) }
                " " span { "meaning " (number(Some(parts.meaning))) }
                @if parts.named > 0.0 { " " span { "named " (number(Some(parts.named))) } }
            }
        }
        @if why.is_remembered {
            br; span.small { "raised by past use" @if let Some(before) = why.without_past_use { " from " (before) } }
        }
        @if is_loaded { br; span.quiet.small { "listed" } }
    }
}

fn number(value: Option<f32>) -> String {
    value.map(|value| format!("{value:.2}")).unwrap_or_default()
}

pub(crate) async fn show_one(
    State(page): Shared,
    Extension(request): Asked,
    Path(tool): Path<String>,
) -> Response {
    tool_page(page, request, &tool, html! {}).await
}

/// Calls a tool with what the form says, as the person at the page.
pub(crate) async fn call(
    State(page): Shared,
    Extension(request): Asked,
    Path(tool): Path<String>,
) -> Response {
    let known = page.source.host().catalog().read().resolve(&tool).cloned();
    let arguments = match known {
        Some(known) => arguments(&known, &request.form),
        None if is_empty(&request.form) => Ok(Map::new()),
        // Without the definition nobody knows what the fields of the form are.
        None => Err("The tool is not known. Its server may still start: call it again.".to_owned()),
    };
    let outcome = match arguments {
        Err(why) => html! { p.notice.bad role="alert" { (line(&why, 500)) } },
        Ok(arguments) => {
            let asked = Map::from_iter([
                ("name".to_owned(), json!(tool)),
                ("arguments".to_owned(), Value::Object(arguments)),
            ]);
            let called =
                session(&page).call_exact("call_tool", asked, CallOptions::default()).await;
            match question(&page, &tool, &called).await {
                Some(question) => waits(&question),
                None => result(&page, called),
            }
        }
    };
    tool_page(page, request, &tool, outcome).await
}

/// The question that a call waits for. Only one about this tool, because the text may be that of a server.
async fn question(
    page: &Arc<PageState>,
    tool: &str,
    called: &Result<Value, CallFailure>,
) -> Option<String> {
    let result = called.as_ref().ok().filter(|result| result["isError"] == true)?;
    let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    let open = in_background(page, PageState::waiting).await.unwrap_or_default();
    let of_tool = open.iter().filter(|call| call.request.name == tool);
    let mut names = of_tool.map(|call| call.approval.reference().to_string());
    names.find(|name| text.contains(name.as_str()))
}

fn waits(question: &str) -> Markup {
    html! {
        p.notice role="status" {
            "The call was not made: it waits for a person. "
            a href=(format!("/ui/approvals/{}", path_part(question))) { "Decide it" }
            ", and then call the tool again. " code { "toolgate approve" } " does the same in a terminal."
        }
    }
}

fn result(page: &PageState, called: Result<Value, CallFailure>) -> Markup {
    let failed =
        |why: &str| html! { p.notice.bad role="alert" { (line(&page.clean(why), 2_000)) } };
    let result = match called {
        Ok(result) => result,
        Err(CallFailure::UnknownTool(message) | CallFailure::Refused { message, .. }) => {
            return failed(&message);
        }
        Err(CallFailure::Cancelled) => return failed("The call was cancelled."),
    };
    let is_error = result["isError"] == true;
    let blocks = result["content"].as_array().cloned().unwrap_or_default();
    html! {
        section aria-labelledby="result" {
            h2 id="result" { @if is_error { "The tool returned an error" } @else { "Result" } }
            @for content in &blocks {
                @match content["text"].as_str() {
                    Some(text) => { (block(&page.clean(text))) }
                    None => { (json(&page.clean(&content.to_string()))) }
                }
            }
            @if let Some(data) = result.get("structuredContent") {
                details { summary { "Structured content" } (json(&page.clean(&data.to_string()))) }
            }
        }
    }
}

async fn tool_page(
    page: Arc<PageState>,
    request: PageRequest,
    wanted: &str,
    outcome: Markup,
) -> Response {
    let session = session(&page);
    let mut found = session.tool(wanted).await;
    if found.is_err() {
        // Its server may start just now.
        page.source.host().known_soon(STARTS).await;
        found = session.tool(wanted).await;
    }
    let tool = match found {
        Ok(found) => found.tool,
        Err(nearest) => {
            let content = html! {
                p { "There is no tool of this name." }
                @if !nearest.is_empty() { ul { @for near in &nearest { li { a href=(format!("/ui/tools/{}", path_part(near))) { (name(near)) } } } } }
            };
            let shown = layout::page(&page, &request, Screen::Tools, "No such tool", &content);
            return (StatusCode::NOT_FOUND, shown).into_response();
        }
    };
    let known = definitions::latest(&page);
    let is_its = |one: &&FlaggedDefinition| one.tool.as_deref() == Some(tool.name.as_str());
    let flagged: Vec<&FlaggedDefinition> = known.flagged.iter().filter(is_its).collect();
    let definition = tool.definition.to_value();
    let pretty = serde_json::to_string_pretty(&definition).unwrap_or_default();
    let content = html! {
        p { a href="/ui/tools" { "Search tools" } " · server " a href=(format!("/ui/servers/{}", path_part(tool.id.server.as_str()))) { (name(tool.id.server.as_str())) } }
        (block(&page.clean(tool.definition.description())))
        @if !flagged.is_empty() {
            div.notice.bad role="note" {
                p { "Its definition is suspicious:" }
                ul { @for one in &flagged { li { (line(&page.clean(&one.text), 500)) } } }
            }
        }
        (outcome)
        h2 { "Call it" }
        p.quiet { "The policy decides on the call, as on a call of an agent." }
        (call_form(&page, &request, &tool))
        h2 { "Definition" }
        details open { summary { "TypeScript" } (block(&page.clean(&session.declaration(&tool, Language::TypeScript)))) }
        details { summary { "Python" } (block(&page.clean(&session.declaration(&tool, Language::Python)))) }
        details { summary { "JSON, " (grouped(u64::from(tool.definition.tokens()))) " tokens" } (block(&page.clean(&pretty))) }
    };
    let title = shown(tool.name.as_str(), 80);
    layout::page(&page, &request, Screen::Tools, &title, &content).into_response()
}

/// A form from the schema: a field for each argument that is a text, a number, a choice or a boolean; others are JSON. It
/// has what was typed before.
fn call_form(page: &PageState, request: &PageRequest, tool: &Tool) -> Markup {
    let raw = request.form.some("raw").unwrap_or("{}");
    let (none, schema) = (Map::new(), &tool.definition.input_schema());
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let action = format!("/ui/tools/{}", path_part(tool.name.as_str()));
    html! {
        form.panel method="post" action=(action) {
            (form_token(request))
            @for (key, property) in properties.iter().take(MOST_FIELDS) {
                @let is_required = required.contains(&key.as_str());
                p {
                    label {
                        span { (name(key)) @if is_required { " (required)" } @if let Some(text) = property["description"].as_str() { ": " (line(&page.clean(text), 200)) } }
                        (field(key, &ArgumentKind::of(schema, property), is_required, &request.form))
                    }
                }
            }
            details open[properties.is_empty() || raw != "{}"] {
                summary { "Further arguments, as JSON" }
                label { "An object; the fields above come before it" textarea name="raw" rows="4" spellcheck="false" { "\n" (raw) } }
            }
            button.main { "Call " (shown(tool.name.as_str(), 60)) }
        }
    }
}

fn field(key: &str, kind: &ArgumentKind<'_>, is_required: bool, typed: &Fields) -> Markup {
    let field = format!("argument.{key}");
    let typed = typed.get(&field);
    if !kind.choices.is_empty() && !kind.is_open {
        return html! {
            select name=(field) {
                @if !is_required { option value="" { "" } }
                @for value in kind.choices.iter().take(MOST_CHOICES).map(|value| ArgumentKind::written(value)) {
                    option value=(value) selected[typed == value] { (shown(&value, 80)) }
                }
            }
        };
    }
    match &kind.types[..] {
        ["boolean"] => {
            html! {
                select name=(field) {
                    option value="" { "" }
                    option value="true" selected[typed == "true"] { "yes" }
                    option value="false" selected[typed == "false"] { "no" }
                }
            }
        }
        ["integer" | "number"] | ["integer", "number"] => {
            html! { input type="number" step="any" name=(field) value=(typed); }
        }
        several if several.contains(&"string") => html! {
            input type="text" name=(field) value=(typed) placeholder=[(several.len() > 1).then_some("text, or JSON")] autocomplete="off";
        },
        _ => html! {
            textarea name=(field) rows="2" placeholder="JSON" spellcheck="false" { "\n" (typed) }
        },
    }
}

/// Whether a form says no arguments.
fn is_empty(form: &Fields) -> bool {
    form.some("raw").is_none() && form.beginning("argument.").all(|(_, text)| text.is_empty())
}

/// The arguments that a form says. Empty fields say nothing.
fn arguments(tool: &Tool, form: &Fields) -> Result<Map<String, Value>, String> {
    let schema = &tool.definition.input_schema();
    let mut arguments = match form.some("raw").map(serde_json::from_str::<Value>) {
        None => Map::new(),
        Some(Ok(Value::Object(arguments))) => arguments,
        Some(Ok(_)) => return Err("The further arguments are JSON, but no object.".to_owned()),
        Some(Err(error)) => return Err(format!("The further arguments are not JSON: {error}.")),
    };
    for (key, text) in form.beginning("argument.").filter(|(_, text)| !text.is_empty()) {
        let kind = ArgumentKind::of(schema, &schema["properties"][key]);
        let value = kind
            .read(text)
            .map_err(|error| format!("The argument {} is not JSON: {error}.", shown(key, 80)))?;
        arguments.insert(key.to_owned(), value);
    }
    Ok(arguments)
}
