//! What a model is told of a run.

use std::fmt::Write;

use serde_json::Value;
use toolgate_sandbox::{
    CapturedOutput, CheckFinding, LimitReached, RunOutcome, RunReport, ScriptFailure,
};

use super::{budget, ledger, media::Media, outputs::Drawer};

/// A run, ready to be shown.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) text: String,
    /// All that the script wrote, as far as it was kept.
    pub(super) output: String,
    /// The end of the text.
    pub(super) closing: String,
    pub(super) is_error: bool,
    /// Images and other content for the client.
    pub(super) content: Vec<Value>,
    /// What the script returned, with words in the place of media.
    pub(super) value: Option<Value>,
    /// The same as text.
    pub(super) value_text: Option<String>,
    /// Where the rest can be read.
    pub(super) output_id: Option<String>,
}

/// The share of the budget that errors and the ledger may take.
const CLOSING_SHARE: usize = 4;
const STACK_FRAMES: usize = 8;
/// What the note of what was left out costs.
const NOTE_TOKENS: usize = 60;
const FINDINGS: usize = 10;
const WARNINGS: usize = 3;
const SOURCE_CHARACTERS: usize = 160;

/// Renders a report within `tokens`. What does not fit is kept in the drawer.
pub(super) fn render(
    report: &RunReport,
    code: &str,
    tokens: usize,
    media: &Media,
    drawer: Drawer<'_>,
) -> Shown {
    let (mut content, refused) = emitted(report, media);
    let mut value = None;
    let mut value_text = None;
    if let RunOutcome::Value(Some(raw)) = &report.outcome {
        match serde_json::from_str::<Value>(raw.get()) {
            Ok(mut read) => {
                let mut taken = media.take_out(&mut read);
                value_text = Some(match &read {
                    Value::String(text) if !text.is_empty() => safe(text),
                    // As the script wrote it, with all digits of its numbers.
                    _ if taken.is_empty() => safe_json(raw.get()),
                    other => safe_json(&other.to_string()),
                });
                content.append(&mut taken);
                value = Some(read);
            }
            // Nested too deeply to be looked through, not to be shown.
            Err(_) => value_text = Some(safe_json(raw.get())),
        }
    }

    let output = output_text(&report.output);
    let mut body = output.clone();
    if let Some(shown) = &value_text {
        if body.is_empty() && !["null", "\"\""].contains(&shown.as_str()) {
            body.clone_from(shown);
        } else {
            let _ = write!(body, "{}Returned: {shown}", line_break(&body));
        }
    }
    if refused > 0 {
        let _ = write!(
            body,
            "{}[{refused} emitted values are no content blocks and were left out]",
            line_break(&body)
        );
    }

    let closing = closing(report, code, body.is_empty() && content.is_empty());
    let closing = budget::head(&closing, (tokens / CLOSING_SHARE).max(100)).to_owned();
    let room = tokens.saturating_sub(toolgate_catalog::TokenCounter::shared().count(&closing));
    let mut output_id = None;
    let gap = budget::left_out(&body, room)
        .and_then(|_| budget::left_out(&body, room.saturating_sub(NOTE_TOKENS)));
    if let Some(gap) = gap {
        let id = drawer.keep(&body);
        let ended = match report.outcome {
            RunOutcome::Value(_) => "the script ran to the end; ",
            _ => "",
        };
        let note = format!(
            "\n[{ended}{} bytes left out: read_output(id: \"{id}\", offset: {})]\n",
            gap.len(),
            gap.start
        );
        body.replace_range(gap, &note);
        output_id = Some(id);
    }
    let separator = if closing.is_empty() { "" } else { line_break(&body) };
    let text = format!("{body}{separator}{closing}");
    let is_error = !matches!(report.outcome, RunOutcome::Value(_));
    Shown { text, output, closing, is_error, content, value, value_text, output_id }
}

/// The content blocks that the script emitted, and how many of them were none.
fn emitted(report: &RunReport, media: &Media) -> (Vec<Value>, usize) {
    let mut content = Vec::new();
    let mut refused = 0;
    for raw in &report.emitted {
        let mut block = serde_json::from_str(raw.get()).unwrap_or(Value::Null);
        let mut taken = media.take_out(&mut block);
        let has = |field: &str| block.get(field).is_some_and(Value::is_string);
        let text_resource = || block.pointer("/resource/text").is_some_and(Value::is_string);
        match block.get("type").and_then(Value::as_str) {
            _ if !taken.is_empty() => content.append(&mut taken),
            Some("text") if has("text") => {
                let text = block.get("text").and_then(Value::as_str).map(safe);
                content.push(serde_json::json!({ "type": "text", "text": text }));
            }
            Some("resource_link") if has("uri") && has("name") => content.push(block),
            Some("resource") if text_resource() => content.push(block),
            _ => refused += 1,
        }
    }
    (content, refused)
}

