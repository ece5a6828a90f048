//! Servers of both eras whose tools can ask only in the legacy one.

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Faults, Fixture, FixtureEra, installed_servers};

use super::{
    called,
    talk::{Manners, Talk, Way},
};
use crate::support::{Workplace, entry_with, text, until};

/// A server with a tool that asks and one that tells in which era it was called, and the log of its calls.
fn workplace(era: FixtureEra, read_only: bool) -> (Workplace, std::path::PathBuf) {
    let place = Workplace::empty();
    let log = place.path().join("calls.log");
    let mut ask = Builtin::AskForm.definition();
    if read_only {
        ask["annotations"] = json!({ "readOnlyHint": true });
    }
    let fixture = Fixture::new("both")
        .with_era(era)
        .with_tool(ask)
        .with_builtins([Builtin::Client])
        .with_faults(Faults { asks_only_by_requests: true, ..Faults::default() })
        .with_call_log(&log);
    let servers = json!({ "both": entry_with(&fixture, json!({ "trusted": true })) });
    let config = json!({ "mcpServers": servers, "toolSearch": { "enabled": true } });
    place.rewrite(&config.to_string());
    (place, log)
}

fn through(tool: &str) -> Value {
    json!({ "name": tool, "arguments": {} })
}

/// What an answer that is an error says.
fn said(answer: &Value) -> &str {
    let error = answer["error"]["message"].as_str();
    error.unwrap_or_else(|| {
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        text(&answer["result"])
    })
}

async fn person(question: Value) -> Value {
    assert!(question["message"].as_str().unwrap().contains("asks:"), "{question}");
    json!({ "action": "accept", "content": { "name": "Ada" } })
}

#[tokio::test]
async fn a_tool_that_only_reads_asks_at_its_first_call() {
    for way in Way::ALL {
        let (place, log) = workplace(FixtureEra::Both, true);
        let (mut client, _kept) = Talk::start(&place, way, Manners::ASKED).await;
        let before = client.call_alone("call_tool", through("both_client")).await;
        let version = "io.modelcontextprotocol/protocolVersion";
        assert_eq!(before["structuredContent"][version], "2026-07-28", "{before}");
        let answered = client.call("call_tool", through("both_ask_form"), person).await;
        assert!(answered["structuredContent"].to_string().contains("Ada"), "{way:?}: {answered}");
        assert_eq!(called(&log), ["client", "ask_form", "ask_form"], "{way:?}");
        let after = client.call_alone("call_tool", through("both_client")).await;
        assert_eq!(after["structuredContent"]["protocolVersion"], "2025-11-25", "{after}");
    }
}

#[tokio::test]
async fn a_tool_that_may_have_had_an_effect_asks_when_it_is_called_again() {
    let (place, log) = workplace(FixtureEra::Both, false);
    let mut client = place.serve(&[]);
    client.request("initialize", Manners::ASKED.initialize()).await.unwrap();
    client.notify("notifications/initialized", json!({})).await.unwrap();
    let call = json!({ "name": "call_tool", "arguments": through("both_ask_form") });
    let answer = client.request("tools/call", call).await.unwrap();
    insta::assert_snapshot!(said(&answer), @"server `both` refused `ask_form`: Cannot send 'elicitation/create': this transport context has no back-channel for server-initiated requests. (toolgate: this server can ask its client only in the legacy era of MCP, and toolgate uses that era for it from now on. The call was not repeated, because it may have had an effect: call again)");
    assert_eq!(called(&log), ["ask_form"], "it was not repeated");
    let mut talk = Talk::StdioLegacy(client);
    let answered = talk.call("call_tool", through("both_ask_form"), person).await;
    assert!(answered["structuredContent"].to_string().contains("Ada"), "{answered}");
    // The era is remembered, once the definitions of the new connection are stored.
    let stored = place.path().join("state/cache/servers");
    until("the legacy era is stored", async || {
        let files = std::fs::read_dir(&stored).ok()?.flatten();
        let mut texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
        texts.any(|text| text.contains("legacy")).then_some(())
    })
    .await;
    drop(talk);
    let (mut talk, _kept) = Talk::start(&place, Way::StdioLegacy, Manners::ASKED).await;
    let answered = talk.call("call_tool", through("both_ask_form"), person).await;
    assert!(answered["structuredContent"].to_string().contains("Ada"), "{answered}");
}

#[tokio::test]
async fn a_server_without_the_legacy_era_stays_as_it_is() {
    let (place, log) = workplace(FixtureEra::Modern, true);
    let mut client = place.serve(&[]);
    client.request("initialize", Manners::ASKED.initialize()).await.unwrap();
    client.notify("notifications/initialized", json!({})).await.unwrap();
    for _ in 0..2 {
        let call = json!({ "name": "call_tool", "arguments": through("both_ask_form") });
        let answer = client.request("tools/call", call).await.unwrap();
        insta::allow_duplicates! {
            insta::assert_snapshot!(said(&answer), @r#"server `both` refused `ask_form`: Cannot send 'elicitation/create': this transport context has no back-channel for server-initiated requests. (toolgate: this server can ask its client only in the legacy era of MCP, and toolgate could not connect to it again in that era: set `"protocol": "legacy"` at the server, and restart toolgate)"#);
        }
    }
    assert_eq!(called(&log), ["ask_form", "ask_form"]);
    let mut talk = Talk::StdioLegacy(client);
    let after = talk.call_alone("call_tool", through("both_client")).await;
    let version = "io.modelcontextprotocol/protocolVersion";
    assert_eq!(after["structuredContent"][version], "2026-07-28", "{after}");
}

/// The SDK for Python, with tools that ask by requests.
const SERVER: &str = "
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel


class Answer(BaseModel):
    name: str


server = MCPServer('both')


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit('Who?', Answer)
    return answer.data.name


server.run()
";

#[tokio::test]
async fn a_tool_of_the_python_sdk_asks() {
    let Some(servers) = installed_servers() else { return };
    let server = json!({
        "command": servers.python_interpreter(), "args": ["-c", SERVER], "trusted": true,
    });
    let place = Workplace::deferred(&json!({ "both": server }));
    let (mut client, _kept) = Talk::start(&place, Way::StdioLegacy, Manners::ASKED).await;
    let answered = client.call("call_tool", through("both_ask"), person).await;
    assert_eq!(text(&answered), "Ada");
}

#[tokio::test]
async fn a_setting_chooses_the_legacy_era_from_the_beginning() {
    let Some(servers) = installed_servers() else { return };
    let server = json!({
        "command": servers.python_interpreter(), "args": ["-c", SERVER], "protocol": "legacy",
    });
    let place = Workplace::deferred(&json!({ "both": server }));
    let (mut client, _kept) = Talk::start(&place, Way::StdioLegacy, Manners::ASKED).await;
    let answered = client.call("call_tool", through("both_ask"), person).await;
    assert_eq!(text(&answered), "Ada");
}
