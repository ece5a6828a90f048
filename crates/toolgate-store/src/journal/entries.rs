//! What a run writes to the journal while it goes on.

use std::borrow::Cow;

use rusqlite::{Connection, params};

use super::{
    CallEnd, JournalError, JournalFiles, NewCall, NewRun, RunState, contents, now,
    row_sum::{CALLS, FLOWS, RUNS},
    sent::{SentKind, SentLine, call_key},
    signed, unsigned,
};

/// An entry of a run. [`super::RunEntries::write`] writes it now, [`super::RunEntries::write_soon`] a
/// moment later.
#[derive(Debug)]
pub struct RunEntry<'a>(RunEntryKind<'a>);

/// What an entry says, for those who store it.
#[derive(Debug)]
pub enum RunEntryKind<'a> {
    /// A run begins.
    Began {
        /// The run.
        run: Cow<'a, NewRun>,
        /// When, in milliseconds since 1970.
        created: i64,
    },
    /// A call is about to be made.
    Called(Box<CalledEntry<'a>>),
    /// The script gets the outcome of a call. Its row has the outcome already if there is none here.
    Answered {
        /// The run.
        run: Cow<'a, str>,
        /// The number of the call.
        number: u64,
        /// Microseconds since the run began.
        at: u64,
        /// The outcome.
        answer: Option<Box<AnsweredEntry<'a>>>,
    },
    /// The script reads the time.
    Time {
        /// The run.
        run: Cow<'a, str>,
        /// Microseconds since the run began.
        at: u64,
    },
    /// Which results can reach which arguments.
    Flows {
        /// The run.
        run: Cow<'a, str>,
        /// As JSON of the caller.
        graph: Cow<'a, str>,
    },
    /// The run has ended or waits.
    Ended(EndedEntry<'a>),
}

/// A call that is about to be made; the fields are those of [`NewCall`].
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields are those of `NewCall` and `CallDecision`")]
pub struct CalledEntry<'a> {
    pub run: Cow<'a, str>,
    pub number: u64,
    pub name: Cow<'a, str>,
    pub arguments: Cow<'a, str>,
    pub made: i64,
    pub verdict: Option<Cow<'a, str>>,
    pub rule: Option<Cow<'a, str>>,
    pub sent: bool,
    pub flow: Option<Cow<'a, str>>,
    pub origin: Option<Cow<'a, str>>,
    /// Whether it is sent and must not be repeated.
    pub marked: bool,
    /// Whether the list of sent calls has it already.
    pub lost: bool,
    pub answer: Option<AnsweredEntry<'a>>,
}

/// The outcome of a call.
#[derive(Debug)]
pub struct AnsweredEntry<'a> {
    /// When, in milliseconds since 1970.
    pub ended: i64,
    /// Whether it is an exception.
    pub failed: bool,
    /// Whether the exception reports an unknown outcome.
    pub unknown: bool,
    /// The tool that the exception names.
    pub tool: Option<Cow<'a, str>>,
    /// The value as JSON, or the message of the exception.
    pub result: Cow<'a, str>,
}

/// How a run ended.
#[derive(Debug)]
pub struct EndedEntry<'a> {
    /// The run.
    pub run: Cow<'a, str>,
    /// Its state.
    pub state: RunState,
    /// When, in milliseconds since 1970.
    pub ended: i64,
    /// What was shown.
    pub output: Cow<'a, str>,
    /// Why it failed.
    pub error: Option<Cow<'a, str>>,
}

impl<'a> RunEntry<'a> {
    /// A run begins. It replaces one of the same id that had only begun.
    pub fn began(run: &'a NewRun) -> Self {
        Self(RunEntryKind::Began { run: Cow::Borrowed(run), created: now() })
    }

    /// A call is about to be made, with the decision.
    pub fn called(run: &'a str, call: &NewCall<'a>) -> Self {
        let NewCall { number, name, arguments, decision, lost } = *call;
        Self(RunEntryKind::Called(Box::new(CalledEntry {
            run: run.into(),
            number,
            name: name.into(),
            arguments: arguments.into(),
            made: now(),
            verdict: decision.map(|decision| decision.verdict.into()),
            rule: decision.map(|decision| decision.rule.into()),
            sent: lost || decision.is_some_and(|decision| decision.sent),
            flow: decision.and_then(|decision| decision.flow).map(Into::into),
            origin: decision.and_then(|decision| decision.origin).map(Into::into),
            marked: lost || decision.is_some_and(|decision| decision.sent && decision.once),
            lost,
            answer: None,
        })))
    }

    /// A call has an outcome, which the script gets `at` microseconds after the run began.
    pub fn answered(run: &'a str, number: u64, at: u64, end: CallEnd<'a>) -> Self {
        let (failed, tool, result) = match end {
            CallEnd::Returned(result) => (false, None, result),
            CallEnd::Threw { tool, message } | CallEnd::Unknown { tool, message } => {
                (true, Some(tool), message)
            }
        };
        let answer = AnsweredEntry {
            ended: now(),
            failed,
            unknown: matches!(end, CallEnd::Unknown { .. }),
            tool: tool.map(Into::into),
            result: result.into(),
        };
        Self(RunEntryKind::Answered { run: run.into(), number, at, answer: Some(Box::new(answer)) })
    }

