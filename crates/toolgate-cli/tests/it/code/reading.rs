//! `read_resource` and `read_output` in scripts.

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Fixture};

use super::{python, run};
use crate::{
    fixtures::tool,
    support::{Workplace, call, call_through, entry, text},
};

fn shop() -> Fixture {
    Fixture::new("shop")
        .with_builtins([Builtin::Echo, Builtin::Big])
        .with_resources([json!({ "uri": "file:///notes", "name": "notes" })])
        .with_templates([json!({ "uriTemplate": "note:///{id}", "name": "note" })])
}

fn workplace(policy: &Value) -> Workplace {
    Workplace::new(&json!({
        "mcpServers": { "shop": entry(&shop()) }, "toolSearch": { "enabled": true },
        "policy": policy,
    }))
}

/// The first line of a report.
fn first(result: &Value) -> &str {
    text(result).lines().next().unwrap_or_default()
}

/// The id in the note of a long result.
fn id_of(result: &Value) -> &str {
    let note = text(result).split_once("read_output(id: \"");
    let (_, rest) = note.unwrap_or_else(|| panic!("{result}"));
    rest.split_once('"').unwrap().0
}

#[tokio::test]
async fn a_script_reads_a_resource() {
    let workplace = workplace(&json!({ "default": "allow" }));
    let mut client = workplace.connect(&[]).await;
    let uri = "toolgate://shop/file:///notes";
    let read = client.request("resources/read", json!({ "uri": uri })).await.unwrap();
    let expected = read["result"]["contents"][0]["text"].as_str().unwrap().to_owned();

    let told = run(&mut client, &format!("return await read_resource('{uri}')")).await;
    assert_eq!(first(&told), expected.lines().next().unwrap(), "{told}");
    let told = run(&mut client, &format!("return await read_resource({{ uri: '{uri}' }})")).await;
    assert_eq!(first(&told), expected.lines().next().unwrap(), "{told}");
    let told = python(&mut client, &format!("print(await read_resource('{uri}'))")).await;
    assert_eq!(first(&told), expected.lines().next().unwrap(), "{told}");
    let told = python(&mut client, &format!("await read_resource(uri='{uri}')")).await;
    assert_eq!(first(&told), expected.lines().next().unwrap(), "{told}");

    let none = run(
        &mut client,
        "try { await read_resource('file:///none') } catch (error) { return error.message }",
    )
    .await;
    assert_eq!(first(&none), "there is no resource file:///none");
    // The check knows the parameters.
    let wrong = run(&mut client, "return await read_resource(7)").await;
    assert!(text(&wrong).contains("did not run") && text(&wrong).contains("uri"), "{wrong}");

    let audit = workplace.run(&["audit", "--json"]).await.stdout;
    let reads = audit.lines().filter(|line| line.contains("resources/read"));
    assert!(reads.count() >= 5, "{audit}");
}

#[tokio::test]
async fn reading_in_a_script_is_judged_like_resources_read() {
    let denies = json!({ "default": "allow", "rules": [
        { "server": "shop", "tool": "resources/read", "from": "script", "verdict": "deny" },
    ] });
    let mut client = workplace(&denies).connect(&[]).await;
    let uri = "toolgate://shop/file:///notes";
    let told = run(&mut client, &format!("return await read_resource('{uri}')")).await;
    assert_eq!(told["isError"], true, "{told}");
    assert!(text(&told).contains("not allowed") || text(&told).contains("denie"), "{told}");
    let direct = client.request("resources/read", json!({ "uri": uri })).await.unwrap();
    assert!(direct.get("error").is_none(), "{direct}");
}

