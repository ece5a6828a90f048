//! Calls that wait for a person.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_broker::{ApprovalRequest, GrantDuration, PersonAnswer, now, write_grant};
use toolgate_policy::{Grant, GrantedArguments, definitions::shown};
use toolgate_store::{ApprovalState, AuditRecord, Journal, Store, StoredApproval, utc};

use crate::{decisions, failure::Failure};

/// A call that waits.
pub(crate) struct WaitingCall {
    /// Its row in the journal.
    pub(crate) approval: StoredApproval,
    /// The question.
    pub(crate) request: ApprovalRequest,
}

/// The calls that wait, oldest first.
pub(crate) fn waiting(journal: &dyn Journal) -> Result<Vec<WaitingCall>, Failure> {
    let open = journal.open_approvals()?;
    Ok(open.into_iter().filter_map(read).collect())
}

/// A call by its whole id.
pub(crate) fn find(journal: &dyn Journal, id: &str) -> Result<Option<WaitingCall>, Failure> {
    let found = journal.approval(id)?;
    Ok(found.and_then(read).filter(|call| call.approval.state == ApprovalState::Open))
}

/// A call by the name of its question, as agents know it.
pub(crate) fn find_named(
    journal: &dyn Journal,
    name: &str,
) -> Result<Option<WaitingCall>, Failure> {
    let is_named = |call: &WaitingCall| call.approval.reference().as_str() == name;
    Ok(waiting(journal)?.into_iter().find(is_named))
}

/// Answers a question. An approval becomes a grant, which the returned text describes.
pub(crate) fn answer(
    store: &Store,
    journal: &dyn Journal,
    call: &WaitingCall,
    answer: &PersonAnswer,
    expires: Option<Duration>,
) -> Result<String, Failure> {
    let WaitingCall { approval, request } = call;
    let is_allowed = matches!(answer, PersonAnswer::Allow { .. });
    let state = if is_allowed { ApprovalState::Approved } else { ApprovalState::Denied };
    let grant = request.grant(answer, &decisions::caller(), now(), expires);
    if grant.is_none() && is_allowed {
        return Err(Failure::usage("the call belongs to no run").hint("use --for session"));
    }
    let said = serde_json::to_string(answer).unwrap_or_default();
    // First the answer, so that only one of two people who answer at once succeeds.
    if !journal.answer(&approval.id, state, &said)? {
        return Err(Failure::new(format!("{} was answered already", approval.reference())));
    }
    let mut text = format!("{} is denied.", request.name);
    let mut rule = format!("approval {}", approval.reference());
    if let Some(grant) = &grant {
        write_grant(journal, grant)?;
        text = allowed(call, answer, grant, expires.is_some());
        rule = format!("{rule}; grant {}", grant.id.0);
    }
    let record = AuditRecord {
        session: request.session.to_string(),
        run: request.run.as_ref().map(ToString::to_string),
        tool: request.name.clone(),
        server: request.tool.server.to_string(),
        arguments_hash: request.arguments_hash.to_string(),
        ..decisions::record("approval", is_allowed, rule)
    };
    decisions::write(store, &record)?;
    Ok(text)
}

/// The call as data.
pub(crate) fn data(call: &WaitingCall) -> Value {
    let WaitingCall { approval, request } = call;
    let (reference, created) = (approval.reference(), approval.created);
    json!({
        "reference": reference.as_str(), "kind": "call", "created": created, "question": request,
    })
}

fn allowed(call: &WaitingCall, answer: &PersonAnswer, grant: &Grant, expires: bool) -> String {
    let PersonAnswer::Allow { lasts, .. } = answer else { return String::new() };
    let name = &call.request.name;
    let who = shown(&call.request.identity, 128);
    // A grant for a call, a run or a session ends with it. The time is shown only if it was given.
    let ends = grant.expires_at.filter(|_| expires || *lasts == GrantDuration::Always);
    let ends = ends.map(|end| utc(end.0 / 1_000));
    let until = ends.as_ref().map(|end| format!(", until {end} at the latest"));
    let until = until.unwrap_or_default();
    let lasts = match lasts {
        GrantDuration::Once => format!("once{until}"),
        GrantDuration::Run => format!("for this run{until}"),
        GrantDuration::Session => format!("for this session{until}"),
        GrantDuration::Always => {
            format!("to {who} until {}", ends.as_deref().unwrap_or("it is revoked"))
        }
    };
    let extent = match &grant.arguments {
        GrantedArguments::Any => String::new(),
        GrantedArguments::Exactly(_) => ", with these arguments".to_owned(),
        matching @ GrantedArguments::Matching(_) => format!(", {matching}"),
    };
    let next = match &call.request.run {
        Some(run) => format!("resume_run continues {run}"),
        None => "the agent can make the same call again".to_owned(),
    };
    format!("{name} is allowed {lasts}{extent}: {next}.")
}

fn read(approval: StoredApproval) -> Option<WaitingCall> {
    if approval.kind != "call" {
        return None;
    }
    let request = serde_json::from_str(&approval.question).ok()?;
    Some(WaitingCall { approval, request })
}
