//! Rules about command lines, paths and URLs compare their meaning, not their beginning.

use serde_json::{Value, json};
use toolgate_testkit::Fixture;

use crate::{
    fixtures::tool,
    support::{Workplace, call_through, entry, text},
};

/// A shell, a folder of files and a browser in one server.
fn machine() -> Fixture {
    let takes = |name: &str, argument: &str| {
        tool(name, "Do it.", &json!({ argument: { "type": "string" } }), &[argument])
    };
    Fixture::new("machine").with_tools([
        takes("run", "command"),
        takes("read", "path"),
        takes("fetch", "url"),
    ])
}

/// A place where each tool is allowed under a condition and everything else is denied.
fn place(conditions: &[(&str, Value)]) -> Workplace {
    let rules: Vec<Value> = conditions
        .iter()
        .map(|(tool, arguments)| {
            json!({ "tool": tool, "when": { "arguments": arguments }, "verdict": "allow" })
        })
        .collect();
    Workplace::new(&json!({
        "mcpServers": { "machine": entry(&machine()) },
        "policy": { "default": "deny", "rules": rules },
    }))
}

#[tokio::test]
async fn argv_matches_only_plain_words() {
    let place = place(&[("machine_run", json!({ "command": { "argv": ["git", "status", "*"] } }))]);
    let mut client = place.connect(&["--mode", "deferred"]).await;
    for (command, is_allowed) in [
        ("git status", true),
        ("git status -s 'my file'", true),
        ("git status; rm -rf x", false),
        ("git status && rm -rf x", false),
        ("git status | sh", false),
        ("git status > /etc/passwd", false),
        ("git status $(rm -rf x)", false),
        ("git status `rm -rf x`", false),
        ("git status $HOME", false),
        ("git status *", false),
        ("git status\nrm -rf x", false),
        ("git status 'x", false),
        ("git push", false),
    ] {
        let result = call_through(&mut client, "machine_run", json!({ "command": command })).await;
        assert_eq!(result["isError"] != true, is_allowed, "{command}: {result}");
        assert_eq!(text(&result).contains("the policy denies it"), !is_allowed, "{command}");
    }
}

