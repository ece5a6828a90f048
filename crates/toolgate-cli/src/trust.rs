//! Which configurations of folders a person has trusted.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use toolgate::setup::{
    CommandTime, EnvFileError, FileAccess, Format, StoredReference, StoredValueError, parse_file,
    read_env_file, read_stored_file,
};
use toolgate_config::env_file_names;
use toolgate_store::{ChoiceStore, Consent};

use crate::{failure::Failure, folders, load};

/// A configuration that was found in a folder, as it was when it was read, with the env files that it
/// names. These texts are shown, trusted and used. The files are not read again.
pub(crate) struct FolderFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    env_files: BTreeMap<PathBuf, Result<String, EnvFileError>>,
    /// The files of `${file:…}`.
    stored_files: BTreeMap<PathBuf, Result<String, StoredValueError>>,
    /// The command lines of `${command:…}`.
    commands: BTreeSet<String>,
    /// The names of `${keychain:…}` and `${input:…}`.
    stored_names: BTreeSet<String>,
}

/// The trust in one file.
pub(crate) struct Trusted {
    pub(crate) path: String,
    pub(crate) fingerprint: String,
    /// When it was given, in seconds since 1970.
    pub(crate) at: u64,
}

impl FolderFile {
    /// Reads the file and its env files, once.
    pub(crate) fn read(path: PathBuf) -> Result<Self, Failure> {
        let file = Self {
            text: load::read(&path)?,
            path,
            env_files: BTreeMap::new(),
            stored_files: BTreeMap::new(),
            commands: BTreeSet::new(),
            stored_names: BTreeSet::new(),
        };
        let (format, place) = (Format::of_file(&file.path), file.place());
        let all = Mutex::new(file);
        let env_file = |path: &Path| {
            let env_files = &mut all.lock().env_files;
            env_files.entry(path.to_owned()).or_insert_with(|| read_env_file(path)).clone()
        };
        // Nothing is run, and each reference of a text is listed, so that all have a value.
        let stored = |reference: StoredReference<'_>| {
            let mut all = all.lock();
            match reference {
                StoredReference::File(path) => {
                    let read = || read_stored_file(path.as_ref());
                    all.stored_files.entry(path.into()).or_insert_with(read);
                }
                StoredReference::Command(line) => drop(all.commands.insert(line.to_owned())),
                StoredReference::Keychain(name) | StoredReference::Input(name) => {
                    all.stored_names.insert(name.to_owned());
                }
            }
            Ok("http://value".to_owned())
        };
        let access = FileAccess {
            variables: &load::variable,
            env_file: &env_file,
            stored: &stored,
            // So that they are listed.
            commands: CommandTime::Reading,
            workspace_folder: None,
            working_folder: None,
            saved_policy: None,
        };
        let text = all.lock().text.clone();
        // What is wrong with the configuration is said where it is used.
        let _ = parse_file(&text, format, "", Some(&place), &access);
        Ok(all.into_inner())
    }

    pub(crate) fn has_env_files(&self) -> bool {
        !self.env_files.is_empty()
    }

    /// The text of an env file, as it was when this file was read.
    pub(crate) fn env_file(&self, path: &Path) -> Result<String, EnvFileError> {
        self.env_files.get(path).cloned().unwrap_or(Err(EnvFileError::Missing))
    }

    /// The value of a file of `${file:…}`, as it was when this file was read.
    pub(crate) fn stored_file(&self, path: &Path) -> Result<String, StoredValueError> {
        self.stored_files.get(path).cloned().unwrap_or(Err(StoredValueError::Missing))
    }

    /// Whether a person has trusted this text at this place. If the stored trust cannot be read,
    /// nothing is trusted.
    pub(crate) fn is_trusted(&self) -> bool {
        let (Some(file), Ok(key)) = (record(), self.key()) else { return false };
        let consents = file.read().map(|choices| choices.consents).unwrap_or_default();
        consents.get(&key).is_some_and(|trust| trust.fingerprint == self.fingerprint())
    }

    /// Stores that a person trusts this text at this place.
    pub(crate) fn trust(&self) -> Result<(), Failure> {
        let file = record().ok_or_else(no_record)?;
        let consent = Consent::now(self.fingerprint(), Value::Null);
        let key = self.key()?;
        file.change(|choices| choices.consents.insert(key, consent))
            .map_err(|error| Failure::new(error.to_string()))?;
        Ok(())
    }

    /// Identifies the content, with that of the env files.
    pub(crate) fn fingerprint(&self) -> String {
        let text = blake3::hash(self.text.as_bytes());
        if self.env_files.is_empty() && self.stored_files.is_empty() {
            return text.to_hex().to_string();
        }
        let mut all = blake3::Hasher::new_derive_key("toolgate: a configuration and its env files");
        all.update(text.as_bytes());
        for (path, content) in &self.env_files {
            all.update(blake3::hash(path.as_os_str().as_encoded_bytes()).as_bytes());
            match content {
                Ok(content) => all.update(blake3::hash(content.as_bytes()).as_bytes()),
                Err(_) => all.update(b"not there"),
            };
        }
        if !self.stored_files.is_empty() {
            all.update(b"the files of values");
        }
        for (path, content) in &self.stored_files {
            all.update(blake3::hash(path.as_os_str().as_encoded_bytes()).as_bytes());
            match content {
                Ok(content) => all.update(blake3::hash(content.as_bytes()).as_bytes()),
                Err(_) => all.update(b"not there"),
            };
        }
        all.finalize().to_hex().to_string()
    }

    /// The path of the file: the folder without symbolic links, and the name in it. Relative paths
    /// of a configuration start at that folder, even if the file itself is a link.
    pub(crate) fn place(&self) -> PathBuf {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or_else(|| Path::new("."));
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        real.join(self.path.file_name().unwrap_or_default())
    }

    fn key(&self) -> Result<String, Failure> {
        let place = self.place();
        if !place.is_absolute() {
            return Err(Failure::usage(format!("cannot find {}", folders::shown(&place))));
        }
        // Two places that look alike must not share their trust.
        place.into_os_string().into_string().map_err(|_| {
            Failure::usage("the path of the folder is not Unicode, so that it cannot be trusted")
                .hint("name the file instead: --config FILE")
        })
    }

    /// The content of the file for a person: what runs, what is contacted, and everything else.
    pub(crate) fn shown(&self) -> Result<String, Failure> {
        let (format, name) = (Format::of_file(&self.path), folders::shown(&self.path));
        let mut all = toolgate_config::as_written(&self.text, format, &name)
            .map_err(|error| Failure::usage(error.to_string()))?;
        let journal = all.get("codeMode").and_then(|code_mode| code_mode.get("journal"));
        let is_about_records = all.contains_key("audit") || journal.is_some();
        let mut shown = String::new();
        let nested = all.get_mut("mcp").and_then(Value::as_object_mut);
        let nested = nested.and_then(|inner| inner.remove("servers"));
        let keys = toolgate_config::CONTAINERS;
        let servers: Vec<Value> = keys.iter().filter_map(|key| all.get(*key).cloned()).collect();
        all.retain(|key, _| !keys.contains(&key.as_str()));
        for (server, settings) in
            servers.into_iter().chain(nested).flat_map(|servers| match servers {
                Value::Object(servers) => servers,
                other => Map::from_iter([("servers".to_owned(), other)]),
            })
        {
            show_server(&mut shown, &server, settings);
        }
        for (key, value) in all {
            let _ = writeln!(shown, "{key}: {value}");
        }
        if is_about_records {
            let _ = writeln!(
                shown,
                "It cannot change what toolgate stores about your calls: of `audit` only `required` is \
                 used, and `codeMode.journal` is ignored. Your own configuration decides."
            );
        }
        self.show_env_files(&mut shown);
        for line in &self.commands {
            let _ = writeln!(shown, "It runs, with your rights, for a value: {line}");
        }
        for path in self.stored_files.keys() {
            let _ = writeln!(shown, "It reads a value from the file {}", folders::shown(path));
        }
        if !self.stored_names.is_empty() {
            let names = self.stored_names.iter().cloned().collect::<Vec<_>>().join(", ");
            let _ = writeln!(shown, "It uses these of your stored values: {names}");
        }
        let variables = self.variables();
        if !variables.is_empty() {
            let names = variables.into_iter().collect::<Vec<_>>().join(", ");
            let _ = writeln!(shown, "It uses these of your environment variables: {names}");
        }
        Ok(shown)
    }

    /// Where the env files are, and which variables they have. No value is shown.
    fn show_env_files(&self, shown: &mut String) {
        let place = self.place();
        let folder = place.parent().unwrap_or(&place);
        for (path, content) in &self.env_files {
            let real = path.canonicalize().unwrap_or_else(|_| path.clone());
            let mut name = folders::shown(path.strip_prefix(folder).unwrap_or(path));
            if real != *path {
                let _ = write!(name, " (that is {})", folders::shown(&real));
            }
            let place =
                if real.starts_with(folder) { "" } else { ", which is outside of this folder" };
            let what = match content.as_deref().map(env_file_names) {
                Ok(Ok(names)) if names.is_empty() => "no variables".to_owned(),
                Ok(Ok(names)) => names.join(", "),
                Ok(Err(error)) => format!("no env file: its {error}"),
                Err(_) => "not there, or it cannot be read".to_owned(),
            };
            let _ = writeln!(shown, "It passes on the variables of {name}{place}: {what}");
        }
    }

    /// The environment variables that the file refers to.
    fn variables(&self) -> BTreeSet<String> {
        let names = Mutex::new(BTreeSet::new());
        let note = |name: &str| {
            names.lock().insert(name.to_owned());
            // Each variable of a text is listed.
            Some("http://variable".to_owned())
        };
        let _ = toolgate_config::parse(&self.text, Format::of_file(&self.path), "", &note);
        names.into_inner()
    }
}

