//! How tools are found, in each provider's own way.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolgate_agent::{AgentEvent, RemoteServer, ToolDiscovery, WireApi};

use crate::{
    endpoint::Play,
    lab::{Lab, kinds, scenarios, tool},
    scripts::{anthropic_events, call, message_item, responses_events, streamed, text},
};

scenarios!(
    anthropic_search_is_answered_with_references,
    anthropic_search_that_finds_nothing_or_fails_says_so,
    anthropic_hosted_search_goes_back_as_it_came,
    anthropic_connects_to_remote_servers,
    anthropic_is_told_about_changes,
    anthropic_without_the_beta_reaches_new_tools_by_name,
    anthropic_unloads_tools_after_a_turn,
    anthropic_unloads_tools_without_the_beta,
    hosted_searches_load_tools_and_the_beta_unloads_them,
    responses_unload_tools,
    a_list_that_never_grows_reaches_later_tools,
    responses_search_is_answered_with_namespaces,
    responses_hosted_search_has_one_namespace_a_server,
    responses_append_tools,
    meta_tools_are_listed_alone,
);

fn names(tools: &Value) -> Vec<&str> {
    tools.as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect()
}

async fn anthropic_search_is_answered_with_references() {
    let api = WireApi::Anthropic;
    let plays = vec![
        streamed(api, &call("s1", "search_tools", json!({"query": "issue", "limit": 3}))),
        streamed(api, &call("c1", "github_create_issue", json!({"title": "x"}))),
        streamed(api, &text("Filed.")),
    ];
    let mut lab = Lab::new(api, plays).await;
    let (events, end) = lab.ask("File it").await;
    assert_eq!(end.unwrap().text, "Filed.");
    assert!(kinds(&events).contains(&"tools_found".to_owned()), "{events:?}");
    assert_eq!(*lab.tools.searches.lock(), [("issue".to_owned(), 3)]);
    assert_eq!(lab.conversation.loaded_tools().collect::<Vec<_>>(), ["github_create_issue"]);
    // All tools are there from the first request on: ours and the listed one ready, the others deferred.
    let tools = &lab.body(0)["tools"];
    let deferred = |place: usize| tools[place]["defer_loading"].clone();
    assert_eq!(names(tools)[..4], ["search_tools", "call_tool", "time_now", "github_create_issue"]);
    assert_eq!((deferred(0), deferred(2), deferred(3)), (Value::Null, Value::Null, json!(true)));
    assert_eq!(lab.body(0)["system"][0]["cache_control"], json!({"type": "ephemeral"}));
    let result = &lab.body(1)["messages"][2];
    assert_eq!(
        *result,
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "s1",
            "content": [{"type": "tool_reference", "tool_name": "github_create_issue"}]}]})
    );
}

async fn anthropic_search_that_finds_nothing_or_fails_says_so() {
    let api = WireApi::Anthropic;
    let mut both = call("s1", "search_tools", json!({"query": "nothing"}));
    both.calls.push(("s2", "search_tools", json!({"query": "broken"})));
    both.calls.push(("s3", "search_tools", json!({"words": "x"})));
    let mut lab = Lab::new(api, vec![streamed(api, &both), streamed(api, &text("No."))]).await;
    lab.answer("Find").await;
    let content = &lab.body(1)["messages"][2]["content"];
    assert_eq!(content[0]["content"][0]["text"], "No tool fits. Search with other words.");
    assert_eq!(
        (&content[1]["content"][0]["text"], &content[1]["is_error"]),
        (&json!("the index is broken"), &json!(true))
    );
    assert!(content[2]["content"][0]["text"].as_str().unwrap().contains("`query`"));
}

