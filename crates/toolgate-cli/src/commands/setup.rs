//! `toolgate setup`

mod clients;
mod merge;
mod plan;
mod probe;
mod source;
mod undo;

use std::{
    collections::BTreeMap,
    env, fmt, fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Map, Value, json};
use toolgate::setup::vault_name;
use toolgate_clients::{Client, OwnProgram, Places, System, Writer, difference};
use toolgate_config::Format;
use toolgate_store::{TokenOrder, utc};

pub(crate) use self::clients::{ClientState, clients};
use self::{
    plan::Plan,
    probe::Probe,
    source::{Source, projects, sources},
};
use super::service;
use crate::{
    cli::{ClientTransport, Globals, Output, Setup},
    failure::{CommandResult, Failure},
    folders, lineage, load,
    person::OpenTerminal,
    print,
    table::{grouped, table},
    trust::FolderFile,
};

/// The name of toolgate's own entry in the files of clients.
pub(crate) const OWN_NAME: &str = "toolgate";
/// What stands for a token that is not made yet.
const NO_TOKEN: &str = "[hidden]";
/// The port of a gateway, unless another one is chosen.
const DEFAULT_PORT: u16 = 8808;
/// The address of such a gateway.
const DEFAULT_ADDRESS: &str = "127.0.0.1:8808";

pub(crate) async fn run(globals: &Globals, arguments: &Setup) -> CommandResult {
    if arguments.undo {
        lineage::refuse_servers()?;
        return undo::run(arguments);
    }
    if !arguments.dry_run {
        // Servers must not change what starts toolgate.
        lineage::refuse_servers()?;
    }
    let is_asked = !arguments.yes && !arguments.dry_run;
    if arguments.output.json && is_asked {
        return Err(Failure::usage("--json asks nothing").hint("add --yes or --dry-run"));
    }
    let open = || {
        let hint = "--yes writes without asking, and --dry-run only shows";
        OpenTerminal::open().map_err(|failure| failure.hint(hint))
    };
    let mut terminal = if is_asked { Some(open()?) } else { None };
    let target = target(globals, arguments)?;
    let connection = Connection::new(arguments, &target)?;
    let variable = |name: &str| env::var(name).ok();
    let places = places(&variable)?;
    if arguments.project && places.working_folder == places.home {
        return Err(
            Failure::usage("your home is no project").hint("run it in the folder of the project")
        );
    }
    let found = sources(arguments, &places);
    if found.is_empty()
        && let Some(path) = projects(&places, &[]).first().filter(|_| !arguments.project)
    {
        let problem = format!(
            "no client of yours has a configuration file; {} belongs to this project",
            folders::shown(path)
        );
        return Err(Failure::usage(problem).hint("take it over: `toolgate setup --project`"));
    }
    if found.is_empty() {
        return Err(Failure::usage("no client with a configuration file was found").hint(
            "name one, and its file is made: `toolgate setup --client cursor`; or add a server: `toolgate add NAME -- COMMAND`",
        ));
    }
    let mut ask = |question: &str| match &mut terminal {
        Some(terminal) => terminal.answer(question),
        None => Ok(String::new()),
    };
    let planned = PlannedSetup::new(&target, found, connection, arguments, &mut ask).await?;
    let PlannedSetup { plan, probe, connection } = &planned;
    if !arguments.project {
        for path in projects(&places, &plan.sources) {
            print::note(format!(
                "note: {} belongs to this project, and stays as it is: `toolgate setup --project` takes it over",
                folders::shown(&path)
            ));
        }
    }
    let mut failed = Vec::new();
    if arguments.output.json {
        if !arguments.dry_run && plan.has_changes() {
            failed = write(plan, connection, Together::Each)?;
        }
        print::json(&report(plan, probe, arguments, &failed))?;
    } else {
        let shown = planned.shown(arguments);
        print::line(shown.strip_suffix('\n').unwrap_or(&shown));
        if !plan.has_changes() {
            print::line("Everything is set up already: nothing to write.");
        } else if arguments.dry_run {
            print::line("Nothing was written (--dry-run).");
        } else {
            if let Some(terminal) = &mut terminal {
                let answer = terminal.answer("Write these files? [y/N] ")?;
                if !matches!(answer.as_str(), "y" | "yes") {
                    return Err(Failure::new("nothing was written"));
                }
            }
            failed = write(plan, connection, Together::Each)?;
            conclude(plan, probe, arguments, &failed);
        }
    }
    let well = failed.is_empty()
        && probe.failed().next().is_none()
        && plan.sources.iter().all(|source| source.problem.is_none());
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What a setup would write, what its servers have said, and how clients reach toolgate.
pub(super) struct PlannedSetup {
    plan: Plan,
    probe: Probe,
    connection: Connection,
}

impl fmt::Debug for PlannedSetup {
    /// Without the secrets of clients.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PlannedSetup")
    }
}

