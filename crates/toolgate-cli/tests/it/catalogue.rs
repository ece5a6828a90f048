//! Captured definitions of many real servers, all at once.
//!
//! `TOOLGATE_CATALOGUE` names a folder of captures (`NAME.json`: `{"name", "initialize", "tools"}`)
//! with a `replay.py` that serves them: `replay.py --config` prints an `mcpServers` file, and each
//! server takes faults as switches.

mod sample;

use std::{
    collections::{BTreeMap, HashSet},
    path::PathBuf,
    process::Command,
};

use serde_json::{Value, json};

use crate::support::{Gateway, Workplace, call, call_through, names, notification, served, text};

/// The captures and how to serve them.
struct Catalogue {
    /// The `mcpServers` of `replay.py --config`.
    servers: Value,
    /// Server and definition, in the order of the configuration.
    tools: Vec<(String, Value)>,
    /// What the servers call themselves.
    own_names: Vec<String>,
}

/// How many tools cannot have the plain name.
#[derive(Debug)]
struct Trouble {
    overflowing: usize,
    colliding: usize,
}

impl Catalogue {
    fn read() -> Self {
        let folder = std::env::var_os("TOOLGATE_CATALOGUE").expect("TOOLGATE_CATALOGUE is set");
        let folder = PathBuf::from(folder);
        let output =
            Command::new("python3").arg(folder.join("replay.py")).arg("--config").output().unwrap();
        let config: Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut servers = config["mcpServers"].clone();
        let (mut tools, mut own_names) = (Vec::new(), Vec::new());
        for (name, entry) in servers.as_object_mut().unwrap() {
            // All of them start at once, on whatever machine this is.
            entry["connectTimeoutSeconds"] = json!(180);
            let capture = std::fs::read(folder.join(format!("{name}.json"))).unwrap();
            let capture: Value = serde_json::from_slice(&capture).unwrap();
            let all = capture["tools"].as_array().unwrap();
            tools.extend(all.iter().map(|tool| (name.clone(), tool.clone())));
            let own_name = capture["initialize"]["serverInfo"]["name"].as_str();
            own_names.push(identifier(own_name.unwrap_or(name)).trim_matches('_').to_owned());
        }
        assert!(tools.len() > 1_000, "{} tools are no catalogue", tools.len());
        Self { servers, tools, own_names }
    }

    fn server_names(&self) -> Vec<&String> {
        self.servers.as_object().unwrap().keys().collect()
    }

    /// Waits until every tool is known; gives the direct list.
    async fn ready(&self, client: &mut Gateway) -> Vec<Value> {
        listed(client, self.tools.len()).await
    }

    /// Starts all servers twice with these prefixes, one a server, and checks the names that the
    /// tools get against the rules.
    async fn named(&self, prefixes: &[&String]) -> Trouble {
        let mut servers = self.servers.clone();
        let mut by_server = BTreeMap::new();
        for ((name, entry), prefix) in servers.as_object_mut().unwrap().iter_mut().zip(prefixes) {
            entry["prefix"] = json!(prefix);
            by_server.insert(name.clone(), prefix.as_str());
        }
        let plain: Vec<String> = self
            .tools
            .iter()
            .map(|(server, tool)| {
                let (prefix, tool) = (by_server[server], tool["name"].as_str().unwrap());
                let separator = if prefix.is_empty() { "" } else { "_" };
                identifier(&format!("{prefix}{separator}{tool}"))
            })
            .collect();
        let mut wishes: BTreeMap<&str, usize> = BTreeMap::new();
        for name in &plain {
            *wishes.entry(name).or_default() += 1;
        }

        let workplace = Workplace::new(&json!({ "mcpServers": servers }));
        let mut client = workplace.connect(&["--mode", "direct"]).await;
        let tools = self.ready(&mut client).await;
        self.assert_same(&tools);
        assert_well_named(&tools);
        let mut trouble = Trouble { overflowing: 0, colliding: 0 };
        for (given, plain) in names(&tools).into_iter().zip(&plain) {
            let (long, contested) = (plain.len() > 64, wishes[plain.as_str()] > 1);
            trouble.overflowing += usize::from(long);
            trouble.colliding += usize::from(contested);
            if long || contested {
                assert_ne!(given, plain, "nobody gets a contested name");
                assert_eq!(given[..3], plain[..3], "it is still readable");
            }
        }
        drop(client);
        let mut client = workplace.connect(&["--mode", "direct"]).await;
        assert!(self.ready(&mut client).await == tools, "the same after a restart");
        trouble
    }

