//! Who has access: grants, clients and their tokens, and logins at servers.

use std::sync::Arc;

use axum::{
    Extension,
    extract::State,
    response::{IntoResponse, Response},
};
use maud::{Markup, html};
use toolgate_broker::read_grants;
use toolgate_policy::{
    Grant, GrantScope, Presence,
    definitions::{shown, spelled_out},
};
use toolgate_store::{AuditRecord, MAX_LIFETIME_DAYS, TokenOrder, TokenRecord};

use super::{Asked, Shared, done, in_background};
use crate::{
    PageState, ShownLogin, ShownSetup,
    form::Fields,
    guard::PageRequest,
    lately,
    layout::{self, Screen, form_token},
    text::{line, moment, name},
};

/// Why the page changes no files of clients.
const MORE_PRESENCE: &str = "your configuration asks for more than this page; run `toolgate setup`";

pub(crate) async fn show(State(page): Shared, Extension(request): Asked) -> Response {
    screen(page, request, html! {}).await
}

async fn screen(page: Arc<PageState>, request: PageRequest, said: Markup) -> Response {
    let (asked, found) = (request.clone(), page.source.logins().await);
    let content = in_background(&page, move |page| {
        html! { (said) (grants(page, &asked)) (clients(page, &asked)) (tokens(page, &asked)) (logins(page, &asked, &found)) }
    });
    let content = content.await.unwrap_or_default();
    layout::page(&page, &request, Screen::Access, "Access", &content).into_response()
}

/// Revokes a grant or a token, sets up clients, or restores their files.
pub(crate) async fn change(State(page): Shared, Extension(request): Asked) -> Response {
    let (form, by) = (request.form.clone(), page.person(&request));
    match form.get("action") {
        "create-token" => {
            let made = in_background(&page, move |page| create_token(page, &form, &by)).await;
            let said = match made.unwrap_or_else(|| Err("toolgate stops".to_owned())) {
                Ok((name, token)) => new_token(&name, &token),
                Err(why) => {
                    html! { p.notice.bad role="alert" { "No token was made: " (line(&why, 300)) "." } }
                }
            };
            // Not after a redirection: nothing but this response has the token.
            return screen(page, request, said).await;
        }
        "plan-setup" => {
            let planned = if page.source.presence() > Presence::Terminal {
                Err(MORE_PRESENCE.to_owned())
            } else {
                page.source.plan_setup(form.get("differing")).await
            };
            let said = match planned {
                Ok(planned) => setup(&page, &request, &planned),
                Err(why) => {
                    html! { p.notice.bad role="alert" { "Nothing was changed: " (line(&page.clean(&why), 1_000)) "." } }
                }
            };
            return screen(page, request, said).await;
        }
        "revoke-token" => {
            let revoked = page.source.revoke_token(form.get("what"), &by).await;
            let said = revoked.unwrap_or_else(|why| format!("Nothing was changed: {why}."));
            return done(&page, &request, "/ui/access", page.clean(&said));
        }
        "revoke-login" => {
            let revoked = page.source.revoke_login(form.get("what"), form.get("caller"), &by).await;
            let said = revoked.unwrap_or_else(|why| format!("Nothing was changed: {why}."));
            return done(&page, &request, "/ui/access", page.clean(&said));
        }
        _ => {}
    }
    let said = in_background(&page, move |page| act(page, &form, &by)).await;
    let said = said.unwrap_or_else(|| Err("toolgate stops".to_owned()));
    let said = said.unwrap_or_else(|why| format!("Nothing was changed: {}.", page.clean(&why)));
    done(&page, &request, "/ui/access", said)
}

fn act(page: &PageState, form: &Fields, by: &str) -> Result<String, String> {
    let what = form.get("what");
    let record = |kind: &str, rule: String| AuditRecord {
        kind: kind.to_owned(),
        caller: by.to_owned(),
        verdict: "deny".to_owned(),
        rule,
        ..AuditRecord::default()
    };
    let note = |record: &AuditRecord| {
        page.source.store().audit().append(record).map_err(|error| error.to_string())
    };
    match form.get("action") {
        "revoke-grant" => {
            let journal = page.journal().ok_or("there is no journal")?;
            if !journal.revoke(what).map_err(|error| error.to_string())? {
                return Err("there is no such grant".to_owned());
            }
            note(&record("grant", format!("revoked {}", shown(what, 60))))?;
            Ok("The grant is revoked.".to_owned())
        }
        "set-up" | "undo-setup" if page.source.presence() > Presence::Terminal => {
            Err(MORE_PRESENCE.to_owned())
        }
        // What is written is what the person has seen.
        "set-up" => {
            let number = what.parse().map_err(|_| "it is not said which setup".to_owned())?;
            page.source.set_up(number)
        }
        "undo-setup" => page.source.undo_setup(),
        _ => Err("the action is not known".to_owned()),
    }
}

