//! Servers that are enabled and disabled while the host runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use parking_lot::{Mutex, RwLock};
use toolgate_catalog::ServerName;
use toolgate_registry::Plan;
use toolgate_store::{ChoiceStore, Choices, StoreError, StoreStamp, SwitchedBy};

use crate::{enabling::plan_of, host::ToolHost, settings::ServerSetup};

/// The disabled servers, and the file with them that other processes read and change too.
#[derive(Debug)]
pub(crate) struct EnabledServers {
    file: RwLock<Option<Arc<dyn ChoiceStore>>>,
    /// The stamp of the file when it was last read.
    seen: Mutex<Option<StoreStamp>>,
    off: RwLock<BTreeMap<ServerName, SwitchedBy>>,
    /// The servers of registries in use, with the fingerprint that a person consented to.
    used: RwLock<BTreeMap<ServerName, String>>,
    /// Locked while servers are added and removed.
    pub(crate) changing: tokio::sync::Mutex<()>,
}

impl EnabledServers {
    /// Reads the file, with the consents of people. Reads it synchronously: it is small, and
    /// disabled servers must not connect. If it is unreadable, all of `servers` are disabled,
    /// because any of them may be.
    pub(crate) fn read<'s>(
        file: Option<Arc<dyn ChoiceStore>>,
        servers: impl Iterator<Item = &'s ServerName>,
    ) -> (Self, Vec<Plan>) {
        let stamp = file.as_ref().and_then(|file| file.stamp());
        let read = file.as_ref().map_or_else(|| Ok(Choices::default()), |file| file.read());
        // What could not be read is read again.
        let is_seen = read.is_ok() || !stamp.as_ref().is_some_and(StoreStamp::allows_older);
        let seen = Mutex::new(stamp.filter(|_| is_seen));
        let choices = read.unwrap_or_else(|damaged| {
            tracing::error!("all servers are off: {damaged}");
            let off = servers.map(|server| (server.to_string(), SwitchedBy::Person));
            Choices { disabled: off.collect(), ..Choices::default() }
        });
        let off = RwLock::new(names(&choices));
        let changing = tokio::sync::Mutex::default();
        let file = RwLock::new(file);
        (Self { file, seen, off, used: RwLock::default(), changing }, plans(&choices))
    }

    /// Uses another file from now on.
    pub(crate) fn use_file(&self, file: Option<Arc<dyn ChoiceStore>>) {
        *self.file.write() = file;
    }

    /// The fingerprint that a person consented to, for a server of a registry that is in use.
    pub(crate) fn consented(&self, server: &ServerName) -> Option<String> {
        self.used.read().get(server).cloned()
    }

    pub(crate) fn used(&self, server: ServerName, fingerprint: String) {
        self.used.write().insert(server, fingerprint);
    }

    /// Returns whether the server was in use.
    pub(crate) fn unused(&self, server: &ServerName) -> bool {
        self.used.write().remove(server).is_some()
    }

    pub(crate) fn is_off(&self, server: &ServerName) -> bool {
        self.off.read().contains_key(server)
    }

    pub(crate) fn off(&self) -> BTreeSet<ServerName> {
        self.off.read().keys().cloned().collect()
    }

    /// Who disabled a server; `None` if it is enabled.
    pub(crate) fn switched_off_by(&self, server: &ServerName) -> Option<SwitchedBy> {
        self.off.read().get(server).copied()
    }

    /// How to enable a disabled server. A model cannot enable what a person has disabled.
    pub(crate) fn how_to_enable(&self, server: &ServerName) -> Option<String> {
        Some(match self.switched_off_by(server)? {
            SwitchedBy::Person => {
                format!("a person disabled it, and `toolgate enable {server}` enables it")
            }
            SwitchedBy::Model => {
                format!("`enable_server` or `toolgate enable {server}` enables it")
            }
        })
    }

    /// The current stamp of the file.
    fn stamp(&self) -> Option<StoreStamp> {
        self.file.read().as_ref().and_then(|file| file.stamp())
    }

    /// The content of the file. `None` if there is no file or it is unreadable: then nothing
    /// changes.
    pub(crate) async fn choices(&self) -> Option<Choices> {
        let file = self.file.read().clone()?;
        let read = tokio::task::spawn_blocking(move || file.read()).await.ok()?;
        read.inspect_err(|damaged| tracing::warn!("{damaged}")).ok()
    }

    /// Changes the file. Without one, nothing outlives the process.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Choices) -> T + Send + 'static,
    ) -> Option<Result<T, StoreError>> {
        let file = self.file.read().clone()?;
        tokio::task::spawn_blocking(move || file.change(change)).await.ok()
    }
}

