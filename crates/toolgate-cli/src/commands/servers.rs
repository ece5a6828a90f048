//! `toolgate add`, `toolgate remove` and `toolgate list`

use std::{fs, path::PathBuf, process::ExitCode};

use serde_json::{Map, Value, json};
use toolgate::setup::vault_name;
use toolgate_clients::{Edit, edited, keep_secrets};
use toolgate_config::{CONTAINERS, Format, Transport, as_written};
use toolgate_registry::{Plan, PlanTarget};
use url::Url;

use crate::{
    cli::{Add, Globals, Output},
    decisions,
    failure::{CommandResult, Failure},
    folders, lineage, load,
    person::{self, ALLOW},
    print,
    table::table,
};

/// The file that is changed: the one after `--config`, else the user's own.
struct ServerFile {
    path: PathBuf,
    /// Its text; none if it is not there yet.
    text: Option<String>,
    container: String,
    servers: Map<String, Value>,
}

impl ServerFile {
    fn read(globals: &Globals) -> Result<Self, Failure> {
        let path = globals.config.clone().or_else(folders::own_configuration).ok_or_else(|| {
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
        let container =
            CONTAINERS.iter().find(|key| root.contains_key(**key)).unwrap_or(&"mcpServers");
        let servers = root.get(*container).and_then(Value::as_object).cloned().unwrap_or_default();
        if globals.config.is_none()
            && let Some(other) = folders::configuration_of("".as_ref())
        {
            let (other, own) = (folders::shown(&other), folders::shown(&path));
            print::note(format!(
                "note: this is about {own}; in this folder toolgate uses {other} once it is trusted"
            ));
        }
        Ok(Self { path, text, container: (*container).to_owned(), servers })
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
    let (name, mut entry) = if arguments.from_registry {
        from_registry(globals, &arguments.name).await?
    } else {
        given(arguments)?
    };
    let file = ServerFile::read(globals)?;
    let shown = folders::shown(&file.path);
    if file.servers.contains_key(&name) && !arguments.replace {
        return Err(Failure::usage(format!("{shown} has a server `{name}` already"))
            .hint("choose another name, or add --replace"));
    }
    let secrets = keep_secrets(&name, &mut entry);
    if !secrets.is_empty() {
        let vault = load::required_store()?.vault(load::vault_key());
        for (stored, value) in &secrets {
            vault
                .save(&vault_name(stored), value)
                .map_err(|error| Failure::new(format!("the secret cannot be stored: {error}")))?;
        }
    }
    let container = vec![file.container.clone()];
    file.change(Edit::Set { container, name: name.clone(), entry })?;
    print::line(format!("Added {name} to {shown}."));
    for (stored, _) in &secrets {
        print::line(format!("Its secret is in the vault: ${{keychain:{stored}}}."));
    }
    Ok(ExitCode::SUCCESS)
}

/// The server of the arguments.
fn given(arguments: &Add) -> Result<(String, Map<String, Value>), Failure> {
    let is_url = |text: &str| text.starts_with("http://") || text.starts_with("https://");
    let mut entry = Map::new();
    let split = |text: &str, mark: char, what: &str| {
        let (name, value) = text
            .split_once(mark)
            .ok_or_else(|| Failure::usage(format!("`{text}` is not {what}")))?;
        Ok((name.trim().to_owned(), Value::from(value.trim())))
    };
    if let Some((program, args)) = arguments.command.split_first() {
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

/// The server of a registry, after the person has seen what it runs or contacts.
async fn from_registry(
    globals: &Globals,
    wanted: &str,
) -> Result<(String, Map<String, Value>), Failure> {
    let loaded = load::load(globals)?;
    let (name, version) = match wanted.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (wanted, None),
    };
    let registry = loaded.registry().ok_or_else(|| {
        Failure::usage("the configuration names no registry")
            .hint("add `\"registry\": { \"sources\": [\"https://…\"] }`; docs/servers.md has more")
    })?;
    let entry = registry.entry(name, version).await;
    let entry =
        entry.ok_or_else(|| Failure::usage(format!("no registry has a server `{wanted}`")))?;
    let plan = Plan::of(&entry)
        .map_err(|reason| Failure::new(format!("{name} cannot be added: {reason}")))?;
    let missing = plan.missing(load::is_set);
    if !missing.is_empty() {
        print::note(format!("warning: not set where you are: {}", missing.join(", ")));
    }
    person::agrees(loaded.presence()?, plan.shown().trim_end(), ALLOW)?;
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
    file.change(Edit::Remove { container: vec![file.container.clone()], name: name.to_owned() })?;
    print::line(format!("Removed {name} from {shown}."));
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn list(globals: &Globals, output: Output) -> CommandResult {
    let file = ServerFile::read(globals)?;
    if file.text.is_none() {
        let shown = folders::shown(&file.path);
        return Err(Failure::usage(format!("there is no {shown}")).hint(
            "`toolgate setup` makes it from the files of your clients; `toolgate add` adds a server",
        ));
    }
    let loaded = load::load(&Globals { config: Some(file.path.clone()), ..globals.clone() })?;
    let rows = loaded.configuration.servers.iter().map(|server| {
        let target = match &server.transport {
            Ok(Transport::Stdio { command, .. }) => command.clone(),
            Ok(Transport::Http { url, .. }) => host_of(url),
            Err(problem) => problem.message.clone(),
        };
        let state = match (&server.transport, server.settings.enabled) {
            (Err(_), _) => "unusable",
            (_, false) => "disabled",
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
