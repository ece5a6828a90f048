//! `toolgate completions` and `toolgate man`: what a package installs beside the program.

use std::process::ExitCode;

use clap::CommandFactory as _;

use crate::{
    cli::{Cli, Completions, Man},
    failure::Failure,
    printer::Printer,
};

pub(crate) fn completions(arguments: &Completions, printer: &mut Printer) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "toolgate", &mut script);
    printer.line(String::from_utf8_lossy(&script).trim_end());
    ExitCode::SUCCESS
}

pub(crate) fn man(arguments: &Man, printer: &mut Printer) -> Result<ExitCode, Failure> {
    let cannot = |error| Failure::new(format!("the manual page cannot be written: {error}"));
    if let Some(folder) = &arguments.folder {
        std::fs::create_dir_all(folder).map_err(cannot)?;
        clap_mangen::generate_to(Cli::command(), folder).map_err(cannot)?;
    } else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(cannot)?;
        printer.line(String::from_utf8_lossy(&page).trim_end());
    }
    Ok(ExitCode::SUCCESS)
}
