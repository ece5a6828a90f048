//! Shows the data flow of a run.

use serde::Serialize;
use toolgate_host::one_line;
use toolgate_policy::{Contact, Evidence, LabelSet, ScriptWay};
use toolgate_store::RunCall;

/// Data on its way from a result to a call.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Arrow {
    /// The call of the result.
    from: End,
    /// The call whose arguments contain it.
    to: End,
    /// The argument in which it was found, as a JSON pointer.
    #[serde(skip_serializing_if = "Option::is_none")]
    argument: Option<String>,
    labels: LabelSet,
    contact: Contact,
    /// How the script moves it, if its text says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    way: Option<ScriptWay>,
}

/// One end of an arrow.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct End {
    /// The number of the call in the run; `None` for data that the session had outside of the run.
    call: Option<u64>,
    tool: String,
}

/// Longer names and arguments are cut.
const MAX_CHARACTERS: usize = 64;
/// More are counted, not drawn.
const MOST_DRAWN: usize = 100;

/// All data flows, ordered by the receiving call. Unreadable entries are left out.
pub(super) fn read(calls: &[RunCall]) -> Vec<Arrow> {
    let mut arrows = Vec::new();
    for call in calls {
        let evidence = call.flow.as_deref().and_then(|flow| serde_json::from_str(flow).ok());
        let evidence: Vec<Evidence> = evidence.unwrap_or_default();
        for seen in evidence {
            let Evidence { tool, run_call, labels, contact, argument, way, .. } = seen;
            let earlier = calls.iter().find(|earlier| Some(earlier.number) == run_call);
            let from = earlier.map_or_else(
                || format!("{}/{}", tool.server, tool.tool),
                |earlier| earlier.name.clone(),
            );
            arrows.push(Arrow {
                from: End { call: run_call, tool: from },
                to: End { call: Some(call.number), tool: call.name.clone() },
                argument,
                labels,
                contact,
                way,
            });
        }
    }
    arrows
}

/// The arrows, one a line, with their ends below each other.
pub(super) fn draw(arrows: &[Arrow]) -> String {
    let drawn = &arrows[..arrows.len().min(MOST_DRAWN)];
    let starts: Vec<String> = drawn.iter().map(|arrow| arrow.from.to_string()).collect();
    let words: Vec<String> = drawn.iter().map(|arrow| arrow.labels.to_string()).collect();
    let width = |texts: &[String]| texts.iter().map(|text| text.chars().count()).max();
    let (start_width, word_width) = (width(&starts).unwrap_or(0), width(&words).unwrap_or(0));
    let mut lines: Vec<String> = Vec::new();
    for ((arrow, start), word) in drawn.iter().zip(&starts).zip(&words) {
        let (head, note) = match arrow.contact {
            Contact::Carried => ("▶", arrow.way.as_ref().and_then(noted)),
            Contact::Steered => ("▷", Some("steered by it".to_owned())),
            Contact::Touched => ("▷", Some("after it".to_owned())),
        };
        let shaft = "─".repeat(word_width - word.chars().count() + 1);
        let argument = arrow.argument.as_deref().map(|pointer| one_line(pointer, MAX_CHARACTERS));
        let end = [Some(arrow.to.to_string()), argument, note.map(|note| format!("({note})"))];
        let end: Vec<String> = end.into_iter().flatten().collect();
        lines.push(format!("  {start:<start_width$} ─ {word} {shaft}{head} {}", end.join(" ")));
    }
    if arrows.len() > drawn.len() {
        lines.push(format!("  and {} more", arrows.len() - drawn.len()));
    }
    lines.join("\n")
}

/// The way of data through a script.
fn noted(way: &ScriptWay) -> Option<String> {
    let names: Vec<String> =
        way.through.iter().map(|name| one_line(name, MAX_CHARACTERS)).collect();
    let names = names.join(", ");
    match (way.is_choice, names.is_empty()) {
        (true, true) => Some("decides".to_owned()),
        (true, false) => Some(format!("decides, by way of {names}")),
        (false, true) => None,
        (false, false) => Some(format!("by way of {names}")),
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tool = one_line(&self.tool, MAX_CHARACTERS);
        match self.call {
            Some(call) => write!(formatter, "call {call} {tool}"),
            None => write!(formatter, "{tool}, seen before"),
        }
    }
}
