//! The built-in demo: ten small MCP servers with invented data.
//!
//! They need no network, no installation and no clock: data is made from fixed seeds around a
//! fixed [present](NOW), and every run gives the same results. State lives in memory and ends with
//! the server. The definitions are as varied as those of real servers: names in several styles,
//! near-duplicates, nested parameters, some with output schemas and annotations and some without.
//!
//! A server is a JavaScript file in `servers/`: its tables with their first rows, and its tools. Most
//! tools list, get or change rows of a table. The others have a function. `servers/runtime.js` is
//! what they share. QuickJS runs them, with a limit of memory and without any access to the outside.
//!
//! [`servers`] lists them. [`serve`] is a whole server over a pair of streams, in a synchronous
//! loop. [`call`] and [`Instance`] are the same tools without a protocol.
//!
//! # Lists
//!
//! MCP asks structured content to be an object up to 2025-11-25. A tool whose result is a list
//! says so in the usual way: `structuredContent` is `{"result": [...]}`, its `outputSchema` has
//! that one property, and the text is the bare JSON list, which is also what [`call`] returns.
//! Tools without an output schema send text alone.
//!
//! # Positional arguments
//!
//! The properties of an input schema are in the order in which a script passes them:
//! `get_expenses("ENG-001", "Q3")`.

mod error;
mod protocol;
mod server;

/// The time at which the whole demo takes place. Data is from before it; what a client creates
/// is dated just after it.
pub const NOW: &str = "2026-10-15T09:30:00Z";
/// A script for these servers: one ticket for each distinct error of the last hour, in TypeScript.
pub const TICKETS_SCRIPT: &str = include_str!("../scripts/tickets.ts");
/// A script for these servers: who spent more than their travel budget, in Python.
pub const BUDGET_SCRIPT: &str = include_str!("../scripts/budget.py");

pub use error::DemoError;
pub use protocol::serve;
pub use server::{DemoServer, Instance, call, definitions, servers};
