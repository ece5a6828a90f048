use std::{fs, path::PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{super::SUPPORTED, *};

/// The result of an implementation in numpy.
#[derive(Deserialize)]
struct Golden {
    text: String,
    mean: Vec<f32>,
    first: Option<Vec<f32>>,
    max: Option<Vec<f32>>,
}

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn golden(name: &str) -> Vec<Golden> {
    serde_json::from_slice(&fs::read(data(name).join("golden.json")).unwrap()).unwrap()
}

/// A copy of a fixture, to be changed.
fn copy(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(data(name)).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    fs::create_dir(folder.path().join("1_Pooling")).unwrap();
    folder
}

fn set(folder: &tempfile::TempDir, file: &str, change: impl Fn(&mut Value)) {
    let path = folder.path().join(file);
    let mut value: Value =
        fs::read(&path).map_or(json!({}), |bytes| serde_json::from_slice(&bytes).unwrap());
    change(&mut value);
    fs::write(path, value.to_string()).unwrap();
}

fn open(path: impl Into<PathBuf>) -> Result<FolderEncoder, FolderError> {
    FolderEncoder::open(path, Prefixes::default())
}

async fn encoded(encoder: &FolderEncoder, texts: &[&str]) -> Vec<UnitVector> {
    encoder.encode(texts, TextKind::Document).await.unwrap()
}

fn assert_near(vector: &UnitVector, expected: &[f32], text: &str) {
    assert_eq!(vector.dimensions(), expected.len());
    for (got, expected) in vector.as_slice().iter().zip(expected) {
        assert!((got - expected).abs() < 2e-5, "{text:?}: {got} {expected}");
    }
}

#[tokio::test]
async fn a_transformer_gives_what_another_implementation_gives() {
    let golden = golden("bert");
    let texts: Vec<&str> = golden.iter().map(|golden| golden.text.as_str()).collect();
    for vector in encoded(&open(data("bert")).unwrap(), &texts).await.iter().zip(&golden) {
        assert_near(vector.0, &vector.1.mean, &vector.1.text);
    }
    for mode in ["pooling_mode_cls_token", "pooling_mode_max_tokens"] {
        let folder = copy("bert");
        set(&folder, "1_Pooling/config.json", |config| config[mode] = json!(true));
        let vectors = encoded(&open(folder.path()).unwrap(), &texts).await;
        for (vector, golden) in vectors.iter().zip(&golden) {
            let is_first = mode == "pooling_mode_cls_token";
            let expected = if is_first { &golden.first } else { &golden.max };
            assert_near(vector, expected.as_ref().unwrap(), &golden.text);
        }
    }
}

#[tokio::test]
async fn a_static_table_gives_what_another_implementation_gives() {
    let golden = golden("static");
    let texts: Vec<&str> = golden.iter().map(|golden| golden.text.as_str()).collect();
    let encoder = open(data("static")).unwrap();
    for (vector, golden) in encoded(&encoder, &texts).await.iter().zip(&golden) {
        assert_near(vector, &golden.mean, &golden.text);
    }
}

#[tokio::test]
async fn prefixes_are_put_before_texts_and_are_part_of_the_identity() {
    let plain = open(data("bert")).unwrap();
    let prefixes = Prefixes { query: "send ".into(), document: String::new() };
    let other = FolderEncoder::open(data("bert"), prefixes).unwrap();
    assert_ne!(plain.id(), other.id());
    assert_eq!(plain.id(), open(data("bert")).unwrap().id());
    let expected = encoded(&plain, &["send mail"]).await;
    assert_eq!(other.encode(&["mail"], TextKind::Query).await.unwrap(), expected);
    assert_ne!(other.encode(&["mail"], TextKind::Document).await.unwrap(), expected);
}

#[tokio::test]
async fn other_weights_have_another_identity() {
    let folder = copy("bert");
    let before = open(folder.path()).unwrap().id().to_owned();
    let path = folder.path().join("model.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    let end = bytes.len();
    bytes[end - 2] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert_ne!(open(folder.path()).unwrap().id(), before);
}

#[test]
fn a_folder_that_cannot_be_used_says_why() {
    let reason = |change: &dyn Fn(&tempfile::TempDir)| {
        let folder = copy("bert");
        change(&folder);
        let error = open(folder.path()).map(|_| ()).unwrap_err().to_string();
        error.replace(&folder.path().display().to_string(), "FOLDER")
    };
    let missing = reason(&|folder| fs::remove_file(folder.path().join("tokenizer.json")).unwrap());
    assert!(missing.starts_with("FOLDER has no tokenizer.json; a model folder has"), "{missing}");
    let kind = |kind: &'static str| {
        reason(&|folder| set(folder, "config.json", |config| config["model_type"] = json!(kind)))
    };
    assert_eq!(kind("mpnet"), format!("FOLDER has a model of type `mpnet`; {SUPPORTED}"));
    for (file, key, value, expected) in [
        ("config.json", "hidden_act", json!("swish"), "the activation `swish`"),
        ("config.json", "position_embedding_type", json!("relative_key"), "relative positions"),
        ("1_Pooling/config.json", "pooling_mode_lasttoken", json!(true), "pooling_mode_lasttoken"),
        ("config.json", "num_attention_heads", json!(0), "no sensible number of heads"),
        ("config.json", "num_hidden_layers", json!("two"), "is not as expected"),
    ] {
        let told = reason(&|folder| set(folder, file, |config| config[key] = value.clone()));
        assert!(told.contains(expected), "{told}");
    }
    let modules = |module: Value| {
        reason(&|folder| set(folder, "modules.json", |modules| *modules = json!([module])))
    };
    assert!(modules(json!({"type": "x.Dense"})).contains("a module `Dense`"));
    let outside = modules(json!({"type": "x.Pooling", "path": "../../etc"}));
    assert!(outside.contains("not within this one"), "{outside}");
    assert!(open("/nowhere/at/all").unwrap_err().to_string().contains("has no config.json"));
}

#[tokio::test]
async fn damaged_weights_are_an_error_and_no_panic() {
    let whole = fs::read(data("bert").join("model.safetensors")).unwrap();
    let mut renamed = whole.clone();
    let place = renamed.windows(9).position(|part| part == b"LayerNorm").unwrap();
    renamed[place] = b'M';
    for damaged in [whole[..whole.len() / 2].to_vec(), b"{}".to_vec(), Vec::new(), renamed] {
        let folder = copy("bert");
        fs::write(folder.path().join("model.safetensors"), damaged).unwrap();
        let encoder = open(folder.path()).unwrap();
        let error = encoder.encode(&["x"], TextKind::Query).await.unwrap_err();
        assert!(matches!(&error, EncodeError::Lasting(text) if text.contains("model.safetensors")));
    }
    for (key, value) in [("num_attention_heads", 5), ("num_hidden_layers", 9)] {
        let folder = copy("bert");
        set(&folder, "config.json", |config| config[key] = json!(value));
        let encoder = open(folder.path()).unwrap();
        assert!(encoder.encode(&["x"], TextKind::Query).await.is_err(), "{key}");
    }
    let folder = copy("bert");
    fs::write(folder.path().join("tokenizer.json"), "{}").unwrap();
    let encoder = open(folder.path()).unwrap();
    let error = encoder.encode(&["x"], TextKind::Query).await.unwrap_err();
    assert!(error.to_string().contains("is not a tokenizer"), "{error}");
}

#[tokio::test]
async fn hostile_texts_are_read_in_part() {
    let encoder = open(data("bert")).unwrap();
    let long = "漢字 send \u{0}\u{200b}".repeat(20_000);
    let vectors = encoded(&encoder, &[&long, "", "\u{feff}"]).await;
    assert_eq!(vectors.len(), 3);
}
