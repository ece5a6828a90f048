//! `toolgate search`, `inspect` and `call`.

use serde_json::json;

use super::{run, workplace};
use crate::{
    fixtures::{kit, notes},
    support::{Workplace, entry},
};

#[tokio::test]
async fn search() {
    let workplace = workplace();
    let outcome = run(&workplace, &["search", "weather tomorrow", "--limit", "1"]).await;
    insta::assert_snapshot!(outcome.shown(), @r#"
    exit code 0
    --- stdout
    1 of 6 tools for "weather tomorrow":

    weather (2 tools)
    - weather_forecast(place: string) [loaded]: Weather of the next days for a place.

    Nothing is deferred: all 6 tools are loaded and can be called by name.
    --- stderr
    "#);
    let arguments =
        ["search", "throw away", "forecast", "--detail", "name", "--json", "--limit", "2"];
    let outcome = run(&workplace, &arguments).await;
    // The limit is for each query.
    assert_eq!(outcome.json()["found"], 3, "{outcome:?}");
    assert_eq!(outcome.code, Some(0));
    let outcome = run(&workplace, &["search", "note", "--server", "weather"]).await;
    assert_eq!(outcome.code, Some(1), "nothing found, as with grep");
    let outcome = run(&workplace, &["search", "note", "--detail", "schema", "--limit", "1"]).await;
    assert!(outcome.stdout.contains(r#""type":"object""#));
}

#[tokio::test]
async fn inspect() {
    let workplace = workplace();
    let outcome = run(&workplace, &["inspect", "weather_forecast", "weather_forecat"]).await;
    insta::assert_snapshot!(outcome.shown(), @r#"
    exit code 1
    --- stdout
    weather_forecast(place: string)
    server: weather
    {
      "name": "forecast",
      "description": "Weather of the next days for a place.",
      "inputSchema": {
        "type": "object",
        "properties": {
          "place": {
            "type": "string",
            "description": "A town or a postcode"
          }
        },
        "required": [
          "place"
        ]
      }
    }

    weather_forecat: there is no such tool; nearest: weather_forecast

    --- stderr
    "#);
    let outcome = run(&workplace, &["inspect", "notes_create_note", "--json"]).await;
    assert_eq!(outcome.code, Some(0));
    assert_eq!(outcome.json()[0]["definition"], notes().tools[0]);
}

#[tokio::test]
async fn call() {
    let workplace = Workplace::new(&json!({ "mcpServers": { "kit": entry(&kit()) } }));
    std::fs::write(workplace.path().join("sum.json"), r#"{"a": 1, "b": 2}"#).unwrap();
    for (arguments, input) in [
        (&["call", "kit_add", r#"{"a": 1, "b": 2}"#][..], ""),
        (&["call", "kit_add", "--arg", "a=1", "-a", "b=2"], ""),
        (&["call", "kit_add", r#"{"a": 100, "b": 2}"#, "--arg", "a=1"], ""),
        (&["call", "kit_add", "@sum.json"], ""),
        (&["call", "kit_add", "-"], r#"{"a": 1, "b": 2}"#),
    ] {
        let outcome = workplace.run_with_input(arguments, input).await;
        assert_eq!(
            outcome.shown(),
            "exit code 0\n--- stdout\n{\"sum\":3}\n--- stderr\n",
            "{arguments:?}"
        );
    }
    let outcome = run(&workplace, &["call", "kit_add", "-a", "a=1", "-a", "b=2", "--json"]).await;
    assert_eq!(outcome.json()["structuredContent"]["sum"], 3);
    let outcome = run(&workplace, &["call", "kit_echo", "-a", "message=plain text=1"]).await;
    assert_eq!(outcome.stdout, "{\"message\":\"plain text=1\"}\n", "what is no JSON is text");
    insta::assert_snapshot!(run(&workplace, &["call", "kit_media"]).await.shown(), @r#"
    exit code 0
    --- stdout
    words
    [image image/png, 96 characters of base64; --json shows it]
    [audio audio/wav, 60 characters of base64; --json shows it]
    [resource toolgate://kit/fixture://report]
    {"type":"resource","resource":{"uri":"toolgate://kit/fixture://note","mimeType":"text/plain","text":"embedded"},"_meta":{"fixture/block":4}}
    {"type":"hologram","depth":3,"beams":[{"hue":0.25}],"_meta":{"fixture/block":5}}
    --- stderr
    "#);
}

#[tokio::test]
async fn calls_that_fail() {
    let workplace = Workplace::new(&json!({ "mcpServers": { "kit": entry(&kit()) } }));
    let mut shown = Vec::new();
    for arguments in [
        &["call", "kit_fail", "-a", "message=No luck"][..],
        &["call", "kit_rpc_error", "-a", "message=Not on Sundays"],
        &["call", "kit_crash"],
        &["call", "kit_adds"],
        &["call", "kit_add", "-a", "a=one"],
        &["call", "kit_add", "{"],
        &["call", "kit_add", "[1]"],
        &["call", "kit_add", "-a", "a"],
        &["call", "kit_add", "@missing.json"],
    ] {
        let outcome = run(&workplace, arguments).await;
        assert_eq!(outcome.stdout, "", "{arguments:?}");
        shown.push(format!("$ toolgate {}\n{}", arguments.join(" "), outcome.shown()));
    }
    insta::assert_snapshot!(shown.join("\n"), @r#"
    $ toolgate call kit_fail -a message=No luck
    exit code 1
    --- stdout
    --- stderr
    error: No luck

    $ toolgate call kit_rpc_error -a message=Not on Sundays
    exit code 1
    --- stdout
    --- stderr
    error: server `kit` refused `rpc_error`: Not on Sundays

    $ toolgate call kit_crash
    exit code 1
    --- stdout
    --- stderr
    error: server `kit` stopped during the call, so it is unknown whether `crash` took effect; it was not repeated, and the server is being restarted (`toolgate logs kit` shows its last output)

    $ toolgate call kit_adds
    exit code 1
    --- stdout
    --- stderr
    error: there is no tool `kit_adds`; did you mean `kit_add`?

    $ toolgate call kit_add -a a=one
    exit code 1
    --- stdout
    --- stderr
    error: The arguments do not fit `kit_add`, which was not called:
    - arguments: "b" is a required property
    - a: "one" is not of type "number"
    Expected: kit_add(a: number, b: number)

    $ toolgate call kit_add {
    exit code 2
    --- stdout
    --- stderr
    error: the arguments are not JSON: EOF while parsing an object at line 1 column 1
      hint: write them as '{"key": "value"}', or as --arg key=value

    $ toolgate call kit_add [1]
    exit code 2
    --- stdout
    --- stderr
    error: the arguments are JSON, but not an object
      hint: write them as '{"key": "value"}', or as --arg key=value

    $ toolgate call kit_add -a a
    exit code 2
    --- stdout
    --- stderr
    error: --arg a has no `=`
      hint: write --arg KEY=VALUE

    $ toolgate call kit_add @missing.json
    exit code 2
    --- stdout
    --- stderr
    error: cannot read missing.json: No such file or directory (os error 2)
    "#);
    let outcome = run(&workplace, &["call", "kit_fail", "--json"]).await;
    assert_eq!(outcome.json()["isError"], true, "for a program it is data");
    assert_eq!(outcome.code, Some(1));
}
