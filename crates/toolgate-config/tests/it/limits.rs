//! Files that were made to do harm.

use proptest::prelude::*;
use toolgate_config::{
    ConfigError, Format, MAX_FILE_BYTES, MAX_PROBLEMS, MAX_SERVERS, ProblemSeverity, parse,
};

use crate::{environment, read};

fn attempt(text: &str, format: Format) -> Result<toolgate_config::Configuration, ConfigError> {
    parse(text, format, "hostile", &environment)
}

#[test]
fn a_large_file_is_refused() {
    let text = " ".repeat(MAX_FILE_BYTES + 1);
    let error = attempt(&text, Format::Jsonc).expect_err("too large");
    assert!(matches!(error, ConfigError::TooLarge { .. }));
    insta::assert_snapshot!(error, @"hostile: the file has 4194305 bytes, but at most 4194304 are read; is it the right file?");
    assert!(attempt(&text[1..], Format::Jsonc).is_ok());
}

#[test]
fn deep_nesting_is_refused() {
    let arrays = "[".repeat(1_000_000);
    let objects = "{\"a\":".repeat(500_000);
    for text in [arrays, objects] {
        let error = attempt(&text, Format::Jsonc).expect_err("too deep");
        assert!(matches!(error, ConfigError::TooDeep { .. }));
    }
    insta::assert_snapshot!(attempt(&"[".repeat(65), Format::Jsonc).expect_err("too deep"), @"hostile:1:65: the file is nested deeper than 64 levels; is it the right file?");
}

#[test]
fn deep_toml_is_refused() {
    let dotted = vec!["a"; 70].join(".");
    let many_dots = vec!["a"; 100_000].join(".");
    let inline = format!("{}1{}", format!("{dotted} = {{").repeat(60), "}".repeat(60));
    for text in [
        format!("{dotted} = 1"),
        format!("{many_dots} = 1"),
        format!("[{many_dots}]"),
        format!("a = {}", "[".repeat(100_000)),
        format!("a = {}", "{a=".repeat(100_000)),
        inline,
    ] {
        assert!(attempt(&text, Format::Toml).is_err());
    }
}

#[test]
fn brackets_within_strings_and_comments_do_not_nest() {
    let brackets = "[{".repeat(100);
    let text = format!("// {brackets}\n{{ \"x\": \"{brackets}\" }}");
    assert!(attempt(&text, Format::Jsonc).is_ok());
}

#[test]
fn servers_beyond_the_limit_are_left_out() {
    let servers: Vec<String> =
        (0..MAX_SERVERS + 5).map(|index| format!("\"s{index}\": {{\"command\":\"x\"}}")).collect();
    let configuration = read(&format!("{{ \"mcpServers\": {{ {} }} }}", servers.join(",")));
    assert_eq!(configuration.servers.len(), MAX_SERVERS);
    let [problem] = &configuration.problems[..] else { panic!("one problem") };
    assert_eq!(problem.severity, ProblemSeverity::Error);
    insta::assert_snapshot!(problem.message, @"`mcpServers.s1000` is one server too many: this one and those after it are ignored, since a file may have at most 1000");
}

#[test]
fn problems_beyond_the_limit_are_counted() {
    let keys: Vec<String> = (0..20_000).map(|index| format!("\"k{index}\": 1")).collect();
    let text = format!(
        "{{ \"mcpServers\": {{ \"a\": {{ {} }}, \"b\": 5, \"c\": {{}} }} }}",
        keys.join(",")
    );
    let configuration = read(&text);
    assert_eq!(configuration.problems.len(), MAX_PROBLEMS);
    insta::assert_snapshot!(configuration.problems[MAX_PROBLEMS - 1], @"
    warning: toolgate.json:1:1: 19904 more problems are not shown
      hint: fix the ones above first
    ");
    // A server beyond the limit still knows what is wrong with it.
    assert!(configuration.servers.iter().all(|server| server.transport.is_err()));
}

#[test]
fn the_cost_of_mistakes_is_linear() {
    // Each of these took minutes if every mistake looked for its line in the file.
    let tools: Vec<String> = (0..50_000).map(|index| format!("\"t{index}\": 1")).collect();
    let twice = vec!["\"lazy\": true"; 50_000].join(",");
    let near: Vec<String> = (0..50_000).map(|index| format!("\"n{index}\": {{}}")).collect();
    for body in [
        format!("\"tools\": {{ {} }}", tools.join(",")),
        twice,
        format!("\"env\": {{ {} }}", near.join(",")),
    ] {
        let text = format!("{{ \"mcpServers\": {{ \"a\": {{ \"command\": \"x\", {body} }} }} }}");
        assert_eq!(read(&text).problems.len(), MAX_PROBLEMS);
    }
}

proptest! {
    #[test]
    fn no_json_panics(text in r#"[\[\]{}:,"'a\\/ \n$é1.-]{0,60}"#) {
        let _ = attempt(&text, Format::Jsonc);
        let _ = attempt(&text, Format::Toml);
    }

    #[test]
    fn no_server_panics(
        key in "command|url|args|env|headers|type|tools|timeout|disabled|prefix|env_vars|[a-z]{1,8}",
        value in r#"null|true|-1|1e400|"x"|"\$\{A"|"https://"|\[\]|\[1\]|\{\}|\{"a":\{"b":\[\]\}\}|\{"path":1\}"#,
        other in r#""command":"x"|"url":"http://x"|"type":"sse""#,
    ) {
        let text = format!("{{ \"mcpServers\": {{ \"a\": {{ \"{key}\": {value}, {other} }} }} }}");
        let _ = attempt(&text, Format::Jsonc);
    }
}
