//! The folders of toolgate's data and configuration, by the conventions of the system.

use std::{
    env,
    path::{Path, PathBuf},
};

/// The folder of caches, logs and journals: `TOOLGATE_HOME`, or the usual folder of the system.
pub(crate) fn state() -> Option<PathBuf> {
    if let Some(home) = set("TOOLGATE_HOME") {
        return Some(home);
    }
    if cfg!(windows) {
        return set("LOCALAPPDATA").map(|folder| folder.join("toolgate"));
    }
    if cfg!(target_os = "macos") {
        return set("HOME").map(|home| home.join("Library/Application Support/toolgate"));
    }
    set("XDG_STATE_HOME")
        .or_else(|| set("HOME").map(|home| home.join(".local/state")))
        .map(|folder| folder.join("toolgate"))
}

/// The files that are tried as configuration, in this order.
pub(crate) fn configurations() -> Vec<PathBuf> {
    let user = if cfg!(windows) {
        set("APPDATA")
    } else {
        set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))
    };
    let here = ["toolgate.json", "toolgate.jsonc", ".mcp.json"].map(PathBuf::from);
    let own = user.map(|folder| folder.join("toolgate").join("toolgate.json"));
    here.into_iter().chain(own).collect()
}

/// A path for people: with `~` for the home folder.
pub(crate) fn shown(path: &Path) -> String {
    set("HOME")
        .and_then(|home| path.strip_prefix(home).ok().map(|rest| format!("~/{}", rest.display())))
        .unwrap_or_else(|| path.display().to_string())
}

fn set(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}
