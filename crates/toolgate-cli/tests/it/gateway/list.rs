//! The cost of a deferred session.

use serde_json::{Value, json};
use toolgate_catalog::TokenCounter;
use toolgate_testkit::RawClient;

use crate::{
    fixtures::{kit, notes, weather},
    support::{META, Workplace, entry, list, names},
};

/// The bytes of the list, without the message around it.
async fn bytes(client: &mut RawClient) -> String {
    client.begin("tools/list", json!({})).await.unwrap();
    loop {
        let line = client.line().await.unwrap();
        if let Some((_, result)) = line.split_once("\"result\":") {
            return result.to_owned();
        }
    }
}

fn workplace() -> Workplace {
    Workplace::deferred(&json!({
        "notes": entry(&notes()), "weather": entry(&weather()), "kit": entry(&kit()),
    }))
}

#[tokio::test]
async fn five_tools_cost_at_most_a_thousand_tokens() {
    let workplace = workplace();
    for mode in ["stable", "dynamic"] {
        let mut client = workplace.connect(&["--mode", mode]).await;
        let tools = list(&mut client).await;
        assert_eq!(names(&tools), META);
        let whole = serde_json::to_string(&tools).unwrap();
        let tokens = TokenCounter::shared().count(&whole);
        assert!(tokens <= 1_000, "{mode}: {tokens}");
    }
}

#[tokio::test]
async fn the_list_has_the_same_bytes_on_every_call_and_start() {
    let workplace = workplace();
    let mut first = workplace.connect(&[]).await;
    let given = bytes(&mut first).await;
    let search = json!({ "query": "weather of a place" });
    first.call("search_tools", search).await.unwrap();
    assert_eq!(bytes(&mut first).await, given, "after a search");
    drop(first);
    // Now from the cache, where nothing is waited for.
    let mut second = workplace.connect(&[]).await;
    assert_eq!(bytes(&mut second).await, given, "after a restart");
}

#[tokio::test]
async fn the_handshake_is_the_same_each_time() {
    let workplace = workplace();
    let answers: Vec<Value> = {
        let (mut first, mut second) = (workplace.serve(&[]), workplace.serve(&[]));
        vec![first.initialize().await.unwrap(), second.initialize().await.unwrap()]
    };
    assert_eq!(answers[0], answers[1]);
    let result = &answers[0]["result"];
    assert_eq!(result["serverInfo"]["name"], "toolgate");
    assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
    insta::assert_snapshot!(result["instructions"].as_str().unwrap(), @"This server gives access to other servers. Where search_tools is listed, most of their tools are not: search_tools finds them by what they do, get_tool_details shows their parameters, call_tool calls them. For several calls in a row, run_code runs a script that makes them. Servers: notes, weather, kit.");
}

#[tokio::test]
async fn the_descriptions_of_the_meta_tools() {
    let mut client = workplace().connect(&[]).await;
    let tools = list(&mut client).await;
    let shown: Vec<String> = tools
        .iter()
        .map(|tool| {
            let description = tool["description"].as_str().unwrap();
            let name = tool["name"].as_str().unwrap();
            let signature = toolgate_catalog::signature(name, &tool["inputSchema"]);
            format!("{signature}\n  {description}")
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    search_tools(query?: string, queries?: string[], server?: string, limit?: integer, offset?: integer, strategy?: "hybrid" | "bm25" | "embedding" | "keyword" | "…, detail?: "name" | "description" | "schema")
      Find tools of the connected servers by what they do. Most tools are not listed: search before you say that something cannot be done. Call a found tool with call_tool.
    get_tool_details(names: string[], format?: "typescript" | "python" | "json")
      Full definitions of tools: parameters, types, what they return. Read them before the first call.
    call_tool(name: string, arguments?: object)
      Call a tool by its name from search_tools. Arguments are checked first; the tool's own result comes back.
    run_code(code: string, language?: "typescript" | "python")
      Run a script that calls tools; only what it prints and returns comes back. For several calls, large results, loops. Every tool is an async function of its name. TypeScript: const issues = await github_list_issues({repo: "a/b"}); return issues.length; also tools[name]({…}). Python (a subset of Python 3): issues = await github_list_issues(repo="a/b"); print(len(issues)). A result is data already, do not parse it; or text where the tool gives text. A failed call throws. search_tools, get_tool_details, read_resource(uri) and read_output are functions too. Parallel: Promise.all, asyncio.gather. There is no network, no file, no package. For types: get_tool_details with format.
    resume_run(run_id: string, code?: string)
      Go on with a run_code that failed, was interrupted or waits for approval, by its run id. Calls that completed are not repeated. With code: corrected, its first calls the same.
    read_output(id: string, offset?: integer, pattern?: string)
      More of an output that was too long to show, or a toolgate:// resource: from an offset on, or the lines that match a pattern.
    "#);
}

#[tokio::test]
async fn unknown_requests_are_refused() {
    let mut client = workplace().connect(&[]).await;
    for method in ["resources/list", "prompts/list", "made/up"] {
        let answer = client.request(method, json!({})).await.unwrap();
        assert!(answer["error"]["code"].is_i64() || answer["result"].is_object(), "{answer}");
    }
    let answer = client.request("ping", json!({})).await.unwrap();
    assert_eq!(answer["result"], json!({}));
    let answer = client.call("no_such_tool", json!({})).await.unwrap();
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert_eq!(list(&mut client).await.len(), META.len());
}
