//! What a person types.

use std::{
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    path::PathBuf,
    sync::mpsc,
    thread,
};

use rustyline::{Config, DefaultEditor, error::ReadlineError};
use tokio::sync::mpsc as channel;

const PROMPT: &str = "> ";
/// How many lines the history has.
const HISTORY: usize = 1_000;

/// What was typed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TypedLine {
    Text(String),
    /// Ctrl-C, while a line is typed.
    Interrupted,
    /// Ctrl-D, or the end of the input.
    End,
}

/// Reads lines of stdin when it is asked to, and never while a turn runs: then the keyboard belongs to the questions of
/// the broker.
pub(super) struct ChatInput {
    ask: mpsc::Sender<()>,
    lines: channel::Receiver<TypedLine>,
    is_asked: bool,
    /// Whether a person types.
    pub(super) is_terminal: bool,
}

impl ChatInput {
    /// Reads in a thread, because a read cannot be cancelled. The lines of earlier chats are in `history`.
    pub(super) fn start(history: Option<PathBuf>) -> Self {
        let (ask, asked) = mpsc::channel();
        let (sender, lines) = channel::channel(1);
        let is_terminal = io::stdin().is_terminal();
        let edits = is_terminal && io::stdout().is_terminal();
        thread::spawn(move || {
            let mut source = if edits { LineSource::editor(history) } else { LineSource::Plain };
            for () in asked {
                let line = source.line(is_terminal);
                let is_end = line == TypedLine::End;
                if sender.blocking_send(line).is_err() || is_end {
                    break;
                }
            }
        });
        Self { ask, lines, is_asked: false, is_terminal }
    }

    /// The next line. A future that is dropped loses nothing: the next one gets the line.
    pub(super) async fn next(&mut self) -> TypedLine {
        if !self.is_asked {
            self.is_asked = self.ask.send(()).is_ok();
        }
        let line = self.lines.recv().await.unwrap_or(TypedLine::End);
        self.is_asked = false;
        line
    }
}

enum LineSource {
    Editor(Box<DefaultEditor>, Option<PathBuf>),
    Plain,
}

impl LineSource {
    fn editor(history: Option<PathBuf>) -> Self {
        let config = Config::builder().auto_add_history(true).max_history_size(HISTORY);
        let editor = config.and_then(|config| DefaultEditor::with_config(config.build()));
        let Ok(mut editor) = editor else { return Self::Plain };
        if let Some(path) = &history {
            // The first chat has none.
            let _ = editor.load_history(path);
        }
        Self::Editor(Box::new(editor), history)
    }

    fn line(&mut self, is_terminal: bool) -> TypedLine {
        match self {
            Self::Editor(editor, history) => match editor.readline(PROMPT) {
                Ok(line) => {
                    if let Some(path) = history {
                        // A history that cannot be written is lost, and nothing else.
                        let _ = editor.append_history(path);
                    }
                    TypedLine::Text(line)
                }
                Err(ReadlineError::Interrupted) => TypedLine::Interrupted,
                Err(_) => TypedLine::End,
            },
            Self::Plain => {
                if is_terminal {
                    let mut screen = io::stderr();
                    let _ = write!(screen, "{PROMPT}").and_then(|()| screen.flush());
                }
                let mut line = String::new();
                match io::stdin().lock().read_line(&mut line) {
                    Ok(1..) => TypedLine::Text(line),
                    _ => TypedLine::End,
                }
            }
        }
    }
}
