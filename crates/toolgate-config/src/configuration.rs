//! The configuration as a whole.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use toolgate_policy::{CallLimit, PolicySettings, Rule, RuleTarget, ServerName, ServerPolicy};

use crate::approvals::{self, ApprovalsConfig};
use crate::chat::{self, ChatConfig};
use crate::code_mode::{self, CodeModeConfig};
use crate::document::{Member, Object, Value};
use crate::expand::ReferenceStyle;
use crate::fleet::{self, FleetConfig};
use crate::gateway::{self, GatewayConfig};
use crate::limit::{self, Limits};
use crate::namespace::{self, NamespaceConfig};
use crate::position::printable;
use crate::rule;
use crate::scope::{FileReader, Location, Scope};
use crate::section::{Definitions, Section, custom, map_schema, section, strings_schema};
use crate::server::{self, ServerConfig, ServerSettings};
use crate::services::{self, AuditConfig, RegistryConfig, TelemetryConfig};
use crate::tool_search::{self, ToolSearchConfig};
use crate::{Format, MAX_SERVERS, Problem, ProblemSeverity, keys, policy};

section! {
    /// The configuration of toolgate: the MCP servers behind it, and how their tools are shown.
    pub struct Configuration as "Configuration" fields {
        /// The servers in the order of the file, including unusable and disabled ones.
        servers: Vec<ServerConfig>;
        /// Who may call what: the `policy` key, and the approvals, labels and trust of servers and
        /// tools. Parts that cannot be read deny.
        policy: PolicySettings;
        /// Whether the file has a policy. Without one, `policy` has the mode that asks for tools that
        /// declare themselves destructive.
        has_policy: bool;
        /// Named subsets of servers, in the order of the file.
        namespaces: Vec<NamespaceConfig>;
        /// The problems of the file, in order; at most [`MAX_PROBLEMS`](crate::MAX_PROBLEMS).
        problems: Vec<Problem>;
    } keys {
        /// Where editors find this schema.
        "$schema" => |_| json!({ "type": "string" });
        /// The servers, by name.
        "mcpServers" => |definitions| bounded::<ServerSettings>(definitions, MAX_SERVERS);
        /// Makes every server lazy except those named here; `[]` makes all of them lazy. The key `lazy` of a
        /// server overrides it.
        "lazyExcept" => strings_schema;
        /// Named subsets of servers. `toolgate serve --http` serves each at `/mcp/NAME`.
        "namespaces" => |definitions| bounded::<NamespaceConfig>(definitions, namespace::MOST);
        /// Who may call what. Without this key, toolgate asks before it calls tools that declare
        /// themselves destructive, where somebody can be asked; `off` switches that off.
        "policy" => policy::schema;
        /// How many calls may be made: per minute, per day, and at the same time.
        "limits" => limit::schema;
    } {
        /// When toolgate defers tools, and how search finds them.
        "toolSearch" => tool_search: ToolSearchConfig = ToolSearchConfig::default(), custom(
            Definitions::reference::<ToolSearchConfig>,
            |scope, member| Some(tool_search::read(scope, member, ToolSearchConfig::default())),
        );
        /// Whether agents may run scripts, and the limits of scripts; `false` switches scripts off.
        "codeMode" => code_mode: CodeModeConfig = CodeModeConfig::default(),
            custom(or_false::<CodeModeConfig>, |scope, member| Some(code_mode::read(scope, member)));
        /// Who may connect over HTTP, and the limits for clients.
        "gateway" => gateway: GatewayConfig = GatewayConfig::default(), custom(
            Definitions::reference::<GatewayConfig>,
            |scope, member| Some(gateway::read(scope, member)),
        );
        /// The PostgreSQL that several toolgates share. Without this key, everything is in the state folder.
        "fleet" => fleet: Option<FleetConfig> = None, custom(
            Definitions::reference::<FleetConfig>,
            |scope, member| Some(Some(fleet::read(scope, member))),
        );
        /// Where toolgate finds servers that are not in this file. Without this key it contacts no
        /// registry.
        "registry" => registry: RegistryConfig = RegistryConfig::default(),
            custom(Definitions::reference::<RegistryConfig>, services::read_registry);
        /// Folders with skills. A skill is a folder with a `SKILL.md` file, whose front matter has
        /// `name`, `description` and `mcp-servers`. A relative path starts at the folder of this
        /// file.
        "skills" => skills: Vec<PathBuf> = Vec::new(), custom(
            services::texts_schema,
            |scope, member| Some(services::read_skills(scope, member)),
        );
        /// How people answer questions in a shell.
        "approvals" => approvals: ApprovalsConfig = ApprovalsConfig::default(), custom(
            Definitions::reference::<ApprovalsConfig>,
            |scope, member| Some(approvals::read(scope, member)),
        );
        /// The model of `toolgate chat`, and the limits of chats.
        "chat" => chat: Option<ChatConfig> = Some(ChatConfig::default()), custom(
            Definitions::reference::<ChatConfig>,
            |scope, member| Some(chat::read(scope, member)),
        );
        /// The audit log of decisions and calls; `false` switches it off.
        "audit" => audit: AuditConfig = AuditConfig::default(),
            custom(or_false::<AuditConfig>, |scope, member| Some(services::read_audit(scope, member)));
        /// Where toolgate sends traces and metrics (OpenTelemetry). A key that is not set comes
        /// from the environment (`OTEL_EXPORTER_OTLP_ENDPOINT` and so on); `false` switches
        /// telemetry off.
        "telemetry" => telemetry: Option<TelemetryConfig> = Some(TelemetryConfig::default()), custom(
            or_false::<TelemetryConfig>,
            |scope, member| Some(services::read_telemetry(scope, member)),
        );
    }
}

