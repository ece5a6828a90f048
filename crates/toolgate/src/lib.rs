//! The tools of many MCP servers behind one library.
//!
//! A [`Host`] connects to servers and knows their tools. A [`Session`] is one conversation with it.

pub use toolgate_host::{Host, HostSettings, ServerSetup, Session};
