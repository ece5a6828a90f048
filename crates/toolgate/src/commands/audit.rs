//! `toolgate audit`

use std::{
    process::ExitCode,
    time::{Duration, SystemTime},
};

use serde_json::json;
use toolgate_store::{AuditExtent, AuditProblem, AuditRecord};

use crate::{cli::Audit, failure::Failure, load, printer::Printer};

pub(crate) fn run(arguments: &Audit, printer: &mut Printer) -> Result<ExitCode, Failure> {
    let log = load::store().ok_or_else(super::no_place)?.audit();
    let mut problems = Vec::<AuditProblem>::new();
    let since = arguments.since.map(start);
    let extent = log
        .read(&mut |seen| match seen {
            Err(problem) => problems.push(problem),
            Ok((time, record)) => {
                if !arguments.verify && fits(arguments, since, time, &record) {
                    printer.line(if arguments.output.json {
                        let mut row = json!(record);
                        row["time"] = json!(time);
                        row.to_string()
                    } else {
                        shown(time, &record)
                    });
                }
            }
        })
        .map_err(|error| Failure::new(error.to_string()))?;
    for problem in &problems {
        printer.note(format!("error: {problem}"));
    }
    if arguments.verify && problems.is_empty() {
        printer.line(whole(&extent));
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What was verified, and from where on: what was too old is not there any more.
fn whole(extent: &AuditExtent) -> String {
    let AuditExtent { first, lines, files } = *extent;
    let among = if files > 1 { format!(" in {files} files") } else { String::new() };
    let beginning = match first {
        Some((number, time)) if number > 1 => {
            format!(" It begins with number {number}, at {}.", humantime(time))
        }
        _ => String::new(),
    };
    format!("The chain is whole: {lines} lines{among}.{beginning}")
}

fn start(ago: Duration) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.saturating_sub(ago).as_millis()).unwrap_or(u64::MAX)
}

fn fits(arguments: &Audit, since: Option<u64>, time: u64, record: &AuditRecord) -> bool {
    let is = |wanted: &Option<String>, value: &str| wanted.as_deref().is_none_or(|it| it == value);
    is(&arguments.tool, &record.tool)
        && is(&arguments.session, &record.session)
        && is(&arguments.verdict, &record.verdict)
        && since.is_none_or(|since| time >= since)
}

/// One line for a person: nothing in it is a terminal's control sequence.
fn shown(time: u64, record: &AuditRecord) -> String {
    let AuditRecord { kind, caller, tool, verdict, rule, outcome, duration, .. } = record;
    let run = record.run.as_ref().map(|run| format!(" {run}")).unwrap_or_default();
    let line = format!(
        "{} {kind} {tool} {verdict} {outcome} {duration}us, {caller} {}{run}: {rule}",
        humantime(time),
        record.session
    );
    toolgate_policy::definitions::shown(&line, 1_000)
}

/// Seconds since 1970 as a date in UTC.
fn humantime(milliseconds: u64) -> String {
    let seconds = milliseconds / 1_000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days to a date of the Gregorian calendar, by eras of 400 years.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, year) =
        if month < 10 { (month + 3, year + era * 400) } else { (month - 9, year + era * 400 + 1) };
    let (hours, minutes, seconds) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates() {
        assert_eq!(humantime(0), "1970-01-01T00:00:00Z");
        assert_eq!(humantime(951_782_400_000), "2000-02-29T00:00:00Z");
        assert_eq!(humantime(1_794_787_199_999), "2026-11-15T23:59:59Z");
    }
}
