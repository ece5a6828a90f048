//! `toolgate login` and `logout`, and what is left of a login on the disk.

use std::{os::unix::fs::PermissionsExt as _, path::Path};

use insta::assert_snapshot;
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdout, Command},
};
use toolgate_testkit::{
    AuthorizationOptions, AuthorizationServer, Builtin, Fixture, RunningHttp, visit, within,
};

use crate::{
    support::{Outcome, Workplace, until},
    web::OpenPage,
};

/// A configuration with a server that is guarded.
struct Guarded {
    workplace: Workplace,
    authorization: AuthorizationServer,
    _server: RunningHttp,
}

/// A login that waits for its browser.
struct Waiting {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// Where the browser is sent back to.
    back: String,
}

impl Guarded {
    async fn start() -> Self {
        let options = AuthorizationOptions::default();
        let authorization = AuthorizationServer::start(options).await.unwrap();
        let fixture = Fixture::new("guarded").with_builtins([Builtin::Echo]);
        let address = ([127, 0, 0, 1], 0).into();
        let server = fixture.serve_http_for(address, &authorization).await.unwrap();
        let servers = json!({ "notes": { "url": server.url() } });
        Self { workplace: Workplace::deferred(&servers), authorization, _server: server }
    }

    /// Starts a login and visits its page.
    async fn begin(&self, command: &mut Command) -> Waiting {
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut page = String::new();
        stdout.read_line(&mut page).await.unwrap();
        let visited = visit(page.trim()).await.unwrap();
        Waiting { child, stdout, back: visited.location.unwrap_or_else(|| panic!("{page}")) }
    }

    async fn login(&self, command: &mut Command) -> Outcome {
        let waiting = self.begin(command).await;
        assert_eq!(visit(&waiting.back).await.unwrap().status, 200);
        waiting.end().await
    }

    /// What others must not find: everything that was given has this in its name.
    fn assert_nothing_secret(&self, outcome: &Outcome) {
        assert!(!outcome.shown().contains("-secret-"), "{outcome:?}");
        assert!(!self.authorization.record().token_requests.is_empty());
        for entry in walk(&self.workplace.path().join("state")) {
            let text = std::fs::read(&entry).unwrap();
            let text = String::from_utf8_lossy(&text);
            assert!(!text.contains("-secret-"), "{}: {text}", entry.display());
        }
    }
}

