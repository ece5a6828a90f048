//! Where servers are found.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};
use toolgate_registry::{Registry, RegistryServers, RegistrySettings, ServerSource};
use toolgate_testkit::{RegistryEndpoint, RegistryFault};

fn server(name: &str, version: &str) -> Value {
    json!({ "name": name, "version": version, "description": format!("About {name}"),
            "packages": [{ "registryType": "npm", "identifier": "x", "version": version }] })
}

fn registry(sources: Vec<ServerSource>, cache: Option<&Path>, max_age: Duration) -> Registry {
    let cache = cache.map(Path::to_owned);
    Registry::new(RegistrySettings { sources, max_age, cache })
}

fn at(endpoint: &RegistryEndpoint) -> Vec<ServerSource> {
    vec![ServerSource::Url(endpoint.url().to_owned())]
}

fn names(known: &RegistryServers) -> Vec<String> {
    known.entries.iter().map(|entry| format!("{} {}", entry.name, entry.version)).collect()
}

const DAY: Duration = Duration::from_hours(24);

#[tokio::test]
async fn all_pages_are_read_once_and_cached() {
    let servers: Vec<Value> = (0..5).map(|number| server(&format!("a/{number}"), "1")).collect();
    let endpoint = RegistryEndpoint::start(servers).await.unwrap();
    let cache = tempfile::tempdir().unwrap();
    let first = registry(at(&endpoint), Some(cache.path()), DAY);
    assert_eq!(names(&first.servers().await), ["a/0 1", "a/1 1", "a/2 1", "a/3 1", "a/4 1"]);
    assert_eq!(endpoint.requests(), 3);
    assert_eq!(first.servers().await.entries.len(), 5);
    let second = registry(at(&endpoint), Some(cache.path()), DAY);
    assert_eq!(second.servers().await.entries.len(), 5);
    assert_eq!(endpoint.requests(), 3, "neither asks again");

    endpoint.replace(vec![server("b/new", "2")]);
    let impatient = registry(at(&endpoint), Some(cache.path()), Duration::ZERO);
    assert_eq!(names(&impatient.servers().await), ["b/new 2"]);
}

#[tokio::test]
async fn without_a_response_the_cache_is_used_and_its_age_shown() {
    let endpoint = RegistryEndpoint::start(vec![server("a/b", "1")]).await.unwrap();
    let cache = tempfile::tempdir().unwrap();
    let before = registry(at(&endpoint), Some(cache.path()), DAY);
    assert!(before.servers().await.notes.is_empty());

    endpoint.misbehave(Some(RegistryFault::Status(503)));
    let offline = registry(at(&endpoint), Some(cache.path()), Duration::ZERO);
    let known = offline.servers().await;
    assert_eq!(names(&known), ["a/b 1"]);
    let note = known.notes[0].replace(endpoint.url(), "REGISTRY");
    insta::assert_snapshot!(note, @"REGISTRY cannot be reached: it responds with status 503; its list of 0 minutes ago is used");
    let asked = endpoint.requests();
    offline.servers().await;
    assert_eq!(endpoint.requests(), asked, "it is left alone for a while");

    let empty = tempfile::tempdir().unwrap();
    let known = registry(at(&endpoint), Some(empty.path()), DAY).servers().await;
    assert!(known.entries.is_empty());
    insta::assert_snapshot!(known.notes[0].replace(endpoint.url(), "REGISTRY"), @"REGISTRY cannot be reached: it responds with status 503; its servers are unknown");
}

#[tokio::test]
async fn a_bad_registry_affects_no_other() {
    let endpoint = RegistryEndpoint::start(Vec::new()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("own.json"), server("own/one", "1").to_string()).unwrap();
    let mut told = String::new();
    for fault in [
        RegistryFault::Circle,
        RegistryFault::Endless,
        RegistryFault::Flood(17 * 1024 * 1024),
        RegistryFault::Nonsense,
        RegistryFault::Status(302),
    ] {
        endpoint.misbehave(Some(fault));
        let mut sources = at(&endpoint);
        sources.push(ServerSource::Path(folder.path().to_owned()));
        let known = registry(sources, None, DAY).servers().await;
        assert_eq!(names(&known), ["own/one 1"], "{fault:?}");
        told.push_str(&known.notes.join("\n").replace(endpoint.url(), "REGISTRY"));
        told.push('\n');
    }
    insta::assert_snapshot!(told, @"
    REGISTRY does not respond like a registry: its pages repeat; its servers are unknown
    REGISTRY has too many servers; the rest is left out
    REGISTRY does not respond like a registry: a page is larger than 16 MiB; its servers are unknown
    REGISTRY does not respond like a registry: there is no list of `servers`; its servers are unknown
    REGISTRY cannot be reached: it responds with status 302; its servers are unknown
    ");
}

#[tokio::test]
async fn another_version_is_asked_for_by_name() {
    let servers = vec![server("a/b", "1.0.0"), server("a/b", "2.0.0")];
    let endpoint = RegistryEndpoint::start(servers).await.unwrap();
    let registry = registry(at(&endpoint), None, DAY);
    let version =
        async |wanted: Option<&str>| registry.entry("a/b", wanted).await.map(|entry| entry.version);
    assert_eq!(version(None).await.as_deref(), Some("2.0.0"));
    assert_eq!(version(Some("1.0.0")).await.as_deref(), Some("1.0.0"));
    assert_eq!(version(Some("3.0.0")).await, None);
    assert_eq!(version(Some("../../x")).await, None);
    assert!(registry.entry("a/c", None).await.is_none());
}

#[tokio::test]
async fn files_are_read_again_and_the_first_source_wins() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(place("servers/deep")).unwrap();
    std::fs::write(place("servers/deep/server.json"), server("a/deep", "1").to_string()).unwrap();
    let list = json!({ "servers": [server("a/one", "1"), { "name": 3 }, { "server": server("a/two", "1") }] });
    std::fs::write(place("servers/list.json"), list.to_string()).unwrap();
    std::fs::write(place("servers/broken.json"), "{").unwrap();
    std::fs::write(place("servers/notes.txt"), "not read").unwrap();
    let file = place("first.json");
    std::fs::write(&file, json!([server("a/one", "9")]).to_string()).unwrap();
    let sources = vec![ServerSource::Path(file.clone()), ServerSource::Path(place("servers"))];
    let registry = registry(sources, None, DAY);
    let known = registry.servers().await;
    assert_eq!(names(&known), ["a/one 9", "a/deep 1", "a/two 1"]);
    assert_eq!(known.notes.len(), 1);
    assert!(known.notes[0].contains("broken.json cannot be read"), "{:?}", known.notes);

    std::fs::write(&file, json!([server("a/one", "10")]).to_string()).unwrap();
    assert_eq!(names(&registry.servers().await)[0], "a/one 10");
    std::fs::remove_file(&file).unwrap();
    let known = registry.servers().await;
    assert_eq!(names(&known), ["a/deep 1", "a/one 1", "a/two 1"]);
    assert_eq!(known.notes.len(), 2);
}
