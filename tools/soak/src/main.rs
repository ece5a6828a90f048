//! Runs the soak test and prints a report: calls that were lost or arrived twice, and resources that
//! grow.
//!
//!     cargo run --release -p toolgate-soak                                   # 500 sessions, 20 servers, 10 minutes
//!     cargo run --release -p toolgate-soak -- --minutes 1 --sessions 100
//!
//! It talks to loopback only and ends by itself, with exit code 1 where something is not as it should be.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints, and ends where something is wrong"
)]

use std::{process::ExitCode, time::Duration};

use toolgate_soak::{Soak, SoakReport};

fn main() -> ExitCode {
    let number = |name: &str, default: f64| {
        let mut arguments = std::env::args().skip_while(|argument| argument != name).skip(1);
        arguments.next().map_or(default, |value| value.parse().expect("a number"))
    };
    let folder = tempfile::tempdir().expect("a folder");
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small counts")]
    let soak = Soak {
        program: toolgate_testkit::program_binary().expect("the program"),
        folder: folder.path().to_owned(),
        sessions: number("--sessions", 500.0) as usize,
        servers: number("--servers", 20.0) as usize,
        duration: Duration::from_secs_f64(60.0 * number("--minutes", 10.0)),
        calls_a_session: 25,
        pause: Duration::from_secs_f64(number("--pause", 1.0)),
    };
    println!(
        "{} sessions, {} servers, {:.0?}, {:.1?} between two calls of a client\n",
        soak.sessions, soak.servers, soak.duration, soak.pause
    );
    println!(
        "{:>6} {:>10} {:>9} {:>12} {:>9}",
        "second", "answered", "memory", "descriptors", "children"
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let report = runtime.expect("a runtime").block_on(soak.run(|reading, answered| {
        if reading.second % 15 == 0 {
            println!(
                "{:>6} {answered:>10} {:>6} MB {:>12} {:>9}",
                reading.second,
                reading.kilobytes / 1024,
                reading.descriptors,
                reading.children
            );
        }
    }));
    match report {
        Ok(report) => print(&report),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn print(report: &SoakReport) -> ExitCode {
    let counts = &report.counts;
    println!("\ncalls made            {:>8}", counts.made);
    println!("  answered            {:>8}", counts.answered);
    println!(
        "  ended in an error   {:>8}  (of which {} had arrived)",
        counts.refused, counts.refused_but_arrived
    );
    for (message, times) in &counts.errors {
        println!("    {times:>6} × {message}");
    }
    println!("  arrived at servers  {:>8}", counts.arrived);
    println!("sessions              {:>8}", report.sessions);
    println!("servers killed        {:>8}  (others crash by themselves)", report.crashes);
    let memory = |at: usize| report.readings.get(at).map_or(0, |reading| reading.kilobytes / 1024);
    let readings = report.readings.len();
    println!(
        "memory                {:>5} MB after a third, {} MB at the end",
        memory(readings / 3),
        memory(readings.saturating_sub(1))
    );
    println!("descriptors at rest   {:>8}", report.at_rest.descriptors);
    if report.problems.is_empty() {
        println!("\nnothing lost, nothing doubled, nothing left behind");
        return ExitCode::SUCCESS;
    }
    for problem in &report.problems {
        println!("problem: {problem}");
    }
    ExitCode::FAILURE
}
