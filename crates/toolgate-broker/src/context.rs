//! Who makes a call, and where.

use std::{
    any::Any,
    fmt,
    hash::{BuildHasher, Hasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use toolgate_policy::definitions::shown;

use crate::{
    ask::Asker,
    watch::{ReadBefore, RunWatch, SessionWatch},
};

/// What a conversation is to the broker: who is at the other end, and what it has seen.
pub struct SessionContext {
    id: Arc<str>,
    caller: Caller,
    asker: Option<Arc<dyn Asker>>,
    pub(crate) watch: SessionWatch,
}

/// Who is at the other end of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Who they are, as somebody has made sure of: what one identity began, no other goes on with.
    pub identity: Arc<str>,
    /// As questions and the record call them: the identity, and what their client calls itself.
    pub name: Arc<str>,
    /// Whether it is a model or a person who chooses the calls.
    pub made_by: MadeBy,
    /// Whether it is somebody at this machine.
    pub seat: Seat,
}

/// From where a session is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Seat {
    /// By whoever runs this process, or one with them at their machine.
    Here,
    /// By somebody who was let in. What they say binds nobody but themselves.
    Elsewhere,
}

/// Who chose a call and its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MadeBy {
    /// A model, after all that it was shown.
    Model,
    /// A script.
    Script,
    /// A person, at a shell.
    Person,
}

/// What a run of a script is to the broker.
pub struct RunContext {
    id: Arc<str>,
    /// Who began it, where that may be somebody else than goes on with it.
    owner: Option<Arc<str>>,
    ledger: Option<Arc<dyn RunLedger>>,
    pause: Option<Arc<dyn Pause>>,
    /// Whether a question of it went unanswered for as long as one is waited for.
    left_alone: AtomicBool,
    pub(crate) watch: RunWatch,
}

/// Stops the clock of a run. While a person is asked, it is their time that passes.
pub trait Pause: Send + Sync {
    /// Until what is returned is dropped.
    fn pause(&self) -> Box<dyn Any + Send>;
}

/// Who writes down what a run does.
pub trait RunLedger: Send + Sync {
    /// Is told what was decided of a call, right before it is sent where it is. One that cannot be
    /// written down is not sent; why not, in words.
    fn decided(&self, call: u64, decided: &Decided<'_>) -> Result<(), String>;
}

/// What was decided of a call.
#[derive(Debug, Clone, Copy)]
pub struct Decided<'a> {
    /// What the policy said.
    pub verdict: &'a str,
    /// Which rule of it, and who let the call through.
    pub rule: &'a str,
    /// Whether it is sent now.
    pub sent: bool,
    /// Which earlier results it is close to, as JSON, where there are any.
    pub flow: Option<&'a str>,
    /// Where its result will come from: a [`crate::ResultOrigin`], as JSON.
    pub origin: &'a str,
}

/// What is shown of what a client calls itself.
const CLIENT: usize = 64;

/// Where a call comes from.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// The conversation.
    pub session: Arc<SessionContext>,
    /// The run of a script, and the number of the call in it.
    pub run: Option<(Arc<RunContext>, u64)>,
}

impl SessionContext {
    /// A conversation that starts now.
    pub fn new(caller: Caller) -> Self {
        let id = new_id("s");
        Self { id, caller, asker: None, watch: SessionWatch::default() }
    }

    /// With somebody who can be asked, such as the person at a terminal. A client that takes
    /// elicitations is asked before them.
    #[must_use]
    pub fn with_asker(self, asker: Arc<dyn Asker>) -> Self {
        Self { asker: Some(asker), ..self }
    }

    /// What the record calls it.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// What it has read that matters, for a run that begins or goes on in it.
    pub fn read(&self) -> Vec<ReadBefore> {
        self.watch.read(&self.id)
    }

    /// Takes in a text that is made of what another session has read.
    pub fn take_in(&self, read: &[ReadBefore], text: &str) {
        self.watch.take_in(read, text);
    }

    /// Who is at the other end.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    pub(crate) fn asker(&self) -> Option<&Arc<dyn Asker>> {
        self.asker.as_ref()
    }
}

impl Caller {
    /// A model, behind a client of this identity.
    pub fn model(identity: impl Into<Arc<str>>) -> Self {
        let identity = identity.into();
        Self { name: Arc::clone(&identity), identity, made_by: MadeBy::Model, seat: Seat::Here }
    }

    /// A person at a shell.
    pub fn person() -> Self {
        Self { made_by: MadeBy::Person, ..Self::model("shell") }
    }

