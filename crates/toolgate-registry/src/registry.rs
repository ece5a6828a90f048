//! All sources together.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::join_all;
use parking_lot::Mutex;

use crate::{
    entry::{Entry, is_version},
    files::{self, Cached},
    remote::Remote,
};

/// Where servers are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file, or a folder of files.
    Path(PathBuf),
    /// A registry that speaks the API of the official one.
    Url(String),
}

/// What a registry is made of.
#[derive(Debug, Clone)]
pub struct RegistrySettings {
    /// In this order; of two servers with one name, that of the first source counts.
    pub sources: Vec<Source>,
    /// How long what a registry said is used before it is asked again.
    pub max_age: Duration,
    /// Where that is kept; only in memory where unset.
    pub cache: Option<PathBuf>,
}

/// The servers of all sources.
#[derive(Debug)]
pub struct Registry {
    settings: RegistrySettings,
    remotes: Vec<Shelf>,
    /// What was known last, so that what has not changed is not put together again.
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    files: Vec<Vec<Entry>>,
    /// How often each registry has said something.
    said: Vec<u64>,
    entries: Arc<Vec<Entry>>,
}

/// What is known at a moment.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The servers, each name once. The same allocation as long as nothing changes.
    pub entries: Arc<Vec<Entry>>,
    /// What a reader should know of it: sources that gave nothing, or something old.
    pub notes: Vec<String>,
}

/// What one registry said.
#[derive(Debug)]
struct Shelf {
    remote: Result<Remote, String>,
    file: Option<PathBuf>,
    held: Mutex<Held>,
    /// One question at a time.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Held {
    entries: Vec<Entry>,
    /// How often something was said.
    count: u64,
    /// When they were said; never, if nothing is held.
    said: Option<Instant>,
    /// Said before this process began.
    older_by: Duration,
    failed: Option<(Instant, String)>,
    shortfall: Option<String>,
}

/// How long a registry that failed is left alone.
const LEFT_ALONE: Duration = Duration::from_mins(1);

impl Registry {
    /// A registry of these sources. Nothing is read or asked yet.
    pub fn new(settings: RegistrySettings) -> Self {
        let urls = settings.sources.iter().filter_map(|source| match source {
            Source::Url(url) => Some(url),
            Source::Path(_) => None,
        });
        let remotes = urls.map(|url| {
            let file = settings.cache.as_ref().map(|folder| {
                let digest = blake3::hash(url.as_bytes()).to_hex();
                folder.join(format!("{}.json", &digest[..16]))
            });
            let remote = Remote::new(url).map_err(|error| error.to_string());
            Shelf { remote, file, held: Mutex::default(), asking: tokio::sync::Mutex::default() }
        });
        let remotes = remotes.collect();
        Self { settings, remotes, last: Mutex::default() }
    }

    /// The servers. Files are read anew; registries are asked where what they said is too old, and
    /// where they do not answer it stays as it was.
    pub async fn known(&self) -> Known {
        let asked = self.remotes.iter().map(|shelf| shelf.refresh(self.settings.max_age));
        join_all(asked).await;
        let paths: Vec<PathBuf> = self.settings.sources.iter().filter_map(Source::path).collect();
        let read = tokio::task::spawn_blocking(move || {
            let mut problems = Vec::new();
            let read: Vec<_> = paths.iter().map(|path| files::read(path, &mut problems)).collect();
            (read, problems)
        });
        let (files, mut notes) = read.await.unwrap_or_default();
        for shelf in &self.remotes {
            shelf.note(&mut notes);
        }
        notes.truncate(10);
        Known { entries: self.joined(files), notes }
    }

