//! Long results: a model gets the beginning, the end and an id; programs get everything.

use serde_json::{Value, json};
use toolgate_catalog::TokenCounter;
use toolgate_testkit::{AnswerFault, Faults, Fixture, RawClient};

use crate::{
    fixtures::{kit, tool},
    support::{Workplace, call, call_through, entry, entry_with, list, names, text},
};

fn lines(from: usize, to: usize) -> String {
    (from..to).map(|line| format!("line {line} of many\n")).collect::<Vec<_>>().concat()
}

/// A server with a long text, and one with long data that it declares.
fn library() -> Fixture {
    let data = json!({ "rows": (0..4_000).collect::<Vec<_>>() });
    let mut report = tool("report", "Numbers.", &json!({}), &[]);
    report["outputSchema"] = json!({
        "type": "object", "properties": { "rows": { "type": "array" } }, "required": ["rows"],
    });
    let image = json!({ "type": "image", "mimeType": "image/png", "data": "eA==".repeat(4_000) });
    Fixture::new("library")
        .with_tools([tool("book", "A long text.", &json!({}), &[]), report])
        .with_answer(
            "book",
            json!({
                "content": [{ "type": "text", "text": lines(0, 2_000) }, image],
                "isError": true, "_meta": { "x/y": 1 },
            }),
        )
        .with_answer(
            "report",
            json!({
                "content": [{ "type": "text", "text": data.to_string() }],
                "structuredContent": data,
            }),
        )
}

fn workplace(mode: &Value) -> Workplace {
    Workplace::new(&json!({
        "mcpServers": { "library": entry(&library()) }, "toolSearch": mode,
        "codeMode": { "maxOutputTokens": 400 },
    }))
}

/// Follows the note of a cut text, and gives everything.
async fn read_all(client: &mut RawClient, cut: &str) -> String {
    let (_, rest) = cut.split_once("read_output(id: \"").unwrap_or_else(|| panic!("{cut}"));
    let id = rest.split_once('"').unwrap().0.to_owned();
    let (mut all, mut offset) = (String::new(), 0);
    loop {
        let page = call(client, "read_output", json!({ "id": id, "offset": offset })).await;
        let (page, note) = text(&page).rsplit_once("\n[").unwrap();
        all.push_str(page);
        match note.split_once("go on with offset: ") {
            Some((_, next)) => {
                offset = next.trim_end_matches(']').parse().unwrap();
                // A page may end inside of a line.
                if all.len() < offset {
                    all.push('\n');
                }
            }
            None => return all,
        }
    }
}

#[tokio::test]
async fn a_long_result_is_cut_for_a_model_and_whole_for_a_program() {
    let deferred = workplace(&json!({ "enabled": true }));
    let mut model = deferred.connect(&[]).await;
    let mut direct = deferred.connect(&["--mode", "direct"]).await;
    assert!(names(&list(&mut direct).await).contains(&"read_output"));
    let long = lines(0, 2_000);
    for (client, result) in [(&mut model, None), (&mut direct, Some("library_book"))] {
        let result = match result {
            None => call_through(client, "library_book", json!({})).await,
            Some(name) => call(client, name, json!({})).await,
        };
        let shown = text(&result);
        assert!(shown.starts_with("line 0 of many\n") && shown.ends_with("line 1999 of many\n"));
        let tokens = TokenCounter::shared().count(shown);
        assert!((300..=400).contains(&tokens), "{tokens}");
        assert_eq!(read_all(client, shown).await.trim_end(), long.trim_end());
        // What is no text is exact.
        assert_eq!(result["content"][1]["data"], "eA==".repeat(4_000));
        assert_eq!((&result["isError"], &result["_meta"]), (&json!(true), &json!({ "x/y": 1 })));
    }

    let told = deferred.run(&["call", "library_book", "--json"]).await.json();
    assert_eq!(text(&told), long);
    let mut exact = deferred.connect(&["--passthrough", "library"]).await;
    assert_eq!(text(&call(&mut exact, "book", json!({})).await), long);
}

