//! The servers, a file each: their tables, their tools, and the few answers that need code.

mod calendar;
mod crm;
mod deploy;
mod docs;
mod inventory;
mod logging;
mod metrics;
mod notifications;
mod team;
mod ticketing;

use crate::spec::Spec;

/// All servers, in the order of the menu.
pub(crate) fn all() -> Vec<Spec> {
    vec![
        logging::server(),
        ticketing::server(),
        team::server(),
        calendar::server(),
        notifications::server(),
        crm::server(),
        inventory::server(),
        deploy::server(),
        docs::server(),
        metrics::server(),
    ]
}
