//! The lockdown on other Unix systems.

use super::{
    bound_worker,
    report::{LockdownReport, MeasureKind},
};
use crate::system::descriptors::close_all_but_the_pipe;

/// Applies the measures that all Unix systems have.
pub(crate) fn lock_down() -> LockdownReport {
    let mut report = LockdownReport::default();
    let missing = || Err::<String, _>("not on this system");
    report.note(MeasureKind::ParentDeath, missing());
    close_all_but_the_pipe();
    report.note(MeasureKind::Descriptors, Ok::<_, std::io::Error>(String::new()));
    report.note(MeasureKind::Landlock, missing());
    report.note(MeasureKind::Resources, bound_worker());
    report.note(MeasureKind::SystemCalls, missing());
    report
}
