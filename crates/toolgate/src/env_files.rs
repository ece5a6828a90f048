//! The text of a configuration file, with the files that it names.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{self, Path, PathBuf},
};

use toolgate_config::{
    CommandTime, ConfigError, Configuration, EnvFileError, Format, MAX_ENV_FILE_BYTES,
    SavedPolicyText, StoredReference, StoredValueError, Surroundings, parse_within,
};

use crate::host_config::resolve;

/// What a configuration file may use of the computer. Paths of files are absolute, or start at the working
/// folder.
#[derive(Clone, Copy)]
pub struct FileAccess<'a> {
    /// Looks up an environment variable.
    pub variables: &'a dyn Fn(&str) -> Option<String>,
    /// Reads an env file; [`read_env_file`] reads it from the disk.
    pub env_file: &'a dyn Fn(&Path) -> Result<String, EnvFileError>,
    /// Reads a stored value, such as `${keychain:NAME}`.
    pub stored: &'a dyn Fn(StoredReference<'_>) -> Result<String, StoredValueError>,
    /// When the commands of servers run.
    pub commands: CommandTime,
    /// What `${workspaceFolder}` means, if that is not the folder of the file.
    pub workspace_folder: Option<&'a Path>,
    /// The folder that the client works in.
    pub working_folder: Option<&'a Path>,
    /// The policy that counts in place of the one in the file.
    pub saved_policy: Option<SavedPolicyText<'a>>,
}

/// Reads the text of a configuration file.
///
/// `name` is what messages call the file. Relative paths start at the folder of `path`.
pub fn parse_file(
    text: &str,
    format: Format,
    name: &str,
    path: Option<&Path>,
    access: &FileAccess<'_>,
) -> Result<Configuration, ConfigError> {
    let given = access.workspace_folder.and_then(Path::to_str).map(str::to_owned);
    let workspace_folder = given.or_else(|| path.and_then(workspace_folder));
    let stored = |reference: StoredReference<'_>| match reference {
        StoredReference::File(written) => {
            let whole = stored_path(path, written, access.variables);
            let whole = whole.to_str().ok_or(StoredValueError::NotText)?;
            (access.stored)(StoredReference::File(whole))
        }
        other => (access.stored)(other),
    };
    let surroundings = Surroundings {
        environment: access.variables,
        env_files: &|written| (access.env_file)(&env_file_path(path, Path::new(written))),
        stored: &stored,
        commands: access.commands,
        workspace_folder: workspace_folder.as_deref(),
        working_folder: access.working_folder.and_then(Path::to_str),
        saved_policy: access.saved_policy,
    };
    parse_within(text, format, name, &surroundings)
}

/// Where the file of `${file:…}` is. `~/` is the user's home.
fn stored_path(
    path: Option<&Path>,
    written: &str,
    variables: &dyn Fn(&str) -> Option<String>,
) -> PathBuf {
    let home = || ["HOME", "USERPROFILE"].into_iter().find_map(variables);
    match written.strip_prefix("~/").zip(home()) {
        Some((rest, home)) => Path::new(&home).join(rest),
        None => resolve(path, Path::new(written)),
    }
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
