//! Edits of the configuration reach a gateway that runs.
//!
//! The files are looked at twice a second. Notifications of the file system would need a watch on
//! every folder on the way to a file, and do not come for network folders and some containers.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::{sync::Notify, time::MissedTickBehavior};
use toolgate::setup::SavedPolicy;
use toolgate_config::{ExposureMode, Problem, ProblemSeverity};
use toolgate_gateway::PassthroughFactory;
use toolgate_store::{FileStamp, SharedStore as _};

use super::{ServedHosts, ServedPaths, changes::Changes};
use crate::{
    cli::Globals,
    failure::Failure,
    fleet, folders,
    load::{self, Loaded},
    print, trust,
};

/// How often the files are looked at. A file that changes is read once it has not changed for as
/// long: an editor may still be at it.
const INTERVAL: Duration = Duration::from_millis(500);
/// For how many looks a file that is missing is waited for: some programs remove a file before they
/// write it again.
const MISSING_LOOKS: u32 = 6;

/// Watches the configuration of a gateway, and applies what changes.
pub(super) struct Reloader {
    pub(super) globals: Globals,
    pub(super) mode: Option<ExposureMode>,
    /// What is in use.
    pub(super) loaded: Loaded,
    /// The hosts.
    pub(super) hosts: ServedHosts,
    /// The paths of an HTTP endpoint that serves all namespaces.
    pub(super) routes: Option<ServedPaths>,
    /// The server that is passed through.
    pub(super) passthrough: Option<Arc<PassthroughFactory>>,
    /// Why the file of now is not in use, as it was last reported.
    pub(super) reported: Option<String>,
    /// Whether the file of the approved definitions is gone, and this was said.
    pub(super) pins_are_gone: bool,
}

/// What the files are at one moment.
type Stamps = Vec<Option<FileStamp>>;

