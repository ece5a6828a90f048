//! From the tree of a file to settings.

mod audit;
mod code_mode;
mod condition;
mod embeddings;
mod endpoint;
mod gateway;
mod namespaces;
mod oauth;
mod policy;
mod registry;
mod report;
mod rule;
mod scope;
mod server;
mod settings;
mod subagent;
mod telemetry;
mod tool_search;
mod transport;

use std::collections::{BTreeMap, HashSet};

use toolgate_policy::{PolicySettings, Rule, RuleTarget, ServerName, ServerPolicy};

use report::{Path, Report};

use crate::document::{Member, Object, Value};
use crate::expand::Expander;
use crate::keys::{self, TOP_LEVEL};
use crate::position::{SourceText, printable};
use crate::{Configuration, Environment, Format, MAX_SERVERS, ServerEntry, Severity, ToolSearch};

/// What reading a file needs all along.
struct Context<'c> {
    report: Report<'c>,
    expander: Expander<'c>,
}

/// The servers found so far.
#[derive(Default)]
struct Servers {
    entries: Vec<ServerEntry>,
    names: HashSet<String>,
    /// What they say of who may call what, where they say something.
    policies: BTreeMap<ServerName, ServerPolicy>,
    /// Whether a key was found that must have been meant to hold servers.
    misspelt: bool,
    is_full: bool,
}

/// Reads the settings of a file.
pub(crate) fn read<'c>(
    root: &Object<'_>,
    format: Format,
    source: &'c SourceText<'c>,
    environment: Environment<'c>,
) -> Configuration {
    let mut context = Context { report: Report::new(source), expander: Expander::new(environment) };
    let mut servers = Servers::default();
    let mut configuration = Configuration::default();
    let (mut namespaces, mut policy) = (None, None);
    // What stands in for a policy that is not understood.
    let mut denials = Vec::new();
    for member in &root.members {
        let path = Path::Key(&Path::Root, &member.key);
        match (&*member.key, &member.node.value) {
            (_, Value::Null) | ("$schema", _) => {}
            (key, _) if keys::CONTAINERS.contains(&key) => {
                servers.read(&mut context, &path, member);
            }
            // The settings of VS Code hold the servers one level down; Gemini CLI has an `mcp` of
            // its own without servers.
            ("mcp", Value::Object(object)) => {
                if let Some(inner) = object.get("servers") {
                    servers.read(&mut context, &Path::Key(&path, "servers"), inner);
                }
            }
            ("toolSearch", _) => {
                let defaults = ToolSearch::default();
                configuration.tool_search =
                    tool_search::read(&mut context, &path, member, defaults);
            }
            ("codeMode", _) => {
                configuration.code_mode = code_mode::read(&mut context, &path, member);
            }
            ("gateway", _) => {
                configuration.gateway = gateway::read(&mut context, &path, member);
            }
            ("registry", _) => {
                configuration.registry = registry::read(&mut context, &path, member);
            }
            ("skills", _) => configuration.skills = registry::skills(&mut context, member),
            // Read below: they build on the rest, wherever that is in the file.
            ("namespaces", _) => namespaces = Some(member),
            ("policy", _) => {
                policy = Some(policy::read(&mut context, &path, member, policy::base()));
            }
            ("audit", _) => {
                configuration.audit = audit::read(&mut context, &path, member);
            }
            ("telemetry", _) => {
                configuration.telemetry = telemetry::read(&mut context, &path, member);
            }
            (key, _) => {
                servers.misspelt |= report_misspelt(&mut context, &path, key, member);
                if keys::nearest(key, TOP_LEVEL) == Some("policy") {
                    denials.push(rule::denial(
                        &context,
                        &path,
                        &member.node,
                        RuleTarget::default(),
                    ));
                }
            }
        }
    }
    denials.extend(report_replaced(&mut context, root));
    if !denials.is_empty() {
        policy.get_or_insert_with(policy::base).rules.append(&mut denials);
    }
    if servers.entries.is_empty()
        && configuration.registry.sources.is_empty()
        && !servers.misspelt
        && !servers.is_full
    {
        let hint = no_servers_hint(root, format);
        context.report.push(context.report.problem_of_file("the file has no MCP servers", hint));
    }
    let base = policy.clone().unwrap_or_else(policy::base);
    configuration.policy =
        PolicySettings { servers: servers.policies, ..policy.unwrap_or_default() };
    configuration.servers = servers.entries;
    if let Some(member) = namespaces {
        configuration.namespaces = namespaces::read(&mut context, member, &configuration, &base);
    }
    configuration.problems = context.report.finish();
    configuration
}

