//! `toolgate add`, `toolgate remove` and `toolgate list`

use std::{env, fs, path::PathBuf, process::ExitCode};

use serde_json::{Map, Value, json};
use toolgate::setup::vault_name;
use toolgate_clients::{Client, Edit, edited, is_toolgate, keep_secrets, without_secrets};
use toolgate_config::{CONTAINERS, Format, Transport, as_written, is_command_line};
use toolgate_registry::{Plan, PlanTarget, Registry, RegistryEntry, visible};
use url::Url;

use super::setup::own_program;

use crate::{
    cli::{Add, Globals, List, Output},
    decisions,
    failure::{CommandResult, Failure},
    folders, lineage,
    load::{self, Loaded},
    person::{self, ALLOW},
    print,
    table::table,
    trust::FolderFile,
};

/// The file that is changed: the one after `--config`, else the trusted one of the working folder, else the
/// user's own.
struct ServerFile {
    path: PathBuf,
    /// Its text; none if it is not there yet.
    text: Option<String>,
    container: Vec<String>,
    /// Whether it is the file of the working folder, which is trusted as it is now.
    is_folders: bool,
    servers: Map<String, Value>,
}

impl ServerFile {
    fn read(globals: &Globals) -> Result<Self, Failure> {
        let folders_file =
            folders::configuration_of("".as_ref()).filter(|_| globals.config.is_none());
        let trusted = folders_file
            .clone()
            .filter(|path| FolderFile::read(path.clone()).is_ok_and(|file| file.is_trusted()));
        let is_folders = trusted.is_some();
        let path = globals.config.clone().or(trusted).or_else(folders::own_configuration);
        let path = path.ok_or_else(|| {
            Failure::usage("this system has no folder for your configuration")
                .hint("name a file: --config FILE")
        })?;
        let text = if path.exists() { Some(load::read(&path)?) } else { None };
        let root = as_written(
            text.as_deref().unwrap_or_default(),
            Format::of_file(&path),
            &folders::shown(&path),
        )
        .map_err(|error| Failure::usage(error.to_string()))?;
        let container = container_of(&root, Format::of_file(&path));
        let mut servers = Some(&root);
        for key in &container {
            servers = servers.and_then(|object| object.get(key)?.as_object());
        }
        let servers = servers.cloned().unwrap_or_default();
        if let Some(other) = folders_file.filter(|_| !is_folders) {
            let (other, own) = (folders::shown(&other), folders::shown(&path));
            print::note(format!(
                "note: this is about {own}; in this folder toolgate uses {other} once it is trusted"
            ));
        }
        Ok(Self { path, text, container, is_folders, servers })
    }

    /// What follows a change of the file.
    fn tell_trust(&self) {
        if let Some(next) = self.next_step() {
            print::line(next);
        }
    }

    /// What a person has to do after a change of the file.
    fn next_step(&self) -> Option<&'static str> {
        let again = "Run `toolgate trust` again: it has another content than you have trusted.";
        self.is_folders.then_some(again)
    }

    /// An entry in the words of the client that the file belongs to.
    fn shaped(&self, name: &str, entry: Map<String, Value>) -> Map<String, Value> {
        let is_list = |server: &Value| {
            server["command"].is_array() || server["type"] == "local" || server["type"] == "remote"
        };
        let client = match self.container.first().map(String::as_str) {
            Some("extensions") => "goose",
            Some("mcp") if self.servers.values().any(is_list) => "opencode",
            Some("mcp") => "crush",
            _ => return entry,
        };
        let Some(client) = Client::named(client) else { return entry };
        let text = |key: &str| entry.get(key).and_then(Value::as_str);
        let fields = |key: &str| entry.get(key).and_then(Value::as_object).cloned();
        let args = entry.get("args").and_then(Value::as_array).into_iter().flatten();
        let args: Vec<String> = args.filter_map(|it| it.as_str().map(str::to_owned)).collect();
        let shaped = match (text("command"), text("url")) {
            (Some(command), _) => {
                Some(client.program_entry(command, &args, &fields("env").unwrap_or_default()))
            }
            (None, Some(url)) => client.url_entry(url, None).map(|mut shaped| {
                shaped.extend(fields("headers").map(|it| ("headers".to_owned(), it.into())));
                shaped
            }),
            (None, None) => None,
        };
        let Some(mut shaped) = shaped else { return entry };
        if shaped.contains_key("name") {
            shaped.insert("name".to_owned(), name.into());
        }
        shaped
    }

    /// Writes one change. The text is read again before.
    fn change(&self, edit: Edit) -> Result<(), Failure> {
        let shown = folders::shown(&self.path);
        let before = self.text.as_deref().filter(|text| !text.trim().is_empty());
        let before = before.unwrap_or("{\n  \"mcpServers\": {}\n}\n");
        let after = edited(before, Format::of_file(&self.path), &[edit])
            .map_err(|error| Failure::usage(format!("{shown} was not changed: {error}")))?;
        let mut writer = toolgate_clients::Writer::new("edit");
        writer
            .write(&self.path, self.text.as_deref(), &after, &[])
            .map_err(|error| Failure::new(error.to_string()))?;
        // Unlike after a setup, the change is small and can be taken back by the other command.
        for backup in writer.record.files.iter().filter_map(|file| file.backup.as_ref()) {
            let _ = fs::remove_file(backup);
        }
        Ok(())
    }
}

