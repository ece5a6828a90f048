//! The rows of runs and calls.

use rusqlite::{Connection, Row, types::ValueRef};

use super::{
    contents,
    sent::{DAMAGE, call_key},
    unsigned,
};

/// A run that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    /// Its id.
    pub id: String,
    /// `typescript` or `python`.
    pub language: String,
    /// The script.
    pub code: String,
    /// The session that started it.
    pub session: String,
    /// When its clock began, in microseconds since 1970.
    pub began: u64,
    /// The seed of its random numbers.
    pub seed: u64,
    /// The data that was read before it began, as JSON of the caller; may be empty.
    pub before: String,
    /// The namespace that it belongs to; empty for none.
    pub namespace: String,
}

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunState {
    /// It runs, or its process has ended.
    Running,
    /// It waits for an approval.
    Waiting,
    /// It ran to its end.
    Done,
    /// It ended with an error; with other code it may go on.
    Failed,
    /// Its rows are damaged or missing.
    Damaged,
}

/// Which runs somebody wants to see. What is not given does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// In this state. One that is interrupted counts as running.
    pub state: Option<RunState>,
    /// In this language.
    pub language: Option<String>,
    /// Of callers whose names contain this.
    pub caller: Option<String>,
    /// With a call of this tool.
    pub tool: Option<String>,
}

/// The summary of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// Its id.
    pub id: String,
    /// When it was made, in milliseconds since 1970.
    pub created: u64,
    /// When it ended.
    pub ended: Option<u64>,
    /// Its state.
    pub state: RunState,
    /// The number of the process that ran it last.
    pub process: u32,
    /// `typescript` or `python`.
    pub language: String,
    /// The session that started it.
    pub session: String,
    /// How many calls it made.
    pub calls: u64,
    /// How many of them failed.
    pub failed: u64,
}

/// All that is stored of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDetail {
    /// Its summary.
    pub summary: RunSummary,
    /// The script.
    pub code: String,
    /// Its output, as it was shown.
    pub output: String,
    /// Why it failed.
    pub error: Option<String>,
    /// Its calls, in their order.
    pub calls: Vec<RunCall>,
    /// Which results can reach which arguments in the script, as JSON of the caller.
    pub graph: Option<String>,
}

/// A call of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCall {
    /// Its number, from 0.
    pub number: u64,
    /// The tool.
    pub name: String,
    /// Its arguments, as JSON.
    pub arguments: String,
    /// When it was made, in milliseconds since 1970.
    pub made: u64,
    /// The verdict and the rule.
    pub verdict: Option<(String, String)>,
    /// Whether it was sent to its server.
    pub sent: bool,
    /// When it ended.
    pub ended: Option<u64>,
    /// Its result or its error.
    pub outcome: Option<Result<String, String>>,
    /// Whether it was sent and its outcome is unknown.
    pub unknown: bool,
    /// The origin of its arguments, as JSON.
    pub flow: Option<String>,
}

/// The data that a run needs to resume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHistory {
    /// How it began.
    pub run: NewRun,
    /// The original script, if the code was changed.
    pub first_code: Option<String>,
    /// Its state.
    pub state: RunState,
    /// Its calls, in their order.
    pub calls: Vec<PastCallRow>,
    /// The events that the script received, in order.
    pub events: Vec<PastEvent>,
    /// Calls that were sent, and of which nothing else is known any more.
    pub lost: Vec<LostCall>,
}

/// A sent call whose row is damaged or missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostCall {
    /// Its number.
    pub number: u64,
    /// The tool, if it is known.
    pub tool: Option<String>,
    pub(super) key: String,
}

/// A call that a run made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastCallRow {
    /// Its number.
    pub number: u64,
    /// The tool.
    pub name: String,
    /// Its arguments, as the script gave them.
    pub arguments: String,
    /// Whether it may have reached its server.
    pub sent: bool,
    /// The outcome: a value as JSON, or the tool and the message of the exception.
    pub outcome: Option<Result<String, (String, String)>>,
    /// Whether the exception reports an unknown outcome.
    pub unknown: bool,
    /// The origin of its result, as JSON of the broker; `None` in older files.
    pub origin: Option<String>,
}

/// A call that a run makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewCall<'a> {
    /// Its number in the run.
    pub number: u64,
    /// The tool.
    pub name: &'a str,
    /// As JSON.
    pub arguments: &'a str,
    /// The decision; `None` for calls that need none.
    pub decision: Option<CallDecision<'a>>,
    /// Whether it is one of [`RunHistory::lost`], which are not sent again.
    pub lost: bool,
}

/// The decision on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallDecision<'a> {
    /// The verdict of the policy.
    pub verdict: &'a str,
    /// The rule that decided, and who permitted the call.
    pub rule: &'a str,
    /// Whether it is sent next.
    pub sent: bool,
    /// Whether it must not be repeated.
    pub once: bool,
    /// The earlier results that the arguments contain, as JSON, if there are any.
    pub flow: Option<&'a str>,
    /// The origin of its result, as JSON.
    pub origin: Option<&'a str>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallEnd<'a> {
    /// With a value, as JSON.
    Returned(&'a str),
    /// With an exception.
    Threw {
        /// The tool.
        tool: &'a str,
        /// What it says.
        message: &'a str,
    },
    /// With an exception that reports an unknown outcome.
    Unknown {
        /// The tool.
        tool: &'a str,
        /// What it says.
        message: &'a str,
    },
}

/// Something that a script received: the end of a call, or the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PastEvent {
    /// The call; `None` for the time.
    pub call: Option<u64>,
    /// When, in microseconds since the run began.
    pub at: u64,
}

