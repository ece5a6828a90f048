//! The variables that a server gets from its `envFile`.

use insta::assert_snapshot;
use toolgate_config::{
    Configuration, EnvFileError, Format, Surroundings, Transport, json_schema, parse_within,
};

use crate::{environment, only, shown, transport};

/// The files of every test; no value of them may appear in a message.
fn env_files(path: &str) -> Result<String, EnvFileError> {
    match path {
        ".env" | "/src/app/.env" => Ok("\
            # made by hand\n\
            export KEY='s3cr3t-key'\n\
            SHARED=\"s3cr3t from the file\"\n\
            TOKEN=s3cr3t-of-the-file # not ours\n\
            PEM=\"s3cr3t\nlines\"\n"
            .to_owned()),
        "broken.env" => Ok("KEY=1\ns3cr3t\n".to_owned()),
        "nul.env" => Ok("KEY=s3cr3t\0".to_owned()),
        "folder" => Err(EnvFileError::NotAFile),
        "hidden.env" => Err(EnvFileError::Denied),
        "huge.env" => Err(EnvFileError::TooLarge),
        "latin.env" => Err(EnvFileError::NotText),
        "odd.env" => Err(EnvFileError::Failed(std::io::ErrorKind::TimedOut)),
        _ => Err(EnvFileError::Missing),
    }
}

fn read(text: &str) -> Configuration {
    let surroundings = Surroundings {
        env_files: &env_files,
        workspace_folder: Some("/src/app"),
        ..Surroundings::of(&environment)
    };
    parse_within(text, Format::Jsonc, "toolgate.json", &surroundings).expect("the syntax is valid")
}

fn server(body: &str) -> Configuration {
    read(&format!("{{ \"mcpServers\": {{\n\"github\": {{ \"command\": \"x\", {body} }} }} }}"))
}

#[test]
fn a_server_gets_its_file_and_env_wins() {
    let body = r#""envFile": ".env", "env": { "SHARED": "s3cr3t of env" }, "inheritEnv": ["TOKEN", "HOME"]"#;
    assert_snapshot!(
        transport(&only(server(body))),
        @r#"x [] ["HOME=/home/ada", "KEY=s3cr3t-key", "PEM=s3cr3t\nlines", "SHARED=s3cr3t of env", "TOKEN=s3cr3t-of-the-file"]"#
    );
}

#[test]
fn other_servers_get_nothing_of_it() {
    let configuration = read(
        r#"{ "mcpServers": {
          "one": { "command": "x", "envFile": "${workspaceFolder}/.env" },
          "two": { "command": "y", "args": ["$KEY"] }
        } }"#,
    );
    assert_eq!(shown(&configuration), "");
    let [one, two] = &configuration.servers[..] else { panic!("two servers") };
    assert!(transport(one).contains("s3cr3t-key"));
    assert_eq!(transport(two), r#"y ["$KEY"] []"#);
    assert!(!format!("{configuration:?}").contains("s3cr3t"), "a value in the debug output");
}

#[test]
fn a_shell_command_may_use_what_the_file_has() {
    let body = r#""envFile": ".env", "args": ["-c", "run --token $TOKEN"]"#;
    let of_shell = |body: &str| {
        read(&format!(r#"{{ "mcpServers": {{ "a": {{ "command": "sh", {body} }} }} }}"#))
    };
    assert_eq!(shown(&of_shell(body)), "");
    assert!(shown(&of_shell(&body.replace(r#""envFile": ".env", "#, ""))).contains("inheritEnv"));
}

#[test]
fn every_failure_is_one_error_of_that_server_with_the_way_out() {
    let told = |path: &str| {
        let configuration = server(&format!("\"envFile\": \"{path}\""));
        assert!(configuration.servers[0].transport.is_err(), "{path}");
        assert_eq!(configuration.problems.len(), 1, "{path}");
        shown(&configuration)
    };
    assert_snapshot!(told("none.env"), @"
    error: toolgate.json:2:40: `mcpServers.github.envFile` names a file that does not exist
      hint: create it, correct the path, or remove `envFile`; a relative path starts at the folder of this file
    ");
    assert_snapshot!(told("folder"), @"
    error: toolgate.json:2:40: `mcpServers.github.envFile` names something that is not a file
      hint: write the path of a file with lines of `NAME=value`
    ");
    assert_snapshot!(told("hidden.env"), @"
    error: toolgate.json:2:40: `mcpServers.github.envFile` names a file that you may not read
      hint: let yourself read it, or remove `envFile`
    ");
    assert_snapshot!(told("huge.env"), @"
    error: toolgate.json:2:40: `mcpServers.github.envFile` names a file that is too large
      hint: an env file may have at most 131,072 bytes
    ");
    assert_snapshot!(told("latin.env"), @"
    error: toolgate.json:2:40: `mcpServers.github.envFile` names a file that is not UTF-8
      hint: save the file as UTF-8
    ");
    assert_snapshot!(told("odd.env"), @"
    error: toolgate.json:2:40: `mcpServers.github.envFile` names a file that cannot be read: timed out
      hint: correct the path, or remove `envFile`
    ");
    assert_snapshot!(told("broken.env"), @r#"
    error: toolgate.json:2:40: `mcpServers.github.envFile` names a file that is no env file: its line 2 is not `NAME=value`
      hint: write a line as NAME=value or NAME="value"; a comment begins with #
    "#);
    assert_snapshot!(told("nul.env"), @r"
    error: toolgate.json:2:40: `mcpServers.github.envFile` contains a NUL character
      hint: remove the `\u0000`, or the character from the variable
    ");
    assert_snapshot!(told(""), @"error: toolgate.json:2:40: `mcpServers.github.envFile` is empty");
}

#[test]
fn another_server_is_not_affected() {
    let configuration = read(
        r#"{ "mcpServers": { "a": { "command": "x", "envFile": "none.env" }, "b": { "command": "y" } } }"#,
    );
    assert!(configuration.servers[0].transport.is_err());
    assert!(matches!(configuration.servers[1].transport, Ok(Transport::Stdio { .. })));
}

#[test]
fn an_endpoint_has_no_variables() {
    let configuration = read(
        r#"{ "mcpServers": { "a": { "url": "https://a.example/mcp", "envFile": "none.env" } } }"#,
    );
    assert!(configuration.servers[0].transport.is_ok());
    assert_snapshot!(shown(&configuration), @"
    warning: toolgate.json:1:69: `mcpServers.a.envFile` is only for servers with a `command`; it is ignored
      hint: remove it; `headers` may use `${NAME}` of toolgate's own variables
    ");
}

#[test]
fn all_files_together_are_bounded() {
    let big = |_: &str| Ok(format!("BIG={}", "x".repeat(100_000)));
    let surroundings = Surroundings { env_files: &big, ..Surroundings::of(&environment) };
    let servers: Vec<String> = (0..500)
        .map(|number| format!("\"s{number}\": {{ \"command\": \"x\", \"envFile\": \".env\" }}"))
        .collect();
    let text = format!("{{ \"mcpServers\": {{ {} }} }}", servers.join(", "));
    let configuration = parse_within(&text, Format::Jsonc, "f", &surroundings).expect("valid");
    let usable = configuration.servers.iter().filter(|server| server.transport.is_ok()).count();
    assert!((100..200).contains(&usable), "{usable}");
}

#[test]
fn the_schema_has_it() {
    let schema = json_schema();
    let key = &schema["$defs"]["Server"]["properties"]["envFile"];
    assert_eq!(key["type"], serde_json::json!(["string", "null"]));
    assert!(key["description"].as_str().is_some_and(|text| text.contains("`env` wins")));
}
