//! The clients: where their files are, and how an entry in them looks.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use toolgate_config::Format;

/// The operating system, by which the places of files differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Linux and other Unix systems.
    Linux,
    /// macOS.
    Mac,
    /// Windows.
    Windows,
}

/// The folders of a user. Nothing here reads them from the process.
#[derive(Clone)]
pub struct Places<'a> {
    /// The operating system.
    pub system: System,
    /// The user's home.
    pub home: PathBuf,
    /// The working folder.
    pub working_folder: PathBuf,
    /// Looks up an environment variable, such as `XDG_CONFIG_HOME`.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

/// A client.
#[derive(Debug)]
pub struct Client {
    /// Its name on the command line.
    pub id: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// Its files for the user. The first one that exists is used.
    pub(crate) user: &'static [Place],
    /// Its files in a project.
    pub(crate) project: &'static [&'static str],
    /// The keys that lead to the servers.
    pub container: &'static [&'static str],
    /// The shape of its entries.
    pub(crate) shape: Shape,
    /// The URL key of a remote entry, and its `type` if it has one; none if a file cannot have remote entries.
    pub(crate) remote: Option<(&'static str, Option<&'static str>)>,
    /// The key that switches an entry off, and the value that does so. Without one the entry is removed.
    pub switch: Option<(&'static str, bool)>,
    /// How the client takes notice of a change.
    pub reload: &'static str,
}

/// The base of a path, and the rest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place(Base, &'static str);

#[derive(Debug, Clone, Copy)]
enum Base {
    /// The user's home.
    Home,
    /// The folder for settings of applications.
    Application,
    /// `$XDG_CONFIG_HOME`, or `.config` in the home, on every system.
    Config,
    /// The same, on Linux alone.
    LinuxConfig,
    /// The folder that a variable names, or this one in the home.
    Variable(&'static str, &'static str),
}

/// How the entry of a program looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `command`, `args` and `env`.
    Plain,
    /// With `type: "stdio"`.
    Typed,
    /// With `type: "local"` and `tools: ["*"]`, as Copilot CLI has it.
    Copilot,
    /// With `transport: "stdio"`.
    Transport,
    /// With `source: "custom"`.
    Zed,
    /// One list under `command`, and `environment`.
    List,
    /// `cmd` and `envs`.
    Goose,
    /// TOML.
    Toml,
}

use Base::{Application, Config, Home, LinuxConfig, Variable};
use Shape::{Copilot, Goose, List, Plain, Toml, Transport, Typed, Zed};

const OFF: Option<(&str, bool)> = Some(("disabled", true));
const NOT_ON: Option<(&str, bool)> = Some(("enabled", false));
const MCP_SERVERS: &[&str] = &["mcpServers"];
const RESTART: &str = "restart it";
const NEW_SESSION: &str = "start a new session";

macro_rules! clients {
    ($( $id:literal, $name:literal, [$($user:expr),*], [$($project:literal),*], $container:expr, $shape:expr, $remote:expr, $switch:expr, $reload:expr; )*) => {
        /// All clients.
        pub const CLIENTS: &[Client] = &[$( Client {
            id: $id, name: $name, user: &[$($user),*], project: &[$($project),*], container: $container,
            shape: $shape, remote: $remote, switch: $switch, reload: $reload,
        } ),*];
    };
}

