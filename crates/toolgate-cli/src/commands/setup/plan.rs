//! What is imported, and how each file changes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};
use toolgate::setup::{StoredReference, read_stored};
use toolgate_clients::{
    CLIENTS, Client, Edit, EditError, ImportedServer, Places, ServerIdentity, edited, identity,
    imported, is_toolgate, keep_secrets, replace,
};
use toolgate_config::{CONTAINERS, Format, MAX_FILE_BYTES, as_written};

use super::{Connection, NO_TOKEN, OWN_NAME};
use crate::{cli::Setup, failure::Failure, folders, load};

/// A file of a client.
pub(super) struct Source {
    pub(super) client: &'static Client,
    pub(super) path: PathBuf,
    /// Its text; none if it is not there.
    pub(super) text: Option<String>,
    container: Vec<String>,
    servers: Vec<ImportedServer>,
    /// The names in `toolgate.json` of the servers that are taken over.
    pub(super) taken: Vec<String>,
    /// Their names in the file.
    taken_from: Vec<String>,
    pub(super) edits: Vec<Edit>,
    /// The text with all edits; none if nothing changes.
    pub(super) after: Option<String>,
    /// Why the file is not used.
    pub(super) problem: Option<String>,
    /// What a person has to add, where the file cannot be edited.
    pub(super) snippet: Option<String>,
}

