//! `toolgate logins`

use std::{process::ExitCode, sync::Arc};

use futures::future::BoxFuture;
use toolgate_gateway::OwnLogins;
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
    if ended != LogoutOutcome::NotLoggedIn {
        note_logout(server, caller, by)?;
    }
    Ok(format!("{caller} at {server}: {}.", outcome(&ended).trim_end_matches('.')))
}

/// Writes to the audit log that a person has ended the login of a caller.
fn note_logout(server: &str, caller: &str, by: &str) -> Result<(), Failure> {
    let Some(store) = load::store() else { return Ok(()) };
    let record = AuditRecord {
        server: server.to_owned(),
        caller: by.to_owned(),
        ..decisions::record("login", false, format!("logged out: {caller}"))
    };
    decisions::write(&store, &record)
}

/// The logins of callers, for the callers themselves.
#[derive(Debug)]
pub(super) struct LoginsOfCallers;

impl LoginsOfCallers {
    fn stored() -> Result<Arc<dyn StoredLogins>, String> {
        let store = load::required_store().map_err(|failure| failure.first_line().to_owned())?;
        Ok(store.logins(&load::vault_key()))
    }
}

impl OwnLogins for LoginsOfCallers {
    fn servers(&self, caller: &str) -> Result<Vec<String>, String> {
        let all = of_callers(&*Self::stored()?).map_err(|why| why.first_line().to_owned())?;
        let own = all.into_iter().filter(|login| login.caller.as_deref() == Some(caller));
        Ok(own.map(|login| login.server).collect())
    }

    fn end<'l>(
        &'l self,
        caller: &'l str,
        server: &'l str,
    ) -> BoxFuture<'l, Result<String, String>> {
        Box::pin(async move {
            let ended = revoke_one(&Self::stored()?, (caller, server), caller).await;
            ended.map_err(|failure| failure.first_line().to_owned())
        })
    }
}

/// Revokes the logins of a caller, at a server, or both.
async fn revoke(
    logins: &Arc<dyn StoredLogins>,
    caller: Option<&str>,
    server: Option<&str>,
) -> Result<(), Failure> {
    let fits = |key: &LoginKey| {
        let is_caller = |name: &str| {
            let caller = key.caller.as_deref().unwrap_or_default();
            // `token bob 0a1b2c` is the caller with the token `bob`.
            let token = caller.strip_prefix("token ").and_then(|rest| rest.rsplit_once(' '));
            caller == name || token.is_some_and(|(token, _)| token == name)
        };
        caller.is_none_or(is_caller) && server.is_none_or(|server| *key.server == *server)
    };
    let ended = revoke_those(logins, fits, &decisions::caller()).await?;
    if ended.is_empty() {
        let hint = "`toolgate logins` shows them";
        return Err(Failure::new("there is no such login").hint(hint));
    }
    ended.into_iter().for_each(print::line);
    Ok(())
}

/// Revokes logins for the person `by`, and returns what became of each.
pub(super) async fn revoke_those(
    logins: &Arc<dyn StoredLogins>,
    fits: impl Fn(&LoginKey) -> bool,
    by: &str,
) -> Result<Vec<String>, Failure> {
    let all = logins.list().map_err(|error| Failure::new(error.to_string()))?;
    let mut ends = Vec::new();
    for key in all.into_iter().map(|(key, _)| key).filter(&fits) {
        let (server, owner) = (key.server.to_string(), key.caller.clone().unwrap_or_default());
        let settings = AuthorizationSettings::default();
        let ended = Authorizer::new(key, settings, Arc::clone(logins))?.logout().await?;
        if ended != LogoutOutcome::NotLoggedIn {
            note_logout(&server, &owner, by)?;
        }
        ends.push(format!("{owner} at `{server}`: {}", outcome(&ended)));
    }
    Ok(ends)
}
