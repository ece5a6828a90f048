//! All tools that are known: their identities, names, definitions and cost.
//!
//! This crate uses no files, no network and no clock. It answers four questions.
//!
//! - **Which tool is meant?** [`ToolId`] is a server's name and the tool's own name. The one name
//!   that search returns, `call_tool` takes and a script uses is its [`ExposedName`], given out by
//!   the [`Catalog`].
//! - **What did the server send?** A [`Definition`] keeps the JSON as it was sent, fields that
//!   no SDK knows included.
//! - **What does it cost a context window?** [`TokenCounter`].
//! - **Which tools does a session list, and why?** [`decide`] gives an [`Exposure`] with its [`Reason`].
//!
//! ```
//! use toolgate_catalog::{Catalog, Definition, CatalogServer};
//!
//! let mut catalog = Catalog::new([CatalogServer::named("github")]);
//! let definition = Definition::from_value(&serde_json::json!({
//!     "name": "create-issue",
//!     "description": "Opens an issue.",
//!     "inputSchema": { "type": "object" },
//! }))?;
//! catalog.replace_server(&"github".into(), vec![definition]);
//! assert!(catalog.resolve("github_create_issue").is_some());
//! # Ok::<(), toolgate_catalog::Malformed>(())
//! ```

mod catalog;
mod cost;
mod definition;
mod exposure;
mod identity;
mod names;
mod nearest;
mod signature;

pub use catalog::{Catalog, CatalogServer, Replaced, Tool};
pub use cost::{CostUnit, TokenCounter};
pub use definition::{
    Definition, Fingerprint, MAX_DEFINITION_BYTES, Malformed, NotAFingerprint, Rejected,
    StoredDefinition, hex, read_list,
};
pub use exposure::{
    CHARACTERS_A_TOKEN, DeferredStyle, Exposure, ExposureKind, ExposureSettings, OwnCost, Reason,
    RequestedMode, decide, grouped,
};
pub use identity::{ExposedName, ServerName, ToolId};
pub use names::{
    HOST_TOOL_NAMES, MAX_NAME_CHARACTERS, PossibleNames, SCRIPT_FUNCTION_NAMES, expose,
    possible_names, preferred_name,
};
pub use nearest::nearest;
pub use signature::{brief_signature, signature};
