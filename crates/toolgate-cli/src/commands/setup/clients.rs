//! Which clients use toolgate.

use std::{
    env,
    path::{Path, PathBuf},
};

use serde_json::Value;
use toolgate_clients::{CLIENTS, OwnProgram, is_toolgate};

use super::{own_program, places, plan::Source};

/// A client with a configuration file.
pub(crate) struct ClientState {
    /// Its name for `--client`.
    pub(crate) id: &'static str,
    pub(crate) label: String,
    pub(crate) path: PathBuf,
    /// How many servers it uses besides toolgate.
    pub(crate) others: usize,
    pub(crate) uses_toolgate: bool,
    /// The program of toolgate's entry, if it does not exist.
    pub(crate) missing_program: Option<String>,
    /// Why its file cannot be read.
    pub(crate) problem: Option<String>,
}

/// The clients of this user whose files exist.
pub(crate) fn clients() -> Vec<ClientState> {
    let variable = |name: &str| env::var(name).ok();
    let Ok(places) = places(&variable) else { return Vec::new() };
    let own_program = own_program(env::current_exe().unwrap_or_default());
    let files = CLIENTS.iter().filter_map(|client| {
        let path = client.user_file(&places).filter(|path| path.is_file())?;
        let container = client.container.iter().map(ToString::to_string).collect();
        Some(Source::read(client, path, container, None))
    });
    files.map(|source| state(&source, &own_program)).collect()
}

fn state(source: &Source, own_program: &OwnProgram) -> ClientState {
    let used = || source.servers().iter().filter(|server| server.enabled);
    let own: Vec<_> =
        used().filter(|server| is_toolgate(&server.entry, &server.name, own_program)).collect();
    let program = |entry: &serde_json::Map<String, Value>| {
        entry.get("command").and_then(Value::as_str).map(str::to_owned)
    };
    let is_missing = |program: &String| {
        let path = Path::new(program);
        path.is_absolute() && !path.exists()
    };
    ClientState {
        id: source.client.id,
        label: source.label(),
        path: source.path.clone(),
        others: used().count() - own.len(),
        uses_toolgate: !own.is_empty(),
        missing_program: own.iter().filter_map(|server| program(&server.entry)).find(is_missing),
        problem: source.problem.clone(),
    }
}
