//! The configuration files of MCP clients: where they are, what they say, and edits that keep everything else.
//!
//! - [`CLIENTS`] says of each client where its files are and how an entry looks. Folders and variables are
//!   given ([`Places`]): this crate never looks for the user's home itself.
//! - [`imported`] turns the servers of a file into entries of `toolgate.json`.
//! - [`edited`] changes entries in a text. Comments, order and everything outside of the entries stay.
//! - [`difference`] shows a change without secrets.
//! - [`Writer`] writes files: with a back-up beside each, all or nothing for a file, and a record by which
//!   [`undo`] restores them.

mod diff;
mod edit;
mod found;
mod import;
mod secret;
mod table;
mod undo;
mod write;
mod yaml;

pub use diff::{difference, hidden};
pub use edit::{Edit, EditError, edited};
pub use import::{ImportedServer, OwnProgram, ServerIdentity, identity, imported, is_toolgate};
pub use secret::{keep_secrets, replace, without_secrets};
pub use table::{CLIENTS, Client, Places, System};
pub use undo::{Undone, undo};
pub use write::{ChangeRecord, Changed, WriteError, Writer};
