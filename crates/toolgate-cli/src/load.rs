//! Finds and reads the configuration, and reports its problems.

use std::{
    env,
    fs::{self, File},
    io::{self, Read as _},
    ops::Deref,
    path::{Path, PathBuf},
    sync::{Arc, Once, OnceLock},
};

use toolgate::setup::{
    CommandTime, ExposureMode, FileAccess, Format, HostConfig, HostConfigError, HostEnvironment,
    HostSettings, PinFile, PoolSettings, SavedPolicy, Store, StoredReference, StoredValueError,
    VaultKey, env_file_path, parse_file, read_env_file, read_stored,
};
use toolgate_broker::ClientForms;
use toolgate_config::{
    CodeModeConfig, Configuration, FleetConfig, MAX_FILE_BYTES, Presence, Problem, ProblemSeverity,
    ServerConfig, TelemetryConfig,
};
use toolgate_host::{CodeSettings, ServerDirectory};
use toolgate_policy::{Mode, PolicySettings, RuleOrigin};
use toolgate_store::{ChoiceStore, SharedStore, StoreStamp, WRITABLE};
use toolgate_telemetry::Telemetry;

use crate::{
    cli::Globals,
    failure::Failure,
    fleet, folders, lineage, own_entry, print,
    trust::{self, FolderFile},
};

/// The argument that makes this program a worker of the sandbox.
pub(crate) const WORKER: &str = "sandbox-worker";

/// The variable that does what `--no-mcp` does.
const NO_MCP: &str = "TOOLGATE_NO_MCP";

/// The telemetry of the hosts of this process.
static TELEMETRY: OnceLock<Telemetry> = OnceLock::new();

/// The configuration that a command works with.
pub(crate) struct Loaded {
    /// Its file.
    pub(crate) path: PathBuf,
    /// The namespace of `--namespace`; without one, everything outside of exclusive namespaces.
    pub(crate) namespace: Option<String>,
    /// Whether no server is started.
    no_servers: bool,
    /// Whether the file was found in the working folder, where it needs trust.
    pub(crate) is_folders: bool,
    /// The trusted file of the working folder, as it was read.
    folder_file: Option<FolderFile>,
    /// Whether the user has a configuration that applies to the folder's one.
    has_own: bool,
    /// The file of the working folder that is not used, because nobody has trusted it.
    pub(crate) waiting: Option<PathBuf>,
    /// In a fleet: the version of what is saved in its database, and the policy that is, if one is.
    pub(crate) saved_policy: Option<(u64, Option<SavedPolicy>)>,
    /// What had been heard of other nodes before this was read.
    heard: Heard,
    /// The text of the file, as it was read. `None` if it is that of a working folder.
    text: Option<String>,
    config: HostConfig,
}

/// What a process has heard of changes of the configuration at other nodes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    pins: Option<StoreStamp>,
    policy: Option<StoreStamp>,
}

impl Heard {
    /// What it has heard by now.
    pub(crate) fn now() -> Self {
        let Some(fleet) = fleet::joined() else { return Self::default() };
        Self { pins: fleet.pins().stamp(), policy: Some(fleet.policy().stamp()) }
    }
}

impl Deref for Loaded {
    type Target = HostConfig;

    fn deref(&self) -> &HostConfig {
        &self.config
    }
}

/// Finds and reads the configuration. Only a file that cannot be read at all is a failure.
pub(crate) fn load(globals: &Globals) -> Result<Loaded, Failure> {
    load_as(globals, Purpose::Use)
}

/// [`load`] for a command that starts and contacts nothing: the file of the working folder is read
/// even if nobody has trusted it.
pub(crate) fn load_to_check(globals: &Globals) -> Result<Loaded, Failure> {
    load_as(globals, Purpose::Check)
}

/// [`load`] in a process that runs already. Nothing is printed.
pub(crate) fn load_quietly(globals: &Globals) -> Result<Loaded, Failure> {
    load_as(globals, Purpose::Reload)
}

