//! `toolgate logs`

use std::process::ExitCode;

use crate::{
    cli::{Globals, Logs},
    failure::{CommandResult, Failure},
    load, print,
};

pub(crate) fn run(globals: &Globals, arguments: &Logs) -> CommandResult {
    let store = load::required_store()?;
    let lines = store
        .log(&arguments.name)
        .tail(arguments.lines)
        .map_err(|error| Failure::new(format!("the log cannot be read: {error}")))?;
    // An empty log of a server that does not exist is most likely a typing error.
    if lines.is_empty()
        && let Ok(loaded) = load::load(globals)
    {
        loaded.server(&arguments.name)?;
    }
    let empty = format!("server `{}` has written nothing yet", arguments.name);
    print::list(arguments.output.json, &lines, &empty, || lines.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}
