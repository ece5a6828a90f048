//! `toolgate approve`

use std::process::ExitCode;

use serde_json::json;
use toolgate_broker::{GrantDuration, GrantExtent, PersonAnswer};
use toolgate_policy::{ArgumentConditions, OPERATORS};
use toolgate_store::{ChoiceFile, Consent, Journal, ServerConsentRequest, Store};

use super::{
    approvals::{self, WaitingCall},
    enable::agreed,
};
use crate::{
    cli::{Approve, For, Globals},
    decisions,
    failure::Failure,
    load::{self, Loaded},
    printer::Printer,
};

/// Something that waits, and where.
struct Waiting {
    id: String,
    namespace: Option<String>,
    request: ServerConsentRequest,
    file: ChoiceFile,
}

pub(crate) fn run(
    globals: &Globals,
    arguments: &Approve,
    printer: &mut Printer,
) -> Result<ExitCode, Failure> {
    let loaded = load::load(globals)?;
    let files = files(&loaded)?;
    let store = load::store().ok_or_else(super::no_data_folder)?;
    let journal = store.journal().map_err(approvals::unusable)?;
    let Some(id) = &arguments.id else { return list(&files, &journal, arguments, printer) };
    if let Some(call) = approvals::find(&journal, id)? {
        return decide(&store, &journal, &call, arguments, printer);
    }
    let waiting = waiting(&files)?.into_iter().find(|waiting| waiting.id == *id);
    if arguments.deny {
        return deny(id, waiting, &files, printer);
    }
    let Some(Waiting { request, file, .. }) = waiting else {
        return Err(Failure::usage(format!("nothing waits under the id `{id}`"))
            .hint("`toolgate approve` lists what does"));
    };
    printer.line(request.shown.trim_end());
    if arguments.show {
        return Ok(ExitCode::SUCCESS);
    }
    agreed(arguments.yes)?;
    let server = request.server.clone();
    let consent = Consent::now(request.fingerprint, request.plan);
    file.change(|choices| choices.consent(server, consent))
        .map_err(|error| Failure::new(error.to_string()))?;
    decisions::about_server("approval", &request.server, true, format!("approval {id}"))?;
    printer.line(format!("{} is approved: the agent can enable it now.", request.server));
    Ok(ExitCode::SUCCESS)
}

