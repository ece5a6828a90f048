//! The logins of callers, shared by nodes.

use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use toolgate_fleet::Fleet;
use toolgate_store::{
    LoginKey, LoginStoreError, LoginWait, Logins, SecretSeal, SharedStore as _, Store, VaultKey,
    WaitingLogin, WaitingLogins, WhichLogin,
};
use toolgate_testkit::deadline;

use super::Shared;

const LONG: Duration = Duration::from_mins(10);

fn seal(letter: &str) -> SecretSeal {
    SecretSeal::of(&VaultKey::Given(letter.repeat(32))).unwrap().unwrap()
}

fn logins(node: &Arc<Fleet>) -> Arc<dyn Logins> {
    node.logins(seal("k"))
}

fn waiting(node: &Arc<Fleet>) -> Arc<dyn WaitingLogins> {
    node.waiting_logins(seal("k"))
}

fn ada() -> LoginKey {
    LoginKey::shared("crm", "https://crm.example/mcp").of("ada")
}

fn begun(id: &str, expires: u64) -> WaitingLogin {
    WaitingLogin {
        id: id.to_owned(),
        key: ada(),
        state: format!("state of {id}"),
        secret: "hunter2".to_owned(),
        expires,
    }
}

const LATER: u64 = u64::MAX / 4;

#[test]
fn one_node_at_a_time_renews_a_login_and_a_dead_one_holds_up_nobody() {
    let Some(shared) = Shared::start() else { return };
    let (one, other) = (shared.node(LONG), shared.node(LONG));
    logins(&one).save(&ada(), "first").unwrap();
    let held = logins(&one).lock(&ada()).unwrap();
    let (locked, locks) = mpsc::channel();
    let second = logins(&other);
    let renewing = std::thread::spawn(move || {
        let lock = second.lock(&ada()).unwrap();
        let read = second.load(&ada()).unwrap();
        drop(locked.send(read));
        drop(lock);
    });
    // Another login is not held up, and so many renewals do not take all connections.
    drop(logins(&other).lock(&ada().of("bob")).unwrap());
    assert!(locks.try_recv().is_err(), "the first node renews it");
    assert!(logins(&one).replace(&ada(), "second").unwrap());
    drop(held);
    assert_eq!(locks.recv_timeout(deadline()).unwrap().as_deref(), Some("second"));
    renewing.join().unwrap();
    // The lock of a node that is gone is free.
    std::mem::forget(logins(&one).lock(&ada()).unwrap());
    shared
        .postgres
        .execute(
            &shared.name(),
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE state = 'idle in transaction'",
        )
        .unwrap();
    drop(logins(&other).lock(&ada()).unwrap());
}

#[test]
fn a_login_that_one_node_began_is_ended_by_another() {
    let Some(shared) = Shared::start() else { return };
    let (one, other) = (waiting(&shared.node(LONG)), waiting(&shared.node(LONG)));
    let (woken, wakes) = mpsc::channel();
    one.on_end(Box::new(move || woken.send(()).unwrap_or_default()));
    assert_eq!(one.add(&begun("a", LATER)).unwrap(), None);
    assert_eq!(other.add(&begun("b", LATER)).unwrap(), Some(begun("a", LATER)), "one link for all");
    for which in [WhichLogin::Id("a"), WhichLogin::State("state of a"), WhichLogin::Key(&ada())] {
        assert_eq!(other.find(which).unwrap(), Some(begun("a", LATER)), "{which:?}");
    }
    assert_eq!(other.find(WhichLogin::Id("b")).unwrap(), None);
    assert_eq!(other.find(WhichLogin::Key(&ada().of("bob"))).unwrap(), None);
    one.admit("a", "first browser").unwrap();
    other.admit("a", "second browser").unwrap();
    assert!(!one.is_admitted("a", "first browser").unwrap(), "the last browser alone");
    assert!(one.is_admitted("a", "second browser").unwrap());
    assert_eq!(one.outcome("a").unwrap(), LoginWait::Open);
    let taken = [&one, &other].map(|node| node.take("a").unwrap());
    assert_eq!(taken, [true, false], "once");
    assert_eq!(other.find(WhichLogin::Id("a")).unwrap(), None);
    other.end("a", Err("no")).unwrap();
    wakes.recv_timeout(deadline()).unwrap();
    assert_eq!(one.outcome("a").unwrap(), LoginWait::Ended(Err("no".to_owned())));
    assert_eq!(one.outcome("unknown").unwrap(), LoginWait::Gone);
    // One that is too old makes room.
    assert_eq!(one.add(&begun("old", 1)).unwrap(), None);
    assert_eq!(one.find(WhichLogin::Id("old")).unwrap(), None);
    assert_eq!(other.add(&begun("new", LATER)).unwrap(), None);
    other.end("new", Ok(())).unwrap();
    assert_eq!(one.outcome("new").unwrap(), LoginWait::Ended(Ok(())));
}

#[test]
fn the_database_has_nothing_that_a_login_could_be_used_with() {
    let Some(shared) = Shared::start() else { return };
    let node = shared.node(LONG);
    logins(&node).save(&ada(), "hunter2").unwrap();
    waiting(&node).add(&begun("the id", LATER)).unwrap();
    waiting(&node).admit("the id", "the browser").unwrap();
    waiting(&node).end("the id", Err("hunter2 was refused")).unwrap();
    let rows = "SELECT string_agg(t, ' ') FROM (SELECT login::text AS t FROM login
        UNION ALL SELECT waiting_login::text FROM waiting_login
        UNION ALL SELECT fingerprint::text FROM fingerprint) AS rows";
    let text = shared.postgres.query(&shared.name(), rows).unwrap();
    assert!(text.len() > 200, "{text}");
    for secret in ["hunter2", "ada", "crm", "the id", "state of", "the browser", "kkkk"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}

#[test]
fn a_node_with_another_key_is_told_so_and_changes_nothing() {
    let Some(shared) = Shared::start() else { return };
    let node = shared.node(LONG);
    logins(&node).save(&ada(), "secret").unwrap();
    let wrong = node.logins(seal("x"));
    for LoginStoreError(why) in [
        wrong.load(&ada()).unwrap_err(),
        wrong.save(&ada(), "other").unwrap_err(),
        wrong.list().unwrap_err(),
        wrong.lock(&ada()).unwrap_err(),
    ] {
        assert!(why.contains("encrypted with another key"), "{why}");
    }
    assert_eq!(logins(&node).load(&ada()).unwrap().as_deref(), Some("secret"));
    logins(&node).forget(&ada()).unwrap();
    node.logins(seal("x")).save(&ada(), "new").unwrap();
}

#[test]
fn without_a_key_of_all_nodes_callers_have_no_logins() {
    let Some(shared) = Shared::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path()).sharing(shared.node(LONG));
    let own = store.logins(&VaultKey::File);
    let shared_login = LoginKey::shared("crm", "https://crm.example/mcp");
    own.save(&shared_login, "of this node").unwrap();
    assert_eq!(own.load(&shared_login).unwrap().as_deref(), Some("of this node"));
    let LoginStoreError(why) = own.save(&ada(), "x").unwrap_err();
    assert!(why.contains("set TOOLGATE_VAULT_KEY"), "{why}");
    assert!(store.waiting_logins(&VaultKey::File).is_none());
}
