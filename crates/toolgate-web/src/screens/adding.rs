//! Adds a server: by hand, or from a registry after the person has seen what it runs or contacts.

use axum::{
    Extension,
    extract::State,
    response::{IntoResponse, Response},
};
use maud::{Markup, html};
use toolgate_policy::Presence;

use super::{Asked, Shared, done};
use crate::{
    ListedServers, NewServer, PageState, ShownPlan,
    form::{Fields, path_part},
    guard::PageRequest,
    layout::{self, Screen, form_token},
    text::line,
};

const PATH: &str = "/ui/servers-add";

pub(crate) async fn show(State(page): Shared, Extension(request): Asked) -> Response {
    let wanted = request.query.get("registry").trim();
    let found = if !wanted.is_empty() {
        let plan = page.source.registry_plan(wanted).await;
        plan.map(|plan| consent(&page, &request, wanted, &plan))
    } else if request.query.has("words") {
        let listed = page.source.registry_servers(request.query.get("words").trim()).await;
        listed.map(|listed| servers_of_registry(&page, &listed))
    } else {
        Ok(html! {})
    };
    let found = found.unwrap_or_else(|why| {
        html! { p.notice.bad role="alert" { (line(&page.clean(&why), 500)) } }
    });
    screen(&page, &request, &found)
}

/// Adds the server of the form. The guard has made sure that a person does.
pub(crate) async fn add(State(page): Shared, Extension(request): Asked) -> Response {
    // A server that is added is a program that is run.
    if page.source.presence() > Presence::Terminal {
        let why = "Your configuration asks for more than this page: `toolgate add` adds a server.";
        return done(&page, &request, PATH, why.to_owned());
    }
    let added = match server(&request.form) {
        Ok((name, server)) => page.source.add_server(server).await.map(|said| (name, said)),
        Err(why) => Err(why),
    };
    match added {
        Ok((name, said)) => {
            // A server of a registry gets a shorter name, and one in the file of a folder waits for trust. The list has both.
            let is_there = page.source.host().catalog().read().server(&name).is_some();
            let path = match request.form.get("kind") {
                "registry" => "/ui/servers".to_owned(),
                _ if !is_there => "/ui/servers".to_owned(),
                _ => format!("/ui/servers/{}", path_part(&name)),
            };
            done(&page, &request, &path, said)
        }
        Err(why) => {
            // The form has what was typed, so that it can be corrected.
            let why = format!("Nothing was added: {}.", page.clean(&why));
            screen(&page, &request, &html! { p.notice.bad role="alert" { (line(&why, 1_000)) } })
        }
    }
}

/// The server of a form, and its name.
fn server(form: &Fields) -> Result<(String, NewServer), String> {
    let text = |field: &str| form.get(field).trim().to_owned();
    let lines = |field: &str| -> Vec<String> {
        form.get(field)
            .lines()
            .map(str::trim)
            .filter(|it| !it.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let name = text("name");
    if name.is_empty() {
        return Err("the server has no name".to_owned());
    }
    let server = match form.get("kind") {
        "program" => {
            let words = lines("words");
            if words.is_empty() {
                return Err("it is not said what to run".to_owned());
            }
            NewServer::Program { name: name.clone(), words, env: lines("env") }
        }
        "url" => NewServer::Url { name: name.clone(), url: text("url"), headers: lines("headers") },
        "registry" => {
            NewServer::FromRegistry { name: name.clone(), fingerprint: text("fingerprint") }
        }
        _ => return Err("it is not said what to add".to_owned()),
    };
    Ok((name, server))
}

/// Servers of the registry, to look at.
fn servers_of_registry(page: &PageState, listed: &ListedServers) -> Markup {
    html! {
        @for note in &listed.notes { p.notice { (line(&page.clean(note), 500)) } }
        @if listed.servers.is_empty() {
            p.notice { "No server of the registry has these words." }
        } @else {
            p.quiet { (listed.servers.len()) " of " (listed.total) }
            div.scroll tabindex="0" role="region" aria-label="Servers of the registry" {
                table.stack {
                    thead { tr { th scope="col" { "Server" } th scope="col" { "Version" } th scope="col" { "What it says of itself" } } }
                    tbody {
                        @for server in &listed.servers {
                            tr {
                                th scope="row" { a href=(format!("{PATH}?registry={}", path_part(&server.name))) { (line(&server.name, 200)) } }
                                td data-label="Version" { (line(&server.version, 50)) }
                                td data-label="What it says of itself" { (line(&server.description, 300)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What a server of the registry would do, and the question.
fn consent(page: &PageState, request: &PageRequest, name: &str, plan: &ShownPlan) -> Markup {
    html! {
        article.panel.question {
            h2 { (line(name, 200)) }
            pre.whole { (toolgate_policy::definitions::spelled_out(&page.clean(plan.text.trim_end()))) }
            form.row method="post" action=(PATH) {
                (form_token(request))
                input type="hidden" name="kind" value="registry";
                input type="hidden" name="name" value=(name);
                input type="hidden" name="fingerprint" value=(plan.fingerprint);
                button.main { "Allow, and add it" }
            }
        }
    }
}

fn screen(page: &PageState, request: &PageRequest, found: &Markup) -> Response {
    let typed = |kind: &str, field: &str| {
        if request.form.get("kind") == kind { request.form.get(field) } else { "" }
    };
    let content = html! {
        p { a href="/ui/servers" { "All servers" } }
        p.lead { code { "toolgate list --registry" } " and " code { "toolgate add" } " do the same in a terminal. It is written to " code { (line(&page.source.configuration(), 200)) } "; secrets go into the vault." }
        h2 { "From a registry" }
        form.row method="get" action=(PATH) role="search" {
            label.wide { "Words of the name or the description; none for all" input type="text" name="words" value=(request.query.get("words")) autocomplete="off" spellcheck="false"; }
            button { "Look for it" }
        }
        (found)
        h2 { "A program" }
        form.panel method="post" action=(PATH) {
            (form_token(request))
            input type="hidden" name="kind" value="program";
            p { label { "Name" input type="text" name="name" value=(typed("program", "name")) required autocomplete="off"; } }
            p { label { "Program and arguments, one a line" textarea name="words" rows="4" required spellcheck="false" { "\n" (typed("program", "words")) } } }
            p { label { "Variables, one a line: NAME=VALUE" textarea name="env" rows="2" spellcheck="false" { "\n" (typed("program", "env")) } } }
            p.quiet { "toolgate runs this program with your rights when it connects." }
            button.main { "Allow, and add it" }
        }
        h2 { "A URL" }
        form.panel method="post" action=(PATH) {
            (form_token(request))
            input type="hidden" name="kind" value="url";
            p { label { "Name" input type="text" name="name" value=(typed("url", "name")) required autocomplete="off"; } }
            p { label { "URL" input type="url" name="url" value=(typed("url", "url")) required autocomplete="off"; } }
            p { label { "Headers, one a line: NAME: VALUE" textarea name="headers" rows="2" spellcheck="false" { "\n" (typed("url", "headers")) } } }
            button.main { "Allow, and add it" }
        }
    };
    layout::page(page, request, Screen::Servers, "Add a server", &content).into_response()
}
