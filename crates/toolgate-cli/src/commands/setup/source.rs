//! The files of clients: which there are, what they have, and how each changes.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};
use toolgate_clients::{
    CLIENTS, Client, Edit, EditError, ImportedServer, Places, edited, imported, is_toolgate,
};
use toolgate_config::{Format, MAX_FILE_BYTES, as_written};

use super::{Connection, NO_TOKEN, OWN_NAME};
use crate::{cli::Setup, folders};

/// A file of a client.
pub(super) struct Source {
    pub(super) client: &'static Client,
    pub(super) path: PathBuf,
    /// Its text; none if it is not there.
    pub(super) text: Option<String>,
    pub(super) container: Vec<String>,
    pub(super) servers: Vec<ImportedServer>,
    /// The names in `toolgate.json` of the servers that are taken over.
    pub(super) taken: Vec<String>,
    /// Their names in the file.
    pub(super) taken_from: Vec<String>,
    /// Whether servers stay in it that did not start.
    pub(super) keeps_failed: bool,
    pub(super) edits: Vec<Edit>,
    /// The text with all edits; none if nothing changes.
    pub(super) after: Option<String>,
    /// Why the file is not used.
    pub(super) problem: Option<String>,
    /// What a person has to add, where the file cannot be edited.
    pub(super) snippet: Option<String>,
}

/// Finds the files of the clients.
pub(super) fn sources(arguments: &Setup, places: &Places<'_>) -> Vec<Source> {
    let chosen = |client: &Client| {
        arguments.clients.is_empty() || arguments.clients.iter().any(|it| it.id == client.id)
    };
    let mut sources = Vec::new();
    for client in CLIENTS.iter().filter(|client| chosen(client)) {
        let container: Vec<String> = client.container.iter().map(ToString::to_string).collect();
        let user = client.user_file(places);
        if arguments.project {
            let folder = &places.working_folder;
            for path in client.project_files(folder) {
                sources.push(Source::read(client, path, container.clone(), Some(folder)));
            }
            // Claude Code keeps servers for a folder in the user's file.
            let local =
                vec!["projects".to_owned(), folder.display().to_string(), "mcpServers".to_owned()];
            if let Some(path) = user.filter(|path| client.id == "claude-code" && path.is_file()) {
                let source = Source::read(client, path, local, Some(folder));
                if !source.servers.is_empty() {
                    sources.push(source);
                }
            }
        } else if let Some(path) =
            user.filter(|path| path.is_file() || !arguments.clients.is_empty())
        {
            sources.push(Source::read(client, path, container, None));
        }
    }
    sources
}

/// Leaves out what is the file of another client too, by a link. Returns a note for each.
pub(super) fn leave_shared(sources: &mut Vec<Source>) -> Vec<String> {
    let (mut seen, mut notes) = (Vec::<(PathBuf, Vec<String>, String)>::new(), Vec::new());
    sources.retain(|source| {
        let real = fs::canonicalize(&source.path).unwrap_or_else(|_| source.path.clone());
        let same = seen.iter().find(|(path, keys, _)| *path == real && *keys == source.container);
        if let Some((_, _, first)) = same {
            notes.push(format!("{} has the same file as {first}", source.label()));
            return false;
        }
        seen.push((real, source.container.clone(), source.label()));
        true
    });
    notes
}

/// The files of projects in the working folder, which are left as they are.
pub(super) fn projects(places: &Places<'_>, sources: &[Source]) -> Vec<PathBuf> {
    let files = CLIENTS.iter().flat_map(|client| client.project_files(&places.working_folder));
    files.filter(|path| !sources.iter().any(|source| source.path == *path)).collect()
}

impl Source {
    pub(super) fn read(
        client: &'static Client,
        path: PathBuf,
        container: Vec<String>,
        project: Option<&Path>,
    ) -> Self {
        let mut source = Self {
            client,
            container,
            text: None,
            servers: Vec::new(),
            taken: Vec::new(),
            taken_from: Vec::new(),
            keeps_failed: false,
            edits: Vec::new(),
            after: None,
            problem: None,
            snippet: None,
            path,
        };
        if !source.path.exists() {
            return source;
        }
        let size = fs::metadata(&source.path).map(|found| found.len()).unwrap_or_default();
        let text = if size > MAX_FILE_BYTES as u64 {
            Err("the file is too large".to_owned())
        } else {
            fs::read_to_string(&source.path).map_err(|error| error.to_string())
        };
        let format = Format::of_file(&source.path);
        match text {
            Ok(text) => {
                // opencode has a second way to write them.
                if source.container == ["mcp"]
                    && as_written(&text, format, "").is_ok_and(|root| {
                        root.get("mcp")
                            .and_then(|mcp| mcp.get("servers"))
                            .is_some_and(Value::is_object)
                    })
                {
                    source.container.push("servers".to_owned());
                }
                let folder = std::path::absolute(&source.path).ok();
                let folder = folder.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
                match imported(client, &text, format, &source.container, folder, project) {
                    Ok(servers) => source.servers = servers,
                    Err(error) => {
                        let line = error.to_string().lines().next().unwrap_or_default().to_owned();
                        // A place in the file comes first.
                        let file = folders::shown(&source.path);
                        let file = if line.starts_with(':') { file } else { format!("{file}: ") };
                        source.problem = Some(format!("{file}{line}"));
                    }
                }
                source.text = Some(text);
            }
            Err(error) => source.problem = Some(error),
        }
        source
    }