clients! {
    "claude-desktop", "Claude Desktop", [Place(Application, "Claude/claude_desktop_config.json")], [],
        MCP_SERVERS, Plain, None, None, "quit it and start it again";
    "claude-code", "Claude Code", [Place(Home, ".claude.json")], [".mcp.json"],
        MCP_SERVERS, Plain, Some(("url", Some("http"))), None, "start a new session, or type /mcp in a running one";
    "cursor", "Cursor", [Place(Home, ".cursor/mcp.json")], [".cursor/mcp.json"],
        MCP_SERVERS, Plain, Some(("url", None)), None, "it reloads by itself; see Settings, MCP";
    "vscode", "VS Code", [Place(Application, "Code/User/mcp.json"), Place(Application, "Code - Insiders/User/mcp.json")], [".vscode/mcp.json"],
        &["servers"], Typed, Some(("url", Some("http"))), None, "run the command `MCP: List Servers`, and start toolgate there";
    "windsurf", "Windsurf", [Place(Home, ".codeium/windsurf/mcp_config.json")], [],
        MCP_SERVERS, Plain, Some(("serverUrl", None)), OFF, "press Refresh in its MCP settings";
    "antigravity", "Antigravity", [Place(Home, ".gemini/config/mcp_config.json")], [],
        MCP_SERVERS, Plain, Some(("serverUrl", None)), OFF, "press Refresh in its MCP settings";
    "gemini", "Gemini CLI", [Place(Home, ".gemini/settings.json")], [".gemini/settings.json"],
        MCP_SERVERS, Plain, Some(("httpUrl", None)), None, NEW_SESSION;
    "qwen", "Qwen Code", [Place(Home, ".qwen/settings.json")], [".qwen/settings.json"],
        MCP_SERVERS, Plain, Some(("httpUrl", None)), None, NEW_SESSION;
    "codex", "Codex", [Place(Variable("CODEX_HOME", ".codex"), "config.toml")], [".codex/config.toml"],
        &["mcp_servers"], Toml, Some(("url", None)), NOT_ON, NEW_SESSION;
    "grok", "Grok Build", [Place(Variable("GROK_HOME", ".grok"), "config.toml")], [".grok/config.toml"],
        &["mcp_servers"], Toml, Some(("url", None)), None, NEW_SESSION;
    "copilot", "Copilot CLI", [Place(Variable("XDG_CONFIG_HOME", ".copilot"), "mcp-config.json"), Place(Home, ".copilot/mcp-config.json")], [".github/mcp.json"],
        MCP_SERVERS, Copilot, Some(("url", Some("http"))), None, NEW_SESSION;
    "zed", "Zed", [Place(LinuxConfig, "zed/settings.json"), Place(Application, "Zed/settings.json"), Place(Config, "zed/settings.json")], [".zed/settings.json"],
        &["context_servers"], Zed, Some(("url", None)), NOT_ON, "it reloads by itself";
    "goose", "Goose", [Place(Config, "goose/config.yaml"), Place(Application, "Block/goose/config/config.yaml")], [".goose/config.yaml"],
        &["extensions"], Goose, Some(("uri", Some("streamable_http"))), NOT_ON, NEW_SESSION;
    "opencode", "opencode", [Place(Config, "opencode/opencode.jsonc"), Place(Config, "opencode/opencode.json")], ["opencode.jsonc", "opencode.json"],
        &["mcp"], List, Some(("url", Some("remote"))), NOT_ON, RESTART;
    "kilo", "Kilo Code", [Place(Config, "kilo/kilo.jsonc"), Place(Config, "kilo/kilo.json")], ["kilo.jsonc", "kilo.json"],
        &["mcp"], List, Some(("url", Some("remote"))), NOT_ON, RESTART;
    "cline", "Cline", [Place(Application, "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json")], [],
        MCP_SERVERS, Plain, Some(("url", Some("streamableHttp"))), OFF, "it reloads by itself";
    "cline-cli", "Cline CLI", [Place(Variable("CLINE_DIR", ".cline"), "data/settings/cline_mcp_settings.json")], [],
        MCP_SERVERS, Plain, Some(("url", Some("streamableHttp"))), OFF, RESTART;
    "roo", "Roo Code", [Place(Application, "Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json")], [".roo/mcp.json"],
        MCP_SERVERS, Plain, Some(("url", Some("streamable-http"))), OFF, "it reloads by itself";
    "kiro", "Kiro", [Place(Home, ".kiro/settings/mcp.json")], [".kiro/settings/mcp.json"],
        MCP_SERVERS, Plain, Some(("url", None)), OFF, "it reloads by itself";
    "amazon-q", "Amazon Q", [Place(Home, ".aws/amazonq/mcp.json")], [".amazonq/mcp.json"],
        MCP_SERVERS, Plain, None, OFF, NEW_SESSION;
    "amp", "Amp", [Place(Config, "amp/settings.json")], [".amp/settings.json"],
        &["amp.mcpServers"], Plain, Some(("url", None)), None, RESTART;
    "crush", "Crush", [Place(Config, "crush/crush.json")], ["crush.json", ".crush.json"],
        &["mcp"], Typed, Some(("url", Some("http"))), OFF, RESTART;
    "junie", "JetBrains Junie", [Place(Home, ".junie/mcp/mcp.json")], [".junie/mcp/mcp.json"],
        MCP_SERVERS, Plain, Some(("url", None)), None, "restart the IDE, or open its MCP settings";
    "warp", "Warp", [Place(Home, ".warp/.mcp.json")], [".warp/.mcp.json"],
        MCP_SERVERS, Plain, Some(("url", None)), None, RESTART;
    "lmstudio", "LM Studio", [Place(Home, ".lmstudio/mcp.json"), Place(Home, ".cache/lm-studio/mcp.json")], [],
        MCP_SERVERS, Plain, Some(("url", None)), None, "it reloads by itself";
    "kimi", "Kimi Code", [Place(Variable("KIMI_CODE_HOME", ".kimi-code"), "mcp.json")], [".kimi-code/mcp.json"],
        MCP_SERVERS, Transport, Some(("url", None)), None, NEW_SESSION;
    "mastra", "Mastra Code", [Place(Home, ".mastracode/mcp.json")], [".mastracode/mcp.json"],
        MCP_SERVERS, Plain, Some(("url", None)), None, NEW_SESSION;
    "pi", "Pi", [Place(Variable("PI_CODING_AGENT_DIR", ".pi/agent"), "mcp.json")], [".pi/mcp.json"],
        MCP_SERVERS, Plain, Some(("url", None)), None, NEW_SESSION;
    "fx", "fx", [Place(Home, ".fx/mcp.json")], [],
        &["mcp"], List, Some(("url", Some("remote"))), NOT_ON, RESTART;
}

