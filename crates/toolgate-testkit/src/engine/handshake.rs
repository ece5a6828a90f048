//! `initialize` and `server/discover`, and the check of later requests.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::{Engine, Generation, Request};
use crate::reply::{Reply, code};
use crate::{FixtureEra, ProbeRefusal};

/// The `_meta` key that makes a request a modern one.
pub(crate) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
/// The revision without sessions.
const MODERN_VERSION: &str = "2026-07-28";

impl Engine {
    /// Answers `server/discover` according to the era.
    pub(super) async fn discover(&self, request: &Request) -> Reply {
        match self.fixture.era {
            FixtureEra::Legacy => match self.fixture.probe_refusal {
                ProbeRefusal::MethodNotFound => {
                    Reply::error(code::METHOD_NOT_FOUND, "Method not found")
                }
                ProbeRefusal::InvalidParams => {
                    Reply::error(code::INVALID_PARAMS, "Invalid request parameters")
                }
                ProbeRefusal::NotInitialized => {
                    Reply::error(code::SESSION_PROBLEM, "Bad Request: Server not initialized")
                }
            },
            FixtureEra::SilentOnProbe | FixtureEra::SilentThenDies => std::future::pending().await,
            FixtureEra::DiesOfProbe => self.die(1).await,
            FixtureEra::Modern | FixtureEra::Both => {
                if let Err(refusal) = self.check_meta(&request.params) {
                    return refusal;
                }
                let mut result = json!({
                    "resultType": "complete",
                    "supportedVersions": self.supported_versions(),
                    "capabilities": self.capabilities(),
                    "ttlMs": 0,
                    "cacheScope": "private",
                    "_meta": { "io.modelcontextprotocol/serverInfo": self.server_info() },
                });
                if let Some(instructions) = &self.fixture.instructions {
                    result["instructions"] = json!(instructions);
                }
                Reply::Result(result)
            }
        }
    }

    /// Answers `initialize` according to the era.
    pub(super) async fn initialize(&self, request: &Request) -> Reply {
        let requested = &request.params["protocolVersion"];
        match self.fixture.era {
            FixtureEra::Modern => return self.unsupported(requested),
            FixtureEra::SilentThenDies if self.probed.load(Ordering::SeqCst) => {
                return self.die(1).await;
            }
            _ => {}
        }
        let versions = &self.fixture.legacy_versions;
        let version = versions.iter().find(|known| requested == *known).or(versions.last());
        let mut result = json!({
            "protocolVersion": version,
            "capabilities": self.capabilities(),
            "serverInfo": self.server_info(),
        });
        if let Some(instructions) = &self.fixture.instructions {
            result["instructions"] = json!(instructions);
        }
        request.peer.set_initialized(&request.params);
        self.state.lock().peers.push(Arc::downgrade(&request.peer));
        Reply::Result(result)
    }

    /// Refuses requests before the handshake, or without required fields.
    pub(super) fn admit(&self, request: &Request) -> Result<(), Reply> {
        match request.generation {
            Generation::Modern => self.check_meta(&request.params),
            Generation::Legacy if request.peer.is_initialized() || request.method == "ping" => {
                Ok(())
            }
            Generation::Legacy => {
                Err(Reply::error(code::INVALID_REQUEST, "Received a request before initialize"))
            }
        }
    }

    fn check_meta(&self, params: &Value) -> Result<(), Reply> {
        let meta = &params["_meta"];
        let missing: Vec<&str> = [
            (VERSION_KEY, meta[VERSION_KEY].is_string()),
            (CAPABILITIES_KEY, meta[CAPABILITIES_KEY].is_object()),
        ]
        .into_iter()
        .filter_map(|(key, present)| (!present).then_some(key))
        .collect();
        if !missing.is_empty() {
            let message = format!("Request _meta lacks {}", missing.join(", "));
            return Err(Reply::error(code::INVALID_PARAMS, message));
        }
        if meta[VERSION_KEY] == MODERN_VERSION {
            Ok(())
        } else {
            Err(self.unsupported(&meta[VERSION_KEY]))
        }
    }

    fn unsupported(&self, requested: &Value) -> Reply {
        Reply::Error {
            code: code::UNSUPPORTED_PROTOCOL_VERSION,
            message: "Unsupported protocol version".to_owned(),
            data: Some(json!({ "requested": requested, "supported": self.supported_versions() })),
        }
    }

    fn supported_versions(&self) -> Vec<&str> {
        let legacy = match self.fixture.era {
            FixtureEra::Both => self.fixture.legacy_versions.as_slice(),
            _ => &[],
        };
        legacy.iter().map(String::as_str).chain([MODERN_VERSION]).collect()
    }

    fn capabilities(&self) -> Value {
        let tools = json!({ "listChanged": self.fixture.advertises_list_changed });
        let mut capabilities = serde_json::Map::from_iter([("tools".to_owned(), tools)]);
        capabilities.extend(self.resource_capabilities());
        capabilities.extend(self.fixture.capabilities.clone());
        Value::Object(capabilities)
    }

    fn server_info(&self) -> Value {
        json!({ "name": self.fixture.name, "version": self.fixture.version })
    }
}
