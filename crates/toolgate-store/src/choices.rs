//! Decisions of people and models about the servers of one configuration, as one small JSON file.

use std::{
    collections::BTreeMap,
    fmt, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::{StoreError, StoreStamp, files, files::FileStamp, lock::Lock};

/// The choices for the servers of one configuration.
pub trait ChoiceStore: fmt::Debug + Send + Sync {
    /// Changes whenever the choices do; `None` if there are none.
    fn stamp(&self) -> Option<StoreStamp>;

    /// The choices; empty if there are none. Choices that cannot be read are an error, because a
    /// server that a person disabled must not be enabled by damage.
    fn read(&self) -> Result<Choices, DamagedChoices>;

    /// Calls `change` once with the choices, and stores what it made of them.
    fn change_by(&self, change: &mut dyn FnMut(&mut Choices)) -> Result<(), StoreError>;

    /// The file, if they are in one.
    fn file(&self) -> Option<&Path> {
        None
    }
}

impl dyn ChoiceStore {
    /// Changes the choices, and returns the result of `change`. Waits for the disk.
    pub fn change<T>(&self, change: impl FnOnce(&mut Choices) -> T) -> Result<T, StoreError> {
        let (mut change, mut outcome) = (Some(change), None);
        self.change_by(&mut |choices| outcome = change.take().map(|change| change(choices)))?;
        let unchanged = || io::Error::other("nothing was changed");
        outcome.ok_or_else(|| StoreError::new(Path::new("choices"), unchanged()))
    }
}

/// The file. Several processes read and change it: a change is made under a lock, and a reader sees
/// the file before it or after it.
#[derive(Debug, Clone)]
pub struct ChoiceFile {
    path: PathBuf,
}

/// The content of the file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Choices {
    /// Servers that are switched off, by name, and by whom.
    pub disabled: BTreeMap<String, SwitchedBy>,
    /// Consents to servers that are not configured.
    pub consents: BTreeMap<String, Consent>,
    /// What waits for a person's decision, by id.
    pub requests: BTreeMap<String, ServerConsentRequest>,
}

/// There is a file, and it cannot be understood. It stays as it is: which servers are switched off, and
/// what people consented to, is not known.
#[derive(Debug, Error)]
#[error("{path} cannot be read, which says what servers are disabled and approved: {why}")]
pub struct DamagedChoices {
    path: PathBuf,
    why: String,
}

/// Who disabled a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SwitchedBy {
    /// A person, in a shell. Only a person switches it on again.
    Person,
    /// A model, in a conversation.
    Model,
}

/// A person's consent to run or contact exactly this server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Consent {
    /// Identifies what the person consented to.
    pub fingerprint: String,
    /// The plan, in the format of the caller.
    pub plan: Value,
    /// When, in seconds since 1970.
    pub at: u64,
}

/// A request for a person's consent to run or contact a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerConsentRequest {
    /// The server's name.
    pub server: String,
    /// Identifies what is requested.
    pub fingerprint: String,
    /// The plan, in the format of the caller.
    pub plan: Value,
    /// The same for a person, in full.
    pub shown: String,
    /// When it was requested, in seconds since 1970.
    pub at: u64,
    /// How a person who agrees shows that they are there, in the format of the caller.
    #[serde(default)]
    pub presence: Value,
}

/// How many requests wait at most; the oldest are removed.
pub const MAX_REQUESTS: usize = 50;
/// A larger file was not written by toolgate, and is not read.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

impl ChoiceFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl ChoiceStore for ChoiceFile {
    fn stamp(&self) -> Option<StoreStamp> {
        FileStamp::of(&self.path).map(StoreStamp::File)
    }

    fn read(&self) -> Result<Choices, DamagedChoices> {
        let damaged = |why: String| DamagedChoices { path: self.path.clone(), why };
        match files::read_bounded(&self.path, MAX_BYTES) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| damaged(error.to_string())),
            // If a parent is not a folder, there is no file.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(Choices::default())
            }
            Err(error) => Err(damaged(error.to_string())),
        }
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn change_by(&self, change: &mut dyn FnMut(&mut Choices)) -> Result<(), StoreError> {
        let error = |error| StoreError::new(&self.path, error);
        let _lock = Lock::take(&self.path.with_extension("lock"))?;
        let mut choices = self.read().map_err(|damaged| error(io::Error::other(damaged)))?;
        let before = choices.clone();
        change(&mut choices);
        choices.bound();
        if choices != before {
            let text = serde_json::to_vec_pretty(&choices);
            files::replace(&self.path, &text.map_err(|broken| error(broken.into()))?)?;
        }
        Ok(())
    }
}

