//! `toolgate logout`

use std::process::ExitCode;

use toolgate_config::Transport;
use toolgate_upstream::LogoutOutcome;

use crate::{
    cli::Globals,
    decisions,
    failure::{CommandResult, Failure},
    load,
    logins::{self, own_caller},
    print,
};

pub(crate) async fn run(globals: &Globals, name: &str) -> CommandResult {
    let loaded = load::load(globals)?;
    let server = loaded.server(name)?;
    let Ok(Transport::Http { url, .. }) = &server.transport else {
        return Err(Failure::usage(format!("`{name}` has no URL, and so no login")));
    };
    let outcome = loaded.authorizer(server, url, own_caller(server))?.logout().await?;
    if !matches!(outcome, LogoutOutcome::NotLoggedIn) {
        decisions::about_server("logout", name, false, "logged out")?;
    }
    print::line(format!("`{name}`: {}", logins::outcome(&outcome)));
    Ok(ExitCode::SUCCESS)
}
