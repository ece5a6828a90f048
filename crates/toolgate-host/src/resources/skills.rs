//! Skills over MCP (`io.modelcontextprotocol/skills`): those of servers, and ours for clients.
//!
//! A skill of a server is identified by the server and the URI. What the server lists of it, with the digests of all its
//! files, is pinned like a definition. Every file that is read is compared with its digest.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde_json::{Map, Value, json};
use toolgate_broker::CallContext;
use toolgate_catalog::ServerName;
use toolgate_mcp::{extensions, methods};
use toolgate_policy::definitions::{EntryKind, ServerEntry};
use toolgate_registry::{Skill, front_matter_json, read_skill_file, sha256, skill_files};
use toolgate_search::{Query, SearchIndex, ServerText, StrategyName, ToolKey, ToolText};
use toolgate_upstream::{CallOptions, StateKind};

use super::{
    ListKind, held,
    lists::{ListSource, ServerList},
    requests, uris,
    uris::UriTarget,
};
use crate::{
    host::ToolHost,
    meta::one_line,
    session::{CallFailure, ToolSession},
};

/// A skill that a server lists and that is not held back.
#[derive(Debug, Clone)]
pub(crate) struct ServerSkill {
    pub(crate) server: ServerName,
    /// The server's own URI.
    pub(crate) uri: String,
    pub(crate) name: String,
    description: String,
    entry: Value,
}

/// A skill that was read and checked.
#[derive(Debug)]
pub(crate) struct LoadedSkill {
    pub(crate) name: String,
    /// The text of its `SKILL.md`.
    pub(crate) text: String,
    /// The URIs of its other files, for clients.
    pub(crate) files: Vec<String>,
    /// Whether the server gives no digests.
    pub(crate) is_dynamic: bool,
}

/// Why a skill is not loaded.
#[derive(Debug)]
pub(crate) enum SkillFailure {
    Cancelled,
    Refused(String),
}

/// A file of a skill, and what its server lists of the skill. Every way to read a file uses it.
#[derive(Debug)]
pub(super) struct SkillFile {
    entry: Value,
    /// The server's own URI of the file.
    uri: String,
}

/// Why no file of a skill is read.
#[derive(Debug)]
pub(super) enum SkillRefusal {
    /// The skill is held back.
    Held,
    /// What the server lists of it cannot be used.
    Unusable(String),
}

/// The digest and the size of a file, as the server lists them.
#[derive(Debug)]
struct ListedFile {
    digest: String,
    size: u64,
}

const KIND: ListKind = ListKind::Skills;
/// What every host has to accept of a skill. Larger ones are not loaded.
const MAX_FILES: usize = 512;
const MAX_BYTES: u64 = 16 * 1024 * 1024;
const MAX_URI_BYTES: usize = 8 * 1024;
/// How many skills are searched.
const MAX_SEARCHED: usize = 5_000;
const PAGE_SKILLS: usize = 50;
const DESCRIPTION_CHARACTERS: usize = 200;
/// How our own skills are addressed. No name of a skill has a dot, so that none looks like one of a server.
const OWN_SCHEME: &str = "skill://";
const MAIN_FILE: &str = "SKILL.md";

impl ServerSkill {
    fn read(server: &ServerName, entry: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let front = entry.get("frontmatter")?;
        check_resources(entry).ok()?;
        Some(Self {
            server: server.clone(),
            uri: text(entry.get("uri")?)?,
            name: text(front.get("name")?)?,
            description: text(front.get("description")?)?,
            entry: entry.clone(),
        })
    }

    /// How a model loads it.
    pub(crate) fn how_to_load(&self) -> String {
        let (server, uri) = (one_line(self.server.as_str(), 64), one_line(&self.uri, 300));
        format!("load_skill with server: {server}, uri: {uri}")
    }

    /// A line about it, for a model.
    pub(crate) fn line(&self) -> String {
        let (name, how) = (one_line(&self.name, 64), self.how_to_load());
        format!("{name}: {} ({how})", one_line(&self.description, DESCRIPTION_CHARACTERS))
    }

    /// The same as data.
    pub(crate) fn row(&self) -> Value {
        json!({
            "kind": "skill", "name": one_line(&self.name, 64), "server": self.server, "uri": self.uri,
            "description": one_line(&self.description, DESCRIPTION_CHARACTERS),
        })
    }
}

