//! `toolgate logs`

use std::process::ExitCode;

use crate::{
    cli::{Globals, Logs},
    failure::Failure,
    load,
    printer::Printer,
};

pub(crate) fn run(
    globals: &Globals,
    arguments: &Logs,
    printer: &mut Printer,
) -> Result<ExitCode, Failure> {
    let store = load::store().ok_or_else(super::no_data_folder)?;
    let lines = store
        .log(&arguments.name)
        .tail(arguments.lines)
        .map_err(|error| Failure::new(format!("the log cannot be read: {error}")))?;
    if lines.is_empty() {
        check_name(globals, &arguments.name)?;
        printer.note(format!("server `{}` has written nothing yet", arguments.name));
    }
    if arguments.output.json {
        printer.json(&lines)?;
    } else {
        for line in &lines {
            printer.line(line);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// An empty log of a server that does not exist is most likely a typing error.
fn check_name(globals: &Globals, name: &str) -> Result<(), Failure> {
    let Ok(loaded) = load::load(globals) else { return Ok(()) };
    loaded.server(name).map(|_| ())
}
