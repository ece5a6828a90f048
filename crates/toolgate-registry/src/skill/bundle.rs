//! The files of a skill: what is in its folder. Skills in subfolders are files of it too.

use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use super::{FILE, Skill};
use crate::files::read_bounded;

/// A file of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// Its path in the folder of the skill, with `/`.
    pub path: String,
    /// The hash of its bytes, as `sha256:…`.
    pub digest: String,
    /// How many bytes it has.
    pub size: u64,
}

/// The largest file of a skill.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
/// The most bytes of all files of a skill, and the most files: what every host has to accept.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
const MAX_FILES: usize = 512;
const MAX_DEPTH: usize = 8;

/// The files of a skill, `SKILL.md` first. Links, larger files, and what exceeds the limits are left out.
pub fn skill_files(skill: &Skill) -> Vec<SkillFile> {
    let Some(folder) = skill.path.parent() else { return Vec::new() };
    let mut paths = Vec::new();
    collect(folder, 0, &mut paths);
    paths.sort();
    let own = folder.join(FILE);
    paths.retain(|path| *path != own);
    paths.insert(0, own);
    let (mut files, mut total) = (Vec::new(), 0);
    for path in paths.into_iter().take(MAX_FILES) {
        let Some(name) = relative(folder, &path) else { continue };
        let Ok(bytes) = read_bounded(&path, MAX_FILE_BYTES) else { continue };
        let size = bytes.len() as u64;
        total += size;
        if total > MAX_BYTES {
            break;
        }
        files.push(SkillFile { path: name, digest: sha256(&bytes), size });
    }
    files
}

/// The bytes of a file of a skill, by its path in the folder.
pub fn read_skill_file(skill: &Skill, path: &str) -> io::Result<Vec<u8>> {
    let missing = || io::Error::from(io::ErrorKind::NotFound);
    let folder = skill.path.parent().ok_or_else(missing)?;
    // Only what is a file of the skill: neither links nor other folders can be named.
    let mut paths = Vec::new();
    collect(folder, 0, &mut paths);
    paths.push(folder.join(FILE));
    let found = paths.into_iter().find(|found| relative(folder, found).as_deref() == Some(path));
    read_bounded(&found.ok_or_else(missing)?, MAX_FILE_BYTES)
}

/// The hash of bytes, as skills over MCP write it.
pub fn sha256(bytes: &[u8]) -> String {
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn relative(folder: &Path, path: &Path) -> Option<String> {
    let parts = path.strip_prefix(folder).ok()?.components();
    let parts: Option<Vec<&str>> = parts.map(|part| part.as_os_str().to_str()).collect();
    Some(parts?.join("/"))
}

fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(items) = fs::read_dir(folder) else { return };
    for item in items.flatten().take(2 * MAX_FILES) {
        if files.len() >= 2 * MAX_FILES {
            return;
        }
        let (path, Ok(kind)) = (item.path(), item.file_type()) else { continue };
        if kind.is_dir() && depth < MAX_DEPTH {
            collect(&path, depth + 1, files);
        } else if kind.is_file() {
            files.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_skills;

    #[test]
    fn the_files_of_a_skill_have_digests() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let text = |name: &str| format!("---\nname: {name}\ndescription: d\n---\nBody");
        write("a/SKILL.md", &text("a"));
        write("a/scripts/x.py", "abc");
        write("a/inner/SKILL.md", &text("inner"));
        #[cfg(unix)]
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("a/link")).unwrap();
        let skills = read_skills(&[folder.path().to_owned()]);
        let skill = skills.named("a").unwrap();
        let files = skill_files(skill);
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["SKILL.md", "inner/SKILL.md", "scripts/x.py"]);
        assert_eq!(files[2].size, 3);
        let abc = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(files[2].digest, abc);
        assert_eq!(read_skill_file(skill, "scripts/x.py").unwrap(), b"abc");
        for path in ["link", "../a/SKILL.md", "/etc/passwd", ""] {
            assert!(read_skill_file(skill, path).is_err(), "{path}");
        }
    }
}
