//! The folders of toolgate's data and configuration, by the conventions of the system.
//!
//! None of them may depend on the working folder: its files may come from somebody else.

use std::{
    env,
    path::{Path, PathBuf},
};

use crate::failure::Failure;

/// Refuses a state folder that depends on the working folder. Somebody else's folder could contain
/// what a person has trusted and approved.
pub(crate) fn check() -> Result<(), Failure> {
    match given("TOOLGATE_HOME") {
        Some(home) if !home.is_absolute() => Err(Failure::usage(format!(
            "TOOLGATE_HOME is `{}`, which is not an absolute path",
            home.display()
        ))
        .hint("write the whole path, such as /home/ada/.toolgate")),
        _ => Ok(()),
    }
}

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

/// The names of the files that are tried as the configuration of a folder, in this order.
pub(crate) const OF_FOLDER: [&str; 3] = ["toolgate.json", "toolgate.jsonc", ".mcp.json"];

/// The user's own configuration, whether it exists or not.
pub(crate) fn own_configuration() -> Option<PathBuf> {
    let user = if cfg!(windows) {
        set("APPDATA")
    } else {
        set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))
    };
    user.map(|folder| folder.join("toolgate").join("toolgate.json"))
}

/// The configuration of a folder, unless it is the user's own.
pub(crate) fn configuration_of(folder: &Path) -> Option<PathBuf> {
    let real = |path: &Path| path.canonicalize().ok();
    let own = own_configuration().and_then(|own| real(&own));
    let mut files = OF_FOLDER.iter().map(|name| folder.join(name));
    let found = files.find(|path| path.is_file())?;
    (own.is_none() || real(&found) != own).then_some(found)
}

/// A path for people: with `~` for the home folder.
pub(crate) fn shown(path: &Path) -> String {
    set("HOME")
        .and_then(|home| path.strip_prefix(home).ok().map(|rest| format!("~/{}", rest.display())))
        .unwrap_or_else(|| path.display().to_string())
}

/// The folder that a variable names. The XDG convention ignores relative paths.
fn set(variable: &str) -> Option<PathBuf> {
    given(variable).filter(|folder| folder.is_absolute())
}

fn given(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}