    /// Moves the outcome of a call into the entry of the call, so that one row is written once. Does
    /// nothing if the entries are of different calls.
    pub fn join(&mut self, call: &mut RunEntry<'a>) -> bool {
        match (&mut self.0, &mut call.0) {
            (RunEntryKind::Answered { run, number, answer, .. }, RunEntryKind::Called(call))
                if call.number == *number && call.run == *run && call.answer.is_none() =>
            {
                call.answer = answer.take().map(|answer| *answer);
                true
            }
            _ => false,
        }
    }

    /// The script reads the time, `at` microseconds after the run began.
    pub fn time(run: &'a str, at: u64) -> Self {
        Self(RunEntryKind::Time { run: run.into(), at })
    }

    /// Which results can reach which arguments in the script, as JSON of the caller.
    pub fn flows(run: &'a str, graph: &'a str) -> Self {
        Self(RunEntryKind::Flows { run: run.into(), graph: graph.into() })
    }

    /// The run has ended or waits. If this cannot be written, the run counts as interrupted, and the
    /// end is written with the next successful write.
    pub fn ended(run: &'a str, state: RunState, output: &'a str, error: Option<&'a str>) -> Self {
        let (run, output, error) = (run.into(), output.into(), error.map(Into::into));
        Self(RunEntryKind::Ended(EndedEntry { run, state, ended: now(), output, error }))
    }

    /// What it says.
    pub fn kind(&self) -> &RunEntryKind<'a> {
        &self.0
    }

    /// The id of the run.
    pub fn run(&self) -> &str {
        match &self.0 {
            RunEntryKind::Began { run, .. } => &run.id,
            RunEntryKind::Called(call) => &call.run,
            RunEntryKind::Answered { run, .. }
            | RunEntryKind::Time { run, .. }
            | RunEntryKind::Flows { run, .. } => run,
            RunEntryKind::Ended(end) => &end.run,
        }
    }

    /// About how many bytes it has.
    pub fn bytes(&self) -> usize {
        match &self.0 {
            RunEntryKind::Began { run, .. } => run.code.len() + run.before.len(),
            RunEntryKind::Called(call) => {
                call.arguments.len() + call.flow.as_ref().map_or(0, |it| it.len())
            }
            RunEntryKind::Answered { answer, .. } => {
                answer.as_ref().map_or(0, |it| it.result.len())
            }
            RunEntryKind::Time { .. } => 0,
            RunEntryKind::Flows { graph, .. } => graph.len(),
            RunEntryKind::Ended(end) => end.output.len(),
        }
    }

    /// The line beside the database that belongs to it, once it is written.
    pub(super) fn line(&self) -> Option<SentLine> {
        match &self.0 {
            RunEntryKind::Began { run, created } => {
                Some(SentLine::of_run(SentKind::Began, &run.id, unsigned(*created)))
            }
            _ => None,
        }
    }

    /// Whether it has the outcome of a call.
    pub fn is_answer(&self) -> bool {
        matches!(self.0, RunEntryKind::Answered { .. })
    }

    /// Whether a run ends with it.
    pub fn is_end(&self) -> bool {
        matches!(self.0, RunEntryKind::Ended(_))
    }

    /// The end of the run, if it is one.
    pub(super) fn into_end(self) -> Option<EndedEntry<'static>> {
        match self.0 {
            RunEntryKind::Ended(end) => Some(end.into_owned()),
            _ => None,
        }
    }

    /// The same entry without borrowed parts.
    pub fn into_owned(self) -> RunEntry<'static> {
        RunEntry(match self.0 {
            RunEntryKind::Began { run, created } => {
                RunEntryKind::Began { run: Cow::Owned(run.into_owned()), created }
            }
            RunEntryKind::Called(call) => RunEntryKind::Called(Box::new(CalledEntry {
                run: owned(call.run),
                name: owned(call.name),
                arguments: owned(call.arguments),
                verdict: call.verdict.map(owned),
                rule: call.rule.map(owned),
                flow: call.flow.map(owned),
                origin: call.origin.map(owned),
                answer: call.answer.map(AnsweredEntry::into_owned),
                ..*call
            })),
            RunEntryKind::Answered { run, number, at, answer } => {
                let answer = answer.map(|answer| Box::new(answer.into_owned()));
                RunEntryKind::Answered { run: owned(run), number, at, answer }
            }
            RunEntryKind::Time { run, at } => RunEntryKind::Time { run: owned(run), at },
            RunEntryKind::Flows { run, graph } => {
                RunEntryKind::Flows { run: owned(run), graph: owned(graph) }
            }
            RunEntryKind::Ended(end) => RunEntryKind::Ended(end.into_owned()),
        })
    }

    /// Writes the entry, in the transaction of `connection`.
    pub(super) fn write(
        &self,
        files: &JournalFiles,
        connection: &Connection,
    ) -> Result<(), JournalError> {
        let failed = |source| JournalError::new(&files.path, source);
        match &self.0 {
            RunEntryKind::Began { run, created } => begin(files, connection, run, *created),
            RunEntryKind::Called(call) => {
                if call.marked && !call.lost {
                    let (run, tool) = (call.run.to_string(), call.name.to_string());
                    let (number, key) = (call.number, call_key(&call.name, &call.arguments));
                    files.mark(&SentLine { kind: SentKind::Sent, run, number, key, tool })?;
                }
                call.write(connection).map_err(failed)
            }
            RunEntryKind::Answered { run, number, at, answer } => {
                let answered = answer.as_ref().map(|answer| answer.write(connection, run, *number));
                answered.unwrap_or(Ok(())).map_err(failed)?;
                tell(connection, run, Some(*number), *at).map_err(failed)
            }
            RunEntryKind::Time { run, at } => tell(connection, run, None, *at).map_err(failed),
            RunEntryKind::Flows { run, graph } => {
                FLOWS.insert(connection, params![run, graph]).map_err(failed)
            }
            RunEntryKind::Ended(end) => end.write(connection).map_err(failed),
        }
    }
}

