//! The audit log: a filter, the state of its chain, and an export.

use std::{
    ops::{ControlFlow, Range},
    sync::atomic::{AtomicU64, Ordering},
};

use axum::{
    Extension,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use maud::{Markup, html};
use serde_json::json;
use toolgate_policy::definitions::shown;
use toolgate_store::{AuditFilter, AuditRecord, named_time};

use super::{Asked, Shared, in_background, servers::state};
use crate::{
    PageState,
    form::{Fields, path_part, query},
    lately,
    layout::{self, Screen},
    live,
    text::{grouped, line, moment, name, took},
};

/// How many records a page has.
const SHOWN: usize = 100;
/// How many records are looked at for a page, so that a filter that fits nothing ends.
const LOOKED_AT: usize = 50_000;
/// How many bytes an export has at most. The command has no limit.
const EXPORTED: usize = 32 * 1024 * 1024;
/// The fields of the filter, and what they are called.
const FIELDS: [(&str, &str); 5] = [
    ("tool", "Tool"),
    ("server", "Server"),
    ("caller", "Caller contains"),
    ("session", "Session"),
    ("run", "Run"),
];

const TIMES: [(&str, &str); 2] = [("since", "From (UTC)"), ("until", "Until (UTC)")];

pub(crate) async fn show(State(page): Shared, Extension(request): Asked) -> Response {
    let fields = request.query.clone();
    let list = match filter(&fields) {
        Ok(filter) => in_background(&page, move |page| list(page, &fields, &filter)).await,
        Err(why) => Some(html! { p.notice.bad role="alert" { (line(&why, 300)) } }),
    };
    let list = list.unwrap_or_default();
    // Earlier records do not change, and the chain is verified when somebody asks.
    let is_newest = !["before", "verify"].iter().any(|name| request.query.some(name).is_some())
        && filter(&request.query).is_ok();
    let stream = format!("/ui/audit/live?{}", query(&kept(&request.query)));
    let content = html! {
        p.lead { "Every decision and call. " code { "toolgate audit" } " shows the same in a terminal." }
        (filter_form(&request.query))
        @if is_newest { (layout::live(&page, &request, "records", stream.trim_end_matches('?'), &list)) } @else { (list) }
    };
    layout::page(&page, &request, Screen::Audit, "Audit log", &content).into_response()
}

pub(crate) async fn live(State(page): Shared, Extension(request): Asked) -> Response {
    let fields = request.query.clone();
    let Ok(wanted) = filter(&fields) else { return StatusCode::BAD_REQUEST.into_response() };
    let newest = NewestFitting {
        filter: wanted,
        seen: AtomicU64::new(u64::MAX),
        fitting: AtomicU64::new(0),
    };
    live::stream_of(
        &page,
        &request,
        move |page| (newest.number(page), 0),
        None,
        // Times that are so long ago move on.
        move |page| filter(&fields).map(|filter| list(page, &fields, &filter)).unwrap_or_default(),
    )
}

/// The newest record that fits a filter. Each record is looked at once.
struct NewestFitting {
    filter: AuditFilter,
    /// The number of the newest record that was looked at; the largest number before anything was.
    seen: AtomicU64,
    fitting: AtomicU64,
}

impl NewestFitting {
    fn number(&self, page: &PageState) -> u64 {
        let (seen, mut newest, mut fitting) = (self.seen.load(Ordering::Relaxed), 0, None);
        let _ = page.source.store().audit().read_back(None, &mut |found| {
            newest = newest.max(found.number);
            // The list has what was there before.
            if found.number <= seen || fitting.is_some() {
                return ControlFlow::Break(());
            }
            if self.filter.fits(found.time, &found.record) {
                fitting = Some(found.number);
            }
            ControlFlow::Continue(())
        });
        self.seen.store(newest, Ordering::Relaxed);
        if let Some(fitting) = fitting {
            self.fitting.store(fitting, Ordering::Relaxed);
        }
        self.fitting.load(Ordering::Relaxed)
    }
}

/// The lines that fit the filter, as `toolgate audit --json` writes them; of many the newest.
pub(crate) async fn export(State(page): Shared, Extension(request): Asked) -> Response {
    let filter = match filter(&request.query) {
        Ok(filter) => filter,
        Err(why) => {
            let content = html! { p.notice.bad role="alert" { (line(&why, 300)) } (filter_form(&request.query)) };
            let shown = layout::page(&page, &request, Screen::Audit, "Audit log", &content);
            return (StatusCode::BAD_REQUEST, shown).into_response();
        }
    };
    let lines = in_background(&page, move |page| {
        let (mut lines, mut bytes) = (Vec::new(), 0);
        let read = page.source.store().audit().read_back(None, &mut |seen| {
            if filter.fits(seen.time, &seen.record) {
                let mut row = json!(seen.record);
                row["time"] = json!(seen.time);
                let row = format!("{row}\n");
                bytes += row.len();
                lines.push(row);
            }
            if bytes < EXPORTED { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        lines.reverse();
        read.map(|()| lines.concat()).unwrap_or_default()
    });
    let headers = [
        (header::CONTENT_TYPE, "application/x-ndjson; charset=utf-8"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"audit.jsonl\""),
    ];
    (headers, lines.await.unwrap_or_default()).into_response()
}

/// The filter, or why it is none.
fn filter(fields: &Fields) -> Result<AuditFilter, String> {
    let field = |name: &str| fields.some(name).map(str::to_owned);
    Ok(AuditFilter {
        tool: field("tool"),
        server: field("server"),
        session: field("session"),
        run: field("run"),
        caller: field("caller"),
        verdict: field("verdict"),
        since: time(fields.get("since"))?.map(|time| time.start),
        until: time(fields.get("until"))?.map(|time| time.end),
    })
}

/// A time in milliseconds, as the screen shows it, as a day, or as how long ago it is; `None` if the text says nothing.
fn time(text: &str) -> Result<Option<Range<u64>>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    match named_time(text, lately::now() / 1_000) {
        Some(time) => Ok(Some(time.start * 1_000..time.end * 1_000)),
        None => Err(format!(
            "`{}` is no time. Write it in UTC, as 2026-11-18 14:00 or 2026-11-18, or how long ago it is, as 30m, 12h or 7d.",
            shown(text, 60)
        )),
    }
}

fn filter_form(fields: &Fields) -> Markup {
    let verdict = fields.get("verdict");
    let kept = kept(fields);
    html! {
        form.row method="get" action="/ui/audit" role="search" {
            @for (key, words) in FIELDS { label { (words) input type="text" name=(key) value=(fields.get(key)) autocomplete="off"; } }
            @for (key, words) in TIMES { label { (words) input type="text" name=(key) value=(fields.get(key)) placeholder="2026-11-18 14:00, or 30m" autocomplete="off"; } }
            label {
                "Decision"
                select name="verdict" {
                    option value="" { "all" }
                    @for one in ["allow", "ask", "deny"] { option value=(one) selected[verdict == one] { (one) } }
                }
            }
            button.main { "Filter" }
            a.button href=(format!("/ui/audit/export?{}", query(&kept))) { "Export" }
            a.button href="/ui/audit?verify=yes" { "Verify the chain" }
        }
    }
}

/// The fields of the filter, as they are.
fn kept(fields: &Fields) -> Vec<(&str, &str)> {
    let own = FIELDS.iter().map(|(key, _)| (*key, fields.get(key)));
    let times = TIMES.iter().map(|(key, _)| (*key, fields.get(key)));
    own.chain(times).chain([("verdict", fields.get("verdict"))]).collect()
}

/// Whether every line is there and as it was written. This reads the whole log.
fn verified(page: &PageState) -> Markup {
    let mut problems = Vec::new();
    let read = page.source.store().audit().read(&mut |seen| {
        if let Err(problem) = seen
            && problems.len() < 20
        {
            problems.push(problem.to_string());
        }
    });
    let lines = match read {
        Ok(extent) => extent.lines,
        Err(error) => return html! { p.notice.bad { (line(&error.to_string(), 500)) } },
    };
    html! {
        @if problems.is_empty() {
            p role="status" { (state("ok")) " The chain is whole: " (grouped(lines)) " lines." }
        } @else {
            div.notice.bad role="alert" {
                p { "The chain is not whole:" }
                ul { @for problem in &problems { li { (line(problem, 300)) } } }
            }
        }
    }
}

/// The newest records that fit, or those before one. No more of the log is read than that takes, up to a limit.
fn list(page: &PageState, fields: &Fields, filter: &AuditFilter) -> Markup {
    let before = fields.get("before").parse::<u64>().ok();
    let (mut found, mut looked_at) = (Vec::new(), 0_usize);
    let (mut last, mut is_over) = (None, false);
    let read = page.source.store().audit().read_back(before, &mut |seen| {
        looked_at += 1;
        if found.len() == SHOWN || looked_at > LOOKED_AT {
            return ControlFlow::Break(());
        }
        last = Some(seen.number);
        // The newest come first, so nothing before the time fits.
        if filter.since.is_some_and(|since| seen.time < since) {
            is_over = true;
            return ControlFlow::Break(());
        }
        if filter.fits(seen.time, &seen.record) {
            found.push(seen);
        }
        ControlFlow::Continue(())
    });
    if let Err(error) = read {
        return html! { p.notice.bad { (line(&error.to_string(), 500)) } };
    }
    let is_cut = looked_at > LOOKED_AT;
    let has_more =
        !is_over && (is_cut || found.len() == SHOWN && last.is_some_and(|number| number > 1));
    let mut next = kept(fields);
    let last = last.unwrap_or_default().to_string();
    next.push(("before", &last));
    html! {
        @if !fields.get("verify").is_empty() { (verified(page)) }
        @if let Some(damage) = page.source.store().audit().damage() {
            p.notice.bad role="alert" { (line(&damage.to_string(), 300)) }
        }
        @if found.is_empty() { p { "No record fits" @if is_cut { " among the " (grouped(LOOKED_AT as u64)) " that were looked at" } "." } }
        @else {
            div.scroll tabindex="0" role="region" aria-label="Records" {
                table.stack {
                    thead { tr {
                        th scope="col" { "Time (UTC)" } th scope="col" { "What" } th scope="col" { "Decision" } th scope="col" { "Outcome" }
                        th.number scope="col" { "Took" } th scope="col" { "Caller" } th scope="col" { "Rule" }
                    } }
                    tbody { @for seen in &found { (row(page, seen.time, &seen.record)) } }
                }
            }
        }
        @if has_more { p { a.button href=(format!("/ui/audit?{}", query(&next))) { "Earlier records" } } }
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
            td.time data-label="Time (UTC)" { (moment(time)) }
            th scope="row" { (name(&what)) }
            td data-label="Decision" { @if !record.verdict.is_empty() { (state(&record.verdict)) } }
            td data-label="Outcome" { @if !record.outcome.is_empty() { (state(&record.outcome)) } }
            td.number data-label="Took" { @if record.duration > 0 { (took(record.duration / 1_000)) } }
            td data-label="Caller" {
                (line(&record.caller, 60))
                @if let Some(run) = &record.run { br; a.small href=(format!("/ui/runs/{}", path_part(run))) { (line(run, 40)) } }
            }
            td.small data-label="Rule" { (line(&page.clean(&record.rule), 160)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_shown() {
        let shown = time("2026-11-18 20:50").unwrap();
        assert_eq!(shown, time("2026-11-18T20:50:00Z").unwrap());
        assert_eq!((shown.unwrap().start, time(" ")), (1_795_035_000_000, Ok(None)));
        assert!(time("30m").unwrap().unwrap().start >= time("31m").unwrap().unwrap().start);
        insta::assert_snapshot!(time("garbage").unwrap_err(), @"`garbage` is no time. Write it in UTC, as 2026-11-18 14:00 or 2026-11-18, or how long ago it is, as 30m, 12h or 7d.");
    }
}