impl Servers {
    /// Reads the servers of one key.
    fn read(&mut self, context: &mut Context<'_>, path: &Path<'_>, container: &Member<'_>) {
        let Value::Object(object) = &container.node.value else {
            let predicate = format!(
                "must be an object with a key for each server, but is {}",
                container.node.value.kind()
            );
            let offset = container.node.offset;
            context.report.add(Severity::Error, path, offset, &predicate, None);
            self.misspelt = true;
            return;
        };
        for replaced in &object.replaced {
            let path = Path::Key(path, &replaced.key);
            context.report.add_replaced(&path, replaced.later_offset);
        }
        let is_gemini = object.members.iter().any(|member| {
            matches!(&member.node.value, Value::Object(entry) if entry.get("httpUrl").is_some())
        });
        for member in &object.members {
            let is_text = matches!(member.node.value, Value::String(_));
            if is_text && keys::is_comment(&member.key) {
                continue;
            }
            let path = Path::Key(path, &member.key);
            if let Some(predicate) = self.refusal(&member.key) {
                let offset = member.key_offset;
                context.report.add(Severity::Error, &path, offset, &predicate, None);
                if self.is_full {
                    return;
                }
                continue;
            }
            self.names.insert(member.key.to_string());
            let entry = server::read(context, &path, member, is_gemini);
            if let Some(said) = policy::of_server(context, &path, member, &entry.settings) {
                self.policies.insert(entry.name.as_str().into(), said);
            }
            self.entries.push(entry);
        }
    }

    /// Why a server of this name cannot be added.
    fn refusal(&mut self, name: &str) -> Option<String> {
        const LONGEST_NAME: usize = 128;
        if self.entries.len() >= MAX_SERVERS {
            self.is_full = true;
            return Some(format!(
                "is one server too many: this one and those after it are ignored, since a file \
                 may have at most {MAX_SERVERS}"
            ));
        }
        if name.is_empty() || name.chars().nth(LONGEST_NAME).is_some() {
            return Some(format!(
                "is ignored: the name of a server must have 1 to {LONGEST_NAME} characters"
            ));
        }
        if name.chars().any(char::is_control) {
            return Some(
                "is ignored: the name of a server must not have control characters".to_owned(),
            );
        }
        self.names
            .contains(name)
            .then(|| "is ignored: a server of this name is already defined further up".to_owned())
    }
}

/// Reports a key at the top that is near to one of toolgate's own; the others belong to the client
/// whose file this is. True if the key must have been meant to hold servers.
fn report_misspelt(
    context: &mut Context<'_>,
    path: &Path<'_>,
    key: &str,
    member: &Member<'_>,
) -> bool {
    let Some(near) = keys::nearest(key, TOP_LEVEL) else { return false };
    let is_container = near == "mcpServers";
    // Without these two, there is nothing to serve or nothing to hold it back.
    let is_grave = is_container || near == "policy";
    let severity = if is_grave { Severity::Error } else { Severity::Warning };
    let hint = Some(format!("did you mean `{near}`?"));
    let predicate = match near {
        "policy" => "is not a known key; every call is denied",
        _ => "is not a known key; it is ignored",
    };
    context.report.add(severity, path, member.key_offset, predicate, hint);
    is_container
}

/// Reports those keys at the top that are written twice and mean something to toolgate. Of two policies
/// none is to be chosen: every call is denied.
fn report_replaced(context: &mut Context<'_>, root: &Object<'_>) -> Option<Rule> {
    let mut denial = None;
    for replaced in &root.replaced {
        let key: &str = &replaced.key;
        let path = Path::Key(&Path::Root, key);
        if let Some(member) = root.get(key).filter(|_| key == "policy") {
            context.report.refuse_replaced(&path, replaced.later_offset);
            denial = Some(rule::denial(context, &path, &member.node, RuleTarget::default()));
        } else if TOP_LEVEL.contains(&key) || keys::CONTAINERS.contains(&key) {
            context.report.add_replaced(&path, replaced.later_offset);
        }
    }
    denial
}

/// What to do about a file without servers, by what the file looks like.
fn no_servers_hint(root: &Object<'_>, format: Format) -> String {
    let is_server = |value: &Value<'_>| {
        matches!(value, Value::Object(entry)
            if ["command", "url", "serverUrl", "httpUrl"].iter().any(|key| entry.get(key).is_some()))
    };
    if let Some(member) = root.members.iter().find(|member| is_server(&member.node.value)) {
        let name = printable(&member.key);
        return format!("put `{name}` and the other servers under a key `mcpServers`");
    }
    if let Some(Value::Object(projects)) = root.get("projects").map(|member| &member.node.value) {
        let has_servers = projects.members.iter().any(|project| {
            matches!(&project.node.value, Value::Object(project)
                if matches!(project.get("mcpServers"), Some(Member { node, .. })
                    if matches!(&node.value, Value::Object(servers) if !servers.members.is_empty())))
        });
        if has_servers {
            return "the servers under `projects` belong to one folder each; copy those you want \
                    to `mcpServers` at the top of the file"
                .to_owned();
        }
    }
    match format {
        Format::Jsonc => concat!(
            "add one, such as { \"mcpServers\": { \"files\": { \"command\": \"npx\", \"args\": ",
            "[\"-y\", \"@modelcontextprotocol/server-filesystem\", \".\"] } } }",
        ),
        Format::Toml => {
            "add one, such as [mcp_servers.docs] with url = \"https://example.com/mcp\""
        }
    }
    .to_owned()
}