/// [`load`] for a gateway that runs already, with the configuration `before`.
pub(crate) fn load_again(globals: &Globals, before: &Loaded) -> Result<Loaded, Failure> {
    let loaded = load_as(globals, Purpose::Reload)?;
    let config = loaded.config.continuing(&before.config);
    Ok(Loaded { config, ..loaded })
}

/// The configuration `before` of a gateway that runs, with the policy that is saved for all nodes now. For when the file
/// cannot be used as it is now.
pub(crate) fn load_saved_policy(globals: &Globals, before: &Loaded) -> Result<Loaded, Failure> {
    let text = before.text.clone().ok_or_else(nowhere)?;
    let (environment, heard) = (environment(), Heard::now());
    let saved_policy = read_saved_policy(&environment)?;
    let saved = saved_policy.as_ref().and_then(|(_, saved)| saved.as_ref());
    let source = if globals.config.is_some() { Source::Given } else { Source::Own };
    let (path, place) = (before.path.clone(), &before.path);
    let configuration = parse(place, place, &text, &environment, &source, saved)?;
    let config = HostConfig::new(configuration, Some(path.clone()), environment)?;
    Ok(Loaded {
        path,
        namespace: before.namespace.clone(),
        no_servers: before.no_servers,
        is_folders: false,
        folder_file: None,
        has_own: false,
        waiting: before.waiting.clone(),
        saved_policy,
        heard,
        text: Some(text),
        config: config.continuing(&before.config),
    })
}

/// The version of what is saved in the database of the fleet, and the policy that is; `None` without a fleet.
fn read_saved_policy(
    environment: &HostEnvironment,
) -> Result<Option<(u64, Option<SavedPolicy>)>, Failure> {
    SavedPolicy::read(environment.store.as_ref()).map_err(|error| {
        Failure::new(format!("the policy of the fleet is not known: {error}"))
            .hint("it is read as soon as the shared database answers")
    })
}

/// What a configuration is read for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Use,
    /// Nothing is started or contacted.
    Check,
    Reload,
}

/// What `TOOLGATE_NO_MCP` says. A word that is neither yes nor no starts nothing.
fn without_servers() -> Result<bool, Failure> {
    match variable(NO_MCP).unwrap_or_default().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "" | "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(Failure::usage(format!("{NO_MCP} is neither 1 nor 0"))
            .hint("`1` starts without servers; unset it to start them")),
    }
}

fn load_as(globals: &Globals, purpose: Purpose) -> Result<Loaded, Failure> {
    let environment = environment();
    // Before anything is read, so that a change meanwhile is not missed.
    let heard = Heard::now();
    let saved_policy = read_saved_policy(&environment)?;
    let saved = saved_policy.as_ref().and_then(|(_, saved)| saved.as_ref());
    let no_servers = globals.no_mcp || without_servers()?;
    let (mut waiting, mut is_folders) = (None, false);
    let (mut folder_file, mut has_own, mut text) = (None, false, None);
    let (path, configuration) = match &globals.config {
        Some(path) => {
            let read = read(path)?;
            let configuration = parse(path, path, &read, &environment, &Source::Given, saved)?;
            text = Some(read);
            (path.clone(), configuration)
        }
        None => match folders::configuration_of(Path::new("")) {
            None => match own(&environment, saved)? {
                Some(own) => {
                    text = Some(own.text);
                    (own.path, own.configuration)
                }
                None if no_servers => {
                    (folders::own_configuration().ok_or_else(nowhere)?, nothing())
                }
                None => return Err(nowhere()),
            },
            Some(path) => {
                let file = FolderFile::read(path.clone());
                // A file that cannot be read is like one that nobody has trusted: it stops nothing.
                let is_trusted = file.as_ref().is_ok_and(FolderFile::is_trusted);
                if !is_trusted && purpose != Purpose::Reload {
                    tell_waiting(&path);
                }
                if is_trusted || purpose == Purpose::Check {
                    is_folders = true;
                    let file = file?;
                    let source = Source::Folder { file: &file, is_trusted };
                    let place = file.place();
                    let configuration =
                        parse(&path, &place, &file.text, &environment, &source, None)?;
                    let own = own(&environment, saved)?.map(|own| own.configuration);
                    has_own = own.is_some();
                    folder_file = Some(file);
                    (path, held(configuration, &own.unwrap_or_default()))
                } else {
                    waiting = Some(path);
                    match own(&environment, saved)? {
                        Some(own) => {
                            text = Some(own.text);
                            (own.path, own.configuration)
                        }
                        None => (folders::own_configuration().ok_or_else(nowhere)?, nothing()),
                    }
                }
            }
        },
    };
    if globals.config.is_none() && purpose != Purpose::Reload && path.exists() {
        tell_which(&path);
    }
    let config = HostConfig::new(configuration, Some(path.clone()), environment)?;
    let namespace = globals.namespace.clone();
    let loaded = Loaded {
        path,
        namespace,
        no_servers,
        is_folders,
        folder_file,
        has_own,
        waiting,
        saved_policy,
        heard,
        text,
        config,
    };
    if let Some(wanted) = &globals.namespace {
        loaded.check_namespace(wanted)?;
    }
    Ok(loaded)
}

