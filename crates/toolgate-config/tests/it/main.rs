//! What people write, what becomes of it, and what they are told.

#![expect(clippy::expect_used, reason = "helpers of tests fail like tests")]

mod clients;
mod demand;
mod embeddings;
mod env_file;
mod gateway;
mod limits;
mod more_clients;
mod policy;
mod problems;
mod servers;
mod subagent;
mod syntax;

use toolgate_config::{Configuration, Format, ServerConfig, Transport, parse};
use toolgate_mcp::HttpDialect;

/// The environment of every test; no value of it may appear in a message.
fn environment(name: &str) -> Option<String> {
    let value = match name {
        "HOME" => "/home/ada",
        "TOKEN" => "s3cr3t-t0ken",
        "HOST" => "crm.example",
        "EMPTY" => "",
        "BROKEN" => "s3cr3t\nline",
        "NOT_A_URL" => "s3cr3t url",
        _ => return None,
    };
    Some(value.to_owned())
}

fn read(text: &str) -> Configuration {
    parse(text, Format::Jsonc, "toolgate.json", &environment).expect("the syntax is valid")
}

fn read_toml(text: &str) -> Configuration {
    parse(text, Format::Toml, "config.toml", &environment).expect("the syntax is valid")
}

/// The problems of a file as a person sees them.
fn problems(text: &str) -> String {
    shown(&read(text))
}

fn shown(configuration: &Configuration) -> String {
    let lines: Vec<String> = configuration.problems.iter().map(ToString::to_string).collect();
    let shown = lines.join("\n");
    assert!(!shown.contains("s3cr3t"), "a value is shown: {shown}");
    shown
}

/// The problems of a server with this body, in a file where it is on the second line.
fn server_problems(body: &str) -> String {
    problems(&format!("{{ \"mcpServers\": {{\n\"github\": {{ {body} }} }} }}"))
}

/// The only server of a file that has no problems.
fn only(configuration: Configuration) -> ServerConfig {
    assert_eq!(shown(&configuration), "");
    let [server] = <[ServerConfig; 1]>::try_from(configuration.servers).expect("one server");
    server
}

/// The transport with everything in it, for comparison in a test.
fn transport(server: &ServerConfig) -> String {
    match server.transport.as_ref().expect("a transport") {
        Transport::Stdio { command, args, env, cwd } => {
            let env: Vec<String> =
                env.iter().map(|(name, value)| format!("{name}={}", value.expose())).collect();
            let cwd = cwd.as_ref().map(|cwd| format!(" in {}", cwd.display())).unwrap_or_default();
            format!("{command} {args:?} {env:?}{cwd}")
        }
        Transport::Http { url, headers, dialect } => {
            let headers: Vec<String> =
                headers.iter().map(|(name, value)| format!("{name}: {}", value.expose())).collect();
            let dialect = if *dialect == HttpDialect::Sse { "sse " } else { "" };
            format!("{dialect}{url} {headers:?}")
        }
    }
}
