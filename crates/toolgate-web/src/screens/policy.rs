//! The rules that hold, and what they say about a call.

use std::sync::Arc;

use axum::{
    Extension,
    extract::State,
    response::{IntoResponse, Response},
};
use maud::{Markup, html};
use serde_json::Value;
use toolgate_host::{ChangedDecision, PolicyWhatIf, WHAT_IF_CALLS};
use toolgate_policy::{Flow, Policy, Presence, RuleOrigin};

use super::{Asked, Shared, done, in_background, servers::state};
use crate::{
    PageState, WrittenPolicy,
    form::{Fields, path_part},
    guard::PageRequest,
    layout::{self, Screen, form_token},
    policy_words::{KnownRules, policy_labels, policy_words},
    text::{block, counted, grouped, json, line, moment, name},
};

pub(crate) async fn show(State(page): Shared, Extension(request): Asked) -> Response {
    let found = in_background(&page, |page| {
        let (mut notes, written) = (page.source.notices(), page.source.written_policy());
        // A policy that is saved for a fleet holds in place of that of the configuration.
        if !written.is_saved {
            notes.extend(page.source.policy_notes());
        }
        (notes, written)
    });
    let (notes, written) = found.await.unwrap_or_default();
    let content = html! {
        @for note in &notes { p.notice { (line(&page.clean(note), 1_000)) } }
        p.lead { code { "toolgate policy" } " shows the same in a terminal. The policy is " (line(&page.clean(&written.origin), 1_000)) "." }
        (explain(&page, &request.query))
        h2 { "Try other rules" }
        p { a.button href="/ui/policy/what-if" { "What would another policy have decided?" } }
        @if written.is_saved { (removal(&request, &written)) }
        (rules(&page))
    };
    layout::page(&page, &request, Screen::Policy, "Policy", &content).into_response()
}

/// The form for another policy.
pub(crate) async fn show_trial(State(page): Shared, Extension(request): Asked) -> Response {
    let written = in_background(&page, |page| page.source.written_policy()).await;
    trial(&page, &request, &page.clean(&written.unwrap_or_default().text), &html! {})
}

/// What another policy would have decided about the last calls. Nothing changes.
pub(crate) async fn try_out(State(page): Shared, Extension(request): Asked) -> Response {
    let text = request.form.get("policy").replace("\r\n", "\n");
    match request.form.get("action") {
        "save" => return save(&page, &request, &text).await,
        "remove" => return remove(&page, &request).await,
        _ => {}
    }
    // First: what is saved afterwards is saved in place of this one.
    let written = in_background(&page, |page| page.source.written_policy()).await;
    let written = written.unwrap_or_default();
    let policy = text.clone();
    let found = in_background(&page, move |page| {
        let tried = page.source.changed_policy(&policy)?;
        let log = page.source.store().audit();
        let found = page.source.host().what_if(&tried.settings, &*log);
        found.map(|found| (found, tried.warnings)).map_err(|error| error.to_string())
    });
    let found = found.await.unwrap_or_else(|| Err("toolgate stops".to_owned()));
    let outcome = match found {
        Ok((found, warnings)) => html! {
            @for warning in &warnings { p.notice role="status" { "Warning: " (line(&page.clean(warning), 1_000)) } }
            (differences(&page, &found))
            (save_form(&page, &request, &text, &written))
        },
        Err(why) => html! { p.notice.bad role="alert" { (line(&page.clean(&why), 1_000)) } },
    };
    trial(&page, &request, &text, &outcome)
}

/// Why the page saves no policy.
const MORE_PRESENCE: &str = "your configuration asks for more than this page";

/// Saves the policy whose effect was shown, if the one before is as it was then.
async fn save(page: &Arc<PageState>, request: &PageRequest, text: &str) -> Response {
    let by = page.person(request);
    let saved = if page.source.presence() > Presence::Terminal {
        Err(MORE_PRESENCE.to_owned())
    } else {
        page.source.save_policy(text, request.form.get("before"), &by).await
    };
    match saved {
        Ok(said) => done(page, request, "/ui/policy", said),
        Err(why) => {
            let why = format!("Nothing was saved: {}.", page.clean(&why));
            trial(page, request, text, &html! { p.notice.bad role="alert" { (line(&why, 1_000)) } })
        }
    }
}

