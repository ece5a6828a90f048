//! The browser of a person who agrees to everything.

use std::fmt::Write as _;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::TestkitError;

/// The response of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visited {
    /// The HTTP status.
    pub status: u16,
    /// The `Location` header.
    pub location: Option<String>,
    /// The name and value of the `Set-Cookie` header.
    pub cookie: Option<String>,
    /// The body.
    pub body: String,
}

/// Requests a page on this machine over plain HTTP, without following redirects.
pub async fn visit(url: &str) -> Result<Visited, TestkitError> {
    visit_with(url, &[]).await
}

/// The same with headers.
pub async fn visit_with(url: &str, headers: &[(&str, &str)]) -> Result<Visited, TestkitError> {
    request("GET", url, headers, "").await
}

/// Sends the form of a page.
pub async fn send_form(
    url: &str,
    headers: &[(&str, &str)],
    fields: &[(&str, &str)],
) -> Result<Visited, TestkitError> {
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    request("POST", url, headers, &body).await
}

async fn request(
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Result<Visited, TestkitError> {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(host).await?;
    let mut request = format!("{method} /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
    for (name, value) in headers {
        let _ = write!(request, "{name}: {value}\r\n");
    }
    if method == "POST" {
        let kind = "application/x-www-form-urlencoded";
        let _ = write!(request, "content-type: {kind}\r\ncontent-length: {}\r\n", body.len());
    }
    stream.write_all(format!("{request}\r\n{body}").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    let header = |wanted: &str| {
        head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case(wanted).then(|| value.trim().to_owned())
        })
    };
    let cookie = header("set-cookie").and_then(|text| Some(text.split(';').next()?.to_owned()));
    Ok(Visited { status, location: header("location"), cookie, body: body.to_owned() })
}
