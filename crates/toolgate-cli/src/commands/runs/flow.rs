//! Shows the data flow of a run.

use toolgate_host::{RunFlow, RunFlowEnd, one_line};
use toolgate_policy::{Contact, ScriptWay};

/// Longer names and arguments are cut.
const MAX_CHARACTERS: usize = 64;
/// More are counted, not drawn.
const MOST_DRAWN: usize = 100;

/// The arrows, one a line, with their ends below each other.
pub(super) fn draw(arrows: &[RunFlow]) -> String {
    let drawn = &arrows[..arrows.len().min(MOST_DRAWN)];
    let starts: Vec<String> = drawn.iter().map(|arrow| end_of(&arrow.from)).collect();
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
        let end = [Some(end_of(&arrow.to)), argument, note.map(|note| format!("({note})"))];
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

/// One end of an arrow.
fn end_of(end: &RunFlowEnd) -> String {
    let tool = one_line(&end.tool, MAX_CHARACTERS);
    match end.call {
        Some(call) => format!("call {call} {tool}"),
        None => format!("{tool}, seen before"),
    }
}
