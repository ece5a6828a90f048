//! Calls of code that runs at the provider.

use std::time::SystemTime;

use serde_json::{Value, json};
use toolgate_agent::{AgentEvent, EndReason, ToolCaller, WireApi};

use crate::{
    endpoint::Play,
    lab::{Lab, read, scenarios},
    scripts::{
        anthropic_events, function_call_item, message_item, responses_events, streamed, text,
    },
};

scenarios!(
    anthropic_code_gets_results_alone_and_its_container,
    allowed_callers_hold_in_both_directions,
    a_question_waits_until_code_has_its_results,
    results_come_before_the_container_expires,
    responses_programs_are_round_tripped,
);

fn container(seconds: i64) -> Value {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let end = i64::try_from(now.as_secs()).unwrap() + seconds;
    let end = chrono::DateTime::from_timestamp(end, 0).unwrap();
    json!({"id": "container_1", "expires_at": end.to_rfc3339(), "skills": null})
}

fn program() -> Value {
    json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {"code": "await logs_read()"}, "caller": {"type": "direct"}})
}

fn by_code(id: &str, name: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": {},
        "caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}})
}

fn ran() -> Value {
    json!({"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1",
        "content": {"type": "code_execution_result", "stdout": "2\n", "stderr": "", "return_code": 0, "content": []}})
}

async fn programmatic(plays: Vec<Play>) -> Lab {
    Lab::with(WireApi::Anthropic, plays, |model| model.programmatic = true, |_| {}).await
}