fn begin(
    files: &JournalFiles,
    connection: &Connection,
    run: &NewRun,
    created: i64,
) -> Result<(), JournalError> {
    let life = files.life()?;
    let NewRun { id, language, code, session, began, seed, before, namespace } = run;
    let (began, seed, process) = (signed(*began), signed(*seed), std::process::id());
    let (none, state) = (None::<&str>, RunState::Running.name());
    let row = params![
        id, created, none, state, language, code, session, began, seed, "", none, process, life,
        before, namespace, none
    ];
    RUNS.insert(connection, row).map_err(|source| JournalError::new(&files.path, source))
}

impl CalledEntry<'_> {
    fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        let run = &self.run;
        let arguments = contents::store(connection, run, &self.arguments)?;
        let answer = self.answer.as_ref();
        let result = answer.map(|answer| contents::store(connection, run, &answer.result));
        CALLS.insert(
            connection,
            params![
                run,
                signed(self.number),
                self.name,
                arguments,
                self.made,
                self.verdict,
                self.rule,
                self.sent,
                answer.map(|answer| answer.ended),
                answer.is_some_and(|answer| answer.failed),
                answer.and_then(|answer| answer.tool.as_ref()),
                result.transpose()?,
                self.flow,
                answer.is_some_and(|answer| answer.unknown),
                self.origin,
                self.marked
            ],
        )
    }
}

impl AnsweredEntry<'_> {
    fn write(&self, connection: &Connection, run: &str, number: u64) -> rusqlite::Result<()> {
        let number = signed(number);
        let result = contents::store(connection, run, &self.result)?;
        let update =
            "UPDATE calls SET ended = ?3, failed = ?4, tool = ?5, result = ?6, unknown = ?7
             WHERE run = ?1 AND number = ?2";
        connection.prepare_cached(update)?.execute(params![
            run,
            number,
            self.ended,
            self.failed,
            self.tool,
            result,
            self.unknown
        ])?;
        CALLS.seal(connection, params![run, number])
    }

    fn into_owned(self) -> AnsweredEntry<'static> {
        let Self { ended, failed, unknown, tool, result } = self;
        let (tool, result) = (tool.map(owned), owned(result));
        AnsweredEntry { ended, failed, unknown, tool, result }
    }
}

fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}

impl EndedEntry<'_> {
    pub(super) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        let Self { run, state, ended, output, error } = self;
        let update =
            "UPDATE runs SET state = ?2, ended = ?3, output = ?4, error = ?5 WHERE id = ?1";
        connection.prepare_cached(update)?.execute(params![
            run,
            state.name(),
            ended,
            output,
            error
        ])?;
        RUNS.seal(connection, [run])
    }

    fn into_owned(self) -> EndedEntry<'static> {
        let Self { run, state, ended, output, error } = self;
        let (run, output) = (Cow::Owned(run.into_owned()), Cow::Owned(output.into_owned()));
        EndedEntry {
            run,
            state,
            ended,
            output,
            error: error.map(|text| Cow::Owned(text.into_owned())),
        }
    }
}

fn tell(connection: &Connection, run: &str, call: Option<u64>, at: u64) -> rusqlite::Result<()> {
    let insert = "INSERT INTO events (run, position, call, at, sum)
         SELECT ?1, position, ?2, ?3, row_sum(?1, position, ?2, ?3)
         FROM (SELECT coalesce(max(position), 0) + 1 AS position FROM events WHERE run = ?1)";
    connection.prepare_cached(insert)?.execute(params![run, call.map(signed), signed(at)])?;
    Ok(())
}