/// The user's configuration, with its file.
struct OwnConfiguration {
    path: PathBuf,
    text: String,
    configuration: Configuration,
}

/// The user's configuration, if there is one. Something of this name that is no file, or an empty
/// file, is not taken for a user without a policy.
fn own(
    environment: &HostEnvironment,
    saved: Option<&SavedPolicy>,
) -> Result<Option<OwnConfiguration>, Failure> {
    let Some(path) = folders::own_configuration() else { return Ok(None) };
    match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // If it cannot be looked at, reading it says why.
        _ => {}
    }
    let unusable = |why: &str| {
        let problem = format!("{} {why}, so your policy is not known", folders::shown(&path));
        Failure::usage(problem).hint("restore it; to have no configuration of your own, remove it")
    };
    if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
        return Err(unusable("is not a file"));
    }
    let text = read(&path)?;
    if text.trim().is_empty() {
        return Err(unusable("is empty"));
    }
    let configuration = parse(&path, &path, &text, environment, &Source::Own, saved)?;
    Ok(Some(OwnConfiguration { path, text, configuration }))
}

/// How the user's own configuration lets people show that they are there. If it cannot be read, that
/// is not known, and nobody is asked in an easier way.
pub(crate) fn own_presence() -> Result<Presence, Failure> {
    let own = own(&environment(), None)?;
    Ok(own.map(|own| own.configuration.approvals.presence).unwrap_or_default())
}

/// Limits a folder's configuration by the user's. The user's policy also applies, and that of the
/// user's namespace of the same name. How much of the audit log and of the runs is stored is up to
/// the user. The folder's file can only require the audit log.
fn held(mut configuration: Configuration, own: &Configuration) -> Configuration {
    // The user has said what holds where a file says nothing.
    let is_silent = own.has_policy && !configuration.has_policy;
    let under = |policy: &mut PolicySettings, above: &PolicySettings| {
        if is_silent && policy.mode == Mode::AskDestructive {
            policy.mode = Mode::Allow;
        }
        *policy = std::mem::take(policy).under(above);
    };
    configuration.has_policy |= own.has_policy;
    under(&mut configuration.policy, &own.policy);
    for namespace in &mut configuration.namespaces {
        match own.namespaces.iter().find(|own| own.name == namespace.name) {
            Some(same) => {
                // It has the limits of the file too. A call counts once for each of them.
                let mut file = own.policy.clone();
                file.limits.retain(|limit| !same.policy.limits.contains(limit));
                under(&mut namespace.policy, &same.policy.clone().under(&file));
            }
            None => under(&mut namespace.policy, &own.policy),
        }
    }
    let is_required = configuration.audit.enabled && configuration.audit.required;
    configuration.audit = own.audit.clone();
    configuration.audit.enabled |= is_required;
    configuration.audit.required |= is_required;
    configuration.code_mode.journal = own.code_mode.journal.clone();
    configuration.fleet.clone_from(&own.fleet);
    // A limit of the user that cannot be read is not left out.
    configuration.chat =
        configuration.chat.zip(own.chat.as_ref()).map(|(chat, own)| chat.under(own));
    configuration
}

