//! The servers that most tests have behind the gateway.

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Fixture, malformed};

/// Notes: four tools with parameters worth searching for.
pub(crate) fn notes() -> Fixture {
    let text = |about: &str| json!({ "type": "string", "description": about });
    Fixture::new("notes").with_tools([
        tool(
            "create_note",
            "Write a new note.\nIt is saved at once.",
            &json!({
                "title": text("The headline"),
                "body": text("What it says"),
                "colour": { "enum": ["amber", "teal"] },
            }),
            &["title"],
        ),
        tool(
            "find_notes",
            "Look for notes by their words.",
            &json!({ "words": text("") }),
            &["words"],
        ),
        tool(
            "delete_note",
            "Throw a note away for good.",
            &json!({ "id": text("Which") }),
            &["id"],
        ),
        tool(
            "shareNoteWithTeam",
            "Let others read a note.",
            &json!({ "id": text("Which"), "readers": {
                "type": "array", "items": { "type": "object", "properties": {
                    "mail": text("Where an invitation goes"), "level": { "type": "integer" },
                } },
            } }),
            &["id", "readers"],
        ),
    ])
}

/// Weather: two tools.
pub(crate) fn weather() -> Fixture {
    let place = json!({ "place": { "type": "string", "description": "A town or a postcode" } });
    Fixture::new("weather").with_tools([
        tool("forecast", "Weather of the next days for a place.", &place, &["place"]),
        tool("current_conditions", "Weather at a place now.", &place, &["place"]),
    ])
}

/// All built-in tools of the test kit.
pub(crate) fn kit() -> Fixture {
    Fixture::new("kit").with_builtins(Builtin::ALL)
}

/// Definitions as real servers get them wrong, beside a sound one.
pub(crate) fn odd() -> Fixture {
    Fixture::new("odd").with_builtins([Builtin::Echo]).with_tools(malformed::all())
}

/// A definition.
pub(crate) fn tool(name: &str, description: &str, properties: &Value, required: &[&str]) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": { "type": "object", "properties": properties, "required": required },
    })
}