/// Answers a question of a setup. An empty answer is the choice that the question names first.
type Asks<'a> = &'a mut (dyn FnMut(&str) -> Result<String, Failure> + Send);

impl PlannedSetup {
    /// Plans a setup: merges the servers, and starts them once. Nothing is written.
    async fn new(
        target: &Path,
        found: Vec<Source>,
        connection: Connection,
        arguments: &Setup,
        ask: Asks<'_>,
    ) -> Result<Self, Failure> {
        let mut plan = Plan::new(target, found, &connection, &mut *ask)?;
        let unusable = probe::leave_unusable(&mut plan, arguments.project, &connection)?;
        let is_probed = !arguments.no_probe && (!arguments.project || is_trusted(&plan));
        let mut probe = if is_probed { Probe::run(&plan).await? } else { Probe::default() };
        if !is_probed && !arguments.no_probe {
            print::note(
                "note: the servers of this folder are not started, and nothing of it is run, before you trust it",
            );
        }
        let own = plan.leave_own(&probe.own, &connection)?;
        probe.rows.retain(|row| !own.contains(&row.name));
        if !arguments.all {
            probe.leave_failed(&mut plan, &connection, ask)?;
        }
        probe.rows.retain(|row| !unusable.iter().any(|other| other.name == row.name));
        probe.rows.extend(unusable);
        Ok(Self { plan, probe, connection })
    }

    /// Plans the setup of this user's clients for the page, which asks nothing: `differing` is the answer where two
    /// servers differ, and a server that does not start stays where it is.
    pub(super) async fn for_page(globals: &Globals, differing: &str) -> Result<Self, Failure> {
        let arguments = of_page();
        let target = target(globals, &arguments)?;
        let connection = Connection::new(&arguments, &target)?;
        let found = {
            let variable = |name: &str| env::var(name).ok();
            sources(&arguments, &places(&variable)?)
        };
        let mut answer = |question: &str| {
            let is_differing = question.ends_with(merge::QUESTION);
            Ok(if is_differing { differing.to_owned() } else { String::new() })
        };
        Self::new(&target, found, connection, &arguments, &mut answer).await
    }

    /// Whether anything would be written.
    pub(super) fn has_changes(&self) -> bool {
        self.plan.has_changes()
    }

    /// What the page shows: the same as the command.
    pub(super) fn preview(&self) -> String {
        self.shown(&of_page())
    }

    /// Writes all files or none. Returns what is said of it; an error says that nothing was written.
    pub(super) fn write(&self) -> Result<String, Failure> {
        let failed = write(&self.plan, &self.connection, Together::AllOrNone)?;
        let is_written = |path: &&Path| !failed.iter().any(|failure| failure.is_of(path));
        let all = self.plan.changes().map(|(path, ..)| path);
        let written: Vec<String> = all.filter(is_written).map(folders::shown).collect();
        let said = format!("Written: {}. Undo restores what was written.", written.join(", "));
        let why: Vec<&str> = failed.iter().map(|failure| failure.why.as_str()).collect();
        Ok(if why.is_empty() { said } else { format!("{said} Not written: {}.", why.join("; ")) })
    }
}

