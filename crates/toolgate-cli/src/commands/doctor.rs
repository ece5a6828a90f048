//! `toolgate doctor`

use std::{fmt::Write as _, process::ExitCode};

use serde::Serialize;
use serde_json::{Map, Value, json};
use toolgate_config::{Problem, ProblemSeverity, Transport};
use toolgate_host::{Connect, HostSettings, SandboxUnavailable, ServerOverview, ToolHost};
use toolgate_sandbox::{
    Language,
    lockdown::{LockdownReport, MeasureState},
};
use toolgate_store::WRITABLE;

use super::{engines, servers::written_target, setup};
use crate::{
    cli::{Doctor, Globals},
    failure::{CommandResult, Failure},
    folders,
    load::{self, Loaded},
    logins, own_entry, print,
};

/// Below this, the disk of the state folder is about to be full.
const LOW_DISK_BYTES: u64 = 100 * 1024 * 1024;

/// What to do where nothing better is known.
const CORRECT: &str = "correct it there: `toolgate config schema` prints all keys and their values";

/// How bad a finding is, from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    Ok,
    /// It works, with a loss.
    Warning,
    /// Something does not work.
    Error,
    /// Nothing can be used.
    Fatal,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    severity: Severity,
    /// What was looked at.
    subject: String,
    message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Check {
    fn new(severity: Severity, subject: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity, subject: subject.into(), message: message.into(), fix: None }
    }

    fn ok(subject: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Ok, subject, message)
    }

    fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }

    fn print(&self) {
        let (word, mark) = match self.severity {
            Severity::Ok => ("ok", print::Mark::Good),
            Severity::Warning => ("warning", print::Mark::Warning),
            Severity::Error | Severity::Fatal => ("error", print::Mark::Bad),
        };
        let mut rest =
            format!("{}  {}: {}", " ".repeat(7 - word.len()), self.subject, self.message);
        if let Some(fix) = &self.fix {
            let _ = write!(rest, "\n         fix: {fix}");
        }
        print::marked(mark, word, rest);
    }
}

/// Looks at everything that toolgate needs. Needs no configuration.
pub(crate) async fn run(globals: &Globals, arguments: &Doctor) -> CommandResult {
    let version = format!("{} for {}", env!("CARGO_PKG_VERSION"), std::env::consts::OS);
    let mut checks = vec![Check::ok("toolgate", version)];
    let loaded = configuration(globals, &mut checks);
    state_folder(loaded.as_ref(), &mut checks);
    if let Some(loaded) = &loaded {
        servers(loaded, arguments.offline, &mut checks).await;
        for login in logins::of_all(loaded).await {
            let whose = login.caller.as_ref().map(|it| format!(" of {it}")).unwrap_or_default();
            let message = login.to_string();
            checks.push(if login.is_over() {
                let check = format!("login{whose} at {}", login.server);
                Check::new(Severity::Warning, check, message).fix(match &login.caller {
                    None => format!("toolgate login {}", login.server),
                    Some(_) => "their next call asks them to log in".to_owned(),
                })
            } else {
                Check::ok(format!("login{whose} at {}", login.server), message)
            });
        }
    }
    checks.extend(setup::clients().iter().map(of_client));
    let scripts = Scripts::look(globals, &mut checks).await;
    let worst = checks.iter().map(|check| check.severity).max().unwrap_or(Severity::Ok);
    if arguments.output.json {
        let mut told = json!({ "severity": worst, "checks": checks });
        if let Some(scripts) = &scripts {
            told["sandbox"] = json!(rows(&scripts.report));
            told["pythonSandbox"] = json!(rows(&scripts.python));
            told["engines"] = json!(scripts.engines);
            told["scriptsRun"] = json!(scripts.lacking().is_none());
        }
        print::json(&told)?;
    } else {
        checks.iter().for_each(Check::print);
        if let Some(scripts) = &scripts {
            scripts.print();
        }
    }
    Ok(match worst {
        Severity::Ok | Severity::Warning => ExitCode::SUCCESS,
        Severity::Error => ExitCode::FAILURE,
        Severity::Fatal => ExitCode::from(2),
    })
}

/// Reads the configuration; `None` if it cannot be used.
fn configuration(globals: &Globals, checks: &mut Vec<Check>) -> Option<Loaded> {
    match load::load(globals) {
        Ok(loaded) => {
            let file = folders::shown(&loaded.path);
            let all = loaded.configuration.servers.len();
            checks.push(Check::ok("configuration", format!("{file}, {all} servers")));
            checks.extend(loaded.configuration.problems.iter().map(of_problem));
            Some(loaded)
        }
        Err(failure) => {
            // Without a file there is nothing wrong yet.
            let is_named = globals.config.is_some();
            let severity = if is_named { Severity::Fatal } else { Severity::Warning };
            let check = Check::new(severity, "configuration", failure.first_line());
            let fix = failure.hints().first().cloned();
            checks.push(check.fix(fix.unwrap_or_else(|| CORRECT.to_owned())));
            None
        }
    }
}

