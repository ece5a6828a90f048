//! Who may come in.
//!
//! A door knows two kinds of credentials, both sent as `Authorization: Bearer …`: tokens that
//! `toolgate token` made, and tokens that an authorisation server signed. Whoever presents one is
//! told by it; whoever presents none is nobody in particular, where that is enough. What is presented
//! and wrong is refused even there, so that nobody takes himself for somebody else.
//!
//! Nothing of a credential leaves this module: neither to a log nor to a server further up.

mod attempts;
mod bearer;
mod book;
mod denial;
mod oauth;

use std::{
    net::IpAddr,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use axum::http::HeaderMap;
use serde_json::Value;
use toolgate_store::{AccessToken, AccessTokens, TokenHash};

use self::{
    attempts::Attempts,
    bearer::Presented,
    book::Book,
    oauth::{Issuer, Verdict},
};
use crate::caller::Caller;

pub(crate) use denial::Denial;
pub use oauth::{IssuerError, IssuerSettings};

/// What decides who may come in.
#[derive(Debug)]
pub struct Door {
    credentials: Credentials,
    book: Option<Book>,
    issuer: Option<Issuer>,
    attempts: Attempts,
}

/// Whether those who present nothing may come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credentials {
    /// They may, as [`Caller::local`]: for addresses that only this machine reaches.
    Optional,
    /// They may not.
    Required,
}

/// Who was let in.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) caller: Caller,
    pub(crate) pass: Pass,
}

/// By what somebody was let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    /// By nothing.
    Unwatched,
    /// By a token of ours.
    Token(TokenHash),
    /// By what is good until this second.
    Until(u64),
}

/// How often is looked whether a token is still good while a stream is open.
const WATCH: Duration = Duration::from_secs(5);

impl Door {
    /// A door that knows no credentials yet.
    pub fn new(credentials: Credentials) -> Self {
        Self { credentials, book: None, issuer: None, attempts: Attempts::default() }
    }

    /// Lets in who holds one of these tokens. Those that are created and revoked later count too.
    #[must_use]
    pub fn with_tokens(mut self, tokens: AccessTokens) -> Self {
        self.book = Some(Book::new(tokens));
        self
    }

    /// Lets in who holds a token that this authorisation server has issued for us, and nobody who
    /// presents nothing.
    pub fn with_issuer(mut self, settings: IssuerSettings) -> Result<Self, IssuerError> {
        self.issuer = Some(Issuer::new(settings)?);
        self.credentials = Credentials::Required;
        Ok(self)
    }

    /// Says who asks for what is at `place`, or why nobody is let in.
    pub(crate) async fn admit(
        &self,
        headers: &HeaderMap,
        place: &str,
        peer: IpAddr,
    ) -> Result<Admitted, Denial> {
        let token = match bearer::read(headers) {
            Presented::Nothing if self.credentials == Credentials::Optional => {
                return Ok(Admitted { caller: Caller::local(), pass: Pass::Unwatched });
            }
            Presented::Nothing => return Err(self.missing(place)),
            Presented::Unreadable => return Err(self.wrong(place, peer)),
            Presented::Bearer(token) => token,
        };
        if token.starts_with(AccessToken::PREFIX) {
            let found = self.book.as_ref().and_then(|book| book.find(token, now()));
            let Some(record) = found else { return Err(self.wrong(place, peer)) };
            if !record.opens(namespace(place)) {
                return Err(Denial::elsewhere());
            }
            let (name, hash) = (&record.name, record.hash.short());
            let caller = Caller::named(&format!("token {name} {hash}"));
            return Ok(Admitted { caller, pass: Pass::Token(record.hash) });
        }
        let Some(issuer) = &self.issuer else { return Err(self.wrong(place, peer)) };
        // Signatures take time to check. Whoever is in already stays in: behind a proxy all have
        // one address.
        if let Some(verdict) = issuer.remembered(token, place) {
            return self.judge(verdict, place, peer);
        }
        if self.attempts.are_too_many(peer, Instant::now()) {
            return Err(Denial::too_many());
        }
        let verdict = issuer.judge(token, place).await;
        self.judge(verdict, place, peer)
    }

    /// Ready once what somebody came in by opens nothing any more.
    pub(crate) async fn closed_for(&self, pass: Pass) {
        loop {
            let wait = match (pass, &self.book) {
                (Pass::Token(hash), Some(book)) if book.has(hash, now()) => WATCH,
                // The clock of the wall may be set, and goes on while the machine sleeps.
                (Pass::Until(end), _) if now() < end => {
                    WATCH.min(Duration::from_secs(end.saturating_sub(now())))
                }
                (Pass::Token(_), Some(_)) | (Pass::Until(_), _) => return,
                (Pass::Unwatched, _) | (Pass::Token(_), None) => std::future::pending().await,
            };
            tokio::time::sleep(wait).await;
        }
    }

    /// The document that tells clients where to get a token for what is at a path.
    pub(crate) fn metadata(&self, path: &str, places: &[&str]) -> Option<Value> {
        self.issuer.as_ref()?.metadata(path, places)
    }

    /// The host under which clients know us, where it is known.
    pub(crate) fn public_host(&self) -> Option<String> {
        self.issuer.as_ref().map(Issuer::host)
    }

    fn judge(&self, verdict: Verdict, place: &str, peer: IpAddr) -> Result<Admitted, Denial> {
        match (verdict, &self.issuer) {
            (Verdict::Known(caller, end), _) => Ok(Admitted { caller, pass: Pass::Until(end) }),
            (Verdict::Unavailable, _) => Err(Denial::unavailable()),
            (Verdict::Scope, Some(issuer)) => Err(Denial::scope(issuer, place)),
            (Verdict::Scope | Verdict::Wrong, _) => Err(self.wrong(place, peer)),
        }
    }

    fn missing(&self, place: &str) -> Denial {
        Denial::missing(self.issuer.as_ref(), place)
    }

    /// Counts a failure. What was wrong is not told.
    fn wrong(&self, place: &str, peer: IpAddr) -> Denial {
        if self.attempts.fail(peer, Instant::now()) {
            return Denial::too_many();
        }
        Denial::wrong(self.issuer.as_ref(), place)
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The name that people use for what is at a path: `/mcp` is `default`, `/mcp/work` is `work`.
fn namespace(place: &str) -> &str {
    match place.strip_prefix("/mcp") {
        None => place,
        Some("") => "default",
        Some(rest) => rest.trim_start_matches('/'),
    }
}
