//! Who has access: grants, tokens of clients, and logins at servers. Commands change them.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::{
    Extension,
    extract::State,
    response::{IntoResponse, Response},
};
use maud::{Markup, html};
use toolgate_broker::read_grants;
use toolgate_policy::{Grant, GrantScope};
use toolgate_store::TokenRecord;

use super::{Asked, Shared, in_background};
use crate::{
    PageState,
    layout::{self, Screen},
    text::{line, moment, name},
};

pub(crate) async fn show(State(page): Shared, Extension(request): Asked) -> Response {
    let content = in_background(&page, |page| {
        html! { (grants(page)) (tokens(page)) (logins(page)) (clients()) }
    });
    let content = content.await.unwrap_or_default();
    layout::page(&page, &request, Screen::Access, "Access", &content).into_response()
}

fn grants(page: &PageState) -> Markup {
    let grants: Vec<Grant> =
        page.journal().and_then(|journal| read_grants(&*journal).ok()).unwrap_or_default();
    html! {
        h2 { "Grants" }
        p.quiet { "What people have allowed for later calls. " code { "toolgate grants revoke ID" } " takes one back." }
        @if grants.is_empty() { p { "There are none." } }
        @else {
            div.scroll tabindex="0" role="region" aria-label="Grants" { table {
                thead { tr { th scope="col" { "Tool" } th scope="col" { "For" } th scope="col" { "Holds" } th scope="col" { "Arguments" } th scope="col" { "By" } th scope="col" { "Id" } } }
                tbody { @for grant in &grants { tr {
                    th scope="row" { (line(&format!("{}/{}", grant.tool.server, grant.tool.tool), 100)) }
                    td { (line(&grant.caller, 80)) }
                    td { (line(&holds(grant), 100)) @if let Some(end) = grant.expires_at { ", until " (moment(end.0)) } }
                    td { (line(&page.clean(&grant.arguments.to_string()), 160)) }
                    td { (line(&grant.by, 60)) }
                    td.mono { (line(&grant.id.0, 60)) }
                } } }
            } }
        }
    }
}

fn holds(grant: &Grant) -> String {
    match &grant.scope {
        GrantScope::Once => "for one call".to_owned(),
        GrantScope::Run(run) => format!("for the run {run}"),
        GrantScope::Session(session) => format!("for the session {session}"),
        GrantScope::Always => "always".to_owned(),
    }
}

/// The tokens of clients. Only their hashes are stored, and not even these are shown.
fn tokens(page: &PageState) -> Markup {
    let tokens = page.source.store().access_tokens();
    let records = tokens.list().unwrap_or_default();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let opens = |record: &TokenRecord| match &record.namespaces[..] {
        [] => "everything".to_owned(),
        names => names.join(", "),
    };
    html! {
        h2 { "Tokens of clients" }
        p.quiet { code { "toolgate token create" } " makes one, " code { "toolgate token revoke NAME" } " revokes one." }
        @if records.is_empty() { p { "There are none." } }
        @else {
            div.scroll tabindex="0" role="region" aria-label="Tokens" { table {
                thead { tr { th scope="col" { "Name" } th scope="col" { "Opens" } th scope="col" { "Created (UTC)" } th scope="col" { "Expires" } th scope="col" { "Last used" } } }
                tbody { @for record in &records { tr {
                    th scope="row" { (name(&record.name)) }
                    td { (line(&opens(record), 120)) }
                    td.time { (moment(record.created * 1_000)) }
                    td.time {
                        @match record.expires {
                            None => "never",
                            Some(_) if !record.is_live(now) => "has expired",
                            Some(end) => { (moment(end * 1_000)) }
                        }
                    }
                    td.time { @if let Some(used) = tokens.last_use(record.hash) { (moment(used * 1_000)) } @else { "never" } }
                } } }
            } }
        }
    }
}

fn logins(page: &PageState) -> Markup {
    let logins = page.source.logins();
    html! {
        h2 { "Logins at servers" }
        p.quiet { code { "toolgate login SERVER" } " logs in, " code { "toolgate logins revoke" } " revokes logins of callers." }
        @if logins.is_empty() { p { "No caller has a login of their own." } }
        @else {
            div.scroll tabindex="0" role="region" aria-label="Logins" { table {
                thead { tr { th scope="col" { "Server" } th scope="col" { "Caller" } th scope="col" { "Login" } } }
                tbody { @for login in &logins { tr {
                    th scope="row" { (name(&login.server)) }
                    td { (line(login.caller.as_deref().unwrap_or("all"), 100)) }
                    td { (line(&page.clean(&login.state), 300)) }
                } } }
            } }
        }
    }
}

fn clients() -> Markup {
    html! {
        h2 { "Clients" }
        p { code { "toolgate setup" } " finds the clients of this machine, shows the change of each of their files, and asks. " code { "toolgate setup --undo" } " restores them." }
    }
}