/// Another policy than the one that counts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OtherPolicy<'p> {
    /// This value of `policy`, where the policy is written.
    Written(&'p serde_json::Value),
    /// The `policy` of the configuration, without the one that is saved in the database of the fleet.
    OfConfiguration,
}

/// The policy that would hold with another one, and the warnings about it. Nothing is written.
pub(crate) fn policy_if(
    loaded: &Loaded,
    other: OtherPolicy<'_>,
) -> Result<(PolicySettings, Vec<String>), Failure> {
    let format = Format::of_file(&loaded.path);
    let before = read(&loaded.path)?;
    let shown = folders::shown(&loaded.path);
    let tried;
    let (text, saved) = match (other, loaded.fleet_policy()) {
        (OtherPolicy::Written(policy), None) => {
            let text = toolgate_config::replace_policy(&before, format, policy);
            let text = text.map_err(|error| {
                Failure::usage(format!("the policy of {shown} cannot be replaced: {error}"))
            })?;
            (text, None)
        }
        (OtherPolicy::Written(policy), Some(_)) => {
            tried = SavedPolicy::tried(policy);
            (before.clone(), Some(&tried))
        }
        (OtherPolicy::OfConfiguration, _) => (before.clone(), None),
    };
    let environment = environment();
    let source = match &loaded.folder_file {
        Some(file) => Source::Folder { file, is_trusted: true },
        None if folders::own_configuration().as_ref() == Some(&loaded.path) => Source::Own,
        None => Source::Given,
    };
    let place = loaded.folder_file.as_ref().map(FolderFile::place);
    let place = place.as_deref().unwrap_or(&loaded.path);
    let mut read = parse(&loaded.path, place, &text, &environment, &source, saved)?;
    // The text is in no file, so the positions in it lead nowhere.
    for rule in &mut read.policy.rules {
        if let RuleOrigin::Configured { position, .. } = &mut rule.origin {
            *position = None;
        }
    }
    let counts = loaded.fleet_policy().and_then(|(_, saved)| saved.as_ref());
    let known = parse(&loaded.path, place, &before, &environment, &source, counts)
        .map(|known| known.problems.iter().map(|it| it.message.clone()).collect::<Vec<_>>())
        .unwrap_or_default();
    let mut warnings = Vec::new();
    let mut errors = Vec::new();
    for problem in &read.problems {
        // What is wrong with a policy that is saved for all nodes is never known before.
        let is_tried = saved.is_some_and(|saved| *problem.source == *saved.name());
        if !is_tried && known.contains(&problem.message) {
            continue;
        }
        let hint = problem.hint.as_deref().map_or_else(String::new, |hint| format!("; {hint}"));
        let words = format!("{}{hint}", problem.message);
        match problem.severity {
            ProblemSeverity::Warning => warnings.push(words),
            ProblemSeverity::Error => errors.push(words),
        }
    }
    // The first one of a policy that is saved for all nodes says that it cannot be read, the next one why.
    if let Some(words) = errors.get(1).filter(|_| saved.is_some()).or(errors.first()) {
        return Err(Failure::usage(format!("the policy is not understood: {words}")));
    }
    let read = if loaded.is_folders {
        let own = own(&environment, loaded.saved())?.map(|own| own.configuration);
        held(read, &own.unwrap_or_default())
    } else {
        read
    };
    let config = HostConfig::new(read, Some(loaded.path.clone()), environment)?;
    Ok((config.policy(loaded.namespace.as_deref()).clone(), warnings))
}

/// An empty configuration.
fn nothing() -> Configuration {
    Configuration { telemetry: Some(TelemetryConfig::default()), ..Configuration::default() }
}

/// Says once that the file of the working folder waits.
fn tell_waiting(path: &Path) {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| print::note(format!("warning: {}", trust::waiting(path))));
}

/// Says once which file is used, where nobody has named one.
fn tell_which(path: &Path) {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| print::note(format!("using {}", folders::shown(path))));
}

