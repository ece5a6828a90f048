//! `toolgate login`

use std::{
    env,
    io::{BufRead as _, Read as _},
    process::{ExitCode, Stdio},
    sync::Arc,
    time::Duration,
};

use tokio::{process::Command, sync::mpsc};
use toolgate_config::{LoginGrant, Transport};
use toolgate_upstream::{Authorizer, CallbackListener, Login as Pending, LoginError};
use url::Url;

use super::INTERRUPTED;
use crate::{
    cli::{Globals, Login},
    decisions,
    failure::{CommandResult, Failure},
    interrupts::Interrupts,
    load::{self, Loaded},
    logins::{LoginOverview, own_caller},
    print,
};

/// The longest URL that is taken from a person.
const LONGEST_PASTE: u64 = 64 * 1024;

pub(crate) async fn run(globals: &Globals, arguments: &Login) -> CommandResult {
    let loaded = load::load(globals)?;
    let bar = print::progress(1, "asking where to log in");
    let begun = BegunLogin::new(&loaded, &arguments.name, &arguments.scope).await;
    bar.finish_and_clear();
    let begun = begun?;
    let (name, pending) = (&begun.name, &begun.pending);
    // Listens from before the URL is printed, so that Ctrl-C ends the command in one way.
    let mut interrupts = Interrupts::listen()?;
    print::note(format!("To log in at `{name}`, visit:"));
    print::line(pending.url());
    if arguments.no_browser {
        print::note("If that is on another machine, paste the URL that you are sent to:");
    } else if !open(pending.url().as_str()) {
        print::note("No browser could be started. --no-browser takes the answer from elsewhere.");
    }
    let limit = Duration::from_secs(arguments.timeout);
    let answer = tokio::select! {
        answer = begun.listener.answer(pending) => answer?,
        answer = pasted(pending), if arguments.no_browser => answer,
        () = tokio::time::sleep(limit) => return Err(LoginError::TimedOut.into()),
        () = interrupts.next() => return Ok(ExitCode::from(INTERRUPTED)),
    };
    print::line(begun.finish(&answer).await?);
    Ok(ExitCode::SUCCESS)
}

/// A login that a person has not ended yet.
pub(super) struct BegunLogin {
    name: String,
    authorizer: Arc<Authorizer>,
    listener: CallbackListener,
    pending: Pending,
}

impl BegunLogin {
    /// Asks a server where a person logs in.
    pub(super) async fn new(
        loaded: &Loaded,
        name: &str,
        scopes: &[String],
    ) -> Result<Self, Failure> {
        let server = loaded.server(name)?;
        let name = &server.name;
        let (url, headers) = match &server.transport {
            Ok(Transport::Http { url, headers, .. }) => (url, headers),
            Ok(_) => {
                return Err(Failure::usage(format!("`{name}` is a command, which has no login")));
            }
            Err(problem) => return Err(problem.into()),
        };
        if headers.keys().any(|header| header.eq_ignore_ascii_case("authorization")) {
            return Err(Failure::usage(format!("`{name}` has an `Authorization` header already"))
                .hint("remove it from `headers` to log in instead"));
        }
        if server.settings.oauth.grant != LoginGrant::Person {
            return Err(Failure::usage(format!("toolgate logs in at `{name}` by itself"))
                .hint("remove `grant` from its `oauth` to log in instead"));
        }
        let headers = loaded.headers(server, headers).await;
        let headers = headers.map_err(|it| Failure::new(it.reason).hint(it.action))?;
        let authorizer = loaded.authorizer(server, url, own_caller(server))?;
        let listener = CallbackListener::bind(server.settings.oauth.redirect_port).await?;
        let pending = authorizer.begin(&listener.redirect_uri(), scopes, &headers).await?;
        Ok(Self { name: name.clone(), authorizer, listener, pending })
    }

    /// Where the person logs in.
    pub(super) fn url(&self) -> &Url {
        self.pending.url()
    }

    /// Waits for the person, and ends the login.
    pub(super) async fn wait(self, limit: Duration) -> Result<String, Failure> {
        let answer = tokio::time::timeout(limit, self.listener.answer(&self.pending)).await;
        let answer = answer.map_err(|_| LoginError::TimedOut)??;
        self.finish(&answer).await
    }

    /// Ends the login with the URL that the person was sent to. Returns what is known of it.
    async fn finish(self, answer: &Url) -> Result<String, Failure> {
        self.pending.finish(answer).await?;
        let state = self.authorizer.state().await?;
        let overview = state.map(|state| LoginOverview::new(&self.name, state));
        let overview = overview.ok_or_else(|| Failure::new("the login was not kept"))?;
        decisions::about_server("login", &self.name, true, "logged in")?;
        Ok(format!("`{}`: {overview}", self.name))
    }
}

/// Waits for a URL on stdin that belongs to the login. Without a usable stdin it waits for ever.
async fn pasted(pending: &Pending) -> Url {
    let (sender, mut lines) = mpsc::channel(1);
    // A read of stdin cannot be interrupted; the thread ends with the process.
    std::thread::spawn(move || {
        let stdin = std::io::stdin().lock();
        let mut line = String::new();
        let mut stdin = stdin.take(LONGEST_PASTE);
        while stdin.read_line(&mut line).is_ok_and(|read| read > 0) {
            if sender.blocking_send(std::mem::take(&mut line)).is_err() {
                return;
            }
            stdin.set_limit(LONGEST_PASTE);
        }
    });
    while let Some(line) = lines.recv().await {
        match pending.read_answer(&line) {
            Some(answer) => return answer,
            None if line.trim().is_empty() => {}
            None => print::note("That is not the URL that this login ends with."),
        }
    }
    std::future::pending().await
}

/// Opens a page in the person's browser.
pub(super) fn open(url: &str) -> bool {
    let chosen = env::var("BROWSER").ok();
    let chosen = chosen.as_deref().and_then(|list| list.split(':').find(|name| !name.is_empty()));
    let (program, arguments): (&str, &[&str]) = match chosen {
        Some(chosen) => (chosen, &[]),
        None if cfg!(target_os = "macos") => ("open", &[]),
        // Not `start`: a shell would read the URL's ampersands.
        None if cfg!(windows) => ("rundll32", &["url.dll,FileProtocolHandler"]),
        None => ("xdg-open", &[]),
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(url);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return false };
    tokio::spawn(async move { child.wait().await });
    true
}
