//! The rules that hold, and what they say about a call.

use axum::{
    Extension,
    extract::State,
    response::{IntoResponse, Response},
};
use maud::{Markup, html};
use serde_json::Value;
use toolgate_policy::{Flow, RuleOrigin};

use super::{Asked, Shared, servers::state};
use crate::{
    PageState,
    form::Fields,
    layout::{self, Screen},
    text::{block, line},
};

pub(crate) async fn show(State(page): Shared, Extension(request): Asked) -> Response {
    let content = html! {
        p.lead { code { "toolgate policy" } " shows the same in a terminal. The rules are in " code { (line(&page.source.configuration(), 200)) } "." }
        (explain(&page, &request.query))
        (rules(&page))
    };
    layout::page(&page, &request, Screen::Policy, "Policy", &content).into_response()
}

/// A form, and what the policy says about the call that it names.
fn explain(page: &PageState, query: &Fields) -> Markup {
    let (tool, arguments) = (query.get("tool"), query.some("arguments").unwrap_or("{}"));
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

fn rules(page: &PageState) -> Markup {
    let host = page.source.host();
    let settings = host.settings();
    let policy = host.broker().policy();
    let is_own = |origin: &RuleOrigin| !matches!(origin, RuleOrigin::BuiltIn(_));
    let watches = settings.policy.watches_data();
    html! {
        h2 { "Rules" }
        dl.facts {
            dt { "Default" } dd { (settings.policy.mode.to_string()) }
            dt { "Data" } dd { @if watches { "followed from labelled results to arguments" } @else { "not watched, since no tool has labels" } }
        }
        div.scroll tabindex="0" role="region" aria-label="Rules" {
            table {
                thead { tr { th scope="col" { "Decision" } th scope="col" { "Calls" } th scope="col" { "Where it is" } th scope="col" { "Reason" } } }
                tbody {
                    @for rule in policy.all_rules().iter().filter(|rule| watches || is_own(&rule.origin)) {
                        tr {
                            td { (state(&rule.verdict.to_string())) }
                            th scope="row" { (line(&rule.to_string(), 300)) }
                            td { (line(&rule.origin.to_string(), 120)) }
                            td { (line(rule.reason.as_deref().unwrap_or_default(), 200)) }
                        }
                    }
                }
            }
        }
        p.quiet.small { "A rule that denies always wins; otherwise the most specific rule decides." }
    }
}
