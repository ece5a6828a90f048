//! The short form of `cargo run --release -p toolgate-soak`.

use std::time::Duration;

use toolgate_soak::Soak;

use crate::support::{Workplace, program};

#[tokio::test(flavor = "multi_thread")]
async fn many_clients_lose_nothing_while_servers_crash_and_stall() {
    let workplace = Workplace::empty();
    let soak = Soak {
        program: program().into(),
        folder: workplace.path().to_owned(),
        sessions: 40,
        servers: 5,
        duration: Duration::from_secs(12),
        // So few that clients come back even if the machine is busy.
        calls_a_session: 5,
        pause: Duration::from_millis(150),
    };
    let report = soak.run(|_, _| {}).await.unwrap();
    assert!(report.problems.is_empty(), "{report:#?}");
    // The trouble was real, and most calls did not notice.
    assert!(report.crashes > 0 && report.counts.refused > 0, "{:?}", report.counts);
    assert!(report.counts.answered > report.counts.refused, "{:?}", report.counts);
    assert!(report.sessions > 40, "{}", report.sessions);
}
