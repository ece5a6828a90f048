//! `toolgate token`

use std::{
    process::ExitCode,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::json;
use toolgate_store::{
    AccessTokens, AuditRecord, LoginKey, Store, TokenError, TokenOrder, TokenRecord, utc,
};

use super::logins;
use crate::{
    cli::{Globals, TokenCommand},
    decisions::{self, record},
    failure::{CommandResult, Failure},
    lineage, load, print,
    table::table,
};

const DAY: u64 = 24 * 60 * 60;

/// The name for `/mcp` on the command line.
pub(super) const DEFAULT: &str = "default";

pub(crate) async fn run(globals: &Globals, command: &TokenCommand) -> CommandResult {
    let store = load::required_store()?;
    let tokens = &*store.access_tokens();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    match command {
        TokenCommand::Create { name, expires, namespaces } => {
            // Clients that authenticate are callers of their own, whom rules can allow more.
            lineage::refuse_servers()?;
            check(globals, namespaces)?;
            let order = TokenOrder {
                name: name.clone(),
                expires: expires.map(|days| now + u64::from(days) * DAY),
                namespaces: namespaces.clone(),
            };
            let made = create(tokens, &order, now)?;
            decisions::write(&store, &record("token", true, format!("token {made} made")))?;
        }
        TokenCommand::List { output } => list(tokens, now, output.json)?,
        TokenCommand::Revoke { name } => {
            let RevokedToken { said, remaining } =
                revoke(&store, name, &decisions::caller()).await?;
            said.into_iter().for_each(print::line);
            if let Some(RemainingLogins { why, hint }) = remaining {
                print::note(format!("warning: {why}"));
                print::note(format!("  hint: {hint}"));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What became of a token, and of the logins of its caller.
pub(super) struct RevokedToken {
    /// What was done.
    pub(super) said: Vec<String>,
    /// Why some logins were not ended.
    pub(super) remaining: Option<RemainingLogins>,
}

/// Logins that stay although their caller has no token any more.
pub(super) struct RemainingLogins {
    pub(super) why: String,
    pub(super) hint: String,
}

/// Revokes a token for the person `by`, and the logins of its caller at servers: nobody could use or end them any more.
pub(super) async fn revoke(store: &Store, name: &str, by: &str) -> Result<RevokedToken, Failure> {
    let tokens = &*store.access_tokens();
    let is_it = |record: &TokenRecord| record.name == *name;
    let caller = tokens.list().ok().and_then(|all| all.into_iter().find(is_it));
    tokens.revoke(name).map_err(|error| not_revoked(tokens, name, error))?;
    let revoked = AuditRecord {
        caller: by.to_owned(),
        ..record("token", false, format!("token {name} revoked"))
    };
    decisions::write(store, &revoked)?;
    let mut said = vec![format!("Token {name} is revoked: clients with it are refused.")];
    let Some(caller) = caller.map(|record| record.caller()) else {
        return Ok(RevokedToken { said, remaining: None });
    };
    let logins = store.logins(&load::vault_key());
    let is_callers = |key: &LoginKey| key.caller.as_deref() == Some(&*caller);
    let remaining = match logins::revoke_those(&logins, is_callers, by).await {
        Ok(ended) => {
            said.extend(ended);
            None
        }
        Err(failure) => Some(RemainingLogins {
            why: format!("the logins of the caller `{caller}` stay: {}", failure.first_line()),
            hint: format!("`toolgate logins revoke --caller \"{caller}\"` ends them"),
        }),
    };
    Ok(RevokedToken { said, remaining })
}

/// Refuses unknown namespaces: a token for them would be useless without any message.
fn check(globals: &Globals, namespaces: &[String]) -> Result<(), Failure> {
    let mut named = namespaces.iter().filter(|name| *name != DEFAULT).peekable();
    if named.peek().is_none() {
        return Ok(());
    }
    let loaded = load::load(globals)?;
    named.try_for_each(|name| loaded.check_namespace(name))
}

/// Creates a token and returns its name. Only the token goes to stdout, so that it can be piped.
fn create(tokens: &dyn AccessTokens, order: &TokenOrder, now: u64) -> Result<String, Failure> {
    let (record, token) = tokens.create(order, now)?;
    let until = match record.expires {
        Some(expires) => format!("until {}", utc(expires)),
        None => "until it is revoked".to_owned(),
    };
    let access = match &record.namespaces[..] {
        [] => "everything that is served".to_owned(),
        names => format!("only {}", names.join(", ")),
    };
    print::note(format!(
        "Token {name} gives access to {access}, {until}. It is not shown again; only its hash is stored.\n  \
         hint: clients send it as the header `Authorization: Bearer TOKEN`; `toolgate token revoke \
         {name}` revokes it",
        name = record.name
    ));
    print::line(token.expose());
    Ok(record.name)
}

fn list(tokens: &dyn AccessTokens, now: u64, as_json: bool) -> Result<(), Failure> {
    let records = tokens.list()?;
    let used = |record: &TokenRecord| tokens.last_use(record.hash).map(utc);
    let data = records.iter().map(|record| {
        json!({
            "name": record.name,
            "created": utc(record.created),
            "expires": record.expires.map(utc),
            "expired": !record.is_live(now),
            "lastUsedHour": used(record),
            "namespaces": record.namespaces,
        })
    });
    let data: Vec<_> = data.collect();
    let empty = "there are no tokens; `toolgate token create` makes one";
    print::list(as_json, &data, empty, || overview(&records, now, used))
}

fn overview(
    records: &[TokenRecord],
    now: u64,
    used: impl Fn(&TokenRecord) -> Option<String>,
) -> String {
    let columns = ["name", "opens", "created", "expires", "last used"];
    let rows = records.iter().map(|record| {
        let expires = match record.expires {
            None => "never".to_owned(),
            Some(_) if !record.is_live(now) => "has expired".to_owned(),
            Some(expires) => day(&utc(expires)),
        };
        let opens = match &record.namespaces[..] {
            [] => "everything".to_owned(),
            names => names.join(", "),
        };
        let created = day(&utc(record.created));
        let used = used(record).map_or("never".to_owned(), |used| day(&used));
        vec![record.name.clone(), opens, created, expires, used]
    });
    table(&columns, rows)
}

/// The day of a time.
fn day(utc: &str) -> String {
    utc.chars().take(10).collect()
}

fn not_revoked(tokens: &dyn AccessTokens, name: &str, error: TokenError) -> Failure {
    let is_unknown = matches!(error, TokenError::Unknown(_));
    let known = if is_unknown { tokens.list().unwrap_or_default() } else { Vec::new() };
    Failure::from(error).meaning(name, known.iter().map(|record| record.name.as_str()))
}

impl From<TokenError> for Failure {
    fn from(error: TokenError) -> Self {
        let hint = match error {
            TokenError::Taken(_) => Some("choose another name, or revoke that one first"),
            TokenError::Unknown(_) => Some("`toolgate token list` shows the tokens"),
            TokenError::TooMany => Some("revoke those that nobody uses"),
            TokenError::Unreadable { .. } => Some("remove the file, and create the tokens again"),
            TokenError::Name(_) | TokenError::Random(_) | TokenError::Write(_) => None,
        };
        let failure = match error {
            TokenError::Name(_) | TokenError::Taken(_) | TokenError::Unknown(_) => {
                Self::usage(error.to_string())
            }
            _ => Self::new(error.to_string()),
        };
        failure.hint_if(hint)
    }
}