/// Makes a token, as `toolgate token create` does. Returns its name and its secret.
fn create_token(page: &PageState, form: &Fields, by: &str) -> Result<(String, String), String> {
    const DAY: u64 = 24 * 60 * 60;
    let namespaces: Vec<String> = form
        .get("namespaces")
        .split([',', ' '])
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
        .collect();
    namespaces.iter().try_for_each(|name| page.source.check_namespace(name))?;
    let days = form.days()?;
    let now = lately::now() / 1_000;
    let order = TokenOrder {
        name: form.some("name").map(|name| name.trim().to_owned()),
        expires: days.map(|days| now + u64::from(days) * DAY),
        namespaces,
    };
    let store = page.source.store();
    let (record, token) =
        store.access_tokens().create(&order, now).map_err(|error| error.to_string())?;
    let noted = store.audit().append(&AuditRecord {
        kind: "token".to_owned(),
        caller: by.to_owned(),
        verdict: "allow".to_owned(),
        rule: format!("token {} made", record.name),
        ..AuditRecord::default()
    });
    noted.map_err(|error| error.to_string())?;
    Ok((record.name, token.expose().to_owned()))
}

fn new_token(name: &str, token: &str) -> Markup {
    html! {
        div.notice role="status" {
            p { "The token " (line(name, 80)) " is not shown again; only its hash is stored. Clients send it as the header " code { "Authorization: Bearer TOKEN" } "." }
            pre tabindex="0" id="new-token" { (token) }
        }
    }
}

/// A button that does one thing.
fn button(request: &PageRequest, action: &str, what: &str, words: &Markup) -> Markup {
    html! {
        form method="post" action="/ui/access" {
            (form_token(request))
            input type="hidden" name="action" value=(action);
            input type="hidden" name="what" value=(what);
            button { (words) }
        }
    }
}

