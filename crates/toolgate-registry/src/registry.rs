//! The servers of all sources together.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::join_all;
use parking_lot::Mutex;

use crate::{
    entry::{RegistryEntry, is_version},
    error::RegistryError,
    files::{self, Cached},
    remote::{RegistryClient, ServerList},
};

/// A source of servers that are not configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerSource {
    /// A file, or a folder of files.
    Path(PathBuf),
    /// A registry that speaks the API of the official one.
    Url(String),
}

/// The settings of a [`Registry`].
#[derive(Debug, Clone)]
pub struct RegistrySettings {
    /// The sources, in order. Of two servers with one name, the one of the first source counts.
    pub sources: Vec<ServerSource>,
    /// How old the list of a remote registry may be before it is fetched again.
    pub max_age: Duration,
    /// The folder where lists are cached; without it, they are in memory only.
    pub cache: Option<PathBuf>,
}

/// The servers of all sources.
#[derive(Debug)]
pub struct Registry {
    settings: RegistrySettings,
    remotes: Vec<RemoteRegistry>,
    /// The last result, which is used again while nothing has changed.
    merged: Mutex<MergedList>,
}

#[derive(Debug, Default)]
struct MergedList {
    files: Vec<Vec<RegistryEntry>>,
    /// The version of each remote registry's list.
    versions: Vec<u64>,
    entries: Arc<Vec<RegistryEntry>>,
}

/// The servers of a registry at one point in time.
#[derive(Debug, Clone, Default)]
pub struct RegistryServers {
    /// The servers, each name once. The same allocation as long as nothing changes.
    pub entries: Arc<Vec<RegistryEntry>>,
    /// Remarks for the reader: sources that failed, or whose list is old.
    pub notes: Vec<String>,
}

impl RegistryServers {
    /// The servers whose name, title or description has all words of `query`, those with a word in the name first.
    /// Without a word, all of them.
    pub fn matching(&self, query: &str) -> Vec<&RegistryEntry> {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        let matches = self.entries.iter().filter_map(|entry| {
            let name = entry.name.to_lowercase();
            let title = entry.title.as_deref().unwrap_or_default();
            let text = format!("{title} {}", entry.description).to_lowercase();
            let in_name = words.iter().filter(|word| name.contains(word.as_str())).count();
            let is_match = words.iter().all(|word| name.contains(word) || text.contains(word));
            is_match.then_some((in_name, entry))
        });
        let mut matches: Vec<(usize, &RegistryEntry)> = matches.collect();
        matches.sort_by_key(|(in_name, _)| std::cmp::Reverse(*in_name));
        matches.into_iter().map(|(_, entry)| entry).collect()
    }
}

/// A remote registry and the last list that it sent.
#[derive(Debug)]
struct RemoteRegistry {
    client: Result<RegistryClient, RegistryError>,
    cache_file: Option<PathBuf>,
    list: Mutex<RemoteList>,
    /// Held while the list is fetched, so that it is fetched once.
    refreshing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct RemoteList {
    entries: Vec<RegistryEntry>,
    /// Counts the lists.
    version: u64,
    /// When this process got the list; `None` while there is none.
    received: Option<Instant>,
    /// The age of the list at that time, if it came from the cache.
    age_before: Duration,
    failed: Option<(Instant, RegistryError)>,
    /// Why the list is not complete.
    shortfall: Option<RegistryError>,
}

/// How long a remote registry that failed is not contacted again.
const RETRY_AFTER: Duration = Duration::from_mins(1);

impl Registry {
    /// Creates a registry of these sources, without reading any of them.
    pub fn new(settings: RegistrySettings) -> Self {
        let urls = settings.sources.iter().filter_map(|source| match source {
            ServerSource::Url(url) => Some(url),
            ServerSource::Path(_) => None,
        });
        let remotes = urls.map(|url| {
            let file = settings.cache.as_ref().map(|folder| {
                let digest = blake3::hash(url.as_bytes()).to_hex();
                folder.join(format!("{}.json", &digest[..16]))
            });
            RemoteRegistry {
                client: RegistryClient::new(url),
                cache_file: file,
                list: Mutex::default(),
                refreshing: tokio::sync::Mutex::default(),
            }
        });
        let remotes = remotes.collect();
        Self { settings, remotes, merged: Mutex::default() }
    }

    /// Returns all servers. Files are read again each time. Lists of remote registries are fetched
    /// if they are too old. If that fails, the old list is used.
    pub async fn servers(&self) -> RegistryServers {
        let refreshed = self.remotes.iter().map(|remote| remote.refresh(self.settings.max_age));
        join_all(refreshed).await;
        let paths: Vec<PathBuf> =
            self.settings.sources.iter().filter_map(ServerSource::path).collect();
        let read = tokio::task::spawn_blocking(move || {
            let mut problems = Vec::new();
            let read: Vec<_> = paths.iter().map(|path| files::read(path, &mut problems)).collect();
            (read, problems)
        });
        let (files, mut notes) = read.await.unwrap_or_default();
        for remote in &self.remotes {
            remote.add_notes(&mut notes);
        }
        notes.truncate(10);
        RegistryServers { entries: self.merge(files), notes }
    }

