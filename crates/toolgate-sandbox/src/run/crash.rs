//! How a worker died, in words.

use std::{os::unix::process::ExitStatusExt, process::ExitStatus};

use crate::system::stop::ExitReason;

/// Why a worker ended of its own accord, if it was that.
pub(super) fn reason(status: Option<ExitStatus>) -> Option<ExitReason> {
    ExitReason::of_code(status?.code()?)
}

/// Whether somebody else killed it.
pub(super) fn was_killed(status: Option<ExitStatus>) -> bool {
    status.and_then(|status| status.signal()) == Some(libc::SIGKILL)
}

/// How a worker ended, as a sentence.
pub(super) fn in_words(status: Option<ExitStatus>) -> String {
    let Some(status) = status else {
        return String::from("the worker is gone, and nobody knows why");
    };
    if let Some(reason) = reason(Some(status)) {
        return String::from(match reason {
            ExitReason::Done => "the worker ended before the script did",
            ExitReason::Asked => "the worker was asked to end",
            ExitReason::Cpu => "the worker reached its limit of CPU time",
            ExitReason::Memory => "the worker ran out of memory",
            ExitReason::Lockdown => "this system does not let the worker give up what it must",
            ExitReason::Lost => "the worker did not understand its host",
            ExitReason::Panicked => "the engine failed",
            ExitReason::Stack => "the worker's stack was full",
        });
    }
    let Some(signal) = status.signal() else {
        return format!("the worker ended before the script did, with {status}");
    };
    let (name, meaning) = match signal {
        libc::SIGSYS => ("SIGSYS", "it tried what the sandbox forbids"),
        libc::SIGSEGV => ("SIGSEGV", "the engine crashed"),
        libc::SIGBUS => ("SIGBUS", "the engine crashed"),
        libc::SIGILL => ("SIGILL", "the engine crashed"),
        libc::SIGFPE => ("SIGFPE", "the engine crashed"),
        libc::SIGTRAP => ("SIGTRAP", "the engine crashed"),
        libc::SIGABRT => ("SIGABRT", "the engine gave up, most likely for want of memory"),
        libc::SIGKILL => {
            ("SIGKILL", "somebody killed it, most likely the system for want of memory")
        }
        libc::SIGXCPU => ("SIGXCPU", "it reached the system's limit of CPU time"),
        libc::SIGXFSZ => ("SIGXFSZ", "it tried to write a file"),
        libc::SIGPIPE => ("SIGPIPE", "it lost its host"),
        libc::SIGTERM => ("SIGTERM", "somebody ended it"),
        other => return format!("the worker was ended by signal {other}"),
    };
    format!("the worker was ended by {name}: {meaning}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_has_words() {
        let cases = [
            (Some(libc::SIGSYS), "SIGSYS: it tried what the sandbox forbids"),
            (Some(libc::SIGSEGV), "SIGSEGV: the engine crashed"),
            (Some(63), "signal 63"),
            (Some(92 << 8), "ran out of memory"),
            (Some(0), "ended before the script did"),
            (Some(7 << 8), "exit status: 7"),
            (None, "nobody knows why"),
        ];
        for (status, words) in cases {
            let text = in_words(status.map(ExitStatus::from_raw));
            assert!(text.contains(words), "{text}");
        }
    }
}
