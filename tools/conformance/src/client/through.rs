//! The client with toolgate in between: toolgate is the client that the suite sees.

use std::path::Path;
use std::process::Stdio;

use rmcp::service::serve_client_with_lifecycle;
use rmcp::transport::TokioChildProcess;
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;

use super::Scenario;
use super::answers::AcceptingClient;
use super::authorise::CLIENT_METADATA_URL;
use super::steps;
use crate::Failure;

/// What the suite's server is called in the configuration.
const NAME: &str = "suite";

/// How often a person logs in for one scenario before they give up.
const MAX_LOGINS: usize = 3;

/// Connects through toolgate and does what the scenario wants. Where the scenario is about authorisation, a person
/// logs in with toolgate's own command, and does so again when what they were granted does not suffice.
pub(super) async fn run(
    program: &Path,
    aggregate: bool,
    url: &str,
    scenario: &Scenario,
) -> Result<(), Failure> {
    let home = ToolgateHome::new(program, aggregate, url, scenario)?;
    if !scenario.name.starts_with("auth/") || grant(scenario).is_some() {
        return home.attempt(scenario).await;
    }
    let mut outcome = Err("nobody logged in".into());
    for _ in 0..MAX_LOGINS {
        home.log_in().await?;
        outcome = home.attempt(scenario).await;
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// How long a login waits for its answer. A server that sends a wrong one never sends a right one.
const LOGIN_SECONDS: &str = "5";

/// Set for a process that is to be the browser: a browser is named without arguments.
const BROWSER: &str = "TOOLGATE_CONFORMANCE_BROWSER";

/// How toolgate gets a token in a scenario without a person.
fn grant(scenario: &Scenario) -> Option<&'static str> {
    Some(match scenario.name.as_str() {
        "auth/client-credentials-jwt" | "auth/client-credentials-basic" => "clientCredentials",
        "auth/cross-app-access-complete-flow" | "auth/enterprise-managed-authorization" => {
            "enterprise"
        }
        "auth/wif-jwt-bearer" => "jwtBearer",
        _ => return None,
    })
}

/// A home for toolgate, with its configuration.
struct ToolgateHome<'a> {
    program: &'a Path,
    /// Whether toolgate serves all servers as one. Otherwise it passes one through.
    aggregate: bool,
    folder: TempDir,
}

impl<'a> ToolgateHome<'a> {
    fn new(
        program: &'a Path,
        aggregate: bool,
        url: &str,
        scenario: &Scenario,
    ) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let mut entry = json!({ "url": url });
        if aggregate {
            // The scenario names tools as the suite's server does.
            entry["prefix"] = json!("");
        }
        if scenario.name.starts_with("auth/") {
            entry["oauth"] = json!({ "clientMetadataUrl": CLIENT_METADATA_URL });
            for (key, said) in [("clientId", "client_id"), ("clientSecret", "client_secret")] {
                if let Some(value) = scenario.said(said) {
                    entry["oauth"][key] = json!(value);
                }
            }
            if let Some(grant) = grant(scenario) {
                entry["oauth"]["grant"] = json!(grant);
                for (key, said) in [
                    ("privateKey", "private_key_pem"),
                    ("subjectToken", "valid_jwt"),
                    ("subjectToken", "idp_id_token"),
                    ("idpTokenEndpoint", "idp_token_endpoint"),
                    ("idpClientId", "idp_client_id"),
                ] {
                    if let Some(value) = scenario.said(said) {
                        entry["oauth"][key] = json!(value);
                    }
                }
            }
        }
        let config = json!({ "mcpServers": { NAME: entry } });
        std::fs::write(folder.path().join("toolgate.json"), config.to_string())?;
        Ok(Self { program, aggregate, folder })
    }

    async fn attempt(&self, scenario: &Scenario) -> Result<(), Failure> {
        let mode = if self.aggregate { ["--mode", "direct"] } else { ["--passthrough", NAME] };
        let transport =
            TokioChildProcess::new(self.command(&["serve", "--stdio", mode[0], mode[1]]))?;
        let client =
            serve_client_with_lifecycle(AcceptingClient, transport, scenario.lifecycle.clone())
                .await?;
        let outcome = match steps::take(&client, scenario).await {
            // All servers as one: the failure of one server is no error of the request, but a text for the
            // model. The person who reads it logs in again.
            Ok(taken)
                if self.aggregate && scenario.name.starts_with("auth/") && !taken.succeeded() =>
            {
                let _ = client.cancel().await;
                return Err("no call of the server succeeded".into());
            }
            outcome => outcome,
        };
        // The end of the connection is not part of the scenario.
        let _ = client.cancel().await;
        outcome?;
        Ok(())
    }

    /// Logs in, with this very program as the browser.
    async fn log_in(&self) -> Result<(), Failure> {
        let mut command = self.command(&["login", NAME, "--timeout", LOGIN_SECONDS]);
        command.env("BROWSER", std::env::current_exe()?).env(BROWSER, "1");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let status = command.status().await?;
        if status.success() { Ok(()) } else { Err("the login failed".into()) }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program);
        command
            .args(arguments)
            .arg("--config")
            .arg(self.folder.path().join("toolgate.json"))
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env("TOOLGATE_HOME", self.folder.path().join("state"))
            .env("XDG_CONFIG_HOME", self.folder.path().join(".config"))
            .kill_on_drop(true);
        command
    }
}

/// The page to visit, where this process is the browser of a login.
pub(crate) fn page() -> Option<String> {
    std::env::var_os(BROWSER).and_then(|_| std::env::args().nth(1))
}

/// Visits a page as a browser would, and goes wherever it is sent.
pub(crate) async fn browse(url: &str) -> Result<(), Failure> {
    toolgate_http::client_builder().build()?.get(url).send().await?.error_for_status()?;
    Ok(())
}
