//! `load_skill`.

use std::fmt::Write;

use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_catalog::nearest;
use toolgate_upstream::CallOptions;

use super::{
    one_line, result,
    servers::{EnableReport, enable_report},
};
use crate::session::{CallFailure, Session, error_result};

/// The arguments of `load_skill`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SkillRequest {
    name: String,
}

/// How much of a skill's text is shown at once.
const BODY_BYTES: usize = 24_000;

/// Gives the text of a skill, and connects what it declares. A server that cannot be connected is
/// told of; the text comes all the same.
pub(super) async fn load(
    session: &Session,
    request: &SkillRequest,
    options: &CallOptions,
) -> Result<Value, CallFailure> {
    let host = session.host();
    let skills = &host.settings().directory.skills;
    let Some(skill) = skills.named(&request.name) else {
        let names = skills.skills.iter().map(|skill| skill.name.as_str());
        let nearest = nearest(&request.name, names, 3);
        let hint = if nearest.is_empty() {
            "search_available_servers finds those there are.".to_owned()
        } else {
            format!("Nearest: {}.", nearest.join(", "))
        };
        let shown = one_line(&request.name, 64);
        return Ok(error_result(&format!("There is no skill `{shown}`. {hint}")));
    };
    let mut remarks = Vec::new();
    for server in &skill.servers {
        let enabled = host.enable(server, session.context().caller(), options).await;
        match enable_report(host, server, enabled) {
            EnableReport::Text { text, .. } | EnableReport::Problem(text) => remarks.push(text),
            EnableReport::Cancelled => return Err(CallFailure::Cancelled),
        }
    }
    let shown = &skill.body[..skill.body.floor_char_boundary(BODY_BYTES)];
    let mut text = format!("Skill {}\n\n{shown}", skill.name);
    if shown.len() < skill.body.len() {
        let id = session.host().code().outputs(session.context()).store(&skill.body);
        let (next, total) = (shown.len(), skill.body.len());
        let _ = write!(
            text,
            "\n[{total} bytes in all; the rest: read_output with id: {id}, offset: {next}]"
        );
    }
    for remark in &remarks {
        let _ = write!(text, "\n\n{remark}");
    }
    let data = json!({ "skill": skill.name, "servers": skill.servers, "remarks": remarks });
    Ok(result(&text, &data))
}
