//! Files that cannot be read at all.

use insta::assert_snapshot;
use toolgate_config::{Format, parse};

use crate::environment;

fn error(text: &str) -> String {
    parse(text, Format::Jsonc, "toolgate.json", &environment).expect_err("an error").to_string()
}

fn toml_error(text: &str) -> String {
    parse(text, Format::Toml, "config.toml", &environment).expect_err("an error").to_string()
}

#[test]
fn a_missing_comma() {
    assert_snapshot!(error("{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\" }\n    \"b\": {}\n  }\n}"), @r#"
    toolgate.json:3:28: expected `,` before the next entry
      |
    3 |     "a": { "command": "x" }
      |                            ^
    "#);
}

#[test]
fn a_missing_bracket() {
    assert_snapshot!(error("{\n  \"mcpServers\": {\n    \"a\": {}\n"), @r#"
    toolgate.json:2:17: expected a `}` that closes this `{`
      |
    2 |   "mcpServers": {
      |                 ^
    "#);
    assert_snapshot!(error("{ \"mcpServers\": { \"a\": { \"args\": [\"x\" } } }"), @r#"
    toolgate.json:1:39: expected a value, but found `}`
      |
    1 | { "mcpServers": { "a": { "args": ["x" } } }
      |                                       ^
    "#);
}

#[test]
fn wrong_quotes() {
    assert_snapshot!(error("{ 'mcpServers': {} }"), @"
    toolgate.json:1:3: expected double quotes instead of single ones
      |
    1 | { 'mcpServers': {} }
      |   ^
    ");
    assert_snapshot!(error("{ mcpServers: {} }"), @"
    toolgate.json:1:3: expected a key in double quotes
      |
    1 | { mcpServers: {} }
      |   ^
    ");
    assert_snapshot!(error("{ \"mcpServers: {} }"), @r#"
    toolgate.json:1:3: expected a closing `"` on the same line
      |
    1 | { "mcpServers: {} }
      |   ^
    "#);
    assert_snapshot!(error("{ \"command\": \"C:\\Program Files\" }"), @r#"
    toolgate.json:1:17: expected a valid escape after `\`; a backslash itself is written `\\`
      |
    1 | { "command": "C:\Program Files" }
      |                 ^
    "#);
}

#[test]
fn a_missing_value() {
    assert_snapshot!(error("{ \"mcpServers\": }"), @r#"
    toolgate.json:1:17: expected a value, but found `}`
      |
    1 | { "mcpServers": }
      |                 ^
    "#);
    assert_snapshot!(error("{ \"mcpServers\" {} }"), @r#"
    toolgate.json:1:16: expected `:` after the key
      |
    1 | { "mcpServers" {} }
      |                ^
    "#);
    assert_snapshot!(error("{ \"mcpServers\": npx }"), @r#"
    toolgate.json:1:17: expected a value: a string in double quotes, a number, true, false, null, `[` or `{`
      |
    1 | { "mcpServers": npx }
      |                 ^
    "#);
    assert_snapshot!(error("{ \"mcpServers\": .5 }"), @r#"
    toolgate.json:1:17: expected a number such as 5, -1 or 0.5
      |
    1 | { "mcpServers": .5 }
      |                 ^
    "#);
    assert_snapshot!(error("{} {}"), @"
    toolgate.json:1:4: expected the end of the file after the closing `}`
      |
    1 | {} {}
      |    ^
    ");
}

#[test]
fn the_column_counts_characters_and_the_caret_follows() {
    assert_snapshot!(error("\u{feff}{\n\t\"ключ\": oops }"), @r#"
    toolgate.json:2:10: expected a value: a string in double quotes, a number, true, false, null, `[` or `{`
      |
    2 |  "ключ": oops }
      |          ^
    "#);
}

#[test]
fn not_an_object() {
    assert_snapshot!(error("[1, 2]"), @"toolgate.json: the file must hold an object with an `mcpServers` key, but it holds a list");
}

#[test]
fn broken_toml() {
    assert_snapshot!(toml_error("[mcp_servers.a]\ncommand = npx\n"), @"
    config.toml:2:11: expected a value: a string in double quotes, a number, true, false, `[` or `{`
      |
    2 | command = npx
      |           ^
    ");
    assert_snapshot!(toml_error("[mcp_servers.a\ncommand = \"npx\"\n"), @"
    config.toml:1:15: unclosed table, expected `]`
      |
    1 | [mcp_servers.a
      |               ^
    ");
    assert_snapshot!(toml_error("[mcp_servers.a]\ncommand = \"x\"\ncommand = \"y\"\n"), @r#"
    config.toml:3:1: expected each key once, but this one is already written further up
      |
    3 | command = "y"
      | ^
    "#);
}
