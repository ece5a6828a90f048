//! The playground: a script, what the check says of it while it is written, and its run.

use axum::{
    Extension, Json,
    extract::State,
    response::{Html, IntoResponse, Response},
};
use maud::{Markup, html};
use toolgate_host::{CheckedScript, CodeCompletions};
use toolgate_policy::definitions::shown;
use toolgate_sandbox::{CheckFinding, CheckSeverity, Language};

use super::{Asked, Shared, done, in_background, runs};
use crate::{
    PageState,
    assets::EDITOR,
    form::{Fields, path_part, query},
    guard::PageRequest,
    layout::{self, Screen, form_token},
    running::{self, PageRun},
    text::{counted, line},
};

const PATH: &str = "/ui/playground";
/// What stands in the editor at first.
const TYPESCRIPT: &str = "// Every tool is a function. Ctrl+Space completes names and arguments.\n";
const PYTHON: &str = "# Every tool is a function. Ctrl+Space completes names and arguments.\n";

pub(crate) async fn show(State(page): Shared, Extension(request): Asked) -> Response {
    let (language, run) = (request.query.get("language"), request.query.get("run").to_owned());
    if run.is_empty() {
        let is_python = language == "python";
        let (language, code) =
            if is_python { (Language::Python, PYTHON) } else { (Language::TypeScript, TYPESCRIPT) };
        return shown_with(&page, &request, (code, language), None, &html! {});
    }
    let (id, asked) = (run.clone(), request.clone());
    let found = in_background(&page, move |page| {
        let detail = page.journal()?.run(&id).ok()??;
        let part = runs::part(page, &asked, &detail);
        Some((page.clean(&detail.code), detail.summary.language, part))
    });
    let Some((code, language, part)) = found.await.flatten() else {
        return done(&page, &request, PATH, "There is no such run.".to_owned());
    };
    let language = if language == "python" { Language::Python } else { Language::TypeScript };
    let stream = format!("/ui/runs/{}/live", path_part(&run));
    let below = html! {
        section aria-labelledby="the-run" {
            h2 id="the-run" { "Run " a href=(format!("/ui/runs/{}", path_part(&run))) { (line(&run, 60)) } }
            (layout::live(&page, &request, "run", &stream, &part))
        }
    };
    shown_with(&page, &request, (&code, language), None, &below)
}

/// Checks or runs the script of the form.
pub(crate) async fn act(State(page): Shared, Extension(request): Asked) -> Response {
    let (code, language) = script(&request.form);
    if request.form.get("action") == "check" {
        let checked = check(&page, &code, language).await;
        return shown_with(&page, &request, (&code, language), Some(&checked), &html! {});
    }
    match running::begin(&page, PageRun::Script(code.clone(), language)).await {
        Ok(id) => {
            done(&page, &request, &format!("{PATH}?{}", query(&[("run", &id)])), String::new())
        }
        Err(why) => {
            let why = html! { p.notice.bad role="alert" { "The script was not run: " (line(&page.clean(&why), 1_000)) } };
            shown_with(&page, &request, (&code, language), None, &why)
        }
    }
}

/// What the check says, while somebody types.
pub(crate) async fn findings(State(page): Shared, Extension(request): Asked) -> Html<String> {
    let (code, language) = script(&request.form);
    let checked = check(&page, &code, language).await;
    Html(findings_list(&page, &checked).into_string())
}

/// What can stand where somebody types. All texts are shown as text.
pub(crate) async fn complete(
    State(page): Shared,
    Extension(request): Asked,
) -> Json<CodeCompletions> {
    let (_, language) = script(&request.form);
    let before = request.form.get("before").replace("\r\n", "\n");
    let mut found = running::session(&page).completions(&before, language);
    for item in &mut found.items {
        item.about = shown(&page.clean(&item.about), 140);
        item.name = shown(&item.name, 80);
    }
    Json(found)
}

