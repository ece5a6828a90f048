//! The audit log: a filter, the state of its chain, and an export.

use std::collections::VecDeque;

use axum::{
    Extension,
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use maud::{Markup, html};
use serde_json::json;
use toolgate_store::{AuditFilter, AuditRecord};

use super::{Asked, Shared, in_background, servers::state};
use crate::{
    PageState,
    form::{Fields, path_part, query},
    layout::{self, Screen},
    text::{grouped, line, moment, name, took},
};

/// How many lines are shown, the newest.
const SHOWN: usize = 200;
/// The fields of the filter, and what they are called.
const FIELDS: [(&str, &str); 5] = [
    ("tool", "Tool"),
    ("server", "Server"),
    ("caller", "Caller contains"),
    ("session", "Session"),
    ("run", "Run"),
];

pub(crate) async fn show(State(page): Shared, Extension(request): Asked) -> Response {
    let fields = request.query.clone();
    let list = in_background(&page, move |page| list(page, &fields)).await.unwrap_or_default();
    let content = html! {
        p.lead { "Every decision and call. " code { "toolgate audit" } " shows the same in a terminal." }
        (filter_form(&request.query))
        (list)
    };
    layout::page(&page, &request, Screen::Audit, "Audit log", &content).into_response()
}

/// All lines that fit the filter, as `toolgate audit --json` writes them.
pub(crate) async fn export(State(page): Shared, Extension(request): Asked) -> Response {
    let filter = filter(&request.query);
    let lines = in_background(&page, move |page| {
        let mut lines = String::new();
        let read = page.source.store().audit().read(&mut |seen| {
            if let Ok((time, record)) = seen
                && filter.fits(time, &record)
            {
                let mut row = json!(record);
                row["time"] = json!(time);
                lines.push_str(&row.to_string());
                lines.push('\n');
            }
        });
        read.map(|_| lines).unwrap_or_default()
    });
    let headers = [
        (header::CONTENT_TYPE, "application/x-ndjson; charset=utf-8"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"audit.jsonl\""),
    ];
    (headers, lines.await.unwrap_or_default()).into_response()
}

fn filter(fields: &Fields) -> AuditFilter {
    let field = |name: &str| fields.some(name).map(str::to_owned);
    AuditFilter {
        tool: field("tool"),
        server: field("server"),
        session: field("session"),
        run: field("run"),
        caller: field("caller"),
        verdict: field("verdict"),
        since: None,
    }
}

fn filter_form(fields: &Fields) -> Markup {
    let verdict = fields.get("verdict");
    let mut kept: Vec<(&str, &str)> =
        FIELDS.iter().map(|(key, _)| (*key, fields.get(key))).collect();
    kept.push(("verdict", verdict));
    html! {
        form.row method="get" action="/ui/audit" role="search" {
            @for (key, words) in FIELDS { label { (words) input type="text" name=(key) value=(fields.get(key)) autocomplete="off"; } }
            label {
                "Decision"
                select name="verdict" {
                    option value="" { "all" }
                    @for one in ["allow", "ask", "deny"] { option value=(one) selected[verdict == one] { (one) } }
                }
            }
            button.main { "Filter" }
            a.button href=(format!("/ui/audit/export?{}", query(&kept))) { "Export" }
        }
    }
}

fn list(page: &PageState, fields: &Fields) -> Markup {
    let filter = filter(fields);
    let (mut last, mut found) = (VecDeque::new(), 0_u64);
    let mut problems = Vec::new();
    let read = page.source.store().audit().read(&mut |seen| match seen {
        Err(problem) => problems.push(problem.to_string()),
        Ok((time, record)) if filter.fits(time, &record) => {
            found += 1;
            last.push_front((time, record));
            last.truncate(SHOWN);
        }
        Ok(_) => {}
    });
    let lines = match read {
        Ok(extent) => extent.lines,
        Err(error) => return html! { p.notice.bad { (line(&error.to_string(), 500)) } },
    };
    html! {
        @if problems.is_empty() {
            p role="status" { (state("ok")) " The chain is whole: " (grouped(lines)) " lines, of which " (grouped(found)) " fit." }
        } @else {
            div.notice.bad role="alert" {
                p { "The chain is not whole:" }
                ul { @for problem in problems.iter().take(20) { li { (line(problem, 300)) } } }
            }
        }
        @if !last.is_empty() {
            div.scroll tabindex="0" role="region" aria-label="Records" {
                table {
                    thead { tr {
                        th scope="col" { "Time (UTC)" } th scope="col" { "What" } th scope="col" { "Decision" } th scope="col" { "Outcome" }
                        th.number scope="col" { "Took" } th scope="col" { "Caller" } th scope="col" { "Rule" }
                    } }
                    tbody { @for (time, record) in &last { (row(page, *time, record)) } }
                }
            }
            @if found > SHOWN as u64 { p.quiet { "These are the newest " (SHOWN) ". Export has all." } }
        }
    }
}

fn row(page: &PageState, time: u64, record: &AuditRecord) -> Markup {
    let what = match record.kind.as_str() {
        "call" => record.tool.clone(),
        kind if record.tool.is_empty() => format!("{kind} {}", record.server),
        kind => format!("{kind} {}", record.tool),
    };
    html! {
        tr {
            td.time { (moment(time)) }
            th scope="row" { (name(&what)) }
            td { @if !record.verdict.is_empty() { (state(&record.verdict)) } }
            td { @if !record.outcome.is_empty() { (state(&record.outcome)) } }
            td.number { @if record.duration > 0 { (took(record.duration / 1_000)) } }
            td {
                (line(&record.caller, 60))
                @if let Some(run) = &record.run { br; a.small href=(format!("/ui/runs/{}", path_part(run))) { (line(run, 40)) } }
            }
            td.small { (line(&page.clean(&record.rule), 160)) }
        }
    }
}
