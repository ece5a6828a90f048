//! The redirect endpoint of a login.

use std::{net::Ipv4Addr, time::Duration};

use futures::{StreamExt, stream::FuturesUnordered};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use url::Url;

use super::{error::LoginError, login::Login};

/// The one path that is answered.
const PATH: &str = "/callback";
/// A request line with a code, and the headers of a browser.
const MAX_REQUEST: usize = 32 * 1024;
/// How many connections are served at once.
const MAX_CONNECTIONS: usize = 32;
/// How long a browser may take for its request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Listens on 127.0.0.1 for the end of a login.
#[derive(Debug)]
pub struct CallbackListener {
    listener: TcpListener,
    port: u16,
}

impl CallbackListener {
    /// Listens on `port`, or on a free port if it is `None`.
    pub async fn bind(port: Option<u16>) -> Result<Self, LoginError> {
        let address = (Ipv4Addr::LOCALHOST, port.unwrap_or_default());
        let listener = TcpListener::bind(address).await.map_err(LoginError::Listen)?;
        let port = listener.local_addr().map_err(LoginError::Listen)?.port();
        Ok(Self { listener, port })
    }

    /// The redirect URI to log in with.
    pub fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits for the redirect with the `state` of `login`. Any program on this machine can connect.
    /// A request with another state gets an error, and the wait continues.
    pub async fn answer(&self, login: &Login) -> Result<Url, LoginError> {
        let mut serving = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if serving.len() < MAX_CONNECTIONS => {
                    let (stream, _) = accepted.map_err(LoginError::Listen)?;
                    // Browsers open connections that they may never use.
                    serving.push(tokio::time::timeout(TIMEOUT, self.serve(stream, login)));
                }
                Some(served) = serving.next() => {
                    if let Ok(Some(answer)) = served {
                        return Ok(answer);
                    }
                }
            }
        }
    }

    async fn serve(&self, mut stream: TcpStream, login: &Login) -> Option<Url> {
        let target = read_target(&mut stream).await?;
        let url = Url::parse(&self.redirect_uri()).ok()?.join(&target).ok()?;
        let is_ours = url.path() == PATH && url.port() == Some(self.port);
        let (status, text) = match (is_ours, login.is_answered_by(&url)) {
            (false, _) => ("404 Not Found", "There is nothing here."),
            (true, false) => {
                ("400 Bad Request", "This does not belong to the login that is waited for.")
            }
            (true, true) => ("200 OK", "toolgate has the answer. You can close this page."),
        };
        let page =
            format!("<!doctype html><meta charset=utf-8><title>toolgate</title><p>{text}</p>");
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
             cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n",
            page.len()
        );
        // The answer counts even if the browser has closed the connection.
        let _ = stream.write_all(format!("{head}{page}").as_bytes()).await;
        let _ = stream.shutdown().await;
        login.is_answered_by(&url).then_some(url).filter(|_| is_ours)
    }
}

/// The target of a GET request. Reads all of its headers.
async fn read_target(stream: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).await.ok().filter(|read| *read > 0)?;
        request.extend_from_slice(&piece[..read]);
        if request.len() > MAX_REQUEST {
            return None;
        }
    }
    let text = String::from_utf8(request).ok()?;
    let mut words = text.lines().next()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    (method == "GET" && target.starts_with('/') && !target.starts_with("//"))
        .then(|| target.to_owned())
}
