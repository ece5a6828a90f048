//! From the configured encoder to one that can be asked.

use std::{path::Path, sync::Arc, time::Duration};

use toolgate_config::{EmbeddingSource, Embeddings};
use toolgate_host::{EncodeTools, EncoderSetup};
use toolgate_models::embeddings::{
    ApiKey, EndpointEncoder, EndpointSettings, FolderEncoder, Prefixes,
};
use toolgate_search::encoder::Encoder;

/// How long one request for the vectors of tools may take. A query's is bounded by its own patience.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

/// The encoder that is configured, ready to be asked, or why it cannot be. `file` is where it was
/// configured, from where a relative folder starts.
pub(crate) fn setup(configured: &Embeddings, file: &Path) -> Result<EncoderSetup, String> {
    let prefixes = Prefixes {
        query: configured.query_prefix.clone(),
        document: configured.document_prefix.clone(),
    };
    let encoder: Arc<dyn Encoder> = match &configured.source {
        EmbeddingSource::Endpoint { url, model, api_key, dimensions } => {
            let settings = EndpointSettings {
                base_url: url.clone(),
                model: model.clone(),
                api_key: api_key.as_ref().map(|key| ApiKey::new(key.expose())),
                dimensions: *dimensions,
                prefixes,
                timeout: REQUEST_TIMEOUT,
            };
            Arc::new(EndpointEncoder::new(settings).map_err(|error| error.to_string())?)
        }
        EmbeddingSource::Folder { path } => {
            let folder = file.parent().unwrap_or(Path::new("")).join(path);
            Arc::new(FolderEncoder::open(folder, prefixes).map_err(|error| error.to_string())?)
        }
        // The configuration knows no other kind today.
        _ => return Err("this kind of encoder is not known".to_owned()),
    };
    Ok(EncoderSetup { encoder, timeout: configured.timeout, tools: EncodeTools::Missing })
}