/// Where a configuration comes from, and so what it may use.
enum Source<'f> {
    /// The file after `--config`.
    Given,
    /// The user's own.
    Own,
    /// The working folder.
    Folder { file: &'f FolderFile, is_trusted: bool },
}

/// `place` is the path of the file at which the paths of env files start.
fn parse(
    path: &Path,
    place: &Path,
    text: &str,
    environment: &HostEnvironment,
    source: &Source<'_>,
    saved: Option<&SavedPolicy>,
) -> Result<Configuration, HostConfigError> {
    let (format, shown) = (Format::of_file(path), folders::shown(path));
    let stored = |reference: StoredReference<'_>| match (source, reference) {
        (Source::Folder { is_trusted: false, .. }, _) => Err(StoredValueError::NotTrusted),
        (Source::Folder { file, .. }, StoredReference::File(path)) => {
            file.stored_file(path.as_ref())
        }
        _ => read_stored(reference, environment.store.as_ref(), &environment.vault_key),
    };
    let env_file = |path: &Path| match source {
        Source::Folder { file, .. } => file.env_file(path),
        _ => read_env_file(path),
    };
    let working_folder = env::current_dir().ok();
    let access = FileAccess {
        variables: &*environment.variables,
        env_file: &env_file,
        stored: &stored,
        // In a file that nobody has trusted, each of them is a problem.
        commands: match source {
            Source::Folder { is_trusted: false, .. } => CommandTime::Reading,
            _ => CommandTime::Start,
        },
        // The user's own file belongs to no folder.
        workspace_folder: working_folder.as_deref().filter(|_| matches!(source, Source::Own)),
        working_folder: working_folder.as_deref(),
        saved_policy: saved.map(SavedPolicy::text),
    };
    let mut read = parse_file(text, format, &shown, Some(place), &access)?;
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    // The nodes of a fleet have one configuration, at whatever path.
    let place = if read.fleet.is_some() { "fleet".into() } else { place.to_string_lossy() };
    read.place_limits(&place);
    own_entry::leave_out(&mut read);
    Ok(read)
}

/// Reads a configuration file.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let shown = folders::shown(path);
    let text = File::open(path).and_then(|file| {
        let mut text = String::new();
        // A device may never end. A text that is too long is refused when it is parsed.
        file.take(MAX_FILE_BYTES as u64 + 1).read_to_string(&mut text).map(|_| text)
    });
    text.map_err(|error| {
        let failure = Failure::usage(format!("cannot read {shown}: {error}"));
        match error.kind() {
            io::ErrorKind::NotFound => failure.hint("check the path after --config"),
            io::ErrorKind::InvalidData => failure.hint("save the file as UTF-8"),
            io::ErrorKind::IsADirectory => failure.hint("name a file in it"),
            io::ErrorKind::PermissionDenied => failure.hint("let yourself read it"),
            _ => failure,
        }
    })
}

/// What this process passes to the library: its environment variables, the state folder, the key of
/// the vault, and this program as a worker.
pub(crate) fn environment() -> HostEnvironment {
    HostEnvironment {
        store: store(),
        variables: Arc::new(variable),
        vault_key: vault_key(),
        worker: worker(),
        places: fleet::places(),
    }
}

/// Where the key of the vault is.
pub(crate) fn vault_key() -> VaultKey {
    match env::var("TOOLGATE_VAULT_KEY") {
        Ok(key) if !key.is_empty() => VaultKey::Given(key),
        _ if env::var_os("TOOLGATE_VAULT_KEY_COMMAND").is_some() => {
            static PRINTED: OnceLock<String> = OnceLock::new();
            // Without a key, whatever needs one says that it is too short.
            VaultKey::Given(PRINTED.get_or_init(|| printed_key().unwrap_or_default()).clone())
        }
        _ if env::var_os("TOOLGATE_VAULT").is_some_and(|kind| kind == "file") => VaultKey::File,
        _ => VaultKey::Keychain,
    }
}

