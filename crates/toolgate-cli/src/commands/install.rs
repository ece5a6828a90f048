//! `toolgate completions` and `toolgate man`: what a package installs beside the program.

use std::{path::Path, process::ExitCode};

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::{
    cli::Cli,
    failure::{CommandResult, Failure},
    print,
};

pub(crate) fn completions(shell: Shell) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "toolgate", &mut script);
    print::line(String::from_utf8_lossy(&script).trim_end());
    ExitCode::SUCCESS
}

pub(crate) fn man(folder: Option<&Path>) -> CommandResult {
    let cannot = |error| Failure::new(format!("the manual page cannot be written: {error}"));
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder).map_err(cannot)?;
        clap_mangen::generate_to(Cli::command(), folder).map_err(cannot)?;
    } else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(cannot)?;
        print::line(String::from_utf8_lossy(&page).trim_end());
    }
    Ok(ExitCode::SUCCESS)
}
