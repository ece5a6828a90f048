//! `toolgate runs`

mod flow;
mod graph;

use std::{fmt::Write as _, process::ExitCode};

use serde_json::{Value, json};
use toolgate_host::{RunFlow, RunStanding, error_message, one_line};
use toolgate_store::{AuditRecord, Journal, RunCall, RunDetail, RunFilter, RunState, RunSummary};
use toolgate_upstream::Redactor;
use toolgate_web::took;

use crate::{
    cli::{Globals, Runs, RunsCommand},
    decisions,
    failure::{CommandResult, Failure},
    load, person, print,
    table::{grouped, table},
};

pub(crate) fn run(globals: &Globals, arguments: &Runs) -> CommandResult {
    if globals.namespace.is_some() {
        // Runs are listed for all namespaces. An unknown name is still a mistake.
        load::load(globals)?;
    }
    let journal = &*load::required_store()?.journal()?;
    match &arguments.command {
        None => list(journal, arguments)?,
        Some(RunsCommand::Show { id, output }) => {
            let detail = detail(journal, id)?;
            let state = RunStanding::of(journal, &detail.summary)?;
            let cleaner = Cleaner::new(globals);
            if output.json {
                print::json(&data(&detail, state, &cleaner))?;
            } else {
                show(&detail, state, &cleaner);
            }
        }
        Some(RunsCommand::Repeat { id, call }) => repeat(globals, journal, id, *call)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The whole id of a run, from its beginning.
pub(super) fn find(id: &str) -> Result<String, Failure> {
    Ok(detail(&*load::required_store()?.journal()?, id)?.summary.id)
}

/// Asks the person whether all calls of a run whose outcome is unknown may be repeated.
pub(super) fn agree_to_repeat(globals: &Globals, id: &str) -> Result<(), Failure> {
    let journal = &*load::required_store()?.journal()?;
    let detail = detail(journal, id)?;
    let state = RunStanding::of(journal, &detail.summary)?;
    let is_unknown = |call: &&RunCall| state.of_call(call) == "unknown";
    let unknown: Vec<&RunCall> = detail.calls.iter().filter(is_unknown).collect();
    // Without one nothing is allowed.
    if unknown.is_empty() { Ok(()) } else { agrees(globals, id, &unknown) }
}

fn agrees(globals: &Globals, id: &str, calls: &[&RunCall]) -> Result<(), Failure> {
    let cleaner = Cleaner::new(globals);
    let mut shown = format!("Run {id} sent these calls, and their outcome is unknown:");
    for call in calls {
        let (name, arguments) = (one_line(&call.name, 64), cleaner.line(&call.arguments, 1_000));
        let _ = write!(shown, "\n{:>4}  {name} with {arguments}", call.number);
    }
    let presence = load::load(globals).map_or_else(|_| load::own_presence(), |it| it.presence())?;
    let question = "Let a resume of the run make them again, even if they had an effect?";
    person::agrees(presence, &shown, question)
}

/// Removes the configured secrets from what is shown.
struct Cleaner(Vec<Redactor>);

impl Cleaner {
    fn new(globals: &Globals) -> Self {
        // Without a configuration there are no secrets that could be known.
        let servers = load::load(globals).map(|loaded| loaded.settings(None).servers);
        let servers = servers.unwrap_or_default();
        Self(servers.iter().map(|setup| setup.spec.redactor()).collect())
    }

    fn clean(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, redactor| redactor.clean(&text))
    }

    /// The same on one line.
    fn line(&self, text: &str, characters: usize) -> String {
        one_line(&self.clean(text), characters)
    }
}

fn detail(journal: &dyn Journal, id: &str) -> Result<RunDetail, Failure> {
    journal.run(id)?.ok_or_else(|| {
        Failure::usage(format!(
            "there is no run `{}`, or several ids begin like this",
            one_line(id, 64)
        ))
        .hint("`toolgate runs` lists them")
    })
}

fn list(journal: &dyn Journal, arguments: &Runs) -> Result<(), Failure> {
    let filter = filter(arguments)?;
    let runs = if filter == RunFilter::default() {
        journal.runs(arguments.limit)?
    } else {
        journal.runs_like(&filter, None, arguments.limit)?
    };
    let mut rows = Vec::new();
    for run in runs {
        rows.push((RunStanding::of(journal, &run)?, run));
    }
    let data: Vec<Value> = rows.iter().map(|(state, run)| summary(run, *state)).collect();
    let empty = if filter == RunFilter::default() {
        "no script has been run yet, or all runs are forgotten"
    } else {
        "no run is like this"
    };
    print::list(arguments.output.json, &data, empty, || overview(rows))
}

fn filter(arguments: &Runs) -> Result<RunFilter, Failure> {
    let state = arguments.state.as_deref().map(|name| {
        RunState::LISTED.into_iter().find(|state| state.name() == name).ok_or_else(|| {
            let all: Vec<&str> = RunState::LISTED.into_iter().map(RunState::name).collect();
            Failure::usage(format!("no run has the state `{}`", one_line(name, 64)))
                .hint(format!("it is one of {}", all.join(", ")))
        })
    });
    Ok(RunFilter {
        state: state.transpose()?,
        language: arguments.language.clone(),
        caller: arguments.caller.clone(),
        tool: arguments.tool.clone(),
    })
}

fn overview(runs: Vec<(RunStanding, RunSummary)>) -> String {
    let columns = ["run", "begun", "state", "language", ">calls", ">failed", ">took"];
    let rows = runs.into_iter().map(|(state, run)| {
        let took = run.ended.map(|ended| took(ended.saturating_sub(run.created)));
        vec![
            run.id.clone(),
            run.created_utc(),
            state.name().to_owned(),
            run.language,
            grouped(run.calls),
            grouped(run.failed),
            took.unwrap_or_default(),
        ]
    });
    table(&columns, rows)
}

fn repeat(globals: &Globals, journal: &dyn Journal, id: &str, call: u64) -> Result<(), Failure> {
    let detail = detail(journal, id)?;
    let id = &detail.summary.id;
    let state = RunStanding::of(journal, &detail.summary)?;
    if state == RunStanding::Is(RunState::Running) {
        return Err(Failure::new(format!("run {id} is still running")));
    }
    let unknown = detail.calls.iter().find(|each| each.number == call);
    let unknown = unknown.filter(|each| state.of_call(each) == "unknown");
    if let Some(call) = unknown {
        agrees(globals, id, &[call])?;
    }
    let forgotten = unknown.map(|_| journal.forget_end(id, call)).transpose()?;
    let (Some(unknown), Some(true)) = (unknown, forgotten) else {
        return Err(Failure::usage(format!("call {call} of run {id} has no unknown outcome"))
            .hint(format!("`toolgate runs show {id}` lists its calls")));
    };
    if let Some(store) = load::store() {
        let rule = format!("call {call}, of unknown outcome, is made again");
        let record = AuditRecord {
            run: Some(id.clone()),
            tool: unknown.name.clone(),
            ..decisions::record("repeat", true, rule)
        };
        decisions::write(&store, &record)?;
    }
    print::line(format!("Call {call} is made again when the run is resumed."));
    print::note(format!("  hint: `toolgate run --resume {id}`"));
    Ok(())
}

fn summary(run: &RunSummary, state: RunStanding) -> Value {
    json!({
        "id": run.id, "begun": run.created_utc(), "by": run.session, "state": state.name(),
        "language": run.language,
        "calls": run.calls, "failed": run.failed,
        "milliseconds": run.ended.map(|ended| ended.saturating_sub(run.created)),
    })
}

fn data(detail: &RunDetail, state: RunStanding, cleaner: &Cleaner) -> Value {
    let calls: Vec<Value> = detail
        .calls
        .iter()
        .map(|call| {
            let (result, error) = match &call.outcome {
                Some(Ok(result)) => (Some(cleaner.clean(result)), None),
                Some(Err(error)) => (None, Some(cleaner.clean(error_message(error)))),
                None => (None, None),
            };
            json!({
                "number": call.number, "name": call.name,
                "arguments": read(&cleaner.clean(&call.arguments)),
                "atMilliseconds": call.made.saturating_sub(detail.summary.created),
                "milliseconds": call.ended.map(|ended| ended.saturating_sub(call.made)),
                "verdict": call.verdict.as_ref().map(|(verdict, _)| verdict),
                "rule": call.verdict.as_ref().map(|(_, rule)| rule),
                "sent": call.sent, "state": state.of_call(call),
                "argumentBytes": call.arguments.len(),
                "resultBytes": call.outcome.as_ref().map(|outcome| match outcome {
                    Ok(text) | Err(text) => text.len(),
                }),
                "result": result.as_deref().map(read), "error": error,
            })
        })
        .collect();
    let mut data = summary(&detail.summary, state);
    data["code"] = json!(cleaner.clean(&detail.code));
    data["output"] = json!(cleaner.clean(&detail.output));
    data["error"] = json!(detail.error.as_deref().map(|error| cleaner.clean(error)));
    data["timeline"] = json!(calls);
    data["flow"] = json!(RunFlow::observed(detail));
    data["graph"] = json!(graph::read(detail.graph.as_deref()));
    data
}

/// A text as JSON; the text itself if it is not JSON or nested too deeply.
fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

fn show(detail: &RunDetail, state: RunStanding, cleaner: &Cleaner) {
    let run = &detail.summary;
    let took = run.ended.map(|ended| took(ended.saturating_sub(run.created)));
    let took = took.map(|took| format!(", took {took}")).unwrap_or_default();
    let (begun, state_name, language) = (run.created_utc(), state.name(), &run.language);
    let by = one_line(&run.session, 128);
    print::line(format!("{}: {state_name}\n{language}, begun {begun} by {by}{took}\n", run.id));
    let code = cleaner.clean(&detail.code);
    for (index, line) in code.lines().enumerate() {
        print::line(format!("{:>4}  {line}", index + 1).trim_end());
    }
    if !detail.calls.is_empty() {
        print::line(format!("\n{}", timeline(detail, state, cleaner)));
    }
    if let Some(graph) = graph::read(detail.graph.as_deref()) {
        print::line(format!("\nwhat can reach what:\n{}", graph::draw(&graph)));
    }
    let flow = RunFlow::observed(detail);
    if !flow.is_empty() {
        print::line(format!("\nflow:\n{}", flow::draw(&flow)));
    }
    let output = cleaner.clean(&detail.output);
    if !output.trim().is_empty() {
        print::line(format!("\noutput:\n{}", output.trim_end()));
    }
    if state == RunStanding::Interrupted
        || matches!(run.state, RunState::Waiting | RunState::Failed)
    {
        print::note(format!("\n  hint: `toolgate run --resume {}` resumes it", run.id));
    }
}

fn timeline(detail: &RunDetail, state: RunStanding, cleaner: &Cleaner) -> String {
    let columns = [
        ">call",
        ">at",
        ">took",
        "tool",
        "verdict",
        "state",
        ">in",
        ">out",
        "arguments, or what went wrong",
    ];
    let rows = detail.calls.iter().map(|call| {
        let size = |text: &str| grouped(text.len() as u64);
        let shown = match &call.outcome {
            Some(Err(error)) => error_message(error),
            _ => &call.arguments,
        };
        vec![
            call.number.to_string(),
            took(call.made.saturating_sub(detail.summary.created)),
            call.ended.map(|ended| took(ended.saturating_sub(call.made))).unwrap_or_default(),
            one_line(&call.name, 64),
            call.verdict.as_ref().map(|(verdict, _)| verdict.clone()).unwrap_or_default(),
            state.of_call(call).to_owned(),
            size(&call.arguments),
            call.outcome
                .as_ref()
                .map(|outcome| match outcome {
                    Ok(text) | Err(text) => size(text),
                })
                .unwrap_or_default(),
            cleaner.line(shown, 80),
        ]
    });
    table(&columns, rows)
}
