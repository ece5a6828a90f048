//! What every journal does, wherever it keeps its rows.

use std::fmt;

use super::{
    ApprovalState, GrantRow, JournalError, PersonWait, Retention, RunDetail, RunEntry, RunFilter,
    RunHistory, RunSummary, StoredApproval, TaskRow,
};

/// A journal. Every method is one short transaction, but for [`RunEntries::write_soon`]. Methods wait
/// for the disk or the database.
pub trait Journal: RunEntries + Runs + RunRetention + Approvals + Tasks {}

impl<T: RunEntries + Runs + RunRetention + Approvals + Tasks> Journal for T {}

/// The entries of runs, as they happen. What must not be lost is written before it has an effect.
pub trait RunEntries: fmt::Debug + Send + Sync {
    /// Writes an entry of a run, and all entries that wait.
    fn write(&self, entry: RunEntry<'_>) -> Result<(), JournalError>;

    /// Writes an entry of a run some milliseconds later, or before anything else is read or written.
    /// A killed process may lose it. Fails if an earlier entry of the run could not be written.
    fn write_soon(&self, entry: RunEntry<'_>) -> Result<(), JournalError>;

    /// Writes the entries that wait.
    fn flush(&self);

    /// Fails if it is known that nothing can be written now. Does not wait.
    fn check(&self) -> Result<(), JournalError> {
        Ok(())
    }

    /// Returns when the list of sent calls is on the disk: after a power cut, no call is missing that
    /// must not be repeated. The rows follow some milliseconds later. Concurrent callers share one
    /// sync.
    fn sync(&self) -> Result<(), JournalError>;
}

/// Runs with their calls, and what a run needs to resume.
pub trait Runs: fmt::Debug + Send + Sync {
    /// Writes that a run resumes. `false` if a live process already runs it, or if it is unknown.
    fn resume_run(&self, id: &str) -> Result<bool, JournalError>;

    /// Whether the process of a run still lives.
    fn is_running(&self, id: &str) -> Result<bool, JournalError>;

    /// Writes that a run continues with other code.
    fn code_changed(&self, id: &str, code: &str) -> Result<(), JournalError>;

    /// Writes which data was read before a run continues.
    fn read_before(&self, id: &str, before: &str) -> Result<(), JournalError>;

    /// Resets a call of unknown outcome, so that it is made again when the run resumes. `false` if
    /// there is no such call, or if it has a result.
    fn forget_end(&self, run: &str, number: u64) -> Result<bool, JournalError>;

    /// Forgets the lost calls of a run, so that they are made again when the run resumes.
    fn forget_lost(&self, run: &str) -> Result<(), JournalError>;

    /// Stores the content of a media handle.
    fn keep_media(&self, run: &str, handle: &str, data: &str) -> Result<(), JournalError>;

    /// The contents of the media handles of a run.
    fn media(&self, run: &str) -> Result<Vec<(String, String)>, JournalError>;

    /// The data that a run needs to resume. Its state is [`super::RunState::Damaged`] if rows are damaged.
    fn history(&self, id: &str) -> Result<Option<RunHistory>, JournalError>;

    /// Whether there was such a run, and it cannot be found any more.
    fn is_lost(&self, id: &str) -> bool;

    /// The last runs, newest first. Those that cannot be read are [`super::RunState::Damaged`].
    fn runs(&self, most: u32) -> Result<Vec<RunSummary>, JournalError>;

    /// Runs that fit, newest first, from before the one that was made at this time with this id. Without a filter it
    /// takes as long however many runs there are.
    fn runs_like(
        &self,
        filter: &RunFilter,
        before: Option<(u64, &str)>,
        most: u32,
    ) -> Result<Vec<RunSummary>, JournalError>;

    /// Runs before the one that was made at this time with this id, newest first, as [`Runs::runs`] lists them. It
    /// takes as long however many runs there are before.
    fn runs_before(&self, before: (u64, &str), most: u32) -> Result<Vec<RunSummary>, JournalError> {
        self.runs_like(&RunFilter::default(), Some(before), most)
    }

    /// A run, by its id or by the beginning of it if only one run has that.
    fn run(&self, id: &str) -> Result<Option<RunDetail>, JournalError>;
}

/// How much of old runs is kept.
pub trait RunRetention: fmt::Debug + Send + Sync {
    /// Whether there may be more runs or bytes than the limits allow, by what this process has
    /// written. This looks at no file. Other processes write too, so it is also true now and then.
    fn may_be_beyond(&self, retention: Retention) -> bool;

    /// Whether there are more runs or bytes than the limits allow. This is much less work than
    /// [`RunRetention::prune`].
    fn is_beyond(&self, retention: Retention) -> Result<bool, JournalError>;

    /// Removes runs beyond the limits, the oldest first, and makes the file smaller. Returns how many
    /// runs. Active runs stay, and waiting runs stay until they are too old. If another thread does it
    /// at the moment, this one does nothing.
    fn prune(&self, retention: Retention) -> Result<usize, JournalError>;
}

/// Questions to a person, and grants.
pub trait Approvals: fmt::Debug + Send + Sync {
    /// Adds a question, unless it is already open. Returns its id, or `None` if too many questions
    /// are open.
    fn ask(&self, approval: &StoredApproval) -> Result<Option<String>, JournalError>;

    /// Answers a question, and stores the grant that the answer gives, both or neither: who waits for the answer looks
    /// for the grant at once. `false` if the question is not open.
    fn answer(
        &self,
        id: &str,
        state: ApprovalState,
        answer: &str,
        grant: Option<&GrantRow>,
    ) -> Result<bool, JournalError>;

    /// A question by its whole id: who knows only the beginning has not seen the question.
    fn approval(&self, id: &str) -> Result<Option<StoredApproval>, JournalError>;

    /// The last answer to a question about this subject, of this run if one is given.
    fn answered(
        &self,
        subject: &str,
        run: Option<&str>,
    ) -> Result<Option<StoredApproval>, JournalError>;

    /// The answered questions of a run, the last answer first.
    fn answered_in(&self, run: &str) -> Result<Vec<StoredApproval>, JournalError>;

    /// The questions that wait, oldest first.
    fn open_approvals(&self) -> Result<Vec<StoredApproval>, JournalError>;

    /// When a person was asked about calls of a run, oldest first.
    fn waits_of(&self, run: &str) -> Result<Vec<PersonWait>, JournalError>;

    /// Stores a grant.
    fn grant(&self, grant: &GrantRow) -> Result<(), JournalError>;

    /// Revokes a grant. `false` if there is none.
    fn revoke(&self, id: &str) -> Result<bool, JournalError>;

    /// The current grants, oldest first.
    fn grants(&self) -> Result<Vec<GrantRow>, JournalError>;

    /// Changes whenever a process has changed the journal, so that a cache of the grants knows when
    /// to read them again.
    fn version(&self) -> Result<(u64, u64), JournalError>;

    /// Calls `wake` whenever another process has answered a question, where that is known without a look. Who waits
    /// looks now and then too.
    fn on_answer(&self, wake: Box<dyn Fn() + Send + Sync>) {
        drop(wake);
    }
}

/// Calls that clients have as tasks.
pub trait Tasks: fmt::Debug + Send + Sync {
    /// Writes the state of a task of this process in place of the one before, and removes the tasks that have
    /// expired.
    fn write_task(&self, task: &TaskRow) -> Result<(), JournalError>;

    /// The task of an owner that has not expired, and whether the process that wrote it is alive.
    fn task(&self, id: &str, owner: &str) -> Result<Option<(TaskRow, bool)>, JournalError>;
}
