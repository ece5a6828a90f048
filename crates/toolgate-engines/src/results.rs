//! Which results of tools a line of a script may use, for hints.

use std::collections::HashSet;

use crate::engine::EngineScript;

/// The tools whose results a line may use: those that it names, and those behind its variables, as
/// far as the text shows that.
pub(crate) fn tools_behind(script: &EngineScript<'_>, line: usize) -> HashSet<String> {
    let lines: Vec<&str> = script.source.split('\n').take(MAX_LINES).collect();
    let mut names: HashSet<&str> = lines.get(line).copied().map(words).unwrap_or_default();
    let defined: Vec<(HashSet<&str>, HashSet<&str>)> =
        lines.iter().filter_map(|line| definition(line)).collect();
    loop {
        let before = names.len();
        for (left, right) in &defined {
            if !left.is_disjoint(&names) {
                names.extend(right);
            }
        }
        if names.len() == before {
            break;
        }
    }
    let mut tools: HashSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let places = script.places.iter().filter(|place| names.contains(place.alias.as_str()));
    tools.extend(places.map(|place| place.function.clone()));
    tools
}

/// The longest script, in lines, whose variables are followed.
const MAX_LINES: usize = 2_000;

/// The names that a line defines, and the names that it defines them by.
fn definition(line: &str) -> Option<(HashSet<&str>, HashSet<&str>)> {
    for mark in [" of ", " in "] {
        if let Some((left, right)) = line.split_once(mark)
            && left.trim_start().starts_with("for")
        {
            return Some((words(left), words(right)));
        }
    }
    // A callback has parts of what it is called for: `items.map((item) => …`.
    if let Some((left, _)) = line.split_once("=>") {
        return Some((words(left), words(line)));
    }
    let (left, right) = line.split_once('=')?;
    Some((words(left), words(right)))
}

fn words(text: &str) -> HashSet<&str> {
    text.split(|c: char| !is_word(c)).filter(|word| !word.is_empty()).collect()
}

/// Whether a text has this name.
pub(crate) fn mentions(text: &str, name: &str) -> bool {
    text.split(|c: char| !is_word(c)).any(|word| word == name)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}
