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
        ConfigCommand::Check { output } => {
            let loaded = load::load_to_check(globals)?;
            let configuration = &loaded.configuration;
            let usable = configuration
                .servers
                .iter()
                .filter(|server| server.transport.is_ok() && server.settings.enabled)
                .count();
            let path = folders::shown(&loaded.path);
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
                print::line(format!("{path}: {usable} of {all} servers can be used"));
            }
            let failed = load::has_errors(&configuration.problems);
            Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
        }
    }
}