impl Configuration {
    /// Says in which file the limits are written, unless that was said before: two files with the same
    /// limit have two counts.
    pub fn place_limits(&mut self, file: &str) {
        let place = |policy: &mut PolicySettings| {
            for limit in &mut policy.limits {
                *limit = Arc::new(CallLimit::clone(limit).within(file));
            }
        };
        place(&mut self.policy);
        self.namespaces.iter_mut().for_each(|namespace| place(&mut namespace.policy));
    }
}

/// The JSON Schema of `toolgate.json`, with which editors complete and check the file.
///
/// It describes toolgate's own keys. Keys of other clients are allowed.
pub fn json_schema() -> Json {
    let mut definitions = Definitions::default();
    let mut schema = Configuration::schema(&mut definitions);
    schema["title"] = "toolgate configuration".into();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["$defs"] = definitions.0.into();
    schema
}

/// At most so many objects of one kind by name.
fn bounded<S: Section>(definitions: &mut Definitions, most: usize) -> Json {
    let mut schema = map_schema::<S>(definitions);
    schema["maxProperties"] = most.into();
    schema
}

/// A section that a boolean switches.
fn or_false<S: Section>(definitions: &mut Definitions) -> Json {
    json!({ "anyOf": [definitions.reference::<S>(), { "type": "boolean" }] })
}

/// The servers read so far.
#[derive(Default)]
struct ServerList {
    servers: Vec<ServerConfig>,
    names: HashSet<String>,
    /// Those for the working folder alone. They win over others of the same name.
    local: HashSet<String>,
    /// The policies of the servers.
    policies: BTreeMap<ServerName, ServerPolicy>,
    /// Whether there is a misspelt key for servers.
    is_misspelt: bool,
    is_full: bool,
    /// The servers that are not lazy, if all others are.
    lazy_except: Option<HashSet<String>>,
}