impl ListedFile {
    fn check(&self, bytes: &[u8]) -> Result<(), String> {
        let size = bytes.len() as u64;
        if size != self.size {
            return Err(format!("it has {size} bytes, and the server lists {}", self.size));
        }
        if sha256(bytes) != self.digest {
            return Err("its content has another digest than the server lists".to_owned());
        }
        Ok(())
    }
}

impl SkillFile {
    fn new(entry: Value, uri: &str) -> Result<Self, SkillRefusal> {
        check_resources(&entry).map_err(SkillRefusal::Unusable)?;
        Ok(Self { entry, uri: uri.to_owned() })
    }

    /// Compares what was read with what the server lists: the size, the digest, and of the `SKILL.md` the front matter.
    pub(super) fn check(&self, read: &Value) -> Result<(), String> {
        let bytes = content(read).ok_or("it has no content")?;
        if let Some((_, listed)) = files_of(&self.entry).find(|(uri, _)| *uri == self.uri) {
            listed.check(&bytes)?;
        }
        if self.entry["uri"] != self.uri {
            return Ok(());
        }
        let text = String::from_utf8(bytes).map_err(|_| "it is no text")?;
        if text.len() as u64 > MAX_BYTES {
            return Err("it is too long".to_owned());
        }
        let front = front_matter_json(&text).ok_or("it has no front matter")?;
        if !is_same(&Value::Object(front), &self.entry["frontmatter"]) {
            return Err("its front matter is not the one that the server lists".to_owned());
        }
        Ok(())
    }
}

impl SkillRefusal {
    fn why(self) -> String {
        match self {
            Self::Held => "it is new or has changed, and is held back until a person approves it: `toolgate definitions`"
                .to_owned(),
            Self::Unusable(why) => why,
        }
    }
}

/// The bytes of the one content of a read resource.
fn content(read: &Value) -> Option<Vec<u8>> {
    let [content] = read.get("contents")?.as_array()?.as_slice() else { return None };
    match (content.get("text"), content.get("blob")) {
        (Some(Value::String(text)), _) => Some(text.clone().into_bytes()),
        (None, Some(Value::String(blob))) => BASE64.decode(blob).ok(),
        _ => None,
    }
}

/// Checks the form and the size of what a server lists of a skill.
fn check_resources(entry: &Value) -> Result<(), String> {
    let files = match entry.get("resources") {
        Some(Value::String(word)) if word == "dynamic" => return Ok(()),
        Some(Value::Array(files)) => files,
        _ => return Err("the server lists neither its files nor that they are dynamic".to_owned()),
    };
    if files.len() > MAX_FILES {
        return Err(format!("it has {} files, more than {MAX_FILES}", files.len()));
    }
    let mut total = 0_u64;
    for file in files {
        let (_, listed) =
            listed_file(file).ok_or("the server lists a file without a sha256 digest or size")?;
        total = total.saturating_add(listed.size);
    }
    if total > MAX_BYTES {
        return Err(format!("its files have {total} bytes, more than {MAX_BYTES}"));
    }
    let main = entry.get("uri");
    if !files.iter().any(|file| file.get("uri") == main) {
        return Err("the server lists no digest of its SKILL.md".to_owned());
    }
    Ok(())
}

fn listed_file(file: &Value) -> Option<(&str, ListedFile)> {
    let uri = file.get("uri")?.as_str().filter(|uri| uri.len() <= MAX_URI_BYTES)?;
    let digest = file.get("digest")?.as_str()?;
    let hex = digest.strip_prefix("sha256:")?;
    let is_hex = hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    let size = file.get("size")?.as_u64()?;
    is_hex.then(|| (uri, ListedFile { digest: digest.to_ascii_lowercase(), size }))
}

/// The files of an entry, as far as they can be used.
fn files_of(entry: &Value) -> impl Iterator<Item = (&str, ListedFile)> {
    let files = entry.get("resources").and_then(Value::as_array);
    files.into_iter().flatten().take(MAX_FILES).filter_map(listed_file)
}