fn of_problem(problem: &Problem) -> Check {
    let severity = match problem.severity {
        ProblemSeverity::Warning => Severity::Warning,
        ProblemSeverity::Error => Severity::Error,
    };
    let place = format!("{}:{}", problem.source, problem.position);
    if problem.message.ends_with(own_entry::LEFT_OUT) {
        // A client starts toolgate from the same file, as it should be.
        return Check::ok(place, problem.message.clone());
    }
    let check = Check::new(severity, place, problem.message.clone());
    check.fix(problem.hint.clone().unwrap_or_else(|| CORRECT.to_owned()))
}

/// The state folder, its disk, and the audit log in it.
fn state_folder(loaded: Option<&Loaded>, checks: &mut Vec<Check>) {
    let Some(store) = load::store() else {
        checks.push(
            Check::new(Severity::Error, "state folder", "this system has no folder for data")
                .fix("set TOOLGATE_HOME to a folder"),
        );
        return;
    };
    if let Some(Err(problem)) = loaded.map(|loaded| loaded.writable_store()) {
        checks.push(Check::new(Severity::Error, "state folder", problem.to_string()).fix(WRITABLE));
    } else {
        let folder = folders::state().map(|path| folders::shown(&path)).unwrap_or_default();
        checks.push(Check::ok("state folder", folder));
    }
    if let Some(free) = folders::state().and_then(|folder| free_bytes(&folder)) {
        let message = format!("{} MB free", free / (1024 * 1024));
        checks.push(if free < LOW_DISK_BYTES {
            Check::new(Severity::Warning, "disk", message)
                .fix("make space, or set TOOLGATE_HOME to a folder on another disk")
        } else {
            Check::ok("disk", message)
        });
    }
    if let Some(damage) = store.audit().damage() {
        checks.push(
            Check::new(Severity::Error, "audit log", damage.to_string())
                .fix("toolgate audit --verify shows where"),
        );
    }
}

/// The free space of the disk of a folder, or of the nearest folder above it that exists.
#[cfg(unix)]
fn free_bytes(folder: &std::path::Path) -> Option<u64> {
    let existing = folder.ancestors().find(|folder| folder.exists())?;
    let disk = rustix::fs::statvfs(existing).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_: &std::path::Path) -> Option<u64> {
    None
}

/// Connects to each server, or looks only at what would be started.
async fn servers(loaded: &Loaded, offline: bool, checks: &mut Vec<Check>) {
    let unusable = loaded.configuration.servers.iter().filter(|server| {
        // Its problem is told already.
        server.settings.enabled && server.transport.is_err()
    });
    let unusable = unusable.count();
    if unusable > 0 {
        let message = format!("{unusable} of them cannot be used, see above");
        checks.push(Check::new(Severity::Error, "servers", message).fix("correct their entries"));
    }
    if offline {
        let usable = loaded.configuration.servers.iter().filter(|server| server.settings.enabled);
        for server in usable {
            let what = match &server.transport {
                Ok(Transport::Stdio { command, .. }) => {
                    let entry = Map::from_iter([("command".to_owned(), command.as_str().into())]);
                    let program = written_target(&entry).unwrap_or_default();
                    format!("runs `{program}`; not started")
                }
                Ok(Transport::Http { .. }) => "has a URL; not contacted".to_owned(),
                Err(_) => continue,
            };
            checks.push(Check::ok(format!("server {}", server.name), what));
        }
        return;
    }
    let mut settings = HostSettings { connect: Connect::AtStart, ..loaded.settings(None) };
    for server in &mut settings.servers {
        // Whether it can be started is the question.
        server.lazy = false;
    }
    let host = ToolHost::start(settings);
    super::settle(&host).await;
    let mut overview = host.overview(&host.exposure());
    for server in &mut overview {
        server.problems.extend(host.broken_schemas(server.server.as_str()));
    }
    host.shutdown().await;
    checks.extend(overview.iter().map(of_server));
    if !overview.is_empty() && overview.iter().all(|server| server.reason.is_some()) {
        let check = Check::new(Severity::Fatal, "servers", "none of them can be used");
        checks.push(check.fix("mend one of those above"));
    }
}

fn of_server(server: &ServerOverview) -> Check {
    let subject = format!("server {}", server.server);
    let place = server.node.as_ref().map(|node| format!(", node {node} runs it for all"));
    let place = place.unwrap_or_default();
    let tools = format!("{}, {} tools{place}", server.state, server.tools);
    match (&server.reason, server.problems.as_slice()) {
        (Some(reason), _) => {
            let check = Check::new(Severity::Error, subject, reason.clone());
            check.fix(server.action.clone().unwrap_or_default())
        }
        (None, []) => Check::ok(subject, tools),
        (None, problems) => {
            let message = format!("{tools}; {}", problems.join("; "));
            Check::new(Severity::Warning, subject, message).fix("its authors have to mend it")
        }
    }
}