    /// All servers, each name once, in the order of the sources.
    fn joined(&self, files: Vec<Vec<Entry>>) -> Arc<Vec<Entry>> {
        let mut last = self.last.lock();
        let said: Vec<u64> = self.remotes.iter().map(|shelf| shelf.held.lock().count).collect();
        if last.files == files && last.said == said {
            return Arc::clone(&last.entries);
        }
        let (mut read, mut shelves) = (files.iter(), self.remotes.iter());
        let mut entries: Vec<Entry> = Vec::new();
        let mut names: HashSet<String> = HashSet::new();
        for source in &self.settings.sources {
            let mut add = |found: &[Entry]| {
                let new = found.iter().filter(|entry| names.insert(entry.name.clone()));
                entries.extend(new.cloned());
            };
            match source {
                Source::Path(_) => add(read.next().map_or(&[], Vec::as_slice)),
                Source::Url(_) => {
                    if let Some(shelf) = shelves.next() {
                        add(&shelf.held.lock().entries);
                    }
                }
            }
        }
        let entries = Arc::new(entries);
        *last = Last { files, said, entries: Arc::clone(&entries) };
        entries
    }

    /// One server, in this version; without one, the version that is listed.
    pub async fn entry(&self, name: &str, version: Option<&str>) -> Option<Entry> {
        let known = self.known().await;
        let listed = known.entries.iter().find(|entry| entry.name == name)?;
        let Some(version) = version.filter(|version| *version != listed.version) else {
            return Some(listed.clone());
        };
        let remotes = self.remotes.iter().filter_map(|shelf| shelf.remote.as_ref().ok());
        let remote = remotes.into_iter().find(|remote| remote.place == listed.source)?;
        let said = remote.version(name, version).await.ok().filter(|_| is_version(version))?;
        let entry = Entry::read(&said, &remote.place)?;
        (entry.name == name && entry.version == version).then_some(entry)
    }
}

impl Source {
    fn path(&self) -> Option<PathBuf> {
        match self {
            Self::Path(path) => Some(path.clone()),
            Self::Url(_) => None,
        }
    }
}

impl Shelf {
    async fn refresh(&self, max_age: Duration) {
        let _asking = self.asking.lock().await;
        let Ok(remote) = &self.remote else { return };
        if self.held.lock().said.is_none() {
            self.recall(remote).await;
        }
        {
            let held = self.held.lock();
            let fresh = held.age().is_some_and(|age| age < max_age);
            let failed = held.failed.as_ref().is_some_and(|(at, _)| at.elapsed() < LEFT_ALONE);
            if fresh || failed {
                return;
            }
        }
        match remote.servers().await {
            Ok(answer) => {
                let cached = Cached::now(answer.servers);
                let entries = files::entries_of(&cached.servers.clone().into(), &remote.place);
                let shortfall = answer.shortfall.map(|error| error.to_string());
                self.hold(Held {
                    entries,
                    said: Some(Instant::now()),
                    shortfall,
                    ..Held::default()
                });
                if let Some(file) = self.file.clone() {
                    let saved = tokio::task::spawn_blocking(move || cached.save(&file)).await;
                    if !matches!(saved, Ok(Ok(()))) {
                        tracing::debug!(place = remote.place, "what it said is not cached");
                    }
                }
            }
            Err(error) => self.held.lock().failed = Some((Instant::now(), error.to_string())),
        }
    }

    /// Takes what an earlier process kept.
    async fn recall(&self, remote: &Remote) {
        let Some(file) = self.file.clone() else { return };
        let loaded = tokio::task::spawn_blocking(move || Cached::load(&file)).await;
        if let Ok(Some(cached)) = loaded {
            let older_by = cached.age();
            let entries = files::entries_of(&cached.servers.into(), &remote.place);
            let said = Some(Instant::now());
            self.hold(Held { entries, said, older_by, ..Held::default() });
        }
    }

    fn hold(&self, news: Held) {
        let mut held = self.held.lock();
        let count = held.count + 1;
        *held = Held { count, ..news };
    }

    /// Says what a reader should know of it.
    fn note(&self, notes: &mut Vec<String>) {
        if let Err(reason) = &self.remote {
            notes.push(reason.clone());
        }
        let held = self.held.lock();
        if let Some((_, reason)) = &held.failed {
            notes.push(match held.age() {
                Some(age) => format!("{reason}; what it said {} ago is used", rounded(age)),
                None => format!("{reason}; nothing is known of its servers"),
            });
        }
        notes.extend(held.shortfall.clone());
    }
}

impl Held {
    fn age(&self) -> Option<Duration> {
        self.said.map(|said| said.elapsed() + self.older_by)
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
