//! `toolgate enable` and `toolgate disable`

use std::process::ExitCode;

use toolgate_registry::Plan;
use toolgate_store::{ChoiceStore, Choices, Consent, SwitchedBy};

use crate::{
    cli::{Enable, Globals},
    decisions,
    failure::{CommandResult, Failure},
    load::{self, Loaded},
    person::{self, ALLOW},
    print,
};

pub(crate) async fn enable(globals: &Globals, arguments: &Enable) -> CommandResult {
    let loaded = load::load(globals)?;
    let file = loaded.choice_file(loaded.namespace.as_deref())?;
    let name = arguments.name.as_str();
    let (unversioned, version) = match name.split_once('@') {
        Some((unversioned, version)) => (unversioned, Some(version)),
        None => (name, None),
    };
    if let Some(server) = configured(&loaded, name) {
        if !server.settings.enabled {
            return Err(Failure::new(format!("the configuration switches `{name}` off"))
                .hint("correct `enabled` or `disabled` of the server there"));
        }
        agreed(&loaded, &*file, name)?;
        let was_off = file.change(|choices| choices.disabled.remove(name).is_some())?;
        decisions::about_server("server", name, true, "enabled")?;
        print::line(if was_off {
            format!("{name} is enabled.")
        } else {
            format!("{name} was enabled already.")
        });
        return Ok(ExitCode::SUCCESS);
    }
    let listed = match loaded.registry() {
        Some(registry) => registry.entry(unversioned, version).await,
        None => None,
    };
    let Some(entry) = listed else {
        let choices = file.read()?;
        if choices.consents.contains_key(unversioned) {
            agreed(&loaded, &*file, unversioned)?;
            file.change(|choices| choices.disabled.remove(unversioned))?;
            decisions::about_server("server", unversioned, true, "enabled")?;
            print::line(format!("{unversioned} is enabled."));
            return Ok(ExitCode::SUCCESS);
        }
        return Err(unknown(&loaded, name));
    };
    let plan = Plan::of(&entry)
        .map_err(|reason| Failure::new(format!("{unversioned} cannot be enabled: {reason}")))?;
    let missing = plan.missing(load::is_set);
    if !missing.is_empty() {
        print::note(format!("warning: not set where you are: {}", missing.join(", ")));
    }
    person::agrees(loaded.presence()?, plan.shown().trim_end(), ALLOW)?;
    let json = serde_json::to_value(&plan).unwrap_or_default();
    let consent = Consent::now(plan.fingerprint(), json);
    file.change(|choices| choices.consent(plan.server.clone(), consent))?;
    let rule = format!("enabled, as {}", plan.fingerprint());
    decisions::about_server("server", &plan.server, true, rule)?;
    print::line(format!("{unversioned} is enabled."));
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn disable(globals: &Globals, name: &str) -> CommandResult {
    let loaded = load::load(globals)?;
    let file = loaded.choice_file(loaded.namespace.as_deref())?;
    let choices = file.read()?;
    if configured(&loaded, name).is_none() && !choices.consents.contains_key(name) {
        return Err(unknown(&loaded, name));
    }
    let off = |choices: &mut Choices| choices.disabled.insert(name.to_owned(), SwitchedBy::Person);
    let was_off = file.change(off)?;
    decisions::about_server("server", name, false, "disabled")?;
    print::line(if was_off.is_none() {
        format!("{name} is disabled: toolgate refuses its calls, and new sessions do not list it.")
    } else {
        format!("{name} was disabled already.")
    });
    Ok(ExitCode::SUCCESS)
}

/// Asks the person before a server is enabled that a person disabled. A model may enable what a model
/// has disabled.
fn agreed(loaded: &Loaded, file: &dyn ChoiceStore, name: &str) -> Result<(), Failure> {
    if file.read()?.disabled.get(name) != Some(&SwitchedBy::Person) {
        return Ok(());
    }
    let shown = format!("A person disabled the server {name}.");
    person::agrees(loaded.presence()?, &shown, "Enable it again?")
}

fn configured<'l>(loaded: &'l Loaded, name: &str) -> Option<&'l toolgate_config::ServerConfig> {
    loaded.configuration.servers.iter().find(|server| server.name == name)
}

fn unknown(loaded: &Loaded, name: &str) -> Failure {
    let file = loaded.choices(loaded.namespace.as_deref());
    let choices = file.and_then(|file| file.read().ok());
    let consents = choices.map(|choices| choices.consents).unwrap_or_default();
    let configured = loaded.configuration.servers.iter().map(|server| server.name.as_str());
    let names = configured.chain(consents.keys().map(String::as_str));
    Failure::usage(format!("there is no server `{name}`")).meaning(name, names)
}