async fn anthropic_hosted_search_goes_back_as_it_came() {
    for (discovery, name) in [
        (ToolDiscovery::Hosted, "tool_search_tool_bm25"),
        (ToolDiscovery::HostedRegex, "tool_search_tool_regex"),
    ] {
        let searched = [
            json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": name, "input": {"query": "issue"}, "caller": {"type": "direct"}}),
            json!({"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1", "content": {
                "type": "tool_search_tool_search_result",
                "tool_references": [{"type": "tool_reference", "tool_name": "github_create_issue"}],
            }}),
            json!({"type": "tool_use", "id": "c1", "name": "github_create_issue", "input": {"title": "x"}, "caller": {"type": "direct"}}),
        ];
        let plays = vec![
            Play::Events(anthropic_events(&searched, "tool_use", Value::Null)),
            streamed(WireApi::Anthropic, &text("Filed.")),
        ];
        let mut lab =
            Lab::with(WireApi::Anthropic, plays, |model| model.discovery = Some(discovery), |_| {})
                .await;
        let (events, end) = lab.ask("File it").await;
        assert_eq!(end.unwrap().text, "Filed.");
        assert!(
            events.contains(&AgentEvent::HostedToolUsed { name: name.to_owned() }),
            "{events:?}"
        );
        assert_eq!(
            lab.body(0)["tools"][0],
            json!({"type": format!("{name}_20251119"), "name": name})
        );
        assert_eq!(lab.body(1)["messages"][1]["content"], json!(searched));
        assert_eq!(lab.tools.called(), ["github_create_issue"]);
        let found = AgentEvent::ToolsFound {
            query: "issue".into(),
            names: vec!["github_create_issue".into()],
        };
        assert!(events.contains(&found), "{events:?}");
        assert_eq!(lab.conversation.loaded_tools().collect::<Vec<_>>(), ["github_create_issue"]);
    }
}

