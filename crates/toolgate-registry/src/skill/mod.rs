//! Skills: texts for a model, with the servers they need.

mod bundle;
mod front_matter;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

pub use bundle::{SkillFile, read_skill_file, sha256, skill_files};
pub use front_matter::front_matter_json;
use front_matter::{FrontMatter, FrontValue};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::files::read_bounded;

/// Why a file is no skill.
#[derive(Debug, Error)]
pub(crate) enum SkillError {
    #[error("it does not begin with `---`")]
    NoFrontMatter,
    #[error("its front matter has no end (`---`)")]
    EndlessFrontMatter,
    #[error("its front matter is not YAML: {0}")]
    NotYaml(String),
    #[error("its front matter has no `{0}`")]
    MissingKey(&'static str),
    #[error("`{0}` is a list and not a text")]
    NotText(&'static str),
    #[error("its `name` must have 1 to 64 letters, digits, `-` and `_`")]
    InvalidName,
    #[error("it needs more than {MAX_SERVERS} servers")]
    TooManyServers,
    #[error("it leads out of the folder")]
    OutsideFolder,
    #[error("it is not a file")]
    NotFile,
    #[error("it is not UTF-8")]
    NotUtf8,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A skill: a folder with a `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Its name: 1 to 64 letters, digits, `-` and `_`.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// The servers it needs, by their names in the configuration or in a registry.
    pub servers: Vec<String>,
    /// The instructions for a model.
    pub body: String,
    /// Its front matter as JSON.
    pub front_matter: Map<String, Value>,
    /// The path of its `SKILL.md`.
    pub path: PathBuf,
}

/// A problem with a skill, or with a folder of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillProblem {
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong, and whether the skill is left out.
    pub message: String,
}

/// The skills of folders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skills {
    /// In the order of the folders, each name once.
    pub skills: Vec<Skill>,
    /// The problems of the other files.
    pub problems: Vec<SkillProblem>,
}

/// The largest `SKILL.md`.
pub const MAX_SKILL_BYTES: usize = 256 * 1024;
const MAX_SKILLS: usize = 500;
const MAX_PROBLEMS: usize = 50;
const MAX_SERVERS: usize = 20;
const MAX_DESCRIPTION: usize = 1_024;
const FILE: &str = "SKILL.md";

/// Reads the skills of folders: the `SKILL.md` of each folder and of its subfolders. Links that
/// lead out of the folder are not followed.
pub fn read_skills(folders: &[PathBuf]) -> Skills {
    let mut skills = Skills::default();
    for folder in folders {
        match files_of(folder) {
            Ok(files) => {
                for file in files {
                    skills.add(folder, &file);
                }
            }
            Err(error) => skills.report(folder, format!("the folder cannot be read: {error}")),
        }
    }
    skills
}

impl Skills {
    /// The skill of this name.
    pub fn named(&self, name: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.name == name)
    }

    fn add(&mut self, folder: &Path, file: &Path) {
        if self.skills.len() >= MAX_SKILLS {
            return self.report(file, format!("it is left out: {MAX_SKILLS} skills are enough"));
        }
        let text = match contained(folder, file) {
            Ok(text) => text,
            Err(reason) => return self.report(file, format!("it is left out: {reason}")),
        };
        match skill(&text, file) {
            Ok((skill, _)) if self.named(&skill.name).is_some() => {
                self.report(file, format!("it is left out: there is a `{}` already", skill.name));
            }
            Ok((skill, remarks)) => {
                for remark in remarks {
                    self.report(file, remark);
                }
                self.skills.push(skill);
            }
            Err(reason) => self.report(file, format!("it is left out: {reason}")),
        }
    }

    fn report(&mut self, path: &Path, message: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(SkillProblem { path: path.to_owned(), message });
        }
    }
}

fn files_of(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for item in fs::read_dir(folder)?.take(4 * MAX_SKILLS) {
        let file = item?.path().join(FILE);
        // A link that leads nowhere is reported later, when it is read.
        if fs::symlink_metadata(&file).is_ok() {
            files.push(file);
        }
    }
    files.sort();
    let own = folder.join(FILE);
    files.extend(Some(own).filter(|own| own.is_file()));
    Ok(files)
}

/// The text of a file, if it is in the folder after links are resolved.
fn contained(folder: &Path, file: &Path) -> Result<String, SkillError> {
    let real = fs::canonicalize(file)?;
    if !real.starts_with(fs::canonicalize(folder)?) {
        return Err(SkillError::OutsideFolder);
    }
    if !fs::metadata(&real)?.is_file() {
        return Err(SkillError::NotFile);
    }
    let bytes = read_bounded(&real, MAX_SKILL_BYTES as u64)?;
    String::from_utf8(bytes).map_err(|_| SkillError::NotUtf8)
}

/// A skill, and remarks on what of its front matter was skipped.
fn skill(text: &str, path: &Path) -> Result<(Skill, Vec<String>), SkillError> {
    let (front, body) = FrontMatter::split(text)?;
    let text_of = |key: &'static str| match front.get(key) {
        Some(FrontValue::Text(text)) => Ok(text.trim().to_owned()),
        Some(FrontValue::List(_)) => Err(SkillError::NotText(key)),
        None => Err(SkillError::MissingKey(key)),
    };
    let name = text_of("name")?;
    let is_valid = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_valid) {
        return Err(SkillError::InvalidName);
    }
    let mut description = text_of("description")?;
    if let Some((end, _)) = description.char_indices().nth(MAX_DESCRIPTION) {
        description.truncate(end);
    }
    let servers = match front.get("mcp-servers") {
        None => Vec::new(),
        Some(FrontValue::List(servers)) => servers.clone(),
        Some(FrontValue::Text(names)) => {
            names.split([',', ' ']).map(str::to_owned).filter(|name| !name.is_empty()).collect()
        }
    };
    if servers.len() > MAX_SERVERS {
        return Err(SkillError::TooManyServers);
    }
    let known = ["name", "description", "mcp-servers"];
    let skipped = front.unreadable.iter().filter(|key| known.contains(&key.as_str()));
    let remarks = skipped.map(|key| format!("`{key}` is neither a text nor a list of texts"));
    let remarks = remarks.collect();
    let (body, path) = (body.trim().to_owned(), path.to_owned());
    let front_matter = front_matter_json(text).unwrap_or_default();
    Ok((Skill { name, description, servers, body, front_matter, path }, remarks))
}

#[cfg(test)]
mod tests;
