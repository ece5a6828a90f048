//! Names that nobody can guess.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use toolgate_mcp::ErrorObject;

/// 256 random bits, as text that fits into a header.
pub(crate) fn unguessable() -> Result<String, ErrorObject> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        tracing::error!(%error, "the system gives no random numbers");
        ErrorObject::internal_error("the system gives no random numbers", None)
    })?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}
