//! The commands in groups, as `toolgate --help` lists them.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _, FromArgMatches as _, builder::styling::Styles};

use super::Cli;

/// The groups of commands, in the order in which a new user needs them.
const GROUPS: &[(&str, &[&str])] = &[
    ("Start", &["setup", "demo", "config", "status", "doctor", "engines"]),
    (
        "Serve an agent",
        &["serve", "service", "fleet", "token", "login", "logout", "logins", "secret"],
    ),
    ("Use tools", &["search", "inspect", "call", "run", "runs", "chat"]),
    ("Choose servers", &["add", "remove", "list", "enable", "disable", "skills", "logs"]),
    (
        "Control what agents may do, and review what they did",
        &["web", "policy", "trust", "approve", "grants", "definitions", "audit"],
    ),
    ("Measure", &["tokens", "usage", "eval"]),
    ("Install", &["completions", "man"]),
];

impl Cli {
    /// Reads the arguments of this process. Ends the process if they are invalid, and after
    /// `--help`.
    pub(crate) fn read() -> Self {
        let matches = command().get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

pub(super) fn command() -> Command {
    let command = Cli::command();
    let groups = groups(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{}\n{{options}}{{after-help}}",
        heading("Options")
    ))
}

/// Each group with its commands and the first lines of their help.
fn groups(command: &Command) -> String {
    let width = GROUPS.iter().flat_map(|(_, names)| *names).map(|name| name.len()).max();
    let name_style = *Styles::styled().get_literal();
    let mut text = String::new();
    for (title, names) in GROUPS {
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
    fn every_command_is_in_one_group() {
        let command = Cli::command();
        let visible = command.get_subcommands().filter(|known| !known.is_hide_set());
        let mut known: Vec<&str> = visible.map(Command::get_name).collect();
        let mut listed: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        known.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, known);
    }

    #[test]
    fn the_groups_fit_80_columns() {
        for line in groups(&Cli::command()).lines() {
            let plain = anstream::adapter::strip_str(line).to_string();
            assert!(plain.chars().count() <= 80, "{plain}");
        }
    }
}
