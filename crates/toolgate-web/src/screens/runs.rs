//! The runs of scripts: a list, and each with its calls over time.

use axum::{
    Extension,
    extract::{Path, State},
    response::{IntoResponse, Response},
};
use maud::{Markup, html};
use toolgate_host::{RunFlow, RunStanding, error_message};
use toolgate_policy::Contact;
use toolgate_store::{RunCall, RunDetail, RunState, RunSummary};

use super::{Asked, Shared, in_background, servers::state};
use crate::{
    PageState,
    form::{path_part, query},
    layout::{self, Screen},
    live,
    text::{block, grouped, json, line, moment, name, took},
    timeline,
};

/// How many runs a page lists.
const LISTED: u32 = 50;
/// More calls of a run are not shown.
const MOST_CALLS: usize = 500;

pub(crate) async fn show(State(page): Shared, Extension(request): Asked) -> Response {
    let before = request.query.get("before").split_once('-');
    let before = before.and_then(|(at, id)| Some((at.parse::<u64>().ok()?, id.to_owned())));
    let Some(before) = before else {
        let list = in_background(&page, first_page).await.unwrap_or_default();
        let content = html! {
            p.lead { code { "toolgate runs" } " shows the same in a terminal." }
            (layout::live(&request, "runs", "/ui/runs-live", &list))
        };
        return layout::page(&page, &request, Screen::Runs, "Runs", &content).into_response();
    };
    let list = in_background(&page, move |page| {
        let journal = page.journal();
        let older = journal.map(|it| it.runs_before((before.0, &before.1), LISTED + 1));
        paged(page, older.and_then(Result::ok).unwrap_or_default())
    });
    let content = html! {
        p { a href="/ui/runs" { "Newest runs" } }
        (list.await.unwrap_or_default())
    };
    layout::page(&page, &request, Screen::Runs, "Earlier runs", &content).into_response()
}

pub(crate) async fn live_list(State(page): Shared, Extension(_): Asked) -> Response {
    live::stream(&page, first_page)
}

pub(crate) async fn show_one(
    State(page): Shared,
    Extension(request): Asked,
    Path(id): Path<String>,
) -> Response {
    let stream = format!("/ui/runs/{}/live", path_part(&id));
    let part = in_background(&page, move |page| detail(page, &id)).await.flatten();
    let Some(part) = part else {
        return super::nothing_here(State(page), Extension(request)).await;
    };
    let content = html! {
        p { a href="/ui/runs" { "All runs" } }
        (layout::live(&request, "run", &stream, &part))
    };
    layout::page(&page, &request, Screen::Runs, "Run", &content).into_response()
}

pub(crate) async fn live_one(
    State(page): Shared,
    Extension(_): Asked,
    Path(id): Path<String>,
) -> Response {
    live::stream(&page, move |page| detail(page, &id).unwrap_or_default())
}

/// The newest runs; none if they cannot be read.
pub(crate) fn newest(page: &PageState, most: u32) -> Vec<RunSummary> {
    page.journal().and_then(|journal| journal.runs(most).ok()).unwrap_or_default()
}

fn first_page(page: &PageState) -> Markup {
    paged(page, newest(page, LISTED + 1))
}

/// A page of runs. One more than is shown says that there are earlier ones.
fn paged(page: &PageState, mut runs: Vec<RunSummary>) -> Markup {
    let has_more = runs.len() > LISTED as usize;
    runs.truncate(LISTED as usize);
    let last = runs.last().filter(|_| has_more).map(|run| format!("{}-{}", run.created, run.id));
    html! {
        (table(page, &runs))
        @if let Some(last) = last {
            p { a.button href=(format!("/ui/runs?{}", query(&[("before", &last)]))) { "Earlier runs" } }
        }
    }
}