impl DamagedChoices {
    /// Choices that are in no file, which `place` names, cannot be read.
    pub fn of(place: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        Self { path: place.into(), why: why.into() }
    }
}

impl Consent {
    /// A consent that is given now.
    pub fn now(fingerprint: impl Into<String>, plan: Value) -> Self {
        Self { fingerprint: fingerprint.into(), plan, at: crate::since_epoch().as_secs() }
    }
}

impl ServerConsentRequest {
    /// A request that is made now.
    pub fn now(
        server: impl Into<String>,
        fingerprint: impl Into<String>,
        plan: Value,
        shown: impl Into<String>,
        presence: Value,
    ) -> Self {
        let (server, fingerprint, shown) = (server.into(), fingerprint.into(), shown.into());
        Self { server, fingerprint, plan, shown, at: crate::since_epoch().as_secs(), presence }
    }
}

impl Choices {
    /// Stores a consent, and removes the requests that waited for it.
    pub fn consent(&mut self, server: String, consent: Consent) {
        self.requests.retain(|_, request| request.fingerprint != consent.fingerprint);
        self.disabled.remove(&server);
        self.consents.insert(server, consent);
    }

    /// Removes the oldest requests: a model may make more than a person would ever read.
    pub fn bound(&mut self) {
        while self.requests.len() > MAX_REQUESTS {
            let oldest = self.requests.iter().min_by_key(|(_, request)| request.at);
            let Some(id) = oldest.map(|(id, _)| id.clone()) else { return };
            self.requests.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;
    use crate::Store;

    #[test]
    fn changes_are_visible_only_in_their_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let file = store.choices("/a/toolgate.json");
        assert_eq!(file.read().unwrap(), Choices::default());
        let off = |choices: &mut Choices| choices.disabled.insert("crm".into(), SwitchedBy::Model);
        assert_eq!(file.change(off).unwrap(), None);
        file.change(|choices| choices.consents.insert("x".into(), Consent::now("f", json!(1))))
            .unwrap();
        let read = store.choices("/a/toolgate.json").read().unwrap();
        assert_eq!(read.disabled["crm"], SwitchedBy::Model);
        assert_eq!(read.consents["x"].plan, 1);
        assert_eq!(store.choices("/b/toolgate.json").read().unwrap(), Choices::default());
    }

    #[test]
    fn changes_of_several_writers_are_all_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = Store::new(folder.path()).choices("c");
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let file = std::sync::Arc::clone(&file);
                scope.spawn(move || {
                    for number in 0..10 {
                        let name = format!("{writer}-{number}");
                        let off = |choices: &mut Choices| {
                            choices.disabled.insert(name, SwitchedBy::Person)
                        };
                        file.change(off).unwrap();
                    }
                });
            }
        });
        assert_eq!(file.read().unwrap().disabled.len(), 40);
    }

    #[test]
    fn requests_are_bounded_and_a_damaged_file_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let file = Store::new(folder.path()).choices("c");
        for number in 0..MAX_REQUESTS as u64 + 3 {
            let mut request = ServerConsentRequest::now("s", "f", Value::Null, "", Value::Null);
            request.at = number;
            file.change(|choices| choices.requests.insert(format!("{number}"), request)).unwrap();
        }
        let kept = file.read().unwrap().requests;
        assert_eq!(kept.len(), MAX_REQUESTS);
        assert!(kept.values().all(|request| request.at >= 3), "the oldest made room");
        let large = " ".repeat(usize::try_from(MAX_BYTES).unwrap()) + "{}";
        for damaged in ["{", "", "\0", r#"{"disabled":["a"]}"#, &large] {
            fs::write(file.file().unwrap(), damaged).unwrap();
            let told = file.read().unwrap_err().to_string();
            assert!(told.contains(&file.file().unwrap().display().to_string()), "{told}");
            let off = |choices: &mut Choices| {
                choices.disabled.insert("a".into(), SwitchedBy::Person);
            };
            assert!(file.change(off).is_err());
            assert_eq!(
                fs::read_to_string(file.file().unwrap()).unwrap(),
                damaged,
                "nothing is written over it"
            );
        }
    }
}