#[tokio::test]
async fn host_matches_only_http_and_https_by_default() {
    let host = json!({ "url": { "host": "example.com" } });
    let sockets = json!({ "url": { "host": "example.com", "schemes": ["wss"] } });
    for (conditions, url, is_allowed) in [
        (&host, "https://example.com/x", true),
        (&host, "http://example.com/x", true),
        (&host, "gopher://example.com/x", false),
        (&host, "file://example.com/etc/passwd", false),
        (&sockets, "wss://example.com/x", true),
        (&sockets, "https://example.com/x", false),
    ] {
        let place = place(&[("machine_fetch", conditions.clone())]);
        let arguments = json!({ "url": url }).to_string();
        let checked = place.run(&["policy", "check", "machine_fetch", &arguments]).await;
        assert_eq!(checked.stdout.starts_with("allow"), is_allowed, "{url}: {checked:?}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_symbolic_link_does_not_leave_the_folder() {
    let files = tempfile::tempdir().unwrap();
    let folder = files.path().join("project");
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink("/etc", folder.join("conf")).unwrap();
    std::fs::write(folder.join("a.txt"), "a").unwrap();
    let place = place(&[("machine_read", json!({ "path": { "under": folder } }))]);
    let check = async |name: &str| {
        let arguments = json!({ "path": folder.join(name) }).to_string();
        place.run(&["policy", "check", "machine_read", &arguments]).await.stdout
    };
    let mut client = place.connect(&["--mode", "deferred"]).await;
    for (name, is_allowed) in [("a.txt", true), ("new.txt", true), ("conf/passwd", false)] {
        let arguments = json!({ "path": folder.join(name) });
        let result = call_through(&mut client, "machine_read", arguments).await;
        assert_eq!(result["isError"] != true, is_allowed, "{name}: {result}");
        assert_eq!(check(name).await.starts_with("allow"), is_allowed, "{name}");
    }
    assert!(!check("a.txt").await.contains("links"));
    let absent = check("new.txt").await;
    assert!(
        absent.contains("`path` is not on this machine, so links that the server finds"),
        "{absent}"
    );
}

#[tokio::test]
async fn prefix_and_matches_on_command_lines_give_a_warning() {
    let place = place(&[
        ("machine_run", json!({ "command": { "prefix": "git status" } })),
        ("machine_read", json!({ "path": { "matches": "/srv/data/.*" } })),
        ("machine_fetch", json!({ "url": { "prefix": "https://example.com" } })),
    ]);
    insta::assert_snapshot!(place.run(&["config", "check"]).await.shown(), @r#"
    exit code 0
    --- stdout
    toolgate.json: 1 of 1 servers can be used
    --- stderr
    warning: toolgate.json:19:15: `policy.rules[0].when.arguments.command.prefix` compares the letters of a command line, and does not see a second command in it: `git status; rm -rf x`
      hint: write `"argv": ["git","status","*"]`
    warning: toolgate.json:30:15: `policy.rules[1].when.arguments.path.matches` compares the letters of a path, and does not see where `..` and links lead
      hint: write `"under": "/srv/data"`
    warning: toolgate.json:41:15: `policy.rules[2].when.arguments.url.prefix` compares the letters of a URL, and does not see which host it leads to: `https://example.com@other.test/`
      hint: write `"host": "example.com"`
    "#);
    let checked = place.run(&["policy", "check", "machine_run", r#"{"command":"ls"}"#]).await;
    assert!(checked.stderr.contains(r#"write `"argv": ["git","status","*"]`"#), "{checked:?}");
}

#[tokio::test]
async fn conditions_that_are_too_wide_give_a_warning() {
    let place = place(&[
        ("machine_run", json!({ "command": { "argv": ["*"] } })),
        ("machine_run", json!({ "command": { "argv": ["sh", "-c", "*"] } })),
        ("machine_run", json!({ "command": { "argv": ["git status"] } })),
        ("machine_read", json!({ "x": { "prefix": "/srv/data" } })),
        ("machine_read", json!({ "Befehl": { "prefix": "git status" } })),
        ("machine_read", json!({ "cmds.*": { "prefix": "git " } })),
        ("machine_fetch", json!({ "url": { "host": "*.example.com" } })),
    ]);
    let checked = place.run(&["config", "check"]).await;
    assert_eq!(checked.stderr.matches("warning: ").count(), 7, "{checked:?}");
    for told in [
        "matches every program",
        "lets `sh` run anything",
        "is one word with a blank",
        "write `\"under\": \"/srv/data\"`",
        "write `\"argv\": [\"git\",\"status\",\"*\"]`",
        "write `\"argv\": [\"git\",\"*\"]`",
        "write `\"host\": \"example.com\", \"subdomains\": true`",
    ] {
        assert!(checked.stderr.contains(told), "{told}: {checked:?}");
    }
}

#[tokio::test]
async fn a_denied_program_is_denied_with_a_path_too() {
    let place = Workplace::new(&json!({
        "mcpServers": { "machine": entry(&machine()) },
        "policy": { "default": "allow", "rules": [
            { "tool": "machine_run", "verdict": "deny", "when": { "arguments": { "command": { "argv": ["rm", "*"] } } } },
            { "tool": "machine_read", "verdict": "deny", "when": { "arguments": { "path": { "under": "/etc" } } } },
            { "tool": "machine_fetch", "verdict": "deny",
              "when": { "arguments": { "url": { "host": ["evil.com", "127.0.0.1"] } } } },
        ] },
    }));
    let verdict = async |tool: &str, arguments: Value| {
        let checked = place.run(&["policy", "check", tool, &arguments.to_string(), "--json"]).await;
        checked.json()["verdict"].as_str().unwrap_or_default().to_owned()
    };
    for command in ["rm x", "/bin/rm x", "sudo rm x"] {
        assert_eq!(
            verdict("machine_run", json!({ "command": command })).await,
            "deny",
            "{command}"
        );
    }
    assert_eq!(verdict("machine_run", json!({ "command": "ls x" })).await, "allow");
    for path in ["/e?c/passwd", "file:///etc/passwd", "file://other/etc/passwd"] {
        assert_eq!(verdict("machine_read", json!({ "path": path })).await, "deny", "{path}");
    }
    for url in ["http://{evil,good}.com/", "http://[::ffff:127.0.0.1]/"] {
        assert_eq!(verdict("machine_fetch", json!({ "url": url })).await, "deny", "{url}");
    }
}