impl Reloader {
    /// Watches for ever.
    pub(super) async fn run(mut self) {
        let mut looks = tokio::time::interval(INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut files = self.loaded.files(&self.globals);
        // Empty, so that a change between the start and the first look is seen too.
        let (mut seen, mut before) = (Stamps::new(), Stamps::new());
        let mut missing = 0;
        let saved = saved_policies();
        loop {
            // What another node has changed is complete when it is heard of.
            tokio::select! {
                _ = looks.tick() => {}
                () = saved.notified() => {
                    self.reload().await;
                    continue;
                }
            }
            // While it cannot be read, because the database is away, it is tried again.
            if self.loaded.is_outdated() {
                self.reload().await;
            }
            let now = stamps(files.clone()).await;
            let is_still = before == now;
            before.clone_from(&now);
            if seen == now || !is_still {
                continue;
            }
            let is_missing = now.first().is_some_and(Option::is_none);
            if is_missing && missing < MISSING_LOOKS {
                missing += 1;
                continue;
            }
            missing = 0;
            let is_taken = self.reload().await;
            // Without the shared database no configuration can be read. That is no fault of the files.
            if is_taken || fleet::joined().is_none() {
                seen = now;
            }
            let files_now = self.loaded.files(&self.globals);
            if files_now != files {
                // Other files: they are read once more, which changes nothing.
                files = files_now;
                seen.clear();
            }
        }
    }

    /// Uses what the files and the shared database say. Returns whether it does.
    async fn reload(&mut self) -> bool {
        let mut new = match load::load_again(&self.globals, &self.loaded) {
            Ok(new) => new,
            Err(failure) => {
                self.use_saved_policy().await;
                self.keep(failure.first_line(), failure.hints());
                return false;
            }
        };
        let has_kept_pins = new.keep_pins_of(&self.loaded);
        if let Err(failure) = self.check(&new) {
            self.use_saved_policy().await;
            self.keep(failure.first_line(), failure.hints());
            return false;
        }
        let changes = Changes::between(&self.loaded.configuration, &new.configuration);
        let moved = new.path != self.loaded.path;
        let (same_pins, same_waiting) =
            (new.lock == self.loaded.lock, new.waiting == self.loaded.waiting);
        let was_broken = self.reported.take().is_some();
        if has_kept_pins && !std::mem::replace(&mut self.pins_are_gone, true) {
            print::note(
                "warning: toolgate.lock is gone: the definitions that were approved stay approved, and no others, \
                 until the gateway is started again",
            );
        }
        self.pins_are_gone = has_kept_pins;
        if let Some(path) = new.waiting.as_ref().filter(|_| !same_waiting) {
            print::note(format!("warning: {}", trust::waiting(path)));
        }
        if changes.is_empty() && !moved && !was_broken && same_waiting {
            if !same_pins {
                self.use_pins(&new).await;
            }
            self.loaded = new;
            return true;
        }
        self.apply(&new, &changes).await;
        let from =
            if moved { format!(" from {}", folders::shown(&new.path)) } else { String::new() };
        if !changes.is_empty() || moved || was_broken {
            print::note(format!("configuration reloaded{from}: {}", self.said(&changes)));
        }
        self.serve_namespaces(&new, &changes);
        for problem in fresh(&new, &self.loaded, ProblemSeverity::Warning) {
            print::note(problem);
        }
        // Only a saved policy is used that cannot be read: it denies every call.
        for problem in fresh(&new, &self.loaded, ProblemSeverity::Error) {
            print::note(problem);
        }
        self.loaded = new;
        true
    }

    /// Refuses what is not to be used in place of what is in use.
    fn check(&self, new: &Loaded) -> Result<(), Failure> {
        let old = &self.loaded;
        // A person has taken back the trust: nothing of the folder may be used any longer.
        if new.waiting.is_some() && old.is_trust_gone() {
            return Ok(());
        }
        if old.loses_own(new) {
            let own = folders::own_configuration().map(|path| folders::shown(&path));
            let own = own.unwrap_or_else(|| "your configuration".to_owned());
            return Err(Failure::new(format!("{own} is gone, and your policy with it"))
                .hint("restore it, or start the gateway again"));
        }
        if let Some(path) = new.waiting.as_ref().filter(|_| old.is_folders) {
            let has_env_files = old.env_files().next().is_some();
            return Err(Failure::new(trust::changed(path, has_env_files)));
        }
        if old.is_folders && !new.is_folders {
            return Err(Failure::new(format!("{} is gone", folders::shown(&old.path)))
                .hint("restore it, or start the gateway again"));
        }
        // What was saved for all nodes is not kept out by a mistake: the one before may allow more.
        let saved = new.saved().map(SavedPolicy::name);
        let is_files = |problem: &&Problem| saved != Some(&*problem.source);
        match fresh(new, old, ProblemSeverity::Error).find(is_files) {
            Some(problem) => Err(problem.into()),
            None => Ok(()),
        }
    }

    async fn apply(&self, new: &Loaded, changes: &Changes) {
        for (namespace, host) in &self.hosts.all() {
            let mut settings = new.settings_of(namespace.as_deref(), self.mode);
            if let Some(name) =
                namespace.as_deref().filter(|name| new.check_namespace(name).is_err())
            {
                // Nothing of a namespace that is gone can be called.
                tracing::debug!("namespace {name} is gone");
                settings.servers.clear();
            }
            host.reload(settings, &changes.changed).await;
        }
        if let Some(factory) = &self.passthrough
            && changes.changed.contains(factory.guard().server())
        {
            factory.replace_server(&new.settings(self.mode));
        }
        self.reload_guard(new).await;
    }

    async fn reload_guard(&self, new: &Loaded) {
        if let Some(factory) = &self.passthrough {
            let (factory, settings) = (Arc::clone(factory), new.settings(self.mode));
            let _ = tokio::task::spawn_blocking(move || factory.guard().reload(&settings)).await;
        }
    }

    /// Serves the namespaces that are new.
    fn serve_namespaces(&self, new: &Loaded, changes: &Changes) {
        let Some(paths) = &self.routes else { return };
        for name in changes.namespaces.iter().filter(|name| !self.hosts.has(name)) {
            paths.serve(name, new.settings_of(Some(name), self.mode), &self.hosts);
        }
    }

    /// Uses the policy that is saved for all nodes now, although the file of now is not used: the one before may allow
    /// more. If the database cannot be read, it is tried again.
    async fn use_saved_policy(&mut self) {
        if !self.loaded.has_old_policy() {
            return;
        }
        let Ok(new) = load::load_saved_policy(&self.globals, &self.loaded) else { return };
        let changes = Changes::between(&self.loaded.configuration, &new.configuration);
        self.apply(&new, &changes).await;
        if !changes.is_empty() {
            print::note(format!("the policy of the fleet is used: {}", self.said(&changes)));
        }
        self.loaded = new;
        // Models are told again why the file is not used.
        self.reported = None;
    }

    /// Uses other approved definitions.
    async fn use_pins(&self, new: &Loaded) {
        for (namespace, host) in &self.hosts.all() {
            let settings = new.settings_of(namespace.as_deref(), self.mode);
            host.set_pins(settings.lock, settings.pin);
        }
        self.reload_guard(new).await;
    }

    /// What is said of changes.
    fn said(&self, changes: &Changes) -> String {
        match &self.passthrough {
            None => changes.to_string(),
            Some(factory) => changes.of_server(factory.guard().server().as_str()),
        }
    }

    /// Keeps what is in use, and says why: on stderr, and to a model that searches.
    fn keep(&mut self, why: &str, hints: &[String]) {
        if self.reported.as_deref() == Some(why) {
            return;
        }
        let correct = ["correct the file; `toolgate config check` shows the place".to_owned()];
        let hints = if hints.is_empty() { &correct } else { hints };
        let lines: Vec<String> = hints.iter().map(|hint| format!("\n  hint: {hint}")).collect();
        print::note(format!(
            "warning: configuration not reloaded, the old one stays in use: {why}{}",
            lines.concat()
        ));
        let notice = format!(
            "The configuration of toolgate has changed and is not in use, the old one is: {why}. Hint: {}.",
            hints.join("; ")
        );
        for (_, host) in &self.hosts.all() {
            host.set_notices(vec![notice.clone()]);
        }
        self.reported = Some(why.to_owned());
    }
}

/// Notified when a policy was saved for all nodes of the fleet.
fn saved_policies() -> Arc<Notify> {
    let saved = Arc::new(Notify::new());
    if let Some(fleet) = fleet::joined() {
        let waking = Arc::clone(&saved);
        fleet.policy().on_change(Box::new(move || waking.notify_one()));
    }
    saved
}

/// The problems of `new` that `old` does not have.
fn fresh<'n>(
    new: &'n Loaded,
    old: &'n Loaded,
    severity: ProblemSeverity,
) -> impl Iterator<Item = &'n Problem> {
    let is_known = move |problem: &Problem| {
        let mut known = old.configuration.problems.iter();
        known.any(|it| it.path == problem.path && it.message == problem.message)
    };
    let problems = new.configuration.problems.iter();
    problems.filter(move |problem| problem.severity == severity && !is_known(problem))
}

/// What the files are now.
async fn stamps(files: Vec<PathBuf>) -> Stamps {
    let look =
        move || files.iter().map(|file: &PathBuf| FileStamp::of_content(Path::new(file))).collect();
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}