impl Waiting {
    async fn end(mut self) -> Outcome {
        let ending = async {
            let mut stdout = String::new();
            self.stdout.read_to_string(&mut stdout).await.unwrap();
            (stdout, self.child.wait_with_output().await.unwrap())
        };
        let (stdout, output) = within("the end of the command", ending).await;
        let stderr = String::from_utf8(output.stderr).unwrap();
        Outcome { stdout, stderr, code: output.status.code() }
    }
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

/// Without what differs from run to run.
fn plain(guarded: &Guarded, text: &str) -> String {
    text.replace(guarded.authorization.url(), "https://login.example")
}

#[tokio::test]
async fn a_login_is_stored_used_shown_and_removed() {
    let guarded = Guarded::start().await;
    let workplace = &guarded.workplace;
    let before = workplace.run(&["status", "--json"]).await.json();
    assert_eq!(before["servers"][0]["action"], "run `toolgate login notes`");
    assert_eq!(before["logins"], json!([]));

    let mut command = workplace.command(&["login", "notes", "--no-browser"]);
    let outcome = guarded.login(command.env("RUST_LOG", "trace")).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_snapshot!(plain(&guarded, &outcome.stdout), @"`notes`: logged in at https://login.example, renewed by itself");
    guarded.assert_nothing_secret(&outcome);

    let mut command = workplace.command(&["call", "notes_echo", "-a", "text=hello"]);
    let output = command.env("RUST_LOG", "trace").output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let logged = String::from_utf8_lossy(&output.stderr);
    assert!(logged.contains("TRACE") && !logged.contains("-secret-"), "{logged}");

    let status = workplace.run(&["status"]).await;
    assert!(plain(&guarded, &status.stdout).contains("logged in at"), "{status:?}");
    let status = workplace.run(&["status", "--json"]).await;
    guarded.assert_nothing_secret(&status);
    let login = &status.json()["logins"][0];
    assert_eq!((&login["server"], &login["renewable"]), (&json!("notes"), &json!(true)));

    let page = OpenPage::start(workplace).await;
    let access = page.get("/ui/access").await;
    assert!(access.contains("<bdi>all</bdi>") && access.contains("logged in at"), "{access}");

    assert_snapshot!(workplace.run(&["logout", "notes"]).await.shown(), @"
    exit code 0
    --- stdout
    `notes`: logged out
    --- stderr
    ");
    assert_eq!(guarded.authorization.record().revoked.len(), 2);
    assert_snapshot!(workplace.run(&["logout", "notes"]).await.shown(), @"
    exit code 0
    --- stdout
    `notes`: there was no login
    --- stderr
    ");
    let after = workplace.run(&["status", "--json"]).await.json();
    assert_eq!(after["servers"][0]["action"], "run `toolgate login notes`");
}

#[tokio::test]
async fn the_redirect_url_can_be_pasted() {
    let guarded = Guarded::start().await;
    let mut command = guarded.workplace.command(&["login", "notes", "--no-browser"]);
    let mut waiting = guarded.begin(&mut command).await;
    let mut stdin = waiting.child.stdin.take().unwrap();
    let lines = format!("\nhttp://127.0.0.1/callback?code=x&state=forged\n  {}  \n", waiting.back);
    stdin.write_all(lines.as_bytes()).await.unwrap();
    let outcome = waiting.end().await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stderr.contains("not the URL that this login ends with"), "{outcome:?}");
    guarded.assert_nothing_secret(&outcome);
}

#[tokio::test]
async fn the_users_browser_is_opened() {
    let guarded = Guarded::start().await;
    let (browser, seen) =
        (guarded.workplace.path().join("browser"), guarded.workplace.path().join("seen"));
    script(
        &browser,
        &format!("printf %s \"$1\" > '{0}.part' && mv '{0}.part' '{0}'", seen.display()),
    );
    let mut command = guarded.workplace.command(&["login", "notes"]);
    let waiting = guarded.begin(command.env("BROWSER", &browser)).await;
    let opened = until("the browser", async || std::fs::read_to_string(&seen).ok()).await;
    assert!(opened.starts_with(&format!("{}/authorize?", guarded.authorization.url())), "{opened}");
    visit(&waiting.back).await.unwrap();
    assert_eq!(waiting.end().await.code, Some(0));
}

#[tokio::test]
async fn the_key_is_in_the_keychain_or_a_variable() {
    let guarded = Guarded::start().await;
    let folder = guarded.workplace.path().join("bin");
    std::fs::create_dir(&folder).unwrap();
    let kept = guarded.workplace.path().join("keychain");
    let keychain = format!(
        "case \"$1\" in store) cat > '{0}' ;; lookup) test -f '{0}' && cat '{0}' ;; esac",
        kept.display()
    );
    script(&folder.join("secret-tool"), &keychain);
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let key = guarded.workplace.path().join("state/vault/vault.key");
    let with_keychain = |arguments: &[&str]| {
        let mut command = guarded.workplace.command(arguments);
        command.env("PATH", &path).env_remove("TOOLGATE_VAULT");
        command
    };
    let outcome = guarded.login(&mut with_keychain(&["login", "notes", "--no-browser"])).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(std::fs::read_to_string(&kept).unwrap().len(), 64);
    assert!(!key.exists());
    let used = with_keychain(&["call", "notes_echo", "-a", "text=x"]).output().await.unwrap();
    assert!(used.status.success(), "{used:?}");
    // Without the keychain there is no key, and the person is told what to do.
    std::fs::remove_file(&kept).unwrap();
    let lost = with_keychain(&["call", "notes_echo", "-a", "text=x"]).output().await.unwrap();
    let said = String::from_utf8_lossy(&lost.stderr).into_owned();
    assert!(said.contains("another key") && said.contains("toolgate login notes"), "{said}");

    let given = |arguments: &[&str], key: &str| {
        let mut command = guarded.workplace.command(arguments);
        command.env("TOOLGATE_VAULT_KEY", key);
        command
    };
    let long = "k".repeat(32);
    let outcome = guarded.login(&mut given(&["login", "notes", "--no-browser"], &long)).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(!key.exists());
    let outcome = guarded.login(&mut given(&["login", "notes", "--no-browser"], "short")).await;
    assert!(outcome.stderr.contains("at least 32 characters"), "{outcome:?}");
}

#[tokio::test]
async fn a_server_without_login_is_reported() {
    let workplace = Workplace::deferred(&json!({
        "child": { "command": "x" },
        "keyed": { "url": "http://127.0.0.1:1/mcp", "headers": { "authorization": "Bearer x" } },
        "gone": { "url": "http://127.0.0.1:1/mcp" },
    }));
    let mut shown = String::new();
    for name in ["child", "keyed", "gnoe"] {
        shown.push_str(&workplace.run(&["login", name]).await.stderr);
    }
    shown.push_str(&workplace.run(&["login", "gone", "--no-browser"]).await.stderr);
    shown.push_str(&workplace.run(&["logout", "child"]).await.stderr);
    assert_snapshot!(shown, @"
    error: `child` is a command, which has no login
    error: `keyed` has an `Authorization` header already
      hint: remove it from `headers` to log in instead
    error: there is no server `gnoe` in the configuration
      hint: did you mean gone?
    error: toolgate cannot find out where to log in: there was no answer: error sending request: client error (Connect): tcp connect error: Connection refused (os error 111)
    error: `child` has no URL, and so no login
    ");
}

#[tokio::test]
async fn an_unfinished_login_times_out() {
    let guarded = Guarded::start().await;
    let arguments = ["login", "notes", "--no-browser", "--timeout", "1"];
    let outcome = guarded.workplace.run(&arguments).await;
    assert_eq!(outcome.code, Some(1));
    assert!(
        outcome.stderr.contains("the login was not completed in the browser in time"),
        "{outcome:?}"
    );

    let mut command = guarded.workplace.command(&["login", "notes", "--no-browser"]);
    let waiting = guarded.begin(&mut command).await;
    crate::support::signal("INT", waiting.child.id().unwrap());
    assert_eq!(waiting.end().await.code, Some(130));
}

fn script(path: &Path, body: &str) {
    std::fs::write(path, format!("#!/bin/sh\n{body}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