/// Removes the policy that is saved for all nodes.
async fn remove(page: &Arc<PageState>, request: &PageRequest) -> Response {
    let by = page.person(request);
    let removed = if page.source.presence() > Presence::Terminal {
        Err(MORE_PRESENCE.to_owned())
    } else {
        page.source.remove_policy(request.form.get("before"), &by).await
    };
    let said = removed.unwrap_or_else(|why| format!("Nothing was removed: {}.", page.clean(&why)));
    done(page, request, "/ui/policy", said)
}

/// The button that removes the policy that is saved for all nodes.
fn removal(request: &PageRequest, written: &WrittenPolicy) -> Markup {
    html! {
        form.panel method="post" action="/ui/policy/what-if" {
            (form_token(request))
            input type="hidden" name="before" value=(written.digest);
            p { "Without the saved policy, each node uses " code { "policy" } " of its own configuration again." }
            button name="action" value="remove" { "Remove the saved policy" }
        }
    }
}

/// The button that saves what was tried.
fn save_form(
    page: &PageState,
    request: &PageRequest,
    text: &str,
    written: &WrittenPolicy,
) -> Markup {
    // A secret that was removed from the text would be lost where it is written.
    let has_secrets = page.clean(&written.text) != written.text;
    html! {
        h2 { "Keep it" }
        @if has_secrets {
            p.notice { "The policy contains a secret, which the page does not show. Edit the file." }
        } @else {
            form.panel method="post" action="/ui/policy/what-if" {
                (form_token(request))
                input type="hidden" name="policy" value=(text);
                input type="hidden" name="before" value=(written.digest);
                p { (line(&written.consequence, 1_000)) }
                button.main name="action" value="save" { "Save this policy" }
            }
        }
    }
}

fn trial(page: &PageState, request: &PageRequest, text: &str, outcome: &Markup) -> Response {
    let content = html! {
        p { a href="/ui/policy" { "The policy that holds" } }
        p.lead { "The last " (grouped(WHAT_IF_CALLS as u64)) " calls under another policy. " code { "toolgate policy what-if FILE" } " shows the same in a terminal. Nothing is saved before you say so." }
        form.panel method="post" action="/ui/policy/what-if" {
            (form_token(request))
            p { label { "The value of policy, as JSON" textarea.code name="policy" rows="14" spellcheck="false" { "\n" (text) } } }
            button.main { "Try it" }
        }
        (outcome)
    };
    layout::page(page, request, Screen::Policy, "What if", &content).into_response()
}

fn differences(page: &PageState, found: &PolicyWhatIf) -> Markup {
    let differ: usize = found.changes.iter().map(|change| change.count).sum();
    html! {
        section aria-labelledby="differences" {
            h2 id="differences" { "Decisions that differ" }
            p role="status" {
                (counted(differ as u64, "call")) " of the last " (grouped(found.calls as u64)) " would be decided differently. Grants do not count."
            }
            @if found.without_arguments > 0 {
                p.quiet { "The arguments of " (counted(found.without_arguments as u64, "call")) " are not stored, so conditions on arguments may decide otherwise." }
            }
            @if found.unknown_tools > 0 {
                p.quiet { (counted(found.unknown_tools as u64, "call")) " more of tools that are not known now." }
            }
            @if !found.changes.is_empty() {
                div.scroll tabindex="0" role="region" aria-label="Table of decisions that differ" {
                    table.stack {
                        thead { tr {
                            th scope="col" { "Tool" } th scope="col" { "Now" } th scope="col" { "Then" } th.number scope="col" { "Calls" }
                            th scope="col" { "Because" } th scope="col" { "Last calls" }
                        } }
                        tbody { @for change in &found.changes { (difference(page, change)) } }
                    }
                }
            }
        }
    }
}

fn difference(page: &PageState, change: &ChangedDecision) -> Markup {
    let last = change.examples.first().map(|call| call.time).unwrap_or_default();
    html! {
        tr {
            th scope="row" { (name(&change.tool)) }
            td data-label="Now" { (state(&change.before.to_string())) br; span.quiet.small { (line(&page.clean(&change.rule_before), 120)) } }
            td data-label="Then" { (state(&change.after.to_string())) }
            td.number data-label="Calls" { (grouped(change.count as u64)) }
            td.small data-label="Because" { (line(&page.clean(&change.rule_after), 200)) }
            td data-label="Last calls" {
                details {
                    summary { (moment(last)) }
                    @for call in &change.examples {
                        p.small {
                            (moment(call.time)) " " (line(&call.caller, 80))
                            @if let Some(run) = &call.run { ", " a href=(format!("/ui/runs/{}", path_part(run))) { (line(run, 40)) } }
                        }
                        @if let Some(arguments) = &call.arguments { (json(&page.clean(&arguments.to_string()))) }
                    }
                }
            }
        }
    }
}

