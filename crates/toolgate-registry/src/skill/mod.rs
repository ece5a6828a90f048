//! Skills: texts for a model, with the servers they need.

mod front_matter;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use front_matter::{FrontMatter, Scalar};

use crate::files::read_bounded;

/// A skill: a folder with a `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Its name: 1 to 64 letters, digits, `-` and `_`.
    pub name: String,
    /// When it is of use.
    pub description: String,
    /// The servers it needs, by their names in the configuration or in a registry.
    pub servers: Vec<String>,
    /// What it tells a model.
    pub body: String,
    /// Where it is.
    pub path: PathBuf,
}

/// What is wrong with a skill, or with a folder of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillProblem {
    /// Where.
    pub path: PathBuf,
    /// What, and what became of it.
    pub message: String,
}

/// What folders have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skills {
    /// In the order of the folders, each name once.
    pub skills: Vec<Skill>,
    /// What is wrong with the rest.
    pub problems: Vec<SkillProblem>,
}

/// The largest `SKILL.md`.
pub const MAX_SKILL_BYTES: usize = 256 * 1024;
const MAX_SKILLS: usize = 500;
const MAX_PROBLEMS: usize = 50;
const MAX_SERVERS: usize = 20;
const MAX_DESCRIPTION: usize = 1_024;
const FILE: &str = "SKILL.md";

/// Reads the skills of folders: each folder in them with a `SKILL.md`, and one of their own. What a
/// link leads to outside of the folder is not read.
pub fn read_skills(folders: &[PathBuf]) -> Skills {
    let mut found = Skills::default();
    for folder in folders {
        match files_of(folder) {
            Ok(files) => {
                for file in files {
                    found.add(folder, &file);
                }
            }
            Err(error) => found.complain(folder, format!("the folder cannot be read: {error}")),
        }
    }
    found
}

impl Skills {
    /// The skill of this name.
    pub fn named(&self, name: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.name == name)
    }

    fn add(&mut self, folder: &Path, file: &Path) {
        if self.skills.len() >= MAX_SKILLS {
            return self.complain(file, format!("it is left out: {MAX_SKILLS} skills are enough"));
        }
        let text = match contained(folder, file) {
            Ok(text) => text,
            Err(reason) => return self.complain(file, format!("it is left out: {reason}")),
        };
        match skill(&text, file) {
            Ok((skill, _)) if self.named(&skill.name).is_some() => {
                self.complain(file, format!("it is left out: there is a `{}` already", skill.name));
            }
            Ok((skill, remarks)) => {
                for remark in remarks {
                    self.complain(file, remark);
                }
                self.skills.push(skill);
            }
            Err(reason) => self.complain(file, format!("it is left out: {reason}")),
        }
    }

    fn complain(&mut self, path: &Path, message: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(SkillProblem { path: path.to_owned(), message });
        }
    }
}

fn files_of(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for item in fs::read_dir(folder)?.take(4 * MAX_SKILLS) {
        let file = item?.path().join(FILE);
        // A link that leads nowhere is told of.
        if fs::symlink_metadata(&file).is_ok() {
            files.push(file);
        }
    }
    files.sort();
    let own = folder.join(FILE);
    files.extend(Some(own).filter(|own| own.is_file()));
    Ok(files)
}

/// The text of a file that is in the folder, whatever links are on the way.
fn contained(folder: &Path, file: &Path) -> Result<String, String> {
    let unreadable = |error: io::Error| error.to_string();
    let real = fs::canonicalize(file).map_err(unreadable)?;
    if !real.starts_with(fs::canonicalize(folder).map_err(unreadable)?) {
        return Err("it leads out of the folder".to_owned());
    }
    if !fs::metadata(&real).map_err(unreadable)?.is_file() {
        return Err("it is no file".to_owned());
    }
    let bytes = read_bounded(&real, MAX_SKILL_BYTES as u64).map_err(unreadable)?;
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

/// A skill, and what of its front matter was passed over.
fn skill(text: &str, path: &Path) -> Result<(Skill, Vec<String>), String> {
    let (front, body) = FrontMatter::split(text)?;
    let text_of = |key: &str| match front.get(key) {
        Some(Scalar::Text(text)) => Ok(text.trim().to_owned()),
        Some(Scalar::List(_)) => Err(format!("`{key}` is a list and not a text")),
        None => Err(format!("its front matter has no `{key}`")),
    };
    let name = text_of("name")?;
    let sound = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
    if name.is_empty() || name.len() > 64 || !name.chars().all(sound) {
        return Err("its `name` must have 1 to 64 letters, digits, `-` and `_`".to_owned());
    }
    let mut description = text_of("description")?;
    if let Some((end, _)) = description.char_indices().nth(MAX_DESCRIPTION) {
        description.truncate(end);
    }
    let servers = match front.get("mcp-servers") {
        None => Vec::new(),
        Some(Scalar::List(servers)) => servers.clone(),
        Some(Scalar::Text(one)) => {
            one.split([',', ' ']).map(str::to_owned).filter(|name| !name.is_empty()).collect()
        }
    };
    if servers.len() > MAX_SERVERS {
        return Err(format!("it needs more than {MAX_SERVERS} servers"));
    }
    let known = ["name", "description", "mcp-servers"];
    let others = front.not_understood.iter().filter(|key| known.contains(&key.as_str()));
    let remarks = others.map(|key| format!("`{key}` is not written in a way that is understood"));
    let remarks = remarks.collect();
    let (body, path) = (body.trim().to_owned(), path.to_owned());
    Ok((Skill { name, description, servers, body, path }, remarks))
}

#[cfg(test)]
mod tests;
