//! The CPU time of a worker.

use std::time::Duration;

/// The CPU clock of a process that has not been reaped, so that its id cannot belong to another
/// one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuClock {
    #[cfg(target_os = "linux")]
    clock: libc::clockid_t,
}

impl CpuClock {
    /// The clock of a process. `None` if the system has none. Then only the limit that the worker
    /// sets itself remains, which counts whole seconds.
    #[cfg(target_os = "linux")]
    #[expect(unsafe_code, reason = "no safe crate has clocks of other processes")]
    pub(crate) fn of(process: u32) -> Option<Self> {
        let process = libc::pid_t::try_from(process).ok()?;
        let mut clock = libc::clockid_t::default();
        // SAFETY: writes one integer, which outlives the call.
        let result = unsafe { libc::clock_getcpuclockid(process, &raw mut clock) };
        (result == 0).then_some(Self { clock })
    }

    /// The CPU time of the whole process so far; `None` once the process is gone.
    #[cfg(target_os = "linux")]
    #[expect(unsafe_code, reason = "no safe crate has clocks of other processes")]
    pub(crate) fn used(self) -> Option<Duration> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: writes one struct, which outlives the call.
        let result = unsafe { libc::clock_gettime(self.clock, &raw mut time) };
        if result != 0 {
            return None;
        }
        let seconds = u64::try_from(time.tv_sec).ok()?;
        Some(Duration::new(seconds, u32::try_from(time.tv_nsec).ok()?))
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn of(_process: u32) -> Option<Self> {
        None
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn used(self) -> Option<Duration> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_clock_runs_while_the_process_computes() {
        let clock = CpuClock::of(std::process::id()).unwrap();
        let before = clock.used().unwrap();
        let mut sum = 0_u64;
        while clock.used().unwrap() == before {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(clock.used().unwrap() > before);
    }

    #[test]
    fn a_process_that_does_not_exist_has_no_clock() {
        // Linux uses no process id above 2^22.
        let nobody = (1 << 22) + 1;
        assert_eq!(CpuClock::of(nobody).and_then(CpuClock::used), None);
    }
}