/// The key that a command prints, such as that of a key management service.
fn printed_key() -> Option<String> {
    let line = env::var("TOOLGATE_VAULT_KEY_COMMAND").ok()?;
    let printed = read_stored(StoredReference::Command(&line), None, &VaultKey::File);
    if let Err(error) = &printed {
        print::note(format!("warning: the command in TOOLGATE_VAULT_KEY_COMMAND {error}"));
    }
    printed.ok()
}

/// The value of an environment variable.
pub(crate) fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

fn worker() -> Option<PoolSettings> {
    PoolSettings::this_program([WORKER]).ok()
}

/// The default limits of scripts.
pub(crate) fn code() -> Option<CodeSettings> {
    Some(toolgate::setup::code_settings(&CodeModeConfig::default(), worker()?))
}

/// Sends the telemetry that is still queued, for a short time.
pub(crate) async fn flush_telemetry() {
    if let Some(telemetry) = TELEMETRY.get() {
        telemetry.shutdown().await;
    }
}

impl From<HostConfigError> for Failure {
    fn from(error: HostConfigError) -> Self {
        match error {
            HostConfigError::Pins(error) => {
                Failure::usage(format!("{}: {}", folders::shown(&error.path), error.problem)).hint(
                    "restore the file, or remove it and run `toolgate definitions approve --all`, \
                     which approves every tool as it is then",
                )
            }
            HostConfigError::Audit(_) => Failure::usage(error.to_string()).hint(WRITABLE),
            HostConfigError::Choices(error) => error.into(),
            error => Failure::usage(error.to_string()),
        }
    }
}

fn nowhere() -> Failure {
    let mut looked = folders::OF_FOLDER.map(str::to_owned).to_vec();
    looked.extend(folders::own_configuration().map(|path| folders::shown(&path)));
    Failure::usage(format!("there is no configuration; looked for {}", looked.join(", ")))
        .hint("make one from the files of your clients: toolgate setup")
        .hint("or name yours: --config FILE (the file of a client works as it is)")
        .hint("or see toolgate at work without one: toolgate demo")
}

/// Reports the problems of the configuration. The rest of it is still used.
pub(crate) fn report(loaded: &Loaded) {
    report_but(loaded, |_| false);
}

/// [`report`] without the problems that are shown elsewhere.
pub(crate) fn report_but(loaded: &Loaded, is_shown: impl Fn(&Problem) -> bool) {
    for problem in loaded.configuration.problems.iter().filter(|problem| !is_shown(problem)) {
        print::note(problem);
    }
    if let Err(problem) = loaded.writable_store() {
        print::note(format!(
            "warning: {problem}; nothing is stored: no call is recorded, and no approval can be given later\n  hint: {WRITABLE}"
        ));
    }
    let file = folders::shown(&loaded.path);
    if let Some(Err(reason)) = loaded.encoder() {
        print::note(format!(
            "warning: {file}: `toolSearch.embeddings` cannot be used, the built-in word vectors are: {reason}"
        ));
    }
    for problem in &loaded.skills.problems {
        print::note(format!("warning: {}: {}", folders::shown(&problem.path), problem.message));
    }
}

/// Whether something in the configuration costs a server.
pub(crate) fn has_errors(problems: &[Problem]) -> bool {
    errors(problems) > 0
}

/// How many problems are errors.
pub(crate) fn errors(problems: &[Problem]) -> usize {
    problems.iter().filter(|problem| problem.severity == ProblemSeverity::Error).count()
}

impl Loaded {
    /// Whether a person has taken back the trust in the file of the working folder, as it was read.
    pub(crate) fn is_trust_gone(&self) -> bool {
        self.folder_file.as_ref().is_some_and(|file| !file.is_trusted())
    }

    /// Whether the user's configuration applied to that of the folder, and is gone in `new`.
    pub(crate) fn loses_own(&self, new: &Self) -> bool {
        self.has_own && new.is_folders && !new.has_own
    }

    /// Keeps the approved definitions if their file is gone. Returns whether it is.
    pub(crate) fn keep_pins_of(&mut self, old: &Self) -> bool {
        let is_gone = old.lock.is_some()
            && self.path == old.path
            && !self.pins().is_some_and(|pins| pins.exists());
        if is_gone {
            self.config.lock.clone_from(&old.config.lock);
        }
        is_gone
    }

