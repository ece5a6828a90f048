//! Splits a request into the steps that each need a tool of their own.
//!
//! "Open an issue about the crash and text the team" needs two tools. One ranking of the whole has
//! both only by luck.

use crate::{
    analysis::{TermKind, for_each_term},
    limits::{MAX_QUERY_BYTES, cut},
};

/// How many steps of a request are searched for.
const MAX_STEPS: usize = 6;
/// A step that says less than this belongs to the one before: `and delete it`.
const FEWEST_WORDS: usize = 2;

/// The steps of a request, in their order; empty if it is one step.
///
/// A step begins with a verb that asks for something, at the beginning of a sentence or after a word
/// that joins two of them. A sentence without such a verb is no step of its own.
///
/// ```
/// use toolgate_search::steps;
///
/// let request = "Open an issue about the crash, then text the team and book a meeting room.";
/// assert_eq!(steps(request), ["Open an issue about the crash", "text the team", "book a meeting room"]);
/// assert!(steps("find and replace words in a file").is_empty());
/// ```
pub fn steps(text: &str) -> Vec<&str> {
    let text = cut(text, MAX_QUERY_BYTES);
    let mut steps: Vec<&str> = Vec::new();
    for sentence in sentences(text) {
        steps.extend(steps_of_sentence(sentence));
        if steps.len() >= MAX_STEPS {
            break;
        }
    }
    steps.truncate(MAX_STEPS);
    if steps.len() < 2 { Vec::new() } else { steps }
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let ends = |(place, character): (usize, char)| {
        let next = text[place + character.len_utf8()..].chars().next();
        match character {
            '.' | '?' | '!' | ';' => next.is_none_or(char::is_whitespace),
            '\n' | '。' | '！' | '？' | '；' => true,
            _ => false,
        }
        .then_some(place + character.len_utf8())
    };
    let mut start = 0;
    let places: Vec<usize> = text.char_indices().filter_map(ends).chain([text.len()]).collect();
    places.into_iter().map(move |end| {
        let sentence = &text[start..end];
        start = end;
        sentence
    })
}

/// The steps of a sentence. A part without a verb continues the one before.
fn steps_of_sentence(sentence: &str) -> Vec<&str> {
    let mut starts: Vec<usize> = Vec::new();
    let mut may_begin = true;
    for (place, word) in words_with_places(sentence) {
        let bare = word.trim_matches(|character: char| !character.is_alphanumeric());
        let lower = bare.to_lowercase();
        if may_begin && is_request_verb(&lower) {
            let place = place + word.find(bare).unwrap_or_default();
            // Few words before it are the same step: `find and replace`.
            let says_enough = |start: &usize| count(&sentence[*start..place]) >= FEWEST_WORDS;
            if starts.last().is_none_or(says_enough) {
                starts.push(place);
            }
            may_begin = false;
            continue;
        }
        let joins = JOINING.contains(&lower.as_str());
        let is_lead = LEADING.contains(&lower.as_str());
        // `I want to`, `and then`, `can you please`: a verb may follow these.
        may_begin = joins || (may_begin && is_lead) || word.ends_with(',');
    }
    // The first step may have a verb that is not known: `fork the project and push the files`.
    if let Some(first) = starts.first().copied()
        && count(&sentence[..first]) >= FEWEST_WORDS
    {
        starts.insert(0, 0);
    }
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([sentence.len()]).collect();
    let mut steps: Vec<&str> = Vec::new();
    for (start, end) in starts.iter().zip(ends) {
        let step = without_joint(sentence[*start..end].trim_start());
        match steps.last() {
            // What says little belongs to the step before.
            Some(before) if count(step) < FEWEST_WORDS => {
                let from = before.as_ptr() as usize - sentence.as_ptr() as usize;
                let joined = without_joint(&sentence[from..end]);
                steps.pop();
                steps.push(joined);
            }
            _ => steps.push(step),
        }
    }
    steps
}

/// How many words of a text say something.
fn count(text: &str) -> usize {
    let mut count = 0;
    for_each_term(text, MAX_QUERY_BYTES, &mut |_, kind| {
        count += usize::from(kind != TermKind::StopWord);
    });
    count
}

fn words_with_places(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_whitespace().map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
}

/// The text without the words at its end that join it to the next step.
fn without_joint(text: &str) -> &str {
    let is_edge =
        |character: char| character.is_whitespace() || ".,;:!?。！？；".contains(character);
    let mut text = text.trim_end_matches(is_edge);
    while let Some((before, last)) = text.rsplit_once(char::is_whitespace) {
        let lower = last.to_lowercase();
        if !JOINING.contains(&lower.as_str()) && !LEADING.contains(&lower.as_str()) {
            break;
        }
        text = before.trim_end_matches(is_edge);
    }
    text
}

