//! The system calls that a worker may make.
//!
//! The zygote installs two filters, of which the kernel applies the stricter result. The first
//! returns an error for calls that libraries make by themselves (time zone, number of processors):
//! they are refused, but are no sign of an attack, so a script that only asks for the date is not
//! killed. The second kills the process for every call that is not listed. It still allows what a
//! zygote needs.
//!
//! A worker installs a third filter, which forbids that too. It is short, because the kernel tries a
//! new filter with every possible call, and that takes longer than to fork the process.

use std::{collections::BTreeMap, fmt::Write, io};

use libc::{EACCES, PROT_EXEC, c_long};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use super::InterpreterLock;

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

/// Calls that a zygote makes to fork a worker and to talk to its host, and that a new worker makes
/// before it forbids them.
const ZYGOTE: &[c_long] = &[
    libc::SYS_clone,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_rseq,
    libc::SYS_wait4,
    libc::SYS_pidfd_open,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_close,
    libc::SYS_close_range,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_dup2,
    libc::SYS_dup3,
    libc::SYS_getppid,
    libc::SYS_prctl,
    libc::SYS_seccomp,
];

/// Installs the filters of a zygote, which its workers inherit. They cannot be removed.
pub(super) fn restrict_zygote() -> io::Result<()> {
    let (gentle, strict) = filters().map_err(io::Error::other)?;
    seccompiler::apply_filter(&gentle).map_err(io::Error::other)?;
    seccompiler::apply_filter(&strict).map_err(io::Error::other)
}

/// Installs the filter of a worker. No further filter can be added.
pub(super) fn restrict_worker() -> io::Result<String> {
    seccompiler::apply_filter(&forbid_zygote(std::process::id())).map_err(io::Error::other)?;
    Ok(format!("{} allowed", ALLOWED.len() + CONDITIONAL))
}

/// The filters for Python's own interpreter, which installs them itself. A call that is not allowed
/// fails: the library of the language offers many of them to scripts, and asking for one is no sign
/// of an attack.
pub(crate) fn interpreter_lock() -> io::Result<InterpreterLock> {
    let make = || -> Result<BpfProgram, seccompiler::BackendError> {
        let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
        let listed = ALLOWED.iter().chain(ZYGOTE);
        let mut allowed: BTreeMap<_, _> = listed.map(|call| (*call, Vec::new())).collect();
        allowed.extend(conditional()?);
        let refused = SeccompAction::Errno(EACCES.unsigned_abs());
        SeccompFilter::new(allowed, refused, SeccompAction::Allow, architecture)?.try_into()
    };
    let refused = libc::SECCOMP_RET_ERRNO | EACCES.unsigned_abs();
    Ok(InterpreterLock {
        zygote_filter: digits(&make().map_err(io::Error::other)?),
        worker_filter: digits(&forbid(ZYGOTE, refused, &[end(libc::SECCOMP_RET_ALLOW)])),
        allowed: ALLOWED.len() + CONDITIONAL - 1,
        pivot_root: libc::SYS_pivot_root,
    })
}

/// A program as the system takes it, in hexadecimal digits.
fn digits(program: &[sock_filter]) -> String {
    let mut digits = String::with_capacity(program.len() * 16);
    for step in program {
        let bytes = step.code.to_ne_bytes().into_iter().chain([step.jt, step.jf]);
        for byte in bytes.chain(step.k.to_ne_bytes()) {
            // Writing to a string does not fail.
            let _ = write!(digits, "{byte:02x}");
        }
    }
    digits
}

/// Allowed only with certain arguments: those of [`conditional`], and `tgkill`.
const CONDITIONAL: usize = 4;

fn filters() -> Result<(BpfProgram, BpfProgram), seccompiler::BackendError> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let refused = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let error = SeccompAction::Errno(EACCES.unsigned_abs());
    let gentle = SeccompFilter::new(refused, SeccompAction::Allow, error, architecture)?;
    let listed = ALLOWED.iter().chain(REFUSED).chain(ZYGOTE).chain(&[libc::SYS_tgkill]);
    let mut allowed: BTreeMap<_, _> = listed.map(|call| (*call, Vec::new())).collect();
    allowed.extend(conditional()?);
    let strict = SeccompFilter::new(
        allowed,
        SeccompAction::KillProcess,
        SeccompAction::Allow,
        architecture,
    )?;
    Ok((gentle.try_into()?, strict.try_into()?))
}

