use super::*;
use crate::Store;

fn cache(folder: &tempfile::TempDir) -> VectorCache {
    Store::new(folder.path()).vectors("model")
}

fn put(cache: &VectorCache, texts: &[&str], vector: &[f32]) {
    let entries: Vec<_> = texts.iter().map(|text| (*text, vector)).collect();
    cache.put(&entries).unwrap();
}

fn has(cache: &VectorCache, texts: &[&str]) -> Vec<bool> {
    cache.get(texts).iter().map(Option::is_some).collect()
}

#[test]
fn stored_vectors_are_visible_to_other_processes() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (cache(&folder), cache(&folder));
    assert_eq!(has(&one, &["a"]), [false]);
    put(&one, &["a", "b"], &[0.5, -0.25, 1.0]);
    assert_eq!(two.get(&["b", "c"]), [Some(vec![0.5, -0.25, 1.0]), None]);
    put(&two, &["c"], &[1.0, 0.0, 0.0]);
    assert_eq!(has(&one, &["a", "b", "c"]), [true; 3], "what another wrote is seen");
    let length = fs::metadata(&one.path).unwrap().len();
    put(&one, &["a", "c"], &[0.5, -0.25, 1.0]);
    assert_eq!(fs::metadata(&one.path).unwrap().len(), length, "nothing is kept twice");
    let other = Store::new(folder.path()).vectors("another model");
    assert_eq!(has(&other, &["a"]), [false]);
}

#[test]
fn vectors_of_another_length_replace_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (cache(&folder), cache(&folder));
    put(&one, &["a"], &[1.0, 0.0]);
    assert_eq!(has(&two, &["a"]), [true]);
    put(&one, &["b"], &[1.0, 0.0, 0.0]);
    assert_eq!(has(&two, &["a", "b"]), [false, true]);
    assert!(one.put(&[("x", &[1.0][..]), ("y", &[1.0, 2.0])]).is_err());
    assert!(one.put(&[("x", &[][..])]).is_err());
    assert_eq!(has(&one, &["b"]), [true]);
}

#[test]
fn damage_affects_only_the_damaged_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let texts = ["a", "b", "c", "d"];
    put(&cache(&folder), &texts, &[1.0, 0.5]);
    let path = cache(&folder).path.clone();
    let whole = fs::read(&path).unwrap();
    let size = record_bytes(2);

    let mut flipped = whole.clone();
    flipped[16 + size + KEY_BYTES] ^= 1;
    fs::write(&path, &flipped).unwrap();
    let damaged = cache(&folder);
    assert_eq!(has(&damaged, &texts), [true, false, true, true]);
    put(&damaged, &["b"], &[1.0, 0.5]);
    assert_eq!(has(&cache(&folder), &texts), [true; 4], "and is mended");

    fs::write(&path, &whole[..whole.len() - 3]).unwrap();
    let cut = cache(&folder);
    assert_eq!(has(&cut, &texts), [true, true, true, false]);
    put(&cut, &["e", "d"], &[1.0, 0.5]);
    assert_eq!(has(&cache(&folder), &["c", "d", "e"]), [true; 3], "records are whole again");

    for nonsense in [&b""[..], b"nonsense that is longer than a head", &whole[..10]] {
        fs::write(&path, nonsense).unwrap();
        let cache = cache(&folder);
        assert_eq!(has(&cache, &texts), [false; 4]);
        put(&cache, &["a"], &[1.0, 0.5]);
        assert_eq!(has(&cache, &["a"]), [true]);
    }
}

#[test]
fn a_full_file_removes_its_older_half() {
    let folder = tempfile::tempdir().unwrap();
    let reader = cache(&folder);
    let writer = VectorCache { most: 16 + 10 * record_bytes(4) as u64, ..cache(&folder) };
    let texts: Vec<String> = (0..25).map(|number| format!("text {number}")).collect();
    for text in &texts {
        put(&writer, &[text], &[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(has(&reader, &[text]), [true], "the newest is always there");
        assert!(fs::metadata(&writer.path).unwrap().len() <= writer.most);
    }
    assert_eq!(has(&reader, &[&texts[0], &texts[20]]), [false, true]);
}

#[test]
fn the_number_of_encoders_is_limited() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    for number in 0..MAX_ENCODERS + 3 {
        put(&store.vectors(&format!("model {number}")), &["a"], &[1.0]);
    }
    let held = fs::read_dir(folder.path().join("cache/vectors")).unwrap().count();
    assert_eq!(held, MAX_ENCODERS);
}

#[test]
fn threads_and_processes_do_not_disturb_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let texts: Vec<Vec<String>> =
        (0..4).map(|who| (0..50).map(|number| format!("{who} {number}")).collect()).collect();
    std::thread::scope(|scope| {
        for own in &texts {
            let cache = cache(&folder);
            scope.spawn(move || {
                for text in own {
                    put(&cache, &[text], &[1.0, 0.5, 0.25]);
                }
            });
        }
    });
    let all: Vec<&str> = texts.iter().flatten().map(String::as_str).collect();
    assert!(cache(&folder).get(&all).iter().all(|v| *v == Some(vec![1.0, 0.5, 0.25])));
}
