//! Refuses permissions that a server of toolgate would give.

use toolgate_upstream::{ProcessLineage, own_lineage};

use crate::failure::Failure;

/// Refuses to let a server of toolgate, or a program that it has started, give a permission.
pub(crate) fn refuse_servers() -> Result<(), Failure> {
    match own_lineage() {
        ProcessLineage::Free => Ok(()),
        ProcessLineage::OfServer => Err(Failure::usage(
            "a server of toolgate has started this command, and a server cannot give permissions",
        )
        .hint("run it yourself in a terminal")),
        ProcessLineage::Unknown => Err(Failure::usage(
            "/proc does not show which processes have started this command, and a server cannot give \
             permissions",
        )
        .hint("run it yourself in a terminal, where /proc is that of the system")),
    }
}

/// Whether a server of toolgate may have started this process.
pub(crate) fn is_below_server() -> bool {
    own_lineage() != ProcessLineage::Free
}
