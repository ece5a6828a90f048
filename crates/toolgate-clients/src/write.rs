//! Writes files so that they can be restored.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Edit;

/// Why a file was not written. It is as it was.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The system refused.
    #[error("cannot write {}: {source}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody else has changed the file since it was read.
    #[error("{} has changed meanwhile", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// What was written is not what is there now. The back-up was put back.
    #[error("{} has another content than was written to it", path.display())]
    NotKept {
        /// The file.
        path: PathBuf,
    },
}

impl WriteError {
    /// The file that was not written.
    pub fn path(&self) -> &Path {
        match self {
            Self::System { path, .. } | Self::Changed { path } | Self::NotKept { path } => path,
        }
    }
}

/// All that one run has changed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeRecord {
    /// The files, in the order in which they were written.
    pub files: Vec<Changed>,
    /// The names of the values that were stored.
    pub secrets: Vec<String>,
    /// The names of the tokens that were made.
    #[serde(default)]
    pub tokens: Vec<String>,
}

/// A file that is changed. Its record is stored before it is, so that a change that was not made is undone
/// too.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    /// The file.
    pub path: PathBuf,
    /// Its back-up; none if the file was not there.
    pub backup: Option<PathBuf>,
    /// The hash of what is written.
    pub(crate) written: String,
    /// The hash of what was there before.
    #[serde(default)]
    pub(crate) before: Option<String>,
    /// The file that is put in its place, while it is written.
    #[serde(default)]
    pub(crate) beside: Option<PathBuf>,
    /// What was changed, by which the text can be made again from the back-up.
    pub(crate) edits: Vec<Edit>,
}

/// Writes files, and remembers how to restore them: [`Writer::plan`] for each file, then the record is stored,
/// then [`Writer::apply`].
#[derive(Debug)]
pub struct Writer {
    stamp: String,
    /// What is changed.
    pub record: ChangeRecord,
    planned: Vec<Planned>,
}

/// A file that is going to be written.
#[derive(Debug, Clone)]
struct Planned {
    path: PathBuf,
    backup: Option<PathBuf>,
    beside: PathBuf,
    before: Option<Vec<u8>>,
    after: Vec<u8>,
    permissions: Option<Permissions>,
}

impl Writer {
    /// `stamp` is a part of the names of back-ups, such as `20260102-030405`.
    pub fn new(stamp: &str) -> Self {
        Self { stamp: stamp.to_owned(), record: ChangeRecord::default(), planned: Vec::new() }
    }

