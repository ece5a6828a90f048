//! The runs of scripts: a list, and each with its calls over time.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use axum::{
    Extension,
    extract::{Path, State},
    http::header,
    response::{IntoResponse, Response},
};
use maud::{Markup, html};
use toolgate_host::{RunFlow, RunStanding, error_message};
use toolgate_policy::{
    Contact,
    definitions::{shown, spelled_out},
};
use toolgate_store::{PersonWait, RunCall, RunDetail, RunFilter, RunState, RunSummary};

use super::{Asked, Shared, done, in_background, servers::state};
use crate::{
    PageState, flow_graph,
    form::{Fields, path_part, query},
    guard::PageRequest,
    lately,
    layout::{self, Screen, form_token},
    live, run_flows,
    running::{self, PageRun},
    text::{beginning, block, grouped, json, line, moment, name, took},
    timeline,
};

/// How many runs a page lists.
const LISTED: u32 = 50;
/// More calls of a run are not shown.
const MOST_CALLS: usize = 500;
/// The contents of so many calls are on the screen. Those of others are one press away.
const MOST_CONTENTS: usize = 100;
/// Longer arguments and results are cut.
const SHOWN_BYTES: usize = 4_000;
/// The beginning of what is shown in one line.
const BRIEF: usize = 400;

pub(crate) async fn show(State(page): Shared, Extension(request): Asked) -> Response {
    let fields = request.query.clone();
    let is_first = fields.some("before").is_none();
    let is_all = filter(&fields) == RunFilter::default();
    let list = in_background(&page, move |page| listed(page, &fields)).await.unwrap_or_default();
    let content = html! {
        p.lead { code { "toolgate runs" } " shows the same in a terminal." }
        (filter_form(&request.query))
        @if is_first && is_all { (layout::live(&page, &request, "runs", "/ui/runs-live", &list)) }
        @else {
            p { a href="/ui/runs" { "Newest runs" } }
            (list)
        }
    };
    let title = if is_first { "Runs" } else { "Earlier runs" };
    layout::page(&page, &request, Screen::Runs, title, &content).into_response()
}

pub(crate) async fn live_list(State(page): Shared, Extension(request): Asked) -> Response {
    live::stream(&page, &request, |page| listed(page, &Fields::default()))
}

pub(crate) async fn show_one(
    State(page): Shared,
    Extension(request): Asked,
    Path(id): Path<String>,
) -> Response {
    let stream = format!("/ui/runs/{}/live", path_part(&id));
    let (asked, title) = (request.clone(), format!("Run {}", shown(&id, 60)));
    let parts = in_background(&page, move |page| {
        let detail = page.journal()?.run(&id).ok()??;
        Some((part(page, &asked, &detail), script(page, &detail)))
    });
    let Some((part, script)) = parts.await.flatten() else {
        return super::nothing_here(State(page), Extension(request)).await;
    };
    let content = html! {
        p { a href="/ui/runs" { "All runs" } }
        (layout::live(&page, &request, "run", &stream, &part))
        (script)
    };
    layout::page(&page, &request, Screen::Runs, &title, &content).into_response()
}

pub(crate) async fn live_one(
    State(page): Shared,
    Extension(request): Asked,
    Path(id): Path<String>,
) -> Response {
    let (asked, is_running) = (request.clone(), Arc::new(AtomicBool::new(false)));
    let runs = Arc::clone(&is_running);
    // The bars of a run grow while it runs.
    let clock = move |_: &PageState| {
        (if runs.load(Ordering::Relaxed) { lately::now() / 1_000 } else { 0 }, 0)
    };
    live::stream_of(&page, &request, clock, None, move |page| {
        let found = page.journal().and_then(|journal| journal.run(&id).ok()).flatten();
        let detail = found.as_ref();
        let state = detail.map(|detail| standing(page, &detail.summary));
        let is_now = state == Some(RunStanding::Is(RunState::Running));
        is_running.store(is_now, Ordering::Relaxed);
        detail.map(|detail| part(page, &asked, detail)).unwrap_or_default()
    })
}

/// Resumes a run, or stops one of the page.
pub(crate) async fn change(
    State(page): Shared,
    Extension(request): Asked,
    Path(id): Path<String>,
) -> Response {
    let path = format!("/ui/runs/{}", path_part(&id));
    let name = shown(&id, 60);
    let said = match request.form.get("action") {
        "resume" if waits(&page, &id).await => {
            format!(
                "Run {name} still waits for a person: decide its call on the screen of approvals first."
            )
        }
        "resume" => match running::begin(&page, PageRun::Resumed(id)).await {
            Ok(_) => format!("Run {name} goes on."),
            Err(why) => format!("Run {name} was not resumed: {}", page.clean(&why)),
        },
        "stop" if page.runs.stop(&id) => format!("Run {name} was stopped."),
        "stop" => format!("Run {name} is not one of this page, or has ended."),
        _ => "The action is not known.".to_owned(),
    };
    done(&page, &request, &path, said)
}

