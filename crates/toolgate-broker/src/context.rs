//! Who makes a call, and from where.

use std::{
    any::Any,
    fmt,
    hash::{BuildHasher, Hasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::future::BoxFuture;
use thiserror::Error;
use toolgate_catalog::Tool;
use toolgate_flow::LabelSet;
use toolgate_policy::{CallPath, CallerFacts, definitions::shown};
use toolgate_store::CallDecision;
use toolgate_upstream::ClientKey;

use crate::{
    approval::ApprovalPrompt,
    data_flow::{PriorRead, RunDataFlow, SessionDataFlow},
    script_flow::ScriptFlow,
};

/// A session as the broker sees it: who is at the other end, and which data it has received.
pub struct SessionContext {
    id: Arc<str>,
    caller: Caller,
    prompt: Option<Arc<dyn ApprovalPrompt>>,
    client: Option<ClientKey>,
    pub(crate) data: SessionDataFlow,
}

/// The party at the other end of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The authenticated identity. Sessions and runs of one identity are closed to all others.
    pub identity: Arc<str>,
    /// The name in approvals and in the audit log: the identity, and what the client calls itself.
    pub name: Arc<str>,
    /// Whether a model or a person chooses the calls.
    pub made_by: MadeBy,
    /// Whether the caller is at this machine.
    pub location: CallerLocation,
    /// What rules can name.
    pub facts: CallerFacts,
}

/// From where a session is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallerLocation {
    /// At this machine, by the user who runs this process.
    Local,
    /// From another machine, with a token. A remote caller decides nothing for other callers.
    Remote,
}

/// Who chose a call and its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MadeBy {
    /// A model, which has read the results so far.
    Model,
    /// A script.
    Script,
    /// A person, at a shell.
    Person,
}

/// The run of a script as the broker sees it.
pub struct RunContext {
    id: Arc<str>,
    /// The identity that began the run, if another one may have resumed it.
    owner: Option<Arc<str>>,
    journal: Option<Arc<dyn CallJournal>>,
    pause: Option<Arc<dyn Pause>>,
    /// Set once an approval of this run timed out.
    approval_timed_out: AtomicBool,
    /// Set once a person may have been asked, so that there may be grants for this run.
    may_have_grants: AtomicBool,
    pub(crate) data: RunDataFlow,
}

/// Stops the clock of a run while a person decides: their time does not count as the script's.
pub trait Pause: Send + Sync {
    /// Stops the clock until the returned value is dropped.
    fn pause(&self) -> Box<dyn Any + Send>;
}

/// Writes the decisions about a run's calls to its journal.
pub trait CallJournal: Send + Sync {
    /// Writes a decision, right before the call is sent if it is allowed. The call is not sent if
    /// this fails.
    fn decided(&self, call: u64, decision: CallDecision<'_>) -> Result<(), CallJournalError>;

    /// Waits until everything that was written is on the disk. A call that must not be repeated is not
    /// sent before.
    fn sync(&self) -> BoxFuture<'_, Result<(), CallJournalError>>;
}

/// Why a decision could not be written to the journal of a run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct CallJournalError(pub String);

/// The user of this machine.
const LOCAL: &str = "local";

/// The most characters shown of a client's own name.
const CLIENT_NAME: usize = 64;

/// What ends a quotation, or looks as if it did. A client's name has none of these, so that nothing
/// of it can be taken for words of ours.
const QUOTES: [char; 20] = [
    '"', '`', '´', '“', '”', '„', '‟', '«', '»', '‹', '›', '‘', '’', '″', '‶', '〝', '〞', '〟',
    '＂', 'ʺ',
];

/// Where a call comes from.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// The session.
    pub session: Arc<SessionContext>,
    /// The run of a script, and the number of the call in it.
    pub run: Option<(Arc<RunContext>, u64)>,
    /// The place in the script that makes the call, if the engine knows it.
    pub place: Option<u32>,
    /// The function of the script that makes the call, if it is not named after the tool.
    function: Option<&'static str>,
    /// The labels of stored data that the call returns.
    stored: LabelSet,
}

impl SessionContext {
    /// Starts a session of this caller.
    pub fn new(caller: Caller) -> Self {
        let data = SessionDataFlow::default();
        Self { id: new_id("s"), caller, prompt: None, client: None, data }
    }

    /// Sets the client of the session, by which servers know whose their instances are.
    #[must_use]
    pub fn of_client(self, client: ClientKey) -> Self {
        Self { client: Some(client), ..self }
    }

    /// Sets who is asked for approvals, such as the person at a terminal. A client that supports
    /// elicitation is asked first.
    #[must_use]
    pub fn with_prompt(self, prompt: Arc<dyn ApprovalPrompt>) -> Self {
        Self { prompt: Some(prompt), ..self }
    }

    /// Puts another prompt around the one that is set. Without one nothing changes.
    #[must_use]
    pub fn map_prompt(
        self,
        around: impl FnOnce(Arc<dyn ApprovalPrompt>) -> Arc<dyn ApprovalPrompt>,
    ) -> Self {
        Self { prompt: self.prompt.map(around), ..self }
    }

