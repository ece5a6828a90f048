//! `toolgate approve`

use std::process::ExitCode;

use toolgate_broker::{Lasts, PersonAnswer};

use super::approvals;
use crate::{
    cli::{Approve, For},
    failure::Failure,
    load,
    printer::Printer,
};

pub(crate) fn run(arguments: &Approve, printer: &mut Printer) -> Result<ExitCode, Failure> {
    let store = load::store().ok_or_else(super::no_place)?;
    let journal = store.journal().map_err(approvals::unusable)?;
    let Some(id) = &arguments.id else {
        let waiting = approvals::waiting(&journal)?;
        if arguments.output.json {
            printer.json(&waiting.iter().map(approvals::data).collect::<Vec<_>>())?;
            return Ok(ExitCode::SUCCESS);
        }
        for call in &waiting {
            printer.line(&call.approval.id);
            for line in call.inquiry.to_string().lines() {
                printer.line(format!("  {line}"));
            }
        }
        printer.note(if waiting.is_empty() {
            "nothing waits for a decision"
        } else {
            "`toolgate approve ID` allows one, `toolgate approve ID --deny` refuses it"
        });
        return Ok(ExitCode::SUCCESS);
    };
    let Some(call) = approvals::find(&journal, id)? else {
        return Err(Failure::usage(format!("nothing waits under the id `{id}`"))
            .hint("`toolgate approve` lists what does"));
    };
    if arguments.show {
        if arguments.output.json {
            printer.json(&approvals::data(&call))?;
        } else {
            printer.line(&call.inquiry);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let answer = answer(arguments);
    let text = approvals::answer(&store, &journal, &call, answer, arguments.expires)?;
    printer.line(text);
    Ok(ExitCode::SUCCESS)
}

fn answer(arguments: &Approve) -> PersonAnswer {
    if arguments.deny {
        return PersonAnswer::Deny;
    }
    let lasts = match arguments.lasts {
        None => Lasts::Once,
        Some(For::Run) => Lasts::Run,
        Some(For::Session) => Lasts::Session,
        Some(For::Always) => Lasts::Always,
    };
    PersonAnswer::Allow { lasts, these_arguments: arguments.these_arguments }
}
