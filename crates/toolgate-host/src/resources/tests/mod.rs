//! Two and more servers behind one host, as a session sees them.

mod events;

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Map, Value, json};
use toolgate_testkit::{AnswerFault, Builtin, Faults, Fixture};
use toolgate_upstream::{CallOptions, Endpoint, ServerSpec, StartMode, StateKind, StdioEndpoint};

use super::*;
use crate::{HostSettings, ServerSetup, ToolSession, session::CallFailure};

const TIMEOUT: Duration = Duration::from_secs(30);

fn setup(name: &str, fixture: &Fixture) -> ServerSetup {
    let entry = fixture.entry().unwrap();
    started_by(name, entry.command, entry.args)
}

fn started_by(name: &str, command: String, args: Vec<String>) -> ServerSetup {
    let endpoint =
        Endpoint::Stdio(StdioEndpoint { command, args, env: BTreeMap::new(), cwd: None });
    ServerSetup::new(ServerSpec::new(name, endpoint))
}

async fn host(servers: Vec<ServerSetup>) -> ToolHost {
    let host = ToolHost::start(HostSettings { usage_memory: false, ..HostSettings::new(servers) });
    host.all_known().await;
    host
}

/// Notes: a resource, an image, a template and a prompt.
fn notes(name: &str) -> Fixture {
    Fixture::new(name)
        .with_resources([
            json!({ "uri": "file:///notes", "name": "notes", "size": 12.0, "odd": { "a": 1 } }),
            json!({ "uri": "file:///chart", "name": "chart", "mimeType": "image/png" }),
        ])
        .with_templates([json!({ "uriTemplate": "note:///größe/{+path}", "name": "any" })])
        .with_prompts([json!({ "name": "greet", "arguments": [{ "name": "who" }], "odd": 1 })])
}

async fn try_ask(session: &ToolSession, method: &str, params: Value) -> Result<Value, CallFailure> {
    let Value::Object(params) = params else { panic!("parameters are an object") };
    let asked = session.request(method, params, CallOptions::default());
    tokio::time::timeout(TIMEOUT, asked).await.expect("it hangs")
}

async fn ask(session: &ToolSession, method: &str, params: Value) -> Value {
    try_ask(session, method, params).await.unwrap_or_else(|error| panic!("{method}: {error:?}"))
}

async fn refusal(session: &ToolSession, method: &str, params: Value) -> (i64, String) {
    match try_ask(session, method, params).await {
        Err(CallFailure::Refused { code, message, .. }) => (code, message),
        other => panic!("{method}: {other:?}"),
    }
}

async fn read(session: &ToolSession, uri: &str) -> Value {
    ask(session, "resources/read", json!({ "uri": uri })).await
}

