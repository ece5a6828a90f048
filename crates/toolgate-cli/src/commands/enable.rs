//! `toolgate enable` and `toolgate disable`

use std::{
    io::{IsTerminal as _, stdin},
    process::ExitCode,
};

use toolgate_registry::Plan;
use toolgate_store::{Choices, Consent, SwitchedBy};

use crate::{
    cli::{Enable, Globals},
    decisions,
    failure::{CommandResult, Failure},
    load::{self, Loaded},
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
    print::line(plan.shown().trim_end());
    if !missing.is_empty() {
        print::note(format!("warning: not set where you are: {}", missing.join(", ")));
    }
    confirm(arguments.yes)?;
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

/// Asks the person at the terminal, unless they have consented on the command line.
pub(super) fn confirm(is_confirmed: bool) -> Result<(), Failure> {
    if is_confirmed {
        return Ok(());
    }
    if !stdin().is_terminal() {
        return Err(Failure::usage("a person has to consent to this")
            .hint("run it in a terminal, or pass --yes if you have read what is shown"));
    }
    let answer = console_line("Allow this, and nothing else? [y/N] ")?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::new("nothing was allowed")),
    }
}

fn console_line(prompt: &str) -> Result<String, Failure> {
    use std::io::Write as _;

    // On stderr, because stdout may be piped.
    let mut err = anstream::stderr();
    let _ = write!(err, "{prompt}").and_then(|()| err.flush());
    let mut line = String::new();
    stdin()
        .read_line(&mut line)
        .map_err(|error| Failure::new(format!("no answer can be read: {error}")))?;
    Ok(line)
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