impl Places<'_> {
    fn base(&self, base: Base) -> Option<PathBuf> {
        let set = |name: &str| {
            let value = (self.variable)(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from).filter(|path| path.is_absolute())
        };
        let config = || set("XDG_CONFIG_HOME").unwrap_or_else(|| self.home.join(".config"));
        Some(match base {
            Base::Home => self.home.clone(),
            Base::LinuxConfig if self.system != System::Linux => return None,
            Base::Config | Base::LinuxConfig => config(),
            Base::Variable(name, or) => set(name).unwrap_or_else(|| self.home.join(or)),
            Base::Application => match self.system {
                System::Linux => config(),
                System::Mac => self.home.join("Library/Application Support"),
                System::Windows => set("APPDATA")?,
            },
        })
    }
}

impl Client {
    /// The client of this name.
    pub fn named(id: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.id == id)
    }

    /// The user's file: the first one that exists, else where it would be.
    pub fn user_file(&self, places: &Places<'_>) -> Option<PathBuf> {
        let mut files =
            self.user.iter().filter_map(|Place(base, rest)| Some(places.base(*base)?.join(rest)));
        let all: Vec<PathBuf> = files.by_ref().collect();
        all.iter().find(|path| path.is_file()).or(all.first()).cloned()
    }

    /// The files in a project that exist.
    pub fn project_files(&self, folder: &Path) -> Vec<PathBuf> {
        let files = self.project.iter().map(|name| folder.join(name));
        files.filter(|path| path.is_file()).collect()
    }

    /// The syntax of its file.
    pub fn format(&self, path: &Path) -> Format {
        Format::of_file(path)
    }

    /// Whether an entry of it can have a URL.
    pub fn can_http(&self) -> bool {
        self.remote.is_some()
    }

    /// The entry that starts a program.
    pub fn program_entry(
        &self,
        command: &str,
        args: &[String],
        env: &Map<String, Value>,
    ) -> Map<String, Value> {
        let mut entry = Map::new();
        let mut set = |key: &str, value: Value| drop(entry.insert(key.to_owned(), value));
        match self.shape {
            Shape::List => {
                let words: Vec<&str> =
                    std::iter::once(command).chain(args.iter().map(String::as_str)).collect();
                set("type", json!("local"));
                set("command", json!(words));
                if !env.is_empty() {
                    set("environment", json!(env));
                }
                set("enabled", json!(true));
                return entry;
            }
            Shape::Goose => {
                set("name", json!("toolgate"));
                set("type", json!("stdio"));
                set("cmd", json!(command));
                set("args", json!(args));
                if !env.is_empty() {
                    set("envs", json!(env));
                }
                set("enabled", json!(true));
                set("timeout", json!(300));
                return entry;
            }
            Shape::Typed => set("type", json!("stdio")),
            Shape::Copilot => set("type", json!("local")),
            Shape::Transport => set("transport", json!("stdio")),
            Shape::Zed => set("source", json!("custom")),
            Shape::Plain | Shape::Toml => {}
        }
        set("command", json!(command));
        set("args", json!(args));
        if !env.is_empty() {
            set("env", json!(env));
        }
        if self.shape == Shape::Copilot {
            set("tools", json!(["*"]));
        }
        entry
    }

    /// The entry that contacts a URL, if a file of the client can have one.
    pub fn url_entry(&self, url: &str, token: Option<&str>) -> Option<Map<String, Value>> {
        let (key, kind) = self.remote?;
        let mut entry = Map::new();
        if self.shape == Shape::Goose {
            entry.insert("name".to_owned(), json!("toolgate"));
        }
        if self.shape == Shape::Transport {
            entry.insert("transport".to_owned(), json!("http"));
        }
        if self.shape == Shape::Zed {
            entry.insert("source".to_owned(), json!("custom"));
        }
        if let Some(kind) = kind {
            entry.insert("type".to_owned(), json!(kind));
        }
        entry.insert(key.to_owned(), json!(url));
        if let Some(token) = token {
            let headers = if self.shape == Shape::Toml { "http_headers" } else { "headers" };
            entry.insert(headers.to_owned(), json!({ "Authorization": format!("Bearer {token}") }));
        }
        if self.shape == Shape::Copilot {
            entry.insert("tools".to_owned(), json!(["*"]));
        }
        if matches!(self.shape, Shape::List | Shape::Goose) {
            entry.insert("enabled".to_owned(), json!(true));
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_client_has_a_file() {
        let none = |_: &str| None;
        let places = Places {
            system: System::Linux,
            home: "/home/ada".into(),
            working_folder: "/src".into(),
            variable: &none,
        };
        let mut lines = Vec::new();
        for client in CLIENTS {
            assert_eq!(
                CLIENTS.iter().filter(|other| other.id == client.id).count(),
                1,
                "{}",
                client.id
            );
            let file = client.user_file(&places).unwrap();
            lines.push(format!("{}: {}", client.id, file.display()));
        }
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn every_client_is_in_the_documentation() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/getting-started.md");
        let page = std::fs::read_to_string(page).unwrap();
        for Client { id, name, reload, .. } in CLIENTS {
            assert!(page.contains(&format!("| {name} | `{id}` | {reload} |")), "{id}: {reload}");
        }
    }

    #[test]
    fn variables_and_systems_move_files() {
        let variable = |name: &str| match name {
            "CODEX_HOME" => Some("/opt/codex".to_owned()),
            "APPDATA" => Some("/c/AppData".to_owned()),
            "XDG_CONFIG_HOME" => Some("relative".to_owned()),
            _ => None,
        };
        let file = |id: &str, system| {
            let places = Places {
                system,
                home: "/home/ada".into(),
                working_folder: "/".into(),
                variable: &variable,
            };
            Client::named(id).unwrap().user_file(&places).unwrap().display().to_string()
        };
        assert_eq!(file("codex", System::Linux), "/opt/codex/config.toml");
        assert_eq!(file("vscode", System::Linux), "/home/ada/.config/Code/User/mcp.json");
        assert_eq!(
            file("vscode", System::Mac),
            "/home/ada/Library/Application Support/Code/User/mcp.json"
        );
        assert_eq!(file("zed", System::Linux), "/home/ada/.config/zed/settings.json");
        assert_eq!(
            file("zed", System::Mac),
            "/home/ada/Library/Application Support/Zed/settings.json"
        );
        assert_eq!(file("vscode", System::Windows), "/c/AppData/Code/User/mcp.json");
    }
}