/// A setup of all clients of this user.
fn of_page() -> Setup {
    Setup {
        clients: Vec::new(),
        project: false,
        yes: false,
        all: false,
        dry_run: true,
        no_probe: false,
        transport: ClientTransport::Stdio,
        undo: false,
        output: Output { json: false },
    }
}

/// Restores the files that the last setup has changed. Returns what became of each.
pub(super) fn undo_last() -> Result<Vec<String>, Failure> {
    undo::restore(false).map(|(lines, _)| lines)
}

/// The files that an undo would restore; empty if there is no setup to undo.
pub(super) fn undoable() -> Vec<String> {
    undo::restore(true).map(|(lines, _)| lines).unwrap_or_default()
}

/// Whether a person has trusted the folder's file, and it has all servers already.
fn is_trusted(plan: &Plan) -> bool {
    plan.target_after.is_none()
        && FolderFile::read(plan.target.clone()).is_ok_and(|file| file.is_trusted())
}

/// By what toolgate is recognised: the program, and the ports of the service.
pub(crate) fn own_program(program: PathBuf) -> OwnProgram {
    let service = service::address().ok().map(|address| address.port());
    OwnProgram { program, ports: std::iter::once(DEFAULT_PORT).chain(service).collect() }
}

/// The file that the servers are imported to.
fn target(globals: &Globals, arguments: &Setup) -> Result<PathBuf, Failure> {
    let chosen = if arguments.project {
        Some(PathBuf::from("toolgate.json"))
    } else {
        globals.config.clone()
    };
    let path = chosen.or_else(folders::own_configuration).ok_or_else(|| {
        Failure::usage("this system has no folder for your configuration")
            .hint("name a file: --config FILE")
    })?;
    std::path::absolute(&path)
        .map_err(|error| Failure::usage(format!("cannot find {}: {error}", path.display())))
}

fn places(variable: &dyn Fn(&str) -> Option<String>) -> Result<Places<'_>, Failure> {
    let system = match () {
        () if cfg!(windows) => System::Windows,
        () if cfg!(target_os = "macos") => System::Mac,
        () => System::Linux,
    };
    let home = ["HOME", "USERPROFILE"].into_iter().find_map(variable).map(PathBuf::from);
    let home = home.filter(|home| home.is_absolute());
    let home = home.ok_or_else(|| Failure::usage("HOME is not set, so that no files are found"))?;
    let working_folder = env::current_dir()
        .map_err(|error| Failure::usage(format!("cannot find the working folder: {error}")))?;
    Ok(Places { system, home, working_folder, variable })
}

/// How clients reach toolgate.
struct Connection {
    command: String,
    args: Vec<String>,
    env: Map<String, Value>,
    /// The URL of the service.
    url: Option<String>,
    needs_token: bool,
    own: OwnProgram,
}

impl Connection {
    fn new(arguments: &Setup, target: &Path) -> Result<Self, Failure> {
        // Applications of the desktop do not have the PATH of a shell.
        let program = env::current_exe()
            .map_err(|error| Failure::new(format!("cannot find this program: {error}")))?;
        let mut args = vec!["serve".to_owned(), "--stdio".to_owned()];
        if !arguments.project {
            args.extend(["--config".to_owned(), target.display().to_string()]);
        }
        let mut environment = Map::new();
        for name in ["TOOLGATE_HOME", "TOOLGATE_VAULT"] {
            if let Ok(value) = env::var(name) {
                environment.insert(name.to_owned(), value.into());
            }
        }
        if env::var_os("TOOLGATE_VAULT_KEY").is_some() {
            print::note(
                "warning: clients start toolgate without TOOLGATE_VAULT_KEY\n  hint: set it where your clients start, or stored values cannot be read",
            );
        }
        let is_http = arguments.transport == ClientTransport::Http;
        let needs_token = is_http && service::needs_token(target);
        let address = match is_http.then(service::address).transpose() {
            // Such a gateway starts only when there is a token, which is made here.
            Err(_) if needs_token => {
                print::note(format!(
                    "note: no gateway runs yet; start it after this: `toolgate serve --http {DEFAULT_ADDRESS}`, or `toolgate \
                     service install`"
                ));
                Some(DEFAULT_ADDRESS.to_owned())
            }
            address => address?.map(|address| address.to_string()),
        };
        let url = address.map(|address| format!("http://{address}/mcp"));
        Ok(Self {
            command: program.display().to_string(),
            args,
            env: environment,
            url,
            needs_token,
            own: own_program(program),
        })
    }

