//! The commands by chapters, as `toolgate --help` lists them.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _, FromArgMatches as _, builder::styling::Styles};

use super::Cli;

/// What a person looks for, and the commands that do it.
const CHAPTERS: &[(&str, &[&str])] = &[
    ("Begin", &["demo", "status", "config", "doctor"]),
    ("Serve an agent", &["serve", "token", "login", "logout"]),
    ("Find tools and call them", &["search", "inspect", "call", "run", "runs"]),
    ("Choose servers", &["enable", "disable", "skills", "logs"]),
    (
        "Decide what agents may do, and see what they did",
        &["policy", "approve", "grants", "definitions", "audit"],
    ),
    ("Measure", &["tokens", "usage", "eval"]),
];

impl Cli {
    /// Reads the arguments of this process. Ends it where they are wrong, or help was asked for.
    pub(crate) fn read() -> Self {
        let matches = command().get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

fn command() -> Command {
    let command = Cli::command();
    let chapters = chapters(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{chapters}{}\n{{options}}{{after-help}}",
        heading("Options")
    ))
}

/// Each chapter with its commands and the first line of what they do.
fn chapters(command: &Command) -> String {
    let width = CHAPTERS.iter().flat_map(|(_, names)| *names).map(|name| name.len()).max();
    let name_style = *Styles::styled().get_literal();
    let mut text = String::new();
    for (title, names) in CHAPTERS {
        let _ = writeln!(text, "{}", heading(title));
        for known in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let name = known.get_name();
            let gap = " ".repeat(width.unwrap_or_default() - name.len());
            let about = known.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {name_style}{name}{name_style:#}{gap}  {about}");
        }
        text.push('\n');
    }
    text
}

fn heading(title: &str) -> String {
    let style = *Styles::styled().get_header();
    format!("{style}{title}:{style:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_chapter() {
        let command = Cli::command();
        let visible = command.get_subcommands().filter(|known| !known.is_hide_set());
        let mut known: Vec<&str> = visible.map(Command::get_name).collect();
        let mut listed: Vec<&str> =
            CHAPTERS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        known.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, known);
    }
}
