//! The calls of a run over time: one line a call, so that those that run at the same time stand below each other.

use maud::{Markup, html};
use toolgate_host::{RunFlow, RunStanding};
use toolgate_policy::definitions::shown;
use toolgate_store::{PersonWait, RunCall, RunDetail, RunState};

use crate::{
    lately,
    text::{counted, percent, took},
};

/// A name, and its bar below it: so the text has its size on a phone too.
const ROW: u64 = 38;
const TOP: u64 = 40;
/// Where the bar is in its row, and its height.
const BAR: u64 = 18;
const THICK: u64 = 13;
/// The whole width. Places are parts of it.
const WHOLE: u64 = 10_000;
/// The place of a wait that is cut short.
const BREAK: u64 = 700;
/// All of them have no more place than this.
const BREAKS: u64 = 4_500;
/// Shorter bars would not be seen.
const THIN: u64 = 60;
/// Shorter waits are drawn as long as they were, in milliseconds.
const SHORT: u64 = 1_000;
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
    let scale = Scale::new(&rows, length);
    let x = |time: u64| percent(scale.place(time));
    let wide =
        |from: u64, to: u64| percent(scale.place(to).saturating_sub(scale.place(from)).max(THIN));
    let place = |number: u64| rows.iter().position(|row| row.call.number == number);
    html! {
        div.scroll tabindex="0" role="region" aria-label="Timeline" {
            svg.timeline width="100%" height=(height) role="img" aria-label=(words) {
                line.axis x1="0" y1=(TOP - 6) x2="100%" y2=(TOP - 6) {}
                text.faint x="0" y="13" { "0" }
                text.faint x="100%" y="13" text-anchor="end" { (took(length)) }
                @for (from, to) in &scale.breaks {
                    @let middle = u64::midpoint(scale.place(*from), scale.place(*to));
                    line.break x1=(percent(middle)) y1=(TOP - 6) x2=(percent(middle)) y2=(height) {}
                    text.faint x=(percent(middle)) y="29" text-anchor=(anchor(middle)) { "… " (took(to - from)) " …" }
                }
                @for (index, row) in rows.iter().enumerate() {
                    @let y = TOP + ROW * index as u64;
                    text x="0" y=(y + 12) { (row.call.number) " " (shown(&row.call.name, NAME)) }
                    @for (asked, answered) in &row.waited {
                        rect.wait x=(x(*asked)) y=(y + BAR) width=(wide(*asked, *answered)) height=(THICK) rx="2" {
                            title { (shown(&row.call.name, 80)) @if *answered >= length && row.state == "waiting" { ": waits for a person, " } @else { ": waited for a person, " }  (took(answered.saturating_sub(*asked))) }
                        }
                    }
                    @if row.has_begun() {
                        rect class=(class(row)) x=(x(row.from)) y=(y + BAR) width=(wide(row.from, row.to)) height=(THICK) rx="2" {
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
            @if !scale.breaks.is_empty() { " Dashed: a long wait, drawn short." }
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
fn arrow((from_x, from): (String, u64), (to_x, to): (String, u64)) -> Markup {
    let middle = |row: u64| TOP + ROW * row + BAR + THICK / 2;
    html! {
        line.flow x1=(from_x) y1=(middle(from)) x2=(to_x) y2=(middle(to)) {}
        circle.head cx=(to_x) cy=(middle(to)) r="3" {}
    }
}

impl Row<'_> {
    /// A call that still waits has not begun.
    fn has_begun(&self) -> bool {
        self.state != "waiting" || self.waited.is_empty()
    }
}

/// Where the moments of a run are drawn. Long waits in which no call runs have little place, so that the calls have some.
struct Scale {
    breaks: Vec<(u64, u64)>,
    length: u64,
}

impl Scale {
    fn new(rows: &[Row<'_>], length: u64) -> Self {
        let waits = rows.iter().flat_map(|row| row.waited.iter().copied());
        let runs = rows.iter().filter(|row| row.has_begun()).map(|row| (row.from, row.to));
        let mut breaks = without(joined(waits.collect()), &joined(runs.collect()));
        breaks.retain(|(from, to)| to - from > SHORT);
        let idle: u64 = breaks.iter().map(|(from, to)| to - from).sum();
        let rest = length.saturating_sub(idle);
        breaks.retain(|(from, to)| to - from > rest);
        Self { breaks, length }
    }

    /// The place of a moment.
    fn place(&self, time: u64) -> u64 {
        let time = time.min(self.length);
        let count = self.breaks.len() as u64;
        let each = BREAK.min(BREAKS / count.max(1));
        let (mut cut, mut idle, mut place) = (0, 0, 0);
        for &(from, to) in &self.breaks {
            let past = time.clamp(from, to) - from;
            cut += past;
            idle += to - from;
            place += each * past / (to - from);
        }
        let rest = self.length.saturating_sub(idle).max(1);
        place + (time - cut) * (WHOLE - each * count) / rest
    }
}

/// Spans without overlaps, in their order.
fn joined(mut spans: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    spans.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (from, to) in spans {
        match joined.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    joined
}

/// What of these spans is in none of the others. Both have no overlaps and are in their order.
fn without(spans: Vec<(u64, u64)>, others: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut left = Vec::new();
    for (mut from, to) in spans {
        for &(start, end) in others {
            if end <= from || start >= to {
                continue;
            }
            if start > from {
                left.push((from, start));
            }
            from = end;
        }
        if from < to {
            left.push((from, to));
        }
    }
    left
}

/// A label stays on the picture.
fn anchor(place: u64) -> &'static str {
    match place {
        ..1_500 => "start",
        8_500.. => "end",
        _ => "middle",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_wait_leaves_place_for_the_calls() {
        let minutes = 300_000;
        let runs = joined(vec![(0, 40), (10, 60), (60 + minutes, 100 + minutes)]);
        let breaks = without(joined(vec![(50, 60 + minutes)]), &runs);
        assert_eq!(breaks, [(60, 60 + minutes)]);
        let scale = Scale { breaks, length: 100 + minutes };
        let places =
            [0, 10, 60, 60 + minutes, 100 + minutes].map(|time| percent(scale.place(time)));
        assert_eq!(places, ["0.00%", "9.30%", "55.80%", "62.80%", "100.00%"]);
        // Without a wait nothing is cut.
        let scale = Scale { breaks: Vec::new(), length: 100 };
        assert_eq!(percent(scale.place(25)), "25.00%");
        assert_eq!(without(vec![(0, 10)], &[(2, 4), (6, 8)]), [(0, 2), (4, 6), (8, 10)]);
    }
}