pub(crate) async fn add(globals: &Globals, arguments: &Add) -> CommandResult {
    // What is added is started later.
    lineage::refuse_servers()?;
    let (name, entry) = if arguments.from_registry {
        let (loaded, plan) = planned(globals, &arguments.name).await?;
        let missing = plan.missing(load::is_set);
        if !missing.is_empty() {
            print::note(format!("warning: not set where you are: {}", missing.join(", ")));
        }
        person::agrees(loaded.presence()?, plan.shown().trim_end(), ALLOW)?;
        consented(&plan)?
    } else {
        given(arguments)?
    };
    let added = write(globals, &name, entry, arguments.replace)?;
    print::line(format!("Added {name} to {}.", added.file));
    for stored in &added.secrets {
        print::line(format!("Its secret is in the vault: ${{keychain:{stored}}}."));
    }
    added.server_file.tell_trust();
    Ok(ExitCode::SUCCESS)
}

/// A server that was written to the configuration.
pub(super) struct AddedServer {
    /// The file, as it is shown.
    pub(super) file: String,
    /// The names of the secrets that went into the vault.
    secrets: Vec<String>,
    server_file: ServerFile,
}

impl AddedServer {
    /// What a person has to do before the server is used.
    pub(super) fn next_step(&self) -> Option<&'static str> {
        self.server_file.next_step()
    }
}

/// Writes a server to the configuration. Its secrets go into the vault.
pub(super) fn write(
    globals: &Globals,
    name: &str,
    mut entry: Map<String, Value>,
    replaces: bool,
) -> Result<AddedServer, Failure> {
    let is_plain = |name: &str| {
        // A name that looks like another would pass for it.
        !name.trim().is_empty()
            && name.len() <= 128
            && toolgate_policy::definitions::shown(name, 128) == name
    };
    if !is_plain(name) {
        return Err(Failure::usage(
            "a server needs a name of 1 to 128 characters that can be seen",
        ));
    }
    if is_toolgate(&entry, name, &own_program(env::current_exe().unwrap_or_default())) {
        return Err(Failure::usage(
            "this is toolgate itself, which would start itself without end",
        )
        .hint("add the servers that it should connect to"));
    }
    let file = ServerFile::read(globals)?;
    let shown = folders::shown(&file.path);
    if file.servers.contains_key(name) && !replaces {
        return Err(Failure::usage(format!("{shown} has a server `{name}` already"))
            .hint(format!("choose another name; `toolgate add {name} --replace` replaces it")));
    }
    let secrets = keep_secrets(name, &mut entry);
    if !secrets.is_empty() {
        let vault = load::required_store()?.vault(load::vault_key());
        for (stored, value) in &secrets {
            vault
                .save(&vault_name(stored), value)
                .map_err(|error| Failure::new(format!("the secret cannot be stored: {error}")))?;
        }
    }
    let (container, entry) = (file.container.clone(), file.shaped(name, entry));
    file.change(Edit::Set { container, name: name.to_owned(), entry })?;
    let secrets = secrets.into_iter().map(|(stored, _)| stored).collect();
    Ok(AddedServer { file: shown, secrets, server_file: file })
}

