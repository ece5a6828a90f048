use std::fs;

use super::*;

const NOW: u64 = 1_794_780_371;

fn place() -> (tempfile::TempDir, TokenFile) {
    let folder = tempfile::tempdir().unwrap();
    let tokens = TokenFile::new(folder.path().join("access"));
    (folder, tokens)
}

fn named(name: &str) -> TokenOrder {
    TokenOrder { name: Some(name.to_owned()), ..TokenOrder::default() }
}

#[test]
fn a_token_is_known_by_its_hash_alone() {
    let (folder, tokens) = place();
    let (record, token) = tokens.create(&named("laptop"), NOW).unwrap();
    assert!(token.expose().starts_with("tgt_"));
    assert_eq!(token.expose().len(), 4 + 43, "256 bits");
    assert_eq!(tokens.list().unwrap(), std::slice::from_ref(&record));
    assert_eq!(record.hash, TokenHash::of(token.expose()));
    assert_ne!(record.hash, TokenHash::of(&token.expose()[..46]));
    let (_, other) = tokens.create(&TokenOrder::default(), NOW).unwrap();
    assert_ne!(token.expose(), other.expose());
    for entry in fs::read_dir(folder.path().join("access")).unwrap() {
        let content = fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!content.contains(&token.expose()[4..]), "{content}");
    }
    assert!(!format!("{token:?} {record:?}").contains(&token.expose()[4..]));
}

#[cfg(unix)]
#[test]
fn only_its_owner_reads_the_file() {
    use std::os::unix::fs::PermissionsExt as _;

    let (folder, tokens) = place();
    let (record, _) = tokens.create(&named("a"), NOW).unwrap();
    tokens.note_use(record.hash, NOW).unwrap();
    let mode = |name: &str| {
        let path = folder.path().join("access").join(name);
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode("tokens.json"), 0o600);
    assert_eq!(mode("uses.json"), 0o600);
    assert_eq!(mode(""), 0o700);
}

#[test]
fn names_are_plain_and_unique() {
    let (_folder, tokens) = place();
    tokens.create(&named("a"), NOW).unwrap();
    assert!(matches!(tokens.create(&named("a"), NOW), Err(TokenError::Taken(_))));
    for wrong in ["", "a b", "\u{1b}[31m", "ä", &"x".repeat(65)] {
        assert!(matches!(tokens.create(&named(wrong), NOW), Err(TokenError::Name(_))), "{wrong:?}");
    }
    let (unnamed, _) = tokens.create(&TokenOrder::default(), NOW).unwrap();
    assert!(unnamed.name.starts_with("token-"), "{}", unnamed.name);
}

#[test]
fn every_change_is_seen() {
    let (_folder, tokens) = place();
    assert_eq!(tokens.stamp(), None);
    tokens.create(&named("a"), NOW).unwrap();
    let first = tokens.stamp();
    assert_eq!(tokens.stamp(), first);
    let (record, _) = tokens.create(&named("b"), NOW).unwrap();
    let second = tokens.stamp();
    assert_ne!(second, first);
    tokens.note_use(record.hash, NOW).unwrap();
    assert_eq!(tokens.stamp(), second, "a use is no change");
    assert_eq!(tokens.revoke("b").unwrap().name, "b");
    assert_ne!(tokens.stamp(), second);
    assert!(matches!(tokens.revoke("b"), Err(TokenError::Unknown(_))));
    assert_eq!(tokens.list().unwrap().len(), 1);
}

#[test]
fn a_damaged_token_file_accepts_no_token_and_is_not_overwritten() {
    let (folder, tokens) = place();
    tokens.create(&named("a"), NOW).unwrap();
    let path = folder.path().join("access/tokens.json");
    for content in ["{", r#"{ "version": 2, "tokens": [] }"#, r#"{ "version": 1 }"#, "[]"] {
        fs::write(&path, content).unwrap();
        assert!(matches!(tokens.list(), Err(TokenError::Unreadable { .. })), "{content}");
        assert!(tokens.create(&named("b"), NOW).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
    fs::write(&path, " ".repeat(5 * 1024 * 1024)).unwrap();
    assert!(matches!(tokens.list(), Err(TokenError::Unreadable { .. })));
}

#[test]
fn time_and_place_limit_it() {
    let (_folder, tokens) = place();
    let order = TokenOrder {
        expires: Some(NOW + 10),
        namespaces: vec!["work".to_owned()],
        ..named("short")
    };
    tokens.create(&order, NOW).unwrap();
    let [record] = &tokens.list().unwrap()[..] else { panic!("one token") };
    assert!(record.is_live(NOW + 9) && !record.is_live(NOW + 10));
    assert!(record.opens("work") && !record.opens("default") && !record.opens("wor"));
}

#[test]
fn the_last_use_is_shown_by_the_hour() {
    let (_folder, tokens) = place();
    let (record, _) = tokens.create(&named("a"), NOW).unwrap();
    assert_eq!(tokens.last_use(record.hash), None);
    tokens.note_use(record.hash, NOW).unwrap();
    let told = tokens.last_use(record.hash).unwrap();
    assert_eq!((told % 3_600, NOW - told < 3_600), (0, true));
    tokens.revoke("a").unwrap();
    let (anew, _) = tokens.create(&named("a"), NOW).unwrap();
    assert_eq!(tokens.last_use(anew.hash), None, "another token of the same name");
    tokens.note_use(anew.hash, NOW).unwrap();
    assert_eq!(tokens.last_use(record.hash), None);
}

#[test]
fn many_at_once_lose_nothing() {
    let (_folder, tokens) = place();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let tokens = &tokens;
            scope.spawn(move || tokens.create(&named(&format!("t{number}")), NOW).unwrap());
        }
    });
    assert_eq!(tokens.list().unwrap().len(), 8);
}
