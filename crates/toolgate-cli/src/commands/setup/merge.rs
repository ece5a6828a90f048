//! Merges servers by what they are, and asks where two differ.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use toolgate::setup::{StoredReference, read_stored};
use toolgate_clients::{
    Edit, ImportedServer, ServerIdentity, identity, keep_secrets, replace, without_secrets,
};

use crate::{failure::Failure, load};

/// A server of the target.
struct Known {
    name: String,
    identity: Option<ServerIdentity>,
    /// Its variables and headers, as they are sent, and which tools are used.
    values: BTreeMap<String, String>,
    /// The same for people, without secrets.
    shown: BTreeMap<String, String>,
    from: String,
}

/// The keys that say which tools of a server are used.
const TOOL_LISTS: [&str; 5] =
    ["enabled_tools", "disabled_tools", "disabledTools", "includeTools", "excludeTools"];

/// How the question ends that is asked where two servers differ.
pub(super) const QUESTION: &str = "Use the [F]irst, the [s]econd, or [b]oth? ";

/// Which of two servers that differ is used.
enum Choice {
    First,
    Second,
    Both,
}

/// The servers while they are merged.
pub(super) struct Merge<'a> {
    known: Vec<Known>,
    pub(super) secrets: Vec<(String, String)>,
    pub(super) notes: Vec<String>,
    pub(super) edits: Vec<Edit>,
    container: Vec<String>,
    ask: &'a mut dyn FnMut(&str) -> Result<String, Failure>,
}

impl<'a> Merge<'a> {
    pub(super) fn new(
        container: Vec<String>,
        ask: &'a mut dyn FnMut(&str) -> Result<String, Failure>,
    ) -> Self {
        let (known, secrets, notes, edits) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { known, secrets, notes, edits, container, ask }
    }

    pub(super) fn know(&mut self, name: &str, entry: &Map<String, Value>, from: String) {
        let (identity, values) = (identity(entry, &|text| self.resolved(text)), self.values(entry));
        let shown = values_of(&without_secrets(entry), &str::to_owned);
        self.known.push(Known { name: name.to_owned(), identity, values, shown, from });
    }

    /// Takes a server over. Returns its name in the target.
    pub(super) fn take(&mut self, server: &ImportedServer, from: &str) -> Result<String, Failure> {
        let wanted = identity(&server.entry, &|text| self.resolved(text));
        let values = self.values(&server.entry);
        let all: Vec<&Known> = self
            .known
            .iter()
            .filter(|known| wanted.is_some() && known.identity == wanted)
            .collect();
        // Where people have kept two that differ, a third is often the twin of the later one.
        if let Some(twin) = all.iter().find(|known| known.values == values) {
            return Ok(twin.name.clone());
        }
        if let Some(same) = all.first() {
            let names: BTreeSet<&String> = same.values.keys().chain(values.keys()).collect();
            let differs: Vec<&str> = names
                .into_iter()
                .filter(|name| same.values.get(*name) != values.get(*name))
                .map(String::as_str)
                .collect();
            let name = same.name.clone();
            let what = format!(
                "`{}` of {from} is the same server as `{name}` of {}, but has another {}",
                server.name,
                same.from,
                differs.join(", ")
            );
            let second = values_of(&without_secrets(&server.entry), &str::to_owned);
            let shown = |which: &str, values: &BTreeMap<String, String>, from: &str| {
                let value = |name: &&str| match values.get(*name) {
                    Some(value) => format!("{name} = {value}"),
                    None => format!("no {name}"),
                };
                let values: Vec<String> = differs.iter().map(value).collect();
                format!("  {which} ({from}): {}", values.join(", "))
            };
            let both = format!(
                "{what}:\n{}\n{}",
                shown("first", &same.shown, &same.from),
                shown("second", &second, from)
            );
            match self.choice(&both)? {
                Choice::Second => {
                    self.notes.push(format!("{what}: the second one is used"));
                    self.put(&name, server, from);
                    return Ok(name);
                }
                Choice::Both => self.notes.push(format!("{what}: both are used")),
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
            let answer = (self.ask)(&format!("{what}\n{QUESTION}"))?;
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
        values_of(entry, &|text| self.resolved(text))
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

/// The variables and headers of an entry, and which tools are used.
fn values_of(
    entry: &Map<String, Value>,
    resolve: &dyn Fn(&str) -> String,
) -> BTreeMap<String, String> {
    let objects = ["env", "headers"].into_iter().filter_map(|key| entry.get(key)?.as_object());
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let tools = TOOL_LISTS.into_iter().filter_map(|key| Some((key, entry.get(key)?)));
    let tools = tools.map(|(key, names)| (key.to_owned(), names.to_string()));
    let named = objects.flatten();
    let named = named.map(|(name, value)| (name.clone(), resolve(&text(value))));
    named.chain(tools).collect()
}