    /// The server `name`, or an error with similar names.
    pub(crate) fn server(&self, name: &str) -> Result<&ServerConfig, Failure> {
        let servers = &self.configuration.servers;
        if let Some(found) = servers.iter().find(|server| server.name == name) {
            return Ok(found);
        }
        Err(Failure::usage(format!("there is no server `{name}` in the configuration"))
            .meaning(name, servers.iter().map(|server| server.name.as_str())))
    }

    /// The policy that is saved in the database of the fleet.
    pub(crate) fn saved(&self) -> Option<&SavedPolicy> {
        self.saved_policy.as_ref().and_then(|(_, saved)| saved.as_ref())
    }

    /// The same with its version, if it is what counts in place of `policy` of this file. Without one that is saved,
    /// the version says so. The file of a working folder has a policy of its own.
    pub(crate) fn fleet_policy(&self) -> Option<&(u64, Option<SavedPolicy>)> {
        self.saved_policy.as_ref().filter(|_| !self.is_folders)
    }

    /// Why every call is denied, if the policy that is saved for all nodes cannot be read.
    fn unreadable_policy(&self) -> Option<String> {
        let name = self.saved()?.name();
        let is_it = |it: &&Problem| *it.source == *name && it.severity == ProblemSeverity::Error;
        let problem = self.configuration.problems.iter().find(is_it)?;
        Some(format!("The {name}: {}.", problem.message))
    }

    /// Whether another policy was saved for all nodes since this was read.
    pub(crate) fn has_old_policy(&self) -> bool {
        self.heard.policy != Heard::now().policy
    }

    /// Whether another node has changed something since this was read.
    pub(crate) fn is_outdated(&self) -> bool {
        self.heard != Heard::now()
    }

    /// Refuses a namespace that does not exist, and suggests similar names.
    pub(crate) fn check_namespace(&self, name: &str) -> Result<(), Failure> {
        let namespaces = self.configuration.namespaces.iter();
        let known: Vec<&str> = namespaces.map(|namespace| namespace.name.as_str()).collect();
        if known.contains(&name) {
            return Ok(());
        }
        let file = folders::shown(&self.path);
        let failure = Failure::usage(format!("{file} has no namespace `{name}`"));
        Err(if known.is_empty() {
            failure.hint("it has none at all: see `namespaces` in docs/servers.md")
        } else {
            failure.meaning(name, known)
        })
    }

    /// The settings of a host with the usable servers of the namespace.
    pub(crate) fn settings(&self, mode: Option<ExposureMode>) -> HostSettings {
        self.settings_of(self.namespace.as_deref(), mode)
    }

    /// The settings of a host for each namespace, by its name, in the order of the file.
    pub(crate) fn namespaces(&self, mode: Option<ExposureMode>) -> Vec<(String, HostSettings)> {
        let names = self.configuration.namespaces.iter().map(|namespace| &namespace.name);
        names.map(|name| (name.clone(), self.settings_of(Some(name), mode))).collect()
    }

    /// The files that the configuration depends on, whether they exist or not.
    pub(crate) fn files(&self, globals: &Globals) -> Vec<PathBuf> {
        let mut files = vec![self.path.clone(), PinFile::beside(&self.path).path().to_owned()];
        files.extend(self.env_files());
        if globals.config.is_none() {
            files.extend(folders::OF_FOLDER.map(PathBuf::from));
            files.extend(folders::own_configuration());
            files.extend(trust::record_file());
        }
        files
    }

    /// The env files of the servers.
    pub(crate) fn env_files(&self) -> impl Iterator<Item = PathBuf> {
        let named =
            self.configuration.servers.iter().filter_map(|it| it.settings.env_file.as_ref());
        named.map(|written| env_file_path(Some(&self.path), written))
    }

    /// The choices for the servers of a namespace.
    pub(crate) fn choice_file(
        &self,
        namespace: Option<&str>,
    ) -> Result<Arc<dyn ChoiceStore>, Failure> {
        self.config.choices(namespace).ok_or_else(no_state_folder)
    }

