//! The resources of the gateway's process.

use std::{
    path::Path,
    time::{Duration, Instant},
};

/// The resources that a process uses at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceReading {
    /// Seconds since the first reading.
    pub second: u64,
    /// Resident memory.
    pub kilobytes: u64,
    /// Open descriptors.
    pub descriptors: usize,
    /// Its running child processes.
    pub children: usize,
}

/// Readings over time.
#[derive(Debug)]
pub(super) struct Watch {
    pid: u32,
    started: Instant,
    readings: Vec<ResourceReading>,
}

/// The growth of memory from the middle third to the last third that is no problem. Allocators keep
/// memory, and the number of connections varies.
const TOLERATED_GROWTH: f64 = 1.15;
const TOLERATED_KILOBYTES: u64 = 16 * 1024;
/// The descriptors that may stay open without clients: pooled connections to servers over HTTP, and
/// servers that are being restarted.
const TOLERATED_DESCRIPTORS: usize = 64;
/// The number of readings that growth can be judged by.
const ENOUGH: usize = 9;

impl Watch {
    pub(super) fn new(pid: u32) -> Self {
        Self { pid, started: Instant::now(), readings: Vec::new() }
    }

    /// Reads now; `None` if the process is gone.
    pub(super) fn read(&mut self) -> Option<ResourceReading> {
        let reading = self.now()?;
        self.readings.push(reading);
        Some(reading)
    }

    /// Waits until descriptors no longer fall, for a limited time, and returns the last reading.
    pub(super) async fn settle(&mut self, limit: Duration) -> ResourceReading {
        let nothing = ResourceReading { second: 0, kilobytes: 0, descriptors: 0, children: 0 };
        let ends = Instant::now() + limit;
        let mut last = self.now().unwrap_or(nothing);
        while Instant::now() < ends {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let next = self.now().unwrap_or(nothing);
            if next.descriptors >= last.descriptors {
                return next;
            }
            last = next;
        }
        last
    }

    /// Adds a problem for every resource that has grown too much.
    pub(super) fn judge(&self, at_rest: ResourceReading, problems: &mut Vec<String>) {
        // In the middle all servers run, which they do not at the start.
        let Some(middle) = self.readings.get(self.readings.len() / 2) else { return };
        if at_rest.descriptors > middle.descriptors.saturating_add(TOLERATED_DESCRIPTORS) {
            problems.push(format!(
                "{} descriptors are open with no client left; there were {} in the middle",
                at_rest.descriptors, middle.descriptors
            ));
        }
        if self.readings.len() < ENOUGH {
            return;
        }
        let third = self.readings.len() / 3;
        let middle = median(&self.readings[third..2 * third]);
        let last = median(&self.readings[2 * third..]);
        #[expect(clippy::cast_precision_loss, reason = "memory has fewer than 2^52 kilobytes")]
        let grown = last as f64 / middle.max(1) as f64;
        if grown > TOLERATED_GROWTH && last > middle + TOLERATED_KILOBYTES {
            problems.push(format!("memory grew from {middle} to {last} kB in the last third"));
        }
    }

    pub(super) fn into_readings(self) -> Vec<ResourceReading> {
        self.readings
    }

    fn now(&self) -> Option<ResourceReading> {
        let process = Path::new("/proc").join(self.pid.to_string());
        let status = std::fs::read_to_string(process.join("status")).ok()?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kilobytes = resident.trim().trim_end_matches(" kB").parse().ok()?;
        let descriptors = std::fs::read_dir(process.join("fd")).ok()?.count();
        let children = children_of(self.pid);
        Some(ResourceReading {
            second: self.started.elapsed().as_secs(),
            kilobytes,
            descriptors,
            children,
        })
    }
}

/// Servers of this soak that are still running, one message each.
pub(super) fn left_behind(folder: &Path) -> Vec<String> {
    // A fixture's arguments hold the path of its log.
    let mark = folder.display().to_string();
    let own = std::process::id();
    processes()
        .filter(|pid| *pid != own)
        .filter(|pid| {
            let path = format!("/proc/{pid}/cmdline");
            let line = std::fs::read(path).unwrap_or_default();
            let line = String::from_utf8_lossy(&line);
            line.contains("toolgate-fixture") && line.contains(&mark)
        })
        .map(|pid| format!("process {pid} was left behind"))
        .collect()
}

fn children_of(parent: u32) -> usize {
    let line = format!("PPid:\t{parent}");
    processes()
        .filter(|pid| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
            status.is_ok_and(|status| status.lines().any(|found| found == line))
        })
        .count()
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn median(readings: &[ResourceReading]) -> u64 {
    let mut kilobytes: Vec<u64> = readings.iter().map(|reading| reading.kilobytes).collect();
    kilobytes.sort_unstable();
    kilobytes.get(kilobytes.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(kilobytes: impl Fn(u64) -> u64, at_rest: usize) -> Vec<String> {
        let reading = |second| ResourceReading {
            second,
            kilobytes: kilobytes(second),
            descriptors: 50,
            children: 0,
        };
        let mut watch = Watch::new(0);
        watch.readings = (0..60).map(reading).collect();
        let mut problems = Vec::new();
        watch.judge(ResourceReading { descriptors: at_rest, ..reading(60) }, &mut problems);
        problems
    }

    #[test]
    fn growth_at_the_start_is_no_leak() {
        assert!(judged(|second| 100_000 + 5_000 * second.min(15), 60).is_empty());
    }

    #[test]
    fn endless_growth_of_memory_or_descriptors_is_a_problem() {
        assert_eq!(judged(|second| 100_000 + 5_000 * second, 60).len(), 1);
        assert_eq!(judged(|_| 100_000, 200).len(), 1);
    }

    #[test]
    fn a_process_is_read_while_it_lives() {
        let mut watch = Watch::new(std::process::id());
        assert!(watch.read().is_some_and(|reading| reading.kilobytes > 0));
        assert_eq!(Watch::new(u32::MAX).read(), None);
    }
}