/// The skills of the connected servers that the session may use.
pub(crate) async fn of_servers(session: &ToolSession) -> Vec<ServerSkill> {
    let host = session.host();
    if !host.has_server_skills() {
        return Vec::new();
    }
    session.begin().await;
    let options = CallOptions::default();
    let lists = requests::lists_of(host, KIND, &options, &[StateKind::Ready]).await;
    let mut all = Vec::new();
    for (server, known) in lists.unwrap_or_default() {
        if !session.sees(&server)
            || host.is_off(&server)
            || requests::is_hidden(host, &server, KIND)
        {
            continue;
        }
        let held = held::held_in(host, &server, KIND, &known.list).await;
        let shows = requests::shows(session, &server, KIND);
        let skills =
            known.list.items.iter().filter_map(|item| ServerSkill::read(&server, &item.value));
        all.extend(
            skills.filter(|skill| !held.contains_key(skill.uri.as_str()) && shows(&skill.uri)),
        );
    }
    all
}

/// The skills of servers whose names and descriptions have words of the queries, best first.
pub(crate) async fn matching(
    session: &ToolSession,
    queries: &[String],
    limit: usize,
) -> Vec<ServerSkill> {
    let mut skills = of_servers(session).await;
    skills.truncate(MAX_SEARCHED);
    if skills.is_empty() {
        return skills;
    }
    let mut index = SearchIndex::ranked_by(StrategyName::Bm25);
    let keys: Vec<ToolKey> =
        (0..skills.len()).map(|place| ToolKey::new(place.to_string())).collect();
    let texts = keys.iter().zip(&skills).map(|(key, skill)| {
        let (name, description) = (skill.name.as_str(), skill.description.as_str());
        (key.clone(), ToolText { name, description, ..ToolText::default() })
    });
    let texts: Vec<(ToolKey, ToolText<'_>)> = texts.collect();
    index.replace_server("skills", ServerText::default(), &texts);
    let mut places: Vec<usize> = Vec::new();
    for query in queries {
        for hit in index.search(&Query::new(query, limit)).unwrap_or_default() {
            let place = hit.key.as_str().parse().unwrap_or(usize::MAX);
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    places.into_iter().filter_map(|place| skills.get(place).cloned()).take(limit).collect()
}

/// The skill of a file; `None` if the file belongs to no skill that the server lists, or gives for its URI.
pub(super) async fn file_of(
    host: &ToolHost,
    server: &ServerName,
    uri: &str,
) -> Option<Result<SkillFile, SkillRefusal>> {
    if !host.extensions_of(server).contains_key(extensions::SKILLS) {
        return None;
    }
    let list = current_list(host, server).await;
    let held = held::held_in(host, server, KIND, &list).await;
    let main = |item: &Value| item.get("uri").and_then(Value::as_str).unwrap_or_default() == uri;
    let lists = |item: &Value| {
        let files = item.get("resources").and_then(Value::as_array);
        files.into_iter().flatten().any(|file| file.get("uri").is_some_and(|file| file == uri))
    };
    // The skill whose `SKILL.md` it is, then those that have it among their files.
    let items = || list.items.iter().map(|item| &item.value);
    let owners = items().filter(|item| main(item));
    let owners = owners.chain(items().filter(|item| !main(item) && lists(item)));
    let mut refusal = None;
    for entry in owners {
        let key = entry.get("uri").and_then(Value::as_str).unwrap_or_default();
        let file = if held.contains_key(key) {
            Err(SkillRefusal::Held)
        } else {
            SkillFile::new(entry.clone(), uri)
        };
        match file {
            Ok(file) => return Some(Ok(file)),
            Err(refused) => _ = refusal.get_or_insert(refused),
        }
        if main(entry) {
            break;
        }
    }
    if refusal.is_some() {
        return refusal.map(Err);
    }
    if !uri.ends_with(MAIN_FILE) {
        return None;
    }
    match unlisted_entry(host, server, uri).await {
        Ok(entry) => Some(SkillFile::new(entry, uri)),
        Err(SkillRefusal::Held) => Some(Err(SkillRefusal::Held)),
        // The server knows no such skill: it is a resource like others.
        Err(SkillRefusal::Unusable(_)) => None,
    }
}

/// The skills that a server lists now.
async fn current_list(host: &ToolHost, server: &ServerName) -> Arc<ServerList> {
    host.connect(server.as_str()).await;
    let lists = &host.inner.resources.lists;
    let source = ListSource::new(host.broker(), server, None);
    lists.refresh(host.broker(), std::slice::from_ref(&source), KIND).await;
    lists.known(&source, KIND).list
}

/// The entry of a skill, listed or not, unless it is held back.
async fn entry_of(host: &ToolHost, server: &ServerName, uri: &str) -> Result<Value, SkillRefusal> {
    let list = current_list(host, server).await;
    if let Some(item) = list.items.iter().find(|item| item.value["uri"] == uri) {
        let held = held::held_in(host, server, KIND, &list).await;
        let is_held = held.contains_key(uri);
        return if is_held { Err(SkillRefusal::Held) } else { Ok(item.value.clone()) };
    }
    unlisted_entry(host, server, uri).await
}

/// The entry of a skill that is not listed, unless it is held back.
async fn unlisted_entry(
    host: &ToolHost,
    server: &ServerName,
    uri: &str,
) -> Result<Value, SkillRefusal> {
    let unusable = |why: &str| SkillRefusal::Unusable(one_line(why, DESCRIPTION_CHARACTERS));
    let params = Some(json!({ "uri": uri }));
    let options = CallOptions::default();
    let got = host.broker().request_unjudged(server, methods::SKILLS_GET, params, options).await;
    let mut got = got.map_err(|error| unusable(&error.to_string()))?;
    let entry = got.get_mut("skill").map(Value::take).unwrap_or_default();
    let filter = host.inner.live_catalog.filter();
    let judged = ServerEntry::new(server, EntryKind::Skill, entry.clone())
        .filter(|entry| &*entry.key == uri);
    let judged = judged.ok_or_else(|| unusable("the server answers with another skill"))?;
    let owner = server.clone();
    let judging = tokio::task::spawn_blocking(move || {
        filter.judges_entries()
            && !filter.hold_entries(&owner, EntryKind::Skill, &[judged], false).is_empty()
    });
    if judging.await.unwrap_or(true) { Err(SkillRefusal::Held) } else { Ok(entry) }
}

/// Loads a skill by its server and URI: reads its `SKILL.md`, and compares it with what the server lists.
pub(crate) async fn load(
    session: &ToolSession,
    server: &ServerName,
    uri: &str,
    options: &CallOptions,
) -> Result<LoadedSkill, SkillFailure> {
    let refused = |why: &str| SkillFailure::Refused(why.to_owned());
    let host = session.host();
    session.begin().await;
    let is_known = host.catalog().read().server(server.as_str()).is_some();
    if !is_known || !session.sees(server) || host.is_off(server) {
        return Err(refused("there is no such server"));
    }
    let uri = match uris::theirs(uri) {
        Some((owner, UriTarget::Resource(theirs))) if owner == *server => theirs,
        _ => uri.to_owned(),
    };
    let entry = entry_of(host, server, &uri).await;
    let file = entry.and_then(|entry| SkillFile::new(entry, &uri));
    let file = file.map_err(|refusal| SkillFailure::Refused(refusal.why()))?;
    let params = Map::from_iter([("uri".to_owned(), json!(uris::ours(server, &uri)))]);
    let context = CallContext::direct(session.context());
    let read = requests::read_in(session, params, &context, options.clone()).await;
    let read = read.map_err(|failure| match CallFailure::from(failure) {
        CallFailure::Cancelled => SkillFailure::Cancelled,
        CallFailure::UnknownTool(message) | CallFailure::Refused { message, .. } => {
            SkillFailure::Refused(message)
        }
    })?;
    file.check(&read).map_err(SkillFailure::Refused)?;
    let text = content(&read).and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or_else(|| refused("it is no text"))?;
    let entry = file.entry;
    let name = entry["frontmatter"]["name"].as_str().unwrap_or_default().to_owned();
    let files = files_of(&entry).filter(|(name, _)| *name != uri);
    let files = files.map(|(name, _)| uris::ours(server, name)).collect();
    Ok(LoadedSkill { name, text, files, is_dynamic: entry["resources"].is_string() })
}

/// Whether two front matters say the same. Scalars are compared as texts and numbers: readers of YAML differ in the types
/// of unquoted ones.
fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, value)| right.get(key).is_some_and(|other| is_same(value, other)))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| is_same(left, right))
        }
        (Value::Object(_) | Value::Array(_), _) | (_, Value::Object(_) | Value::Array(_)) => false,
        (left, right) => {
            let text = |value: &Value| match value {
                Value::String(text) => text.trim().to_owned(),
                Value::Null => String::new(),
                other => other.to_string(),
            };
            let (left, right) = (text(left), text(right));
            let number = |text: &str| text.parse::<f64>().ok();
            let same_number = || {
                number(&left)
                    .zip(number(&right))
                    .is_some_and(|(left, right)| left.to_bits() == right.to_bits())
            };
            left == right || same_number()
        }
    }
}

