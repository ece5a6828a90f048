//! The report of a run for the model.

use std::fmt::Write;

use serde_json::Value;
use toolgate_sandbox::{
    CallRecord, CallState, CapturedOutput, CheckFinding, LimitReached, RunOutcome, RunReport,
    ScriptFailure,
};

use super::{
    budget,
    cut::{cut_texts, replaced_note, text_block},
    journal::UnknownCall,
    media::Media,
    outputs::SessionOutputs,
    script_tools::WaitingCall,
};

/// A rendered run.
#[derive(Debug)]
pub(super) struct RenderedRun {
    pub(super) text: String,
    /// The output of the script, as far as it was captured.
    pub(super) output: String,
    /// The end of the text.
    pub(super) closing: String,
    pub(super) is_error: bool,
    /// Images and other content for the client.
    pub(super) content: Vec<Value>,
    /// The returned value, with notes in place of media.
    pub(super) value: Option<Value>,
    /// The value as text.
    pub(super) value_text: Option<String>,
    /// The id for `read_output`.
    pub(super) output_id: Option<String>,
}

/// The share of the budget for errors and the list of calls.
const CLOSING_SHARE: usize = 4;
/// The tokens that a message of an error has in any case.
const LEAST_MESSAGE: usize = 100;
const STACK_FRAMES: usize = 8;
const FINDINGS: usize = 10;
const WARNINGS: usize = 3;
/// How many tools are named for each state.
const NAMES: usize = 12;
/// How many incomplete calls are described one by one.
const EACH: usize = 5;
const ARGUMENT_CHARACTERS: usize = 120;
const MESSAGE_CHARACTERS: usize = 160;
/// The longest name of a tool. A script can compute longer ones.
const NAME_CHARACTERS: usize = 64;
const HINT_CHARACTERS: usize = 2_000;
/// How many unknown calls are named.
const NAMED: usize = 10;
const SOURCE_CHARACTERS: usize = 160;
/// The longest URI and type of an emitted resource.
const MAX_URI_BYTES: usize = 4_096;
const MAX_TYPE_BYTES: usize = 128;

/// Renders a report within `tokens`. Longer text is stored in `outputs`.
pub(super) fn render(
    report: &RunReport,
    code: &str,
    tokens: usize,
    media: &Media,
    outputs: SessionOutputs<'_>,
) -> RenderedRun {
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
            // Nested too deeply to be parsed, but it can be shown.
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
            "{}[{refused} emitted values were left out: emit() takes text blocks, and media from results]",
            line_break(&body)
        );
    }

    let closing = Closing::of(report, code, body.is_empty() && content.is_empty());
    let (closing, message_id) = closing.within(tokens / CLOSING_SHARE, outputs);
    let cost = toolgate_catalog::TokenCounter::shared().count(&closing);
    let left = tokens.saturating_sub(cost).max(tokens / 2);
    let ended = match report.outcome {
        RunOutcome::Value(_) => "the script ran to the end; ",
        _ => "",
    };
    content.insert(0, text_block(&body));
    let output_id = cut_texts(&mut content, left, ended, outputs).or(message_id);
    if let Some(Value::String(text)) = content.remove(0).get_mut("text").map(Value::take) {
        body = text;
    }
    let separator = if closing.is_empty() { "" } else { line_break(&body) };
    let text = format!("{body}{separator}{closing}");
    let is_error = !matches!(report.outcome, RunOutcome::Value(_));
    RenderedRun { text, output, closing, is_error, content, value, value_text, output_id }
}

/// The content blocks that the script emitted, and how many values were no content blocks.
fn emitted(report: &RunReport, media: &Media) -> (Vec<Value>, usize) {
    let mut content = Vec::new();
    let mut refused = 0;
    for raw in &report.emitted {
        let mut block = serde_json::from_str(raw.get()).unwrap_or(Value::Null);
        let mut taken = media.take_out(&mut block);
        let has = |field: &str| block.get(field).is_some_and(Value::is_string);
        match block.get("type").and_then(Value::as_str) {
            _ if !taken.is_empty() => content.append(&mut taken),
            Some("text") if has("text") => {
                let text = block.get("text").and_then(Value::as_str).map(safe);
                content.push(text_block(&text.unwrap_or_default()));
            }
            Some("resource_link") if has("uri") && has("name") => content.push(block),
            Some("resource") => match text_resource(&block) {
                Some(resource) => content.push(resource),
                None => refused += 1,
            },
            _ => refused += 1,
        }
    }
    (content, refused)
}