/// The file of a client.
fn of_client(client: &setup::ClientState) -> Check {
    let subject = format!("client {}", client.label);
    let file = folders::shown(&client.path);
    let project = if client.is_projects { "--project " } else { "" };
    let set_up = format!("toolgate setup {project}--client {}", client.id);
    if let Some(problem) = &client.problem {
        let message = format!("{file}: {problem}");
        return Check::new(Severity::Warning, subject, message).fix("correct the file");
    }
    if let Some(program) = &client.missing_program {
        let message = format!("{file} starts `{program}`, which does not exist");
        return Check::new(Severity::Error, subject, message).fix(set_up);
    }
    if let Some(gone) = &client.missing_configuration {
        let message = format!("{file} starts toolgate with {gone}, which does not exist");
        return Check::new(Severity::Error, subject, message).fix(set_up);
    }
    if let Some(url) = &client.silent_gateway {
        let message = format!("{file} uses the gateway at {url}, and nothing answers there");
        let fix = "start it: `toolgate service install`, or `toolgate serve --http`";
        return Check::new(Severity::Error, subject, message).fix(fix);
    }
    let others = client.others;
    match (client.uses_toolgate, others) {
        (true, 0) => Check::ok(subject, format!("{file} uses toolgate")),
        (true, _) => {
            Check::ok(subject, format!("{file} uses toolgate, and {others} servers besides"))
        }
        (false, 0) => Check::ok(subject, format!("{file} has no servers")),
        (false, _) => {
            Check::ok(subject, format!("{file} has {others} servers, without toolgate")).fix(set_up)
        }
    }
}

/// What runs scripts, and what confines them.
struct Scripts {
    report: LockdownReport,
    python: LockdownReport,
    engines: Vec<engines::Engine>,
}

impl Scripts {
    /// Starts a worker of each engine; `None` if scripts cannot run at all.
    async fn look(globals: &Globals, checks: &mut Vec<Check>) -> Option<Self> {
        let settings = match engines::settings(globals) {
            Ok(settings) => settings,
            Err(failure) => {
                checks.push(Check::new(Severity::Warning, "scripts", failure.first_line()));
                return None;
            }
        };
        let host = engines::started(settings.clone());
        let report = host.code().lockdown(Language::TypeScript).await;
        let engines = engines::engines(&host, &settings).await;
        let python = host.code().lockdown(Language::Python).await;
        host.shutdown().await;
        let found = of(report).and_then(|report| Ok((report, of(python)?)));
        let without = "call_tool and everything else work without it";
        match found {
            Ok((report, python)) => {
                let scripts = Self { report, python, engines };
                checks.push(match scripts.lacking() {
                    Some(lacking) => {
                        let message = format!("scripts do not run here: {lacking}");
                        Check::new(Severity::Error, "scripts", message).fix(without)
                    }
                    None => Check::ok("scripts", "they run, confined as shown below"),
                });
                Some(scripts)
            }
            Err(failure) => {
                let message = failure.first_line();
                checks.push(Check::new(Severity::Error, "scripts", message).fix(without));
                None
            }
        }
    }

    fn lacking(&self) -> Option<String> {
        self.report.lacking().or(self.python.lacking()).map(ToString::to_string)
    }

    fn print(&self) {
        print::line("What runs scripts here:");
        self.engines.iter().for_each(engines::Engine::print);
        print::line("What confines scripts here:");
        for measure in &self.report.measures {
            print::line(format!("  {measure}"));
        }
        let others =
            || self.python.measures.iter().filter(|other| !self.report.measures.contains(other));
        if others().next().is_some() {
            print::line("What confines Python scripts otherwise:");
            for measure in others() {
                print::line(format!("  {measure}"));
            }
        }
    }
}

/// The report of a worker that was started.
fn of(
    lockdown: Option<Result<LockdownReport, SandboxUnavailable>>,
) -> Result<LockdownReport, Failure> {
    match lockdown {
        Some(Ok(report)) => Ok(report),
        Some(Err(problem)) => {
            Err(Failure::new(format!("no worker of the sandbox could be started: {problem}")))
        }
        None => Err(Failure::new("scripts are switched off")),
    }
}

fn rows(report: &LockdownReport) -> Vec<Value> {
    let row = |measure: &toolgate_sandbox::lockdown::Measure| {
        let (in_force, detail) = match &measure.state {
            MeasureState::InForce(detail) => (true, detail),
            MeasureState::Missing(why) => (false, why),
        };
        let what = measure.kind.to_string();
        json!({ "measure": what, "inForce": in_force, "detail": detail })
    };
    report.measures.iter().map(row).collect()
}
