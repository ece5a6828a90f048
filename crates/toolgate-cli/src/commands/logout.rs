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
        LogoutOutcome::NotLoggedIn => format!("`{name}`: there was no login"),
        LogoutOutcome::Revoked => format!("`{name}`: logged out"),
        LogoutOutcome::Forgotten => format!(
            "`{name}`: the login is deleted here; the authorization server supports no revocation, so its tokens stay valid until they expire"
        ),
        LogoutOutcome::NotRevoked(why) => {
            format!(
                "`{name}`: the login is deleted here; the authorization server did not revoke it ({why})"
            )
        }
    });
    Ok(ExitCode::SUCCESS)
}