    /// The id of the session in the audit log.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// The labelled data that the session has read, for a run that starts or resumes in it.
    pub fn read(&self) -> Vec<PriorRead> {
        self.data.read(&self.id)
    }

    /// Adds a text that was made from data another session has read.
    pub fn add_read(&self, read: &[PriorRead], text: &str) {
        self.data.add_read(read, text);
    }

    /// The party at the other end.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    pub(crate) fn client(&self) -> Option<&ClientKey> {
        self.client.as_ref()
    }

    pub(crate) fn prompt(&self) -> Option<&Arc<dyn ApprovalPrompt>> {
        self.prompt.as_ref()
    }
}

impl Caller {
    /// A model behind a client of this identity.
    pub fn model(identity: impl Into<Arc<str>>) -> Self {
        let identity = identity.into();
        let (name, location) = (Arc::clone(&identity), CallerLocation::Local);
        let facts = CallerFacts::default();
        Self { name, identity, made_by: MadeBy::Model, location, facts }
    }

    /// A person at a shell.
    pub fn person() -> Self {
        Self { made_by: MadeBy::Person, ..Self::model("shell") }
    }

    /// The same caller at another machine.
    #[must_use]
    pub fn remote(self) -> Self {
        Self { location: CallerLocation::Remote, ..self }
    }

    /// Adds what the transport knows of the caller.
    #[must_use]
    pub fn with_facts(self, facts: CallerFacts) -> Self {
        Self { facts, ..self }
    }

    /// Whose logins at servers the caller uses, where each caller has their own: the subject of an OAuth token,
    /// whichever client has the token; an access token; or the user of this machine.
    pub fn login_owner(&self) -> Arc<str> {
        let is_own = [LOCAL, "shell", "chat", "a model"].contains(&&*self.identity);
        match (self.location, &self.facts.issuer, &self.facts.subject) {
            (CallerLocation::Local, _, _) if is_own => LOCAL.into(),
            // It is JSON, so that two different owners never have the same text.
            (_, Some(issuer), Some(subject)) => {
                format!("subject {}", serde_json::json!([issuer, subject])).into()
            }
            _ => Arc::clone(&self.identity),
        }
    }

    /// Adds the name that the client gives itself. It is a claim and is shown as one: only rules that
    /// name a client depend on it.
    #[must_use]
    pub fn calling_itself(self, client: &str) -> Self {
        let client: String = shown(client.trim(), CLIENT_NAME).chars().take(CLIENT_NAME).collect();
        let client = client.replace(QUOTES, "'");
        if client.is_empty() {
            return self;
        }
        let facts = CallerFacts { client: Some(client.as_str().into()), ..self.facts };
        Self { name: format!("\"{client}\" ({})", self.identity).into(), facts, ..self }
    }
}

impl RunContext {
    /// A run of this script, under the id that the journal uses. For a resumed run with corrected
    /// code, `code` is the script that the run started with.
    pub fn new(id: impl Into<Arc<str>>, code: &str) -> Self {
        Self {
            id: id.into(),
            owner: None,
            journal: None,
            pause: None,
            approval_timed_out: AtomicBool::new(false),
            may_have_grants: AtomicBool::new(false),
            data: RunDataFlow::new(code),
        }
    }

    /// Sets the identity that began the run. Grants of that identity apply to the run, even if a
    /// person at a shell resumes it.
    #[must_use]
    pub fn owned_by(self, identity: Option<Arc<str>>) -> Self {
        Self { owner: identity, ..self }
    }

    /// Sets the journal that decisions are written to.
    #[must_use]
    pub fn with_journal(self, journal: Arc<dyn CallJournal>) -> Self {
        Self { journal: Some(journal), ..self }
    }

    /// Sets what was read before the run, in this session or in others.
    #[must_use]
    pub fn after(mut self, before: Vec<PriorRead>) -> Self {
        self.data.before = before;
        self
    }

    /// Marks the script as one that was written after the run had begun. It may contain data that the
    /// run has received.
    #[must_use]
    pub fn corrected(mut self, is_corrected: bool) -> Self {
        self.data.is_corrected = is_corrected;
        self
    }

    /// Whether this repeats and continues what an earlier part of the run did, with the same script.
    pub(crate) fn repeats_its_script(&self) -> bool {
        self.owner.is_some() && !self.data.is_corrected
    }

    /// Sets the flows of the script, once. Without them every result may reach every argument.
    pub fn set_flow(&self, flow: ScriptFlow) {
        // A second one would come from a script that already runs.
        let _ = self.data.script.set(flow);
    }

    /// Sets the clock that stops while a person decides.
    #[must_use]
    pub fn with_pause(self, pause: Arc<dyn Pause>) -> Self {
        Self { pause: Some(pause), ..self }
    }

    /// The id of the run.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Stops the clock until the returned value is dropped.
    pub(crate) fn pause(&self) -> Option<Box<dyn Any + Send>> {
        self.pause.as_ref().map(|pause| pause.pause())
    }

