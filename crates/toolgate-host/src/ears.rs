//! Everybody who has to hear what servers do.

use std::sync::Arc;

use serde_json::Value;
use toolgate_catalog::ServerName;
use toolgate_upstream::{Handshake, Listing, OutputSource, ServerObserver};

use crate::{knowledge::Knowledge, offers::Offers};

/// Passes on what it hears: tools and words to one, resources and prompts to the other.
pub(crate) struct Ears {
    pub(crate) knowledge: Arc<Knowledge>,
    pub(crate) offers: Arc<Offers>,
}

impl ServerObserver for Ears {
    fn listed(&self, server: &ServerName, handshake: &Handshake, listing: Listing) {
        self.knowledge.listed(server, handshake, listing);
    }

    fn state_changed(&self, server: &ServerName) {
        self.offers.state_changed(server);
    }

    fn output(&self, server: &ServerName, source: OutputSource, line: &str) {
        self.knowledge.output(server, source, line);
    }

    fn notified(&self, server: &ServerName, method: &str, params: Option<&Value>) {
        self.offers.notified(server, method, params);
    }
}