    /// Toolgate's own entry for a client. A token is made only when the file is written.
    fn entry(&self, client: &Client, token: Option<&str>) -> Map<String, Value> {
        let url = self.url.as_deref().and_then(|url| client.url_entry(url, token));
        url.unwrap_or_else(|| client.program_entry(&self.command, &self.args, &self.env))
    }

    /// What a person has to add for Continue, which has a file for each server; none if it is not there, or has
    /// toolgate already.
    fn file_of_continue(&self, arguments: &Setup) -> Option<String> {
        let home = ["HOME", "USERPROFILE"].into_iter().find_map(|name| env::var(name).ok())?;
        let folder = Path::new(&home).join(".continue");
        let path = folder.join("mcpServers").join("toolgate.yaml");
        let is_wanted = arguments.clients.is_empty() && !arguments.project;
        if !is_wanted || !folder.is_dir() || path.exists() {
            return None;
        }
        // JSON is YAML.
        let env = if self.env.is_empty() {
            String::new()
        } else {
            format!("\n    env: {}", Value::Object(self.env.clone()))
        };
        Some(format!(
            "Continue has a file for each server, which setup does not write. Add {} yourself:\nname: toolgate\nversion: 0.0.1\nschema: v1\n\
             mcpServers:\n  - name: toolgate\n    command: {}\n    args: {}{env}\n",
            folders::shown(&path),
            json!(self.command),
            json!(self.args),
        ))
    }
}

impl PlannedSetup {
    /// The servers, the notes and the changes of all files, without secrets.
    fn shown(&self, arguments: &Setup) -> String {
        let Self { plan, probe, connection } = self;
        let mut text = String::new();
        let mut say = |line: &str| {
            text.push_str(line);
            text.push('\n');
        };
        // The file of a client with a problem stays as it is, and nobody knows what it costs.
        let changed = || plan.sources.iter().filter(|source| source.problem.is_none());
        let rows = changed().map(|source| {
            let (now, after) = probe.tokens_of(source);
            let count = |tokens: Option<u64>| tokens.map_or_else(|| "?".to_owned(), grouped);
            vec![source.label(), source.taken.len().to_string(), count(now), count(after)]
        });
        say(&table(&["client", ">servers", ">tokens now", ">after"], rows));
        say("");
        for source in &plan.sources {
            if let Some(problem) = &source.problem {
                say(&format!("{}: not changed: {problem}", source.label()));
            }
        }
        for source in changed() {
            if let (Some(now), Some(after)) = probe.tokens_of(source)
                && after > now
            {
                say(&format!(
                    "{}: a session starts with {} more than now.",
                    source.label(),
                    grouped(after - now)
                ));
            }
        }
        if !probe.rows.is_empty() {
            let rows = probe.rows.iter().map(|row| {
                let remark = [row.reason.as_deref(), row.action.as_deref()]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
                    .join("; ");
                let is_known = row.reason.is_none() && row.state != "not started";
                let count = |number| if is_known { grouped(number) } else { "?".to_owned() };
                vec![
                    row.name.clone(),
                    row.state.clone(),
                    count(row.tools),
                    count(row.tokens),
                    remark,
                ]
            });
            say(&table(&["server", "state", ">tools", ">tokens", ""], rows));
            say("");
        }
        for note in &plan.notes {
            say(&format!("note: {note}"));
        }
        for (name, _) in &plan.secrets {
            say(&format!("note: a secret goes into the vault, as ${{keychain:{name}}}"));
        }
        for (path, before, after) in plan.changes() {
            let shown = difference(
                before.unwrap_or_default(),
                after,
                Format::of_file(path),
                &folders::shown(path),
            );
            let shown = toolgate_clients::hidden(&shown, &plan.secret_values());
            say(shown.trim_end());
            say("");
        }
        for source in &plan.sources {
            if let Some(snippet) = &source.snippet {
                say(&format!(
                    "Add this to {} yourself:\n{snippet}\n",
                    folders::shown(&source.path)
                ));
            }
        }
        if let Some(file) = connection.file_of_continue(arguments) {
            say(&file);
        }
        if arguments.dry_run && !plan.secrets.is_empty() {
            say("Values of secrets are not shown.");
        }
        text
    }
}