/// The server of the arguments.
pub(super) fn given(arguments: &Add) -> Result<(String, Map<String, Value>), Failure> {
    let is_url = |text: &str| text.starts_with("http://") || text.starts_with("https://");
    let mut entry = Map::new();
    let split = |text: &str, mark: char, what: &str| {
        let (name, value) = text
            .split_once(mark)
            .ok_or_else(|| Failure::usage(format!("`{text}` is not {what}")))?;
        Ok((name.trim().to_owned(), Value::from(value.trim())))
    };
    if let Some((program, args)) = arguments.command.split_first() {
        if args.is_empty() && is_command_line(program) {
            return Err(Failure::usage("the program and its arguments are one word")
                .hint(format!("split into args: toolgate add {} -- {program}", arguments.name)));
        }
        entry.insert("command".to_owned(), program.as_str().into());
        if !args.is_empty() {
            entry.insert("args".to_owned(), json!(args));
        }
        let env = arguments.env.iter().map(|text| split(text, '=', "NAME=VALUE"));
        let env: Map<String, Value> = env.collect::<Result<_, Failure>>()?;
        if !env.is_empty() {
            entry.insert("env".to_owned(), env.into());
        }
        return Ok((arguments.name.clone(), entry));
    }
    if !arguments.env.is_empty() {
        return Err(Failure::usage("a URL has no variables: --env is for a program")
            .hint("send a header instead: --header \"NAME: VALUE\""));
    }
    let (name, url) = match &arguments.url {
        Some(url) => (Some(arguments.name.clone()), url),
        None if is_url(&arguments.name) => (None, &arguments.name),
        None => {
            return Err(Failure::usage(format!("it is not said what `{}` runs or contacts", arguments.name)).hint(
                "write the program after `--`, or a URL: toolgate add files -- npx -y @modelcontextprotocol/server-filesystem .",
            ));
        }
    };
    let parsed = Url::parse(url).ok().filter(|parsed| is_url(url) && parsed.has_host());
    let parsed = parsed.ok_or_else(|| {
        Failure::usage(format!("`{url}` is not a URL that begins with http:// or https://"))
    })?;
    entry.insert("url".to_owned(), url.as_str().into());
    let headers = arguments.header.iter().map(|text| split(text, ':', "NAME: VALUE"));
    let headers: Map<String, Value> = headers.collect::<Result<_, Failure>>()?;
    if !headers.is_empty() {
        entry.insert("headers".to_owned(), headers.into());
    }
    Ok((name.unwrap_or_else(|| host_name(&parsed)), entry))
}

/// A name from the host of a URL: `linear` of `https://mcp.linear.app/mcp`.
fn host_name(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let mut labels: Vec<&str> = host.split('.').collect();
    let is_number = host.parse::<std::net::IpAddr>().is_ok();
    if labels.len() > 1 && !is_number {
        labels.pop();
    }
    let name =
        labels.iter().rev().find(|label| !["mcp", "api", "www", "co", "com"].contains(label));
    if is_number { "server".to_owned() } else { name.map_or(host, |name| name).to_owned() }
}

fn registry_of(loaded: &Loaded) -> Result<Registry, Failure> {
    loaded.registry().ok_or_else(no_registry)
}

pub(super) fn no_registry() -> Failure {
    Failure::usage("the configuration names no registry")
        .hint("add `\"registry\": { \"sources\": [\"https://…\"] }`; docs/servers.md has more")
}

/// What a server of the registry would run or contact.
pub(super) async fn planned(globals: &Globals, wanted: &str) -> Result<(Loaded, Plan), Failure> {
    let loaded = load::load_quietly(globals)?;
    let (name, version) = match wanted.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (wanted, None),
    };
    let entry = registry_of(&loaded)?.entry(name, version).await;
    let entry =
        entry.ok_or_else(|| Failure::usage(format!("no registry has a server `{wanted}`")))?;
    let plan = Plan::of(&entry)
        .map_err(|reason| Failure::new(format!("{name} cannot be added: {reason}")))?;
    Ok((loaded, plan))
}

/// The entry of a server of the registry, after a person has agreed to what it runs or contacts.
pub(super) fn consented(plan: &Plan) -> Result<(String, Map<String, Value>), Failure> {
    let mut server = Map::new();
    match &plan.target {
        PlanTarget::Run { command, args, env, variables, .. } => {
            server.insert("command".to_owned(), command.as_str().into());
            server.insert("args".to_owned(), json!(args));
            if !env.is_empty() {
                server.insert("env".to_owned(), json!(env));
            }
            let names: Vec<&str> =
                variables.iter().map(|variable| variable.name.as_str()).collect();
            if !names.is_empty() {
                server.insert("inheritEnv".to_owned(), json!(names));
            }
        }
        PlanTarget::Contact { url, headers } => {
            server.insert("url".to_owned(), url.as_str().into());
            if !headers.is_empty() {
                server.insert("headers".to_owned(), json!(headers));
            }
        }
    }
    let rule = format!("added to the configuration, as {}", plan.fingerprint());
    decisions::about_server("server", &plan.server, true, rule)?;
    Ok((plan.prefix.clone(), server))
}

