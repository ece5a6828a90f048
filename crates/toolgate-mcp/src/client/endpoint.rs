//! The endpoint of a server, and its limits.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolgate_http::OwnTls;

use super::{http::TokenProvider, in_process::InProcessServer, redact::Redactor};
use crate::HttpDialect;

/// Where a server is.
#[derive(Debug, Clone)]
pub enum Endpoint {
    /// A child process that speaks on stdin and stdout.
    Stdio(StdioEndpoint),
    /// A URL that speaks Streamable HTTP, or HTTP+SSE.
    Http(HttpEndpoint),
    /// A part of this program.
    InProcess(Arc<dyn InProcessServer>),
}

/// A command to run. Its environment may hold secrets, which are not shown.
#[derive(Clone)]
pub struct StdioEndpoint {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables beside those that every server gets.
    pub env: BTreeMap<String, String>,
    /// Its working directory; the current one where unset.
    pub cwd: Option<PathBuf>,
}

/// A URL to contact. Its headers may hold secrets, which are not shown.
#[derive(Clone)]
pub struct HttpEndpoint {
    /// The MCP endpoint.
    pub url: String,
    /// Headers of every request.
    pub headers: BTreeMap<String, String>,
    /// Which transport it speaks.
    pub dialect: HttpDialect,
    /// Provides the tokens of logins. An `Authorization` among the headers overrides it.
    pub authorizer: Option<Arc<dyn TokenProvider>>,
    /// The keys of both ends, where they are not those of the world.
    pub tls: Option<OwnTls>,
}

/// Limits of time and size.
#[derive(Debug, Clone, Copy)]
pub struct ServerLimits {
    /// From the start until the tools are listed.
    pub connect: Duration,
    /// For the response to `server/discover`, before `initialize` is tried; at most half of
    /// `connect`.
    pub probe: Duration,
    /// For a call without a response or progress.
    pub idle: Duration,
    /// For a whole call, whatever its progress.
    pub total: Duration,
    /// For the size of one message.
    pub max_message_bytes: usize,
    /// For the size of a result whose texts are kept, although the message is too large.
    pub max_kept_bytes: usize,
}

/// How large a message may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageSizes {
    /// Up to here it is exact.
    pub(super) exact: usize,
    /// Up to here the texts of a result are kept.
    pub(super) kept: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            probe: Duration::from_secs(8),
            idle: Duration::from_mins(1),
            total: Duration::from_mins(10),
            max_message_bytes: 16 * 1024 * 1024,
            max_kept_bytes: 64 * 1024 * 1024,
        }
    }
}

impl ServerLimits {
    pub(super) fn sizes(&self) -> MessageSizes {
        let exact = self.max_message_bytes;
        MessageSizes { exact, kept: self.max_kept_bytes.max(exact) }
    }

    /// The time for `server/discover`. The rest of the time to connect is for `initialize`.
    pub(crate) fn discover(&self) -> Duration {
        self.probe.min(self.connect / 2)
    }
}

impl HttpEndpoint {
    /// A URL without headers and logins.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: BTreeMap::new(),
            dialect: HttpDialect::default(),
            authorizer: None,
            tls: None,
        }
    }

    /// Provides the tokens, unless a header authorizes the requests.
    pub(crate) fn authorizer(&self) -> Option<&Arc<dyn TokenProvider>> {
        let says = |header: &String| header.eq_ignore_ascii_case("authorization");
        self.authorizer.as_ref().filter(|_| !self.headers.keys().any(says))
    }
}

impl Endpoint {
    /// What is run or contacted, with variables and headers: equal texts mean the same server. It
    /// contains secrets, so only its hash is used.
    pub fn target(&self) -> String {
        match self {
            Self::Stdio(stdio) => {
                let cwd = stdio.cwd.as_ref().map(|path| path.display().to_string());
                let (command, args) = (&stdio.command, stdio.args.join("\0"));
                let (cwd, env) = (cwd.unwrap_or_default(), pairs(&stdio.env));
                format!("stdio\0{command}\0{args}\0{cwd}\0{env}")
            }
            Self::Http(http) => format!("http\0{}\0{}", http.url, pairs(&http.headers)),
            Self::InProcess(server) => format!("in-process\0{}", server.content()),
        }
    }

    /// What is run or contacted, without variables and headers: a new password makes no other
    /// server. The current folder counts, because the program may be found there, or read its code
    /// there.
    pub fn identity(&self) -> Value {
        match self {
            Self::Stdio(StdioEndpoint { command, args, cwd, .. }) => {
                let folder = cwd.clone().or_else(|| std::env::current_dir().ok());
                json!({ "command": command, "args": args, "cwd": folder.map(|it| it.display().to_string()) })
            }
            Self::Http(http) => json!({ "url": http.url }),
            // The program decides what its functions do, so that another program is another server.
            Self::InProcess(_) => {
                let program = std::env::current_exe().ok();
                json!({ "inProcess": program.map(|it| it.display().to_string()) })
            }
        }
    }

