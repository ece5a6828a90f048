//! The effects of mistakes: one clear sentence, a hint, a non-zero exit code, and everything else
//! still works.

mod servers;

use serde_json::json;

use crate::{
    fixtures::notes,
    support::{Workplace, entry},
};

/// What a command says about a configuration.
async fn shown(config: &str, arguments: &[&str]) -> String {
    Workplace::with_text(config).run(arguments).await.shown()
}

#[tokio::test]
async fn invalid_json() {
    let broken = "{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\" \"args\": [] }\n  }\n}\n";
    insta::assert_snapshot!(shown(broken, &["status"]).await, @r#"
    exit code 2
    --- stdout
    --- stderr
    error: toolgate.json:3:26: expected `,` before the next entry
      |
    3 |     "a": { "command": "x" "args": [] }
      |                          ^
    "#);
    insta::assert_snapshot!(shown("{ \"mcpServers\": {", &["search", "x"]).await, @r#"
    exit code 2
    --- stdout
    --- stderr
    error: toolgate.json:1:17: expected a `}` that closes this `{`
      |
    1 | { "mcpServers": {
      |                 ^
    "#);
    insta::assert_snapshot!(shown("", &["tokens"]).await, @r#"
    exit code 1
    --- stdout
     server       tools  tokens  of context
     all servers      0       0       0.0 %

     a session         tools  definitions  instructions  together
     without toolgate      0            0             0         0
     direct                3          392            58       450  now, recommended
     stable                6          732            58       790
     dynamic               6          740            58       798
     code                  5          667            46       713

    Recommended: direct, because it costs no more than the meta-tools, and no search is needed.
    A session now is direct: 392 tokens fit into the 10,000 allowed.
    Counted: name, description and input schema of each listed tool, and the instructions of the handshake.
    --- stderr
    error: toolgate.json:1:1: the file has no MCP servers
      hint: add one, such as { "mcpServers": { "files": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "."] } } }
    "#);
    let nothing = r#"{ "mcpServers": {} }"#;
    assert!(shown(nothing, &["config", "check"]).await.starts_with("exit code 1\n"));
    insta::assert_snapshot!(shown("[]", &["config", "check"]).await, @"
    exit code 2
    --- stdout
    --- stderr
    error: toolgate.json: the file must hold an object with an `mcpServers` key, but it holds a list
    ");
    // `serve` reports it on stderr, and writes nothing to stdout.
    insta::assert_snapshot!(shown("{,}", &["serve", "--stdio"]).await, @"
    exit code 2
    --- stdout
    --- stderr
    error: toolgate.json:1:2: expected a key in double quotes or `}`
      |
    1 | {,}
      |  ^
    ");
}

#[tokio::test]
async fn a_missing_configuration() {
    let workplace = Workplace::empty();
    let outcome = workplace.run(&["status", "--config", "nowhere.json"]).await;
    insta::assert_snapshot!(outcome.shown(), @"
    exit code 2
    --- stdout
    --- stderr
    error: cannot read nowhere.json: No such file or directory (os error 2)
      hint: check the path after --config
    ");
    insta::assert_snapshot!(workplace.run(&["serve"]).await.shown(), @"
    exit code 2
    --- stdout
    --- stderr
    error: there is no configuration; looked for toolgate.json, toolgate.jsonc, .mcp.json, ~/.config/toolgate/toolgate.json
      hint: make one from the files of your clients: toolgate setup
      hint: or name yours: --config FILE (the file of a client works as it is)
      hint: or see toolgate at work without one: toolgate demo
    ");
    std::fs::create_dir(workplace.path().join("folder.json")).unwrap();
    let outcome = workplace.run(&["status", "--config", "folder.json"]).await;
    insta::assert_snapshot!(outcome.shown(), @"
    exit code 2
    --- stdout
    --- stderr
    error: cannot read folder.json: Is a directory (os error 21)
      hint: name a file in it
    ");
    std::fs::write(workplace.path().join("latin.json"), [b'{', 0xe4, b'}']).unwrap();
    let outcome = workplace.run(&["status", "--config", "latin.json"]).await;
    insta::assert_snapshot!(outcome.shown(), @"
    exit code 2
    --- stdout
    --- stderr
    error: cannot read latin.json: stream did not contain valid UTF-8
      hint: save the file as UTF-8
    ");
}

#[tokio::test]
async fn the_locations_of_a_configuration() {
    let workplace = Workplace::empty();
    let config = json!({ "mcpServers": { "notes": entry(&notes()) } }).to_string();
    let check = async || {
        let mut command = workplace.command(&["config", "check"]);
        let output = command.env_remove("TOOLGATE_CONFIG").output().await.unwrap();
        let outcome = String::from_utf8(output.stdout).unwrap();
        outcome.split(':').next().unwrap().to_owned()
    };
    let user = workplace.path().join(".config/toolgate");
    std::fs::create_dir_all(&user).unwrap();
    std::fs::write(user.join("toolgate.json"), &config).unwrap();
    assert_eq!(check().await, "~/.config/toolgate/toolgate.json");
    for place in [".mcp.json", "toolgate.jsonc", "toolgate.json"] {
        std::fs::write(workplace.path().join(place), &config).unwrap();
        assert_eq!(check().await, place, "beats the ones before");
    }
}

#[tokio::test]
async fn unknown_keys_are_named_and_nothing_else_is_lost() {
    let mut config = json!({
        "mcpServers": { "notes": entry(&notes()) }, "toolSerach": {}, "toolSearch": { "maxResult": 3 },
    });
    config["mcpServers"]["notes"]["deferLoadin"] = json!(true);
    let workplace = Workplace::new(&config);
    let outcome = workplace.run(&["search", "look for notes", "--limit", "1"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stdout.contains("notes_find_notes"));
    insta::assert_snapshot!(outcome.stderr, @"
    warning: toolgate.json:9:7: `mcpServers.notes.deferLoadin` is not a known key; it is ignored
      hint: did you mean `deferLoading`?
    warning: toolgate.json:12:3: `toolSerach` is not a known key; it is ignored
      hint: did you mean `toolSearch`?
    warning: toolgate.json:14:5: `toolSearch.maxResult` is not a known key; it is ignored
      hint: did you mean `maxResults`?
    ");
}

#[tokio::test]
async fn misspelt_names_get_suggestions() {
    let workplace = Workplace::new(&json!({
        "mcpServers": { "notes": entry(&notes()), "git": { "url": "nowhere" } },
        "namespaces": { "work": { "servers": ["notes"] } },
    }));
    let path = |name: &str| workplace.path().join(name);
    std::fs::write(path("one.rb"), "puts 1").unwrap();
    std::fs::write(path("latin.ts"), b"return '\xe9'").unwrap();
    workplace.run(&["token", "create", "--name", "laptop"]).await;
    let mut all = Vec::new();
    for arguments in [
        &["policy", "check", "notes_create_not"][..],
        &["serve", "--passthrough", "note"],
        &["enable", "gti"],
        &["disable", "zzz"],
        &["token", "revoke", "labtop"],
        &["login", "git"],
        &["runs", "--namespace", "wrok"],
        &["run", "one.rb"],
        &["run", "latin.ts"],
    ] {
        let outcome = workplace.run(arguments).await;
        assert_eq!(outcome.code, Some(2), "{arguments:?} {outcome:?}");
        let told = outcome.stderr.lines().filter(|line| !line.contains("warning"));
        let told: Vec<&str> = told.collect();
        all.push(format!("$ toolgate {}\n{}", arguments.join(" "), told.join("\n")));
    }
    insta::assert_snapshot!(all.join("\n"), @"
    $ toolgate policy check notes_create_not
    error: toolgate.json:11:14: `mcpServers.git.url` is not a URL that begins with `http://` or `https://`
      hint: write the whole URL, such as `https://example.com/mcp`
    error: there is no tool `notes_create_not`
      hint: did you mean notes_create_note or notes_delete_note or notes_find_notes?
      hint: `toolgate search` finds tools
    $ toolgate serve --passthrough note
    error: toolgate.json:11:14: `mcpServers.git.url` is not a URL that begins with `http://` or `https://`
      hint: write the whole URL, such as `https://example.com/mcp`
    error: there is no server `note`
      hint: did you mean notes?
    $ toolgate enable gti
    error: there is no server `gti`
      hint: did you mean git?
    $ toolgate disable zzz
    error: there is no server `zzz`
      hint: there are: notes, git
    $ toolgate token revoke labtop
    error: there is no token `labtop`
      hint: `toolgate token list` shows the tokens
      hint: did you mean laptop?
    $ toolgate login git
    error: toolgate.json:11:14: `mcpServers.git.url` is not a URL that begins with `http://` or `https://`
      hint: write the whole URL, such as `https://example.com/mcp`
    $ toolgate runs --namespace wrok
    error: toolgate.json has no namespace `wrok`
      hint: did you mean work?
    $ toolgate run one.rb
    error: no language is known by the ending `.rb`
      hint: say which it is: --language typescript or --language python
    $ toolgate run latin.ts
    error: cannot read latin.ts: stream did not contain valid UTF-8
      hint: save it as UTF-8
    ");
    std::fs::write(path("state/access/tokens.json"), "no tokens").unwrap();
    let served = workplace.run(&["serve", "--http", "0.0.0.0:0"]).await;
    assert!(served.stderr.contains("hint: remove the file"), "{served:?}");
}

#[tokio::test]
async fn wrong_arguments() {
    let workplace = Workplace::new(&json!({ "mcpServers": { "notes": entry(&notes()) } }));
    let mut all = Vec::new();
    for arguments in [
        &["serve", "--mode", "direkt"][..],
        &["serach", "x"],
        &["search"],
        &["call"],
        &["tokens", "--unit", "words"],
        &["search", "x", "--limit", "many"],
        &["logs"],
    ] {
        let outcome = workplace.run(arguments).await;
        assert_eq!(outcome.code, Some(2), "{arguments:?}");
        assert_eq!(outcome.stdout, "");
        all.push(format!("$ toolgate {}\n{}", arguments.join(" "), outcome.stderr));
    }
    insta::assert_snapshot!(all.join("\n"), @"
    $ toolgate serve --mode direkt
    error: invalid value 'direkt' for '--mode <MODE>'
      [possible values: auto, direct, stable, dynamic, code]

      tip: a similar value exists: 'direct'

    For more information, try '--help'.

    $ toolgate serach x
    error: unrecognized subcommand 'serach'

      tip: some similar subcommands exist: 'serve', 'service', 'search'

    Usage: toolgate [OPTIONS] <COMMAND>

    For more information, try '--help'.

    $ toolgate search
    error: the following required arguments were not provided:
      <QUERY>...

    Usage: toolgate search --config <FILE> <QUERY>...

    For more information, try '--help'.

    $ toolgate call
    error: the following required arguments were not provided:
      <NAME>

    Usage: toolgate call --config <FILE> <NAME> [JSON]

    For more information, try '--help'.

    $ toolgate tokens --unit words
    error: invalid value 'words' for '--unit <UNIT>'
      [possible values: tokens, characters]

    For more information, try '--help'.

    $ toolgate search x --limit many
    error: invalid value 'many' for '--limit <N>': invalid digit found in string

    For more information, try '--help'.

    $ toolgate logs
    error: the following required arguments were not provided:
      <NAME>

    Usage: toolgate logs --config <FILE> <NAME>

    For more information, try '--help'.
    ");
}