    /// Compares a direct list with the definitions of the servers.
    fn assert_same(&self, tools: &[Value]) {
        assert_eq!(tools.len(), self.tools.len());
        for (given, (server, sent)) in tools.iter().zip(&self.tools) {
            let mut given = with_views_of(server, given);
            given["name"] = sent["name"].clone();
            let mut sent = sent.clone();
            // toolgate waits for the task itself.
            if sent["execution"]["taskSupport"] == "required" {
                sent["execution"].as_object_mut().unwrap().remove("taskSupport");
            }
            assert!(given == sent, "{server}: {}", sent["name"]);
        }
    }
}

/// A definition with the URIs that its server has given to views. toolgate replaces them with its own.
fn with_views_of(server: &str, definition: &Value) -> Value {
    let own = format!("ui://toolgate.{server}/");
    serde_json::from_str(&definition.to_string().replace(&own, "ui://")).unwrap()
}

/// Waits until the list has this many tools. It waits for notifications, because polling would slow
/// down the servers that start.
async fn listed(client: &mut Gateway, count: usize) -> Vec<Value> {
    loop {
        let tools = served(client).await;
        if tools.len() == count {
            return tools;
        }
        notification(client, "notifications/tools/list_changed").await;
    }
}

/// Checks the rules for names.
fn assert_well_named(tools: &[Value]) {
    let all = names(tools);
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "each name is there once");
    for name in all {
        let inner =
            name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
        let first = !name.starts_with(|character: char| character.is_ascii_digit());
        assert!(inner && first && !name.is_empty() && name.len() <= 64, "{name}");
    }
}

fn identifier(text: &str) -> String {
    text.replace(|character: char| !character.is_ascii_alphanumeric(), "_")
}

#[tokio::test]
#[ignore = "needs TOOLGATE_CATALOGUE=<folder with captures and replay.py>"]
async fn definitions_arrive_as_they_were_sent() {
    let catalogue = Catalogue::read();
    let workplace = Workplace::new(&json!({ "mcpServers": catalogue.servers }));
    let mut client = workplace.connect(&["--mode", "direct"]).await;
    let tools = catalogue.ready(&mut client).await;
    catalogue.assert_same(&tools);
    let all: Vec<String> = names(&tools).into_iter().map(str::to_owned).collect();

    // The same through `get_tool_details`, in batches; what has no room there is asked for alone.
    let mut given: BTreeMap<String, Value> = BTreeMap::new();
    let mut alone = Vec::new();
    for batch in all.chunks(20) {
        let result =
            call(&mut client, "get_tool_details", json!({ "names": batch, "format": "json" }))
                .await;
        for tool in result["structuredContent"]["tools"].as_array().unwrap() {
            let name = tool["name"].as_str().unwrap().to_owned();
            match tool.get("definition") {
                Some(definition) => drop(given.insert(name, definition.clone())),
                None => alone.push(name),
            }
        }
    }
    for name in alone {
        let result =
            call(&mut client, "get_tool_details", json!({ "names": [name], "format": "json" }))
                .await;
        let definition = result["structuredContent"]["tools"][0]["definition"].clone();
        given.insert(name, definition);
    }
    for (name, (server, sent)) in all.iter().zip(&catalogue.tools) {
        assert!(with_views_of(server, &given[name]) == *sent, "{server}: {name}");
    }
}

#[tokio::test]
#[ignore = "needs TOOLGATE_CATALOGUE=<folder with captures and replay.py>"]
async fn names_are_unique_short_identifiers_and_stable() {
    let catalogue = Catalogue::read();
    let plain = catalogue.named(&catalogue.server_names()).await;
    assert_eq!(plain.overflowing + plain.colliding, 0, "short names of servers are no trouble");
    println!("plain: {plain:?}");
}

#[tokio::test]
#[ignore = "needs TOOLGATE_CATALOGUE=<folder with captures and replay.py>"]
async fn names_that_overflow_are_cut_and_hashed() {
    let catalogue = Catalogue::read();
    // What the servers call themselves is longer than what people call them.
    let own: Vec<&String> = catalogue.own_names.iter().collect();
    let long = catalogue.named(&own).await;
    assert!(long.overflowing > 0, "there are names that overflow");
    println!("own names as prefixes: {long:?}");
}

#[tokio::test]
#[ignore = "needs TOOLGATE_CATALOGUE=<folder with captures and replay.py>"]
async fn colliding_names_get_a_hash() {
    let catalogue = Catalogue::read();
    let nothing = String::new();
    let bare = catalogue.named(&vec![&nothing; catalogue.own_names.len()]).await;
    assert!(bare.colliding > 0, "there are names that collide");
    println!("no prefixes: {bare:?}");
}

