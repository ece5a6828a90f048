//! The lockdown on Linux, without privileges.

use std::{io, os::fd::OwnedFd};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, Ruleset,
    RulesetAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::{
    process::{
        DumpableBehavior, Pid, Signal, getpid, getppid, set_dumpable_behavior,
        set_parent_process_death_signal,
    },
    thread::{
        CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
        remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
    },
};

use super::{
    bound_worker, namespaces,
    report::{LockdownReport, MeasureKind},
    system_calls,
};
use crate::system::{
    descriptors::{close_all_but_the_first, replace_first},
    stop::{self, ExitReason},
};

fn silent() -> String {
    String::new()
}

/// What a zygote has given up.
#[derive(Debug)]
pub(crate) struct LockedZygote {
    report: LockdownReport,
    /// The process id.
    process: Pid,
    /// Whether the filters of system calls are installed that workers extend.
    filters: io::Result<()>,
}

/// Applies the measures that workers inherit. The order matters, because a step may need what a
/// later one takes away.
pub(crate) fn lock_zygote() -> LockedZygote {
    let mut report = LockdownReport::default();
    close_all_but_the_first();
    // When memory is short, the kernel should end these processes first.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    // Without this signal, the zygote ends when the host's end of the control socket is closed.
    let _ = die_with_parent();
    report.note(MeasureKind::Namespaces, namespaces::separate());
    // This may be another process now.
    let _ = die_with_parent();
    report.note(
        MeasureKind::Undumpable,
        set_dumpable_behavior(DumpableBehavior::NotDumpable).map(|()| silent()),
    );
    report.note(MeasureKind::NoNewPrivileges, set_no_new_privs(true).map(|()| silent()));
    report.note(MeasureKind::Capabilities, drop_capabilities().map(|()| silent()));
    report.note(MeasureKind::Landlock, restrict());
    LockedZygote { report, process: getpid(), filters: system_calls::restrict_zygote() }
}

/// Applies the measures of a worker that the zygote has forked.
pub(crate) fn lock_worker(pipe: OwnedFd, zygote: LockedZygote) -> LockdownReport {
    let LockedZygote { mut report, process, filters } = zygote;
    report.note(MeasureKind::ParentDeath, die_with_parent().map(|()| silent()));
    if getppid() != Some(process) {
        // The zygote has ended before the measure was in force.
        stop::leave(ExitReason::Lost);
    }
    report.note(MeasureKind::Descriptors, replace_first(pipe).map(|()| silent()));
    close_all_but_the_first();
    report.note(MeasureKind::Resources, bound_worker());
    let filters = filters.and_then(|()| system_calls::restrict_worker());
    report.note(MeasureKind::SystemCalls, filters);
    report
}

fn die_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Gives up what root, or the first process of a user namespace, may do.
fn drop_capabilities() -> io::Result<()> {
    // Whoever may not do this gains no capabilities from programs, because of no-new-privs.
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if remove_capability_from_bounding_set(capability).is_err() {
            break;
        }
    }
    let _ = clear_ambient_capability_set();
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    let left = capabilities(None)?;
    if left.permitted.is_empty() { Ok(()) } else { Err(io::Error::other("some are left")) }
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
