//! Where the policy is written, and how another one is saved there: in the configuration, or in the database of a fleet.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use toolgate::setup::{Format, PolicyContent, SavedPolicy, Store};
use toolgate_store::{AuditRecord, SharedStore, utc};

use crate::{
    decisions,
    failure::Failure,
    folders,
    load::{self, Loaded, OtherPolicy},
};

/// Longer policies are not saved in a database, where each node reads them again and again.
const LONGEST: usize = 1024 * 1024;

/// The policy as it is written, and where.
#[derive(Debug)]
pub(crate) struct WrittenPolicy {
    /// The value of `policy`; that of a file without one in words.
    pub(crate) value: Value,
    /// The file of the configuration.
    file: String,
    /// In a fleet: the version of what is saved in its database, and the policy that is.
    fleet: Option<(u64, Option<SavedPolicy>)>,
}

impl WrittenPolicy {
    pub(crate) fn of(loaded: &Loaded) -> Self {
        let fleet = loaded.fleet_policy().cloned();
        let saved = fleet.as_ref().and_then(|(_, saved)| saved.as_ref());
        let value = match saved.map(|saved| &saved.content) {
            Some(Ok(content)) => serde_json::from_str(&content.text).unwrap_or_default(),
            Some(Err(_)) => Value::Null,
            None => in_file(loaded),
        };
        Self { value, file: folders::shown(&loaded.path), fleet }
    }

    /// As JSON for a person.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string_pretty(&self.value).unwrap_or_default()
    }

    /// Where it comes from, in words.
    pub(crate) fn origin(&self) -> String {
        let file = &self.file;
        match &self.fleet {
            None => format!("`policy` of {file}"),
            Some((_, None)) => {
                format!("`policy` of {file}, because none is saved in the database of the fleet")
            }
            Some((version, Some(saved))) => match &saved.content {
                Ok(PolicyContent { by, at, .. }) => {
                    format!(
                        "the database of the fleet: version {version}, saved by {by} at {}",
                        utc(*at)
                    )
                }
                Err(why) => format!(
                    "the database of the fleet: version {version}, which this version of toolgate cannot read ({why}), \
                     so every call is denied"
                ),
            },
        }
    }

    /// What becomes of a policy that is saved, in words.
    pub(crate) fn consequence(&self) -> String {
        match &self.fleet {
            None => format!(
                "It replaces `policy` in {} and holds from then on. Comments within it are lost, all others stay.",
                self.file
            ),
            Some(_) => "It is saved in the database of the fleet and holds on all nodes within a second, in place of \
                        `policy` in their configuration. No file changes."
                .to_owned(),
        }
    }

    /// The same for programs.
    pub(crate) fn source(&self) -> Value {
        let mut source = serde_json::json!({ "file": self.file });
        if let Some((version, saved)) = &self.fleet {
            source["fleet"] = serde_json::json!({
                "version": version,
                "isSaved": saved.is_some(),
                "savedBy": saved.as_ref().and_then(|saved| Some(saved.content.as_ref().ok()?.by.clone())),
                "savedAt": saved.as_ref().and_then(|saved| Some(utc(saved.content.as_ref().ok()?.at))),
            });
        }
        source
    }

    /// In a fleet, the version of what is saved in its database.
    pub(crate) fn version(&self) -> Option<u64> {
        self.fleet.as_ref().map(|(version, _)| *version)
    }

    /// Whether it is saved in the database of a fleet.
    pub(crate) fn is_saved(&self) -> bool {
        matches!(self.fleet, Some((_, Some(_))))
    }

    /// Changes when anything of it does.
    pub(crate) fn digest(&self) -> String {
        let all = format!("{:?} {}", self.version(), self.text());
        blake3::hash(all.as_bytes()).to_hex().to_string()
    }
}

/// The `policy` of the file of a configuration.
fn in_file(loaded: &Loaded) -> Value {
    let text = load::read(&loaded.path).unwrap_or_default();
    let found = toolgate_config::policy_in(&text, Format::of_file(&loaded.path));
    found.unwrap_or_else(|| serde_json::json!({ "default": loaded.policy().mode, "rules": [] }))
}