/// Reads the settings of a file. A policy that was `saved` elsewhere counts in place of the one in it.
pub(crate) fn read(
    root: &Object<'_>,
    format: Format,
    mut file: FileReader<'_>,
    saved: Option<(PolicySettings, Vec<Problem>)>,
) -> Configuration {
    let mut scope = Scope::new(root, Location::default(), &mut file);
    let scope = &mut scope;
    let mut list = ServerList::default();
    // The rules that deny every call where the policy cannot be read.
    let mut denials = Vec::new();
    let lazy_except = root.get("lazyExcept").and_then(|member| scope.strings(member));
    list.lazy_except = lazy_except
        .as_ref()
        .map(|named| named.iter().map(|(name, _)| (*name).to_owned()).collect());
    list.read_project(scope);
    for member in &root.members {
        match (&*member.key, &member.node.value) {
            (_, Value::Null) => {}
            (key, _) if keys::CONTAINERS.contains(&key) => list.read(scope, member, |_| true),
            // In settings of VS Code the servers are one level down; opencode, Kilo and Crush have them
            // here. Gemini CLI has its own `mcp` key without servers.
            ("mcp", Value::Object(object)) => match object.get("servers") {
                Some(inner) => scope.within(object, scope.at.value(member), |scope| {
                    list.read(scope, inner, |_| true);
                }),
                None => list.read(scope, member, server::is_server),
            },
            // Extensions that are part of Goose have neither a program nor a URL.
            ("extensions", Value::Object(_)) if format == Format::Yaml => {
                list.read(scope, member, server::is_server);
            }
            (key, _) if Configuration::KEYS.contains(&key) => {}
            // The version of Continue's format.
            ("schema", _) if format == Format::Yaml => {}
            (key, _) => {
                let near = keys::nearest(key, Configuration::KEYS);
                report_misspelt(scope, member, near);
                list.is_misspelt |= near == Some("mcpServers");
                if matches!(near, Some("policy" | "limits")) {
                    denials.push(denial(scope, member));
                }
            }
        }
    }
    for (name, at) in lazy_except.into_iter().flatten() {
        if !list.names.contains(name) {
            let predicate = "names no server of this file; it is ignored";
            scope.complain(ProblemSeverity::Warning, &at, predicate, "");
        }
    }
    let mut configuration = Configuration::default();
    configuration.read_keys(scope);
    let (mut policy, saved_problems) = if let Some((policy, problems)) = saved {
        (Some(policy), problems)
    } else {
        let policy = root.written("policy");
        (policy.map(|member| policy::read(scope, member, policy::base())), Vec::new())
    };
    denials.extend(report_replaced(scope));
    let limits = root.written("limits").map(|member| limit::read(scope, member));
    let Limits { limits, denials: unlimited } = limits.unwrap_or_default();
    configuration.has_policy = policy.is_some();
    if !unlimited.is_empty() {
        policy.get_or_insert_with(policy::first).rules.extend(unlimited);
    }
    if let Some(policy) = &mut policy {
        policy.limits.clone_from(&limits);
    }
    if !denials.is_empty() {
        policy.get_or_insert_with(policy::base).rules.append(&mut denials);
    }
    let has_sources = !configuration.registry.sources.is_empty();
    if list.servers.is_empty() && !has_sources && !list.is_misspelt && !list.is_full {
        let hint = no_servers_hint(root, format);
        scope.file.complain_of_file("the file has no MCP servers", hint);
    }
    let alone = || PolicySettings { limits: limits.clone(), ..policy::base() };
    let base = policy.clone().unwrap_or_else(alone);
    let first = || PolicySettings { limits, ..policy::first() };
    let policy = policy.unwrap_or_else(first);
    configuration.policy = PolicySettings { servers: list.policies, ..policy };
    configuration.servers = list.servers;
    // They build on the rest, wherever that is in the file.
    if let Some(member) = root.get("namespaces") {
        configuration.namespaces = namespace::read(scope, member, &configuration, &base);
    }
    configuration.problems = file.finish();
    configuration.problems.extend(saved_problems);
    configuration
}

impl ServerList {
    /// Reads the servers that Claude Code has for the working folder alone.
    fn read_project(&mut self, scope: &mut Scope<'_, '_>) {
        let (root, working_folder) = (scope.object, scope.file.working_folder);
        let mut at = scope.at.clone();
        let mut object = root;
        for key in ["projects"].into_iter().chain(working_folder) {
            let Some(member) = object.get(key) else { return };
            let Value::Object(inner) = &member.node.value else { return };
            (at, object) = (at.value(member), inner);
        }
        let servers = object.get("mcpServers").filter(|_| working_folder.is_some());
        if let Some(servers) = servers {
            scope.within(object, at, |scope| self.read(scope, servers, |_| true));
            self.local.clone_from(&self.names);
        }
    }

