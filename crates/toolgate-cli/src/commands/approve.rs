//! `toolgate approve`

use std::{
    io::{IsTerminal as _, stdout},
    process::ExitCode,
    sync::Arc,
};

use serde_json::json;
use toolgate_broker::{GrantDuration, GrantExtent, PersonAnswer, QueuedCall};
use toolgate_policy::{
    ArgumentConditions, GrantedArguments, OPERATORS, Presence, definitions::shown,
};
use toolgate_store::{
    ChoiceStore, Consent, Journal, QuestionReference, ServerConsentRequest, Store,
};

use super::approvals;
use crate::{
    cli::{Approve, For, Globals},
    decisions,
    failure::{CommandResult, Failure},
    load::{self, Loaded},
    person::{self, ALLOW},
    print,
};

/// The choices of a namespace.
type NamedChoices = (Option<String>, Arc<dyn ChoiceStore>);

/// A server of the registry that waits for approval.
struct Waiting {
    id: String,
    namespace: Option<String>,
    request: ServerConsentRequest,
    file: Arc<dyn ChoiceStore>,
}

pub(crate) fn run(globals: &Globals, arguments: &Approve) -> CommandResult {
    let loaded = load::load(globals)?;
    let files = files(&loaded)?;
    let store = load::required_store()?;
    let journal = &*store.journal()?;
    let Some(id) = &arguments.id else { return list(&files, journal, arguments) };
    if let Some(call) = QueuedCall::find(journal, id)? {
        return decide(&loaded, &store, journal, call, arguments);
    }
    let waiting = waiting(&files)?;
    // What agents are told names a question, but allows nothing.
    let call_named = QueuedCall::find_named(journal, id)?;
    let is_named = |waiting: &Waiting| QuestionReference::of(&waiting.id).as_str() == *id;
    if !arguments.show && !arguments.deny && (call_named.is_some() || waiting.iter().any(is_named))
    {
        return Err(Failure::usage(format!(
            "`{id}` names the question for agents, and does not allow what it asks"
        ))
        .hint("`toolgate approve`, in a terminal, shows the id that does"));
    }
    if let Some(call) = call_named {
        return decide(&loaded, &store, journal, call, arguments);
    }
    let waiting = waiting.into_iter().find(|waiting| waiting.id == *id || is_named(waiting));
    if arguments.deny {
        return deny(id, waiting, &files);
    }
    let Some(Waiting { id, request, file, .. }) = waiting else {
        return Err(Failure::usage(format!("nothing waits under the id `{id}`"))
            .hint("`toolgate approve` lists what does"));
    };
    if arguments.show {
        print::line(request.shown.trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    // A word that this version does not know may be stricter than all that it knows.
    let asked = serde_json::from_value::<Option<Presence>>(request.presence.clone());
    let asked = asked.map_or(Presence::Password, Option::unwrap_or_default);
    person::agrees(loaded.presence()?.max(asked), request.shown.trim_end(), ALLOW)?;
    let server = request.server.clone();
    let consent = Consent::now(request.fingerprint, request.plan);
    file.change(|choices| choices.consent(server, consent))?;
    let rule = format!("approval {}", QuestionReference::of(&id));
    decisions::about_server("approval", &request.server, true, rule)?;
    print::line(format!("{} is approved: the agent can enable it now.", request.server));
    Ok(ExitCode::SUCCESS)
}

/// Shows a call that waits, and answers.
fn decide(
    loaded: &Loaded,
    store: &Store,
    journal: &dyn Journal,
    mut call: QueuedCall,
    arguments: &Approve,
) -> CommandResult {
    // The configuration of this command may be another than that of the gateway which asks.
    call.request.presence = call.request.presence.max(loaded.presence_or_strictest());
    let call = &call;
    if arguments.show {
        if arguments.output.json {
            print::json(&approvals::data(call))?;
            return Ok(ExitCode::SUCCESS);
        }
        print::line(&call.request);
        if let Some(all) = &call.request.all_arguments {
            print::line(format!("All of its arguments: {all}"));
        }
        if let Some(all) = &call.request.all_meta {
            print::line(format!("All of its _meta: {all}"));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let answer = if arguments.deny {
        print::line(&call.request);
        PersonAnswer::Deny
    } else {
        loaded.presence()?;
        let lasts = match arguments.lasts {
            None => GrantDuration::Once,
            Some(For::Run) => GrantDuration::Run,
            Some(For::Session) => GrantDuration::Session,
            Some(For::Always) => GrantDuration::Always,
        };
        let extent = extent(call, arguments)?;
        let question = question(call, lasts, &extent);
        person::agrees(call.request.presence, &call.request.to_string(), &question)?;
        PersonAnswer::Allow { lasts, extent }
    };
    let text = approvals::answer(store, journal, call, &answer, arguments.expires)?;
    print::line(text);
    Ok(ExitCode::SUCCESS)
}

/// What an approval allows.
fn question(call: &QueuedCall, lasts: GrantDuration, extent: &GrantExtent) -> String {
    let lasts = match lasts {
        GrantDuration::Once => return "Allow this call, once?".to_owned(),
        GrantDuration::Run => "in this run".to_owned(),
        GrantDuration::Session => "in this session".to_owned(),
        GrantDuration::Always => format!("by {}, always", shown(&call.request.identity, 128)),
    };
    let extent = match extent {
        GrantExtent::Any => "any arguments".to_owned(),
        GrantExtent::These => "exactly these arguments".to_owned(),
        GrantExtent::Where(conditions) => {
            format!("arguments, {}", GrantedArguments::Matching(conditions.clone()))
        }
    };
    format!("Allow this call and later ones {lasts}, with {extent}?")
}

/// The arguments that a grant covers.
fn extent(call: &QueuedCall, arguments: &Approve) -> Result<GrantExtent, Failure> {
    if arguments.any_arguments {
        return Ok(GrantExtent::Any);
    }
    if arguments.conditions.is_empty() {
        return Ok(GrantExtent::These);
    }
    let texts = arguments.conditions.iter().map(String::as_str);
    let conditions = ArgumentConditions::from_texts(texts).map_err(|error| {
        let operators = OPERATORS.join(", ");
        Failure::usage(error.to_string()).hint(format!("the operators are {operators}"))
    })?;
    let extent = GrantExtent::Where(conditions);
    if call.request.is_covered_by(&extent) == Some(false) {
        return Err(Failure::usage("the call that waits does not meet this condition")
            .hint("a condition is about the arguments that are shown, by their names"));
    }
    Ok(extent)
}

fn list(files: &[NamedChoices], journal: &dyn Journal, arguments: &Approve) -> CommandResult {
    let waiting = waiting(files)?;
    let calls = QueuedCall::all(journal)?;
    if arguments.output.json {
        let servers = waiting
            .iter()
            .map(|waiting| {
                let request = &waiting.request;
                json!({
                    "kind": "server", "reference": QuestionReference::of(&waiting.id).as_str(), "namespace": waiting.namespace, "server": request.server,
                    "at": request.at, "shown": request.shown, "plan": request.plan,
                })
            });
        let rows: Vec<_> = servers.chain(calls.iter().map(approvals::data)).collect();
        print::json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    if waiting.is_empty() && calls.is_empty() {
        print::note("nothing waits for a decision");
    }
    // An agent that runs this command reads what it prints. The ids are for the screen of a person.
    let is_screen = stdout().is_terminal();
    let heading = |id: &str| {
        if is_screen { id.to_owned() } else { QuestionReference::of(id).to_string() }
    };
    let servers = waiting.iter().map(|Waiting { id, namespace, request, .. }| {
        let namespace = namespace.as_ref().map(|name| format!(" (namespace {name})"));
        (format!("{}{}", heading(id), namespace.unwrap_or_default()), request.shown.clone())
    });
    let calls_shown =
        calls.iter().map(|call| (heading(&call.approval.id), call.request.to_string()));
    for (heading, text) in servers.chain(calls_shown) {
        print::line(heading);
        for line in text.lines() {
            print::line(format!("  {line}"));
        }
    }
    if !waiting.is_empty() || !calls.is_empty() {
        print::note(if is_screen {
            "`toolgate approve ID` asks you about one, `toolgate approve ID --deny` refuses it"
        } else {
            "`toolgate approve`, in a terminal, shows the ids that approve"
        });
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses what waits under an id, or revokes the approval of a server of this name.
fn deny(id: &str, waiting: Option<Waiting>, files: &[NamedChoices]) -> CommandResult {
    if let Some(Waiting { id, request, file, .. }) = waiting {
        file.change(|choices| choices.requests.remove(&id))?;
        let rule = format!("approval {}", QuestionReference::of(&id));
        decisions::about_server("approval", &request.server, false, rule)?;
        print::line(format!("{} is refused.", request.server));
        return Ok(ExitCode::SUCCESS);
    }
    let mut is_revoked = false;
    for (_, file) in files {
        is_revoked |= file.change(|choices| choices.consents.remove(id).is_some())?;
    }
    if !is_revoked {
        return Err(Failure::usage(format!("nothing waits or is approved under `{id}`")));
    }
    decisions::about_server("approval", id, false, "the approval is revoked")?;
    print::line(format!("{id} is no longer approved."));
    Ok(ExitCode::SUCCESS)
}

fn waiting(files: &[NamedChoices]) -> Result<Vec<Waiting>, Failure> {
    let mut waiting = Vec::new();
    for (namespace, file) in files {
        let requests = file.read()?.requests.into_iter();
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

/// The choices of the selected namespace, or of all.
fn files(loaded: &Loaded) -> Result<Vec<NamedChoices>, Failure> {
    let all = loaded.configuration.namespaces.iter().map(|it| Some(it.name.clone()));
    let all = std::iter::once(None).chain(all);
    let wanted = |name: &Option<String>| loaded.namespace.is_none() || *name == loaded.namespace;
    all.filter(wanted)
        .map(|name| Ok((name.clone(), loaded.choice_file(name.as_deref())?)))
        .collect()
}
