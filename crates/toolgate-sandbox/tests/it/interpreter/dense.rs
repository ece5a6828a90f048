//! Scripts that use much of the language and its library. They run here and in plain Python, and must
//! do the same.

use std::{path::Path, process::Stdio};

use tokio::process::Command;
use toolgate_sandbox::{FailureKind, RunOutcome, RunReport};

use super::{interpreter, pool, run_python};

/// How a script ended in plain Python.
#[derive(Debug)]
struct Plain {
    output: String,
    error_output: String,
    /// The line and the message of the error.
    error: Option<(Option<u32>, String)>,
}

/// Makes time in `asyncio` advance by waiting alone, as it does here. With the real clock the order of
/// two timers would depend on how busy the machine is.
const CLOCK: &str = "
import asyncio, selectors, threading
now = 0.0
class Selector(selectors.DefaultSelector):
    def select(self, timeout=None):
        global now
        if timeout is None or threading.active_count() > 1:
            return super().select(timeout)
        ready = super().select(0)
        if not ready:
            now += max(timeout, 0)
        return ready
selectors.DefaultSelector = Selector
asyncio.SelectorEventLoop.time = lambda self: now
";

async fn run_plain(program: &Path, folder: &Path, code: &str) -> Plain {
    std::fs::write(folder.join("script.py"), code).unwrap();
    std::fs::write(folder.join("sitecustomize.py"), CLOCK).unwrap();
    let output = Command::new(program)
        .args(["-s", "-P", "script.py"])
        .current_dir(folder)
        .env_clear()
        .envs([("PYTHONHASHSEED", "0"), ("TZ", "UTC")])
        .env("PYTHONPATH", folder)
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let error_output = String::from_utf8(output.stderr).unwrap();
    let error = (!output.status.success()).then(|| {
        let frames = error_output.rmatch_indices("script.py\", line ");
        let line = frames
            .map(|(at, found)| &error_output[at + found.len()..])
            .find_map(|rest| rest.split(|next: char| !next.is_ascii_digit()).next()?.parse().ok());
        (line, error_output.lines().last().unwrap_or_default().to_owned())
    });
    Plain { output: String::from_utf8(output.stdout).unwrap(), error_output, error }
}

/// What differs between the two.
fn difference(plain: &Plain, report: &RunReport) -> Option<String> {
    // Here both outputs are one.
    let mut output = report.output.head.clone();
    if output != plain.output {
        let before = plain.error_output.split("Traceback (most recent").next().unwrap_or_default();
        for line in before.lines() {
            if let Some(at) = output.find(line) {
                output.replace_range(at..(at + line.len() + 1).min(output.len()), "");
            }
        }
    }
    if output != plain.output {
        return Some(format!("the output is\n{output}\nand not\n{}", plain.output));
    }
    match (&plain.error, &report.outcome) {
        (None, RunOutcome::Value(_)) => None,
        // A group of exceptions has its own form.
        (Some(_), RunOutcome::Failed(_)) if plain.error_output.contains("  | ") => None,
        (Some((line, message)), RunOutcome::Failed(failure)) => {
            let own = failure.stack.first().map(|frame| frame.position.line);
            let last = failure.message.lines().last().unwrap_or_default();
            let is_exit = failure.message.starts_with("SystemExit: ");
            let is_same = if is_exit {
                last.ends_with(message.as_str())
            } else {
                last == message && own == *line && failure.kind != FailureKind::Memory
            };
            (!is_same).then(|| format!("{own:?} {last}, and not {line:?} {message}"))
        }
        (wanted, outcome) => Some(format!("{outcome:?}, and not {wanted:?}")),
    }
}

/// Runs the scripts of a file, which are separated by lines with their titles.
async fn compare(file: &str, least: usize) {
    let pool = pool();
    let program = interpreter(&pool).await.program.clone();
    let folder = tempfile::tempdir().unwrap();
    let mut differences = Vec::new();
    let mut count = 0;
    for part in file.split("# ---- ").filter(|part| !part.trim().is_empty()) {
        let (title, code) = part.split_once('\n').unwrap();
        let plain = run_plain(&program, folder.path(), code).await;
        let report = run_python(&pool, code).await;
        differences.extend(difference(&plain, &report).map(|what| format!("{title}: {what}")));
        count += 1;
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
    assert!(count >= least, "{count} scripts");
}

macro_rules! files {
    ($($name:ident: $file:literal with $least:literal;)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                compare(include_str!(concat!("../../dense/", $file)), $least).await;
            }
        )*
    };
}

files! {
    classes_are_those_of_python: "classes.py" with 11;
    data_and_numbers_are_those_of_python: "data.py" with 7;
    text_is_that_of_python: "text.py" with 7;
    control_flow_is_that_of_python: "flow.py" with 15;
    asyncio_is_that_of_python: "asynchronous.py" with 12;
    time_is_that_of_python: "time.py" with 4;
    the_library_is_that_of_python: "library.py" with 11;
    algorithms_are_those_of_python: "algorithms.py" with 9;
    errors_are_those_of_python: "errors.py" with 26;
}
