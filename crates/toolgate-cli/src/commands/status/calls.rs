//! `toolgate status --calls`: the calls of the last hour, as the audit log has them.

use std::{
    process::ExitCode,
    time::{SystemTime, UNIX_EPOCH},
};

use toolgate_host::{CallActivity, one_line};
use toolgate_store::utc;

use crate::{
    failure::{CommandResult, Failure},
    load, print,
    table::{grouped, table},
};

pub(super) fn run(as_json: bool) -> CommandResult {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let now = u64::try_from(now).unwrap_or(u64::MAX);
    let activity = CallActivity::read(&*load::required_store()?.audit(), now)
        .map_err(|error| Failure::new(error.to_string()))?;
    if as_json {
        print::json(&activity)?;
        return Ok(ExitCode::SUCCESS);
    }
    if activity.servers.is_empty() {
        print::line("There were no calls in the last hour.");
        return Ok(ExitCode::SUCCESS);
    }
    let time = |micros: u64| format!("{}.{} ms", grouped(micros / 1_000), micros / 100 % 10);
    let rows = activity.servers.iter().map(|(server, calls)| {
        let last = calls.last_failure.as_ref().map(|(time, tool, how)| {
            format!("{} {}: {how}", utc(time / 1_000), one_line(tool, 64))
        });
        vec![
            one_line(server, 64),
            grouped(calls.calls),
            grouped(calls.failed),
            time(calls.median),
            time(calls.slow),
            last.unwrap_or_default(),
        ]
    });
    let columns = ["server", ">calls", ">failed", ">median", ">95 of 100", "last failure"];
    print::line(table(&columns, rows));
    Ok(ExitCode::SUCCESS)
}
