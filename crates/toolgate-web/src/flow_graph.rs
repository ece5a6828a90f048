//! The data of a run as a graph: calls from left to right, and a line for each result that went into an argument.

use std::collections::BTreeMap;

use maud::{Markup, html};
use toolgate_host::{RunFlow, RunFlowEnd};
use toolgate_policy::{Contact, definitions::shown};

use crate::text::counted;

/// The size of a call, and what is between two of them.
const WIDTH: usize = 190;
const HEIGHT: usize = 30;
const APART: usize = 90;
const ROW: usize = 44;
const EDGE: usize = 8;
/// More is in the table alone.
const MOST_CALLS: usize = 60;
const MOST_FLOWS: usize = 150;
/// Calls that are further from the beginning stand below each other at the right.
const MOST_COLUMNS: usize = 12;
const NAME: usize = 24;
/// So many lines can have their argument beside them.
const NAMED_FLOWS: usize = 16;

/// Whose data it is: a call of the run, or a tool that was called before it.
type CallKey = (Option<u64>, String);

struct Place {
    x: usize,
    y: usize,
}

/// Draws the flows of a run.
pub(crate) fn draw(flows: &[RunFlow]) -> Markup {
    let flows = &flows[..flows.len().min(MOST_FLOWS)];
    let places = places(flows);
    if places.is_empty() {
        return html! {};
    }
    let right = places.values().map(|place| place.x).max().unwrap_or_default() + WIDTH + EDGE;
    let below = places.values().map(|place| place.y).max().unwrap_or_default() + HEIGHT + EDGE;
    let times = counted(flows.len() as u64, "time");
    let words = format!("{} calls, between which data went {times}", places.len());
    html! {
        div.scroll tabindex="0" role="region" aria-label="Data flow" {
            svg.wide-graph viewBox=(format!("0 0 {right} {below}")) width=(right) height=(below) role="img" aria-label=(words) {
                @for flow in flows {
                    @if let (Some(from), Some(to)) = (places.get(&key(&flow.from)), places.get(&key(&flow.to))) {
                        (line(flow, from, to, flows.len() <= NAMED_FLOWS))
                    }
                }
                @for (key, place) in &places { (call(key, place)) }
            }
        }
        p.quiet.small { (words) ". A line leads from a result to the argument that has it; a dashed one: it decided on the call." }
    }
}

fn key(end: &RunFlowEnd) -> CallKey {
    (end.call, end.tool.clone())
}

/// Where each call stands: right of all whose results it got.
fn places(flows: &[RunFlow]) -> BTreeMap<CallKey, Place> {
    let mut columns: BTreeMap<CallKey, usize> = BTreeMap::new();
    for flow in flows {
        for end in [&flow.from, &flow.to] {
            if columns.len() < MOST_CALLS {
                columns.entry(key(end)).or_default();
            }
        }
    }
    // Data goes to later calls, so a pass for each column is enough. Forged numbers end at the last one.
    for _ in 0..MOST_COLUMNS {
        for flow in flows.iter().filter(|flow| flow.from.call < flow.to.call) {
            let Some(from) = columns.get(&key(&flow.from)).copied() else { continue };
            if let Some(to) = columns.get_mut(&key(&flow.to)) {
                *to = (*to).max(from + 1).min(MOST_COLUMNS);
            }
        }
    }
    let mut rows = BTreeMap::<usize, usize>::new();
    let place = |(key, column): (CallKey, usize)| {
        let row = rows.entry(column).or_default();
        let place = Place { x: EDGE + column * (WIDTH + APART), y: EDGE + *row * ROW };
        *row += 1;
        (key, place)
    };
    columns.into_iter().map(place).collect()
}

fn call((number, tool): &CallKey, place: &Place) -> Markup {
    let name = shown(tool, NAME);
    let words = match number {
        Some(number) => format!("{number} {name}"),
        None => format!("{name}, before"),
    };
    html! {
        g {
            title { (shown(tool, 120)) }
            rect.node x=(place.x) y=(place.y) width=(WIDTH) height=(HEIGHT) rx="5" {}
            text x=(place.x + 8) y=(place.y + 20) { (words) }
        }
    }
}

fn line(flow: &RunFlow, from: &Place, to: &Place, is_named: bool) -> Markup {
    let (from_x, from_y) = (from.x + WIDTH, from.y + HEIGHT / 2);
    let (to_x, to_y) = (to.x, to.y + HEIGHT / 2);
    let (near, far) = (from_x + APART / 2, to_x.saturating_sub(APART / 2));
    let path = format!("M{from_x} {from_y} C{near} {from_y} {far} {to_y} {to_x} {to_y}");
    let argument = flow.argument.as_deref().unwrap_or("any argument").trim_start_matches('/');
    let class = if flow.contact == Contact::Carried { "flow" } else { "flow weak" };
    html! {
        path class=(class) d=(path) {
            title { (shown(&flow.from.tool, 80)) " to " (shown(&flow.to.tool, 80)) ", " (shown(argument, 80)) }
        }
        circle.head cx=(to_x) cy=(to_y) r="3" {}
        @if is_named {
            text.faint x=(to_x.saturating_sub(6)) y=(to_y.saturating_sub(4)) text-anchor="end" { (shown(argument, 12)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use toolgate_policy::LabelSet;

    use super::*;

    fn flow(from: Option<u64>, to: u64) -> RunFlow {
        let end = |call: Option<u64>| RunFlowEnd {
            call,
            tool: call.map_or_else(|| "crm/get".to_owned(), |call| format!("tool_{call}")),
        };
        RunFlow {
            from: end(from),
            to: end(Some(to)),
            argument: Some("/body/<b>".to_owned()),
            labels: LabelSet::EMPTY,
            contact: Contact::Carried,
            way: None,
        }
    }

    #[test]
    fn calls_stand_right_of_those_whose_results_they_got() {
        let places = places(&[flow(None, 1), flow(Some(0), 1), flow(Some(1), 2), flow(Some(0), 2)]);
        let column = |call: Option<u64>| {
            let (_, place) = places.iter().find(|((number, _), _)| *number == call).unwrap();
            (place.x - EDGE) / (WIDTH + APART)
        };
        assert_eq!([column(None), column(Some(0)), column(Some(1)), column(Some(2))], [0, 0, 1, 2]);
    }

    #[test]
    fn a_graph_is_bounded_and_text_of_servers_stays_text() {
        let many: Vec<RunFlow> = (0..2_000).map(|call| flow(Some(call), call + 1)).collect();
        let drawn = draw(&many).into_string();
        assert!(drawn.len() < 100_000, "{}", drawn.len());
        assert!(!drawn.contains("<b>"), "{drawn:.500}");
        // One that leads back ends too.
        assert!(draw(&[flow(Some(2), 1), flow(Some(1), 2)]).into_string().contains("2 calls"));
    }
}