    /// Hides the values of variables and headers, secret arguments, and the secrets of a URL.
    pub fn redactor(&self) -> Redactor {
        match self {
            Self::Stdio(stdio) => {
                Redactor::new(stdio.env.values().cloned().chain(argument_secrets(&stdio.args)))
            }
            Self::Http(http) => {
                let secrets = http.headers.values().cloned().chain(url_secrets(&http.url));
                let redactor = Redactor::new(secrets);
                match &http.authorizer {
                    Some(authorizer) => redactor.with(authorizer.redactor()),
                    None => redactor,
                }
            }
            Self::InProcess(_) => Redactor::default(),
        }
    }
}

/// A URL without possible secrets.
pub fn place(url: &str) -> String {
    reqwest::Url::parse(url).map_or_else(
        |_| "the URL".to_owned(),
        |url| {
            let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
            format!("{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
        },
    )
}

/// The password and the query's values, as they are written in the URL and as they are meant.
fn url_secrets(url: &str) -> Vec<String> {
    let Ok(parsed) = reqwest::Url::parse(url) else { return Vec::new() };
    let written = parsed.query().unwrap_or_default().split('&');
    let written = written.map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value));
    let meant = parsed.query_pairs().map(|(_, value)| value.into_owned());
    let mut secrets: Vec<String> = written.map(str::to_owned).chain(meant).collect();
    if let Some(password) = parsed.password() {
        // The decoder of the query also works for a password.
        let decoded = format!("http://x/?p={}", password.replace('+', "%2B"));
        let decoded = reqwest::Url::parse(&decoded).ok();
        secrets
            .extend(decoded.iter().flat_map(|url| url.query_pairs()).map(|(_, p)| p.into_owned()));
        secrets.push(password.to_owned());
    }
    secrets
}

fn pairs(map: &BTreeMap<String, String>) -> String {
    map.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join("\0")
}

/// Arguments that are secrets, as the option before them shows: `--api-key VALUE`, `--token=VALUE`,
/// `--header "Authorization: VALUE"`.
fn argument_secrets(args: &[String]) -> Vec<String> {
    const TELLING: [&str; 7] = ["key", "token", "secret", "password", "passwd", "auth", "header"];
    let tells = |option: &str| {
        let option = option.to_ascii_lowercase();
        option.starts_with('-') && TELLING.iter().any(|word| option.contains(word))
    };
    let mut secrets = Vec::new();
    for (index, argument) in args.iter().enumerate() {
        match argument.split_once('=') {
            Some((option, value)) if tells(option) => secrets.push(value.to_owned()),
            _ if index > 0 && tells(&args[index - 1]) && !argument.starts_with("--") => {
                secrets.push(argument.clone());
                // For a header, also the value alone.
                secrets.extend(argument.split_once(": ").map(|(_, value)| value.to_owned()));
            }
            _ => {}
        }
    }
    secrets
}

impl fmt::Debug for StdioEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StdioEndpoint")
            .field("command", &self.command)
            .field("args", &format_args!("[{} arguments]", self.args.len()))
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("cwd", &self.cwd)
            .finish()
    }
}

impl fmt::Debug for HttpEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HttpEndpoint")
            .field("url", &place(&self.url))
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("dialect", &self.dialect)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_urls_are_hidden() {
        let url = "https://user:pass%20word1@example.com/mcp?key=abc%2Fdefgh&mode=fast";
        let endpoint = Endpoint::Http(HttpEndpoint::new(url));
        let shown = endpoint.redactor().clean(&format!("{url} abc/defgh pass word1"));
        assert_eq!(
            shown,
            "https://user:[hidden]@example.com/mcp?key=[hidden]&mode=fast [hidden] [hidden]"
        );
        let shown = format!("{endpoint:?}");
        assert!(!shown.contains("defgh") && !shown.contains("word1"), "{shown}");
    }

    #[test]
    fn arguments_that_an_option_calls_secret_are_hidden() {
        let args = [
            "--api-key",
            "sk-12345678",
            "--port",
            "8080",
            "--token=abcdefghij",
            "--header",
            "Authorization: Bearer zyxwvuts1",
        ]
        .map(str::to_owned);
        let (env, cwd) = (BTreeMap::new(), None);
        let stdio = StdioEndpoint { command: "s".into(), args: args.to_vec(), env, cwd };
        let redactor = Endpoint::Stdio(stdio).redactor();
        let said = "bad sk-12345678 on 8080, abcdefghij, zyxwvuts1";
        assert_eq!(redactor.clean(said), "bad [hidden] on 8080, [hidden], [hidden]");
    }

    #[test]
    fn debugging_shows_names_and_no_values() {
        let endpoint = HttpEndpoint {
            headers: BTreeMap::from([("authorization".into(), "Bearer secret".into())]),
            ..HttpEndpoint::new("http://localhost/mcp")
        };
        let shown = format!("{endpoint:?}");
        assert!(shown.contains("authorization") && !shown.contains("secret"));
    }
}