/// Everything that would be written.
pub(super) struct Plan {
    pub(super) target: PathBuf,
    pub(super) target_before: Option<String>,
    pub(super) target_edits: Vec<Edit>,
    /// The new text of the target; none if nothing changes.
    pub(super) target_after: Option<String>,
    pub(super) sources: Vec<Source>,
    /// What goes into the vault.
    pub(super) secrets: Vec<(String, String)>,
    pub(super) notes: Vec<String>,
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
    fn plan_edits(&mut self, connection: &Connection) {
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

/// What of a server is not taken over, and what cannot mean the same.
fn left_notes(server: &ImportedServer, from: &str) -> Vec<String> {
    /// The keys by which clients decide whether calls are asked about.
    const APPROVALS: [&str; 5] =
        ["alwaysAllow", "always_allow", "autoApprove", "trust", "default_tools_approval_mode"];
    let (approvals, others): (Vec<&str>, Vec<&str>) =
        server.left.iter().map(String::as_str).partition(|key| APPROVALS.contains(key));
    let mut notes = Vec::new();
    for (keys, why) in [
        (approvals, "toolgate's own policy decides what is asked"),
        (others, "toolgate has nothing that means the same"),
    ] {
        if !keys.is_empty() {
            let (keys, name) = (keys.join("`, `"), &server.name);
            notes.push(format!("`{keys}` of `{name}` of {from} is not taken over: {why}"));
        }
    }
    if serde_json::to_string(&server.entry).is_ok_and(|text| text.contains("${workspaceFolder}")) {
        notes.push(format!(
            "`${{workspaceFolder}}` of `{}` of {from} is the folder that toolgate is started in",
            server.name
        ));
    }
    notes
}

fn own_note(name: &str, from: &str) -> String {
    format!("`{name}` of {from} is toolgate itself: it is left out, and stays there as it is")
}

/// Whether an entry has everything that is wanted. A token and the client's own keys may be beside it.
fn covers(raw: &Map<String, Value>, wanted: &Map<String, Value>) -> bool {
    wanted.iter().all(|(key, value)| key == "timeout" || raw.get(key) == Some(value))
}

/// A server of the target.
struct Known {
    name: String,
    identity: Option<ServerIdentity>,
    /// Its variables and headers, as they are sent, and which tools are used.
    values: BTreeMap<String, String>,
    from: String,
}

/// The keys that say which tools of a server are used.
const TOOL_LISTS: [&str; 5] =
    ["enabled_tools", "disabled_tools", "disabledTools", "includeTools", "excludeTools"];

/// Leaves out what is the file of another client too, by a link. Returns a note for each.
fn leave_shared(sources: &mut Vec<Source>) -> Vec<String> {
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

impl Plan {
    pub(super) fn new(
        target: &Path,
        mut sources: Vec<Source>,
        connection: &Connection,
        ask: &mut dyn FnMut(&str) -> Result<String, Failure>,
    ) -> Result<Self, Failure> {
        let target_before = match fs::read_to_string(target) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                return Err(Failure::usage(format!(
                    "cannot read {}: {error}",
                    folders::shown(target)
                )));
            }
        };
        let format = Format::of_file(target);
        let text = target_before.clone().unwrap_or_default();
        let root = as_written(&text, format, &folders::shown(target))
            .map_err(|error| Failure::usage(error.to_string()))?;
        let key = CONTAINERS.iter().find(|key| root.contains_key(**key)).unwrap_or(&"mcpServers");
        let container = vec![(*key).to_owned()];
        let mut merge = Merge {
            known: Vec::new(),
            secrets: Vec::new(),
            notes: Vec::new(),
            edits: Vec::new(),
            container,
            ask,
        };
        for (name, entry) in root.get(*key).and_then(Value::as_object).into_iter().flatten() {
            if let Some(entry) = entry.as_object() {
                merge.know(name, entry, folders::shown(target));
            }
        }
        merge.notes.extend(leave_shared(&mut sources));
        for source in &mut sources {
            let from = source.label();
            for server in source.servers.iter().filter(|server| server.enabled) {
                if is_toolgate(&server.entry, &server.name, &connection.own) {
                    if server.name != OWN_NAME {
                        merge.notes.push(own_note(&server.name, &from));
                    }
                    continue;
                }
                source.taken.push(merge.take(server, &from)?);
                source.taken_from.push(server.name.clone());
                merge.notes.extend(left_notes(server, &from));
            }
            source.plan_edits(connection);
        }
        let Merge { secrets, notes, edits, .. } = merge;
        let mut plan = Self {
            target: target.to_owned(),
            target_before,
            target_edits: edits,
            target_after: None,
            sources,
            secrets,
            notes,
        };
        plan.edit_target()?;
        Ok(plan)
    }

    fn edit_target(&mut self) -> Result<(), Failure> {
        let before = self.target_before.as_deref();
        self.target_after = if self.target_edits.is_empty() && before.is_some() {
            None
        } else {
            let text = before.filter(|text| !text.trim().is_empty());
            let text = text.unwrap_or("{\n  \"mcpServers\": {}\n}\n");
            let after = edited(text, Format::of_file(&self.target), &self.target_edits);
            let shown = folders::shown(&self.target);
            Some(after.map_err(|error| Failure::usage(format!("{shown}: {error}")))?)
        };
        Ok(())
    }

    /// Takes the servers back that have turned out to be toolgate itself. Returns those that were in the
    /// plan.
    pub(super) fn leave_own(
        &mut self,
        names: &[String],
        connection: &Connection,
    ) -> Result<Vec<String>, Failure> {
        let planned = |name: &&String| self.target_edits.iter().any(|edit| edit.name() == *name);
        let names: Vec<String> = names.iter().filter(planned).cloned().collect();
        self.leave_out(&names, connection, |name, from| Some(own_note(name, from)))?;
        Ok(names)
    }

    /// The servers that a client has, by their names in the target, with the clients.
    pub(super) fn taken_by(&self, name: &str) -> Vec<String> {
        let sources = self.sources.iter().filter(|it| it.taken.iter().any(|taken| taken == name));
        sources.map(Source::label).collect()
    }

    /// Takes servers back: they stay in the clients, with a note.
    pub(super) fn leave_out(
        &mut self,
        names: &[String],
        connection: &Connection,
        note: impl Fn(&str, &str) -> Option<String>,
    ) -> Result<(), Failure> {
        if names.is_empty() {
            return Ok(());
        }
        self.target_edits.retain(|edit| !names.iter().any(|name| edit.name() == name));
        self.edit_target()?;
        for source in &mut self.sources {
            let label = source.label();
            let (taken, from) =
                (std::mem::take(&mut source.taken), std::mem::take(&mut source.taken_from));
            for (name, there) in taken.into_iter().zip(from) {
                if names.contains(&name) {
                    self.notes.extend(note(&there, &label));
                } else {
                    source.taken.push(name);
                    source.taken_from.push(there);
                }
            }
            source.plan_edits(connection);
        }
        let text = self.target_text().to_owned();
        self.secrets.retain(|(name, _)| text.contains(&format!("${{keychain:{name}}}")));
        Ok(())
    }

    pub(super) fn has_changes(&self) -> bool {
        self.changes().next().is_some()
    }

    /// The files that change: the path, the text before and after.
    pub(super) fn changes(&self) -> impl Iterator<Item = (&Path, Option<&str>, &str)> {
        let target = self
            .target_after
            .as_deref()
            .map(|after| (self.target.as_path(), self.target_before.as_deref(), after));
        let sources = self.sources.iter().filter_map(|source| {
            Some((source.path.as_path(), source.text.as_deref(), source.after.as_deref()?))
        });
        target.into_iter().chain(sources)
    }

    /// The text of the configuration with all servers.
    pub(super) fn target_text(&self) -> &str {
        self.target_after.as_deref().or(self.target_before.as_deref()).unwrap_or_default()
    }

    pub(super) fn secret_values(&self) -> Vec<String> {
        self.secrets.iter().map(|(_, value)| value.clone()).collect()
    }
}

/// Which of two servers that differ is used.
enum Choice {
    First,
    Second,
    Both,
}

/// The servers while they are merged.
struct Merge<'a> {
    known: Vec<Known>,
    secrets: Vec<(String, String)>,
    notes: Vec<String>,
    edits: Vec<Edit>,
    container: Vec<String>,
    ask: &'a mut dyn FnMut(&str) -> Result<String, Failure>,
}

