//! A dialog on the desktop, by a program that the system has for this.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use toolgate_policy::definitions::spelled_out;

use crate::failure::Failure;

/// Longer texts do not fit on a screen.
const LONGEST: usize = 4_000;
const TITLE: &str = "toolgate";

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
    /// Finds a program on `PATH`.
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
        let found = KINDS.iter().find_map(|(name, kind)| Some((on_path(name)?, *kind)));
        let (program, kind) = found.ok_or_else(|| {
            unavailable("there is no zenity, kdialog or osascript on PATH").hint(
                "install one of them, or set `approvals.presence` to \"terminal\" in the configuration",
            )
        })?;
        Ok(Self { program, kind })
    }

    /// Shows the text. Anything but the button that allows is a no.
    pub(crate) fn agrees(&self, text: &str) -> Result<bool, Failure> {
        let text = spelled_out(text);
        let mut shown: String = text.chars().take(LONGEST).collect();
        if shown.len() < text.len() {
            shown.push_str("…\n(There is more: `toolgate approve` shows all of it.)");
        }
        let mut command = Command::new(&self.program);
        match self.kind {
            DialogKind::Zenity => {
                command.args(["--question", "--no-markup", "--default-cancel"]);
                command.args(["--ok-label=Allow", "--cancel-label=Deny"]);
                command.args([format!("--title={TITLE}"), format!("--text={shown}")]);
            }
            DialogKind::Kdialog => {
                command.args(["--title", TITLE, "--yes-label", "Allow", "--no-label", "Deny"]);
                command.args(["--warningyesno", &as_html(&shown)]);
            }
            DialogKind::Osascript => {
                let dialog = "display dialog (item 1 of argv) with title \"toolgate\" buttons \
                              {\"Deny\", \"Allow\"} default button \"Deny\" cancel button \"Deny\"";
                command.args(["-e", "on run argv", "-e", dialog, "-e", "end run", &shown]);
            }
        }
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let status = quiet.status().map_err(|error| {
            let program = self.program.display();
            Failure::new(format!("the dialog of {program} cannot be shown: {error}"))
        })?;
        Ok(status.success())
    }
}

/// The text as kdialog shows it unchanged: it takes what looks like HTML for HTML.
fn as_html(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!("<qt>{}</qt>", text.replace('\n', "<br>"))
}

/// The program of this name on `PATH`.
pub(super) fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|program| is_program(program))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialog_does_not_take_a_text_for_html() {
        assert_eq!(as_html("a <b>c</b>\n& d"), "<qt>a &lt;b&gt;c&lt;/b&gt;<br>&amp; d</qt>");
    }
}