async fn anthropic_code_gets_results_alone_and_its_container() {
    let calls = [program(), by_code("c1", "logs_read"), by_code("c2", "logs_scan")];
    let plays = vec![
        Play::Events(anthropic_events(&calls, "tool_use", container(240))),
        Play::Events(anthropic_events(
            &[ran(), json!({"type": "text", "text": "Two.", "citations": null})],
            "end_turn",
            container(240),
        )),
        streamed(WireApi::Anthropic, &text("Yes.")),
    ];
    let mut lab = programmatic(plays).await;
    assert_eq!(lab.answer("Count").await.text, "Two.");
    // A change of the catalogue has to wait: it would stand beside the results.
    lab.answer("Sure?").await;
    let tools = lab.body(0)["tools"].as_array().unwrap().clone();
    assert!(tools.contains(&json!({"type": "code_execution_20260120", "name": "code_execution"})));
    let callers = |name: &str| {
        tools.iter().find(|tool| tool["name"] == name).unwrap()["allowed_callers"].clone()
    };
    assert_eq!(callers("logs_read"), json!(["direct", "code_execution_20260120"]));
    assert_eq!(callers("github_delete_repo"), json!(["direct"]));
    assert_eq!(callers("logs_scan"), json!(["code_execution_20260120"]));
    assert_eq!(lab.body(0)["container"], Value::Null);
    let body = lab.body(1);
    assert_eq!(body["container"], "container_1");
    assert_eq!(body["messages"].as_array().unwrap().len(), 3);
    let content = body["messages"][2]["content"].as_array().unwrap().clone();
    let kinds: Vec<_> = content.iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["tool_result", "tool_result"]);
    // Code gets JSON that it can read.
    assert_eq!(content[0]["content"], json!([{"type": "text", "text": r#"{"ok":true,"got":{}}"#}]));
    assert_eq!(body["messages"][1]["content"], json!(calls));
    let caller = lab.tools.calls.lock()[0].caller.clone();
    assert_eq!(caller, ToolCaller::Code { program: "srvtoolu_1".to_owned() });
}

async fn allowed_callers_hold_in_both_directions() {
    let direct = json!({"type": "tool_use", "id": "c2", "name": "logs_scan", "input": {}, "caller": {"type": "direct"}});
    // A name that nobody knows is not for code either.
    let calls = [
        program(),
        by_code("c1", "github_delete_repo"),
        direct,
        by_code("c3", "search_tools"),
        by_code("c4", "nobody"),
    ];
    let plays = vec![
        Play::Events(anthropic_events(&calls, "tool_use", container(240))),
        streamed(WireApi::Anthropic, &text("No.")),
    ];
    let mut lab = programmatic(plays).await;
    lab.answer("Delete").await;
    assert_eq!(lab.tools.called(), Vec::<String>::new());
    let content = lab.body(1)["messages"][2]["content"].clone();
    let text = |place: usize| content[place]["content"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(text(0), "`github_delete_repo` cannot be called by code; call it directly");
    assert_eq!(text(1), "`logs_scan` can be called by code only");
    assert_eq!(text(3), "`nobody` cannot be called by code; call it directly");
    assert!(
        content
            .as_array()
            .unwrap()
            .iter()
            .enumerate()
            .all(|(place, block)| place == 2 || block["is_error"] == true)
    );
}

async fn a_question_waits_until_code_has_its_results() {
    let again = [by_code("c2", "logs_read")];
    let plays = vec![
        Play::Events(anthropic_events(
            &[program(), by_code("c1", "wait")],
            "tool_use",
            container(240),
        )),
        Play::Events(anthropic_events(&again, "tool_use", container(240))),
        Play::Events(anthropic_events(
            &[ran(), json!({"type": "text", "text": "Stopped.", "citations": null})],
            "end_turn",
            container(240),
        )),
        streamed(WireApi::Anthropic, &text("Hello.")),
    ];
    let mut lab = programmatic(plays).await;
    let tools = std::sync::Arc::clone(&lab.tools);
    let turn = lab.conversation.ask("Count");
    let cancel = turn.canceller();
    let stop = async move {
        tools.waiting.acquire().await.unwrap().forget();
        cancel.cancel();
    };
    let ((_, end), ()) = tokio::join!(read(turn), stop);
    assert_eq!(end.unwrap().reason, EndReason::Cancelled);
    assert_eq!(lab.answer("Hi").await.text, "Hello.");
    // The cancelled call and the later one are answered by results alone; only then comes the question.
    assert_eq!(lab.body(1)["messages"].as_array().unwrap().len(), 3);
    assert_eq!(lab.body(2)["messages"].as_array().unwrap().len(), 5);
    let messages = lab.body(3)["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 7);
    assert_eq!(messages[6], json!({"role": "user", "content": [{"type": "text", "text": "Hi"}]}));
    assert_eq!(lab.tools.called(), ["wait"]);
}

async fn results_come_before_the_container_expires() {
    // The container ends within the margin, so a call that waits is given up at once.
    let plays = vec![
        Play::Events(anthropic_events(
            &[program(), by_code("c1", "wait")],
            "tool_use",
            container(10),
        )),
        streamed(WireApi::Anthropic, &text("Late.")),
    ];
    let mut lab = programmatic(plays).await;
    let (events, end) = lab.ask("Count").await;
    assert_eq!(end.unwrap().text, "Late.");
    assert!(
        events.iter().any(|event| matches!(event, AgentEvent::ToolResult { is_error: true, .. }))
    );
    let body = lab.body(1);
    assert_eq!(body["container"], "container_1");
    let text = body["messages"][2]["content"][0]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("its outcome is not known"), "{text}");
}

async fn responses_programs_are_round_tripped() {
    let api = WireApi::Responses;
    let program = json!({"id": "prog_1", "type": "program", "call_id": "p1", "code": "text(await tools.logs_read({}))", "fingerprint": "opaque=="});
    let mut called = function_call_item("c1", "logs_read", &json!({}));
    called["caller"] = json!({"type": "program", "caller_id": "p1"});
    let mut refused = function_call_item("c2", "github_delete_repo", &json!({}));
    refused["caller"] = json!({"type": "program", "caller_id": "p1"});
    let output = json!({"id": "po_1", "type": "program_output", "call_id": "p1", "result": "2", "status": "completed"});
    let plays = vec![
        Play::Events(responses_events(&[program.clone(), called.clone(), refused])),
        Play::Events(responses_events(&[output.clone(), message_item("Two.")])),
        streamed(api, &text("Yes.")),
    ];
    let mut lab = Lab::with(
        api,
        plays,
        |model| {
            model.programmatic = true;
            model.discovery = Some(toolgate_agent::ToolDiscovery::Direct);
        },
        |_| {},
    )
    .await;
    assert_eq!(lab.answer("Count").await.text, "Two.");
    lab.answer("Sure?").await;
    let tools = lab.body(0)["tools"].as_array().unwrap().clone();
    assert_eq!(tools[0], json!({"type": "programmatic_tool_calling"}));
    let callers = |name: &str| {
        tools.iter().find(|tool| tool["name"] == name).unwrap()["allowed_callers"].clone()
    };
    assert_eq!(callers("logs_read"), json!(["direct", "programmatic"]));
    assert_eq!(callers("logs_scan"), json!(["programmatic"]));
    let input = lab.body(1)["input"].clone();
    assert_eq!((&input[1], &input[2]), (&program, &called));
    assert_eq!(
        input[4],
        json!({"type": "function_call_output", "call_id": "c1", "output": r#"{"ok":true,"got":{}}"#,
            "caller": {"type": "program", "caller_id": "p1"}})
    );
    assert!(input[5]["output"].as_str().unwrap().contains("cannot be called by code"));
    assert_eq!(lab.body(2)["input"][6], output);
    assert_eq!(lab.tools.called(), ["logs_read"]);
}