    /// From elsewhere.
    #[must_use]
    pub fn from_elsewhere(self) -> Self {
        Self { seat: Seat::Elsewhere, ..self }
    }

    /// With what the client calls itself. That is a claim, and shown as one: nothing is decided by it.
    #[must_use]
    pub fn calling_itself(self, client: &str) -> Self {
        let client: String = shown(client.trim(), CLIENT).chars().take(CLIENT).collect();
        let client = client.replace('"', "'");
        if client.is_empty() {
            return self;
        }
        Self { name: format!("\"{client}\" ({})", self.identity).into(), ..self }
    }
}

impl RunContext {
    /// A run of this script, under an id that the journal knows too. Where it goes on with another one,
    /// the script is that which it began with.
    pub fn new(id: impl Into<Arc<str>>, code: &str) -> Self {
        Self {
            id: id.into(),
            owner: None,
            ledger: None,
            pause: None,
            left_alone: AtomicBool::new(false),
            watch: RunWatch::new(code),
        }
    }

    /// As it was begun by this identity: what is allowed to it is allowed to the run, also where a
    /// person at a shell goes on with it.
    #[must_use]
    pub fn owned_by(self, identity: Option<Arc<str>>) -> Self {
        Self { owner: identity, ..self }
    }

    /// With somebody who writes down what is decided.
    #[must_use]
    pub fn with_ledger(self, ledger: Arc<dyn RunLedger>) -> Self {
        Self { ledger: Some(ledger), ..self }
    }

    /// After this was read, in this session or in others.
    #[must_use]
    pub fn after(mut self, before: Vec<ReadBefore>) -> Self {
        self.watch.before = before;
        self
    }

    /// With a clock that stands still while a person is asked.
    #[must_use]
    pub fn with_pause(self, pause: Arc<dyn Pause>) -> Self {
        Self { pause: Some(pause), ..self }
    }

    /// Its id.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Stops its clock until what is returned is dropped.
    pub(crate) fn pause(&self) -> Option<Box<dyn Any + Send>> {
        self.pause.as_ref().map(|pause| pause.pause())
    }

    /// Notes that nobody answered a question of it.
    pub(crate) fn leave_alone(&self) {
        self.left_alone.store(true, Ordering::Relaxed);
    }

    /// Whether nobody answered a question of it.
    pub(crate) fn is_left_alone(&self) -> bool {
        self.left_alone.load(Ordering::Relaxed)
    }
}

impl CallContext {
    /// A call that a session makes itself.
    pub fn direct(session: &Arc<SessionContext>) -> Self {
        Self { session: Arc::clone(session), run: None }
    }

    /// A call that a script makes.
    pub fn of_run(session: &Arc<SessionContext>, run: &Arc<RunContext>, call: u64) -> Self {
        Self { session: Arc::clone(session), run: Some((Arc::clone(run), call)) }
    }

    /// Who chose the call.
    pub fn made_by(&self) -> MadeBy {
        match self.run {
            Some(_) => MadeBy::Script,
            None => self.session.caller.made_by,
        }
    }

    /// Whose the call is: a yes to it is theirs.
    pub(crate) fn identity(&self) -> &Arc<str> {
        let owner = self.run.as_ref().and_then(|(run, _)| run.owner.as_ref());
        owner.unwrap_or(&self.session.caller.identity)
    }

    /// Whether a model that has read the results so far chose the call, or wrote the script.
    pub(crate) fn is_chosen_after_reading(&self) -> bool {
        self.session.caller.made_by == MadeBy::Model
    }

    /// Who writes down what the run does, and the number of the call in it.
    pub(crate) fn ledger(&self) -> Option<(&dyn RunLedger, u64)> {
        let (run, call) = self.run.as_ref()?;
        Some((run.ledger.as_deref()?, *call))
    }

    pub(crate) fn run_id(&self) -> Option<&str> {
        self.run.as_ref().map(|(run, _)| &**run.id())
    }
}

/// A short name that no other thing has; `kind` is what it begins with.
pub fn new_id(kind: &str) -> Arc<str> {
    // Of everything that the standard library has, this is seeded by the system and differs each time.
    let random = RandomState::new().build_hasher().finish();
    format!("{kind}_{:012x}", random >> 16).into()
}

impl fmt::Debug for SessionContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, caller, .. } = self;
        formatter
            .debug_struct("SessionContext")
            .field("id", id)
            .field("caller", caller)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RunContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RunContext").field("id", &self.id).finish_non_exhaustive()
    }
}