    /// The servers of the file.
    pub(super) fn servers(&self) -> &[ImportedServer] {
        &self.servers
    }

    /// The client, and what of it.
    pub(super) fn label(&self) -> String {
        match self.container.first().map(String::as_str) {
            Some("projects") => format!("{} (this folder)", self.client.name),
            _ => self.client.name.to_owned(),
        }
    }

    /// The text with the edits, and this entry for toolgate.
    pub(super) fn text_with(&self, own: &Map<String, Value>) -> Result<String, EditError> {
        let mut edits = self.edits.clone();
        for edit in &mut edits {
            if let Edit::Set { entry, .. } = edit {
                entry.clone_from(own);
            }
        }
        edited(self.text.as_deref().unwrap_or_default(), Format::of_file(&self.path), &edits)
    }

    /// Plans the edits: the servers that were taken over are switched off or removed, and toolgate is added.
    pub(super) fn plan_edits(&mut self, connection: &Connection) {
        self.edits.clear();
        self.after = None;
        for name in &self.taken_from {
            let (container, name) = (self.container.clone(), name.clone());
            self.edits.push(match self.client.switch {
                Some((key, value)) => Edit::Switch { container, name, key: key.to_owned(), value },
                None => Edit::Remove { container, name },
            });
        }
        let own = &connection.own;
        let wanted = connection.entry(self.client, None);
        let mut ours =
            self.servers.iter().filter(|server| is_toolgate(&server.entry, &server.name, own));
        // What is shown has the place of the token, which is made only when the file is written.
        let shown = connection.entry(self.client, connection.needs_token.then_some(NO_TOKEN));
        let has_token = |raw: &Map<String, Value>| {
            ["headers", "http_headers"]
                .iter()
                .all(|key| !shown.contains_key(*key) || raw.get(*key).is_some_and(Value::is_object))
        };
        let is_there = ours.any(|server| server.name != OWN_NAME)
            || self.raw(OWN_NAME).is_some_and(|raw| covers(&raw, &wanted) && has_token(&raw));
        if !is_there {
            let (container, name) = (self.container.clone(), OWN_NAME.to_owned());
            self.edits.push(Edit::Set { container, name, entry: wanted.clone() });
        }
        self.edits.extend(self.allowing());
        if self.edits.is_empty() || self.problem.is_some() {
            return;
        }
        match self.text_with(&shown) {
            Ok(after) => self.after = (self.text.as_ref() != Some(&after)).then_some(after),
            Err(error) => {
                self.problem = Some(error.to_string());
                let mut object =
                    Value::Object(Map::from_iter([(OWN_NAME.to_owned(), Value::Object(wanted))]));
                for key in self.container.iter().rev() {
                    object = Value::Object(Map::from_iter([(key.clone(), object)]));
                }
                self.snippet = serde_json::to_string_pretty(&object).ok();
            }
        }
    }

    /// Adds toolgate where a client has a list of the servers that it uses.
    fn allowing(&self) -> Option<Edit> {
        let root = as_written(self.text.as_deref()?, Format::of_file(&self.path), "").ok()?;
        let allowed = root.get("mcp")?.get("allowed")?.as_array()?;
        let mut items: Vec<String> =
            allowed.iter().map(|it| it.as_str().map(str::to_owned)).collect::<Option<_>>()?;
        if items.is_empty() || items.iter().any(|it| it == OWN_NAME) {
            return None;
        }
        items.push(OWN_NAME.to_owned());
        Some(Edit::List { container: vec!["mcp".to_owned()], name: "allowed".to_owned(), items })
    }

    /// An entry as it is written.
    fn raw(&self, name: &str) -> Option<Map<String, Value>> {
        let root = as_written(self.text.as_deref()?, Format::of_file(&self.path), "").ok()?;
        let mut object = &root;
        for key in &self.container {
            object = object.get(key)?.as_object()?;
        }
        object.get(name)?.as_object().cloned()
    }
}

/// Whether an entry has everything that is wanted. A token and the client's own keys may be beside it.
fn covers(raw: &Map<String, Value>, wanted: &Map<String, Value>) -> bool {
    wanted.iter().all(|(key, value)| key == "timeout" || raw.get(key) == Some(value))
}
