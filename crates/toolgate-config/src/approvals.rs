//! The `approvals` key.

use toolgate_policy::Presence;

use crate::ProblemSeverity;
use crate::document::Member;
use crate::scope::Scope;
use crate::section::{Section as _, Word, Wrong, choices, section};

choices! {
    Presence: "terminal" => Terminal, "desktop" => Desktop, "password" => Password;
}

section! {
    /// How people answer questions: the `approvals` key.
    pub struct ApprovalsConfig as "Approvals" {
        /// How a person who gives a permission in a shell (`toolgate approve` and so on) shows that
        /// they are there. `"terminal"`: at the terminal. `"desktop"`: in a dialog of zenity,
        /// kdialog or macOS. `"password"`: at the terminal, and with the password that polkit
        /// (`pkexec`) asks for.
        "presence" => presence: Presence = Presence::Terminal,
            Word::<Presence>(Wrong::Becomes(Presence::Password));
    }
}

/// Reads the section. A mistake never makes it easier to answer for a person.
pub(crate) fn read(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> ApprovalsConfig {
    let mut settings = ApprovalsConfig::default();
    let is_sound = scope.section(member, ProblemSeverity::Error, "", "", |scope| {
        scope.refuse_unknown::<ApprovalsConfig>();
        let is_known = scope.first_error.is_none();
        settings.read_keys(scope);
        is_known
    });
    if is_sound != Some(true) {
        settings.presence = Presence::Password;
    }
    settings
}
