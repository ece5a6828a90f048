//! `run_code` and `resume_run`.

use serde::Deserialize;
use serde_json::Value;
use toolgate_sandbox::{Language, ScriptLanguage};
use toolgate_upstream::CallOptions;

use super::{notes, one_line};
use crate::{
    code::{Resume, UnknownCalls},
    session::{ToolSession, error_result},
};

/// The arguments of `run_code`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunRequest {
    code: String,
    #[serde(default)]
    language: Option<String>,
}

/// The arguments of `resume_run`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ResumeRequest {
    run_id: String,
    #[serde(default)]
    code: Option<String>,
}

const OFF: &str = "Scripts are switched off here (codeMode.enabled); use call_tool.";

pub(super) async fn run(session: &ToolSession, request: RunRequest, options: CallOptions) -> Value {
    let host = session.host();
    let language = match request.language.as_deref().map(|name| host.code().language(name)) {
        None => ScriptLanguage::BuiltIn(Language::TypeScript),
        Some(Some(language)) => language,
        Some(None) => {
            let further = host.code().components();
            let further = further.iter().map(|component| format!(", \"{}\"", component.language));
            let further: String = further.collect();
            let known = format!("`language` is one of \"typescript\", \"python\"{further}.");
            return error_result(&known);
        }
    };
    let Some(run) = session.run_code(&request.code, language, options).await else {
        return error_result(OFF);
    };
    let mut result = run.to_result();
    if run.is_unknown_tool() {
        // An unknown tool may belong to a server that is absent.
        let notes = notes::absent_servers(session, &host.catalog().read());
        if !notes.is_empty()
            && let Some(Value::String(text)) = result.pointer_mut("/content/0/text")
        {
            text.push('\n');
            text.push_str(&notes.join("\n"));
        }
    }
    result
}

/// Resumes a run. A model cannot have calls with an unknown outcome repeated.
pub(super) async fn resume(
    session: &ToolSession,
    request: ResumeRequest,
    options: CallOptions,
) -> Value {
    let ResumeRequest { run_id, code } = request;
    let resume = Resume { code, unknown: UnknownCalls::Report };
    match session.resume_run(&one_line(&run_id, 64), resume, options).await {
        None => error_result(OFF),
        Some(Ok(run)) => run.to_result(),
        Some(Err(error)) => error_result(&error.to_string()),
    }
}
