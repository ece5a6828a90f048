//! Answers to those who are not let in.

use axum::{
    http::{
        HeaderValue, StatusCode,
        header::{RETRY_AFTER, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};

use super::oauth::Issuer;
use crate::http::Refusal;

/// Why somebody is not let in, as far as he is told.
#[derive(Debug)]
pub(crate) struct Denial {
    status: StatusCode,
    message: &'static str,
    challenge: Option<String>,
    retry_seconds: Option<u64>,
}

const MISSING: &str = "a token is needed here: send it as `Authorization: Bearer TOKEN`";
const WRONG: &str = "this token opens nothing here: it is wrong, has expired or was revoked; ask for \
                     another";

impl Denial {
    /// Nothing was presented where something has to be.
    pub(super) fn missing(issuer: Option<&Issuer>, place: &str) -> Self {
        Self {
            challenge: Some(challenge(issuer, place, None)),
            ..Self::new(StatusCode::UNAUTHORIZED, MISSING)
        }
    }

    /// What was presented opens nothing. Why is not told: every wrong one gets the same answer.
    pub(super) fn wrong(issuer: Option<&Issuer>, place: &str) -> Self {
        Self {
            challenge: Some(challenge(issuer, place, Some("invalid_token"))),
            ..Self::new(StatusCode::UNAUTHORIZED, WRONG)
        }
    }

    /// The token is good, but not for this.
    pub(super) fn scope(issuer: &Issuer, place: &str) -> Self {
        Self {
            challenge: Some(challenge(Some(issuer), place, Some("insufficient_scope"))),
            ..Self::new(StatusCode::FORBIDDEN, "this token has not all of the scopes needed here")
        }
    }

    /// The token is good, but for another namespace.
    pub(super) fn elsewhere() -> Self {
        Self::new(StatusCode::FORBIDDEN, "this token is for another path")
    }

    pub(super) fn too_many() -> Self {
        let message = "too many wrong tokens came from this address; try again later";
        Self { retry_seconds: Some(60), ..Self::new(StatusCode::TOO_MANY_REQUESTS, message) }
    }

    /// It cannot be said whether a token is good.
    pub(super) fn unavailable() -> Self {
        let message = "the keys of the authorisation server cannot be had; try again later";
        Self { retry_seconds: Some(5), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, message) }
    }

    fn new(status: StatusCode, message: &'static str) -> Self {
        Self { status, message, challenge: None, retry_seconds: None }
    }
}

impl IntoResponse for Denial {
    fn into_response(self) -> Response {
        let mut response = Refusal::new(self.status, self.message).into_response();
        let headers = response.headers_mut();
        let challenge = self.challenge.and_then(|text| HeaderValue::from_str(&text).ok());
        if let Some(challenge) = challenge {
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
        if let Some(seconds) = self.retry_seconds {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// What a client has to know to get a token: RFC 6750, and RFC 9728 for where.
fn challenge(issuer: Option<&Issuer>, place: &str, error: Option<&str>) -> String {
    let mut parameters = Vec::new();
    match issuer {
        Some(issuer) => {
            parameters.push(format!("resource_metadata=\"{}\"", issuer.metadata_url(place)));
            let scopes = issuer.scopes();
            if !scopes.is_empty() {
                parameters.push(format!("scope=\"{}\"", scopes.join(" ")));
            }
        }
        None => parameters.push("realm=\"toolgate\"".to_owned()),
    }
    if let Some(error) = error {
        parameters.insert(0, format!("error=\"{error}\""));
    }
    format!("Bearer {}", parameters.join(", "))
}