async fn anthropic_connects_to_remote_servers() {
    let api = WireApi::Anthropic;
    let mut lab = Lab::new(api, Vec::new()).await;
    lab.tools.change(|catalogue| {
        catalogue.servers[1].remote = Some(RemoteServer {
            url: "https://mcp.example.com".into(),
            authorization_token: Some("remote-token".into()),
            default_config: Some(json!({"defer_loading": true, "enabled": true})),
            configs: BTreeMap::from([("delete_repo".to_owned(), json!({"enabled": false}))]),
        });
    });
    let mut model = crate::lab::model(api, &lab.endpoint);
    model.discovery = Some(ToolDiscovery::RemoteServers);
    let tools = std::sync::Arc::<crate::lab::TestTools>::clone(&lab.tools);
    lab.conversation =
        toolgate_agent::Conversation::new(model.provider().unwrap(), tools, crate::lab::settings())
            .unwrap();
    let used = [
        json!({"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "create_issue", "server_name": "github", "input": {}}),
        json!({"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": false, "content": [{"type": "text", "text": "ok", "citations": null}]}),
        json!({"type": "text", "text": "Filed.", "citations": null}),
    ];
    lab.endpoint.add(vec![
        Play::Events(anthropic_events(&used, "end_turn", Value::Null)),
        streamed(api, &text("Yes.")),
    ]);
    lab.answer("File it").await;
    lab.answer("Sure?").await;
    let request = &lab.endpoint.received()[1];
    assert_eq!(request.header("anthropic-beta"), Some("mcp-client-2025-11-20"));
    let body = request.json();
    assert_eq!(
        body["mcp_servers"],
        json!([{"type": "url", "name": "github", "url": "https://mcp.example.com", "authorization_token": "remote-token"}])
    );
    let toolset = body["tools"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        toolset,
        json!({"type": "mcp_toolset", "mcp_server_name": "github",
            "default_config": {"defer_loading": true, "enabled": true}, "configs": {"delete_repo": {"enabled": false}}})
    );
    // The tools of a remote server come from the provider alone.
    assert!(!names(&body["tools"]).contains(&"github_create_issue"));
    assert_eq!(body["messages"][1]["content"], json!(used));
    // A stored conversation has no token.
    let stored = serde_json::to_string(&lab.conversation.save()).unwrap();
    assert!(!stored.contains("remote-token"));
}

async fn anthropic_is_told_about_changes() {
    let api = WireApi::Anthropic;
    let plays = vec![
        streamed(api, &text("One.")),
        streamed(api, &text("Two.")),
        streamed(api, &text("Three.")),
    ];
    let mut lab = Lab::with(api, plays, |model| model.tool_changes = true, |_| {}).await;
    lab.answer("1").await;
    lab.tools.change(|catalogue| {
        catalogue.deferred.retain(|tool| tool.name != "logs_read");
        catalogue.deferred.push(tool("jira_search", "jira"));
    });
    let (events, end) = lab.ask("2").await;
    end.unwrap();
    let changed = AgentEvent::ToolsChanged {
        added: vec!["jira_search".into()],
        removed: vec!["logs_read".into()],
    };
    assert!(events.contains(&changed), "{events:?}");
    lab.answer("3").await;
    let betas = "mid-conversation-tool-changes-2026-07-01,inline-tools-2026-09-15";
    assert_eq!(lab.endpoint.received()[0].header("anthropic-beta"), Some(betas));
    let messages = &lab.body(1)["messages"];
    assert_eq!(messages[3]["role"], "system");
    assert_eq!(
        messages[3]["content"][0],
        json!({"type": "tool_removal", "tool": {"type": "tool_reference", "name": "logs_read"}})
    );
    let addition = &messages[3]["content"][1];
    assert_eq!(addition["type"], "tool_addition");
    assert_eq!(addition["tool"]["definition"]["name"], "jira_search");
    assert_eq!(addition["tool"]["definition"]["defer_loading"], true);
    // It is told once, and `call_tool` is not needed.
    assert_eq!(lab.body(2)["messages"].as_array().unwrap().len(), 6);
    assert!(!names(&lab.body(0)["tools"]).contains(&"call_tool"));
}

async fn anthropic_without_the_beta_reaches_new_tools_by_name() {
    let api = WireApi::Anthropic;
    let plays = vec![
        streamed(api, &text("One.")),
        streamed(api, &call("s1", "search_tools", json!({"query": "jira"}))),
        streamed(
            api,
            &call("c1", "call_tool", json!({"name": "jira_search", "arguments": {"title": "x"}})),
        ),
        streamed(api, &text("Found.")),
    ];
    let mut lab = Lab::new(api, plays).await;
    lab.answer("1").await;
    lab.tools.change(|catalogue| catalogue.deferred.push(tool("jira_search", "jira")));
    assert_eq!(lab.answer("2").await.text, "Found.");
    let found =
        lab.body(2)["messages"][4]["content"][0]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(
        found.starts_with("New tool `jira_search`, to be called with call_tool: Does jira_search."),
        "{found}"
    );
    let calls = lab.tools.calls.lock().clone();
    assert_eq!(
        (calls[0].name.as_str(), &calls[0].arguments),
        ("jira_search", &json!({"title": "x"}))
    );
}

async fn anthropic_unloads_tools_after_a_turn() {
    let api = WireApi::Anthropic;
    let plays = vec![
        streamed(api, &call("s1", "search_tools", json!({"query": "issue"}))),
        streamed(api, &text("One.")),
        streamed(api, &text("Two.")),
    ];
    let unload =
        |settings: &mut toolgate_agent::ConversationSettings| settings.keep_loaded_tools = false;
    let mut lab = Lab::with(api, plays, |model| model.tool_changes = true, unload).await;
    lab.answer("1").await;
    assert_eq!(lab.conversation.loaded_tools().count(), 0);
    lab.answer("2").await;
    let told = lab.body(2)["messages"][5].clone();
    let reference = json!({"type": "tool_reference", "name": "github_create_issue"});
    assert_eq!(
        told,
        json!({"role": "system", "content": [{"type": "tool_removal", "tool": reference}, {"type": "tool_addition", "tool": reference}]})
    );
}

fn unloading(settings: &mut toolgate_agent::ConversationSettings) {
    settings.keep_loaded_tools = false;
}

async fn anthropic_unloads_tools_without_the_beta() {
    let api = WireApi::Anthropic;
    let plays = vec![
        streamed(api, &call("s1", "search_tools", json!({"query": "issue"}))),
        streamed(api, &call("c1", "github_create_issue", json!({"title": "x"}))),
        streamed(api, &text("One.")),
        streamed(api, &text("Two.")),
    ];
    let mut lab = Lab::with(api, plays, |_| {}, unloading).await;
    lab.answer("1").await;
    // Nothing changes within the turn.
    assert_eq!(lab.body(2)["messages"][2]["content"][0]["content"][0]["type"], "tool_reference");
    let (events, end) = lab.ask("2").await;
    end.unwrap();
    let unloaded = AgentEvent::ToolsUnloaded { names: vec!["github_create_issue".into()] };
    assert!(events.contains(&unloaded), "{events:?}");
    let (before, after) = (lab.body(2), lab.body(3));
    assert_eq!(
        after["messages"][2]["content"][0]["content"],
        json!([{"type": "text", "text": "The tools that this search has found were unloaded. Search again to use them."}])
    );
    // Nothing else is another one: neither the tools, nor what the model said, nor the result.
    assert_eq!(after["tools"], before["tools"]);
    for place in [0, 1, 3, 4] {
        assert_eq!(after["messages"][place], before["messages"][place], "{place}");
    }
}

async fn hosted_searches_load_tools_and_the_beta_unloads_them() {
    for is_told in [true, false] {
        let searched = [
            json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_bm25", "input": {"query": "issue"}, "caller": {"type": "direct"}}),
            json!({"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1", "content": {
                "type": "tool_search_tool_search_result",
                "tool_references": [{"type": "tool_reference", "tool_name": "github_create_issue"}],
            }}),
            json!({"type": "text", "text": "Found.", "citations": null}),
        ];
        let plays = vec![
            Play::Events(anthropic_events(&searched, "end_turn", Value::Null)),
            streamed(WireApi::Anthropic, &text("Yes.")),
        ];
        let hosted = |model: &mut toolgate_agent::ModelSettings| {
            model.discovery = Some(ToolDiscovery::Hosted);
            model.tool_changes = is_told;
        };
        let mut lab = Lab::with(WireApi::Anthropic, plays, hosted, |_| {}).await;
        lab.answer("Find").await;
        assert_eq!(lab.conversation.unload_tools(), is_told);
        lab.answer("Sure?").await;
        let messages = lab.body(1)["messages"].clone();
        assert_eq!(messages[1]["content"], json!(searched));
        let told = messages.as_array().unwrap().last().unwrap();
        assert_eq!(told["content"][0]["type"] == "tool_removal", is_told, "{messages}");
        assert_eq!(lab.conversation.loaded_tools().count() == 0, is_told);
    }
}

async fn responses_unload_tools() {
    let api = WireApi::Responses;
    for (discovery, search) in [
        (ToolDiscovery::Search, Play::Events(responses_events(&[search_call("s1", "issue")]))),
        (
            ToolDiscovery::Appended,
            streamed(api, &call("s1", "search_tools", json!({"query": "issue"}))),
        ),
    ] {
        let plays = vec![
            search,
            streamed(api, &call("c1", "github_create_issue", json!({"title": "x"}))),
            streamed(api, &text("One.")),
            streamed(api, &text("Two.")),
            streamed(api, &call("s2", "search_tools", json!({"query": "issue"}))),
            streamed(api, &text("Three.")),
        ];
        let mut lab =
            Lab::with(api, plays, |model| model.discovery = Some(discovery), |_| {}).await;
        lab.answer("1").await;
        assert!(lab.body(2)["input"].to_string().contains("Does github_create_issue."));
        assert!(lab.conversation.unload_tools());
        lab.answer("2").await;
        let input = lab.body(3)["input"].to_string();
        // The call and its result stay, and the definition is gone.
        assert!(!input.contains("Does github_create_issue."), "{discovery:?}: {input}");
        assert!(input.contains("\"name\":\"github_create_issue\""), "{discovery:?}: {input}");
        assert_eq!(lab.body(3)["tools"], lab.body(0)["tools"]);
        if discovery == ToolDiscovery::Appended {
            // It can be loaded again.
            lab.answer("3").await;
            assert!(lab.body(5)["input"].to_string().contains("Does github_create_issue."));
        } else {
            assert_eq!(lab.body(3)["input"][2]["tools"], json!([]));
        }
    }
}

async fn a_list_that_never_grows_reaches_later_tools() {
    for api in [WireApi::Anthropic, WireApi::Completions, WireApi::Gemini] {
        let plays = vec![
            streamed(api, &text("One.")),
            streamed(api, &call("s1", "search_tools", json!({"query": "_"}))),
            streamed(
                api,
                &call(
                    "c1",
                    "call_tool",
                    json!({"name": "jira_search", "arguments": {"title": "x"}}),
                ),
            ),
            streamed(api, &text("Found.")),
        ];
        let direct = |model: &mut toolgate_agent::ModelSettings| {
            model.discovery = Some(ToolDiscovery::Direct);
        };
        let mut lab = Lab::with(api, plays, direct, |_| {}).await;
        lab.answer("1").await;
        lab.tools.change(|catalogue| catalogue.listed.push(tool("jira_search", "jira")));
        assert_eq!(lab.answer("2").await.text, "Found.", "{api:?}");
        let sent = &lab.endpoint.received()[2].body;
        assert!(
            sent.contains("New tool `jira_search`, to be called with call_tool: Does jira_search."),
            "{api:?}: {sent}"
        );
        assert!(sent.contains("`time_now` is in your list of tools."), "{api:?}: {sent}");
        assert!(!sent.contains("tool_reference"), "{api:?}: {sent}");
        let calls = lab.tools.calls.lock().clone();
        assert_eq!(calls[0].name, "jira_search", "{api:?}");
        assert_eq!(lab.body(0)["tools"], lab.body(3)["tools"], "{api:?}");
    }
}

fn search_call(id: &str, query: &str) -> Value {
    json!({"id": format!("tsc_{id}"), "type": "tool_search_call", "call_id": id, "execution": "client",
        "arguments": {"query": query}, "status": "completed"})
}

async fn responses_search_is_answered_with_namespaces() {
    let api = WireApi::Responses;
    let mut called =
        crate::scripts::function_call_item("c1", "github_create_issue", &json!({"title": "x"}));
    called["namespace"] = "github".into();
    let plays = vec![
        Play::Events(responses_events(&[search_call("s1", "_")])),
        Play::Events(responses_events(&[called.clone()])),
        streamed(api, &text("Filed.")),
    ];
    let mut lab = Lab::new(api, plays).await;
    assert_eq!(lab.answer("File it").await.text, "Filed.");
    let first = lab.body(0);
    assert_eq!(first["tools"][0]["type"], "tool_search");
    assert_eq!(first["tools"][0]["execution"], "client");
    assert!(first["tools"][0]["description"].as_str().unwrap().contains("- github: The github."));
    assert_eq!(names(&first["tools"]), ["time_now"]);
    let output = &lab.body(1)["input"][2];
    assert_eq!(
        (&output["type"], &output["call_id"], &output["execution"]),
        (&json!("tool_search_output"), &json!("s1"), &json!("client"))
    );
    assert_eq!(names(&output["tools"]), ["time", "github", "logs"]);
    let github = &output["tools"][1];
    assert_eq!(
        (&github["type"], &github["description"]),
        (&json!("namespace"), &json!("The github."))
    );
    assert_eq!(github["tools"][0]["name"], "github_create_issue");
    assert_eq!(github["tools"][0]["defer_loading"], true);
    assert_eq!(github["tools"][0]["output_schema"]["type"], "object");
    assert_eq!(lab.body(2)["input"][3], called);
    assert_eq!(lab.tools.called(), ["github_create_issue"]);
}

async fn responses_hosted_search_has_one_namespace_a_server() {
    let api = WireApi::Responses;
    let searched = [
        json!({"id": "ts_1", "type": "tool_search_call", "call_id": null, "execution": "server", "arguments": {"paths": ["github"]}, "status": "completed"}),
        json!({"id": "to_1", "type": "tool_search_output", "call_id": null, "execution": "server", "status": "completed", "tools": []}),
        message_item("Found."),
    ];
    let plays = vec![Play::Events(responses_events(&searched)), streamed(api, &text("Yes."))];
    let mut lab =
        Lab::with(api, plays, |model| model.discovery = Some(ToolDiscovery::Hosted), |_| {}).await;
    lab.answer("Find").await;
    lab.tools.change(|catalogue| catalogue.deferred.push(tool("jira_search", "jira")));
    lab.answer("Sure?").await;
    let tools = lab.body(0)["tools"].clone();
    assert_eq!(tools[0], json!({"type": "tool_search", "execution": "server"}));
    assert_eq!(names(&tools), ["time_now", "github", "logs"]);
    assert_eq!(tools[2]["tools"][0]["defer_loading"], true);
    let input = lab.body(1)["input"].clone();
    assert_eq!(input.as_array().unwrap()[1..4], searched);
    assert_eq!(input[5]["type"], "additional_tools");
    assert_eq!(input[5]["tools"][0]["name"], "jira");
}

async fn responses_append_tools() {
    let api = WireApi::Responses;
    let plays = vec![
        streamed(api, &call("s1", "search_tools", json!({"query": "issue"}))),
        streamed(api, &call("c1", "github_create_issue", json!({}))),
        streamed(api, &call("s2", "search_tools", json!({"query": "issue"}))),
        streamed(api, &text("Filed.")),
    ];
    let mut lab =
        Lab::with(api, plays, |model| model.discovery = Some(ToolDiscovery::Appended), |_| {})
            .await;
    lab.answer("File it").await;
    assert_eq!(names(&lab.body(0)["tools"]), ["search_tools", "time_now"]);
    let input = lab.body(1)["input"].clone();
    assert_eq!(input[2]["output"], "Found, and loaded: github_create_issue");
    assert_eq!(
        (&input[3]["type"], &input[3]["role"]),
        (&json!("additional_tools"), &json!("developer"))
    );
    assert_eq!(names(&input[3]["tools"]), ["github_create_issue"]);
    // The second search appends nothing: the tool is there.
    assert_eq!(lab.body(3)["input"].as_array().unwrap().len(), 8);
}

async fn meta_tools_are_listed_alone() {
    for api in crate::scripts::WIRES {
        for (discovery, expected) in [
            (ToolDiscovery::Stable, ["search_tools", "call_tool"]),
            (ToolDiscovery::Code, ["search_tools", "run_code"]),
        ] {
            let plays = vec![
                streamed(api, &call("c1", expected[1], json!({"name": "x"}))),
                streamed(api, &text("Done.")),
            ];
            let mut lab =
                Lab::with(api, plays, |model| model.discovery = Some(discovery), |_| {}).await;
            lab.answer("Go").await;
            let tools = lab.body(0)["tools"].clone();
            let listed: Vec<String> = match api {
                WireApi::Completions => tools
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
                    .collect(),
                WireApi::Gemini => names(&tools[0]["functionDeclarations"])
                    .into_iter()
                    .map(str::to_owned)
                    .collect(),
                _ => names(&tools).into_iter().map(str::to_owned).collect(),
            };
            assert_eq!(listed, expected, "{api:?}");
            assert_eq!(lab.tools.called(), [expected[1]], "{api:?}");
        }
    }
}
