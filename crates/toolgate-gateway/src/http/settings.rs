//! What an endpoint is, and what it bears.

use std::{sync::Arc, time::Duration};

use crate::{
    door::{Credentials, Door},
    face::Source,
};

/// An endpoint.
#[derive(Debug)]
pub struct HttpSettings {
    /// What is served where.
    pub namespaces: Vec<Namespace>,
    /// What clients may ask of it.
    pub limits: HttpLimits,
    /// Hosts that may be named in `Host` beside those of loopback, with or without a port.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may talk to it beside those of loopback, as browsers write them.
    pub allowed_origins: Vec<String>,
    /// What decides who may come in.
    pub door: Door,
}

/// A path, and what stands behind it.
#[derive(Debug, Clone)]
pub struct Namespace {
    /// Such as `/mcp`.
    pub path: String,
    /// Makes the faces of its clients.
    pub source: Arc<dyn Source>,
}

/// What clients may ask of an endpoint.
#[derive(Debug, Clone)]
pub struct HttpLimits {
    /// Connections at once.
    pub connections: usize,
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// Headers of a request.
    pub headers: usize,
    /// Bytes of a request's head.
    pub header_bytes: usize,
    /// How long a request's head may take to arrive, and then its body; and how long a client may read
    /// nothing of what it is sent.
    pub arrival: Duration,
    /// Sessions of the legacy era at once.
    pub sessions: usize,
    /// Those of one caller.
    pub sessions_per_caller: usize,
    /// After how long a session that nobody uses ends.
    pub session_idle: Duration,
    /// Requests under way in a session, and of a caller of the modern era; of the latter, as many may wait
    /// for answers beside them.
    pub in_flight: usize,
    /// Requests that wait for answers of their clients.
    pub suspended: usize,
    /// How long a client may take to answer a question.
    pub patience: Duration,
    /// How often a silent stream shows that it lives.
    pub keep_alive: Duration,
}

impl HttpSettings {
    /// One source at `/mcp`, for clients on this machine.
    pub fn new(source: Arc<dyn Source>) -> Self {
        Self {
            namespaces: vec![Namespace { path: "/mcp".to_owned(), source }],
            limits: HttpLimits::default(),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            door: Door::new(Credentials::Optional),
        }
    }
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connections: 4096,
            body_bytes: 4 * 1024 * 1024,
            headers: 100,
            header_bytes: 64 * 1024,
            arrival: Duration::from_secs(30),
            sessions: 4000,
            sessions_per_caller: 1000,
            session_idle: Duration::from_mins(30),
            in_flight: 256,
            suspended: 1000,
            patience: Duration::from_mins(10),
            keep_alive: Duration::from_secs(15),
        }
    }
}