/// All files that are trusted, in order.
pub(crate) fn all() -> Result<Vec<Trusted>, Failure> {
    let file = record().ok_or_else(no_record)?;
    let consents = file.read().map_err(damaged)?.consents.into_iter();
    Ok(consents
        .map(|(path, Consent { fingerprint, at, .. })| Trusted { path, fingerprint, at })
        .collect())
}

/// Removes the trust in all files of a folder. Returns their paths.
pub(crate) fn forget(folder: &Path) -> Result<Vec<String>, Failure> {
    let file = record().ok_or_else(no_record)?;
    // A folder that no longer exists is found by the typed path.
    let real = folder.canonicalize().or_else(|_| std::path::absolute(folder));
    let real = real.unwrap_or_else(|_| folder.to_owned());
    let is_there = |path: &String| Path::new(path).parent() == Some(&real);
    file.change(|choices| {
        let gone: Vec<String> =
            choices.consents.keys().filter(|path| is_there(path)).cloned().collect();
        choices.consents.retain(|path, _| !is_there(path));
        gone
    })
    .map_err(|error| Failure::new(error.to_string()))
}

/// The message about a file that is not trusted.
pub(crate) fn waiting(path: &Path) -> String {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    format!(
        "`{file}` of this folder is not trusted, so nothing of it is used: a person can run \
         `toolgate trust` there, which shows what it would run, and asks"
    )
}

