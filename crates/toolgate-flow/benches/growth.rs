//! That learning and tracing are linear in the bytes, and that memory is bounded.
//!
//! A program, not a timed test: sizes are measured in turns, and what is told is the time per byte
//! against that of the smallest, and what the process holds after ever more results.
//!
//!     cargo bench -p toolgate-flow --bench growth

#![expect(clippy::cast_precision_loss, clippy::print_stdout, reason = "a benchmark prints figures")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate_flow::{DataOrigin, Memory};

const BASE: usize = 200_000;
const TIMES: [usize; 3] = [1, 4, 16];
const ROUNDS: usize = 11;
/// Megabytes of results that a conversation saw.
const SEEN: [usize; 6] = [0, 4, 16, 64, 256, 512];

fn main() {
    let inputs: Vec<Value> = TIMES.iter().map(|times| rows(BASE * times, 0)).collect();
    let sizes: Vec<usize> = inputs.iter().map(|input| input.to_string().len()).collect();
    let arguments: Vec<Value> =
        inputs.iter().map(|input| json!({ "text": input.to_string() })).collect();
    let mut learnt = vec![Vec::new(); TIMES.len()];
    let mut traced = vec![Vec::new(); TIMES.len()];
    let mut known = Memory::default();
    known.learn(DataOrigin::new(1, "t"), &rows(1_000_000, 7));
    for _ in 0..ROUNDS {
        for at in 0..TIMES.len() {
            let mut memory = Memory::default();
            learnt[at].push(timed(|| memory.learn(DataOrigin::new(1, "t"), &inputs[at])));
            traced[at].push(timed(|| drop(known.trace("t", &arguments[at]))));
        }
    }
    for (name, times) in [("learn", &mut learnt), ("trace", &mut traced)] {
        let per_byte: Vec<f64> = times
            .iter_mut()
            .zip(&sizes)
            .map(|(times, size)| {
                times.sort();
                times[ROUNDS / 2].as_secs_f64() * 1e9 / *size as f64
            })
            .collect();
        for (at, nanoseconds) in per_byte.iter().enumerate() {
            println!(
                "{name} {:>9} bytes: {nanoseconds:6.1} ns a byte, {:.2} of the smallest",
                sizes[at],
                nanoseconds / per_byte[0]
            );
        }
    }
    let mut memory = Memory::default();
    let mut seen = 0;
    for megabytes in SEEN {
        while seen < megabytes * 1_000_000 {
            let result = rows(200_000, seen);
            seen += result.to_string().len();
            memory.learn(DataOrigin::new(seen as u64, "t"), &result);
        }
        println!("after {megabytes:>3} MB of results: {} MB resident", resident());
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

/// Rows that are like no others.
fn rows(bytes: usize, salt: usize) -> Value {
    let row = |number: usize| {
        let number = (number + salt).wrapping_mul(2_654_435_761) % 1_000_000_007;
        json!({ "id": number, "name": format!("customer {}", number / 3), "note": format!("paid invoice {} late", number ^ 0x5555) })
    };
    json!((0..bytes / 70).map(row).collect::<Vec<_>>())
}

/// Megabytes that the process holds.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() / 1_000
}
