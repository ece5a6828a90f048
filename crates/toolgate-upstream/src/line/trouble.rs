//! What goes wrong on a line, before it is put into words.

use reqwest::Error as ReqwestError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use toolgate_mcp::ErrorObject;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The server's own error, or one of ours about its answer.
    Refused(ErrorObject),
    /// The other end is gone.
    Closed,
    /// The stream of the answer ended without it.
    NoAnswer,
    Http(Box<StreamableHttpError<ReqwestError>>),
}

impl From<StreamableHttpError<ReqwestError>> for Trouble {
    fn from(error: StreamableHttpError<ReqwestError>) -> Self {
        Self::Http(Box::new(error))
    }
}
