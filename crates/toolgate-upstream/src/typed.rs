//! Requests whose answers rmcp needs in its own types.

use std::{collections::HashSet, sync::Arc};

use parking_lot::Mutex;
use rmcp::model::{ClientJsonRpcMessage, RequestId};

use crate::raw;

/// The requests that were sent and whose answers rmcp has to understand. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct TypedRequests(Arc<Mutex<HashSet<RequestId>>>);

impl TypedRequests {
    /// Remembers a request that is about to be sent, if it is such a one.
    pub(crate) fn note(&self, message: &ClientJsonRpcMessage) {
        if let ClientJsonRpcMessage::Request(request) = message
            && raw::needs_types(&request.request)
        {
            self.0.lock().insert(request.id.clone());
        }
    }

    /// Whether `id` is that of such a request, which is answered with this.
    pub(crate) fn take(&self, id: &RequestId) -> bool {
        let mut typed = self.0.lock();
        typed.remove(id) || raw::number(id).is_some_and(|id| typed.remove(&RequestId::Number(id)))
    }
}