    /// How a person shows that they are there: as this configuration says, or the user's own if that is
    /// stricter. Another file after `--config` does not make it easier to answer for them.
    pub(crate) fn presence(&self) -> Result<Presence, Failure> {
        Ok(self.configuration.approvals.presence.max(own_presence()?))
    }

    /// The same; the strictest if the user's own configuration cannot be read. So no grant that was
    /// given more easily is used.
    pub(crate) fn presence_or_strictest(&self) -> Presence {
        self.presence().unwrap_or(Presence::Password)
    }

    /// The policy of the namespace.
    pub(crate) fn policy(&self) -> &PolicySettings {
        self.config.policy(self.namespace.as_deref())
    }

    /// What holds without a policy, and how to change it; `None` if there is a policy.
    pub(crate) fn first_policy(&self) -> Option<String> {
        let is_first = !self.configuration.has_policy && self.policy().mode == Mode::AskDestructive;
        is_first.then(|| {
            format!(
                "No policy is set: a person is asked before a tool is called that declares itself destructive, if \
                 the client shows forms or there is a terminal; all other calls go through. Set `policy` in {}: \
                 \"ask\" asks before every change, \"off\" never asks.",
                folders::shown(&self.path)
            )
        })
    }

    pub(crate) fn settings_of(
        &self,
        namespace: Option<&str>,
        mode: Option<ExposureMode>,
    ) -> HostSettings {
        let mut settings = self.config.settings(namespace, mode);
        settings
            .notices
            .extend(self.waiting.iter().map(|path| format!("{}.", trust::waiting(path))));
        settings.notices.extend(self.unreadable_policy());
        settings.policy.presence = self.presence_or_strictest();
        if self.no_servers {
            settings.servers = Vec::new();
            settings.directory = ServerDirectory::default();
            // Servers of a registry that somebody has enabled.
            settings.choices = None;
        }
        if lineage::is_below_server() {
            // The client may be that server.
            settings.forms = ClientForms::NotSent;
        }
        TELEMETRY.get_or_init(|| settings.telemetry.clone());
        settings
    }
}

/// Whether a variable is set for the programs that are started, which inherit ours.
pub(crate) fn is_set(name: &str) -> bool {
    env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// The state folder, if there is one.
pub(crate) fn store() -> Option<Store> {
    let store = folders::state().map(Store::new)?;
    Some(match fleet::joined() {
        Some(joined) => store.sharing(Arc::clone(joined) as Arc<dyn SharedStore>),
        None => store,
    })
}

/// The `fleet` of the configuration. The file of a working folder has none. A mistake in it is a failure: what keeps its
/// records for itself is no part of the fleet.
pub(crate) fn fleet(globals: &Globals) -> Result<Option<FleetConfig>, Failure> {
    let (path, source) = match &globals.config {
        Some(path) => (path.clone(), Source::Given),
        None => match folders::own_configuration().filter(|path| path.is_file()) {
            Some(path) => (path, Source::Own),
            None => return Ok(None),
        },
    };
    // What is wrong with the file is told by the command that reads all of it.
    let Some(text) = read(&path).ok().filter(|text| text.contains("fleet")) else {
        return Ok(None);
    };
    let configuration = parse(&path, &path, &text, &environment(), &source, None)?;
    let is_of_fleet = |problem: &&Problem| {
        problem.severity == ProblemSeverity::Error
            && problem
                .path
                .strip_prefix("fleet")
                .is_some_and(|it| !it.starts_with(char::is_alphanumeric))
    };
    match configuration.problems.iter().find(is_of_fleet) {
        Some(problem) => Err(problem.into()),
        None => Ok(configuration.fleet),
    }
}

/// The state folder, for a command that needs it.
pub(crate) fn required_store() -> Result<Store, Failure> {
    store().ok_or_else(no_state_folder)
}

fn no_state_folder() -> Failure {
    Failure::new("this system has no folder for the data of toolgate")
        .hint("set TOOLGATE_HOME to a folder")
}