/// A file that was not written, and why.
struct NotWritten {
    path: PathBuf,
    why: String,
}

impl NotWritten {
    /// Whether it is this file, perhaps behind a link.
    fn is_of(&self, path: &Path) -> bool {
        self.path == path || fs::canonicalize(path).is_ok_and(|real| self.path == real)
    }
}

/// Which files are written if one of them cannot be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Together {
    /// All that can be, but for those of clients if the configuration cannot.
    Each,
    /// None.
    AllOrNone,
}

/// Writes the record, the secrets, the configuration and the files of clients. Returns the files that were not
/// written.
fn write(
    plan: &Plan,
    connection: &Connection,
    together: Together,
) -> Result<Vec<NotWritten>, Failure> {
    let store = load::required_store()?;
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let digits: String = utc(seconds).chars().filter(char::is_ascii_digit).collect();
    let (day, time) = digits.split_at_checked(8).unwrap_or((&digits, ""));
    let stamp = format!("{day}-{time}");
    let mut writer = Writer::new(&stamp);
    let stopped = |why: String| Failure::new(why).hint("nothing was written");
    if let Some(after) = plan.target_after.as_deref() {
        writer
            .plan(&plan.target, plan.target_before.as_deref(), after, &plan.target_edits)
            .map_err(|error| stopped(error.to_string()))?;
    }
    let (mut failed, mut tokens) = (Vec::new(), Vec::new());
    for source in &plan.sources {
        let Some(after) = &source.after else { continue };
        let mut after = after.clone();
        if connection.needs_token && source.client.can_http() {
            let order = TokenOrder {
                name: Some(format!("setup-{}-{stamp}", source.client.id)),
                expires: None,
                namespaces: Vec::new(),
            };
            let (_, token) = store.access_tokens().create(&order, seconds)?;
            after = source
                .text_with(&connection.entry(source.client, Some(token.expose())))
                .map_err(|error| stopped(error.to_string()))?;
            tokens.extend(order.name);
        }
        // The record is about what is changed, and the token is nobody else's business.
        if let Err(error) = writer.plan(&source.path, source.text.as_deref(), &after, &source.edits)
        {
            failed.push(NotWritten { path: source.path.clone(), why: error.to_string() });
        }
    }
    let forget_tokens = || {
        for name in &tokens {
            let _ = store.access_tokens().revoke(name);
        }
    };
    if let (Together::AllOrNone, Some(first)) = (together, failed.first()) {
        forget_tokens();
        return Err(stopped(first.why.clone()));
    }
    // With the record first, everything can be undone even if this process ends anywhere below.
    writer.record.tokens.clone_from(&tokens);
    writer.record.secrets = plan.secrets.iter().map(|(name, _)| name.clone()).collect();
    let cannot = |error: std::io::Error| stopped(format!("cannot store what is changed: {error}"));
    let record = writer.record.store(&undo::records()?, &stamp).map_err(cannot)?;
    let vault = (!plan.secrets.is_empty()).then(|| store.vault(load::vault_key()));
    let take_back = || {
        for (name, _) in &plan.secrets {
            let _ = vault.as_ref().map(|vault| vault.forget(&vault_name(name)));
        }
        forget_tokens();
        let _ = fs::remove_file(&record);
    };
    for (name, value) in &plan.secrets {
        let saved = vault.as_ref().map_or(Ok(()), |vault| vault.save(&vault_name(name), value));
        saved.map_err(|error| {
            take_back();
            stopped(format!("the secrets cannot be stored: {error}"))
        })?;
    }
    let errors = match together {
        Together::Each => writer.apply(plan.target_after.is_some()),
        Together::AllOrNone => writer.apply_together(),
    };
    if let Some(error) = errors.first()
        && writer.record.files.is_empty()
    {
        take_back();
        return Err(stopped(error.to_string()));
    }
    if !errors.is_empty() {
        // Without it the record has files that were not changed, and undo leaves them as they are.
        let _ = writer.record.update(&record);
    }
    failed.extend(
        errors
            .into_iter()
            .map(|error| NotWritten { path: error.path().to_owned(), why: error.to_string() }),
    );
    Ok(failed)
}