    /// Reads the servers of one key: the members that `is_server` accepts.
    fn read(
        &mut self,
        scope: &mut Scope<'_, '_>,
        container: &Member<'_>,
        is_server: fn(&Member<'_>) -> bool,
    ) {
        let Value::Object(object) = &container.node.value else {
            let kind = container.node.value.kind();
            let predicate = format!("must be an object with a key for each server, but is {kind}");
            scope.error(container, &predicate, "");
            self.is_misspelt = true;
            return;
        };
        let is_gemini = object.members.iter().any(|member| {
            matches!(&member.node.value, Value::Object(entry) if entry.get("httpUrl").is_some())
        });
        scope.within(object, scope.at.value(container), |scope| {
            for replaced in &object.replaced {
                scope.report_replaced_key(&replaced.key, replaced.later_offset);
            }
            for member in &object.members {
                let is_text = matches!(member.node.value, Value::String(_));
                let is_comment = is_text && keys::is_comment(&member.key);
                if is_comment || !is_server(member) || self.local.contains(&*member.key) {
                    continue;
                }
                let at = scope.at.key(member);
                if let Some(predicate) = self.refusal(&member.key) {
                    scope.complain(ProblemSeverity::Error, &at, &predicate, "");
                    if self.is_full {
                        return;
                    }
                    continue;
                }
                self.names.insert(member.key.to_string());
                scope.file.expander.style = server::reference_style(&container.key, member);
                let mut server = server::read(scope, member, is_gemini);
                scope.file.expander.style = ReferenceStyle::Plain;
                self.make_lazy(&mut server, member);
                if let Some(policy) = server.settings.policy(scope.file, &at) {
                    self.policies.insert(server.name.as_str().into(), policy);
                }
                self.servers.push(server);
            }
        });
    }

    /// Makes a server lazy that says nothing about it, if `lazyExcept` does not name it.
    fn make_lazy(&self, server: &mut ServerConfig, member: &Member<'_>) {
        let Value::Object(entry) = &member.node.value else { return };
        let is_named = |named: &HashSet<String>| named.contains(&server.name);
        if self.lazy_except.as_ref().is_none_or(is_named) || entry.get("lazy").is_some() {
            return;
        }
        server.settings.lazy = true;
        if entry.get("idleTimeoutSeconds").is_none() {
            server.settings.idle_timeout = Some(ServerSettings::LAZY_IDLE_TIMEOUT);
        }
    }

    /// Why a server of this name cannot be added.
    fn refusal(&mut self, name: &str) -> Option<String> {
        const LONGEST_NAME: usize = 128;
        if self.servers.len() >= MAX_SERVERS {
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
        let refusal = if name.chars().any(char::is_control) {
            "is ignored: the name of a server must not have control characters"
        } else if self.names.contains(name) {
            "is ignored: a server of this name is already defined further up"
        } else {
            return None;
        };
        Some(refusal.to_owned())
    }
}

/// Reports a top-level key that is similar to one of toolgate's own. Other keys belong to the
/// client of the file.
fn report_misspelt(scope: &mut Scope<'_, '_>, member: &Member<'_>, near: Option<&str>) {
    let Some(near) = near else { return };
    // Without these keys there are no servers or no policy.
    let is_grave = matches!(near, "mcpServers" | "policy" | "limits");
    let severity = if is_grave { ProblemSeverity::Error } else { ProblemSeverity::Warning };
    let predicate = match near {
        "policy" | "limits" => "is not a known key; every call is denied",
        _ => "is not a known key; it is ignored",
    };
    let at = scope.at.key(member);
    scope.complain(severity, &at, predicate, &format!("did you mean `{near}`?"));
}

/// Reports those keys at the top that are written twice and mean something to toolgate. Of two
/// policies none is to be chosen: every call is denied.
fn report_replaced(scope: &mut Scope<'_, '_>) -> Option<Rule> {
    let mut rule = None;
    let object = scope.object;
    for replaced in &object.replaced {
        let (key, offset) = (&*replaced.key, replaced.later_offset);
        if let Some(member) = object.get(key).filter(|_| matches!(key, "policy" | "limits")) {
            scope.refuse_replaced_key(key, offset, "remove the others");
            rule = Some(denial(scope, member));
        } else if Configuration::KEYS.contains(&key) || keys::CONTAINERS.contains(&key) {
            scope.report_replaced_key(key, offset);
        }
    }
    rule
}

/// The rule that denies every call, since a policy cannot be read.
fn denial(scope: &Scope<'_, '_>, member: &Member<'_>) -> Rule {
    rule::denial(scope.file, &scope.at.value(member), RuleTarget::default())
}

/// The hint for a file without servers.
fn no_servers_hint(root: &Object<'_>, format: Format) -> String {
    let is_server = |value: &Value<'_>| {
        matches!(value, Value::Object(entry)
            if server::has_transport(entry))
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
            return "the servers under `projects` belong to one folder each: start toolgate in that folder, \
                    or copy those you want to `mcpServers` at the top of the file"
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
        Format::Yaml => "add one under `mcpServers` (Continue) or `extensions` (Goose)",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_tells_defaults_choices_and_bounds() {
        let schema = json_schema();
        let search = &schema["$defs"]["ToolSearch"]["properties"];
        assert_eq!(search["maxResults"]["default"], 5);
        assert_eq!(search["enabled"]["default"], "auto");
        assert_eq!(
            search["strategy"]["enum"],
            json!(["hybrid", "bm25", "embedding", "keyword", "regex", "subagent", null])
        );
        assert_eq!(search["thresholdPercent"]["maximum"], 100);
        assert_eq!(schema["properties"]["mcpServers"]["maxProperties"], 1_000);
        let server = &schema["$defs"]["Server"]["properties"];
        assert_eq!(server["connectTimeoutSeconds"]["default"], 30);
        assert_eq!(schema["$defs"]["Registry"]["properties"]["cacheHours"]["default"], 24);
    }

    #[test]
    fn every_key_is_described_and_optional() {
        let schema = json_schema();
        let definitions = schema["$defs"].as_object().unwrap().values();
        for object in definitions.chain([&schema]) {
            assert!(object.get("required").is_none(), "{object}");
            for (key, property) in object["properties"].as_object().unwrap() {
                assert!(property["description"].is_string(), "{key}: {property}");
            }
        }
    }

    #[test]
    fn the_operators_of_conditions_are_those_of_the_policy() {
        let mut keys = crate::rule::ConditionKeys::KEYS.to_vec();
        let mut operators = toolgate_policy::OPERATORS.to_vec();
        keys.sort_unstable();
        operators.sort_unstable();
        assert_eq!(keys, operators);
    }
}