    /// Plans the change of a file, and changes nothing. `before` is the text that the edits were planned for;
    /// none if there was no file.
    pub fn plan(
        &mut self,
        path: &Path,
        before: Option<&str>,
        after: &str,
        edits: &[Edit],
    ) -> Result<(), WriteError> {
        // A link stays a link: the file behind it is changed.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let now =
            content(&path).map_err(|source| WriteError::System { path: path.clone(), source })?;
        let is_twice = self.planned.iter().any(|planned| planned.path == path);
        if is_twice || now.as_deref() != before.map(str::as_bytes) {
            return Err(WriteError::Changed { path });
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let backup = before.map(|_| self.free(&path, &format!("{name}.toolgate")));
        let beside = self.free(&path, &format!(".{name}.toolgate"));
        self.record.files.push(Changed {
            path: path.clone(),
            backup: backup.clone(),
            written: hash(after.as_bytes()),
            before: now.as_deref().map(hash),
            beside: Some(beside.clone()),
            edits: edits.to_vec(),
        });
        let permissions = fs::metadata(&path).ok().map(|found| found.permissions());
        let after = after.as_bytes().to_vec();
        self.planned.push(Planned { path, backup, beside, before: now, after, permissions });
        Ok(())
    }

    /// Makes the changes, one file after the other. What could not be written is as it was, and is in the
    /// record no more. With `first_decides` nothing is written after the first file has failed.
    pub fn apply(&mut self, first_decides: bool) -> Vec<WriteError> {
        let mut errors = Vec::new();
        for (index, planned) in std::mem::take(&mut self.planned).into_iter().enumerate() {
            let result = if first_decides && index > 0 && self.record.files.is_empty() {
                Ok(false)
            } else {
                planned.apply().map(|()| true)
            };
            if !matches!(result, Ok(true)) {
                self.record.files.retain(|file| file.path != planned.path);
            }
            if let Err(error) = result {
                errors.push(error);
                if first_decides && index == 0 {
                    self.record.files.clear();
                }
            }
        }
        errors
    }

    /// Makes all changes or none: every file is backed up and written beside its place before the first one takes it.
    /// After that only moving one can fail. If that is not the first, it is as it was, and is in the record no more.
    pub fn apply_together(&mut self) -> Vec<WriteError> {
        let planned = std::mem::take(&mut self.planned);
        let prepared = planned.iter().try_for_each(Planned::prepare);
        let begun = prepared.and_then(|()| planned.first().map_or(Ok(()), Planned::finish));
        if let Err(error) = begun {
            planned.iter().for_each(Planned::clear);
            self.record.files.clear();
            return vec![error];
        }
        let mut errors = Vec::new();
        for next in planned.iter().skip(1) {
            if let Err(error) = next.finish() {
                self.record.files.retain(|file| file.path != next.path);
                errors.push(error);
            }
        }
        errors
    }

    /// Changes one file.
    pub fn write(
        &mut self,
        path: &Path,
        before: Option<&str>,
        after: &str,
        edits: &[Edit],
    ) -> Result<(), WriteError> {
        self.plan(path, before, after, edits)?;
        self.apply(false).into_iter().next().map_or(Ok(()), Err)
    }

    /// A name beside the file that nothing has.
    fn free(&self, path: &Path, name: &str) -> PathBuf {
        let named = |number: usize| match number {
            0 => path.with_file_name(format!("{name}-{}", self.stamp)),
            number => path.with_file_name(format!("{name}-{}-{number}", self.stamp)),
        };
        (0..10_000).map(named).find(|path| !path.exists()).unwrap_or_else(|| named(0))
    }
}

impl Planned {
    /// What is done for a file. After each step, and within one, the file is either as it was or as it is
    /// planned.
    const STEPS: [fn(&Self) -> io::Result<()>; 3] =
        [Self::back_up, Self::put_beside, Self::put_in_place];

    fn apply(&self) -> Result<(), WriteError> {
        self.prepare()?;
        self.finish()
    }

    /// All but the last step.
    fn prepare(&self) -> Result<(), WriteError> {
        self.is_as_before()?;
        let mut steps = Self::STEPS[..Self::STEPS.len() - 1].iter();
        self.or_cleared(steps.try_for_each(|step| step(self)))
    }

    /// The last step.
    fn finish(&self) -> Result<(), WriteError> {
        self.is_as_before().inspect_err(|_| self.clear())?;
        self.or_cleared(self.put_in_place())?;
        if content(&self.path).is_ok_and(|now| now.as_ref() == Some(&self.after)) {
            return Ok(());
        }
        let _ = match &self.before {
            Some(bytes) => replace(&self.path, &self.beside, bytes, self.permissions.as_ref()),
            None => fs::remove_file(&self.path),
        };
        self.clear();
        Err(WriteError::NotKept { path: self.path.clone() })
    }

    fn is_as_before(&self) -> Result<(), WriteError> {
        let path = || self.path.clone();
        match content(&self.path) {
            Ok(now) if now == self.before => Ok(()),
            Ok(_) => Err(WriteError::Changed { path: path() }),
            Err(source) => Err(WriteError::System { path: path(), source }),
        }
    }

    fn or_cleared(&self, done: io::Result<()>) -> Result<(), WriteError> {
        done.map_err(|source| {
            self.clear();
            WriteError::System { path: self.path.clone(), source }
        })
    }

    fn back_up(&self) -> io::Result<()> {
        match (&self.backup, &self.before) {
            (Some(backup), Some(bytes)) => create(backup, bytes, self.permissions.as_ref()),
            _ => self.path.parent().map_or(Ok(()), fs::create_dir_all),
        }
    }

    fn put_beside(&self) -> io::Result<()> {
        create(&self.beside, &self.after, self.permissions.as_ref())
    }

    fn put_in_place(&self) -> io::Result<()> {
        fs::rename(&self.beside, &self.path)
    }

