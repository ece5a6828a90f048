//! Groups for clients (draft extension `io.modelcontextprotocol/groups`): one a server, with the tools that the session does
//! not list.

use serde_json::{Map, Value, json};
use toolgate_catalog::{ServerName, Tool};
use toolgate_mcp::{
    codes::{INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND},
    extensions, methods,
};
use toolgate_policy::CallPath;

use crate::{
    meta::one_line,
    resources,
    session::{CallFailure, ToolSession, exposed_definition},
};

const DESCRIPTION_CHARACTERS: usize = 300;
/// How many tools the description of a group names, if its server has no description.
const NAMED_TOOLS: usize = 8;
const MAX_NAME_BYTES: usize = 64;

/// A server as a group.
struct Group {
    name: String,
    server: ServerName,
}

impl ToolSession {
    /// Whether the client and toolgate speak the extension.
    pub fn has_groups(&self) -> bool {
        self.host().settings().groups && self.declares_extension(extensions::GROUPS)
    }

    /// Answers `groups/list` and `groups/get`.
    pub async fn group_request(
        &self,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<Value, CallFailure> {
        let refuse = |code, message: &str| CallFailure::Refused {
            code,
            message: message.to_owned(),
            data: None,
        };
        if !self.has_groups() {
            return Err(refuse(METHOD_NOT_FOUND, "groups are not supported"));
        }
        self.exposure().await;
        self.await_tools(&toolgate_upstream::CallOptions::default()).await;
        let groups = self.groups();
        if method == methods::GROUPS_LIST {
            let groups = groups.iter().filter(|group| self.contents(&group.server).is_some());
            let groups: Vec<Value> = groups.map(|group| self.described(group)).collect();
            return Ok(json!({ "groups": groups }));
        }
        let name = params.get("name").and_then(Value::as_str);
        let name = name.ok_or_else(|| refuse(INVALID_PARAMS, "`name` is missing or no string"))?;
        let group = groups.iter().find(|group| group.name == name);
        group.and_then(|group| self.contents(&group.server)).ok_or_else(|| {
            let message = format!("there is no group `{}`", one_line(name, MAX_NAME_BYTES));
            refuse(RESOURCE_NOT_FOUND, &message)
        })
    }

    /// The servers that the session sees, with names as the extension wants them.
    fn groups(&self) -> Vec<Group> {
        let catalog = self.host().catalog().read();
        let servers = catalog.servers().map(|entry| &entry.name);
        let seen = servers.filter(|server| self.sees(server) && !self.host().is_off(server));
        let mut groups: Vec<Group> = Vec::new();
        for server in seen {
            let plain = plain_name(server.as_str());
            let mut name = plain.clone();
            let mut number = 2;
            // The order of the configuration decides, so that names stay.
            while groups.iter().any(|group| group.name == name) {
                let suffix = format!("-{number}");
                let room = MAX_NAME_BYTES - suffix.len();
                name = format!("{}{suffix}", plain[..plain.len().min(room)].trim_end_matches('-'));
                number += 1;
            }
            groups.push(Group { name, server: server.clone() });
        }
        groups
    }

    fn described(&self, group: &Group) -> Value {
        let catalog = self.host().catalog().read();
        let entry = catalog.server(group.server.as_str());
        let description = entry.and_then(|entry| entry.description.as_deref()).map_or_else(
            || {
                let tools = catalog.tools_of(group.server.as_str());
                let named = tools.iter().filter(|tool| self.offers(tool)).take(NAMED_TOOLS);
                let named: Vec<&str> = named.map(|tool| &**tool.definition.name()).collect();
                let more = if tools.len() > named.len() { ", …" } else { "" };
                format!("The tools of server {}: {}{more}", group.server, named.join(", "))
            },
            str::to_owned,
        );
        let description = one_line(&description, DESCRIPTION_CHARACTERS);
        json!({ "name": group.name, "title": one_line(group.server.as_str(), MAX_NAME_BYTES), "description": description })
    }

    /// The tools of a server that the session does not list, and its instructions. `None` if the server has neither, nor
    /// a tool that is listed.
    fn contents(&self, server: &ServerName) -> Option<Value> {
        let instructions = resources::instructions_of(self, server);
        let catalog = self.host().catalog().read();
        let scoped = |tool: &&Tool| {
            self.offers(tool)
                && self.opens(tool, CallPath::Direct)
                && !self.is_loaded(tool, &catalog)
                && !self.lists_for_view(tool)
        };
        let all = catalog.tools_of(server.as_str());
        let tools: Vec<Value> = all.iter().filter(scoped).map(exposed_definition).collect();
        let mut result = Map::new();
        if let Some(instructions) = instructions {
            result.insert("instructions".to_owned(), json!(instructions));
        }
        if !tools.is_empty() {
            result.insert("contents".to_owned(), json!({ "tools": tools }));
        }
        let has_tools = || all.iter().any(|tool| self.offers(tool));
        (!result.is_empty() || has_tools()).then_some(Value::Object(result))
    }
}

/// A name of lower-case letters, digits and single hyphens.
fn plain_name(server: &str) -> String {
    let mut name = String::new();
    for character in server.chars() {
        let character = character.to_ascii_lowercase();
        if character.is_ascii_alphanumeric() {
            name.push(character);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
        if name.len() == MAX_NAME_BYTES {
            break;
        }
    }
    let name = name.trim_end_matches('-');
    if name.is_empty() { "server".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_the_extension_wants_them() {
        assert_eq!(plain_name("GitHub"), "github");
        assert_eq!(plain_name("__my.server__1!"), "my-server-1");
        assert_eq!(plain_name("größe"), "gr-e");
        assert_eq!(plain_name("日本"), "server");
        assert_eq!(plain_name(&"a".repeat(100)).len(), MAX_NAME_BYTES);
    }
}
