//! Which earlier results the arguments of a call contain.
//!
//! A [`Memory`] stores what tools returned. For every later call, [`Memory::trace`] finds the parts of it that are in the
//! arguments. It compares content, so that it does not matter through which
//! variables, functions or models the data went:
//!
//! ```
//! use serde_json::json;
//! use toolgate_flow::{Memory, DataOrigin};
//!
//! let mut memory = Memory::default();
//! memory.learn(
//!     DataOrigin::new(1, "crm_get_customer"),
//!     &json!({ "name": "Ada Lovelace", "note": "owes us 48,200 EUR since the spring of last year" }),
//! );
//! let arguments = json!({ "to": "x@example.com", "body": "FYI: OWES US 48,200 EUR since the spring" });
//! let trace = memory.trace("mail_send", &arguments);
//! assert_eq!(trace.matches[0].field, "/body");
//! assert_eq!(trace.matches[0].from, "/note");
//! assert_eq!(trace.matches[0].origin.tool, "crm_get_customer");
//! ```
//!
//! # Method
//!
//! Texts are reduced to their letters and digits in lower case, so that case, spaces, punctuation and
//! JSON's quoting do not matter. Of every 14 bytes in a row a hash is taken, and of the
//! hashes a fixed share is kept, chosen so that two texts that have [`SHORTEST`] bytes in common have a
//! kept hash in common (winnowing). Words that are telling in themselves, such as an account number, are
//! kept whole, because they are shorter than that. Arguments are looked at as they are and with their
//! encodings taken off: JSON in strings, base64, base32, hexadecimal, percent signs, quoted-printable, the
//! entities of HTML, codes of characters; and in other orders: backwards, and with other letters between.
//! Letters of other blocks count as the Latin ones that they look like. What is sent in small pieces, call
//! by call or in a list, is put together again per tool and field.
//!
//! Pieces that say nothing of where they are from (points in time, "No results found", a rate limit) are
//! not stored: they are in the results of many tools, and in arguments that were written without them.
//!
//! Text that the caller wrote itself is no match: [`Memory::knows`] stores the script and what it passes to tools
//! before any result.
//!
//! # Limits
//!
//! Encryption, translation and paraphrase leave nothing in common. For these there are labels alone ([`LabelSet`]):
//! what has been touched ([`Memory::touched`]), whatever the arguments look like.
//!
//! All of it is linear in the bytes that go in, and bounded in memory: where there is no more room, the
//! oldest results are forgotten and [`Trace::incomplete`] says so.

mod decode;
mod generic;
mod labels;
mod memory;
mod text;
mod winnow;

pub use decode::{base32, hexadecimal};
pub use labels::{Label, LabelSet};
pub use memory::{DataOrigin, FlowLimits, Match, Memory, Trace, Via};
pub use winnow::SHORTEST;