#[tokio::test]
async fn a_script_reads_a_long_output() {
    let mut client = workplace(&json!({ "default": "allow" })).connect(&[]).await;
    let long = call_through(&mut client, "shop_big", json!({ "bytes": 100_000 })).await;
    let id = id_of(&long);
    let code =
        format!("const o = await read_output('{id}', 10); return [o.text.length, o.next, o.total]");
    assert_eq!(first(&run(&mut client, &code).await), "[99990,null,100000]");
    let code = format!(
        "o = await read_output(id='{id}', offset=10)\n[len(o['text']), o['next'], o['total']]"
    );
    assert_eq!(first(&python(&mut client, &code).await), "[99990, null, 100000]".replace(' ', ""));
    let code = format!("return (await read_output('{id}', 0, 'y')).text");
    assert_eq!(first(&run(&mut client, &code).await), "Returned: \"\"");
    let unknown = run(&mut client, "await read_output('out_0')").await;
    assert!(text(&unknown).contains("There is no output `out_0`"), "{unknown}");
    let resource = run(&mut client, "await read_output('toolgate://shop/file:///notes')").await;
    assert!(text(&resource).contains("read_resource(uri) reads it"), "{resource}");
}

#[tokio::test]
async fn the_declarations_show_them() {
    let mut client = workplace(&json!({ "default": "allow" })).connect(&[]).await;
    let names = json!(["read_resource", "read_output"]);
    let mut told = Vec::new();
    for format in ["typescript", "python"] {
        let result =
            call(&mut client, "get_tool_details", json!({ "names": names, "format": format }));
        told.push(text(&result.await).to_owned());
    }
    insta::assert_snapshot!(told.join("\n\n"), @r#"
    /** Reads a resource by its URI: a text, data if its type is JSON, or a list of blocks. Throws if there is none. */
    declare function read_resource(uri: string): Promise<any>;

    /** Reads an output that was too long, by its id: from an offset on, or the lines that match a regular expression. Go on with offset: next. */
    declare function read_output(id: string, offset?: number, pattern?: string): Promise<{ text: string; next: number | null; total: number }>;

    async def read_resource(uri: str) -> Any:
        """Reads a resource by its URI: a text, data if its type is JSON, or a list of blocks. Raises if there is none."""

    async def read_output(id: str, offset: int = 0, pattern: str | None = None) -> dict[str, Any]:
        """Reads an output that was too long, by its id: from an offset on, or the lines that match a regular expression. Returns text, next (the offset to go on with, or None) and total."""
    "#);
}

/// What a script reads has the labels of its origin, whatever the script makes of it.
#[tokio::test]
async fn data_that_was_read_keeps_its_labels() {
    let free = json!({ "text": {} });
    let says = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
    let crm = Fixture::new("crm")
        .with_tools([tool("get", "Get it.", &free, &[])])
        .with_answer("get", says(&"Ada owes us 48,200 EUR. ".repeat(2_000)))
        .with_resources([json!({ "uri": "file:///notes", "name": "notes" })]);
    let mail = Fixture::new("mail")
        .with_tools([tool("send", "Send it.", &free, &[])])
        .with_answer("send", says("sent"));
    let workplace = Workplace::new(&json!({
        "mcpServers": { "crm": entry(&crm), "mail": entry(&mail) },
        "toolSearch": { "enabled": true },
        "policy": {
            "default": "allow",
            "labels": {
                "crm_*": ["private"], "crm/resources/read": ["private"], "mail_*": ["egress"],
            },
        },
    }));
    let mut client = workplace.connect(&[]).await;
    let long = call_through(&mut client, "crm_get", json!({})).await;
    let id = id_of(&long);
    // The length of the data is no part of it, so only the text of the script tells.
    for read in [
        format!("(await read_output('{id}')).text"),
        "await read_resource('file:///notes')".to_owned(),
    ] {
        let code = format!("const read = {read}; await mail_send({{ text: read.length }});");
        let told = run(&mut client, &code).await;
        assert_eq!(told["isError"], true, "{read}: {told}");
        assert!(text(&told).contains("mail_send"), "{read}: {told}");
        let apart = format!("const read = {read}; await mail_send({{ text: 'hello' }}); return 1");
        let told = run(&mut client, &apart).await;
        assert_eq!(told.get("isError"), None, "{read}: {told}");
    }
}