#[tokio::test]
async fn long_data_stays_where_the_client_checks_it() {
    let workplace = workplace(&json!({ "enabled": true }));
    let data = json!({ "rows": (0..4_000).collect::<Vec<_>>() });
    let mut direct = workplace.connect(&["--mode", "direct"]).await;
    let result = call(&mut direct, "library_report", json!({})).await;
    assert_eq!(result["structuredContent"], data, "the definition declares it");
    assert!(text(&result).len() < 4_000 && text(&result).contains("read_output(id:"));

    let mut model = workplace.connect(&[]).await;
    let result = call_through(&mut model, "library_report", json!({})).await;
    assert!(result.get("structuredContent").is_none(), "call_tool declares nothing");
    assert!(result.to_string().len() < 4_000, "{result}");
    let all = read_all(&mut model, text(&result)).await;
    assert_eq!(serde_json::from_str::<Value>(&all).unwrap(), data);
}

#[tokio::test]
async fn a_result_above_every_limit_is_kept() {
    let server = entry_with(&kit(), json!({ "maxResultBytes": 100_000 }));
    let workplace = Workplace::new(&json!({
        "mcpServers": { "kit": server }, "toolSearch": { "enabled": true },
        "codeMode": { "maxResultBytes": 50_000 },
    }));
    let mut client = workplace.connect(&[]).await;
    let big = json!({ "bytes": 1_000_000 });
    let result = call_through(&mut client, "kit_big", big.clone()).await;
    assert_eq!(result.get("isError"), None, "{result}");
    let shown = text(&result).to_owned();
    assert!(shown.contains(" bytes left out: read_output(id:"), "{shown}");
    let id = shown.split("read_output(id: \"").nth(1).unwrap().split('"').next().unwrap();
    let end = call(&mut client, "read_output", json!({ "id": id, "offset": 999_990 })).await;
    assert_eq!(text(&end), "xxxxxxxxxx\n[the end; 1000000 bytes in all]");

    // A script that gets no such result reads it in parts.
    let code = "
        let message = '';
        try { await kit_big({ bytes: 1000000 }); } catch (error) { message = error.message; }
        const id = message.match(/read_output\\(\"(out_[0-9a-f]+)\"\\)/)[1];
        let [read, offset] = [0, 0];
        while (offset !== null) {
            const page = await read_output(id, offset);
            read += page.text.length;
            offset = page.next;
        }
        return [message.replace(id, 'ID'), read];";
    let result = call(&mut client, "run_code", json!({ "code": code })).await;
    insta::assert_snapshot!(text(&result), @r#"
    ["the call was made, but its result has 1000002 bytes, 50000 bytes are allowed; ask for less, or raise codeMode.maxResultBytes; it is kept: read_output(\"ID\") reads it in parts",1000000]
    Calls completed: read_output ×160.
    Made, result not delivered: kit_big.
    "#);
}

#[tokio::test]
async fn what_is_no_unicode_is_replaced_and_the_model_is_told() {
    let echo = Fixture::new("odd")
        .with_tool(tool("say", "Says it.", &json!({}), &[]))
        .with_answer("say", json!({ "content": [{ "type": "text", "text": "a\u{fffd}b" }] }))
        .with_faults(Faults::broken_answer("tools/call", AnswerFault::LoneSurrogate));
    let http = echo.clone().serve_http(([127, 0, 0, 1], 0).into()).await.unwrap();
    let servers = json!({ "odd": entry(&echo), "web": { "url": http.url() } });
    let mut client = Workplace::deferred(&servers).connect(&[]).await;
    for name in ["odd_say", "web_say"] {
        let result = call_through(&mut client, name, json!({})).await;
        assert_eq!(text(&result), "a\u{fffd}b", "{name}");
        assert_eq!(result["_meta"]["toolgate/replaced"], 1, "{name}");
        let note = result["content"][1]["text"].as_str().unwrap();
        assert_eq!(note, "[1 characters were not valid Unicode and are \u{fffd} here]");
        let code = format!("return await {name}({{}})");
        let result = call(&mut client, "run_code", json!({ "code": code })).await;
        assert!(text(&result).starts_with("a\u{fffd}b\n"), "{name}: {result}");
    }
}
