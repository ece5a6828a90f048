//! The env files that a configuration names.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{self, Path, PathBuf},
};

use toolgate_config::{
    ConfigError, Configuration, EnvFileError, Format, MAX_ENV_FILE_BYTES, Surroundings,
    parse_within,
};

use crate::host_config::resolve;

/// Reads the text of a configuration file.
///
/// `name` is what messages call the file. `read` gets the path of each env file; relative paths start
/// at the folder of `path`. [`read_env_file`] reads it from the disk.
pub fn parse_file(
    text: &str,
    format: Format,
    name: &str,
    path: Option<&Path>,
    environment: &dyn Fn(&str) -> Option<String>,
    read: &dyn Fn(&Path) -> Result<String, EnvFileError>,
) -> Result<Configuration, ConfigError> {
    let workspace_folder = path.and_then(workspace_folder);
    let surroundings = Surroundings {
        environment,
        env_files: &|written| read(&env_file_path(path, Path::new(written))),
        workspace_folder: workspace_folder.as_deref(),
    };
    parse_within(text, format, name, &surroundings)
}

/// Where the env file is that the configuration file `path` names.
pub fn env_file_path(path: Option<&Path>, written: &Path) -> PathBuf {
    resolve(path, written)
}

/// Reads an env file, if it is a file of a bearable size.
pub fn read_env_file(path: &Path) -> Result<String, EnvFileError> {
    // A pipe or a device would block, or never end.
    if !fs::metadata(path).map_err(|error| failure(&error))?.is_file() {
        return Err(EnvFileError::NotAFile);
    }
    let file = File::open(path).map_err(|error| failure(&error))?;
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_ENV_FILE_BYTES).unwrap_or(u64::MAX);
    file.take(most + 1).read_to_end(&mut bytes).map_err(|error| failure(&error))?;
    if bytes.len() > MAX_ENV_FILE_BYTES {
        return Err(EnvFileError::TooLarge);
    }
    String::from_utf8(bytes).map_err(|_| EnvFileError::NotText)
}

fn failure(error: &io::Error) -> EnvFileError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => EnvFileError::Missing,
        io::ErrorKind::PermissionDenied => EnvFileError::Denied,
        kind => EnvFileError::Failed(kind),
    }
}

/// The folder of the file. Editors keep their files in a folder of their own, below it.
fn workspace_folder(file: &Path) -> Option<String> {
    let file = path::absolute(file).ok()?;
    let folder = file.parent()?;
    let is_editors = folder.file_name().is_some_and(|name| name == ".vscode" || name == ".cursor");
    let folder = if is_editors { folder.parent()? } else { folder };
    Some(folder.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_of_a_bearable_size_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("good"), "A=1").unwrap();
        fs::write(at("most"), "x".repeat(MAX_ENV_FILE_BYTES)).unwrap();
        fs::write(at("more"), "x".repeat(MAX_ENV_FILE_BYTES + 1)).unwrap();
        fs::write(at("latin"), b"A=\xe9").unwrap();
        assert_eq!(read_env_file(&at("good")), Ok("A=1".to_owned()));
        assert_eq!(read_env_file(&at("most")).map(|it| it.len()), Ok(MAX_ENV_FILE_BYTES));
        assert_eq!(read_env_file(&at("more")), Err(EnvFileError::TooLarge));
        assert_eq!(read_env_file(&at("latin")), Err(EnvFileError::NotText));
        assert_eq!(read_env_file(&at("none")), Err(EnvFileError::Missing));
        assert_eq!(read_env_file(&at("good").join("below")), Err(EnvFileError::Missing));
        assert_eq!(read_env_file(folder.path()), Err(EnvFileError::NotAFile));
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_no_env_file() {
        assert_eq!(read_env_file(Path::new("/dev/zero")), Err(EnvFileError::NotAFile));
    }

    #[test]
    fn the_workspace_is_the_folder_above_that_of_an_editor() {
        for (file, expected) in [
            ("/src/app/toolgate.json", "/src/app"),
            ("/src/app/.vscode/mcp.json", "/src/app"),
            ("/src/app/.cursor/mcp.json", "/src/app"),
        ] {
            assert_eq!(workspace_folder(Path::new(file)).as_deref(), Some(expected), "{file}");
        }
    }
}