fn conclude(plan: &Plan, probe: &Probe, arguments: &Setup, failed: &[NotWritten]) {
    for failure in failed {
        print::line(format!("error: not written: {}", failure.why));
    }
    if let Some((before, after)) = probe.before_and_after() {
        let outcome = if after <= before {
            format!("{} saved", grouped(before - after))
        } else {
            format!(
                "{} more, because there are few; scripts and the policy come with them",
                grouped(after - before)
            )
        };
        print::line(format!(
            "A session with all servers starts with {} tokens of tools and instructions instead of {}: {outcome}.",
            grouped(after),
            grouped(before),
        ));
    }
    print::line(format!(
        "The servers are in {}; all commands use it without --config.",
        folders::shown(&plan.target)
    ));
    let mut told: BTreeMap<&str, &str> = BTreeMap::new();
    let is_written = |source: &&Source| {
        source.after.is_some() && !failed.iter().any(|failure| failure.is_of(&source.path))
    };
    for source in plan.sources.iter().filter(is_written) {
        told.insert(source.client.name, source.client.reload);
        if source.client.id == "claude-code" && source.path.ends_with(".claude.json") {
            print::line(
                "Claude Code writes its file while it runs: end its sessions, and look with `claude mcp list`.",
            );
        }
    }
    for (client, reload) in told {
        print::line(format!("{client}: {reload}."));
    }
    if arguments.project {
        print::line(
            "Run `toolgate trust` in this folder: toolgate uses its toolgate.json only after that.",
        );
    }
    let shareable = plan.sources.iter().filter(|source| source.client.can_http()).count();
    if arguments.transport == ClientTransport::Stdio && shareable > 1 && !arguments.project {
        print::line(format!(
            "{shareable} clients can share one gateway, so that each server runs once: `toolgate service install`, then \
             `toolgate setup --transport http`."
        ));
    }
    print::line("`toolgate setup --undo` restores all files.");
}

fn report(plan: &Plan, probe: &Probe, arguments: &Setup, failed: &[NotWritten]) -> Value {
    let clients = plan.sources.iter().map(|source: &Source| {
        let (now, after) = probe.tokens_of(source);
        json!({
            "client": source.client.id, "file": folders::shown(&source.path), "servers": source.taken, "tokensNow": now,
            "tokensAfter": after, "changes": source.after.is_some(), "problem": source.problem, "reload": source.client.reload,
        })
    });
    let (before, after) = probe.before_and_after().unzip();
    json!({
        "file": folders::shown(&plan.target),
        "clients": clients.collect::<Vec<_>>(),
        "servers": probe.rows,
        "secrets": plan.secrets.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        "notes": plan.notes,
        "changes": plan.has_changes(),
        "written": plan.has_changes() && !arguments.dry_run,
        "notWritten": failed.iter().map(|failure| &failure.why).collect::<Vec<_>>(),
        "tokensBefore": before,
        "tokensAfter": after,
    })
}