fn conditional() -> Result<[(c_long, Vec<SeccompRule>); 3], seccompiler::BackendError> {
    let rule = |argument, operator, value| {
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?;
        Ok::<_, seccompiler::BackendError>(vec![SeccompRule::new(vec![condition])?])
    };
    let without = |argument, bits: i32| {
        let operator = SeccompCmpOp::MaskedEq(u64::from(bits.unsigned_abs()));
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, 0)
    };
    let private = SeccompRule::new(vec![without(2, PROT_EXEC)?, without(3, libc::MAP_SHARED)?])?;
    Ok([
        // Memory, unless it is executable. The limit of memory does not count what is shared.
        (libc::SYS_mmap, vec![private]),
        (libc::SYS_mprotect, vec![SeccompRule::new(vec![without(2, PROT_EXEC)?])?]),
        // The limits of this process, which can only become narrower.
        (libc::SYS_prlimit64, rule(0, SeccompCmpOp::Eq, 0)?),
    ])
}

/// The program that kills a worker for the calls of a zygote, and for signals to other processes
/// (`abort` sends one to its own).
fn forbid_zygote(this_process: u32) -> BpfProgram {
    let killed = libc::SECCOMP_RET_KILL_PROCESS;
    let rest = [
        equal(number(libc::SYS_tgkill), 1),
        end(libc::SECCOMP_RET_ALLOW),
        load(ARGUMENT),
        equal(this_process, 1),
        end(killed),
        end(libc::SECCOMP_RET_ALLOW),
    ];
    forbid(ZYGOTE, killed, &rest)
}

/// The program that answers these calls with an action, and goes on with `rest` for all others. The
/// filters of the zygote have checked the architecture.
///
/// `seccompiler` would need several instructions for each call.
fn forbid(calls: &[c_long], action: u32, rest: &[sock_filter]) -> BpfProgram {
    let mut program = vec![load(NUMBER)];
    // From the last of the calls to the instruction after the rest.
    let first = u8::try_from(rest.len()).unwrap_or(u8::MAX);
    let tests: Vec<_> =
        (first..).zip(calls).map(|(jump, call)| equal(number(*call), jump)).collect();
    program.extend(tests.into_iter().rev());
    program.extend_from_slice(rest);
    program.push(end(action));
    program
}

/// Where the kernel puts the number of the call, and the low half of its first argument.
const NUMBER: u32 = 0;
const ARGUMENT: u32 = if cfg!(target_endian = "little") { 16 } else { 20 };

fn instruction(code: u32, jump: u8, k: u32) -> sock_filter {
    sock_filter { code: u16::try_from(code).unwrap_or_default(), jt: jump, jf: 0, k }
}

fn load(place: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, place)
}

fn end(action: u32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, action)
}

/// Leaves out so many instructions if the value is equal.
fn equal(value: u32, jump: u8) -> sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, jump, value)
}

fn number(call: c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the program decides about a call.
    fn decide(program: &[sock_filter], call: c_long, argument: u32) -> u32 {
        let (mut at, mut value) = (0, 0);
        loop {
            let step = &program[at];
            at += 1;
            match u32::from(step.code) & 7 {
                libc::BPF_LD if step.k == 0 => value = u32::try_from(call).unwrap(),
                libc::BPF_LD => value = argument,
                libc::BPF_JMP => at += usize::from(if value == step.k { step.jt } else { step.jf }),
                _ => return step.k,
            }
        }
    }

    #[test]
    fn a_worker_of_an_interpreter_cannot_do_what_its_zygote_does() {
        let refused = libc::SECCOMP_RET_ERRNO | EACCES.unsigned_abs();
        let program = forbid(ZYGOTE, refused, &[end(libc::SECCOMP_RET_ALLOW)]);
        for call in ZYGOTE {
            assert_eq!(decide(&program, *call, 0), refused, "{call}");
        }
        for call in ALLOWED {
            assert_eq!(decide(&program, *call, 0), libc::SECCOMP_RET_ALLOW, "{call}");
        }
    }

    #[test]
    fn a_worker_cannot_do_what_a_zygote_does() {
        let program = forbid_zygote(77);
        for call in ZYGOTE {
            assert_eq!(decide(&program, *call, 77), libc::SECCOMP_RET_KILL_PROCESS, "{call}");
        }
        for call in ALLOWED.iter().chain(REFUSED) {
            assert_eq!(decide(&program, *call, 0), libc::SECCOMP_RET_ALLOW, "{call}");
        }
        assert_eq!(decide(&program, libc::SYS_tgkill, 77), libc::SECCOMP_RET_ALLOW);
        assert_eq!(decide(&program, libc::SYS_tgkill, 1), libc::SECCOMP_RET_KILL_PROCESS);
    }
}
