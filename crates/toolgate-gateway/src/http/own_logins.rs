//! The page on which callers see and end their own logins at servers.
//!
//! As at the beginning of a login, a person shows that they are the caller, by a token of the caller. The page does not
//! keep it: each form asks again. A gateway that requires no token is reached from this machine alone.

use std::{fmt, sync::Arc};

use axum::{
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use futures::future::BoxFuture;
use url::form_urlencoded;

use super::{
    HttpState, PeerConnection,
    logins::{LOCAL, escaped, html, is_own_page, message, owner},
};

/// The logins of callers, for the callers themselves.
pub trait OwnLogins: fmt::Debug + Send + Sync + 'static {
    /// The servers at which a caller has logged in.
    fn servers(&self, caller: &str) -> Result<Vec<String>, String>;

    /// Ends the login of a caller at a server, and says what became of it.
    fn end<'l>(&'l self, caller: &'l str, server: &'l str)
    -> BoxFuture<'l, Result<String, String>>;
}

/// The page before a person has shown who they are.
pub(super) async fn open(State(server): State<Arc<HttpState>>) -> Response {
    let Some(logins) = &server.own_logins else { return nothing() };
    if server.access.requires_credentials() {
        return html(StatusCode::OK, &ask(""));
    }
    list(&**logins, LOCAL, false, "")
}

/// Takes the token that a person shows, and the server at which they end their login.
pub(super) async fn change(
    State(server): State<Arc<HttpState>>,
    axum::Extension(connection): axum::Extension<Arc<PeerConnection>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Some(logins) = &server.own_logins else { return nothing() };
    if !is_own_page(&server, &headers) {
        return message(StatusCode::FORBIDDEN, "This form was not sent from its own page.");
    }
    let field = |wanted: &str| {
        let mut fields = form_urlencoded::parse(&body);
        fields.find(|(name, _)| name == wanted).map(|(_, value)| value.trim().to_owned())
    };
    let needs_token = server.access.requires_credentials();
    let caller = if needs_token {
        let (token, peer) = (field("token").unwrap_or_default(), connection.address().ip());
        match server.access.identify(&token, &server.endpoints.paths(), peer).await {
            Ok(client) => owner(&client),
            Err(error) => return html(error.status(), &ask("This token is not valid here.")),
        }
    } else {
        LOCAL.into()
    };
    let said = match field("server") {
        Some(name) => logins.end(&caller, &name).await,
        None => Ok(String::new()),
    };
    list(&**logins, &caller, needs_token, &said.unwrap_or_else(|why| why))
}

/// The page with the logins of a caller.
fn list(logins: &dyn OwnLogins, caller: &str, needs_token: bool, said: &str) -> Response {
    let servers = match logins.servers(caller) {
        Ok(servers) => servers,
        Err(why) => {
            let text = format!("The logins cannot be read now: {why}.");
            return message(StatusCode::SERVICE_UNAVAILABLE, &text);
        }
    };
    let said = if said.is_empty() {
        String::new()
    } else {
        format!("<p role=status><b>{}</b>", escaped(said))
    };
    let token = if needs_token { TOKEN } else { "" };
    let form = |server: &String| {
        let server = escaped(server);
        format!(
            "<h2>{server}</h2><form method=post><input type=hidden name=server value=\"{server}\">{token}\
             <p><button>Log out at {server}</button></form>"
        )
    };
    let mut forms: String = servers.iter().map(form).collect();
    if servers.is_empty() {
        forms.push_str("<p>You have logged in at no server of this gateway.");
    }
    let caller = escaped(caller);
    let body = format!("<h1>Your logins</h1><p>You are <b>{caller}</b>.{said}{forms}");
    html(StatusCode::OK, &body)
}

/// The form that asks who a person is.
fn ask(problem: &str) -> String {
    let problem = if problem.is_empty() { String::new() } else { format!("<p><b>{problem}</b>") };
    format!(
        "<h1>Your logins</h1>{problem}<form method=post>{TOKEN}<p><button>Show them</button></form>"
    )
}

const TOKEN: &str = "<p><label>Your token for this gateway: <input type=password name=token required \
                     autocomplete=off></label>";

fn nothing() -> Response {
    message(StatusCode::NOT_FOUND, "This gateway keeps no logins of callers.")
}
