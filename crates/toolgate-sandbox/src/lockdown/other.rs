//! The lockdown on other Unix systems.

use std::{io, os::fd::OwnedFd};

use super::{
    InterpreterLock, bound_worker,
    report::{LockdownReport, MeasureKind},
};
use crate::system::descriptors::{close_all_but_the_first, replace_first};

/// What a zygote has given up.
#[derive(Debug)]
pub(crate) struct LockedZygote(LockdownReport);

/// Applies the measures that workers inherit.
pub(crate) fn lock_zygote() -> LockedZygote {
    let mut report = LockdownReport::default();
    let missing = || Err::<String, _>("not on this system");
    close_all_but_the_first();
    report.note(MeasureKind::Namespaces, missing());
    report.note(MeasureKind::Landlock, missing());
    LockedZygote(report)
}

/// Applies the measures of a worker that the zygote has forked.
pub(crate) fn lock_worker(pipe: OwnedFd, zygote: LockedZygote) -> LockdownReport {
    let mut report = zygote.0;
    let missing = || Err::<String, _>("not on this system");
    report.note(MeasureKind::ParentDeath, missing());
    report.note(MeasureKind::Descriptors, replace_first(pipe).map(|()| String::new()));
    close_all_but_the_first();
    report.note(MeasureKind::Resources, bound_worker());
    report.note(MeasureKind::SystemCalls, missing());
    report
}

/// Nothing confines an interpreter here.
pub(crate) fn interpreter_lock() -> io::Result<InterpreterLock> {
    Err(io::ErrorKind::Unsupported.into())
}