/// Answers `skills/list`: our skills, then those of servers.
pub(super) async fn list(
    session: &ToolSession,
    params: &Map<String, Value>,
    options: &CallOptions,
) -> Result<Value, CallFailure> {
    let unknown = || requests::invalid("the cursor is unknown or no longer valid".to_owned());
    let from = match params.get("cursor") {
        None | Some(Value::Null) => 0,
        Some(cursor) => {
            cursor.as_str().and_then(|text| text.parse::<usize>().ok()).ok_or_else(unknown)?
        }
    };
    session.await_entries(KIND, options).await;
    let own = Arc::clone(&session.host().settings().directory.skills);
    let of_servers = of_servers(session).await;
    let total = own.skills.len() + of_servers.len();
    if from > total {
        return Err(unknown());
    }
    let until = (from + PAGE_SKILLS).min(total);
    let shown: Vec<Skill> = own.skills.iter().skip(from).take(PAGE_SKILLS).cloned().collect();
    let mut skills = own_entries(shown).await;
    let rest = of_servers.iter().skip(from.saturating_sub(own.skills.len()));
    let room = until - from - skills.len();
    skills.extend(rest.take(room).map(|skill| for_clients(&skill.server, skill.entry.clone())));
    let mut result = json!({ "skills": skills });
    if until < total {
        result["nextCursor"] = json!(until.to_string());
    }
    Ok(result)
}

