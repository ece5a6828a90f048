//! `toolgate logout`

use std::process::ExitCode;

use toolgate_config::Transport;
use toolgate_upstream::LogoutOutcome;

use crate::{
    cli::Globals,
    decisions,
    failure::{CommandResult, Failure},
    load, print,
};

pub(crate) async fn run(globals: &Globals, name: &str) -> CommandResult {
    let loaded = load::load(globals)?;
    let server = loaded.server(name)?;
    let Ok(Transport::Http { url, .. }) = &server.transport else {
        return Err(Failure::usage(format!("`{name}` has no URL, and so no login")));
    };
    let outcome = loaded.authorizer(server, url)?.logout().await?;
    if !matches!(outcome, LogoutOutcome::NotLoggedIn) {
        decisions::about_server("logout", name, false, "logged out")?;
    }
    print::line(match outcome {
        LogoutOutcome::NotLoggedIn => format!("`{name}`: nobody was logged in"),
        LogoutOutcome::Revoked => format!("`{name}`: logged out"),
        LogoutOutcome::Forgotten => format!(
            "`{name}`: forgotten here; the server takes no word of it, so that its tokens are good until they expire"
        ),
        LogoutOutcome::NotRevoked(why) => {
            format!("`{name}`: forgotten here; the server could not be told ({why})")
        }
    });
    Ok(ExitCode::SUCCESS)
}
