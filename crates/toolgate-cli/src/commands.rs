//! The commands, one file each.

mod approvals;
mod approve;
mod audit;
mod call;
mod chat;
mod config;
mod definitions;
mod demo;
mod doctor;
mod enable;
mod engines;
mod eval;
mod findings;
mod fleet;
mod grants;
mod held;
mod inspect;
mod install;
mod login;
mod logins;
mod logout;
mod logs;
mod policy;
mod run;
mod runs;
mod search;
mod secret;
mod serve;
mod servers;
mod service;
mod setup;
mod skills;
mod status;
mod token;
mod tokens;
mod trust;
mod usage;
mod web;

use std::{
    fs,
    io::{self, Read as _},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use futures::future::join_all;
use indicatif::ProgressBar;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use toolgate::setup::ExposureMode;
use toolgate_host::{
    CallFailure, Connect, HostSettings, ServerSetup, ToolHost, ToolSession, UnsearchedServer,
    VectorProgress,
};
use toolgate_policy::definitions::shown as one_line;
use toolgate_search::StrategyName;
use toolgate_upstream::{CallOptions, Progress, StateKind};

use crate::{
    cli::{Cli, Command, Globals},
    failure::{CommandResult, Failure, INTERRUPTED},
    fleet::{self as fleet_of_process, FleetRole},
    interrupts::Interrupts,
    load::{self, Loaded},
    print,
};

/// How long a command waits for servers that it can do without.
const SOON: Duration = Duration::from_secs(3);
/// A terminal wraps longer messages.
const LONGEST_PROGRESS: usize = 200;

/// The text of a file, or of stdin if the name is `-`.
fn read_text(file: &Path, hint: &'static str) -> Result<String, Failure> {
    let text = if file.as_os_str() == "-" {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(file)
    };
    text.map_err(|error| {
        let failure = Failure::usage(format!("cannot read {}: {error}", file.display()));
        failure.hint(match error.kind() {
            io::ErrorKind::InvalidData => "save it as UTF-8",
            _ => hint,
        })
    })
}

pub(crate) async fn run(cli: Cli) -> CommandResult {
    crate::folders::check()?;
    let globals = &cli.globals.with_file(cli.command.file());
    match &cli.command {
        // These make the tables, or need none.
        Command::Fleet(_)
        | Command::Config(_)
        | Command::Completions { .. }
        | Command::Man { .. }
        | Command::SandboxWorker
        | Command::DemoServer { .. }
        | Command::Demo(_) => {}
        Command::Serve(_) | Command::Call(_) | Command::Run(_) | Command::Chat(_) => {
            fleet_of_process::join(globals, FleetRole::Node)?;
        }
        _ => fleet_of_process::join(globals, FleetRole::Command)?,
    }
    let outcome = Box::pin(run_command(cli.command, globals)).await;
    if let Some(fleet) = fleet_of_process::joined() {
        fleet.leave();
    }
    outcome
}

async fn run_command(command: Command, globals: &Globals) -> CommandResult {
    match command {
        Command::Serve(arguments) => serve::run(globals, &arguments).await,
        Command::Web(arguments) => web::run(globals, &arguments).await,
        Command::Setup(arguments) => setup::run(globals, &arguments).await,
        Command::Add(arguments) => servers::add(globals, &arguments).await,
        Command::Remove { name } => servers::remove(globals, &name),
        Command::List(arguments) => servers::list(globals, &arguments).await,
        Command::Service(command) => service::run(globals, &command),
        Command::Secret(command) => secret::run(globals, &command),
        Command::Status(arguments) => status::run(globals, &arguments).await,
        Command::Tokens(arguments) => tokens::run(globals, &arguments).await,
        Command::Token(command) => token::run(globals, &command).await,
        Command::Fleet(command) => fleet::run(globals, &command),
        Command::Search(arguments) => search::run(globals, arguments).await,
        Command::Inspect(arguments) => inspect::run(globals, arguments).await,
        Command::Call(arguments) => call::run(globals, arguments).await,
        Command::Run(arguments) => run::run(globals, &arguments).await,
        Command::Chat(arguments) => Box::pin(chat::run(globals, &arguments)).await,
        Command::Runs(arguments) => runs::run(globals, &arguments),
        Command::Policy(arguments) => policy::run(globals, &arguments).await,
        Command::Definitions(arguments) => definitions::run(globals, &arguments).await,
        Command::Grants(arguments) => grants::run(&arguments),
        Command::Audit(arguments) => audit::run(globals, &arguments),
        Command::Doctor(arguments) => doctor::run(globals, &arguments).await,
        Command::Engines(arguments) => engines::run(globals, &arguments).await,
        Command::Login(arguments) => login::run(globals, &arguments).await,
        Command::Logout { name } => logout::run(globals, &name).await,
        Command::Logins(arguments) => logins::run(globals, &arguments).await,
        Command::Enable(arguments) => enable::enable(globals, &arguments).await,
        Command::Disable { name } => enable::disable(globals, &name),
        Command::Approve(arguments) => approve::run(globals, &arguments),
        Command::Skills(arguments) => skills::run(globals, &arguments),
        Command::Logs(arguments) => logs::run(globals, &arguments).await,
        Command::Trust(arguments) => trust::run(&arguments),
        Command::Usage(arguments) => usage::run(globals, &arguments),
        Command::Config(command) => config::run(globals, &command),
        Command::Eval(arguments) => eval::run(globals, &arguments).await,
        Command::Demo(arguments) => demo::run(&arguments).await,
        Command::Completions { shell } => Ok(install::completions(shell)),
        Command::Man { folder } => install::man(folder.as_deref()),
        // `main` handles it before anything else is started.
        Command::SandboxWorker => Err(Failure::usage("a worker takes no other arguments")),
        Command::DemoServer { name } => demo::serve(&name),
    }
}

/// Reads the configuration, reports its problems, and starts a host.
fn start(globals: &Globals, mode: Option<ExposureMode>) -> Result<(Loaded, ToolHost), Failure> {
    let loaded = load::load(globals)?;
    load::report(&loaded);
    let host = ToolHost::start(loaded.settings(mode));
    Ok((loaded, host))
}

/// What a command needs of the servers.
#[derive(Clone, Copy)]
enum Needed<'a> {
    /// The tools of all servers, or of one.
    Tools(Option<&'a str>),
    /// The tools of the servers that answer soon.
    Soon,
    /// The tools of the servers that this script names, and of those that answer soon.
    Script(&'a str),
    /// The tools with these names.
    Names(&'a [String]),
}

/// [`start`] for a command that makes one request. Servers in the cache are connected when they are
/// called. Those that are not in the cache are waited for if they are needed. A name that is not in the
/// cache may be new: then the servers are connected that it may belong to. A `strategy` replaces the
/// configured one.
async fn start_when_needed(
    globals: &Globals,
    needed: Needed<'_>,
    strategy: Option<StrategyName>,
) -> Result<(Loaded, ToolHost), Failure> {
    let loaded = load::load(globals)?;
    load::report(&loaded);
    let mut settings = HostSettings { connect: Connect::WhenNeeded, ..loaded.settings(None) };
    if let Some(strategy) = strategy {
        settings.strategy = strategy;
        check_subagent(&settings)?;
    }
    if matches!(needed, Needed::Names(_)) {
        // These commands do not search, so they need no encoder.
        settings.encoder = None;
    }
    let host = ToolHost::start(settings);
    host.recalled().await;
    let bar = print::progress(host.settings().servers.len() as u64, "connecting");
    match needed {
        Needed::Tools(None) => host.all_known().await,
        Needed::Script(code) => {
            let settings = host.settings();
            let is_named = |setup: &&ServerSetup| {
                let beginning = setup.entry.name_beginning();
                let beginning = beginning.as_deref().map(|it| it.trim_end_matches('_'));
                code.contains(setup.spec.name.as_str())
                    || beginning.is_some_and(|beginning| code.contains(beginning))
            };
            let named = settings.servers.iter().filter(is_named);
            join_all(named.map(|setup| host.known(setup.spec.name.as_str()))).await;
            host.known_soon(SOON).await;
        }
        Needed::Soon => {
            let missing = host.known_soon(SOON).await;
            if !missing.is_empty() {
                let missing = missing.iter().map(unsearched).collect::<Vec<_>>().join(", ");
                print::note(format!("not searched: {missing}"));
            }
        }
        Needed::Tools(Some(server)) => {
            if let Err(failure) = check_server(&host, server) {
                host.shutdown().await;
                return Err(failure);
            }
            host.known(server).await;
        }
        Needed::Names(names) => {
            for name in names {
                host.look_for(name).await;
            }
        }
    }
    bar.finish_and_clear();
    // What is needed was waited for.
    host.end_first_lists();
    Ok((loaded, host))
}

fn unsearched(missing: &UnsearchedServer) -> String {
    let UnsearchedServer { server, was_silent } = missing;
    if *was_silent {
        format!("{server} (it did not answer the last time; `toolgate status` waits for it)")
    } else {
        format!("{server} (not answered yet)")
    }
}

/// Refuses a server that does not exist, and suggests similar names.
fn check_server(host: &ToolHost, name: &str) -> Result<(), Failure> {
    let catalog = host.catalog().read();
    if catalog.server(name).is_some() {
        return Ok(());
    }
    let known = catalog.servers().map(|entry| entry.name.as_str());
    Err(Failure::usage(format!("there is no server `{name}`")).meaning(name, known))
}

/// Connects to all servers and waits for them, with a progress bar.
async fn settle(host: &ToolHost) {
    host.wake().await;
    let settings = host.settings();
    let servers = &settings.servers;
    let bar = print::progress(servers.len() as u64, "connecting");
    // They connect at the same time, whatever the order of waiting.
    for setup in servers {
        host.servers().settled(setup.spec.name.as_str()).await;
        bar.inc(1);
    }
    bar.finish_and_clear();
}

/// [`settle`] for a limited time. Returns the servers that have not answered by then, and that nothing
/// is known of.
async fn settle_within(host: &ToolHost, limit: Duration) -> Vec<String> {
    let _ = tokio::time::timeout(limit, settle(host)).await;
    let settings = host.settings();
    let names = settings.servers.iter().map(|setup| setup.spec.name.as_str());
    let is_late = |name: &&str| {
        let is_connecting =
            host.servers().state(name).is_some_and(|state| state.kind == StateKind::Connecting);
        is_connecting && host.catalog().read().tools_of(name).is_empty()
    };
    names.filter(is_late).map(str::to_owned).collect()
}

/// Waits until all tools have a vector of the configured encoder, with a progress bar. An encoder
/// that makes no progress is not waited for: search works without it.
async fn encode(host: &ToolHost) {
    const STALLED: Duration = Duration::from_secs(10);
    let bar = print::progress(0, "encoding");
    let moved = AtomicBool::new(true);
    let mut known = 0;
    let mut seen = |progress: &VectorProgress| {
        bar.set_length(progress.total as u64);
        bar.set_position(progress.known as u64);
        if progress.known != known {
            known = progress.known;
            moved.store(true, Ordering::Relaxed);
        }
    };
    let mut encoded = std::pin::pin!(host.encoded(&mut seen));
    while moved.swap(false, Ordering::Relaxed) {
        if tokio::time::timeout(STALLED, &mut encoded).await.is_ok() {
            break;
        }
    }
    bar.finish_and_clear();
}

/// Calls a meta-tool as an agent would, with the whole result. An error result is a failure.
async fn meta_call(session: &ToolSession, tool: &str, arguments: Value) -> Result<Value, Failure> {
    let arguments = match arguments {
        Value::Object(arguments) => arguments,
        _ => Map::new(),
    };
    let result = session.call_exact(tool, arguments, CallOptions::default()).await;
    let result = result.map_err(failed_call)?;
    if is_error(&result) { Err(Failure::usage(text_of(&result))) } else { Ok(result) }
}

/// The options of a call from a shell: `bar` shows its progress, and Ctrl-C cancels it, so that the
/// server is notified and the output so far is shown.
fn interruptible(bar: &ProgressBar, shown: fn(Progress) -> String) -> CallOptions {
    let (progress, mut reports) = tokio::sync::mpsc::channel::<Progress>(64);
    let bar = bar.clone();
    tokio::spawn(async move {
        while let Some(report) = reports.recv().await {
            bar.set_message(one_line(&shown(report), LONGEST_PROGRESS));
        }
    });
    let cancel = CancellationToken::new();
    let interrupted = cancel.clone();
    // It listens before a question is shown. Where it cannot, Ctrl-C ends the program.
    if let Ok(mut interrupts) = Interrupts::listen() {
        tokio::spawn(async move {
            interrupts.next().await;
            interrupted.cancel();
            // A second Ctrl-C does not wait for the servers.
            interrupts.next().await;
            std::process::exit(i32::from(INTERRUPTED));
        });
    }
    CallOptions { progress: Some(progress), cancel, ..CallOptions::default() }
}

fn failed_call(failure: CallFailure) -> Failure {
    match failure {
        CallFailure::UnknownTool(message) | CallFailure::Refused { message, .. } => {
            Failure::new(message)
        }
        CallFailure::Cancelled => Failure::interrupted("the call was cancelled"),
    }
}

/// Whether a result has `isError`.
fn is_error(result: &Value) -> bool {
    result.get("isError").and_then(Value::as_bool).unwrap_or_default()
}

/// The text of a result.
fn text_of(result: &Value) -> String {
    let blocks = result.get("content").and_then(Value::as_array);
    let parts: Vec<String> = blocks.into_iter().flatten().map(block_text).collect();
    if parts.is_empty() {
        let data = result.get("structuredContent").unwrap_or(result);
        serde_json::to_string_pretty(data).unwrap_or_default()
    } else {
        parts.join("\n")
    }
}

fn block_text(block: &Value) -> String {
    let field = |name: &str| block.get(name).and_then(Value::as_str);
    let size = |name: &str| field(name).map_or(0, str::len);
    match field("type") {
        Some("text") => field("text").unwrap_or_default().to_owned(),
        Some(kind @ ("image" | "audio")) => format!(
            "[{kind} {}, {} characters of base64; --json shows it]",
            field("mimeType").unwrap_or("of unknown type"),
            size("data")
        ),
        Some("resource_link") => format!("[resource {}]", field("uri").unwrap_or_default()),
        _ => block.to_string(),
    }
}

/// Refuses the strategy `subagent` without a model.
fn check_subagent(settings: &HostSettings) -> Result<(), Failure> {
    if settings.strategy != StrategyName::Subagent || settings.subagent.is_some() {
        return Ok(());
    }
    Err(Failure::usage("there is no model to ask, which the strategy `subagent` needs").hint(
        "name one in the configuration: \"toolSearch\": { \"subagent\": { \"endpoint\": \
         \"http://localhost:11434/v1\", \"model\": \"…\" } }; docs/search.md has more",
    ))
}