fn tool_text(result: &Value, list: &str, field: &str) -> Vec<String> {
    let items = result[list].as_array().unwrap_or_else(|| panic!("{result}"));
    items.iter().map(|item| item[field].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn equal_uris_of_two_servers_stay_apart() {
    let host = host(vec![setup("one", &notes("one")), setup("two", &notes("two"))]).await;
    let session = host.session();
    let listed = ask(&session, "resources/list", json!({})).await;
    assert_eq!(
        tool_text(&listed, "resources", "uri"),
        [
            "toolgate://one/file:///notes",
            "toolgate://one/file:///chart",
            "toolgate://two/file:///notes",
            "toolgate://two/file:///chart",
        ]
    );
    assert_eq!(
        listed["resources"][2],
        json!({ "uri": "toolgate://two/file:///notes", "name": "notes", "size": 12.0, "odd": { "a": 1 } })
    );
    assert!(listed.get("_meta").is_none() && listed.get("nextCursor").is_none(), "{listed}");
    for server in ["one", "two"] {
        let uri = format!("toolgate://{server}/file:///notes");
        assert_eq!(
            read(&session, &uri).await,
            json!({ "contents": [{
                "uri": uri, "mimeType": "text/plain", "odd": [1],
                "text": format!("{server} has file:///notes"),
            }] })
        );
    }
    let (code, message) =
        refusal(&session, "resources/read", json!({ "uri": "file:///notes" })).await;
    assert_eq!(code, -32602);
    assert!(message.contains("toolgate://two/file:///notes"), "{message}");
    for uri in ["toolgate://three/file:///notes", "toolgate://one/file:///none", "x:nowhere", ""] {
        let (code, _) = refusal(&session, "resources/read", json!({ "uri": uri })).await;
        assert_eq!(code, -32002, "{uri}");
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_uri_that_one_server_lists_can_be_read_as_it_is() {
    let other = Fixture::new("other").with_resources([json!({ "uri": "https://x.org/a" })]);
    let host = host(vec![setup("one", &notes("one")), setup("other", &other)]).await;
    let result = read(&host.session(), "https://x.org/a").await;
    assert_eq!(result["contents"][0]["uri"], "toolgate://other/https://x.org/a");
    host.shutdown().await;
}

#[tokio::test]
async fn prompts_are_named_like_tools() {
    let mut bare = setup("bare", &notes("bare"));
    bare.entry.prefix = Some(String::new());
    let mut other = setup("other", &notes("other"));
    other.entry.prefix = Some(String::new());
    let host = host(vec![setup("one", &notes("one")), bare, other]).await;
    let session = host.session();
    let listed = ask(&session, "prompts/list", json!({})).await;
    let names = tool_text(&listed, "prompts", "name");
    assert_eq!(names[0], "one_greet");
    assert!(names[1].starts_with("greet_") && names[2].starts_with("greet_"), "{names:?}");
    assert_ne!(names[1], names[2]);
    assert_eq!(
        listed["prompts"][0],
        json!({ "name": "one_greet", "arguments": [{ "name": "who" }], "odd": 1 })
    );
    for (name, server) in names.iter().zip(["one", "bare", "other"]) {
        let params = json!({ "name": name, "arguments": { "who": "you" } });
        let prompt = ask(&session, "prompts/get", params).await;
        assert_eq!(
            prompt["messages"][0]["content"]["text"],
            format!("{server} says \"greet\" with {{\"who\":\"you\"}}")
        );
        let link = prompt["messages"][1]["content"]["uri"].as_str().unwrap();
        let text = &read(&session, link).await["contents"][0]["text"];
        assert_eq!(*text, format!("{server} has file:///notes"));
    }
    assert_eq!(refusal(&session, "prompts/get", json!({ "name": "greet" })).await.0, -32602);
    host.shutdown().await;
}

#[tokio::test]
async fn templates_are_expanded_and_completed_at_their_server() {
    let host = host(vec![setup("one", &notes("one")), setup("two", &notes("two"))]).await;
    let session = host.session();
    let listed = ask(&session, "resources/templates/list", json!({})).await;
    let templates = tool_text(&listed, "resourceTemplates", "uriTemplate");
    assert_eq!(templates[1], "toolgate://two/note:///gr%C3%B6%C3%9Fe/{+path}");
    let reference = json!({ "type": "ref/resource", "uri": templates[1] });
    let params = json!({ "ref": reference, "argument": { "name": "path", "value": "a" } });
    let completed = ask(&session, "completion/complete", params).await;
    assert_eq!(completed["completion"]["values"], json!(["note:///größe/{+path}", "a"]));
    let reference = json!({ "type": "ref/prompt", "name": "two_greet" });
    let params = json!({ "ref": reference, "argument": { "name": "who", "value": "b" } });
    let completed = ask(&session, "completion/complete", params).await;
    assert_eq!(completed["completion"]["values"], json!(["greet", "b"]));
    for reference in [json!({ "type": "ref/odd" }), json!("none"), json!({ "type": "ref/prompt" })]
    {
        let (code, _) = refusal(&session, "completion/complete", json!({ "ref": reference })).await;
        assert_eq!(code, -32602);
    }
    assert_eq!(refusal(&session, "resources/destroy", json!({})).await.0, -32601);
    host.shutdown().await;
}

#[tokio::test]
async fn a_link_in_a_result_can_be_read() {
    let linking =
        notes("linking").with_tool(json!({ "name": "link", "inputSchema": {} })).with_answer(
            "link",
            json!({ "content": [
            { "type": "resource_link", "uri": "file:///notes", "name": "n" },
            { "type": "resource", "resource": { "uri": "file:///chart", "blob": "eA==" } },
        ] }),
        );
    let host = host(vec![setup("other", &notes("other")), setup("linking", &linking)]).await;
    let session = host.session();
    let result = session.call("linking_link", Map::new(), CallOptions::default()).await.unwrap();
    assert_eq!(result["content"][1]["resource"]["uri"], "toolgate://linking/file:///chart");
    let link = result["content"][0]["uri"].as_str().unwrap();
    let text = &read(&session, link).await["contents"][0]["text"];
    assert_eq!(text, "linking has file:///notes");
    host.shutdown().await;
}

#[tokio::test]
async fn a_server_gets_its_own_uris() {
    let echoing = notes("one").with_builtins([Builtin::Echo]);
    let host = host(vec![setup("one", &echoing), setup("two", &echoing)]).await;
    let arguments = json!({ "message": "toolgate://one/file:///notes" });
    let told = async |tool: &str| {
        let arguments = arguments.as_object().cloned().unwrap();
        let result = host.session().call(tool, arguments, CallOptions::default()).await.unwrap();
        result["structuredContent"]["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(told("one_echo").await, "file:///notes");
    assert_eq!(told("two_echo").await, "toolgate://one/file:///notes", "it is none of its own");
    host.shutdown().await;
}

#[tokio::test]
async fn dead_and_silent_servers_do_not_affect_others() {
    let fault = Faults::broken_answer("resources/list", AnswerFault::Silence);
    let silent = notes("silent").with_faults(fault);
    let plain = Fixture::new("plain").with_builtins([Builtin::Echo]);
    let missing = started_by("missing", "/nonexistent/server".to_owned(), Vec::new());
    let servers = vec![
        missing,
        setup("silent", &silent),
        setup("plain", &plain),
        setup("good", &notes("good")),
    ];
    let host = host(servers).await;
    let session = host.session();
    let listed = ask(&session, "resources/list", json!({})).await;
    assert_eq!(
        tool_text(&listed, "resources", "uri"),
        ["toolgate://good/file:///notes", "toolgate://good/file:///chart"]
    );
    let problems = &listed["_meta"]["toolgate/incomplete"];
    assert_eq!(
        *problems,
        json!({ "missing": "it is not connected", "silent": "no answer in 3 s" }),
    );
    let again =
        tokio::time::timeout(lists::LIST_TIMEOUT / 2, ask(&session, "resources/list", json!({})));
    assert_eq!(again.await.expect("a second list waits no more"), listed);
    let uri = "toolgate://silent/file:///notes";
    assert_eq!(read(&session, uri).await["contents"][0]["text"], "silent has file:///notes");
    host.shutdown().await;
}

#[tokio::test]
async fn reading_connects_a_lazy_server_and_listing_does_not() {
    let mut lazy = setup("lazy", &notes("lazy"));
    lazy.spec.start = StartMode::OnDemand;
    let settings = HostSettings {
        usage_memory: false,
        connect: crate::Connect::WhenNeeded,
        ..HostSettings::new(vec![lazy])
    };
    let host = ToolHost::start(settings);
    let session = host.session();
    let mut notifications = session.notifications();
    let listed = ask(&session, "resources/list", json!({})).await;
    assert_eq!(listed, json!({ "resources": [] }));
    assert_eq!(refusal(&session, "prompts/get", json!({ "name": "other_greet" })).await.0, -32602);
    assert_eq!(host.servers().state("lazy").unwrap().kind, StateKind::Idle);

    let uri = "toolgate://lazy/file:///notes";
    assert_eq!(read(&session, uri).await["contents"][0]["text"], "lazy has file:///notes");
    let told = events::next(&mut notifications).await;
    assert_eq!(told.method, "notifications/resources/list_changed");
    let listed = ask(&session, "resources/list", json!({})).await;
    assert_eq!(tool_text(&listed, "resources", "uri")[0], uri);
    host.shutdown().await;
}

#[tokio::test]
async fn a_uri_without_a_server_connects_those_that_may_have_it() {
    let mut lazy = setup("lazy", &notes("lazy"));
    lazy.spec.start = StartMode::OnDemand;
    let settings = HostSettings {
        usage_memory: false,
        connect: crate::Connect::WhenNeeded,
        ..HostSettings::new(vec![lazy])
    };
    let host = ToolHost::start(settings);
    let session = host.session();
    let read = ask(&session, "resources/read", json!({ "uri": "file:///notes" })).await;
    assert_eq!(read["contents"][0]["text"], "lazy has file:///notes");
    host.shutdown().await;
}

#[tokio::test]
async fn a_cached_prompt_connects_its_server() {
    let mut lazy = setup("lazy", &notes("lazy"));
    lazy.spec.start = StartMode::OnDemand;
    let settings = HostSettings {
        usage_memory: false,
        connect: crate::Connect::WhenNeeded,
        ..HostSettings::new(vec![lazy])
    };
    let host = ToolHost::start(settings);
    let prompt = ask(&host.session(), "prompts/get", json!({ "name": "lazy_greet" })).await;
    assert_eq!(prompt["messages"][0]["content"]["text"], "lazy says \"greet\" with null");
    host.shutdown().await;
}

#[tokio::test]
async fn long_lists_come_in_pages() {
    let folder = tempfile::tempdir().unwrap();
    let many = (0..1_200).map(|number| json!({ "uri": format!("x:{number}") }));
    let pages = toolgate_testkit::Pages { size: 100, cursors: toolgate_testkit::Cursors::Honest };
    let fixture = Fixture::new("many")
        .with_resources(many)
        .with_faults(Faults { pages: Some(pages), ..Faults::default() });
    let entry = fixture.entry_through_file(&folder.path().join("fixture.json")).unwrap();
    let many = started_by("many", entry.command, entry.args);
    let host = host(vec![many, setup("one", &notes("one"))]).await;
    let session = host.session();
    let (mut uris, mut sizes, mut params) = (Vec::new(), Vec::new(), json!({}));
    loop {
        let page = ask(&session, "resources/list", params).await;
        let found = tool_text(&page, "resources", "uri");
        sizes.push(found.len());
        uris.extend(found);
        let Some(next) = page.get("nextCursor") else { break };
        params = json!({ "cursor": next });
    }
    assert_eq!(sizes, [500, 500, 202]);
    assert_eq!(uris[1_199], "toolgate://many/x:1199");
    assert_eq!(uris[1_200], "toolgate://one/file:///notes");
    let (code, _) = refusal(&session, "resources/list", json!({ "cursor": "forged" })).await;
    assert_eq!(code, -32602);
    host.shutdown().await;
}

#[tokio::test]
async fn hostile_uris_stay_with_their_server() {
    let folder = tempfile::tempdir().unwrap();
    let odd = "x:\u{1b}[2J\n/../%zz";
    let evil = Fixture::new("evil").with_resources([
        json!({ "uri": format!("x:{}", "y".repeat(1_000_000)) }),
        json!({ "uri": odd }),
        json!({ "uri": "toolgate://good/file:///notes" }),
        json!({ "name": "no uri" }),
    ]);
    let entry = evil.entry_through_file(&folder.path().join("fixture.json")).unwrap();
    let evil = started_by("evil", entry.command, entry.args);
    let host = host(vec![evil, setup("good", &notes("good"))]).await;
    let session = host.session();
    let listed = ask(&session, "resources/list", json!({})).await;
    let uris = tool_text(&listed, "resources", "uri");
    assert_eq!(uris.len(), 4, "{uris:?}");
    assert!(listed["_meta"]["toolgate/incomplete"]["evil"].is_string(), "{listed}");
    assert!(uris[0].chars().all(|character| character.is_ascii_graphic()), "{}", uris[0]);
    let text = |result: Value| result["contents"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(text(read(&session, &uris[0]).await), format!("evil has {odd}"));
    assert_eq!(uris[1], "toolgate://evil/toolgate://good/file:///notes");
    assert_eq!(text(read(&session, &uris[1]).await), "evil has toolgate://good/file:///notes");
    assert_eq!(text(read(&session, &uris[2]).await), "good has file:///notes");
    host.shutdown().await;
}

#[tokio::test]
async fn a_model_reads_resources_with_read_output() {
    let host =
        host(vec![setup("one", &notes("one").with_instructions("Be kind.\nBe brief."))]).await;
    let session = host.session();
    let output = async |arguments: Value| {
        let Value::Object(arguments) = arguments else { panic!() };
        let called = session.call("read_output", arguments, CallOptions::default());
        called.await.unwrap()["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let uri = "toolgate://one/file:///notes";
    assert_eq!(
        output(json!({ "id": uri })).await,
        "one has file:///notes\n[the end; 21 bytes in all]"
    );
    assert_eq!(
        output(json!({ "id": uri, "offset": 8 })).await,
        "file:///notes\n[the end; 21 bytes in all]"
    );
    let image = "toolgate://one/file:///chart";
    assert_eq!(
        output(json!({ "id": image })).await,
        "[no text: image/png, 5 bytes]\n[the end; 29 bytes in all]"
    );
    assert_eq!(
        output(json!({ "id": "toolgate://one", "pattern": "brief" })).await,
        "9: Be brief.\n[the end; 18 bytes in all]"
    );
    let missing = output(json!({ "id": "toolgate://two/x:1" })).await;
    assert_eq!(missing, "there is no resource toolgate://two/x:1");
    host.shutdown().await;
}

#[tokio::test]
async fn instructions_are_quoted_and_do_not_change() {
    let host = host(vec![
        setup("one", &notes("one").with_instructions("Be kind.")),
        setup("none", &notes("none")),
        setup("two", &notes("two").with_instructions("Be brief.")),
    ])
    .await;
    let session = host.session();
    let instructions = session.server_instructions();
    assert!(instructions.ends_with("\n\none:\n> Be kind.\n\ntwo:\n> Be brief."), "{instructions}");
    let own = read(&session, "toolgate://two").await;
    assert_eq!(own["contents"][0]["text"], "Be brief.");
    assert_eq!(
        refusal(&session, "resources/read", json!({ "uri": "toolgate://none" })).await.0,
        -32002
    );
    host.shutdown().await;
}

#[tokio::test]
async fn resources_of_a_disabled_server_are_neither_listed_nor_read() {
    let host = host(vec![
        setup("one", &notes("one").with_instructions("Be kind.")),
        setup("two", &notes("two")),
    ])
    .await;
    let before = host.session();
    let listed = async |session: &ToolSession| {
        let resources = ask(session, "resources/list", json!({})).await;
        let templates = ask(session, "resources/templates/list", json!({})).await;
        let prompts = ask(session, "prompts/list", json!({})).await;
        let mut all = tool_text(&resources, "resources", "uri");
        all.extend(tool_text(&templates, "resourceTemplates", "uriTemplate"));
        all.extend(tool_text(&prompts, "prompts", "name"));
        all
    };
    let all = listed(&before).await;
    assert!(before.server_instructions().contains("Be kind."));
    host.switch(&"one".into(), false).await;
    let after = host.session();
    assert_eq!(listed(&before).await, all, "a list outlives what is disabled during it");
    let of_two: Vec<String> = all.into_iter().filter(|name| !name.contains("one")).collect();
    assert_eq!(listed(&after).await, of_two);
    assert_eq!(after.server_instructions(), "");
    let told = "server `one` is disabled; `enable_server` or `toolgate enable one` enables it";
    for session in [&before, &after] {
        for uri in ["toolgate://one/file:///notes", "toolgate://one"] {
            let refused = refusal(session, "resources/read", json!({ "uri": uri })).await;
            assert_eq!(refused, (-32002, told.to_owned()), "{uri}");
        }
        let refused = refusal(session, "prompts/get", json!({ "name": "one_greet" })).await;
        assert_eq!(refused, (-32602, told.to_owned()));
        let arguments = Map::from_iter([("id".to_owned(), json!("toolgate://one/file:///notes"))]);
        let output = session.call("read_output", arguments, CallOptions::default()).await.unwrap();
        assert_eq!(output["content"][0]["text"], told);
    }
    // Its own URI is no longer one of two.
    let read = read(&after, "file:///notes").await;
    assert_eq!(read["contents"][0]["uri"], "toolgate://two/file:///notes");
    host.switch(&"one".into(), true).await;
    assert_eq!(listed(&after).await.len(), 2 * of_two.len(), "who enables it sees it again");
    host.shutdown().await;
}
