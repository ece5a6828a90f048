use std::{fs, path::Path, thread};

use super::*;
use crate::{LoginKey, Logins};

fn vault(folder: &Path) -> Vault {
    Vault::new(folder.to_owned(), VaultKey::File)
}

#[test]
fn a_secret_comes_back_and_is_not_in_any_file() {
    let folder = tempfile::tempdir().unwrap();
    let one = vault(folder.path());
    assert_eq!(one.load("name").unwrap(), None);
    one.save("https://example.com/secret-path", "the token").unwrap();
    one.save("other", "another").unwrap();
    one.save("other", "another one").unwrap();
    let two = vault(folder.path());
    assert_eq!(two.load("https://example.com/secret-path").unwrap().unwrap(), "the token");
    assert_eq!(two.load("other").unwrap().unwrap(), "another one");
    assert_eq!(two.load("nobody").unwrap(), None);
    for entry in fs::read_dir(folder.path()).unwrap() {
        let text = fs::read(entry.unwrap().path()).unwrap();
        let text = String::from_utf8_lossy(&text);
        for secret in ["the token", "another", "example.com", &STANDARD.encode("the token")[..8]] {
            assert!(!text.contains(secret), "{text}");
        }
    }
    two.forget("other").unwrap();
    assert_eq!(one.load("other").unwrap(), None);
    assert!(one.load("https://example.com/secret-path").unwrap().is_some());
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("vault");
    vault(&inner).save("name", "secret").unwrap();
    assert_eq!(fs::metadata(&inner).unwrap().permissions().mode() & 0o777, 0o700);
    for entry in fs::read_dir(&inner).unwrap() {
        let path = entry.unwrap().path();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
    }
}

#[test]
fn a_secret_is_valid_only_under_its_own_name() {
    let folder = tempfile::tempdir().unwrap();
    let vault = vault(folder.path());
    vault.save("mine", "for me").unwrap();
    vault.save("yours", "for you").unwrap();
    let mut content = vault.read().unwrap();
    let swapped: Vec<String> = content.entries.values().rev().cloned().collect();
    for (entry, other) in content.entries.values_mut().zip(swapped) {
        *entry = other;
    }
    fs::write(vault.path(), serde_json::to_vec(&content).unwrap()).unwrap();
    assert!(matches!(vault.load("mine"), Err(VaultError::OtherKey)));
}

#[test]
fn another_key_reads_nothing_and_can_store_again() {
    let folder = tempfile::tempdir().unwrap();
    let given = |letter: &str| {
        Vault::new(folder.path().to_owned(), VaultKey::Given(letter.repeat(VaultKey::SHORTEST)))
    };
    given("a").save("name", "secret").unwrap();
    assert_eq!(given("a").load("name").unwrap().unwrap(), "secret");
    for other in [given("b"), vault(folder.path())] {
        assert!(matches!(other.load("name"), Err(VaultError::OtherKey)), "{other:?}");
        other.save("name", "new").unwrap();
        assert_eq!(other.load("name").unwrap().unwrap(), "new");
    }
    let short = Vault::new(folder.path().to_owned(), VaultKey::Given("short".into()));
    assert!(matches!(short.save("name", "x"), Err(VaultError::ShortKey)));
    assert!(!format!("{:?}", given("a")).contains("aaaa"));
}

#[test]
fn a_damaged_file_is_reported_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let vault = vault(folder.path());
    vault.save("name", "secret").unwrap();
    for damage in ["", "{", "[]", r#"{"version": 2, "entries": {}}"#] {
        fs::write(vault.path(), damage).unwrap();
        assert!(matches!(vault.load("name"), Err(VaultError::Damaged { .. })), "{damage}");
        vault.save("name", "secret").unwrap();
        assert_eq!(vault.load("name").unwrap().unwrap(), "secret");
    }
    let mut content = vault.read().unwrap();
    for entry in content.entries.values_mut() {
        *entry = "AAAA".to_owned();
    }
    fs::write(vault.path(), serde_json::to_vec(&content).unwrap()).unwrap();
    assert!(matches!(vault.load("name"), Err(VaultError::OtherKey)));
}

#[test]
fn concurrent_writes_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for number in 0..8 {
            let vault = vault(folder.path());
            scope.spawn(move || vault.save(&format!("name {number}"), "secret").unwrap());
        }
    });
    for number in 0..8 {
        assert!(vault(folder.path()).load(&format!("name {number}")).unwrap().is_some());
    }
}

#[test]
fn one_renews_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let held = vault(folder.path()).lock("name").unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        let other = vault(folder.path());
        scope.spawn(move || {
            let _lock = other.lock("name").unwrap();
            sender.send("renewed").unwrap();
        });
        // Another name is not concerned.
        vault(folder.path()).lock("other").unwrap();
        assert!(receiver.try_recv().is_err());
        drop(held);
        assert_eq!(receiver.recv().unwrap(), "renewed");
    });
}

#[test]
fn the_login_of_a_caller_is_a_sealed_file_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let one = vault(folder.path());
    let shared = LoginKey::shared("crm", "https://crm.example/mcp");
    let (ada, bob) = (shared.of("token ada"), shared.of("token bob"));
    assert_eq!(Logins::load(&one, &ada).unwrap(), None);
    for (key, secret) in [(&shared, "for all"), (&ada, "for Ada"), (&bob, "for Bob")] {
        Logins::save(&one, key, secret).unwrap();
    }
    // As another process sees it.
    let two = vault(folder.path());
    for (key, secret) in [(&shared, "for all"), (&ada, "for Ada"), (&bob, "for Bob")] {
        assert_eq!(Logins::load(&two, key).unwrap().as_deref(), Some(secret));
    }
    assert_eq!(Logins::load(&two, &shared.of("token eve")).unwrap(), None);
    let listed = two.list().unwrap();
    assert_eq!(listed, [(ada.clone(), "for Ada".to_owned()), (bob.clone(), "for Bob".to_owned())]);
    let files: Vec<_> = fs::read_dir(folder.path().join("logins")).unwrap().collect();
    let files: Vec<_> = files.into_iter().map(|entry| entry.unwrap().path()).collect();
    for path in &files {
        let text = fs::read_to_string(path).unwrap();
        assert!(!text.contains("Ada") && !text.contains("crm"), "{text}");
    }
    // The file of one caller is of no use in place of that of another.
    let content: Vec<_> = files.iter().map(|path| fs::read(path).unwrap()).collect();
    fs::write(&files[0], &content[1]).unwrap();
    fs::write(&files[1], &content[0]).unwrap();
    assert!(Logins::load(&two, &ada).is_err() && Logins::load(&two, &bob).is_err());
    assert_eq!(two.list().unwrap(), []);
    Logins::save(&two, &ada, "again").unwrap();
    assert_eq!(Logins::load(&one, &ada).unwrap().as_deref(), Some("again"));
    Logins::forget(&one, &ada).unwrap();
    assert_eq!(Logins::load(&two, &ada).unwrap(), None);
    assert_eq!(Logins::load(&two, &shared).unwrap().as_deref(), Some("for all"));
}