impl LostCall {
    /// Whether this may be the lost call: it has the same arguments, or the same number if nothing
    /// else is known.
    pub fn is(&self, number: u64, name: &str, arguments: &str) -> bool {
        match self.tool {
            Some(_) => self.key == call_key(name, arguments),
            None => self.number == number && !self.is_any(),
        }
    }

    /// Whether a call of this tool with any arguments may be the lost call.
    pub fn may_be(&self, name: &str) -> bool {
        self.is_any() || self.tool.as_deref() == Some(name)
    }

    /// Whether nothing at all is known of the call: its line is damaged.
    pub fn is_any(&self) -> bool {
        self.key == DAMAGE
    }
}

impl RunCall {
    pub(super) fn lost(lost: LostCall, made: u64) -> Self {
        Self {
            number: lost.number,
            name: if lost.is_any() {
                "(a call that is not known)".to_owned()
            } else {
                lost.tool.unwrap_or_default()
            },
            arguments: String::new(),
            made,
            verdict: None,
            sent: true,
            ended: None,
            outcome: None,
            unknown: true,
            flow: None,
        }
    }
}

impl RunSummary {
    pub(super) fn damaged(id: &str, created: u64) -> Self {
        Self {
            id: id.to_owned(),
            created,
            ended: None,
            state: RunState::Damaged,
            process: 0,
            language: String::new(),
            session: String::new(),
            calls: 0,
            failed: 0,
        }
    }

    /// When it was made, in words that sort.
    pub fn created_utc(&self) -> String {
        crate::logs::utc(self.created / 1_000)
    }
}

impl RunState {
    /// The states that a list can be restricted to.
    pub const LISTED: [Self; 4] = [Self::Running, Self::Waiting, Self::Done, Self::Failed];

    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Damaged => "damaged",
        }
    }

    /// The state with this name.
    pub fn named(name: &str) -> Self {
        match name {
            "waiting" => Self::Waiting,
            "done" => Self::Done,
            "failed" => Self::Failed,
            _ => Self::Running,
        }
    }
}

pub(super) fn summary(row: &Row<'_>) -> rusqlite::Result<RunSummary> {
    if row.get(9) != Ok(true) {
        // What else it says is not known, not even that it is of this type.
        let id: String = row.get(0)?;
        return Ok(RunSummary::damaged(&id, row.get(1).map(unsigned).unwrap_or_default()));
    }
    Ok(RunSummary {
        id: row.get(0)?,
        created: unsigned(row.get(1)?),
        ended: row.get::<_, Option<i64>>(2)?.map(unsigned),
        state: RunState::named(&row.get::<_, String>(3)?),
        process: row.get(4)?,
        language: row.get(5)?,
        session: row.get(6)?,
        calls: unsigned(row.get(7)?),
        failed: unsigned(row.get(8)?),
    })
}

/// The text of a column that may be null; `None` if its content is damaged.
fn text(connection: &Connection, row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(Some(String::new())),
        stored => contents::load(connection, stored),
    }
}

/// A call of a run that resumes; `None` if a content of it is damaged.
pub(super) fn past_call(
    connection: &Connection,
    row: &Row<'_>,
) -> rusqlite::Result<Option<PastCallRow>> {
    let ended: Option<i64> = row.get(4)?;
    let (Some(arguments), Some(result)) = (text(connection, row, 2)?, text(connection, row, 7)?)
    else {
        return Ok(None);
    };
    let outcome = match (ended, row.get(5)?) {
        (None, _) => None,
        (Some(_), false) => Some(Ok(result)),
        (Some(_), true) => {
            Some(Err((row.get::<_, Option<String>>(6)?.unwrap_or_default(), result)))
        }
    };
    Ok(Some(PastCallRow {
        number: unsigned(row.get(0)?),
        name: row.get(1)?,
        arguments,
        sent: row.get(3)?,
        outcome,
        unknown: row.get(8)?,
        origin: row.get(9)?,
    }))
}

/// A call of a run that is shown; `None` if a content of it is damaged.
pub(super) fn run_call(
    connection: &Connection,
    row: &Row<'_>,
) -> rusqlite::Result<Option<RunCall>> {
    let (Some(arguments), Some(result)) = (text(connection, row, 2)?, text(connection, row, 9)?)
    else {
        return Ok(None);
    };
    let verdict: Option<String> = row.get(4)?;
    let rule: Option<String> = row.get(5)?;
    let ended: Option<i64> = row.get(7)?;
    let failed: bool = row.get(8)?;
    Ok(Some(RunCall {
        number: unsigned(row.get(0)?),
        name: row.get(1)?,
        arguments,
        made: unsigned(row.get(3)?),
        verdict: verdict.zip(rule),
        sent: row.get(6)?,
        ended: ended.map(unsigned),
        outcome: ended.map(|_| if failed { Err(result) } else { Ok(result) }),
        flow: row.get(10)?,
        unknown: row.get(11)?,
    }))
}
