//! The calls that wait for a person, and the answers.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension,
    extract::{Path, State},
    response::{IntoResponse, Response},
};
use maud::{Markup, html};
use toolgate_broker::{GrantDuration, GrantExtent, PersonAnswer, QueuedCall};
use toolgate_policy::{
    ArgumentConditions, OPERATORS, Presence,
    definitions::{shown, spelled_out},
};
use toolgate_store::MAX_LIFETIME_DAYS;

use super::{Asked, Shared, done, in_background};
use crate::{
    PageState,
    form::Fields,
    guard::PageRequest,
    layout::{self, Screen, form_token},
    live,
    text::{block, counted, json, line, moment, name},
};

const PATH: &str = "/ui/approvals";

pub(crate) async fn show(State(page): Shared, Extension(request): Asked) -> Response {
    let token = request.clone();
    let list = in_background(&page, move |page| list(page, &token)).await.unwrap_or_default();
    let content = html! {
        p.lead { "Calls that wait for a person. " code { "toolgate approve" } " shows the same in a terminal." }
        (layout::live(&page, &request, "questions", "/ui/approvals/live", &list))
    };
    layout::page(&page, &request, Screen::Approvals, "Approvals", &content).into_response()
}

pub(crate) async fn live(State(page): Shared, Extension(request): Asked) -> Response {
    let asked = request.clone();
    live::stream(&page, &request, move |page| list(page, &asked))
}

/// The number beside the name of the screen, on all screens.
pub(crate) async fn live_count(State(page): Shared, Extension(request): Asked) -> Response {
    live::stream(&page, &request, |_| html! {})
}

/// One question by its name, for links of other screens.
pub(crate) async fn show_one(
    State(page): Shared,
    Extension(request): Asked,
    Path(reference): Path<String>,
) -> Response {
    one(&page, &request, &reference, html! {}).await
}

/// A question with what its form has, so that nothing has to be typed again.
async fn one(
    page: &Arc<PageState>,
    request: &PageRequest,
    reference: &str,
    said: Markup,
) -> Response {
    let waiting = in_background(page, PageState::waiting).await.unwrap_or_default();
    let found = waiting.iter().find(|call| call.approval.reference().as_str() == reference);
    let content = html! {
        p { a href=(PATH) { "All questions" } }
        (said)
        @if let Some(call) = found { (question(page, request, call)) }
        @else { p.notice { "This question is answered, or there was none." } }
    };
    layout::page(page, request, Screen::Approvals, "Approval", &content).into_response()
}

/// Answers a question. The guard has made sure that a person does.
pub(crate) async fn answer(
    State(page): Shared,
    Extension(request): Asked,
    Path(reference): Path<String>,
) -> Response {
    let form = request.form.clone();
    let by = page.person(&request);
    let asked = reference.clone();
    let said = in_background(&page, move |page| decide(page, &asked, &form, &by)).await;
    match said.unwrap_or_else(|| Err("toolgate stops; nothing was decided".to_owned())) {
        Ok(said) => done(&page, &request, PATH, said),
        Err(why) => {
            let why = format!("Nothing was decided: {why}.");
            let said = html! { p.notice.bad role="alert" { (line(&why, 1_000)) } };
            one(&page, &request, &reference, said).await
        }
    }
}

fn decide(page: &PageState, reference: &str, form: &Fields, by: &str) -> Result<String, String> {
    let journal = page.journal().ok_or("there is no journal")?;
    let found = QueuedCall::find_named(&*journal, reference).map_err(|error| error.to_string())?;
    let call = found.ok_or_else(|| format!("{} waits no longer", shown(reference, 40)))?;
    let answer = match form.get("answer") {
        "deny" => PersonAnswer::Deny,
        _ if presence(page, &call) > Presence::Terminal => {
            return Err(
                "your configuration asks for more than this page to allow a call".to_owned()
            );
        }
        "once" => PersonAnswer::ONCE,
        "more" => PersonAnswer::Allow { lasts: lasts(form)?, extent: extent(&call, form)? },
        _ => return Err("the answer is not clear".to_owned()),
    };
    let days = form.days()?;
    let expires = days.map(|days| Duration::from_hours(24 * u64::from(days)));
    call.answer(&page.source.store(), &*journal, &answer, by, expires)
        .map_err(|error| error.to_string())
}

fn lasts(form: &Fields) -> Result<GrantDuration, String> {
    match form.get("lasts") {
        "run" => Ok(GrantDuration::Run),
        "session" => Ok(GrantDuration::Session),
        "always" => Ok(GrantDuration::Always),
        _ => Err("it is not said for how long".to_owned()),
    }
}

fn extent(call: &QueuedCall, form: &Fields) -> Result<GrantExtent, String> {
    // A grant without the conditions that somebody has typed would allow more than they meant.
    if !form.get("where").trim().is_empty() && form.get("extent") != "where" {
        return Err(
            "there are conditions, but the choice is not \"only where this holds\"".to_owned()
        );
    }
    let extent = match form.get("extent") {
        "these" => GrantExtent::These,
        "any" => GrantExtent::Any,
        "where" => {
            let conditions = ArgumentConditions::from_line(form.get("where"));
            GrantExtent::Where(conditions.map_err(|error| error.to_string())?)
        }
        _ => return Err("it is not said with which arguments".to_owned()),
    };
    if call.request.is_covered_by(&extent) == Some(false) {
        return Err("the call that waits does not meet this condition".to_owned());
    }
    Ok(extent)
}

