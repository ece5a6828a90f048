//! The lockdown on Linux, without privileges.

use std::io;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, Ruleset,
    RulesetAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::process::{
    DumpableBehavior, Signal, set_dumpable_behavior, set_parent_process_death_signal,
};

use super::{
    bound_worker,
    report::{LockdownReport, MeasureKind},
    system_calls,
};
use crate::system::descriptors::close_all_but_the_pipe;

/// Applies all measures. The order matters, because a step may need what a later one takes away.
pub(crate) fn lock_down() -> LockdownReport {
    let mut report = LockdownReport::default();
    let silent = || String::new();
    report.note(
        MeasureKind::ParentDeath,
        set_parent_process_death_signal(Some(Signal::KILL)).map(|()| silent()),
    );
    close_all_but_the_pipe();
    report.note(MeasureKind::Descriptors, Ok::<_, io::Error>(silent()));
    // When memory is short, the kernel should end this process first.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    report.note(
        MeasureKind::Undumpable,
        set_dumpable_behavior(DumpableBehavior::NotDumpable).map(|()| silent()),
    );
    report.note(
        MeasureKind::NoNewPrivileges,
        rustix::thread::set_no_new_privs(true).map(|()| silent()),
    );
    report.note(MeasureKind::Landlock, restrict());
    report.note(MeasureKind::Resources, bound_worker());
    report.note(MeasureKind::SystemCalls, system_calls::restrict());
    report
}

/// Restricts every access that the kernel's Landlock version knows, and allows none.
fn restrict() -> Result<String, io::Error> {
    let restrict = || -> Result<_, RulesetError> {
        let newest = ABI::V7;
        Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(newest))?
            .handle_access(AccessNet::from_all(newest))?
            .scope(Scope::from_all(newest))?
            .create()?
            .restrict_self()
    };
    let status = restrict().map_err(io::Error::other)?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => Err(io::Error::other("not in this kernel")),
        (RulesetStatus::FullyEnforced, LandlockStatus::Available { effective_abi, .. }) => {
            Ok(format!("version {}", effective_abi as i32))
        }
        (RulesetStatus::PartiallyEnforced, LandlockStatus::Available { effective_abi, .. }) => {
            Ok(format!("version {}, which lacks some", effective_abi as i32))
        }
        _ => Ok(String::from("in part")),
    }
}
