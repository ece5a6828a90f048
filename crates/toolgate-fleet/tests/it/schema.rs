//! The tables and their versions.

use toolgate_fleet::{Fleet, FleetError, FleetOptions};
use toolgate_testkit::Postgres;

#[test]
fn several_nodes_make_the_tables_once() {
    let Some(postgres) = Postgres::start().unwrap() else { return };
    let url = postgres.database().unwrap();
    let open = || Fleet::open(&FleetOptions { database: url.clone(), ..FleetOptions::default() });
    assert!(matches!(open(), Err(FleetError::TooOld { found: 0, .. })));
    let steps: i32 = std::thread::scope(|scope| {
        let migrating: Vec<_> =
            (0..4).map(|_| scope.spawn(|| Fleet::migrate(&url).unwrap())).collect();
        migrating
            .into_iter()
            .map(|migrating| migrating.join().unwrap())
            .map(|(from, to)| to - from)
            .sum()
    });
    let newest = open().unwrap().status().unwrap().schema;
    assert_eq!(steps, newest, "each step was made once");
    assert_eq!(Fleet::migrate(&url).unwrap(), (newest, newest));
}

#[test]
fn a_program_works_with_tables_of_the_next_version_only() {
    let Some(postgres) = Postgres::start().unwrap() else { return };
    let url = postgres.database().unwrap();
    let (_, newest) = Fleet::migrate(&url).unwrap();
    let open = || Fleet::open(&FleetOptions { database: url.clone(), ..FleetOptions::default() });
    let name = url.rsplit('/').next().unwrap();
    let step = |version: i32| {
        let statement = format!("INSERT INTO schema_version (version) VALUES ({version})");
        postgres.execute(name, &statement).unwrap();
    };
    step(newest + 1);
    assert!(open().is_ok(), "during an update");
    assert_eq!(Fleet::migrate(&url).unwrap(), (newest + 1, newest + 1), "never backwards");
    step(newest + 2);
    assert!(matches!(open(), Err(FleetError::TooNew { .. })));
    assert!(matches!(Fleet::migrate(&url), Err(FleetError::TooNew { .. })));
}