/// The script of a form. Browsers send lines as networks do.
fn script(form: &Fields) -> (String, Language) {
    let language = match form.get("language") {
        "python" => Language::Python,
        _ => Language::TypeScript,
    };
    (form.get("code").replace("\r\n", "\n"), language)
}

async fn check(page: &PageState, code: &str, language: Language) -> CheckedScript {
    let stop = page.streams.stop.child_token();
    let checked = running::session(page).check_code(code, language, stop).await;
    checked.unwrap_or_else(|| CheckedScript {
        findings: Vec::new(),
        problem: Some("Scripts are switched off: codeMode.enabled is false.".to_owned()),
    })
}

fn shown_with(
    page: &PageState,
    request: &PageRequest,
    (code, language): (&str, Language),
    checked: Option<&CheckedScript>,
    below: &Markup,
) -> Response {
    let is = |other: Language| language == other;
    // What somebody has typed before is put in the place of a script that nobody has sent just now.
    let is_fresh = !request.form.has("code");
    let content = html! {
        p.lead { "A script as a model writes it; the policy decides on its calls. " code { "toolgate run --check FILE" } " and " code { "toolgate run FILE" } " do the same in a terminal." }
        form.panel method="post" action=(PATH) {
            (form_token(request))
            fieldset.bare {
                legend { "Language" }
                label.check { input type="radio" name="language" value="typescript" checked[is(Language::TypeScript)]; "TypeScript" }
                label.check { input type="radio" name="language" value="python" checked[is(Language::Python)]; "Python" }
            }
            label {
                "Script"
                textarea.code id="code" name="code" data-fresh=[is_fresh.then_some("")] rows="16" spellcheck="false" autocomplete="off" autocapitalize="off"
                    aria-describedby="findings" aria-autocomplete="list" aria-controls="completions"
                    hx-nonce=(request.nonce) hx-post="/ui/playground/findings" hx-include="closest form" hx-target="#findings"
                    hx-trigger="input changed delay:400ms, change from:input[name=language]" { "\n" (code) }
            }
            ul.completions id="completions" role="listbox" aria-label="Completions" hidden {}
            p.skip id="completions-count" role="status" {}
            div id="findings" aria-live="polite" {
                @if let Some(checked) = checked { (findings_list(page, checked)) }
            }
            div.row {
                button.main id="run-script" name="action" value="run" { "Run" }
                button name="action" value="check" { "Check" }
            }
        }
        (below)
    };
    layout::page_with(page, request, Screen::Playground, "Playground", &content, &[&EDITOR])
        .into_response()
}

fn findings_list(page: &PageState, checked: &CheckedScript) -> Markup {
    if let Some(problem) = &checked.problem {
        return html! { p.bad { (line(&page.clean(problem), 500)) } };
    }
    let count = checked.findings.len() as u64;
    html! {
        @if count == 0 { p.quiet { "The check found nothing wrong." } }
        @else {
            p { (counted(count, "finding")) @if checked.can_run() { "; the script can run." } @else { "; the script would not run." } }
            ol.findings { @for finding in &checked.findings { li { (finding_row(page, finding)) } } }
        }
    }
}

fn finding_row(page: &PageState, finding: &CheckFinding) -> Markup {
    let is_error = finding.severity == CheckSeverity::Error;
    let caret = format!("{:1$}^", "", finding.caret.min(500) as usize);
    html! {
        button.link type="button" data-line=(finding.line) data-column=(finding.column) { "Line " (finding.line) ", column " (finding.column) }
        " " span class=(if is_error { "bad" } else { "warn" }) { @if is_error { "error" } @else { "warning" } } ": "
        (line(&page.clean(&finding.message), 1_000))
        @if !finding.source_line.trim().is_empty() {
            pre tabindex="0" { (toolgate_policy::definitions::spelled_out(&page.clean(&finding.source_line))) "\n" (caret) }
        }
        @if let Some(hint) = &finding.hint { p.quiet { (line(&page.clean(hint), 1_000)) } }
    }
}
