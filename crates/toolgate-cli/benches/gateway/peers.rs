//! Other gateways, as `scripts/bench-gateway` installs them.

use std::{fs, path::Path, process::Command};

use toolgate_testkit::FixtureEntry;

/// Another gateway.
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) command: Command,
}

/// Where those over HTTP listen.
pub(crate) const PORT: u16 = 18_237;

const FASTMCP: &str = r#"
import sys
from fastmcp.server import create_proxy
transport, port, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
server = create_proxy({"mcpServers": {"echo": {"command": command[0], "args": command[1:]}}})
if transport == "stdio":
    server.run(show_banner=False)
else:
    server.run(transport="http", host="127.0.0.1", port=port, path="/mcp", show_banner=False, log_level="error")
"#;

/// Those that serve a stdio server over stdio.
pub(crate) fn over_stdio(folder: &Path, server: &FixtureEntry) -> Vec<Peer> {
    vec![fastmcp(folder, "stdio", server)]
}

/// Those that serve a stdio server over HTTP.
pub(crate) fn over_http(folder: &Path, server: &FixtureEntry) -> Vec<Peer> {
    let port = PORT.to_string();
    let mut pypi = Command::new(folder.join("pypi/bin/mcp-proxy"));
    pypi.args(["--host", "127.0.0.1", "--port", &port, "--stateless", "--"]);
    pypi.arg(&server.command).args(&server.args);
    let mut npm = Command::new(folder.join("node_modules/.bin/mcp-proxy"));
    npm.args(["--host", "127.0.0.1", "--port", &port, "--server", "stream", "--stateless", "--"]);
    npm.arg(&server.command).args(&server.args);
    vec![
        fastmcp(folder, "http", server),
        Peer { name: format!("mcp-proxy {} (PyPI)", version(folder, "pypi")), command: pypi },
        Peer { name: format!("mcp-proxy {} (npm)", version(folder, "npm")), command: npm },
    ]
}

fn fastmcp(folder: &Path, transport: &str, server: &FixtureEntry) -> Peer {
    let script = folder.join("fastmcp-proxy.py");
    fs::write(&script, FASTMCP).expect("a file");
    let mut command = Command::new(folder.join("fastmcp/bin/python"));
    command.arg(script).args([transport, &PORT.to_string()]);
    command.arg(&server.command).args(&server.args);
    Peer { name: format!("FastMCP {}, a proxy", version(folder, "fastmcp")), command }
}

/// The version that the script installed and noted.
fn version(folder: &Path, name: &str) -> String {
    let noted = fs::read_to_string(folder.join(format!("{name}.version"))).unwrap_or_default();
    noted.trim().to_owned()
}
