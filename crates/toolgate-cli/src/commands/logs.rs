//! `toolgate logs`

use std::{process::ExitCode, time::Duration};

use toolgate_store::ServerLog;

use crate::{
    cli::{Globals, Logs},
    failure::{CommandResult, Failure},
    load, print,
};

/// How often a log is looked at that is followed.
const LOOK: Duration = Duration::from_millis(300);

pub(crate) async fn run(globals: &Globals, arguments: &Logs) -> CommandResult {
    let log = load::required_store()?.log(&arguments.name);
    let lines = tail(&log, arguments.lines)?;
    // An empty log of a server that does not exist is most likely a typing error.
    if lines.is_empty()
        && let Ok(loaded) = load::load(globals)
    {
        loaded.server(&arguments.name)?;
    }
    let empty = format!("server `{}` has written nothing yet", arguments.name);
    print::list(arguments.output.json, &lines, &empty, || lines.join("\n"))?;
    if arguments.follow {
        follow(&log).await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints new lines, until the process is interrupted.
async fn follow(log: &ServerLog) -> Result<(), Failure> {
    let mut seen = tail(log, usize::MAX)?;
    loop {
        tokio::time::sleep(LOOK).await;
        let now = tail(log, usize::MAX)?;
        if now.len() == seen.len() && now.last() == seen.last() {
            continue;
        }
        // A long log loses its oldest lines: what was seen last is still there.
        let known = if now.starts_with(&seen) {
            seen.len()
        } else {
            let last = seen.last();
            now.iter().rposition(|line| Some(line) == last).map_or(0, |place| place + 1)
        };
        now[known..].iter().for_each(print::line);
        seen = now;
    }
}

fn tail(log: &ServerLog, lines: usize) -> Result<Vec<String>, Failure> {
    log.tail(lines).map_err(|error| Failure::new(format!("the log cannot be read: {error}")))
}