impl Merge<'_> {
    fn know(&mut self, name: &str, entry: &Map<String, Value>, from: String) {
        let (identity, values) = (identity(entry, &|text| self.resolved(text)), self.values(entry));
        self.known.push(Known { name: name.to_owned(), identity, values, from });
    }

    /// Takes a server over. Returns its name in the target.
    fn take(&mut self, server: &ImportedServer, from: &str) -> Result<String, Failure> {
        let wanted = identity(&server.entry, &|text| self.resolved(text));
        let values = self.values(&server.entry);
        let same = self.known.iter().find(|known| wanted.is_some() && known.identity == wanted);
        if let Some(same) = same {
            let names: BTreeSet<&String> = same.values.keys().chain(values.keys()).collect();
            let differs: Vec<&str> = names
                .into_iter()
                .filter(|name| same.values.get(*name) != values.get(*name))
                .map(String::as_str)
                .collect();
            let name = same.name.clone();
            if differs.is_empty() {
                return Ok(name);
            }
            let what = format!(
                "`{}` of {from} is the same server as `{name}` of {}, but has another {}",
                server.name,
                same.from,
                differs.join(", ")
            );
            match self.choice(&what)? {
                Choice::Second => {
                    self.put(&name, server, from);
                    return Ok(name);
                }
                Choice::Both => {}
                Choice::First => {
                    self.notes.push(format!("{what}: the first one is used"));
                    return Ok(name);
                }
            }
        }
        let mut name = server.name.clone();
        let mut number = 2;
        while self.known.iter().any(|known| known.name == name) {
            name = format!("{}-{number}", server.name);
            number += 1;
        }
        if name != server.name {
            self.notes.push(format!(
                "`{}` of {from} is called `{name}`, because there is another `{}`",
                server.name, server.name
            ));
        }
        self.put(&name, server, from);
        Ok(name)
    }

    fn choice(&mut self, what: &str) -> Result<Choice, Failure> {
        for _ in 0..3 {
            let answer =
                (self.ask)(&format!("{what}.\nUse the [F]irst, the [s]econd, or [b]oth? "))?;
            match answer.as_str() {
                "" | "f" | "first" => return Ok(Choice::First),
                "s" | "second" => return Ok(Choice::Second),
                "b" | "both" => return Ok(Choice::Both),
                "n" | "no" | "q" | "quit" => break,
                _ => {}
            }
        }
        Err(Failure::new("nothing was written"))
    }

    fn put(&mut self, name: &str, server: &ImportedServer, from: &str) {
        let mut entry = server.entry.clone();
        let kept = keep_secrets(name, &mut entry);
        for (stored, value) in kept {
            let reference = |stored: &str| format!("${{keychain:{stored}}}");
            let is_free = |stored: &str| {
                let now = self.resolved(&reference(stored));
                now == value || now == reference(stored)
            };
            // A value that is stored already stays.
            let mut chosen = stored.clone();
            let mut number = 2;
            while !is_free(&chosen) {
                chosen = format!("{stored}-{number}");
                number += 1;
            }
            entry
                .values_mut()
                .for_each(|field| replace(field, &reference(&stored), &reference(&chosen)));
            // What is stored already is not of this run, and undo does not forget it.
            if self.resolved(&reference(&chosen)) != value {
                self.secrets.push((chosen, value));
            }
        }
        self.known.retain(|known| known.name != name);
        self.know(name, &entry, from.to_owned());
        self.edits.push(Edit::Set {
            container: self.container.clone(),
            name: name.to_owned(),
            entry,
        });
    }

    fn values(&self, entry: &Map<String, Value>) -> BTreeMap<String, String> {
        let objects = ["env", "headers"].into_iter().filter_map(|key| entry.get(key)?.as_object());
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let tools = TOOL_LISTS.into_iter().filter_map(|key| Some((key, entry.get(key)?)));
        let tools = tools.map(|(key, names)| (key.to_owned(), names.to_string()));
        let named = objects.flatten();
        let named = named.map(|(name, value)| (name.clone(), self.resolved(&text(value))));
        named.chain(tools).collect()
    }

    /// A text with the values of the vault, so that an imported entry equals the one that it came from.
    fn resolved(&self, text: &str) -> String {
        const MARK: &str = "${keychain:";
        let mut resolved = String::new();
        let mut rest = text;
        while let Some(start) = rest.find(MARK) {
            let Some(length) = rest[start..].find('}') else { break };
            let name = &rest[start + MARK.len()..start + length];
            let pending = self
                .secrets
                .iter()
                .find(|(stored, _)| stored == name)
                .map(|(_, value)| value.clone());
            let value = pending.or_else(|| {
                let environment = load::environment();
                read_stored(
                    StoredReference::Keychain(name),
                    environment.store.as_ref(),
                    &environment.vault_key,
                )
                .ok()
            });
            resolved.push_str(&rest[..start]);
            match value {
                Some(value) => resolved.push_str(&value),
                None => resolved.push_str(&rest[start..=start + length]),
            }
            rest = &rest[start + length + 1..];
        }
        resolved.push_str(rest);
        resolved
    }
}