/// Whether a call of a run waits for an answer.
async fn waits(page: &Arc<PageState>, id: &str) -> bool {
    let id = id.to_owned();
    let open = in_background(page, PageState::waiting).await.unwrap_or_default();
    open.iter().any(|call| call.request.run.as_deref() == Some(id.as_str()))
}

/// The newest runs; none if they cannot be read.
pub(crate) fn newest(page: &PageState, most: u32) -> Vec<RunSummary> {
    page.journal().and_then(|journal| journal.runs(most).ok()).unwrap_or_default()
}

fn filter(fields: &Fields) -> RunFilter {
    let field = |name: &str| fields.some(name).map(str::to_owned);
    let state = fields.get("state");
    RunFilter {
        state: RunState::LISTED.into_iter().find(|known| known.name() == state),
        language: field("language"),
        caller: field("caller"),
        tool: field("tool"),
    }
}

fn filter_form(fields: &Fields) -> Markup {
    let chosen = |field: &str, value: &str| fields.get(field) == value;
    html! {
        form.row method="get" action="/ui/runs" role="search" {
            label {
                "State"
                select name="state" {
                    option value="" { "all" }
                    @for one in RunState::LISTED {
                        option value=(one.name()) selected[chosen("state", one.name())] {
                            (one.name()) @if one == RunState::Running { " or interrupted" }
                        }
                    }
                }
            }
            label {
                "Language"
                select name="language" {
                    option value="" { "all" }
                    @for one in ["typescript", "python"] { option value=(one) selected[chosen("language", one)] { (one) } }
                }
            }
            label { "Caller contains" input type="text" name="caller" value=(fields.get("caller")) autocomplete="off"; }
            label { "Tool" input type="text" name="tool" value=(fields.get("tool")) autocomplete="off" spellcheck="false"; }
            button.main { "Filter" }
        }
    }
}

/// The query of the page after a run.
fn kept<'f>(fields: &'f Fields, last: &'f str) -> Vec<(&'f str, &'f str)> {
    let own = ["state", "language", "caller", "tool"].map(|name| (name, fields.get(name)));
    [("before", last)].into_iter().chain(own).collect()
}

/// A page of the runs that fit.
fn listed(page: &PageState, fields: &Fields) -> Markup {
    let Some(journal) = page.journal() else {
        return html! { p.quiet { "Runs are not kept." } };
    };
    let filter = filter(fields);
    let before = fields.get("before").split_once('-');
    let before = before.and_then(|(at, id)| Some((at.parse::<u64>().ok()?, id)));
    // One more than is shown says that there are earlier ones.
    let found = match before {
        None if filter == RunFilter::default() => journal.runs(LISTED + 1),
        before => journal.runs_like(&filter, before, LISTED + 1),
    };
    let mut runs = match found {
        Ok(runs) => runs,
        Err(error) => return html! { p.notice.bad { (line(&error.to_string(), 500)) } },
    };
    let has_more = runs.len() > LISTED as usize;
    runs.truncate(LISTED as usize);
    let last = runs.last().filter(|_| has_more).map(|run| format!("{}-{}", run.created, run.id));
    html! {
        (table(page, &runs))
        @if let Some(last) = last {
            p { a.button href=(format!("/ui/runs?{}", query(&kept(fields, &last)))) { "Earlier runs" } }
        }
    }
}

/// A table of runs.
pub(crate) fn table(page: &PageState, runs: &[RunSummary]) -> Markup {
    if runs.is_empty() {
        return html! { p.quiet { "There are no such runs." } };
    }
    html! {
        div.scroll tabindex="0" role="region" aria-label="Runs" {
            table.stack {
                thead { tr {
                    th scope="col" { "Run" } th scope="col" { "Begun (UTC)" } th scope="col" { "State" } th scope="col" { "Language" }
                    th.number scope="col" { "Calls" } th.number scope="col" { "Failed" } th.number scope="col" { "Took" }
                } }
                tbody {
                    @for run in runs {
                        tr {
                            th scope="row" { a href=(format!("/ui/runs/{}", path_part(&run.id))) { (name(&run.id)) } }
                            td.time data-label="Begun (UTC)" { (moment(run.created)) }
                            td data-label="State" { (state(standing(page, run).name())) }
                            td data-label="Language" { (line(&run.language, 20)) }
                            td.number data-label="Calls" { (grouped(run.calls)) }
                            td.number data-label="Failed" { (grouped(run.failed)) }
                            td.number data-label="Took" { @if let Some(ended) = run.ended { (took(ended.saturating_sub(run.created))) } }
                        }
                    }
                }
            }
        }
    }
}