/// An embedded resource with a text, and nothing else that could be long.
fn text_resource(block: &Value) -> Option<Value> {
    let field = |name: &str| block.pointer(&format!("/resource/{name}")).and_then(Value::as_str);
    let (text, uri) = (field("text")?, field("uri")?);
    let mime = field("mimeType").unwrap_or("text/plain");
    let fits = uri.len() <= MAX_URI_BYTES && mime.len() <= MAX_TYPE_BYTES;
    let resource = serde_json::json!({ "uri": uri, "mimeType": mime, "text": safe(text) });
    fits.then(|| serde_json::json!({ "type": "resource", "resource": resource }))
}

/// The end of the text: the error, and the calls that were made.
struct Closing {
    /// What happened. This part may be long, and can be shortened.
    message: String,
    /// Where it happened, and which calls were made.
    details: String,
    /// The same with one frame, and without the arguments of calls.
    brief: String,
}

/// How much a report says about frames and calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Full,
    Brief,
}

impl Closing {
    fn of(report: &RunReport, code: &str, silent: bool) -> Self {
        let details = |detail| {
            let failure = failure_of(&report.outcome);
            let mut text = failure.map(|it| position(it, code, detail)).unwrap_or_default();
            // After an error the error is what matters, and its hint says what a warning would say.
            let is_done = matches!(report.outcome, RunOutcome::Value(_));
            for warning in report.warnings.iter().filter(|_| is_done).take(WARNINGS) {
                let _ = write!(text, "\n{}", safe(&warning.to_string()));
            }
            let calls = calls_in(report, detail);
            if !calls.is_empty() {
                let _ = write!(text, "\n{calls}");
            }
            text
        };
        Self {
            message: message(report, silent),
            details: details(Detail::Full),
            brief: details(Detail::Brief),
        }
    }

    /// The text within `tokens`. The message is what is shortened; returns the id of the whole.
    fn within(self, tokens: usize, outputs: SessionOutputs<'_>) -> (String, Option<String>) {
        let most = tokens.saturating_sub(LEAST_MESSAGE);
        let details = if budget::fits(&self.details, most) { self.details } else { self.brief };
        let cost = toolgate_catalog::TokenCounter::shared().count(&details);
        let mut blocks = vec![text_block(&self.message)];
        let left = tokens.saturating_sub(cost).max(LEAST_MESSAGE);
        let id = cut_texts(&mut blocks, left, "", outputs);
        let message = blocks.first().and_then(|block| block.get("text")?.as_str());
        let text = format!("{}{details}", message.unwrap_or_default());
        (text.trim_start_matches('\n').to_owned(), id)
    }
}

/// What happened, without where.
fn message(report: &RunReport, silent: bool) -> String {
    match &report.outcome {
        RunOutcome::Value(_) if silent => {
            "The script ran to its end without output: print, or return a value.".to_owned()
        }
        RunOutcome::Value(_) => String::new(),
        RunOutcome::Rejected(findings) => rejected(findings),
        RunOutcome::Failed(failure) => safe(&failure.message),
        // It is unknown whether the stack overflowed while the script was parsed or while it ran.
        RunOutcome::Stopped(LimitReached::Stack { failure: None, .. })
            if report.calls.is_empty() && report.output.total == 0 =>
        {
            "The script is nested too deeply to be read, or calls itself too deeply; \
             codeMode.stackKb raises the limit."
                .to_owned()
        }
        RunOutcome::Stopped(stop) => {
            let failure = failure_of(&report.outcome);
            let what = failure.map(|failure| format!("\n{}", safe(&failure.message)));
            format!("The run was ended: {stop}.{}", what.unwrap_or_default())
        }
        RunOutcome::Cancelled => "The run was cancelled.".to_owned(),
        RunOutcome::Suspended => "The run waits for approval.".to_owned(),
        RunOutcome::Diverged(what) => format!("The script does not do what it did before: {what}."),
        RunOutcome::Crashed(what) => format!("The run was ended: {what}."),
    }
}

