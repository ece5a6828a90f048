//! Data goes to stdout, everything else to stderr.

use std::{
    borrow::Cow,
    fmt::{Display, Write as _},
    io::{self, IsTerminal, Write},
    time::Duration,
};

use clap::builder::styling::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use toolgate_policy::definitions::spelled_out;

use crate::failure::Failure;

/// Prints a line of data. Control characters are spelt out. A closed pipe ends the output without a
/// panic.
pub(crate) fn line(text: impl Display) {
    write(&spelled_out(&text.to_string()));
}

fn write(text: &str) {
    if let Err(error) = writeln!(anstream::stdout(), "{text}") {
        if error.kind() == io::ErrorKind::BrokenPipe {
            // The reader has closed the pipe, such as `head`.
            std::process::exit(0);
        }
        note(format!("error: cannot write the output: {error}"));
        std::process::exit(1);
    }
}

/// The colour of a word, where the terminal has colours.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mark {
    Good,
    Warning,
    Bad,
}

impl Mark {
    fn style(self) -> Style {
        let color = match self {
            Self::Good => AnsiColor::Green,
            Self::Warning => AnsiColor::Yellow,
            Self::Bad => AnsiColor::Red,
        };
        color.on_default()
    }
}

/// Prints a line of data that begins with a word in a colour. `NO_COLOR`, `CLICOLOR` and
/// `CLICOLOR_FORCE` are respected.
pub(crate) fn marked(mark: Mark, word: &str, rest: impl Display) {
    let style = mark.style();
    write(&format!("{style}{word}{style:#}{}", spelled_out(&rest.to_string())));
}

/// Clears the screen of a terminal.
pub(crate) fn clear() {
    // A closed pipe is noticed by what follows.
    let _ = write!(anstream::stdout(), "\u{1b}[2J\u{1b}[H");
}

/// Prints a table of data, with its first line in bold.
pub(crate) fn table(text: &str) {
    let text = spelled_out(text);
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let bold = Style::new().bold();
    let separator = if rest.is_empty() { "" } else { "\n" };
    write(&format!("{bold}{first}{bold:#}{separator}{rest}"));
}

/// Prints data for a program. Control characters are escaped as in JSON.
pub(crate) fn json(data: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(data)
        .map_err(|error| Failure::new(format!("the result cannot be written: {error}")))?;
    write(&escaped(&text));
    Ok(())
}

/// Prints data for a program on one line.
pub(crate) fn json_line(data: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(data)
        .map_err(|error| Failure::new(format!("the event cannot be written: {error}")))?;
    write(&escaped(&text));
    Ok(())
}

/// JSON with escapes for control characters. Outside of strings only line breaks are hidden, and inside
/// of them none is.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(spelled_out(letter.encode_utf8(&mut [0; 4])), Cow::Borrowed(_)) {
            escaped.push(letter);
        } else {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        }
    }
    escaped
}

/// Prints data for a program, or a text for a person.
pub(crate) fn show<T: Display>(
    as_json: bool,
    data: &impl Serialize,
    text: impl FnOnce() -> T,
) -> Result<(), Failure> {
    if as_json {
        return json(data);
    }
    line(text());
    Ok(())
}

/// Prints a list: as JSON, as a table, or as a note that it is empty.
pub(crate) fn list<T: Serialize>(
    as_json: bool,
    rows: &[T],
    empty: &str,
    table: impl FnOnce() -> String,
) -> Result<(), Failure> {
    if rows.is_empty() && !as_json {
        note(empty);
        return Ok(());
    }
    show(as_json, &rows, table)
}

/// Prints a remark for the person, beside the data.
pub(crate) fn note(text: impl Display) {
    let text = text.to_string();
    let text = spelled_out(&text);
    let prefixes = [("error:", Mark::Bad), ("warning:", Mark::Warning)];
    let styled = prefixes.into_iter().find_map(|(word, mark)| {
        let rest = text.strip_prefix(word)?;
        let style = mark.style();
        Some(format!("{style}{word}{style:#}{rest}"))
    });
    // A closed stderr cannot be reported.
    let _ = writeln!(anstream::stderr(), "{}", styled.as_deref().unwrap_or(&text));
}

/// Stderr for the log. What servers say may be in it, so that it is spelt out there too.
pub(crate) struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        io::stderr().write_all(spelled_out(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// A progress bar, on a terminal only; it disappears when the work is done.
pub(crate) fn progress(total: u64, what: &'static str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {pos}/{len}") {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