fn standing(page: &PageState, run: &RunSummary) -> RunStanding {
    let found = page.journal().map(|journal| RunStanding::of(&*journal, run));
    found.and_then(Result::ok).unwrap_or(RunStanding::Is(run.state))
}

/// What changes of a run while it runs.
pub(crate) fn part(page: &PageState, request: &PageRequest, detail: &RunDetail) -> Markup {
    let run = &detail.summary;
    let standing = standing(page, run);
    let waited = page.journal().and_then(|journal| journal.waits_of(&run.id).ok());
    let waited = waited.unwrap_or_default();
    let is_waiting = |call: &RunCall| timeline::state(standing, call, &waited) == "waiting";
    // The call of a run whose client waits is not in the journal before it is allowed.
    let goes_on = standing == RunStanding::Is(RunState::Running);
    let is_asked = goes_on && waited.iter().any(|wait| wait.answered.is_none());
    let waits = is_asked || detail.calls.iter().any(is_waiting);
    let has_unknown = detail.calls.iter().any(|call| standing.of_call(call) == "unknown");
    let resumes = standing == RunStanding::Interrupted
        || matches!(run.state, RunState::Waiting | RunState::Failed);
    let stops = page.runs.has(&run.id) && standing == RunStanding::Is(RunState::Running);
    let action = format!("/ui/runs/{}", path_part(&run.id));
    let found = run_flows::latest(page, detail);
    let flows: &[RunFlow] = found.as_deref().map(Vec::as_slice).unwrap_or_default();
    html! {
        dl.facts {
            dt { "Run" } dd { (line(&run.id, 80)) }
            dt { "State" } dd { (state(standing.name())) }
            dt { "Language" } dd { (line(&run.language, 40)) }
            dt { "Begun" } dd { (moment(run.created)) " UTC by " (line(&run.session, 128)) }
            @if let Some(ended) = run.ended { dt { "Took" } dd { (took(ended.saturating_sub(run.created))) } }
        }
        @if waits { p.notice { "A call waits for a person: " a href="/ui/approvals" { "approvals" } "." } }
        @if resumes || stops {
            form.row method="post" action=(action) {
                (form_token(request))
                @if stops { button.no name="action" value="stop" { "Stop" } }
                @if resumes { button.main name="action" value="resume" { "Resume" } }
            }
        }
        @if resumes {
            p.quiet {
                "Completed calls are not repeated."
                @if has_unknown { " Nor are those of unknown outcome: " code { "toolgate run --resume " (line(&run.id, 80)) " --repeat-unknown" } " repeats them." }
            }
        }
        @if !detail.output.trim().is_empty() { h2 { "Output" } (block(&page.clean(detail.output.trim_end()))) }
        // The output of a run that has ended says it too.
        @if let Some(error) = detail.error.as_ref().filter(|error| !detail.output.trim_end().ends_with(error.trim_end())) { h2 { "Error" } (block(&page.clean(error))) }
        h2 { "Calls over time" }
        (timeline::draw(detail, flows, standing, &waited))
        (calls(page, detail, standing, &waited))
        @if found.is_none() {
            p.quiet { "Which result went into which argument is being looked for. It appears here, or when you load the page again." }
        }
        @if !flows.is_empty() {
            h2 { "Data" }
            (flow_graph::draw(flows))
            (flow_table(flows))
        }
    }
}

fn script(page: &PageState, detail: &RunDetail) -> Markup {
    html! {
        h2 { "Script" }
        (block(&page.clean(&detail.code)))
        p { a.button href=(format!("/ui/playground?{}", query(&[("run", &detail.summary.id)]))) { "Open in the playground" } }
    }
}

