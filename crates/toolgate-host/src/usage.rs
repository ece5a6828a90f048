//! Which tools were useful for which queries, shared by all sessions and processes.

use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use toolgate_catalog::{Catalog, ToolId};
use toolgate_search::{KnownTools, PastCalls, ToolKey, UsageMemory};
use toolgate_store::{PastUse, UsageChange, UsageLog, UsagePosition};
use toolgate_upstream::Redactor;

use crate::{recent_searches::Lesson, settings::ServerSetup};

/// The memory, and the file that it is read from. Uses are only written to the file and come back
/// from there, like those of other processes.
pub(crate) struct Usage {
    log: Arc<dyn UsageLog>,
    memory: RwLock<UsageMemory>,
    /// How far the file has been read. Locked while it is read.
    place: Mutex<UsagePosition>,
    redactors: RwLock<Vec<Redactor>>,
}

impl Usage {
    pub(crate) fn new(log: Arc<dyn UsageLog>, servers: &[ServerSetup]) -> Self {
        let redactors = servers.iter().map(|setup| setup.spec.redactor()).collect();
        let redactors = RwLock::new(redactors);
        Self { log, memory: RwLock::default(), place: Mutex::default(), redactors }
    }

    /// Keeps the secrets of one more server out of the file.
    pub(crate) fn guard(&self, server: &ServerSetup) {
        self.redactors.write().push(server.spec.redactor());
    }

    /// Reads what was written since the last time; the whole file the first time.
    pub(crate) fn refresh(&self) {
        let mut place = self.place.lock();
        match self.log.follow(&mut place) {
            UsageChange::None => {}
            UsageChange::Added(uses) => record(&mut self.memory.write(), &uses),
            UsageChange::Replaced(uses) => {
                let mut memory = UsageMemory::default();
                record(&mut memory, &uses);
                *self.memory.write() = memory;
            }
        }
    }

    /// Runs `work` with the memory.
    pub(crate) fn with_memory<T>(&self, work: impl FnOnce(&UsageMemory) -> T) -> T {
        work(&self.memory.read())
    }

    /// The uses without those whose queries contain a secret.
    pub(crate) fn keepable(&self, lessons: &[Lesson], caller: &str) -> Vec<PastUse> {
        lessons
            .iter()
            .filter(|lesson| !self.holds_secret(&lesson.query))
            .map(|lesson| PastUse {
                count: lesson.good,
                against: lesson.against,
                caller: caller.to_owned(),
                ..PastUse::now(lesson.tool.server.as_str(), &lesson.tool.tool, &lesson.query)
            })
            .collect()
    }

    /// Appends to the file.
    pub(crate) fn write(&self, uses: &[PastUse]) {
        if let Err(error) = self.log.append(uses) {
            tracing::warn!("the usage memory cannot be written: {error}");
        }
    }

    fn holds_secret(&self, query: &str) -> bool {
        let known = self.redactors.read().iter().any(|redactor| redactor.clean(query) != query);
        known || query.split_whitespace().any(looks_secret)
    }
}

/// Tools of a catalog as they are remembered: by server and own name, not by exposed name.
pub(crate) struct CatalogTools<'a> {
    pub(crate) catalog: &'a Catalog,
    /// Only tools of these servers, if set.
    pub(crate) servers: Option<&'a [&'a str]>,
}

impl KnownTools for CatalogTools<'_> {
    fn remembered(&self, found: &ToolKey) -> ToolKey {
        let tool = self.catalog.resolve(found.as_str());
        tool.map_or_else(|| found.clone(), |tool| key(tool.id.server.as_str(), &tool.id.tool))
    }

    fn wanted(&self, remembered: &ToolKey) -> Option<ToolKey> {
        let (server, tool) = remembered.as_str().split_once(SEPARATOR)?;
        if self.servers.is_some_and(|wanted| !wanted.contains(&server)) {
            return None;
        }
        let tool = self.catalog.by_id(&ToolId::new(server, tool))?;
        Some(ToolKey::new(tool.name.to_arc()))
    }
}

/// No server name contains it.
const SEPARATOR: char = '\0';

/// Keys and tokens are long, without spaces, and mix letters and digits; words do not.
fn looks_secret(word: &str) -> bool {
    const SHORTEST: usize = 20;
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_.+/=".contains(character);
    let digits = word.chars().filter(char::is_ascii_digit).count();
    let letters = word.chars().filter(char::is_ascii_alphabetic).count();
    word.len() >= SHORTEST && word.chars().all(plain) && digits >= 4 && letters >= 4
}

fn key(server: &str, tool: &str) -> ToolKey {
    ToolKey::new(format!("{server}{SEPARATOR}{tool}"))
}

fn record(memory: &mut UsageMemory, uses: &[PastUse]) {
    for past in uses {
        let PastUse { query, caller, count: good, against, .. } = past;
        let calls = PastCalls { query, caller, good: *good, against: *against };
        memory.record_calls(&calls, &key(&past.server, &past.tool));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_no_secrets() {
        for word in
            ["internationalisation", "https://example.com/a/b", "2026-11-16T10:00:00", "v1.2.3"]
        {
            assert!(!looks_secret(word), "{word}");
        }
        for word in ["ghp_16C7e42F292c6912E7710c838347Ae178B4a", "sk-ant-api03-abcd1234efgh5678"] {
            assert!(looks_secret(word), "{word}");
        }
    }
}