/// How a person has to show that they are there to allow this call.
fn presence(page: &PageState, call: &QueuedCall) -> Presence {
    call.request.presence.max(page.source.presence())
}

fn list(page: &PageState, request: &PageRequest) -> Markup {
    let calls = page.waiting();
    let choices = page.source.choices().and_then(|choices| choices.read().ok());
    let servers = choices.map(|choices| choices.requests).unwrap_or_default();
    html! {
        p role="status" {
            @if calls.is_empty() { "No call waits for a decision." }
            @else { (counted(calls.len() as u64, "call")) " waiting for a decision." }
        }
        @for call in &calls { (question(page, request, call)) }
        @if !servers.is_empty() {
            h2 { "Servers of registries" }
            p { "These are approved in a terminal: " code { "toolgate approve" } "." }
            @for server in servers.values() {
                article.panel {
                    h3 { (name(&server.server)) }
                    (block(&page.clean(server.shown.trim_end())))
                }
            }
        }
    }
}

/// A question, exactly as a terminal shows it, and the ways to answer.
fn question(page: &PageState, request: &PageRequest, call: &QueuedCall) -> Markup {
    let asked = &call.request;
    let reference = call.approval.reference();
    let heading = format!("call-{reference}");
    html! {
        article.panel.question id=(reference) aria-labelledby=(heading) {
            h2 id=(heading) { (name(&asked.name)) }
            p.quiet.small {
                "asked " (moment(call.approval.created)) " by " (line(&asked.caller, 120))
                @if let Some(run) = &asked.run {
                    ", in the run " a href=(format!("/ui/runs/{}", crate::form::path_part(run))) { (line(run, 60)) }
                }
            }
            // All of it, however long: what is decided on is seen. The broker has bounded it.
            pre.whole { (spelled_out(&page.clean(&asked.to_string()))) }
            @if let Some(all) = &asked.all_arguments {
                h3 { "All of its arguments" }
                (json(&page.clean(all)))
            }
            @if let Some(all) = &asked.all_meta {
                h3 { "All of its _meta" }
                (json(&page.clean(all)))
            }
            @if !asked.origins.is_empty() {
                p { "It carries data with the labels " strong { (asked.labels.to_string()) } ", which came from" }
                ul {
                    @for tool in &asked.origins {
                        li { (line(&format!("{} of the server {}", tool.tool, tool.server), 200)) " → " (name(&asked.name)) }
                    }
                }
            }
            (answers(page, request, call))
        }
    }
}

fn answers(page: &PageState, request: &PageRequest, call: &QueuedCall) -> Markup {
    let asked = &call.request;
    let action = format!("{PATH}/{}", call.approval.reference());
    let name = &asked.name;
    let can_allow = presence(page, call) <= Presence::Terminal;
    html! {
        form.row method="post" action=(action) {
            (form_token(request))
            @if can_allow {
                button.main name="answer" value="once" { "Allow once" span.skip { " " (shown(name, 80)) } }
            }
            button.no name="answer" value="deny" { "Deny" span.skip { " " (shown(name, 80)) } }
        }
        @if can_allow {
            details open[request.form.get("answer") == "more"] {
                summary { "Allow later calls too…" }
                form method="post" action=(action) { (form_token(request)) (more(call, &request.form)) }
            }
        } @else {
            p.notice {
                "Your configuration asks for more than this page to allow a call. Run "
                code { "toolgate approve" } " in a terminal."
            }
        }
    }
}

/// The choices of a grant that holds for more than one call, as they were made before.
fn more(call: &QueuedCall, made: &Fields) -> Markup {
    let asked = &call.request;
    let who = shown(&asked.identity, 128);
    let lasts: Vec<GrantDuration> =
        asked.choices().filter(|lasts| *lasts != GrantDuration::Once).collect();
    let words = |lasts: GrantDuration| match lasts {
        GrantDuration::Once => String::new(),
        GrantDuration::Run => "until this run ends".to_owned(),
        GrantDuration::Session => "until this session ends".to_owned(),
        GrantDuration::Always => format!("always, for {who}"),
    };
    let first = lasts.first().map_or("", |lasts| lasts.as_str());
    let (lasting, extent) =
        (made.some("lasts").unwrap_or(first), made.some("extent").unwrap_or("these"));
    html! {
        fieldset {
            legend { "For how long" }
            @for lasts in lasts {
                label.check {
                    input type="radio" name="lasts" value=(lasts.as_str()) checked[lasting == lasts.as_str()];
                    (words(lasts))
                }
            }
            label { "Ends after days (empty: it does not)" input type="number" name="days" min="1" max=(MAX_LIFETIME_DAYS) value=(made.get("days")); }
        }
        fieldset {
            legend { "With which arguments" }
            @for (value, words) in [("these", "exactly these arguments"), ("any", "any arguments"), ("where", "only where this holds")] {
                label.check { input type="radio" name="extent" value=(value) checked[extent == value]; (words) }
            }
            label {
                "Conditions, such as path=src/*, with ; between them; the operators are " (OPERATORS.join(", "))
                input type="text" name="where" value=(made.get("where")) autocomplete="off" spellcheck="false";
            }
        }
        button.main name="answer" value="more" { "Allow these calls" }
    }
}