/// The journal of the run: its calls with arguments and results.
fn calls(
    page: &PageState,
    detail: &RunDetail,
    standing: RunStanding,
    waited: &[PersonWait],
) -> Markup {
    if detail.calls.is_empty() {
        return html! { p.quiet { "The script has made no calls." } };
    }
    html! {
        div.scroll tabindex="0" role="region" aria-label="Calls" {
            table.stack {
                thead { tr {
                    th.number scope="col" { "Call" } th.number scope="col" { "At" } th.number scope="col" { "Took" } th scope="col" { "Tool" }
                    th scope="col" { "Decision" } th scope="col" { "State" } th scope="col" { "Arguments and result" }
                } }
                tbody {
                    @for (index, call) in detail.calls.iter().take(MOST_CALLS).enumerate() {
                        tr {
                            td.number data-label="Call" { (call.number) }
                            td.number data-label="At" { (took(call.made.saturating_sub(detail.summary.created))) }
                            td.number data-label="Took" { @if let Some(ended) = call.ended { (took(ended.saturating_sub(call.made))) } }
                            th scope="row" { (name(&call.name)) }
                            td data-label="Decision" { @if let Some((verdict, rule)) = &call.verdict { (state(verdict)) br; span.quiet.small { (line(rule, 120)) } } }
                            td data-label="State" { (state(timeline::state(standing, call, waited))) }
                            td data-label="Arguments and result" { @if index < MOST_CONTENTS { (contents(page, &detail.summary.id, call)) } @else { (links(&detail.summary.id, call)) } }
                        }
                    }
                }
            }
        }
    }
}

/// The arguments and the outcome of a call, cut if they are long.
fn contents(page: &PageState, run: &str, call: &RunCall) -> Markup {
    let outcome = outcome(call);
    let brief = if matches!(call.outcome, Some(Err(_))) { outcome } else { &call.arguments };
    html! {
        details {
            summary { (line(&page.clean_start(brief, BRIEF), 60)) }
            p.quiet.small { "Arguments" }
            (value(page, run, call, "arguments", &call.arguments))
            @if let Some(result) = &call.outcome {
                p.quiet.small { @if result.is_ok() { "Result" } @else { "Error" } }
                (value(page, run, call, "result", outcome))
            }
        }
    }
}

/// The addresses of what [`contents`] would show.
fn links(run: &str, call: &RunCall) -> Markup {
    html! {
        a href=(whole(run, call, "arguments")) { "Arguments" }
        @if call.outcome.is_some() { " " a href=(whole(run, call, "result")) { "Result" } }
    }
}

fn whole(run: &str, call: &RunCall, part: &str) -> String {
    format!("/ui/runs/{}/calls/{}/{part}", path_part(run), call.number)
}

fn value(page: &PageState, run: &str, call: &RunCall, part: &str, text: &str) -> Markup {
    if text.len() <= SHOWN_BYTES {
        return json(&page.clean(text));
    }
    let start = page.clean_start(text, SHOWN_BYTES);
    beginning(&start, text.len(), &whole(run, call, part))
}

/// The result of a call or its error; empty if it has none yet.
fn outcome(call: &RunCall) -> &str {
    match &call.outcome {
        Some(Ok(result)) => result,
        Some(Err(error)) => error_message(error),
        None => "",
    }
}

/// All of the arguments or of the result of a call, as plain text.
pub(crate) async fn show_whole(
    State(page): Shared,
    Extension(request): Asked,
    Path((id, number, part)): Path<(String, u64, String)>,
) -> Response {
    let found = in_background(&page, move |page| {
        let detail = page.journal()?.run(&id).ok()??;
        let call = detail.calls.iter().find(|call| call.number == number)?;
        let text = match part.as_str() {
            "arguments" => &call.arguments,
            "result" => outcome(call),
            _ => return None,
        };
        Some(spelled_out(&page.clean(text)).into_owned())
    });
    match found.await.flatten() {
        Some(text) => ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response(),
        None => super::nothing_here(State(page), Extension(request)).await,
    }
}

/// Which result went into which argument.
fn flow_table(flows: &[RunFlow]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Data" {
            table.stack {
                thead { tr { th scope="col" { "Result of" } th scope="col" { "Labels" } th scope="col" { "Went into" } th scope="col" { "Argument" } } }
                tbody {
                    @for flow in flows.iter().take(MOST_CALLS) {
                        tr {
                            th scope="row" { (end(flow.from.call, &flow.from.tool)) }
                            td data-label="Labels" { (flow.labels.to_string()) }
                            td data-label="Went into" { (end(flow.to.call, &flow.to.tool)) }
                            td data-label="Argument" {
                                @match flow.contact {
                                    Contact::Carried => { (line(flow.argument.as_deref().unwrap_or("any"), 80)) }
                                    Contact::Steered => { "steered by it" }
                                    Contact::Touched => { "made after it" }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn end(call: Option<u64>, tool: &str) -> Markup {
    html! { @if let Some(call) = call { "call " (call) " " } (line(tool, 80)) @if call.is_none() { ", before the run" } }
}