    /// Removes what is beside the file.
    fn clear(&self) {
        for path in self.backup.iter().chain([&self.beside]) {
            let _ = fs::remove_file(path);
        }
    }
}

/// The content of a file; none if it is not there.
pub(crate) fn content(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl ChangeRecord {
    /// Stores the record in a new file of this folder, whole or not at all, and never in the place of another
    /// one. The names of records sort by their age.
    pub fn store(&self, folder: &Path, stamp: &str) -> io::Result<PathBuf> {
        fs::create_dir_all(folder)?;
        let beside = folder.join(format!(".{stamp}-{}.tmp", std::process::id()));
        let _ = fs::remove_file(&beside);
        create(&beside, &serde_json::to_vec_pretty(self)?, None)?;
        let names = (0..1_000).map(|number| folder.join(format!("{stamp}-{number:03}.json")));
        let mut result = Err(io::ErrorKind::AlreadyExists.into());
        for path in names {
            // Unlike a move, a link does not replace what is there.
            let linked = match fs::hard_link(&beside, &path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists && !path.exists() => {
                    fs::rename(&beside, &path)
                }
                linked => linked,
            };
            match linked {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                linked => {
                    result = linked.map(|()| path);
                    break;
                }
            }
        }
        let _ = fs::remove_file(&beside);
        result
    }

    /// Replaces the record in its file, whole or not at all.
    pub fn update(&self, path: &Path) -> io::Result<()> {
        let beside = path.with_file_name(format!(".{}.tmp", std::process::id()));
        replace(path, &beside, &serde_json::to_vec_pretty(self)?, None)
    }

    /// The records of a folder, the last one first. Unfinished ones are removed.
    pub fn all(folder: &Path) -> Vec<PathBuf> {
        let files: Vec<PathBuf> = fs::read_dir(folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        for path in files.iter().filter(|path| path.extension().is_some_and(|it| it == "tmp")) {
            let _ = fs::remove_file(path);
        }
        let mut records: Vec<PathBuf> = files
            .into_iter()
            .filter(|path| path.extension().is_some_and(|it| it == "json"))
            .collect();
        records.sort_by_key(|path| std::cmp::Reverse(path.file_stem().map(ToOwned::to_owned)));
        records
    }
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Makes a new file. Without permissions only its owner can read it.
fn create(path: &Path, bytes: &[u8], permissions: Option<&Permissions>) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file: File = options.open(path)?;
    let written = file.write_all(bytes).and_then(|()| match permissions {
        Some(permissions) => file.set_permissions(permissions.clone()),
        None => Ok(()),
    });
    let written = written.and_then(|()| file.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written
}

/// Puts a new file in the place of another, whole or not at all. `beside` is the name of the new file until
/// then.
pub(crate) fn replace(
    path: &Path,
    beside: &Path,
    bytes: &[u8],
    permissions: Option<&Permissions>,
) -> io::Result<()> {
    let _ = fs::remove_file(beside);
    create(beside, bytes, permissions)?;
    fs::rename(beside, path).inspect_err(|_| drop(fs::remove_file(beside)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{Undone, undo};

    fn all(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        paths
            .filter(|path| path.is_file())
            .map(|path| (path.clone(), fs::read(&path).unwrap()))
            .collect()
    }

    /// The process ends after each step, and undo restores every byte and leaves nothing behind.
    #[test]
    fn a_run_that_ends_anywhere_is_undone() {
        let steps = Planned::STEPS.len() * 3;
        for ends_after in 0..=steps {
            let folder = tempfile::tempdir().unwrap();
            let path = |name: &str| folder.path().join(name);
            fs::write(path("a.json"), "{ }").unwrap();
            fs::write(path("b.json"), "{  }").unwrap();
            let before = all(folder.path());
            let mut writer = Writer::new("x");
            writer.plan(&path("new.json"), None, "{}", &[]).unwrap();
            writer.plan(&path("a.json"), Some("{ }"), "{}", &[]).unwrap();
            writer.plan(&path("b.json"), Some("{  }"), "{}", &[]).unwrap();
            let records = path("records");
            let stored = writer.record.store(&records, "x").unwrap();
            let all_steps = writer
                .planned
                .iter()
                .flat_map(|planned| Planned::STEPS.map(|step| (planned, step)));
            for (planned, step) in all_steps.take(ends_after) {
                step(planned).unwrap();
            }
            // A file that is half written is only ever one beside.
            if let Some(next) = writer.planned.get(ends_after / 3).filter(|_| ends_after % 3 == 1) {
                fs::write(&next.beside, "{").unwrap();
            }
            assert_eq!(ChangeRecord::all(&records), std::slice::from_ref(&stored));
            let record: ChangeRecord = serde_json::from_slice(&fs::read(&stored).unwrap()).unwrap();
            for _ in 0..2 {
                let undone = undo(&record, &mut Vec::new());
                let is_well = |it: &Undone| {
                    matches!(it, Undone::Restored(_) | Undone::Removed(_) | Undone::Untouched(_))
                };
                assert!(undone.iter().all(is_well), "{ends_after}: {undone:?}");
                assert_eq!(all(folder.path()), before, "{ends_after}: {undone:?}");
            }
        }
    }

    #[test]
    fn records_never_replace_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let stored: Vec<PathBuf> = (0..12)
            .map(|_| ChangeRecord::default().store(folder.path(), "20260102-030405").unwrap())
            .collect();
        fs::write(folder.path().join(".20260102-030405-1.tmp"), "{").unwrap();
        for path in stored.iter().rev() {
            assert_eq!(ChangeRecord::all(folder.path()).first(), Some(path));
            fs::remove_file(path).unwrap();
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_is_used_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (own, client) =
            (folder.path().join("own/toolgate.json"), folder.path().join("mcp.json"));
        fs::write(&client, "{}").unwrap();
        let mut writer = Writer::new("x");
        writer.plan(&own, None, "{}", &[]).unwrap();
        writer.plan(&client, Some("{}"), &format!("[{own:?}]"), &[]).unwrap();
        assert!(writer.apply(true).is_empty());
        fs::write(&client, format!("[{own:?}, 1]")).unwrap();
        let undone = undo(&writer.record, &mut Vec::new());
        assert!(
            matches!(&undone[..], [Undone::Changed { .. }, Undone::Used { by, .. }] if *by == client),
            "{undone:?}"
        );
        assert!(own.exists());
    }

    /// The name of the back-up of this file is longer than a name may be.
    #[test]
    fn together_all_files_are_written_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let long = path(&"x".repeat(250));
        fs::write(path("a.json"), "{ }").unwrap();
        fs::write(&long, "{ }").unwrap();
        let before = all(folder.path());
        let planned = || {
            let mut writer = Writer::new("20260102-030405");
            writer.plan(&path("new.json"), None, "{}", &[]).unwrap();
            writer.plan(&path("a.json"), Some("{ }"), "{}", &[]).unwrap();
            writer
        };
        let mut writer = planned();
        writer.plan(&long, Some("{ }"), "{}", &[]).unwrap();
        let errors = writer.apply_together();
        assert!(matches!(&errors[..], [WriteError::System { path, .. }] if *path == long));
        assert!(writer.record.files.is_empty());
        assert_eq!(all(folder.path()), before);
        let mut writer = planned();
        assert!(writer.apply_together().is_empty());
        assert_eq!(fs::read_to_string(path("a.json")).unwrap(), "{}");
        undo(&writer.record, &mut Vec::new());
        assert_eq!(all(folder.path()), before);
    }

    #[test]
    fn nothing_is_written_after_the_first_file_has_failed() {
        let folder = tempfile::tempdir().unwrap();
        let (own, client) = (folder.path().join("toolgate.json"), folder.path().join("mcp.json"));
        fs::write(&client, "{}").unwrap();
        let mut writer = Writer::new("x");
        writer.plan(&own, None, "{}", &[]).unwrap();
        writer.plan(&client, Some("{}"), "{ }", &[]).unwrap();
        fs::write(&own, "mine").unwrap();
        let errors = writer.apply(true);
        assert!(matches!(&errors[..], [WriteError::Changed { .. }]), "{errors:?}");
        assert!(writer.record.files.is_empty());
        assert_eq!(
            (fs::read_to_string(&own).unwrap(), fs::read_to_string(&client).unwrap()),
            ("mine".to_owned(), "{}".to_owned())
        );
    }
}