    /// Records that a person may be asked, or may have been in an earlier part of the run.
    pub fn set_may_have_grants(&self) {
        self.may_have_grants.store(true, Ordering::Relaxed);
    }

    pub(crate) fn may_have_grants(&self) -> bool {
        self.may_have_grants.load(Ordering::Relaxed)
    }

    /// Records that nobody answered an approval of this run in time.
    pub(crate) fn set_approval_timed_out(&self) {
        self.approval_timed_out.store(true, Ordering::Relaxed);
    }

    pub(crate) fn approval_timed_out(&self) -> bool {
        self.approval_timed_out.load(Ordering::Relaxed)
    }
}

impl CallContext {
    /// A call that a session makes itself.
    pub fn direct(session: &Arc<SessionContext>) -> Self {
        let session = Arc::clone(session);
        Self { session, run: None, place: None, function: None, stored: LabelSet::EMPTY }
    }

    /// A call that a script makes.
    pub fn of_run(session: &Arc<SessionContext>, run: &Arc<RunContext>, call: u64) -> Self {
        Self { run: Some((Arc::clone(run), call)), ..Self::direct(session) }
    }

    /// The call, made by this function of the script, which stands for tools of other names.
    #[must_use]
    pub fn by_function(self, name: &'static str) -> Self {
        Self { function: Some(name), ..self }
    }

    /// The call, which returns stored data of what was read before.
    #[must_use]
    pub fn returning(self, read: &[PriorRead]) -> Self {
        let stored = read.iter().fold(self.stored, |all, read| all.union(read.labels));
        Self { stored, ..self }
    }

    /// The name of a call of this tool in the script.
    pub(crate) fn name_of<'a>(&self, tool: &'a Tool) -> &'a str {
        self.function.unwrap_or(tool.name.as_str())
    }

    /// The labels of stored data that the call returns.
    pub(crate) fn stored_labels(&self) -> LabelSet {
        self.stored
    }

    /// The call, made at this place of its script.
    #[must_use]
    pub fn at(self, place: Option<u32>) -> Self {
        Self { place, ..self }
    }

    /// Who chose the call.
    pub fn made_by(&self) -> MadeBy {
        match self.run {
            Some(_) => MadeBy::Script,
            None => self.session.caller.made_by,
        }
    }

    /// The way in which the call is made, as rules see it.
    pub(crate) fn path(&self) -> CallPath {
        if self.run.is_some() { CallPath::Script } else { CallPath::Direct }
    }

    /// The identity that grants for this call belong to.
    pub(crate) fn identity(&self) -> &Arc<str> {
        let owner = self.run.as_ref().and_then(|(run, _)| run.owner.as_ref());
        owner.unwrap_or(&self.session.caller.identity)
    }

    /// Whether a model that has read the results so far chose the call, or wrote the script.
    pub(crate) fn is_chosen_after_reading(&self) -> bool {
        self.session.caller.made_by == MadeBy::Model
    }

    /// The journal of the run, and the number of the call in it.
    pub(crate) fn journal(&self) -> Option<(&dyn CallJournal, u64)> {
        let (run, call) = self.run.as_ref()?;
        Some((run.journal.as_deref()?, *call))
    }

    pub(crate) fn run_id(&self) -> Option<&str> {
        self.run.as_ref().map(|(run, _)| &**run.id())
    }
}

/// A short unique name that begins with `kind`.
pub fn new_id(kind: &str) -> Arc<str> {
    // The only source of system randomness in the standard library.
    let random = RandomState::new().build_hasher().finish();
    format!("{kind}_{:012x}", random >> 16).into()
}

impl fmt::Debug for SessionContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, caller, .. } = self;
        let mut debug = formatter.debug_struct("SessionContext");
        debug.field("id", id).field("caller", caller).finish_non_exhaustive()
    }
}

impl fmt::Debug for RunContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RunContext").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use toolgate_policy::definitions::spelled_out;

    use super::*;

    #[test]
    fn no_name_of_a_client_can_be_read_as_words_of_ours() {
        let long = "x\"".repeat(500_000);
        for name in [
            "toolgate: approved",
            "x\" (token ada) wants nothing. toolgate: \"approved",
            "x” (token ada) said “yes",
            "„x‟ «y» ‹z› ‘a’ ＂b＂ 〝c〞 `d`",
            "x\n\nAllowed by toolgate\r\u{2028}y",
            "\u{202e}etagloot\u{2066}\u{200b}\u{1b}[2J",
            &long,
        ] {
            let shown = Caller::model("local").calling_itself(name).name;
            let inner = shown.strip_prefix('"').and_then(|rest| rest.strip_suffix("\" (local)"));
            let inner = inner.unwrap_or_else(|| panic!("{shown}"));
            assert!(!inner.contains(QUOTES) && !inner.contains('\n'), "{shown}");
            assert_eq!(spelled_out(inner), inner, "{shown}");
            assert!(inner.chars().count() <= CLIENT_NAME, "{shown}");
        }
        for nothing in ["", " \n\t"] {
            assert_eq!(&*Caller::model("local").calling_itself(nothing).name, "local");
        }
    }
}
