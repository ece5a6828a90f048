//! `toolgate config`

use std::process::ExitCode;

use serde_json::json;

use crate::{
    cli::{ConfigCommand, Globals},
    failure::CommandResult,
    folders, load, print,
};

pub(crate) fn run(globals: &Globals, command: &ConfigCommand) -> CommandResult {
    match command {
        ConfigCommand::Schema => {
            print::json(&toolgate_config::json_schema())?;
            Ok(ExitCode::SUCCESS)
        }
        ConfigCommand::Check { output, .. } => {
            let loaded = load::load_to_check(globals)?;
            let configuration = &loaded.configuration;
            let usable = configuration
                .servers
                .iter()
                .filter(|server| server.transport.is_ok() && server.settings.enabled)
                .count();
            let path = folders::shown(&loaded.path);
            let errors = load::errors(&configuration.problems);
            if output.json {
                print::json(&json!({
                    "file": path,
                    "servers": configuration.servers.len(),
                    "usable": usable,
                    "problems": configuration.problems,
                }))?;
            } else {
                load::report(&loaded);
                let all = configuration.servers.len();
                let servers = format!("{usable} of {all} servers can be used");
                print::line(match errors {
                    0 => format!("{path}: {servers}"),
                    1 => format!("{path} has an error, see above; {servers}"),
                    errors => format!("{path} has {errors} errors, see above; {servers}"),
                });
            }
            Ok(if errors > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
        }
    }
}
