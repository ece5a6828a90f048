//! `get_tool_details`.

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Fixture, malformed};

use crate::{
    fixtures::{notes, odd, tool, weather},
    support::{Workplace, call, entry, text},
};

async fn details(workplace: &Workplace, arguments: Value) -> Value {
    let mut client = workplace.connect(&[]).await;
    call(&mut client, "get_tool_details", arguments).await
}

/// As the server sent them.
async fn definitions(workplace: &Workplace, names: &[&str]) -> Value {
    details(workplace, json!({ "names": names, "format": "json" })).await
}

#[tokio::test]
async fn typescript_is_the_default_and_costs_less() {
    let names = ["weather_forecast", "notes_create_note"];
    let result = details(&workplace(), json!({ "names": names })).await;
    insta::assert_snapshot!(text(&result), @r#"
    /** Weather of the next days for a place. */
    declare function weather_forecast(args: {
      /** A town or a postcode */
      place: string;
    }): Promise<unknown>;

    /** Write a new note.
    It is saved at once. */
    declare function notes_create_note(args: {
      /** The headline */
      title: string;
      /** What it says */
      body?: string;
      colour?: "amber" | "teal";
    }): Promise<unknown>;
    "#);
    let sent = definitions(&workplace(), &names).await;
    assert!(text(&result).len() < text(&sent).len());
    let typescript = json!({ "names": names, "format": "typescript" });
    assert_eq!(details(&workplace(), typescript).await, result);
}

fn workplace() -> Workplace {
    Workplace::deferred(&json!({ "notes": entry(&notes()), "weather": entry(&weather()) }))
}

#[tokio::test]
async fn definitions_of_several_tools_are_as_sent() {
    let names = ["weather_forecast", "notes_create_note"];
    let result = definitions(&workplace(), &names).await;
    insta::assert_snapshot!(text(&result), @r#"
    weather_forecast (server weather)
    {"name":"forecast","description":"Weather of the next days for a place.","inputSchema":{"type":"object","properties":{"place":{"type":"string","description":"A town or a postcode"}},"required":["place"]}}

    notes_create_note (server notes)
    {"name":"create_note","description":"Write a new note.\nIt is saved at once.","inputSchema":{"type":"object","properties":{"title":{"type":"string","description":"The headline"},"body":{"type":"string","description":"What it says"},"colour":{"enum":["amber","teal"]}},"required":["title"]}}
    "#);
    let tools = &result["structuredContent"]["tools"];
    assert_eq!(tools[0]["definition"], weather().tools[0]);
    assert_eq!(tools[1]["definition"], notes().tools[0]);
    assert_eq!(tools[1]["server"], "notes");
    assert_eq!(tools[1]["name"], "notes_create_note");
}

#[tokio::test]
async fn an_unknown_name_gets_the_nearest_and_does_not_fail_the_rest() {
    let names = ["notes_create_notes", "weather_forecast", "x", "forecast"];
    let result = definitions(&workplace(), &names).await;
    assert!(result.get("isError").is_none());
    insta::assert_snapshot!(text(&result), @r#"
    notes_create_notes: there is no such tool. Nearest: notes_create_note, notes_delete_note, notes_find_notes.

    weather_forecast (server weather)
    {"name":"forecast","description":"Weather of the next days for a place.","inputSchema":{"type":"object","properties":{"place":{"type":"string","description":"A town or a postcode"}},"required":["place"]}}

    x: there is no such tool. search_tools finds those there are.

    weather_forecast (server weather)
    {"name":"forecast","description":"Weather of the next days for a place.","inputSchema":{"type":"object","properties":{"place":{"type":"string","description":"A town or a postcode"}},"required":["place"]}}
    "#);
    let tools = &result["structuredContent"]["tools"];
    assert_eq!(tools[0]["nearest"][0], "notes_create_note");
    assert_eq!(tools[1]["definition"], weather().tools[0]);
    assert_eq!(tools[2]["error"], "unknown");
}

#[tokio::test]
async fn fields_that_no_sdk_knows_are_there_in_the_text_and_in_the_data() {
    let workplace = Workplace::deferred(&json!({ "odd": entry(&odd()) }));
    for (name, sent) in [
        ("odd_unknown_fields", malformed::unknown_fields("unknown_fields")),
        ("odd_no_type", malformed::schema_without_type("no_type")),
        ("odd_invalid_pattern", malformed::invalid_pattern("invalid_pattern")),
        ("odd_echo", Builtin::Echo.definition()),
    ] {
        let result = definitions(&workplace, &[name]).await;
        assert_eq!(result["structuredContent"]["tools"][0]["definition"], sent, "{name}");
        let (_, json) = text(&result).split_once('\n').unwrap();
        assert_eq!(serde_json::from_str::<Value>(json).unwrap(), sent, "{name}");
    }
}

#[tokio::test]
async fn numbers_arrive_as_they_were_sent() {
    let schema = json!({ "type": "object", "properties": { "n": {
        "maximum": 18_446_744_073_709_551_615_u64, "minimum": i64::MIN, "multipleOf": 0.1,
        "default": 1e-300, "x-exact": [0.1 + 0.2, 1.0, -0.0],
    } } });
    let sent = json!({ "name": "numbers", "inputSchema": schema });
    let fixture = Fixture::new("exact").with_tool(sent.clone());
    let workplace = Workplace::deferred(&json!({ "exact": entry(&fixture) }));
    let result = definitions(&workplace, &["exact_numbers"]).await;
    let given = &result["structuredContent"]["tools"][0]["definition"];
    assert_eq!(given, &sent);
    assert_eq!(given.to_string(), sent.to_string(), "the order of keys too");
}

#[tokio::test]
async fn details_that_exceed_the_limit() {
    let large = "word ".repeat(60_000);
    let properties = json!({ "value": { "type": "string", "description": large } });
    let fixture = Fixture::new("large").with_tools([
        tool("one", "Large.", &properties, &[]),
        tool("two", "Large too.", &properties, &[]),
        tool("three", "Small.", &json!({}), &[]),
    ]);
    let folder = tempfile::tempdir().unwrap();
    let entry = fixture.entry_through_file(&folder.path().join("large.json")).unwrap().to_json();
    let workplace = Workplace::deferred(&json!({ "large": entry }));

    let names = ["large_one", "large_two", "large_three"];
    let result = definitions(&workplace, &names).await;
    let tools = &result["structuredContent"]["tools"];
    assert_eq!(tools[0]["definition"], fixture.tools[0], "one is always given whole");
    assert_eq!(tools[1]["error"], "too large");
    let result = definitions(&workplace, &["large_two"]).await;
    assert_eq!(result["structuredContent"]["tools"][0]["definition"], fixture.tools[1]);

    let many: Vec<&str> = std::iter::repeat_n("large_three", 25).collect();
    let result = details(&workplace, json!({ "names": many })).await;
    assert_eq!(result["structuredContent"]["tools"].as_array().unwrap().len(), 20);
    assert!(text(&result).ends_with("Only the first 20 names were read."));
}

#[tokio::test]
async fn the_model_learns_of_wrong_arguments() {
    let workplace = workplace();
    let mut told = Vec::new();
    for arguments in [
        json!({}),
        json!({ "names": [] }),
        json!({ "names": "notes_create_note" }),
        json!({ "names": ["x"], "format": "xml" }),
    ] {
        let result = details(&workplace, arguments).await;
        assert_eq!(result["isError"], true, "{result}");
        told.push(text(&result).to_owned());
    }
    insta::assert_snapshot!(told.join("\n"), @r#"
    Say which tools: get_tool_details(names: string[]).
    Say which tools: get_tool_details(names: string[]).
    The arguments do not fit: invalid type: string "notes_create_note", expected a sequence. Expected: get_tool_details(names: string[], format?: "typescript" | "python" | "json")
    The arguments do not fit: unknown variant `xml`, expected one of `json`, `typescript`, `python`. Expected: get_tool_details(names: string[], format?: "typescript" | "python" | "json")
    "#);
}
