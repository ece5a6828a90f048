//! `toolgate logins`

use std::{process::ExitCode, sync::Arc};

use toolgate_store::{AuditRecord, LoginKey, Logins as StoredLogins};
use toolgate_upstream::{AuthorizationSettings, Authorizer, LogoutOutcome};

use crate::{
    cli::{Globals, Logins, LoginsCommand},
    decisions,
    failure::{CommandResult, Failure},
    load,
    logins::{LoginOverview, of_callers, outcome},
    print,
    table::table,
};

pub(crate) async fn run(_globals: &Globals, arguments: &Logins) -> CommandResult {
    let store = load::required_store()?;
    let logins = store.logins(&load::vault_key());
    match &arguments.command {
        None => list(&*logins, arguments.output.json)?,
        Some(LoginsCommand::Revoke { caller, server }) => {
            revoke(&logins, caller.as_deref(), server.as_deref()).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(logins: &dyn StoredLogins, as_json: bool) -> Result<(), Failure> {
    let all = of_callers(logins)?;
    let empty =
        "no caller has logged in at a server; `\"auth\": \"perCaller\"` of a server lets them";
    print::list(as_json, &all, empty, || overview(&all))
}

fn overview(logins: &[LoginOverview]) -> String {
    let rows = logins.iter().map(|login| {
        let caller = login.caller.clone().unwrap_or_default();
        vec![caller, login.server.clone(), login.to_string()]
    });
    table(&["caller", "server", "login"], rows)
}

/// Revokes the login of a caller at a server, for the person `by`. Returns what became of it.
pub(super) async fn revoke_one(
    logins: &Arc<dyn StoredLogins>,
    (caller, server): (&str, &str),
    by: &str,
) -> Result<String, Failure> {
    let all = logins.list().map_err(|error| Failure::new(error.to_string()))?;
    let is_it = |key: &LoginKey| key.caller.as_deref() == Some(caller) && *key.server == *server;
    let key = all.into_iter().map(|(key, _)| key).find(is_it);
    let key = key.ok_or_else(|| Failure::new("there is no such login"))?;
    let settings = AuthorizationSettings::default();
    let ended = Authorizer::new(key, settings, Arc::clone(logins))?.logout().await?;
    if ended != LogoutOutcome::NotLoggedIn
        && let Some(store) = load::store()
    {
        let record = AuditRecord {
            server: server.to_owned(),
            caller: by.to_owned(),
            ..decisions::record("login", false, format!("logged out: {caller}"))
        };
        decisions::write(&store, &record)?;
    }
    Ok(format!("{caller} at {server}: {}.", outcome(&ended).trim_end_matches('.')))
}

/// Revokes the logins of a caller, at a server, or both.
async fn revoke(
    logins: &Arc<dyn StoredLogins>,
    caller: Option<&str>,
    server: Option<&str>,
) -> Result<(), Failure> {
    let fits = |key: &LoginKey| {
        caller.is_none_or(|caller| key.caller.as_deref() == Some(caller))
            && server.is_none_or(|server| *key.server == *server)
    };
    let all = logins.list().map_err(|error| Failure::new(error.to_string()))?;
    let revoked: Vec<LoginKey> = all.into_iter().map(|(key, _)| key).filter(fits).collect();
    if revoked.is_empty() {
        let hint = "`toolgate logins` shows them";
        return Err(Failure::new("there is no such login").hint(hint));
    }
    for key in revoked {
        let (server, owner) = (key.server.to_string(), key.caller.clone().unwrap_or_default());
        let settings = AuthorizationSettings::default();
        let ended = Authorizer::new(key, settings, Arc::clone(logins))?.logout().await?;
        if ended != LogoutOutcome::NotLoggedIn {
            decisions::about_server("login", &server, false, format!("logged out: {owner}"))?;
        }
        print::line(format!("{owner} at `{server}`: {}", outcome(&ended)));
    }
    Ok(())
}
