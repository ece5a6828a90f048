//! A dialog on the desktop, by a program that the system has for this.

use std::{env, path::PathBuf, process::Stdio};

use toolgate_policy::definitions::spelled_out;

use super::system::{of_system, system_command};
use crate::failure::Failure;

/// Longer texts do not fit on a screen.
const LONGEST: usize = 4_000;
const TITLE: &str = "toolgate";
/// What kdialog prints if the person allows.
const CHOSEN: &str = "allow";

/// A program that shows a dialog.
pub(crate) struct Dialog {
    program: PathBuf,
    kind: DialogKind,
}

#[derive(Debug, Clone, Copy)]
enum DialogKind {
    Zenity,
    Kdialog,
    Osascript,
}

const KINDS: [(&str, DialogKind); 3] = [
    ("zenity", DialogKind::Zenity),
    ("kdialog", DialogKind::Kdialog),
    ("osascript", DialogKind::Osascript),
];

impl Dialog {
    /// Finds a program of the system.
    pub(crate) fn find() -> Result<Self, Failure> {
        let unavailable = |why: &str| {
            Failure::usage(format!(
                "`approvals.presence` is \"desktop\", and no dialog can be shown: {why}"
            ))
        };
        let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        if cfg!(target_os = "linux") && !is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY") {
            return Err(unavailable("there is no desktop here").hint(
                "run it on the desktop, or set `approvals.presence` to \"terminal\" in the configuration",
            ));
        }
        let found = KINDS.iter().find_map(|(name, kind)| Some((of_system(name)?, *kind)));
        let (program, kind) = found.ok_or_else(|| {
            unavailable("the system has no zenity, kdialog or osascript").hint(
                "install one of them, or set `approvals.presence` to \"terminal\" in the configuration",
            )
        })?;
        Ok(Self { program, kind })
    }

    /// Shows the text. Anything but the choice that allows is a no, also the return key.
    pub(crate) fn agrees(&self, text: &str) -> Result<bool, Failure> {
        let text = spelled_out(text);
        let mut shown: String = text.chars().take(LONGEST).collect();
        if shown.len() < text.len() {
            shown.push_str("…\n(There is more: `toolgate approve` shows all of it.)");
        }
        let mut command = system_command(&self.program);
        match self.kind {
            DialogKind::Zenity => {
                command.args(["--question", "--no-markup", "--default-cancel"]);
                command.args(["--ok-label=Allow", "--cancel-label=Deny"]);
                command.args([format!("--title={TITLE}"), format!("--text={shown}")]);
            }
            DialogKind::Kdialog => {
                // Its questions allow with the return key. A list begins with what is chosen here.
                command.args(["--title", TITLE, "--radiolist", &as_html(&shown)]);
                command.args(["deny", "Deny", "on", CHOSEN, "Allow", "off"]);
            }
            DialogKind::Osascript => {
                let dialog = "display dialog (item 1 of argv) with title \"toolgate\" buttons \
                              {\"Deny\", \"Allow\"} default button \"Deny\" cancel button \"Deny\"";
                command.args(["-e", "on run argv", "-e", dialog, "-e", "end run", &shown]);
            }
        }
        let shown = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
        let output = shown.map_err(|error| {
            let program = self.program.display();
            Failure::new(format!("the dialog of {program} cannot be shown: {error}"))
        })?;
        let is_chosen = match self.kind {
            DialogKind::Kdialog => output.stdout.trim_ascii() == CHOSEN.as_bytes(),
            DialogKind::Zenity | DialogKind::Osascript => true,
        };
        Ok(output.status.success() && is_chosen)
    }
}

/// The text as kdialog shows it unchanged: it takes what looks like HTML for HTML.
fn as_html(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!("<qt>{}</qt>", text.replace('\n', "<br>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that writes down what it is asked, in place of one of the system.
    #[cfg(unix)]
    #[test]
    fn a_dialog_shows_the_whole_question_and_only_its_button_allows() {
        use std::{fs, os::unix::fs::PermissionsExt as _};

        let folder = tempfile::tempdir().unwrap();
        let (program, log) = (folder.path().join("dialog"), folder.path().join("log"));
        let mut all = String::new();
        for (kind, said, code, is_allowed) in [
            (DialogKind::Kdialog, "deny", 0, false),
            (DialogKind::Kdialog, "allow", 1, false),
            (DialogKind::Kdialog, "allow", 0, true),
            (DialogKind::Zenity, "", 5, false),
            (DialogKind::Zenity, "", 0, true),
            (DialogKind::Osascript, "button returned:Allow", 0, true),
        ] {
            let write = format!("printf '%s\\n' \"$@\" > '{}'", log.display());
            let script = format!("#!/bin/sh\n{write}\necho {said}\nexit {code}\n");
            fs::write(&program, script).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            let dialog = Dialog { program: program.clone(), kind };
            let is_agreed = dialog.agrees("Call <b>a</b>\u{202e}?\n\nAllow?").unwrap();
            assert_eq!(is_agreed, is_allowed, "{kind:?} {said} {code}");
            all.push_str(&fs::read_to_string(&log).unwrap());
        }
        insta::assert_snapshot!(all);
    }

    #[test]
    fn a_dialog_does_not_take_a_text_for_html() {
        assert_eq!(as_html("a <b>c</b>\n& d"), "<qt>a &lt;b&gt;c&lt;/b&gt;<br>&amp; d</qt>");
    }
}