fn is_request_verb(word: &str) -> bool {
    VERBS.binary_search(&word).is_ok()
}

/// Words after which another step may begin.
const JOINING: &[&str] =
    &["and", "then", "afterwards", "after", "next", "finally", "also", "plus", "&"];

/// Words between the beginning of a step and its verb.
const LEADING: &[&str] = &[
    "i", "we", "you", "want", "need", "would", "like", "to", "please", "can", "could", "just",
    "that", "me", "help", "first", "second", "lastly", "let", "us", "then", "also", "i'd", "it",
    "should",
];

/// What people ask tools to do. Sorted.
const VERBS: &[&str] = &[
    "add",
    "analyse",
    "analyze",
    "append",
    "apply",
    "approve",
    "archive",
    "ask",
    "assign",
    "attach",
    "backup",
    "block",
    "book",
    "build",
    "buy",
    "calculate",
    "call",
    "cancel",
    "change",
    "chart",
    "check",
    "clean",
    "clear",
    "click",
    "clone",
    "close",
    "comment",
    "commit",
    "compare",
    "compile",
    "compute",
    "connect",
    "convert",
    "copy",
    "count",
    "create",
    "delete",
    "deploy",
    "describe",
    "detect",
    "diagnose",
    "disable",
    "display",
    "download",
    "draft",
    "draw",
    "drop",
    "duplicate",
    "edit",
    "email",
    "enable",
    "estimate",
    "evaluate",
    "execute",
    "explain",
    "export",
    "extract",
    "fetch",
    "figure",
    "file",
    "fill",
    "filter",
    "find",
    "forward",
    "generate",
    "get",
    "give",
    "grab",
    "highlight",
    "identify",
    "import",
    "inform",
    "insert",
    "inspect",
    "install",
    "invite",
    "kill",
    "label",
    "launch",
    "list",
    "load",
    "locate",
    "log",
    "look",
    "mail",
    "make",
    "mark",
    "measure",
    "merge",
    "message",
    "monitor",
    "move",
    "navigate",
    "notify",
    "open",
    "order",
    "pause",
    "pay",
    "ping",
    "play",
    "plot",
    "post",
    "predict",
    "print",
    "provide",
    "publish",
    "pull",
    "push",
    "put",
    "query",
    "read",
    "recommend",
    "record",
    "reject",
    "release",
    "remind",
    "remove",
    "rename",
    "render",
    "replace",
    "reply",
    "report",
    "reserve",
    "reset",
    "resize",
    "restart",
    "restore",
    "resume",
    "retrieve",
    "revert",
    "review",
    "rotate",
    "run",
    "save",
    "scale",
    "scan",
    "schedule",
    "scrape",
    "search",
    "select",
    "send",
    "set",
    "share",
    "show",
    "sort",
    "start",
    "stop",
    "store",
    "submit",
    "subscribe",
    "suggest",
    "summarise",
    "summarize",
    "take",
    "tell",
    "test",
    "text",
    "track",
    "transcribe",
    "transfer",
    "translate",
    "turn",
    "undo",
    "update",
    "upload",
    "validate",
    "verify",
    "visualise",
    "visualize",
    "watch",
    "write",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_of_a_text_is_a_step() {
        for (text, expected) in [
            (
                "Create a ticket for the login bug and send a message to the channel",
                vec!["Create a ticket for the login bug", "send a message to the channel"],
            ),
            (
                "Hi! I plan a trip to Paris. Can you find cheap flights for May? Then please book a hotel near \
                 the river, and finally add both to my calendar.",
                vec![
                    "find cheap flights for May",
                    "book a hotel near the river",
                    "add both to my calendar",
                ],
            ),
            (
                "fork the project, create a branch and push the files",
                vec!["fork the project", "create a branch", "push the files"],
            ),
            (
                "list the open issues; close the stale ones",
                vec!["list the open issues", "close the stale ones"],
            ),
            (
                "read the report, translate it and email it to Ann",
                vec!["read the report", "translate it and email it to Ann"],
            ),
        ] {
            assert_eq!(steps(text), expected, "{text}");
        }
    }

    #[test]
    fn one_request_stays_whole() {
        for text in [
            "",
            "list issues",
            "find and replace words in a file",
            "read and write permissions of a folder",
            "show the weather in Paris and London",
            "who wrote this line and why",
            "create a copy of the file and delete it",
            "公开一个问题",
        ] {
            assert!(steps(text).is_empty(), "{text}: {:?}", steps(text));
        }
    }

    #[test]
    fn there_are_few_steps_and_the_verbs_are_sorted() {
        assert_eq!(steps(&"send one letter. ".repeat(500)).len(), MAX_STEPS);
        assert!(VERBS.is_sorted());
    }
}