/// Answers `skills/get`.
pub(super) async fn get(session: &ToolSession, uri: &str) -> Result<Value, CallFailure> {
    let host = session.host();
    session.begin().await;
    let missing = || {
        requests::invalid(format!("there is no skill {}", one_line(uri, DESCRIPTION_CHARACTERS)))
    };
    if let Some((skill, MAIN_FILE)) = own_file(host, uri) {
        let skill = own_entries(vec![skill]).await.pop().ok_or_else(missing)?;
        return Ok(json!({ "skill": skill }));
    }
    let Some((server, UriTarget::Resource(theirs))) = uris::theirs(uri) else {
        return Err(missing());
    };
    let is_usable = host.extensions_of(&server).contains_key(extensions::SKILLS)
        && session.sees(&server)
        && !host.is_off(&server)
        && !requests::is_hidden(host, &server, KIND)
        && requests::shows(session, &server, KIND)(&theirs);
    let entry = if is_usable { entry_of(host, &server, &theirs).await.ok() } else { None };
    let entry = entry.filter(|entry| check_resources(entry).is_ok()).ok_or_else(missing)?;
    Ok(json!({ "skill": for_clients(&server, entry) }))
}

/// The entry of a server's skill with URIs for clients.
fn for_clients(server: &ServerName, mut entry: Value) -> Value {
    uris::to_client_uri(server, Some(&mut entry));
    for file in entry.get_mut("resources").and_then(Value::as_array_mut).into_iter().flatten() {
        uris::to_client_uri(server, Some(file));
    }
    entry
}

/// The entries of our own skills.
async fn own_entries(skills: Vec<Skill>) -> Vec<Value> {
    let reading = tokio::task::spawn_blocking(move || {
        let entry = |skill: &Skill| {
            let uri = |path: &str| format!("{OWN_SCHEME}{}/{}", skill.name, encoded(path));
            let files = skill_files(skill).into_iter().map(
                |file| json!({ "uri": uri(&file.path), "digest": file.digest, "size": file.size }),
            );
            let files: Vec<Value> = files.collect();
            json!({ "uri": uri(MAIN_FILE), "frontmatter": skill.front_matter, "resources": files })
        };
        skills.iter().map(entry).collect::<Vec<Value>>()
    });
    reading.await.unwrap_or_default()
}