/// Everything after the output: the error, if any, and the calls that were made.
fn closing(report: &RunReport, code: &str, silent: bool) -> String {
    let mut text = match &report.outcome {
        RunOutcome::Value(_) if silent => {
            "The script ran to its end without output: print, or return a value.".to_owned()
        }
        RunOutcome::Value(_) => String::new(),
        RunOutcome::Rejected(findings) => rejected(findings),
        RunOutcome::Failed(failure) => failed(failure, code),
        // Whether it was read or run when the stack was full, nobody can tell any more.
        RunOutcome::Stopped(LimitReached::Stack { failure: None, .. })
            if report.calls.is_empty() && report.output.total == 0 =>
        {
            "The script is nested too deeply to be read, or calls itself too deeply; \
             codeMode.stackKb raises the limit."
                .to_owned()
        }
        RunOutcome::Stopped(stop) => stopped(stop, code),
        RunOutcome::Cancelled => "The run was cancelled.".to_owned(),
        RunOutcome::Suspended => "The run waits for approval.".to_owned(),
        RunOutcome::Diverged(what) => format!("The script does not do what it did before: {what}."),
        RunOutcome::Crashed(what) => format!("The run was ended: {what}."),
    };
    for warning in report.warnings.iter().take(WARNINGS) {
        let separator = line_break(&text);
        let _ = write!(text, "{separator}{}", safe(&warning.to_string()));
    }
    let ledger = ledger::ledger(report);
    if !ledger.is_empty() {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&ledger);
    }
    text
}

fn rejected(findings: &[CheckFinding]) -> String {
    let mut text = "The script did not run:".to_owned();
    for finding in findings.iter().take(FINDINGS) {
        let _ = write!(text, "\n{}", safe(&finding.to_string()));
    }
    if findings.len() > FINDINGS {
        let _ = write!(text, "\n… and {} more", findings.len() - FINDINGS);
    }
    text
}

fn failed(failure: &ScriptFailure, code: &str) -> String {
    let mut text = safe(&failure.message);
    for frame in failure.stack.iter().take(STACK_FRAMES) {
        let _ = write!(text, "\n  at ");
        if !frame.function.is_empty() {
            let _ = write!(text, "{} ", safe(&frame.function));
        }
        let position = frame.position;
        let _ = write!(text, "line {}", position.line);
        if position.column > 0 {
            let _ = write!(text, ", column {}", position.column);
        }
        let index = usize::try_from(position.line).unwrap_or_default();
        let source = index.checked_sub(1).and_then(|index| code.lines().nth(index));
        if let Some(source) = source.map(str::trim).filter(|source| !source.is_empty()) {
            let source: String = source.chars().take(SOURCE_CHARACTERS).collect();
            let _ = write!(text, ": {}", safe(&source));
        }
    }
    if let Some(hint) = &failure.hint {
        let _ = write!(text, "\nhint: {}", safe(hint));
    }
    text
}

fn stopped(stop: &LimitReached, code: &str) -> String {
    let mut text = format!("The run was ended: {stop}.");
    let failure = match stop {
        LimitReached::Stalled(failure) => Some(failure),
        LimitReached::Memory { failure, .. } | LimitReached::Stack { failure, .. } => {
            failure.as_ref()
        }
        _ => None,
    };
    if let Some(failure) = failure {
        let _ = write!(text, "\n{}", failed(failure, code));
    }
    text
}

fn output_text(output: &CapturedOutput) -> String {
    let mut text = safe(&output.head);
    if output.left_out > 0 {
        let _ = write!(
            text,
            "\n[{} bytes were not kept; codeMode.maxOutputBytes keeps more]\n{}",
            output.left_out,
            safe(&output.tail)
        );
    }
    text
}

fn line_break(text: &str) -> &'static str {
    if text.is_empty() || text.ends_with('\n') { "" } else { "\n" }
}

/// JSON without what [`safe`] takes out, which JSON has escapes for.
fn safe_json(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        if is_hidden(character) || (character.is_control() && character != '\n') {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                let _ = write!(clean, "\\u{unit:04x}");
            }
        } else {
            clean.push(character);
        }
    }
    clean
}

/// Characters that change how text reads and are not seen themselves.
fn is_hidden(character: char) -> bool {
    matches!(
        character,
        '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// A script's text without what a terminal or a model could trip over: control characters are
/// spelled out, invisible ones that change how text reads are left out.
pub(super) fn safe(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' | '\t' => clean.push(character),
            '\r' if characters.peek() == Some(&'\n') => {}
            hidden if is_hidden(hidden) => {}
            control if control.is_control() => {
                let _ = write!(clean, "\\x{:02x}", u32::from(control));
            }
            other => clean.push(other),
        }
    }
    clean
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