/// A form, and what the policy says about the call that it names.
fn explain(page: &PageState, query: &Fields) -> Markup {
    let (tool, arguments) = (query.get("tool").trim(), query.some("arguments").unwrap_or("{}"));
    html! {
        h2 { "Explain a call" }
        form.panel method="get" action="/ui/policy" {
            p { label { "Tool" input type="text" name="tool" value=(tool) required autocomplete="off" spellcheck="false"; } }
            p { label { "Arguments, as JSON" textarea name="arguments" rows="3" spellcheck="false" { (arguments) } } }
            button.main { "Explain" }
        }
        @if !tool.is_empty() {
            @match explained(page, tool, arguments) {
                Ok(text) => { (block(&page.clean(&text))) }
                Err(why) => { p.notice.bad { (line(&why, 500)) } }
            }
        }
    }
}

fn explained(page: &PageState, name: &str, arguments: &str) -> Result<String, String> {
    let arguments: Value = serde_json::from_str(arguments)
        .map_err(|error| format!("The arguments are not JSON: {error}."))?;
    if !arguments.is_object() {
        return Err(
            "The arguments are JSON, but no object, as {\"path\": \"notes.txt\"} is.".to_owned()
        );
    }
    let host = page.source.host();
    let tool = host.catalog().read().resolve(name).cloned();
    let policy = if let Some(tool) = tool {
        (*host.broker().policy_of(&tool)).clone()
    } else {
        let hidden = host.hidden_tools().into_iter().find(|tool| tool.name == name);
        let hidden = hidden.ok_or_else(|| "There is no tool of this name.".to_owned())?;
        host.broker().policy().of(&hidden.tool())
    };
    Ok(policy.explain(&arguments, &Flow::NONE).to_string())
}

/// Which rules are about known tools. It is found again when the tools or the policy have changed.
fn known_rules(page: &PageState, policy: &Policy) -> Arc<KnownRules> {
    let host = page.source.host();
    let changes = *host.changes().borrow();
    let mut last = page.known_rules.lock();
    match &*last {
        Some((at, known)) if *at == changes && known.is_of(policy) => Arc::clone(known),
        _ => {
            let known = Arc::new(KnownRules::of(&host, policy));
            *last = Some((changes, Arc::clone(&known)));
            known
        }
    }
}

fn rules(page: &PageState) -> Markup {
    let host = page.source.host();
    let settings = host.settings();
    let policy = host.broker().policy();
    let is_own = |origin: &RuleOrigin| !matches!(origin, RuleOrigin::BuiltIn(_));
    let watches = settings.policy.watches_data();
    let known = known_rules(page, &policy);
    html! {
        h2 { "Rules" }
        dl.facts {
            @for (what, value) in policy_words(&settings.policy) { dt { (what) } dd { (line(&value, 1_000)) } }
            dt { "data" } dd { @if watches { "followed from labelled results to arguments" } @else { "not watched, since no tool has labels" } }
        }
        div.scroll tabindex="0" role="region" aria-label="Rules" {
            table.stack {
                thead { tr { th scope="col" { "Decision" } th scope="col" { "Calls" } th scope="col" { "Where it is" } th scope="col" { "Reason" } } }
                tbody {
                    @for rule in policy.all_rules().iter().filter(|rule| watches || is_own(&rule.origin)) {
                        tr {
                            td data-label="Decision" { (state(&rule.verdict.to_string())) }
                            th scope="row" { (line(&rule.to_string(), 300)) @if known.matches(rule) == Some(false) { br; span.warn.small { "matches no tool that is known" } } }
                            td data-label="Where it is" { (line(&rule.origin.to_string(), 120)) }
                            td data-label="Reason" { (line(rule.reason.as_deref().unwrap_or_default(), 200)) }
                        }
                    }
                }
            }
        }
        p.quiet.small { "A rule that denies always wins; otherwise the most specific rule decides." }
        @let labels = policy_labels(&settings.policy);
        h2 { "Labels" }
        @if labels.is_empty() { p { "No server and no tool has labels." } }
        @else {
            div.scroll tabindex="0" role="region" aria-label="Labels" {
                table.stack {
                    thead { tr { th scope="col" { "Of" } th scope="col" { "Labels" } } }
                    tbody { @for (target, labels) in &labels {
                        tr { th scope="row" { (line(&target.to_string(), 300)) } td data-label="Labels" { (labels.to_string()) } }
                    } }
                }
            }
        }
    }
}
