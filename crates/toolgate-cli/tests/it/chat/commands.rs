//! The commands within a chat.

use serde_json::{Value, json};
use toolgate_agent::WireApi;

use super::{Lab, calls, finish, says};
use crate::{
    endpoint::Play,
    scripts::{anthropic_events, responses_events},
};

#[tokio::test]
async fn commands_show_and_change_the_chat() {
    let api = WireApi::Anthropic;
    let plays = vec![
        calls(api, "search_tools", json!({ "query": "echo a message", "limit": 1 })),
        says(api, "Found it."),
        says(api, "New."),
    ];
    let more = json!({
        "toolSearch": { "enabled": true },
        "chat": { "prices": { "input": 3, "cached": 0.3, "output": 15 } },
    });
    let lab = Lab::with(plays, json!({}), more).await;
    let lines = "/tool-search status\nFind an echo\n/tool-search status\n/tool-search reset\n/cost\n/tools\n/mcp\n\
                 /mode\n/mode code\n/mode warp\n/reset\nAgain\n/unknown\n/exit\nnever asked\n";
    let outcome = finish(lab.command(api, &[]), lines).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(lab.endpoint.received().len(), 3, "{outcome:?}");
    // A new chat has none of the old one, and keeps the mode.
    let last = lab.endpoint.body(2);
    assert!(!last.to_string().contains("Find an echo"), "{last}");
    assert!(last["tools"].to_string().contains("run_code"), "{last}");
    let id =
        outcome.stderr.split_once("--resume ").unwrap().1.split('`').next().unwrap().to_owned();
    insta::assert_snapshot!(outcome.shown().replace(&id, "chat_ID"), @r#"
    exit code 0
    --- stdout
    Mode search: it was asked for.
    Searches have loaded no tool.
    Definitions: 184 tokens in the context, 129 if all 4 tools were listed; 0 saved in 0 requests.
    Found it.
    Mode search: it was asked for.
    Searches have loaded kit_echo.
    Definitions: 215 tokens in the context, 129 if all 4 tools were listed; 0 saved in 2 requests.
    Tokens: 20 new, 10 cache-written, 200 cached, 14 out.
    Cost: 0.0004 US dollars.
    Context window: 0 % of 32,768 tokens.
    Definitions: 215 tokens in the context, 129 if all 4 tools were listed; 0 saved in 2 requests.
     tool                state     tokens
     kit_counter         deferred      28
     kit_sleep           deferred      39
     kit_last_cancelled  deferred      31
     kit_echo            loaded        31
     server  state  tools  tokens  remarks
     kit     ready      4     129
    Mode search: it was asked for.
    New.
    --- stderr
    ? echo a message: kit_echo
    (Tokens: 20 new, 10 cache-written, 200 cached, 14 out. Definitions: 215 tokens in the context, 129 if all 4 tools were listed; 0 saved in 2 requests.)
    The tools that searches have loaded are unloaded with your next question.
    A new chat has begun: Mode code: it was chosen.
    error: there is no mode `warp`; modes are search, hosted, hosted-regex, appended, stable, code, direct
    A new chat has begun.
    (Tokens: 10 new, 5 cache-written, 100 cached, 7 out. Definitions: 704 tokens in the context, 129 if all 4 tools were listed; 0 saved in 1 request.)
    error: there is no command `/unknown`; /help lists them
    `toolgate chat --resume chat_ID` continues this chat.
    "#);
    // Both chats are stored.
    let stored = lab.run(api, &["--list", "--json"]).await.json();
    assert_eq!(stored.as_array().unwrap().len(), 2, "{stored}");
}

#[tokio::test]
async fn search_and_help_answer_in_the_chat() {
    let api = WireApi::Gemini;
    let lab = Lab::new(vec![]).await;
    let outcome = finish(lab.command(api, &[]), "/search echo\n/search\n/help\n").await;
    assert_eq!((outcome.code, lab.endpoint.received().len()), (Some(0), 0), "{outcome:?}");
    assert!(outcome.stdout.contains("kit_echo") && outcome.stdout.contains("/tool-search reset"));
    assert!(outcome.stderr.contains("say what the tool must do"), "{outcome:?}");
}

/// With `keepLoadedTools: false`, what a search has loaded goes with the end of the turn.
#[tokio::test]
async fn found_tools_are_unloaded_after_the_turn_or_by_a_command() {
    let query = json!({ "query": "echo a message", "limit": 1 });
    let hosted = json!({ "id": "tsc_1", "type": "tool_search_call", "call_id": "s1",
        "execution": "client", "arguments": query, "status": "completed" });
    let (anthropic, openai) = (WireApi::Anthropic, WireApi::Responses);
    let ours = |api| calls(api, "search_tools", query.clone());
    for (api, search, arguments) in [
        (anthropic, ours(anthropic), &["--tool-changes"][..]),
        (anthropic, ours(anthropic), &[]),
        (openai, Play::Events(responses_events(&[hosted])), &[]),
        (openai, ours(openai), &["--mode", "appended"]),
    ] {
        for (keep, is_one_process) in [(false, true), (false, false), (true, true)] {
            let what = format!("{api:?} {arguments:?} {keep} {is_one_process}");
            let plays = vec![search.clone(), says(api, "Found."), says(api, "Next.")];
            let more = json!({ "toolSearch": { "enabled": true, "keepLoadedTools": keep } });
            let lab = Lab::with(plays, json!({}), more).await;
            let outcome = if is_one_process {
                let reset = if keep { "/tool-search reset\n" } else { "" };
                let lines = format!("Find an echo\n{reset}And now?\n/tool-search status\n");
                finish(lab.command(api, arguments), &lines).await
            } else {
                finish(lab.command(api, arguments), "Find an echo\n").await;
                let lines = "And now?\n/tool-search status\n";
                finish(lab.command(api, &["--continue"]), lines).await
            };
            let (found, last) = (lab.endpoint.body(1), lab.endpoint.body(2));
            let messages = |body: &Value| body.get("messages").or(body.get("input")).cloned();
            let last_messages = messages(&last).unwrap().to_string();
            let told = last_messages.contains("tool_removal");
            assert_eq!(told, !arguments.is_empty() && api == anthropic, "{what}: {last}");
            let is_loaded = |text: &str| {
                text.contains("tool_reference\",\"tool_name") || text.contains("\"parameters\"")
            };
            assert!(is_loaded(&messages(&found).unwrap().to_string()), "{what}: {found}");
            assert!(told || !is_loaded(&last_messages), "{what}: {last_messages}");
            assert_eq!(found["tools"], last["tools"], "{what}");
            assert!(
                outcome.stdout.contains("Searches have loaded no tool."),
                "{what}: {outcome:?}"
            );
        }
    }
}

/// What the provider's own search has loaded is in its own messages.
#[tokio::test]
async fn what_a_hosted_search_has_loaded_is_shown_and_stays() {
    let api = WireApi::Anthropic;
    let searched = [
        json!({ "type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_bm25",
            "input": { "query": "echo" }, "caller": { "type": "direct" } }),
        json!({ "type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1", "content": {
            "type": "tool_search_tool_search_result",
            "tool_references": [{ "type": "tool_reference", "tool_name": "kit_echo" }] } }),
        json!({ "type": "text", "text": "Found.", "citations": null }),
    ];
    let plays = vec![
        Play::Events(anthropic_events(&searched, "end_turn", Value::Null)),
        says(api, "Next."),
    ];
    let lab = Lab::with(plays, json!({}), json!({ "toolSearch": { "enabled": true } })).await;
    let lines = "Find\n/tool-search status\n/tool-search reset\nGo on\n/tools\n";
    let outcome = finish(lab.command(api, &["--mode", "hosted"]), lines).await;
    assert!(outcome.stdout.contains("Searches have loaded kit_echo."), "{outcome:?}");
    assert!(outcome.stderr.contains("its own messages cannot be changed"), "{outcome:?}");
    assert!(outcome.stderr.contains("? echo: kit_echo"), "{outcome:?}");
    assert!(lab.endpoint.body(1).to_string().contains("tool_search_tool_search_result"));
    let last = outcome.stdout.trim_end().lines().last().unwrap();
    assert!(last.contains("kit_echo") && last.contains("loaded"), "{outcome:?}");
}

#[tokio::test]
async fn a_problem_with_one_question_does_not_end_the_chat() {
    let api = WireApi::Completions;
    let refused = crate::endpoint::Play::Status(400, vec![], json!({ "error": "bad" }));
    let lab = Lab::new(vec![refused, says(api, "Better.")]).await;
    let outcome = finish(lab.command(api, &[]), "One\nTwo\n").await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stderr.contains("error: the provider refused the request (400): bad"));
    assert!(outcome.stdout.contains("Better."), "{outcome:?}");
}