/// Saves another policy in place of `before`, where that is, for the person `by` who has agreed. Returns where it is now.
pub(crate) fn save(
    loaded: &Loaded,
    store: &Store,
    policy: &Value,
    before: &WrittenPolicy,
    by: &str,
) -> Result<String, Failure> {
    load::policy_if(loaded, OtherPolicy::Written(policy))?;
    let Some(version) = before.version() else {
        write_file(loaded, policy, before)?;
        let place = folders::shown(&loaded.path);
        return Ok(noted(store, by, "policy saved".to_owned(), place));
    };
    let shared = shared(store)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let text = PolicyContent::new(policy, by, now).write();
    if text.len() > LONGEST {
        return Err(Failure::usage(
            "the policy has more than 1 MiB, which no database of a fleet takes",
        ));
    }
    let saved = shared.policy().replace(version, Some(&text))?.ok_or_else(changed)?;
    let place = format!("the database of the fleet, as version {saved}");
    Ok(noted(store, by, format!("policy saved for all nodes, version {saved}"), place))
}

/// Removes the policy that is saved in the database of the fleet, for the person `by` who has agreed. Returns where the
/// policy is now.
pub(crate) fn remove(
    loaded: &Loaded,
    store: &Store,
    before: &WrittenPolicy,
    by: &str,
) -> Result<String, Failure> {
    let Some(version) = before.version().filter(|_| before.is_saved()) else {
        return Err(nothing_saved(before));
    };
    load::policy_if(loaded, OtherPolicy::OfConfiguration)?;
    let removed = shared(store)?.policy().replace(version, None)?.ok_or_else(changed)?;
    let place = format!("the configuration of each node, here {}", before.file);
    Ok(noted(store, by, format!("policy removed for all nodes, version {removed}"), place))
}

/// Why nothing can be removed.
pub(crate) fn nothing_saved(before: &WrittenPolicy) -> Failure {
    let file = &before.file;
    match before.fleet {
        None => Failure::usage(format!("there is no fleet: the policy is in {file}"))
            .hint("edit the file, or replace its policy with `toolgate policy save FILE`"),
        Some(_) => Failure::usage(format!(
            "no policy is saved in the database of the fleet: `policy` of {file} counts already"
        )),
    }
}

fn changed() -> Failure {
    Failure::new("the policy of the fleet has changed since; look at it, and try it again")
}

fn shared(store: &Store) -> Result<&dyn SharedStore, Failure> {
    let shared = store.shared().map(|shared| &**shared);
    shared.ok_or_else(|| Failure::new("this process has not joined the fleet"))
}

/// Writes what was done to the audit log. Returns where the policy is; it is there also if that fails.
fn noted(store: &Store, by: &str, what: String, place: String) -> String {
    let record = AuditRecord { caller: by.to_owned(), ..decisions::record("policy", true, what) };
    match decisions::write(store, &record) {
        Ok(()) => place,
        Err(failure) => {
            format!("{place} (the audit log does not say so: {})", failure.first_line())
        }
    }
}

/// Writes another policy to the file of a configuration. What else the file says stays.
fn write_file(loaded: &Loaded, policy: &Value, before: &WrittenPolicy) -> Result<(), Failure> {
    let (format, text) = (Format::of_file(&loaded.path), load::read(&loaded.path)?);
    if in_file(loaded) != before.value {
        return Err(Failure::new("the policy of the file has changed since; try it again"));
    }
    let shown = folders::shown(&loaded.path);
    let after = toolgate_config::replace_policy(&text, format, policy)
        .map_err(|error| Failure::usage(format!("{shown} was not changed: {error}")))?;
    let mut writer = toolgate_clients::Writer::new("policy");
    writer
        .write(&loaded.path, Some(&text), &after, &[])
        .map_err(|error| Failure::new(error.to_string()))?;
    // The policy that was replaced was shown, and the change is small.
    for backup in writer.record.files.iter().filter_map(|file| file.backup.as_ref()) {
        let _ = std::fs::remove_file(backup);
    }
    Ok(())
}