    /// Merges the lists of all sources, in their order, each name once.
    fn merge(&self, files: Vec<Vec<RegistryEntry>>) -> Arc<Vec<RegistryEntry>> {
        let mut merged = self.merged.lock();
        let versions: Vec<u64> =
            self.remotes.iter().map(|remote| remote.list.lock().version).collect();
        if merged.files == files && merged.versions == versions {
            return Arc::clone(&merged.entries);
        }
        let (mut read, mut remotes) = (files.iter(), self.remotes.iter());
        let mut entries: Vec<RegistryEntry> = Vec::new();
        let mut names: HashSet<String> = HashSet::new();
        for source in &self.settings.sources {
            let mut add = |listed: &[RegistryEntry]| {
                let new = listed.iter().filter(|entry| names.insert(entry.name.clone()));
                entries.extend(new.cloned());
            };
            match source {
                ServerSource::Path(_) => add(read.next().map_or(&[], Vec::as_slice)),
                ServerSource::Url(_) => {
                    if let Some(remote) = remotes.next() {
                        add(&remote.list.lock().entries);
                    }
                }
            }
        }
        let entries = Arc::new(entries);
        *merged = MergedList { files, versions, entries: Arc::clone(&entries) };
        entries
    }

    /// Finds a server in a version; without one, in the version that is listed.
    pub async fn entry(&self, name: &str, version: Option<&str>) -> Option<RegistryEntry> {
        let servers = self.servers().await;
        let listed = servers.entries.iter().find(|entry| entry.name == name)?;
        let Some(version) = version.filter(|version| *version != listed.version) else {
            return Some(listed.clone());
        };
        let mut clients = self.remotes.iter().filter_map(|remote| remote.client.as_ref().ok());
        let client = clients.find(|client| client.name == listed.source)?;
        let sent = client.version(name, version).await.ok().filter(|_| is_version(version))?;
        let entry = RegistryEntry::read(&sent, &client.name)?;
        (entry.name == name && entry.version == version).then_some(entry)
    }
}

impl ServerSource {
    fn path(&self) -> Option<PathBuf> {
        match self {
            Self::Path(path) => Some(path.clone()),
            Self::Url(_) => None,
        }
    }
}

impl RemoteRegistry {
    async fn refresh(&self, max_age: Duration) {
        let _refreshing = self.refreshing.lock().await;
        let Ok(client) = &self.client else { return };
        if self.list.lock().received.is_none() {
            self.load_cache(client).await;
        }
        {
            let list = self.list.lock();
            let is_fresh = list.age().is_some_and(|age| age < max_age);
            let failed = list.failed.as_ref().is_some_and(|(at, _)| at.elapsed() < RETRY_AFTER);
            if is_fresh || failed {
                return;
            }
        }
        match client.servers().await {
            Ok(ServerList { servers, shortfall }) => {
                let cached = Cached::now(servers);
                let entries = files::entries_of(&cached.servers.clone().into(), &client.name);
                self.replace(RemoteList { entries, shortfall, ..RemoteList::default() });
                if let Some(file) = self.cache_file.clone() {
                    let saved = tokio::task::spawn_blocking(move || cached.save(&file)).await;
                    if !matches!(saved, Ok(Ok(()))) {
                        tracing::debug!(registry = client.name, "the list could not be cached");
                    }
                }
            }
            Err(error) => self.list.lock().failed = Some((Instant::now(), error)),
        }
    }

    /// Reads the list that an earlier process has cached.
    async fn load_cache(&self, client: &RegistryClient) {
        let Some(file) = self.cache_file.clone() else { return };
        let loaded = tokio::task::spawn_blocking(move || Cached::load(&file)).await;
        if let Ok(Some(cached)) = loaded {
            let age_before = cached.age();
            let entries = files::entries_of(&cached.servers.into(), &client.name);
            self.replace(RemoteList { entries, age_before, ..RemoteList::default() });
        }
    }

    fn replace(&self, new: RemoteList) {
        let mut list = self.list.lock();
        *list = RemoteList { version: list.version + 1, received: Some(Instant::now()), ..new };
    }

    fn add_notes(&self, notes: &mut Vec<String>) {
        if let Err(error) = &self.client {
            notes.push(error.to_string());
        }
        let list = self.list.lock();
        if let Some((_, error)) = &list.failed {
            notes.push(match list.age() {
                Some(age) => format!("{error}; its list of {} ago is used", rounded(age)),
                None => format!("{error}; its servers are unknown"),
            });
        }
        notes.extend(list.shortfall.as_ref().map(ToString::to_string));
    }
}

impl RemoteList {
    fn age(&self) -> Option<Duration> {
        self.received.map(|received| received.elapsed() + self.age_before)
    }
}

fn rounded(age: Duration) -> String {
    let minutes = age.as_secs() / 60;
    match minutes {
        0..120 => format!("{minutes} minutes"),
        120..2_880 => format!("{} hours", minutes / 60),
        _ => format!("{} days", minutes / 1_440),
    }
}
