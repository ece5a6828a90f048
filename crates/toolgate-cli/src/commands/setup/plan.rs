//! What is imported, and how each file changes.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use toolgate_clients::{Edit, ImportedServer, edited, is_toolgate};
use toolgate_config::{CONTAINERS, Format, as_written};

use super::{
    Connection, OWN_NAME,
    merge::Merge,
    source::{Source, leave_shared},
};
use crate::{failure::Failure, folders};

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
        let mut merge = Merge::new(container, ask);
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

    /// Takes servers back that did not start.
    pub(super) fn leave_in_clients(
        &mut self,
        names: &[String],
        connection: &Connection,
    ) -> Result<(), Failure> {
        for source in &mut self.sources {
            source.keeps_failed = source.taken.iter().any(|name| names.contains(name));
        }
        self.leave_out(names, connection, |_, _| None)
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