#[tokio::test]
#[ignore = "needs TOOLGATE_CATALOGUE=<folder with captures and replay.py>"]
async fn every_tool_can_be_called_or_reports_why_not() {
    let catalogue = Catalogue::read();
    let workplace = Workplace::new(&json!({ "mcpServers": catalogue.servers }));
    let mut client = workplace.connect(&["--mode", "direct"]).await;
    let tools = catalogue.ready(&mut client).await;
    let mut called: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut refused, mut broken) = (Vec::new(), Vec::new());
    for (given, (server, sent)) in tools.iter().zip(&catalogue.tools) {
        let name = given["name"].as_str().unwrap();
        let arguments = sample::arguments(&sent["inputSchema"]);
        let result = call_through(&mut client, name, arguments.clone()).await;
        if result["isError"] != true {
            let echo: Value = serde_json::from_str(text(&result)).unwrap();
            let tool = &sent["name"];
            assert_eq!(echo, json!({ "server": server, "tool": tool, "arguments": arguments }));
            *called.entry(server).or_default() += 1;
        } else if text(&result).starts_with("The arguments do not fit") {
            refused.push(name);
        } else if text(&result).contains("its schema is broken") {
            broken.push(name);
        } else {
            panic!("{name}: {}", text(&result));
        }
    }
    let (count, total) = (called.values().sum::<usize>(), catalogue.tools.len());
    println!("{count} of {total} called; sample refused: {refused:?}; schema broken: {broken:?}");
    for server in catalogue.server_names() {
        assert!(called.contains_key(server.as_str()), "no tool of {server} was called");
    }
    assert!(count * 10 > total * 9, "most samples fit");
    // A common word is in far more tools than anybody wants to read.
    let query = json!({ "query": "list all of them", "limit": 50 });
    let result = call(&mut client, "search_tools", query).await;
    assert_eq!(result["structuredContent"]["found"], 50);
}

#[tokio::test]
#[ignore = "needs TOOLGATE_CATALOGUE=<folder with captures and replay.py>"]
async fn bad_servers_do_not_harm_the_others() {
    let catalogue = Catalogue::read();
    let mut servers = catalogue.servers.clone();
    let all = catalogue.server_names();
    let [crashing, slow, junk] = [all[5], all[15], all[25]];
    let faults = [
        (crashing, &["--crash-after", "1"][..]),
        (slow, &["--slow-start-ms", "600000"]),
        (junk, &["--junk"]),
    ];
    for (name, switches) in faults {
        let arguments = servers[name]["args"].as_array_mut().unwrap();
        arguments.extend(switches.iter().map(|switch| json!(switch)));
    }
    let workplace = Workplace::new(&json!({ "mcpServers": servers }));
    let mut client = workplace.connect(&["--mode", "direct"]).await;
    let of_slow = catalogue.tools.iter().filter(|(server, _)| server == slow).count();
    let expected: Vec<&(String, Value)> =
        catalogue.tools.iter().filter(|(server, _)| server != slow).collect();
    assert!(of_slow > 0);
    let tools = listed(&mut client, expected.len()).await;

    // The second call of the first server ends it; nobody else notices.
    let mut calls: BTreeMap<&str, usize> = BTreeMap::new();
    let mut crashes = 0;
    for (given, (server, sent)) in tools.iter().zip(&expected) {
        let done = calls.entry(server.as_str()).or_default();
        if *done == 2 {
            continue;
        }
        let arguments = sample::arguments(&sent["inputSchema"]);
        let name = given["name"].as_str().unwrap();
        let result = call_through(&mut client, name, arguments).await;
        let fits = result["isError"] != true || !text(&result).contains("do not fit");
        *done += usize::from(fits);
        if fits && result["isError"] == true {
            let said = text(&result);
            assert!(said.contains(&format!("server `{crashing}` stopped")), "{name}: {said}");
            crashes += 1;
        }
    }
    assert_eq!(crashes, 1);
    let called = calls.values().filter(|calls| **calls > 0).count();
    assert_eq!(called, all.len() - 1, "one call of each server but the slow one");
    let (_, first) = expected.iter().find(|(server, _)| server == crashing).unwrap();
    let index = expected.iter().position(|(server, _)| server == crashing).unwrap();
    let again = call_through(
        &mut client,
        tools[index]["name"].as_str().unwrap(),
        sample::arguments(&first["inputSchema"]),
    )
    .await;
    assert!(again["isError"] != true || text(&again).contains("do not fit"), "restarted: {again}");
}