impl ToolHost {
    /// Reads what other processes have enabled and disabled, and the consents of people.
    pub(crate) async fn refresh_choices(&self) {
        let _changing = self.inner.enabled.changing.lock().await;
        // Taken before the file is read: a change in between costs one more read at worst.
        let stamp = self.inner.enabled.stamp();
        let is_read = self.take_in_choices().await;
        // Set last, because others must wait until all changes are in effect. What could not be read is read again.
        if is_read || !stamp.as_ref().is_some_and(StoreStamp::allows_older) {
            *self.inner.enabled.seen.lock() = stamp;
        }
    }

    /// Notices which servers were enabled or disabled elsewhere, if the file with them has changed.
    pub async fn notice_choices(&self) {
        let enabled = &self.inner.enabled;
        let changed = *enabled.seen.lock() != enabled.stamp();
        if changed {
            // Apart: every call asks this, and its future must stay small.
            Box::pin(self.refresh_choices()).await;
        }
    }

    /// Whether the file could be read.
    pub(crate) async fn take_in_choices(&self) -> bool {
        let Some(choices) = self.inner.enabled.choices().await else { return false };
        let wanted = names(&choices);
        let before = std::mem::replace(&mut *self.inner.enabled.off.write(), wanted.clone());
        let changed = wanted.iter().filter(|(server, by)| before.get(*server) != Some(*by));
        for (server, _) in changed {
            self.refuse_disabled(server);
        }
        for server in before.keys().filter(|server| !wanted.contains_key(*server)) {
            self.servers().enable(server.as_str());
        }
        if wanted != before {
            self.inner.live_catalog.announce();
        }
        let plans = plans(&choices);
        let gone: Vec<ServerName> = {
            let used = self.inner.enabled.used.read();
            let kept =
                |server: &&ServerName| plans.iter().any(|plan| plan.server == server.as_str());
            used.keys().filter(|server| !kept(server)).cloned().collect()
        };
        for server in &gone {
            self.drop_plan(server).await;
        }
        for plan in &plans {
            self.use_plan(plan).await;
        }
        true
    }

    /// Whether there are servers that a session could enable.
    pub(crate) fn offers_servers(&self) -> bool {
        let settings = self.settings();
        // Where each caller has their own login, a model begins it.
        let can_be_enabled = |setup: &ServerSetup| setup.lazy || setup.spec.callers.is_some();
        !settings.directory.is_empty() || settings.servers.iter().any(can_be_enabled)
    }

    /// Whether a server connects only when it is needed.
    pub fn is_lazy(&self, server: &ServerName) -> bool {
        let settings = self.settings();
        let setup = settings.servers.iter().find(|setup| setup.spec.name == *server);
        setup.map_or_else(|| self.inner.enabled.consented(server).is_some(), |setup| setup.lazy)
    }

    /// Whether a server is disabled.
    pub fn is_off(&self, server: &ServerName) -> bool {
        self.inner.enabled.is_off(server)
    }

    /// Enables or disables a server for a model, for this host and later ones. Calls under way are
    /// not interrupted.
    pub(crate) async fn switch(&self, server: &ServerName, on: bool) {
        let name = server.as_str().to_owned();
        let change = move |choices: &mut Choices| {
            if on {
                choices.disabled.remove(&name);
            } else {
                // What a person has disabled stays so.
                choices.disabled.entry(name).or_insert(SwitchedBy::Model);
            }
        };
        if let Some(Err(error)) = self.inner.enabled.change(change).await {
            tracing::warn!(%server, "it is not kept whether it is disabled: {error}");
        }
        let servers = self.servers();
        if on {
            self.inner.enabled.off.write().remove(server);
            servers.enable(server.as_str());
        } else {
            self.inner.enabled.off.write().entry(server.clone()).or_insert(SwitchedBy::Model);
            self.refuse_disabled(server);
        }
        self.inner.live_catalog.announce();
    }

    /// Refuses calls of a server if it is disabled.
    pub(crate) fn refuse_disabled(&self, server: &ServerName) {
        if let Some(how) = self.inner.enabled.how_to_enable(server) {
            self.servers().disable(server.as_str(), &how);
        }
    }
}

fn names(choices: &Choices) -> BTreeMap<ServerName, SwitchedBy> {
    choices.disabled.iter().map(|(name, by)| (name.as_str().into(), *by)).collect()
}

fn plans(choices: &Choices) -> Vec<Plan> {
    choices.consents.iter().filter_map(|(server, consent)| plan_of(server, consent)).collect()
}
