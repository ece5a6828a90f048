//! `toolgate secret`

use std::process::ExitCode;

use toolgate::setup::vault_name;

use super::servers::stored_names;

use crate::{
    cli::{Globals, SecretCommand},
    failure::{CommandResult, Failure},
    lineage, load, print, typed,
};

pub(crate) fn run(globals: &Globals, command: &SecretCommand) -> CommandResult {
    lineage::refuse_servers()?;
    let vault = load::required_store()?.vault(load::vault_key());
    let unusable = |error| Failure::new(format!("the stored values cannot be used: {error}"));
    match command {
        SecretCommand::Set { name } => {
            if name.trim().is_empty() || name.contains(['{', '}']) {
                return Err(Failure::usage("a name has at least one letter, and no braces"));
            }
            vault.save(&vault_name(name), &typed::secret("value")?).map_err(unusable)?;
            print::note(format!(
                "Stored, encrypted: a configuration uses it as ${{keychain:{name}}}."
            ));
        }
        SecretCommand::List { .. } => {
            let path = load::load(globals)?.path;
            let text = load::read(&path)?;
            let mut names = stored_names(&text);
            names.sort_unstable();
            names.dedup();
            for name in names {
                let value = vault.load(&vault_name(name)).map_err(unusable)?;
                let state = if value.is_some() { "" } else { " (no value is stored)" };
                print::line(format!("{name}{state}"));
            }
        }
        SecretCommand::Remove { name } => {
            vault.forget(&vault_name(name)).map_err(unusable)?;
            print::note(format!("Nothing is stored as {name} now."));
        }
    }
    Ok(ExitCode::SUCCESS)
}
