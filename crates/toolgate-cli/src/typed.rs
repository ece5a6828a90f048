//! Secrets that a person types.

use std::io::{self, BufRead as _, IsTerminal as _};

use crate::{failure::Failure, print};

/// Longer than any key.
const LONGEST: u64 = 64 * 1024;

/// A line of stdin. A terminal does not show it. `what` is what messages call it.
pub(crate) fn secret(what: &str) -> Result<String, Failure> {
    let failed = |error: io::Error| Failure::usage(format!("the {what} cannot be read: {error}"));
    let typed = if io::stdin().is_terminal() {
        print::note(format!("Type or paste the {what}, and press Enter. It is not shown."));
        console::Term::stderr().read_secure_line().map_err(failed)?
    } else {
        let mut typed = String::new();
        let stdin = io::stdin().lock();
        io::Read::take(stdin, LONGEST).read_line(&mut typed).map_err(failed)?;
        typed
    };
    let typed = typed.trim().to_owned();
    if typed.is_empty() {
        let problem = format!("the {what} is empty");
        return Err(Failure::usage(problem).hint("write it to stdin, on one line"));
    }
    Ok(typed)
}