/// What a person or a model is told of a file that a gateway uses, and that has changed since it was
/// trusted.
pub(crate) fn changed(path: &Path, has_env_files: bool) -> String {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let or = if has_env_files { ", or a file of its `envFile`," } else { "" };
    format!(
        "`{file}` of this folder{or} has changed and is not trusted as it is now: a person can run \
         `toolgate trust` there, which shows what it would run, and asks"
    )
}

fn show_server(shown: &mut String, name: &str, settings: Value) {
    let Value::Object(mut settings) = settings else {
        let _ = writeln!(shown, "server {name}: {settings}");
        return;
    };
    let _ = writeln!(shown, "server {name}");
    if let Some(command) = settings.remove("command") {
        let mut words = vec![command];
        match settings.remove("args") {
            Some(Value::Array(args)) => words.extend(args),
            Some(other) => words.push(other),
            None => {}
        }
        let words: Vec<String> = words.iter().map(word).collect();
        let _ = writeln!(shown, "  runs, with your rights: {}", words.join(" "));
    }
    for key in ["url", "httpUrl", "serverUrl"] {
        if let Some(url) = settings.remove(key) {
            let _ = writeln!(shown, "  contacts: {}", word(&url));
        }
    }
    for (key, value) in settings {
        let _ = writeln!(shown, "  {key}: {value}");
    }
}

/// A word of a command, in quotes where it is not plain.
fn word(value: &Value) -> String {
    let is_plain = |text: &str| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@,+".contains(letter);
        !text.is_empty() && text.chars().all(plain)
    };
    match value.as_str() {
        Some(text) if is_plain(text) => text.to_owned(),
        _ => json!(value).to_string(),
    }
}

/// The file that lists what is trusted. Only its owner can read it.
fn record() -> Option<Arc<dyn ChoiceStore>> {
    Some(load::store()?.embedded().choices("trusted folders"))
}

/// Where the record is.
pub(crate) fn record_file() -> Option<PathBuf> {
    record()?.file().map(Path::to_owned)
}

fn no_record() -> Failure {
    Failure::new("this system has no folder for the data of toolgate")
        .hint("set TOOLGATE_HOME to a folder")
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err wants it")]
fn damaged(error: toolgate_store::DamagedChoices) -> Failure {
    Failure::new(error.to_string()).hint("remove it: then no folder is trusted")
}