fn grants(page: &PageState, request: &PageRequest) -> Markup {
    let grants: Vec<Grant> =
        page.journal().and_then(|journal| read_grants(&*journal).ok()).unwrap_or_default();
    html! {
        h2 { "Grants" }
        p.quiet { "What people have allowed for later calls. " code { "toolgate grants revoke ID" } " takes one back." }
        @if grants.is_empty() { p { "There are none." } }
        @else {
            div.scroll tabindex="0" role="region" aria-label="Grants" { table.stack {
                thead { tr { th scope="col" { "Tool" } th scope="col" { "For" } th scope="col" { "Holds" } th scope="col" { "Arguments" } th scope="col" { "By" } th scope="col" { "Id" } th scope="col" { "Action" } } }
                tbody { @for grant in &grants { tr {
                    th scope="row" { (line(&format!("{}/{}", grant.tool.server, grant.tool.tool), 100)) }
                    td data-label="For" { (line(&grant.caller, 80)) }
                    td data-label="Holds" { (line(&holds(grant), 100)) @if let Some(end) = grant.expires_at { ", until " (moment(end.0)) } }
                    td data-label="Arguments" { (line(&page.clean(&grant.arguments.to_string()), 160)) }
                    td data-label="By" { (line(&grant.by, 60)) }
                    td.mono data-label="Id" { (line(&grant.id.0, 60)) }
                    td data-label="Action" { (button(request, "revoke-grant", &grant.id.0, &html! { "Revoke" span.skip { " " (shown(&grant.id.0, 60)) } })) }
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
fn tokens(page: &PageState, request: &PageRequest) -> Markup {
    let tokens = page.source.store().access_tokens();
    let records = tokens.list().unwrap_or_default();
    let now = lately::now() / 1_000;
    let opens = |record: &TokenRecord| match &record.namespaces[..] {
        [] => "everything".to_owned(),
        names => names.join(", "),
    };
    html! {
        h2 { "Tokens of clients" }
        p.quiet { code { "toolgate token create" } " makes one in a terminal, " code { "toolgate token revoke NAME" } " revokes one." }
        details {
            summary { "Make a token" }
            form.panel method="post" action="/ui/access" {
                (form_token(request))
                input type="hidden" name="action" value="create-token";
                p { label { "Name (empty: a random one)" input type="text" name="name" autocomplete="off" spellcheck="false"; } }
                p { label { "Ends after days (empty: it does not)" input type="number" name="days" min="1" max=(MAX_LIFETIME_DAYS); } }
                p { label { "Only these namespaces (empty: everything)" input type="text" name="namespaces" autocomplete="off" spellcheck="false"; } }
                button.main { "Make it" }
            }
        }
        @if records.is_empty() { p { "There are none." } }
        @else {
            div.scroll tabindex="0" role="region" aria-label="Tokens" { table.stack {
                thead { tr { th scope="col" { "Name" } th scope="col" { "Opens" } th scope="col" { "Created (UTC)" } th scope="col" { "Expires" } th scope="col" { "Last used" } th scope="col" { "Action" } } }
                tbody { @for record in &records { tr {
                    th scope="row" { (name(&record.name)) }
                    td data-label="Opens" { (line(&opens(record), 120)) }
                    td.time data-label="Created (UTC)" { (moment(record.created * 1_000)) }
                    td.time data-label="Expires" {
                        @match record.expires {
                            None => "never",
                            Some(_) if !record.is_live(now) => "has expired",
                            Some(end) => { (moment(end * 1_000)) }
                        }
                    }
                    td.time data-label="Last used" { @if let Some(used) = tokens.last_use(record.hash) { (moment(used * 1_000)) } @else { "never" } }
                    td data-label="Action" { (button(request, "revoke-token", &record.name, &html! { "Revoke" span.skip { " " (shown(&record.name, 60)) } })) }
                } } }
            } }
        }
    }
}

fn logins(page: &PageState, request: &PageRequest, logins: &[ShownLogin]) -> Markup {
    html! {
        h2 { "Logins at servers" }
        p.quiet { code { "toolgate login SERVER" } " logs in, " code { "toolgate logout SERVER" } " ends the login that all callers share, " code { "toolgate logins revoke" } " revokes logins of callers." }
        @if logins.is_empty() { p { "There are none." } }
        @else {
            div.scroll tabindex="0" role="region" aria-label="Logins" { table.stack {
                thead { tr { th scope="col" { "Server" } th scope="col" { "Caller" } th scope="col" { "Login" } th scope="col" { "Action" } } }
                tbody { @for login in logins { tr {
                    th scope="row" { (name(&login.server)) }
                    td data-label="Caller" { (line(login.caller.as_deref().unwrap_or("all"), 100)) }
                    td data-label="Login" { (line(&page.clean(&login.state), 300)) }
                    td data-label="Action" {
                        @if let Some(caller) = &login.caller {
                            form method="post" action="/ui/access" {
                                (form_token(request))
                                input type="hidden" name="action" value="revoke-login";
                                input type="hidden" name="what" value=(login.server);
                                input type="hidden" name="caller" value=(caller);
                                button { "Revoke" span.skip { " the login of " (shown(caller, 60)) " at " (shown(&login.server, 60)) } }
                            }
                        }
                    }
                } } }
            } }
        }
    }
}

/// What a setup would change, with its notes and problems, and the button that writes it.
fn setup(page: &PageState, request: &PageRequest, planned: &ShownSetup) -> Markup {
    html! {
        section aria-labelledby="setup" {
            h2 id="setup" { "What a setup would change" }
            pre.whole tabindex="0" { (spelled_out(&page.clean(&planned.text))) }
            @if let Some(number) = planned.number {
                (button(request, "set-up", &number.to_string(), &html! { "Write these changes" }))
            } @else { p { "Everything is set up already: nothing to write." } }
        }
    }
}

fn clients(page: &PageState, request: &PageRequest) -> Markup {
    let Some(found) = page.source.clients() else { return html! {} };
    html! {
        h2 { "Clients" }
        p.quiet { code { "toolgate setup" } " does the same in a terminal." }
        @if found.clients.is_empty() { p { "No client with a configuration file was found." } }
        @else {
            div.scroll tabindex="0" role="region" aria-label="Clients" { table.stack {
                thead { tr { th scope="col" { "Client" } th scope="col" { "File" } th scope="col" { "State" } } }
                tbody { @for (client, file, state) in &found.clients { tr {
                    th scope="row" { (name(client)) } td.mono data-label="File" { (line(file, 200)) } td data-label="State" { (line(&page.clean(state), 200)) }
                } } }
            } }
        }
        @if !found.clients.is_empty() {
            form.row method="post" action="/ui/access" {
                (form_token(request))
                input type="hidden" name="action" value="plan-setup";
                label {
                    "Where two servers are the same but have other values"
                    select name="differing" {
                        @for (value, words) in [("both", "use both"), ("first", "use the first"), ("second", "use the second")] {
                            option value=(value) selected[request.form.get("differing") == value] { (words) }
                        }
                    }
                }
                button { "Show what a setup would change" }
            }
            p.quiet.small { "The servers are started once for it, and nothing is written." }
        }
        @if !found.undoable.is_empty() {
            details {
                summary { "Undo the last setup" }
                ul { @for file in &found.undoable { li { (line(file, 300)) } } }
                (button(request, "undo-setup", "", &html! { "Restore these files" }))
            }
        }
    }
}
