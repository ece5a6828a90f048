//! The system calls that a worker may make.
//!
//! There are two filters, of which the kernel applies the stricter result. The first kills the
//! process for every call that is not listed. The second returns an error for calls that libraries
//! make by themselves (time zone, number of processors): they are refused, but are no sign of an
//! attack, so a script that only asks for the date is not killed.

use std::{collections::BTreeMap, io};

use libc::{EACCES, PROT_EXEC, c_long};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// Calls for computing and for using the pipe.
const ALLOWED: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_futex,
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_time,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigaction,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_getrandom,
    libc::SYS_sched_yield,
    libc::SYS_getpid,
    libc::SYS_gettid,
];

/// Calls that are refused with an error.
const REFUSED: &[c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    libc::SYS_openat,
    libc::SYS_openat2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    libc::SYS_readlinkat,
    libc::SYS_getcwd,
    libc::SYS_ioctl,
    libc::SYS_fcntl,
    libc::SYS_lseek,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_sched_getaffinity,
];

/// Installs both filters. They cannot be removed, and no further filter can be added.
pub(super) fn restrict() -> io::Result<String> {
    let (gentle, strict) = filters().map_err(io::Error::other)?;
    seccompiler::apply_filter(&gentle).map_err(io::Error::other)?;
    seccompiler::apply_filter(&strict).map_err(io::Error::other)?;
    Ok(format!("{} allowed", ALLOWED.len() + CONDITIONAL))
}

/// Allowed only with certain arguments; see [`conditional`].
const CONDITIONAL: usize = 4;

fn filters() -> Result<(BpfProgram, BpfProgram), seccompiler::BackendError> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let refused = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let error = SeccompAction::Errno(EACCES.unsigned_abs());
    let gentle = SeccompFilter::new(refused, SeccompAction::Allow, error, architecture)?;
    let mut allowed: BTreeMap<_, _> =
        ALLOWED.iter().chain(REFUSED).map(|call| (*call, Vec::new())).collect();
    allowed.extend(conditional()?);
    let strict = SeccompFilter::new(
        allowed,
        SeccompAction::KillProcess,
        SeccompAction::Allow,
        architecture,
    )?;
    Ok((gentle.try_into()?, strict.try_into()?))
}

fn conditional() -> Result<[(c_long, Vec<SeccompRule>); CONDITIONAL], seccompiler::BackendError> {
    let rule = |argument, operator, value| {
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?;
        Ok::<_, seccompiler::BackendError>(vec![SeccompRule::new(vec![condition])?])
    };
    let executable = SeccompCmpOp::MaskedEq(u64::from(PROT_EXEC.unsigned_abs()));
    let this_process = u64::from(std::process::id());
    Ok([
        // Memory, unless it is executable.
        (libc::SYS_mmap, rule(2, executable.clone(), 0)?),
        (libc::SYS_mprotect, rule(2, executable, 0)?),
        // `abort` sends a signal to its own process.
        (libc::SYS_tgkill, rule(0, SeccompCmpOp::Eq, this_process)?),
        // The limits of this process, which can only become narrower.
        (libc::SYS_prlimit64, rule(0, SeccompCmpOp::Eq, 0)?),
    ])
}
