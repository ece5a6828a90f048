//! Recognises toolgate itself among the servers of a configuration.
//!
//! Clients start toolgate from the same file that it reads. A toolgate that starts the toolgate in its
//! file would go on without end.

use std::{
    collections::BTreeMap,
    env, fs,
    io::{BufRead as _, Write as _},
    path::{Path, PathBuf},
};

use toolgate::setup::configuration_name;
use toolgate_config::{Configuration, ProblemSeverity, Secret, Transport};
use toolgate_mcp::{ErrorObject, codes, nesting, response_message};

use crate::failure::Failure;

/// What is said of such a server.
pub(crate) const LEFT_OUT: &str = "is toolgate itself, and is left out";
/// The hidden command of the demo's servers, which reads no configuration.
const DEMO_SERVER: &str = "demo-server";

/// Removes the servers that are toolgate itself, with a warning for each.
pub(crate) fn leave_out(configuration: &mut Configuration) {
    let (own, others): (Vec<_>, Vec<_>) = std::mem::take(&mut configuration.servers)
        .into_iter()
        .partition(|server| server.transport.as_ref().is_ok_and(is_own));
    configuration.servers = others;
    let hint = "its servers belong into this file; a gateway that runs elsewhere can be a server by its `url`";
    let problems = own
        .iter()
        .filter(|server| server.settings.enabled)
        .map(|server| server.place.problem(ProblemSeverity::Warning, LEFT_OUT, hint));
    configuration.problems.extend(problems);
}

/// Whether a server is this program, by its file or by its name.
fn is_own(transport: &Transport) -> bool {
    let Transport::Stdio { command, args, env, cwd } = transport else { return false };
    if args.first().is_some_and(|first| first == DEMO_SERVER) {
        return false;
    }
    let program = found(command, env, cwd.as_deref());
    let is_named = |path: &Path| path.file_stem().is_some_and(|name| name == "toolgate");
    is_named(Path::new(command))
        || program.is_some_and(|program| {
            is_named(&program) || env::current_exe().is_ok_and(|own| is_same_file(&own, &program))
        })
}

/// The file of a command, with its links followed.
fn found(command: &str, env: &BTreeMap<String, Secret>, cwd: Option<&Path>) -> Option<PathBuf> {
    let written = Path::new(command);
    if written.components().nth(1).is_some() {
        let from_folder =
            cwd.map(|cwd| cwd.join(written)).and_then(|path| path.canonicalize().ok());
        return from_folder.or_else(|| written.canonicalize().ok());
    }
    let own = env.get("PATH").map(|path| path.expose().into());
    let folders = own.or_else(|| env::var_os("PATH")).unwrap_or_default();
    let mut files = env::split_paths(&folders).map(|folder| folder.join(written));
    files.find(|file| file.is_file())?.canonicalize().ok()
}

/// Whether two paths are one file, also by another hard link.
fn is_same_file(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let id = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
        id(one).is_some_and(|own| id(other) == Some(own))
    }
    #[cfg(not(unix))]
    {
        fs::canonicalize(one).is_ok_and(|own| own == other)
    }
}

/// Refuses to serve a configuration that a toolgate above this process has. The client gets an answer
/// that says so, because it may be that toolgate.
pub(crate) fn refuse_below_itself(path: &Path, is_stdio: bool) -> Result<(), Failure> {
    if !nesting::is_above(&configuration_name(path)) {
        return Ok(());
    }
    let message = "a toolgate with the same configuration has started this one";
    if is_stdio {
        let mut line = String::new();
        if std::io::stdin().lock().read_line(&mut line).is_ok()
            && let Ok(request) = serde_json::from_str::<serde_json::Value>(&line)
            && let Some(id) = request.get("id")
        {
            let error = ErrorObject::new(codes::NESTED, message, None);
            let _ = writeln!(std::io::stdout(), "{}", response_message(id, Err(error)));
        }
    }
    Err(Failure::usage(message).hint("remove the server that starts it from the configuration"))
}