/// Shows a call that waits, and answers.
fn decide(
    store: &Store,
    journal: &Journal,
    call: &WaitingCall,
    arguments: &Approve,
    printer: &mut Printer,
) -> Result<ExitCode, Failure> {
    if arguments.show && arguments.output.json {
        printer.json(&approvals::data(call))?;
        return Ok(ExitCode::SUCCESS);
    }
    printer.line(&call.request);
    if arguments.show {
        if let Some(all) = &call.request.all_arguments {
            printer.line(format!("All of its arguments: {all}"));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let lasts = match arguments.lasts {
        None => GrantDuration::Once,
        Some(For::Run) => GrantDuration::Run,
        Some(For::Session) => GrantDuration::Session,
        Some(For::Always) => GrantDuration::Always,
    };
    let answer = if arguments.deny {
        PersonAnswer::Deny
    } else {
        let extent = extent(call, arguments)?;
        agreed(arguments.yes)?;
        PersonAnswer::Allow { lasts, extent }
    };
    let text = approvals::answer(store, journal, call, &answer, arguments.expires)?;
    printer.line(text);
    Ok(ExitCode::SUCCESS)
}

/// With which arguments a yes holds.
fn extent(call: &WaitingCall, arguments: &Approve) -> Result<GrantExtent, Failure> {
    if arguments.these_arguments {
        return Ok(GrantExtent::These);
    }
    if arguments.conditions.is_empty() {
        return Ok(GrantExtent::Any);
    }
    let texts = arguments.conditions.iter().map(String::as_str);
    let conditions = ArgumentConditions::from_texts(texts).map_err(|error| {
        let operators = OPERATORS.join(", ");
        Failure::usage(error.to_string()).hint(format!("the operators are {operators}"))
    })?;
    let extent = GrantExtent::Where(conditions);
    if call.request.is_covered_by(&extent) == Some(false) {
        return Err(Failure::usage("the call that waits does not fulfil this itself")
            .hint("a condition is about the arguments that are shown, by their names"));
    }
    Ok(extent)
}

fn list(
    files: &[(Option<String>, ChoiceFile)],
    journal: &Journal,
    arguments: &Approve,
    printer: &mut Printer,
) -> Result<ExitCode, Failure> {
    let waiting = waiting(files)?;
    let calls = approvals::waiting(journal)?;
    if arguments.output.json {
        let servers = waiting
            .iter()
            .map(|waiting| {
                let request = &waiting.request;
                json!({
                    "kind": "server", "id": waiting.id, "namespace": waiting.namespace, "server": request.server,
                    "at": request.at, "shown": request.shown, "plan": request.plan,
                })
            });
        let rows: Vec<_> = servers.chain(calls.iter().map(approvals::data)).collect();
        printer.json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    if waiting.is_empty() && calls.is_empty() {
        printer.note("nothing waits for a decision");
    }
    for Waiting { id, namespace, request, .. } in &waiting {
        let namespace = namespace.as_ref().map(|name| format!(" (namespace {name})"));
        printer.line(format!("{id}{}", namespace.unwrap_or_default()));
        for line in request.shown.lines() {
            printer.line(format!("  {line}"));
        }
    }
    for WaitingCall { approval, request } in &calls {
        printer.line(&approval.id);
        for line in request.to_string().lines() {
            printer.line(format!("  {line}"));
        }
    }
    if !waiting.is_empty() || !calls.is_empty() {
        printer.note("`toolgate approve ID` allows one, `toolgate approve ID --deny` refuses it");
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses what waits under an id, or takes back what was approved of a server of this name.
fn deny(
    id: &str,
    waiting: Option<Waiting>,
    files: &[(Option<String>, ChoiceFile)],
    printer: &mut Printer,
) -> Result<ExitCode, Failure> {
    let changed = |error: toolgate_store::StoreError| Failure::new(error.to_string());
    if let Some(Waiting { request, file, .. }) = waiting {
        file.change(|choices| choices.requests.remove(id)).map_err(changed)?;
        decisions::about_server("approval", &request.server, false, format!("approval {id}"))?;
        printer.line(format!("{} is refused.", request.server));
        return Ok(ExitCode::SUCCESS);
    }
    let mut taken_back = false;
    for (_, file) in files {
        let removed = file.change(|choices| choices.consents.remove(id).is_some());
        taken_back |= removed.map_err(changed)?;
    }
    if !taken_back {
        return Err(Failure::usage(format!("nothing waits or is approved under `{id}`")));
    }
    decisions::about_server("approval", id, false, "the approval is taken back")?;
    printer.line(format!("{id} is no longer approved."));
    Ok(ExitCode::SUCCESS)
}

fn waiting(files: &[(Option<String>, ChoiceFile)]) -> Result<Vec<Waiting>, Failure> {
    let mut waiting = Vec::new();
    for (namespace, file) in files {
        let requests = file.read().map_err(load::damaged)?.requests.into_iter();
        waiting.extend(requests.map(|(id, request)| Waiting {
            id,
            namespace: namespace.clone(),
            request,
            file: file.clone(),
        }));
    }
    waiting.sort_by(|left, right| (left.request.at, &left.id).cmp(&(right.request.at, &right.id)));
    Ok(waiting)
}

/// The choices of the namespace that was asked for, or of all.
fn files(loaded: &Loaded) -> Result<Vec<(Option<String>, ChoiceFile)>, Failure> {
    let all = loaded.configuration.namespaces.iter().map(|it| Some(it.name.clone()));
    let all = std::iter::once(None).chain(all);
    let wanted = |name: &Option<String>| loaded.namespace.is_none() || *name == loaded.namespace;
    let names: Vec<Option<String>> = all.filter(wanted).collect();
    let files =
        names.into_iter().map(|name| Some((name.clone(), loaded.choices(name.as_deref())?)));
    files.collect::<Option<_>>().ok_or_else(super::no_data_folder)
}
