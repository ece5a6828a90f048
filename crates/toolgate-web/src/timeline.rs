//! The calls of a run over time: one line a call, so that those that run at the same time stand below each other.

use maud::{Markup, html};
use toolgate_host::{RunFlow, RunStanding};
use toolgate_policy::definitions::shown;
use toolgate_store::{PersonWait, RunCall, RunDetail, RunState};

use crate::{
    lately,
    text::{counted, took},
};

const WIDTH: u64 = 960;
/// Where the bars begin: names are left of it.
const LEFT: u64 = 220;
const ROW: u64 = 24;
const TOP: u64 = 22;
/// More calls are in the table alone.
const MOST_ROWS: usize = 100;
/// The longest name, in characters.
const NAME: usize = 30;

/// A call on its line, in milliseconds from the start of the run.
struct Row<'d> {
    call: &'d RunCall,
    from: u64,
    to: u64,
    /// When it waited for a person.
    waited: Vec<(u64, u64)>,
    state: &'static str,
}

/// Draws the calls of a run.
pub(crate) fn draw(
    detail: &RunDetail,
    flows: &[RunFlow],
    standing: RunStanding,
    waits: &[PersonWait],
) -> Markup {
    let start = detail.summary.created;
    let last = detail.calls.iter().map(|call| call.ended.unwrap_or(call.made));
    let answered = waits.iter().filter_map(|wait| wait.answered);
    // What has not ended goes on until now.
    let now = matches!(standing, RunStanding::Is(RunState::Running | RunState::Waiting));
    let now = now.then(lately::now);
    let ends = detail.summary.ended.into_iter().chain(last).chain(answered).chain(now);
    let end = ends.max().unwrap_or(start);
    let length = end.saturating_sub(start).max(1);
    let rows: Vec<Row<'_>> = detail
        .calls
        .iter()
        .take(MOST_ROWS)
        .map(|call| {
            let waited = waits.iter().filter(|wait| wait.call == call.number);
            // A question of a run that has ended waits for nobody.
            let waited: Vec<(u64, u64)> = waited
                .filter_map(|wait| Some((wait.asked, wait.answered.or(now)?)))
                .map(|(asked, answered)| {
                    (asked.saturating_sub(start), answered.saturating_sub(start))
                })
                .collect();
            // The call itself begins after the answer.
            let answered = waited.iter().map(|(_, answered)| *answered).max().unwrap_or_default();
            let to = call.ended.map_or(length, |ended| ended.saturating_sub(start));
            let from = call.made.saturating_sub(start).max(answered).min(to);
            Row { call, from, to, waited, state: state(standing, call, waits) }
        })
        .collect();
    if rows.is_empty() {
        return html! {};
    }
    let height = TOP + ROW * rows.len() as u64 + 6;
    let words = format!("{} in {}", counted(detail.calls.len() as u64, "call"), took(length));
    let x = |time: u64| LEFT + (WIDTH - LEFT - 8) * time.min(length) / length;
    let place = |number: u64| rows.iter().position(|row| row.call.number == number);
    html! {
        div.scroll tabindex="0" role="region" aria-label="Timeline" {
            svg viewBox=(format!("0 0 {WIDTH} {height}")) width=(WIDTH) height=(height) role="img" aria-label=(words) {
                line.axis x1=(LEFT) y1=(TOP - 4) x2=(WIDTH) y2=(TOP - 4) {}
                text.faint x=(LEFT) y="13" { "0" }
                text.faint x=(WIDTH - 8) y="13" text-anchor="end" { (took(length)) }
                @for (index, row) in rows.iter().enumerate() {
                    @let y = TOP + ROW * index as u64;
                    text x="8" y=(y + 15) { (row.call.number) " " (shown(&row.call.name, NAME)) }
                    @for (asked, answered) in &row.waited {
                        rect.wait x=(x(*asked)) y=(y + 4) width=(x(*answered).saturating_sub(x(*asked)).max(3)) height="14" rx="2" {
                            title { (shown(&row.call.name, 80)) @if *answered >= length && row.state == "waiting" { ": waits for a person, " } @else { ": waited for a person, " }  (took(answered.saturating_sub(*asked))) }
                        }
                    }
                    // A call that still waits has not begun.
                    @if row.state != "waiting" || row.waited.is_empty() {
                        rect class=(class(row)) x=(x(row.from)) y=(y + 4) width=(x(row.to).saturating_sub(x(row.from)).max(3)) height="14" rx="2" {
                            title { (shown(&row.call.name, 80)) ": " (row.state) ", " (took(row.to.saturating_sub(row.from))) }
                        }
                    }
                }
                @for flow in flows {
                    @if let (Some(from), Some(to)) = (flow.from.call.and_then(place), flow.to.call.and_then(place)) {
                        (arrow((x(rows[from].to), from as u64), (x(rows[to].from), to as u64)))
                    }
                }
            }
        }
        p.quiet.small {
            (words) ". Filled: it ran. Red: it failed. Framed: it waits or waited for a person, or its outcome is not known."
            @if !flows.is_empty() { " Lines: a result went into an argument." }
        }
    }
}

/// The state of a call of a run. A run whose client waits goes on while its call waits for a person.
pub(crate) fn state(standing: RunStanding, call: &RunCall, waits: &[PersonWait]) -> &'static str {
    let is_open = |wait: &PersonWait| wait.call == call.number && wait.answered.is_none();
    let goes_on = standing == RunStanding::Is(RunState::Running);
    match standing.of_call(call) {
        "not made" if goes_on && waits.iter().any(is_open) => "waiting",
        state => state,
    }
}

fn class(row: &Row<'_>) -> &'static str {
    match row.state {
        "completed" => "bar",
        "failed" => "bar bad",
        "waiting" => "wait",
        _ => "bar open",
    }
}

/// A line from the end of a call to the beginning of another.
fn arrow((from_x, from): (u64, u64), (to_x, to): (u64, u64)) -> Markup {
    let (from_y, to_y) = (TOP + ROW * from + 11, TOP + ROW * to + 11);
    let middle = u64::midpoint(from_y, to_y);
    let path = format!("M{from_x} {from_y} C{from_x} {middle} {to_x} {middle} {to_x} {to_y}");
    html! {
        path.flow d=(path) {}
        circle.head cx=(to_x) cy=(to_y) r="3" {}
    }
}