/// A table of runs.
pub(crate) fn table(page: &PageState, runs: &[RunSummary]) -> Markup {
    if runs.is_empty() {
        return html! { p.quiet { "No script has been run yet." } };
    }
    html! {
        div.scroll tabindex="0" role="region" aria-label="Runs" {
            table {
                thead { tr {
                    th scope="col" { "Run" } th scope="col" { "Begun (UTC)" } th scope="col" { "State" } th scope="col" { "Language" }
                    th.number scope="col" { "Calls" } th.number scope="col" { "Failed" } th.number scope="col" { "Took" }
                } }
                tbody {
                    @for run in runs {
                        tr {
                            th scope="row" { a href=(format!("/ui/runs/{}", path_part(&run.id))) { (name(&run.id)) } }
                            td.time { (moment(run.created)) }
                            td { (state(standing(page, run).name())) }
                            td { (line(&run.language, 20)) }
                            td.number { (grouped(run.calls)) }
                            td.number { (grouped(run.failed)) }
                            td.number { @if let Some(ended) = run.ended { (took(ended.saturating_sub(run.created))) } }
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

fn detail(page: &PageState, id: &str) -> Option<Markup> {
    let detail = page.journal()?.run(id).ok()??;
    let run = &detail.summary;
    let standing = standing(page, run);
    let waits = detail.calls.iter().any(|call| standing.of_call(call) == "waiting");
    let resumes = standing == RunStanding::Interrupted
        || matches!(run.state, RunState::Waiting | RunState::Failed);
    Some(html! {
        dl.facts {
            dt { "Run" } dd { (line(&run.id, 80)) }
            dt { "State" } dd { (state(standing.name())) }
            dt { "Language" } dd { (line(&run.language, 40)) }
            dt { "Begun" } dd { (moment(run.created)) " UTC by " (line(&run.session, 128)) }
            @if let Some(ended) = run.ended { dt { "Took" } dd { (took(ended.saturating_sub(run.created))) } }
        }
        @if waits { p.notice { "A call waits for a person: " a href="/ui/approvals" { "approvals" } "." } }
        @if resumes { p.quiet { code { "toolgate run --resume " (line(&run.id, 80)) } " resumes it." } }
        h2 { "Calls over time" }
        (timeline::draw(&detail, standing))
        (calls(page, &detail, standing))
        (flows(&detail.calls))
        h2 { "Script" }
        (block(&page.clean(&detail.code)))
        @if !detail.output.trim().is_empty() { h2 { "Output" } (block(&page.clean(detail.output.trim_end()))) }
        @if let Some(error) = &detail.error { h2 { "Error" } (block(&page.clean(error))) }
    })
}

/// The journal of the run: its calls with arguments and results.
fn calls(page: &PageState, detail: &RunDetail, standing: RunStanding) -> Markup {
    if detail.calls.is_empty() {
        return html! { p.quiet { "The script has made no calls." } };
    }
    html! {
        div.scroll tabindex="0" role="region" aria-label="Calls" {
            table {
                thead { tr {
                    th.number scope="col" { "Call" } th.number scope="col" { "At" } th.number scope="col" { "Took" } th scope="col" { "Tool" }
                    th scope="col" { "Decision" } th scope="col" { "State" } th scope="col" { "Arguments and result" }
                } }
                tbody {
                    @for call in detail.calls.iter().take(MOST_CALLS) {
                        tr {
                            td.number { (call.number) }
                            td.number { (took(call.made.saturating_sub(detail.summary.created))) }
                            td.number { @if let Some(ended) = call.ended { (took(ended.saturating_sub(call.made))) } }
                            th scope="row" { (name(&call.name)) }
                            td { @if let Some((verdict, rule)) = &call.verdict { (state(verdict)) br; span.quiet.small { (line(rule, 120)) } } }
                            td { (state(standing.of_call(call))) }
                            td { (contents(page, call)) }
                        }
                    }
                }
            }
        }
    }
}

fn contents(page: &PageState, call: &RunCall) -> Markup {
    let shown = match &call.outcome {
        Some(Err(error)) => error_message(error),
        _ => &call.arguments,
    };
    html! {
        details {
            summary { (line(&page.clean(shown), 60)) }
            p.quiet.small { "Arguments" }
            (json(&page.clean(&call.arguments)))
            @match &call.outcome {
                Some(Ok(result)) => { p.quiet.small { "Result" } (json(&page.clean(result))) }
                Some(Err(error)) => { p.quiet.small { "Error" } (block(&page.clean(error_message(error)))) }
                None => {}
            }
        }
    }
}

/// Which result went into which argument.
fn flows(calls: &[RunCall]) -> Markup {
    let flows = RunFlow::all(calls);
    if flows.is_empty() {
        return html! {};
    }
    html! {
        h2 { "Data" }
        div.scroll tabindex="0" role="region" aria-label="Data" {
            table {
                thead { tr { th scope="col" { "Result of" } th scope="col" { "Labels" } th scope="col" { "Went into" } th scope="col" { "Argument" } } }
                tbody {
                    @for flow in flows.iter().take(MOST_CALLS) {
                        tr {
                            th scope="row" { (end(flow.from.call, &flow.from.tool)) }
                            td { (flow.labels.to_string()) }
                            td { (end(flow.to.call, &flow.to.tool)) }
                            td {
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
