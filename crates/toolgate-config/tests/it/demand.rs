//! Servers on demand: when they rest, where others are found, which are served apart.

use std::time::Duration;

use toolgate_config::{DeferredMode, RegistrySource, ToolSearchMode};

use crate::{problems, read};

#[test]
fn only_a_lazy_server_rests_unless_it_is_said() {
    let configuration = read(
        r#"{ "mcpServers": {
            "eager": { "command": "x" },
            "lazy": { "command": "x", "lazy": true },
            "resting": { "command": "x", "idleTimeoutSeconds": 1.5 },
            "restless": { "command": "x", "lazy": true, "idleTimeoutSeconds": 0 }
        } }"#,
    );
    let rests: Vec<_> =
        configuration.servers.iter().map(|server| server.settings.idle_timeout).collect();
    let expected = [None, Some(Duration::from_mins(30)), Some(Duration::from_millis(1_500)), None];
    assert_eq!(rests, expected);
}

#[test]
fn sources_are_urls_and_paths() {
    let configuration = read(
        r#"{ "registry": {
            "sources": ["./servers", "https://${HOST}/", "http://localhost:8080"], "cacheHours": 0.5
        }, "skills": ["${HOME}/skills"] }"#,
    );
    assert!(configuration.problems.is_empty(), "{:?}", configuration.problems);
    assert_eq!(
        configuration.registry.sources,
        [
            RegistrySource::Path("./servers".into()),
            RegistrySource::Url("https://crm.example/".into()),
            RegistrySource::Url("http://localhost:8080".into()),
        ]
    );
    assert_eq!(configuration.registry.cache, Duration::from_mins(30));
    assert_eq!(configuration.skills, [std::path::PathBuf::from("/home/ada/skills")]);
}

#[test]
fn a_source_that_others_could_change_on_the_way_is_left_out() {
    insta::assert_snapshot!(problems(
        r#"{ "mcpServers": { "a": { "command": "x" } },
            "registry": { "sources": ["http://registry.example", "ftp://x", 3], "cache": 1 } }"#
    ), @"
    error: toolgate.json:2:77: `registry.sources[2]` must be a string, but is a number
      hint: write the value in double quotes
    warning: toolgate.json:2:81: `registry.cache` is not a known key; it is ignored
    ");
    insta::assert_snapshot!(problems(
        r#"{ "mcpServers": { "a": { "command": "x" } },
            "registry": { "sources": ["http://registry.example", "ftp://x", "${UNSET}"] },
            "skills": "here" }"#
    ), @r#"
    error: toolgate.json:2:39: `registry.sources` has a source that is neither an `https` URL nor a path; it is left out
    error: toolgate.json:2:66: `registry.sources` has a source that is neither an `https` URL nor a path; it is left out
    error: toolgate.json:2:77: `registry.sources[2]` needs the environment variable `UNSET`, which is not set
      hint: set `UNSET`, or write `${UNSET:-default}`
    error: toolgate.json:3:23: `skills` must be a list of strings, but is a string
      hint: write `"skills": ["…", "…"]`
    "#);
}

#[test]
fn a_namespace_has_servers_and_what_differs() {
    let configuration = read(
        r#"{ "namespaces": {
                "work": { "servers": ["a", "b", "a"], "mode": "dynamic",
                          "toolSearch": { "maxResults": 7 } },
                "home": { "servers": ["b"], "exclusive": true }
            },
            "mcpServers": { "a": { "command": "x" }, "b": { "command": "y" } },
            "toolSearch": { "enabled": "code", "maxResults": 3, "toolThreshold": 9 } }"#,
    );
    assert!(configuration.problems.is_empty(), "{:?}", configuration.problems);
    let [work, home] = &configuration.namespaces[..] else { panic!("two") };
    assert_eq!((work.name.as_str(), work.exclusive), ("work", false));
    assert_eq!(work.servers, ["a", "b"]);
    assert_eq!(work.tool_search.enabled, ToolSearchMode::On);
    assert_eq!(work.tool_search.deferred, DeferredMode::Dynamic);
    assert_eq!((work.tool_search.max_results, work.tool_search.tool_threshold), (7, Some(9)));
    assert!(home.exclusive);
    assert_eq!(home.tool_search, configuration.tool_search);
}

#[test]
fn a_namespace_that_is_not_understood_is_left_out() {
    let text = r#"{ "mcpServers": { "a": { "command": "x" } }, "namespaces": {
        "Upper/Case": { "servers": ["a"] },
        "none": {},
        "text": "a",
        "odd": { "servers": ["a", "zzz"], "exclusive": "yes", "mode": "wild", "server": [] }
    } }"#;
    insta::assert_snapshot!(problems(text), @r#"
    error: toolgate.json:2:9: `namespaces["Upper/Case"]` is ignored: the name of a namespace must have 1 to 64 lower-case letters, digits, `-` and `_`, since it is part of a path
    error: toolgate.json:3:9: `namespaces.none` has no `servers`
      hint: add `"servers": ["…"]`
    error: toolgate.json:4:17: `namespaces.text` must be an object, but is a string
    warning: toolgate.json:5:35: `namespaces.odd.servers[1]` names no server of this file; it is ignored
    error: toolgate.json:5:56: `namespaces.odd.exclusive` must be true or false, but is a string
    warning: toolgate.json:5:71: `namespaces.odd.mode` must be `auto`, `direct`, `deferred`, `stable`, `dynamic` or `code`; it is ignored
    warning: toolgate.json:5:79: `namespaces.odd.server` is not a known key; it is ignored
      hint: did you mean `servers`?
    "#);
    let namespaces = read(text).namespaces;
    assert_eq!(namespaces.len(), 1);
    assert!(namespaces[0].exclusive, "what is not understood holds back");
    assert_eq!(namespaces[0].servers, ["a"]);
}
