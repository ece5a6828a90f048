//! Which clients use toolgate.

use std::{
    env,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};
use toolgate_clients::{CLIENTS, OwnProgram, is_toolgate};

use super::{own_program, places, source::Source};
use crate::commands::service;

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
    /// The configuration that its toolgate reads, if it does not exist.
    pub(crate) missing_configuration: Option<String>,
    /// The URL of the gateway that it uses, if nothing answers there.
    pub(crate) silent_gateway: Option<String>,
    /// Whether the file belongs to the working folder.
    pub(crate) is_projects: bool,
    /// Why its file cannot be read.
    pub(crate) problem: Option<String>,
}

/// The clients of this user, and those of the working folder, whose files exist.
pub(crate) fn clients() -> Vec<ClientState> {
    let variable = |name: &str| env::var(name).ok();
    let Ok(places) = places(&variable) else { return Vec::new() };
    let own_program = own_program(env::current_exe().unwrap_or_default());
    let folder = (places.working_folder != places.home).then_some(&places.working_folder);
    let files = CLIENTS.iter().flat_map(|client| {
        let container = || client.container.iter().map(ToString::to_string).collect();
        let user = client.user_file(&places).filter(|path| path.is_file());
        let user = user.map(|path| Source::read(client, path, container(), None));
        let project = folder.into_iter().flat_map(|folder| {
            let files = client.project_files(folder).into_iter();
            files.map(|path| Source::read(client, path, container(), Some(folder)))
        });
        let user = user.map(|source| (source, false));
        user.into_iter().chain(project.map(|source| (source, true))).collect::<Vec<_>>()
    });
    files.map(|(source, is_projects)| state(&source, &own_program, is_projects)).collect()
}

fn state(source: &Source, own_program: &OwnProgram, is_projects: bool) -> ClientState {
    let used = || source.servers().iter().filter(|server| server.enabled);
    let own: Vec<_> =
        used().filter(|server| is_toolgate(&server.entry, &server.name, own_program)).collect();
    let program = |entry: &Map<String, Value>| {
        entry.get("command").and_then(Value::as_str).map(str::to_owned)
    };
    let is_missing = |program: &String| {
        let path = Path::new(program);
        path.is_absolute() && !path.exists()
    };
    let label = source.label();
    ClientState {
        is_projects,
        missing_configuration: own.iter().find_map(|server| missing_configuration(&server.entry)),
        silent_gateway: own.iter().find_map(|server| silent_gateway(&server.entry)),
        id: source.client.id,
        label: if is_projects { format!("{label} (this folder)") } else { label },
        path: source.path.clone(),
        others: used().count() - own.len(),
        uses_toolgate: !own.is_empty(),
        missing_program: own.iter().filter_map(|server| program(&server.entry)).find(is_missing),
        problem: source.problem.clone(),
    }
}

/// The file after `--config`, if it does not exist.
fn missing_configuration(entry: &Map<String, Value>) -> Option<String> {
    let args = entry.get("args").and_then(Value::as_array)?;
    let at = args.iter().position(|it| it == "--config")?;
    let path = args.get(at + 1)?.as_str()?;
    (Path::new(path).is_absolute() && !Path::new(path).exists()).then(|| path.to_owned())
}

/// The URL of a gateway on this machine where nothing answers.
fn silent_gateway(entry: &Map<String, Value>) -> Option<String> {
    let url = entry.get("url").and_then(Value::as_str)?;
    let parsed = url::Url::parse(url).ok()?;
    let addresses = parsed.socket_addrs(|| None).ok()?;
    let is_here = addresses.iter().all(|address| address.ip().is_loopback());
    (is_here && !addresses.into_iter().any(service::answers)).then(|| url.to_owned())
}
