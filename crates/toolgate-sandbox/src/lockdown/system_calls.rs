//! Which system calls a worker may make.
//!
//! Two filters, of which the kernel takes the stricter answer. The wide one kills the process for
//! whatever is not on the list. The other one answers with an error where a library looks for a
//! file on its own account (a time zone, the number of processors): that is refused, but is no sign
//! of an attack, and a script that merely asked for the date is not to die of it.

use std::{collections::BTreeMap, io};

use libc::{EACCES, PROT_EXEC, c_long};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// What computing and talking over the pipe needs.
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

/// What is refused with an error.
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

/// Installs both filters. From here on there is no way back, nor to a third one.
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
        // Memory, as long as nothing in it can be executed.
        (libc::SYS_mmap, rule(2, executable.clone(), 0)?),
        (libc::SYS_mprotect, rule(2, executable, 0)?),
        // `abort` sends itself a signal.
        (libc::SYS_tgkill, rule(0, SeccompCmpOp::Eq, this_process)?),
        // Its own limits, which can only be narrowed.
        (libc::SYS_prlimit64, rule(0, SeccompCmpOp::Eq, 0)?),
    ])
}
