//! New settings for a host that runs.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use toolgate_catalog::ServerName;
use toolgate_policy::definitions::Lock;
use toolgate_upstream::StartMode;

use crate::{
    host::{FIRST_LISTS_TIMEOUT, ToolHost},
    settings::{Connect, HostSettings, ServerSetup},
    tool_filter::{PinWriter, ToolFilter},
};

/// How long calls that were sent may take to end on a server that was removed or replaced.
const RETIRE_TIMEOUT: Duration = Duration::from_secs(30);

impl ToolHost {
    /// Replaces the settings, as one change. Sessions stay.
    ///
    /// A server that is in the settings of now and in the new ones keeps its connection, unless it is
    /// one of `changed`: then another one with the new settings takes its place. Calls that were sent
    /// may end on the old one. Calls that were not sent yet are judged by the new policy.
    ///
    /// Everything that exists once for the whole life of a host stays as it is: the store, the audit
    /// log, telemetry, the ranking with its encoder, the usage memory and the pool of workers.
    pub async fn reload(&self, mut settings: HostSettings, changed: &BTreeSet<ServerName>) {
        // No server is enabled or disabled meanwhile.
        let _changing = self.inner.enabled.changing.lock().await;
        let before = self.settings();
        keep_lasting(&mut settings, &before);
        let name = |setup: &ServerSetup| setup.spec.name.clone();
        let old: BTreeSet<ServerName> = before.servers.iter().map(name).collect();
        let new: BTreeSet<ServerName> = settings.servers.iter().map(name).collect();
        let stays = |server: &ServerName| {
            old.contains(server) && new.contains(server) && !changed.contains(server)
        };
        let mut gone: Vec<ServerName> = old.iter().filter(|it| !stays(it)).cloned().collect();
        // A configured server takes the place of one of a registry.
        gone.extend(new.iter().filter(|it| self.inner.enabled.unused(it)).cloned());
        self.forget_late(&gone);
        for server in &gone {
            self.servers().retire(server.as_str(), RETIRE_TIMEOUT);
            self.inner.live_catalog.remove(server);
            self.inner.resources.removed(server);
            self.inner.endpoints.remove(server);
        }
        let validation = settings.servers.iter().map(|it| (name(it), it.validation.clone()));
        let redactors = settings.servers.iter().map(|it| it.spec.redactor());
        let policy = settings.policy.clone();
        self.inner.broker.reload(policy, validation.collect(), redactors.collect());
        self.inner.live_catalog.set_filter(ToolFilter::of(&settings));
        self.inner.resources.filter_changed();
        self.inner.code.reload(settings.code.clone());
        self.inner.code.shapes.set_private(settings.per_caller());
        self.inner.directory.reload(&settings.servers, &settings.directory.skills);
        self.inner.enabled.use_file(settings.choices.clone());
        *self.inner.first_lists_until.lock() = Instant::now() + FIRST_LISTS_TIMEOUT;
        let settings = Arc::new(settings);
        *self.inner.settings.write() = Arc::clone(&settings);
        for setup in settings.servers.iter().filter(|setup| !stays(&setup.spec.name)) {
            self.add_configured(setup, settings.connect);
        }
        self.watch_first_lists();
        // Another file, or another server of the same name, may be on or off.
        self.take_in_choices().await;
        self.inner.live_catalog.announce();
    }

    /// Replaces the approved definitions, which a person may have changed.
    pub fn set_pins(&self, lock: Option<Lock>, pin: Option<PinWriter>) {
        let settings = {
            let mut settings = self.inner.settings.write();
            *settings = Arc::new(HostSettings { lock, pin, ..(**settings).clone() });
            Arc::clone(&settings)
        };
        self.inner.live_catalog.set_filter(ToolFilter::of(&settings));
        self.inner.resources.filter_changed();
    }

    /// Replaces what every search tells the model besides.
    pub fn set_notices(&self, notices: Vec<String>) {
        let mut settings = self.inner.settings.write();
        *settings = Arc::new(HostSettings { notices, ..(**settings).clone() });
    }

    fn add_configured(&self, setup: &ServerSetup, connect: Connect) {
        let mut spec = setup.spec.clone();
        let server = spec.name.clone();
        if !self.inner.live_catalog.add(setup) {
            return;
        }
        spec.asks = self.inner.live_catalog.asks(&server);
        let mut waits = setup.lazy || self.inner.enabled.is_off(&server);
        if let Some(memory) = self.inner.live_catalog.memory(&server) {
            spec.remembered_era.get_or_insert(memory.era);
            self.inner.live_catalog.recall(vec![server.clone()]);
            waits |= connect == Connect::WhenNeeded;
        }
        if waits {
            spec.start = StartMode::OnDemand;
        }
        self.inner.endpoints.set(server.clone(), spec.fingerprint());
        self.servers().add(spec);
        self.refuse_disabled(&server);
    }
}

/// Keeps what cannot be replaced while the host runs.
fn keep_lasting(settings: &mut HostSettings, before: &HostSettings) {
    settings.namespace.clone_from(&before.namespace);
    settings.strategy = before.strategy;
    settings.encoder.clone_from(&before.encoder);
    settings.usage_memory = before.usage_memory;
    settings.store.clone_from(&before.store);
    settings.audit = before.audit;
    settings.telemetry = before.telemetry.clone();
    settings.events = before.events.clone();
}