/// A path as a part of a URI.
fn encoded(path: &str) -> String {
    path.split('/').map(uris::encoded).collect::<Vec<String>>().join("/")
}

/// Our own skill that a URI names, and the path of the file in it.
fn own_file<'u>(host: &ToolHost, uri: &'u str) -> Option<(Skill, &'u str)> {
    let (name, path) = uri.strip_prefix(OWN_SCHEME)?.split_once('/')?;
    Some((host.settings().directory.skills.named(name)?.clone(), path))
}

/// Reads a file of our own skills; `None` for other URIs.
pub(super) async fn read_own(
    session: &ToolSession,
    uri: &str,
) -> Option<Result<Value, CallFailure>> {
    let (skill, path) = own_file(session.host(), uri)?;
    let path = uris::decoded(path)?.into_owned();
    let extension = std::path::Path::new(&path).extension();
    let is_markdown = extension.is_some_and(|extension| extension.eq_ignore_ascii_case("md"));
    let reading = tokio::task::spawn_blocking(move || read_skill_file(&skill, &path).ok());
    let Some(bytes) = reading.await.ok().flatten() else {
        return Some(Err(requests::not_found(uri)));
    };
    let content = match String::from_utf8(bytes) {
        Ok(text) => {
            let kind = if is_markdown { "text/markdown" } else { "text/plain" };
            json!({ "uri": uri, "mimeType": kind, "text": text })
        }
        Err(error) => {
            let blob = BASE64.encode(error.as_bytes());
            json!({ "uri": uri, "mimeType": "application/octet-stream", "blob": blob })
        }
    };
    Some(Ok(json!({ "contents": [content] })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_checked_is_a_skill() {
        let digest = sha256(b"abc");
        let file = |uri: &str| json!({ "uri": uri, "digest": digest, "size": 3 });
        let entry =
            |resources: Value| json!({ "uri": "skill://a/SKILL.md", "resources": resources });
        assert_eq!(check_resources(&entry(json!([file("skill://a/SKILL.md")]))), Ok(()));
        assert_eq!(check_resources(&entry(json!("dynamic"))), Ok(()));
        let large = json!({ "uri": "skill://a/SKILL.md", "digest": digest, "size": MAX_BYTES + 1 });
        for wrong in [
            json!(null),
            json!("other"),
            json!([]),
            json!([file("skill://a/x")]),
            json!([large]),
            json!([{ "uri": "skill://a/SKILL.md", "digest": "sha256:1", "size": 3 }]),
            json!([{ "uri": "skill://a/SKILL.md", "digest": digest }]),
            json!(vec![file("skill://a/SKILL.md"); MAX_FILES + 1]),
        ] {
            assert!(check_resources(&entry(wrong.clone())).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_has_the_digest_and_the_size_that_is_listed() {
        let uri = "skill://a/x";
        let main = "skill://a/SKILL.md";
        let files =
            [main, uri].map(|uri| json!({ "uri": uri, "digest": sha256(b"abc"), "size": 3 }));
        let entry = json!({ "uri": main, "resources": files });
        let file = SkillFile::new(entry, uri).unwrap();
        let read = |content: Value| file.check(&json!({ "contents": [content] }));
        assert_eq!(read(json!({ "text": "abc" })), Ok(()));
        assert_eq!(read(json!({ "blob": "YWJj" })), Ok(()));
        assert!(read(json!({ "text": "abd" })).is_err());
        assert!(read(json!({ "text": "abcd" })).is_err());
        assert!(read(json!({})).is_err());
        assert!(
            file.check(&json!({ "contents": [{ "text": "abc" }, { "text": "more" }] })).is_err()
        );
    }

    #[test]
    fn front_matters_are_compared_by_what_they_say() {
        let same = |left: Value, right: Value| is_same(&left, &right);
        assert!(same(
            json!({ "a": "1.0", "b": ["x"], "c": null }),
            json!({ "c": "", "b": ["x"], "a": 1.0 })
        ));
        assert!(same(json!({ "a": true }), json!({ "a": "true" })));
        assert!(!same(json!({ "a": 1 }), json!({ "a": 2 })));
        assert!(!same(json!({ "a": 1 }), json!({ "a": 1, "allowed-tools": "x" })));
        assert!(!same(json!({ "a": {} }), json!({ "a": "" })));
    }
}