pub(crate) fn remove(globals: &Globals, name: &str) -> CommandResult {
    lineage::refuse_servers()?;
    let file = ServerFile::read(globals)?;
    let shown = folders::shown(&file.path);
    if !file.servers.contains_key(name) {
        let names = file.servers.keys().map(String::as_str);
        return Err(Failure::usage(format!("{shown} has no server `{name}`")).meaning(name, names));
    }
    file.change(Edit::Remove { container: file.container.clone(), name: name.to_owned() })?;
    print::line(format!("Removed {name} from {shown}."));
    // What `add` or `setup` has stored for it, and nobody else uses.
    let text = |entry: &Value| entry.to_string();
    let own = file.servers.get(name).map(text).unwrap_or_default();
    let others: Vec<String> =
        file.servers.iter().filter(|(other, _)| *other != name).map(|(_, it)| text(it)).collect();
    for stored in stored_names(&own) {
        let is_used = others.iter().any(|other| stored_names(other).contains(&stored));
        let prefix = stored.split_once('/').map(|(prefix, _)| prefix);
        let is_own = prefix.is_some_and(|prefix| {
            let fits = |it: char| it.is_ascii_alphanumeric() || "_-.".contains(it);
            name.chars().map(|it| if fits(it) { it } else { '_' }).eq(prefix.chars())
        });
        if is_own && !is_used {
            load::required_store()?
                .vault(load::vault_key())
                .forget(&vault_name(stored))
                .map_err(|error| Failure::new(format!("the secret cannot be removed: {error}")))?;
            print::line(format!("Its secret is no longer in the vault: {stored}."));
        }
    }
    file.tell_trust();
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn list(globals: &Globals, arguments: &List) -> CommandResult {
    match &arguments.registry {
        Some(words) => list_registry(globals, words, arguments.output).await,
        None => list_configured(globals, arguments.output),
    }
}

/// How many servers of a registry a person is shown.
pub(super) const SHOWN_OF_REGISTRY: usize = 50;
/// How many characters of a description a table shows.
const DESCRIPTION_CHARACTERS: usize = 100;

async fn list_registry(globals: &Globals, words: &str, output: Output) -> CommandResult {
    let registry = registry_of(&load::load(globals)?)?;
    let servers = registry.servers().await;
    let matching = servers.matching(words);
    for note in &servers.notes {
        print::note(visible(note));
    }
    if output.json {
        let rows = matching.iter().map(|entry| {
            let RegistryEntry { name, version, title, description, source, .. } = entry;
            json!({ "name": name, "version": version, "title": title, "description": description, "source": source })
        });
        print::json(&json!({ "servers": rows.collect::<Vec<_>>(), "notes": servers.notes }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if matching.is_empty() {
        print::note("No server of the registry has these words.");
        return Ok(ExitCode::SUCCESS);
    }
    let rows = matching.iter().take(SHOWN_OF_REGISTRY).map(|entry| {
        let description: String = entry.description.chars().take(DESCRIPTION_CHARACTERS).collect();
        vec![visible(&entry.name), visible(&entry.version), visible(&description)]
    });
    print::line(table(&["server", "version", "what it says of itself"], rows));
    if matching.len() > SHOWN_OF_REGISTRY {
        let more = matching.len() - SHOWN_OF_REGISTRY;
        print::note(format!("{more} more: use --registry=WORDS, or --json"));
    }
    print::note("To add one: toolgate add SERVER --from-registry");
    Ok(ExitCode::SUCCESS)
}

fn list_configured(globals: &Globals, output: Output) -> CommandResult {
    let file = ServerFile::read(globals)?;
    if file.text.is_none() {
        let shown = folders::shown(&file.path);
        return Err(Failure::usage(format!("there is no {shown}")).hint(
            "`toolgate setup` makes it from the files of your clients; `toolgate add` adds a server",
        ));
    }
    let loaded = load::load(&Globals { config: Some(file.path.clone()), ..globals.clone() })?;
    let choices = loaded.choices(loaded.namespace.as_deref());
    let choices = choices.and_then(|choices| choices.read().ok()).unwrap_or_default();
    let rows = loaded.configuration.servers.iter().map(|server| {
        let written = file.servers.get(&server.name).and_then(Value::as_object);
        let target = match &server.transport {
            Ok(transport) => written.and_then(written_target).unwrap_or_else(|| match transport {
                Transport::Stdio { .. } => "a program".to_owned(),
                Transport::Http { url, .. } => host_of(url),
            }),
            Err(problem) => problem.message.clone(),
        };
        let state = match (&server.transport, server.settings.enabled) {
            (Err(_), _) => "unusable",
            (_, false) => "disabled",
            // By `toolgate disable`, or on the page.
            _ if choices.disabled.contains_key(&server.name) => "disabled",
            _ if server.settings.lazy => "lazy",
            _ => "enabled",
        };
        (server.name.clone(), state, target)
    });
    let rows: Vec<(String, &str, String)> = rows.collect();
    let shown = folders::shown(&file.path);
    if output.json {
        let servers = rows
            .iter()
            .map(|(name, state, target)| json!({ "name": name, "state": state, "target": target }));
        print::json(&json!({ "file": shown, "servers": servers.collect::<Vec<_>>() }))?;
    } else {
        print::note(format!("{shown}:"));
        let rows =
            rows.into_iter().map(|(name, state, target)| vec![name, state.to_owned(), target]);
        print::line(table(&["server", "state", "runs or contacts"], rows));
    }
    Ok(ExitCode::SUCCESS)
}

/// The names of the stored values in a text.
pub(super) fn stored_names(text: &str) -> Vec<&str> {
    let rest = text.split("${keychain:").skip(1);
    rest.filter_map(|rest| rest.split_once('}')).map(|(name, _)| name).collect()
}

/// The keys that lead to the servers of a file.
fn container_of(root: &Map<String, Value>, format: Format) -> Vec<String> {
    if let Some(key) = CONTAINERS.iter().find(|key| root.contains_key(**key)) {
        return vec![(*key).to_owned()];
    }
    let mcp = root.get("mcp").and_then(Value::as_object);
    let keys: &[&str] = match mcp {
        Some(mcp) if mcp.get("servers").is_some_and(Value::is_object) => &["mcp", "servers"],
        // Gemini CLI has settings under this key.
        Some(mcp) if mcp.values().all(Value::is_object) => &["mcp"],
        _ if format == Format::Yaml => &["extensions"],
        _ => &["mcpServers"],
    };
    keys.iter().map(ToString::to_string).collect()
}

/// What an entry runs or contacts, as it is written, without secrets.
pub(super) fn written_target(entry: &Map<String, Value>) -> Option<String> {
    let mut plain = entry.clone();
    // The words of all clients that secrets are looked for in.
    for (theirs, ours) in
        [("cmd", "command"), ("httpUrl", "url"), ("serverUrl", "url"), ("uri", "url")]
    {
        if let Some(value) = plain.remove(theirs) {
            plain.insert(ours.to_owned(), value);
        }
    }
    match plain.remove("command") {
        Some(Value::Array(mut words)) => {
            words.extend(plain.get("args").and_then(Value::as_array).cloned().unwrap_or_default());
            plain.insert("args".to_owned(), words.into());
        }
        Some(Value::Object(zed)) => {
            let args = zed.get("args").and_then(Value::as_array).cloned().unwrap_or_default();
            let words = zed.get("path").cloned().into_iter().chain(args);
            plain.insert("args".to_owned(), words.collect::<Vec<_>>().into());
        }
        Some(command) => drop(plain.insert("command".to_owned(), command)),
        None => {}
    }
    let shown = without_secrets(&plain);
    let args = shown.get("args").and_then(Value::as_array).into_iter().flatten();
    let words = shown.get("command").into_iter().chain(args).filter_map(Value::as_str);
    let words: Vec<&str> = words.collect();
    let url = || shown.get("url").and_then(Value::as_str).map(str::to_owned);
    if words.is_empty() { url() } else { Some(words.join(" ")) }
}

/// The host of a URL. The rest may be a secret.
fn host_of(url: &str) -> String {
    Url::parse(url)
        .ok()
        .and_then(|url| Some(format!("{}://{}", url.scheme(), url.host_str()?)))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_names_a_server() {
        for (url, name) in [
            ("https://mcp.linear.app/mcp", "linear"),
            ("https://api.githubcopilot.com/mcp/", "githubcopilot"),
            ("https://mcp.example.co.uk", "example"),
            ("http://localhost:8080/mcp", "localhost"),
            ("http://127.0.0.1:8080/mcp", "server"),
        ] {
            assert_eq!(host_name(&Url::parse(url).unwrap()), name, "{url}");
        }
    }
}