/// The failure that says where the run ended.
fn failure_of(outcome: &RunOutcome) -> Option<&ScriptFailure> {
    match outcome {
        RunOutcome::Failed(failure) | RunOutcome::Stopped(LimitReached::Stalled(failure)) => {
            Some(failure)
        }
        RunOutcome::Stopped(
            LimitReached::Memory { failure, .. } | LimitReached::Stack { failure, .. },
        ) => failure.as_ref(),
        _ => None,
    }
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

/// Where a script failed, and the hint.
fn position(failure: &ScriptFailure, code: &str, detail: Detail) -> String {
    let mut text = String::new();
    let frames = if detail == Detail::Full { STACK_FRAMES } else { 1 };
    for frame in failure.stack.iter().take(frames) {
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
        let hint: String = hint.chars().take(HINT_CHARACTERS).collect();
        let _ = write!(text, "\nhint: {}", safe(&hint));
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

/// JSON in which the characters that [`safe`] escapes are escaped.
fn safe_json(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut flag = false;
    for character in text.chars() {
        flag = is_of_flag(character, flag);
        if is_misleading(character, flag) || (character.is_control() && character != '\n') {
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

/// Whether a character belongs to a flag that is written with tags, such as that of Wales. `before` says
/// whether the one before it does.
fn is_of_flag(character: char, before: bool) -> bool {
    character == '\u{1f3f4}' || (before && matches!(character, '\u{e0020}'..='\u{e007e}'))
}

/// Whether a character makes a text read other than it is: one that turns the direction of what follows,
/// or a letter that is not shown. Joiners and marks of direction belong to the text of many languages.
fn is_misleading(character: char, is_flag: bool) -> bool {
    match character {
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        '\u{e0000}'..='\u{e007e}' => !is_flag,
        _ => false,
    }
}

/// A script's text as it is, with control characters and those escaped that make it read other than it is.
pub(super) fn safe(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let mut flag = false;
    while let Some(character) = characters.next() {
        flag = is_of_flag(character, flag);
        match character {
            '\n' | '\t' => clean.push(character),
            '\r' if characters.peek() == Some(&'\n') => {}
            misleading if is_misleading(misleading, flag) => {
                clean.extend(misleading.escape_unicode());
            }
            control if control.is_control() => {
                let _ = write!(clean, "\\x{:02x}", u32::from(control));
            }
            other => clean.push(other),
        }
    }
    clean
}

/// One line for a successful run. After an error, one line for each state, so that the model knows
/// what must not be done again.
fn calls_in(report: &RunReport, detail: Detail) -> String {
    let of = |wanted: fn(&CallState) -> bool| -> Vec<&CallRecord> {
        report.calls.iter().filter(|call| wanted(&call.state)).collect()
    };
    let completed = of(|state| matches!(state, CallState::Completed));
    let mut lines = Vec::new();
    if !completed.is_empty() {
        lines.push(format!("Calls completed: {}.", names(&completed)));
    }
    for (what, calls) in [
        ("Failed", of(|state| matches!(state, CallState::Failed(_)))),
        ("Made, result not delivered", of(|state| matches!(state, CallState::Undelivered(_)))),
        ("In flight at the end, effect unknown", of(|state| matches!(state, CallState::InFlight))),
        ("Not made", of(|state| matches!(state, CallState::Refused(_)))),
        ("Waiting for approval", of(|state| matches!(state, CallState::Suspended))),
    ] {
        if !calls.is_empty() {
            // A successful script has handled it.
            let is_short =
                detail == Detail::Brief || matches!(report.outcome, RunOutcome::Value(_));
            lines.push(if is_short {
                format!("{what}: {}.", names(&calls))
            } else {
                each(what, &calls)
            });
        }
    }
    if report.calls_left_out > 0 {
        lines.push(format!("{} more calls were refused.", report.calls_left_out));
    }
    if lines.is_empty() && !matches!(report.outcome, RunOutcome::Value(_) | RunOutcome::Rejected(_))
    {
        lines.push("No call was made.".to_owned());
    }
    lines.join("\n")
}

/// `a_tool, b_tool ×3`, in the order of the first call.
fn names(calls: &[&CallRecord]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for call in calls {
        match counts.iter_mut().find(|(name, _)| *name == call.name) {
            Some((_, count)) => *count += 1,
            None => counts.push((&call.name, 1)),
        }
    }
    let shown = counts.iter().take(NAMES).map(|(name, count)| match count {
        1 => beginning(name, NAME_CHARACTERS),
        _ => format!("{} ×{count}", beginning(name, NAME_CHARACTERS)),
    });
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if counts.len() > NAMES {
        let _ = write!(text, " and {} other tools", counts.len() - NAMES);
    }
    text
}

fn each(what: &str, calls: &[&CallRecord]) -> String {
    let mut text = format!("{what}: {}.", names(calls));
    for call in calls.iter().take(EACH) {
        let arguments = beginning(&call.arguments, ARGUMENT_CHARACTERS);
        let _ = write!(text, "\n  {}({arguments})", beginning(&call.name, NAME_CHARACTERS));
        match &call.state {
            CallState::Failed(message)
            | CallState::Undelivered(message)
            | CallState::Refused(message) => {
                let _ = write!(text, ": {}", beginning(message, MESSAGE_CHARACTERS));
            }
            CallState::Completed | CallState::InFlight | CallState::Suspended => {}
        }
    }
    if calls.len() > EACH {
        let _ = write!(text, "\n  … and {} more", calls.len() - EACH);
    }
    text
}

fn beginning(text: &str, characters: usize) -> String {
    let line = safe(text).replace('\n', " ");
    if line.chars().nth(characters).is_none() {
        return line;
    }
    line.chars().take(characters).chain(['…']).collect()
}

/// Whether the run has something left to do, and calls that need not be repeated.
pub(super) fn is_resumable(report: &RunReport) -> bool {
    match report.outcome {
        RunOutcome::Value(_) | RunOutcome::Rejected(_) => false,
        RunOutcome::Suspended | RunOutcome::Diverged(_) => true,
        _ => report.calls.iter().any(|call| !matches!(call.state, CallState::Refused(_))),
    }
}

/// Says that results contain replaced characters.
pub(super) fn add_replaced(text: &mut String, count: u64) {
    if count > 0 {
        let _ = write!(text, "{}{}", line_break(text), replaced_note(count));
    }
}

/// Says how to resume the run, and which calls have an unknown outcome.
pub(super) fn add_note(
    text: &mut String,
    report: &RunReport,
    id: &str,
    unknown: &[UnknownCall],
    waiting: &[WaitingCall],
    is_resumable: bool,
) {
    if !unknown.is_empty() {
        let named =
            unknown.iter().take(NAMED).map(|call| format!("{} (call {})", call.name, call.number));
        let named: Vec<String> = named.collect();
        let more = unknown.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = write!(
            text,
            "\nOutcome unknown, not repeated: {}{more}. A person can have it repeated, in their own terminal: toolgate runs repeat {id} CALL",
            named.join(", ")
        );
    }
    for call in waiting.iter().take(NAMED) {
        let WaitingCall { name, question, .. } = call;
        let _ = write!(
            text,
            "\n{name} waits for approval, question {question}: `toolgate approve`, in a person's own \
             terminal, asks them."
        );
    }
    if !is_resumable {
        return;
    }
    let note = match report.outcome {
        RunOutcome::Suspended => {
            format!("Once it is approved, resume_run(run_id: \"{id}\") goes on.")
        }
        RunOutcome::Diverged(_) => format!(
            "resume_run(run_id: \"{id}\") takes code that makes the same calls first; \
             run_code starts a new run."
        ),
        _ => format!(
            "resume_run(run_id: \"{id}\", code?) goes on, with corrected code if need be; what completed \
             is not repeated."
        ),
    };
    let _ = write!(text, "\n{note}");
}

#[cfg(test)]
#[path = "tests/report.rs"]
mod tests;
