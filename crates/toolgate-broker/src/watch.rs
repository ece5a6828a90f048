//! Which data a session and a run have seen, and what of it a call carries.
//!
//! Nothing is watched until a tool with labels has returned something: without labels a call pays
//! for one look at a lock.

use std::{
    collections::VecDeque,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_catalog::ToolId;
use toolgate_flow::{DataOrigin, Label, LabelSet, Memory, Trace};
use toolgate_policy::{Contact, Evidence, Flow, FlowMode};

use crate::context::CallContext;

/// What a session has seen.
#[derive(Default)]
pub(crate) struct SessionWatch {
    seen: Mutex<Seen>,
}

/// A tool whose results were read before a run began, or went on, by whoever wrote its script. A run
/// can go on in another session, which does not know of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadBefore {
    /// Who read it. As long as that session is there, it knows what it was.
    pub session: Arc<str>,
    /// The tool.
    pub tool: ToolId,
    /// What is said of its results.
    pub labels: LabelSet,
}

/// Where a result of a run comes from, as it is kept with the call: who goes on with the run knows it,
/// whatever has become of the tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultOrigin {
    /// The tool.
    pub tool: ToolId,
    /// What is said of the result: what is said of the tool, and of what the call carried.
    pub labels: LabelSet,
}

/// What a run has seen.
pub(crate) struct RunWatch {
    /// What the script says by itself: the first of the run. Another one was written by somebody who may
    /// have read what the first was told.
    code: Arc<str>,
    pub(crate) before: Vec<ReadBefore>,
    seen: Mutex<Seen>,
    /// What the session had seen when the run made its first call. Whoever wrote the script knew it.
    began: OnceLock<u64>,
}

#[derive(Default)]
struct Seen {
    memory: Memory,
    /// The results in the memory; `first` is the number of the oldest.
    past: VecDeque<Past>,
    first: u64,
    /// Each tool once, with all that was ever said of its results.
    touched: Vec<Past>,
}

/// A result that matters.
#[derive(Clone)]
struct Past {
    number: u64,
    tool: ToolId,
    labels: LabelSet,
    run: Option<Arc<str>>,
    /// Its number in the run that looks back, where that is its own.
    run_call: Option<u64>,
}

/// Results whose tool is remembered. What is older is known by its tool alone.
const PAST: usize = 65_536;

/// What may be said of a result; the other labels are about what a tool takes.
pub(crate) fn of_result(labels: LabelSet) -> LabelSet {
    labels.intersection([Label::Private, Label::Untrusted].into_iter().collect())
}

/// What is known of the data behind a call.
pub(crate) fn flow(context: &CallContext, tool: &str, arguments: &Value, mode: FlowMode) -> Flow {
    let mut evidence = Vec::new();
    let session = &context.session.watch;
    let run = context.run.as_ref().map(|(run, _)| run);
    let began = run.map(|run| *run.watch.began.get_or_init(|| session.seen.lock().next()));
    if mode == FlowMode::Off {
        return Flow::NONE;
    }
    if let Some(run) = run {
        let mut seen = run.watch.seen.lock();
        seen.look(tool, arguments, mode, |_| true, &mut evidence);
        let elsewhere = run.watch.before.iter().filter(|it| it.session != *context.session.id());
        evidence.extend(elsewhere.map(ReadBefore::evidence));
    }
    let mut seen = session.seen.lock();
    // What the run itself has seen is judged by the run, which knows what its script says.
    let other = |past: &Past| run.is_none_or(|run| past.run.as_ref() != Some(run.id()));
    seen.look(tool, arguments, mode, other, &mut evidence);
    if context.is_chosen_after_reading() {
        let before = |past: &&Past| began.is_none_or(|began| past.number < began);
        let untrusted = seen.touched.iter().filter(|past| past.labels.contains(Label::Untrusted));
        evidence.extend(untrusted.filter(before).map(|past| past.evidence(Contact::Steered, None)));
    }
    Flow { evidence }
}

/// Takes in what a call returned.
pub(crate) fn learn(context: &CallContext, origin: &ResultOrigin, result: &Value) {
    if origin.labels.is_empty() {
        return;
    }
    let run = context.run.as_ref();
    if let Some((run, call)) = run {
        let mut seen = run.watch.seen.lock();
        if seen.touched.is_empty() {
            seen.memory.knows(&run.watch.code);
        }
        seen.learn(origin, (None, Some(*call)), result);
    }
    let run = run.map(|(run, _)| Arc::clone(run.id()));
    context.session.watch.seen.lock().learn(origin, (run, None), result);
}

impl ResultOrigin {
    /// Of a tool with these labels. What carried private data may give it back in another form, so that
    /// the labels of the arguments go with the result.
    pub(crate) fn new(tool: &ToolId, labels: LabelSet, flow: &Flow) -> Self {
        let carried = flow.evidence.iter().filter(|evidence| evidence.contact == Contact::Carried);
        let labels = carried.fold(of_result(labels), |all, evidence| all.union(evidence.labels));
        Self { tool: tool.clone(), labels }
    }

    /// Of a tool of which nothing is known but what it was called: it may be anything.
    pub fn unknown(name: &str) -> Self {
        let tool = ToolId { server: "unknown".into(), tool: name.into() };
        Self { tool, labels: [Label::Private, Label::Untrusted].into_iter().collect() }
    }
}

impl RunWatch {
    pub(crate) fn new(code: &str) -> Self {
        let (before, seen, began) = (Vec::new(), Mutex::default(), OnceLock::new());
        Self { code: code.into(), before, seen, began }
    }
}

impl SessionWatch {
    /// The tools whose results matter, as the session of this id has seen them.
    pub(crate) fn read(&self, session: &Arc<str>) -> Vec<ReadBefore> {
        let mut read: Vec<ReadBefore> = Vec::new();
        for past in &self.seen.lock().touched {
            match read.iter_mut().find(|known| known.tool == past.tool) {
                Some(known) => known.labels = known.labels.union(past.labels),
                None => read.push(ReadBefore {
                    session: Arc::clone(session),
                    tool: past.tool.clone(),
                    labels: past.labels,
                }),
            }
        }
        read
    }

    /// Takes in a text that is made of what another session has read.
    pub(crate) fn take_in(&self, read: &[ReadBefore], text: &str) {
        let text = Value::String(text.to_owned());
        let mut seen = self.seen.lock();
        for ReadBefore { tool, labels, .. } in read {
            let origin = ResultOrigin { tool: tool.clone(), labels: *labels };
            seen.learn(&origin, (None, None), &text);
        }
    }
}

impl ReadBefore {
    /// What was in it is not known any more, so that it may be in anything.
    fn evidence(&self) -> Evidence {
        let Self { tool, labels, .. } = self;
        let (tool, contact, argument) = (tool.clone(), Contact::Carried, None);
        Evidence { tool, call: 0, run_call: None, labels: *labels, contact, argument }
    }
}

impl Seen {
    /// The number of the next result.
    fn next(&self) -> u64 {
        self.first + self.past.len() as u64
    }

    fn look(
        &mut self,
        tool: &str,
        arguments: &Value,
        mode: FlowMode,
        counts: impl Fn(&Past) -> bool,
        evidence: &mut Vec<Evidence>,
    ) {
        if self.touched.is_empty() {
            return;
        }
        let Trace { matches, incomplete } = self.memory.trace(tool, arguments);
        for found in matches {
            let past = found.origin.call.checked_sub(self.first);
            let past = past.and_then(|at| self.past.get(usize::try_from(at).ok()?));
            if let Some(past) = past.filter(|past| counts(past)) {
                evidence.push(past.evidence(Contact::Carried, Some(found.field)));
            }
        }
        // What was not looked at, or is no longer remembered, may be in there.
        let contact = if incomplete { Contact::Carried } else { Contact::Touched };
        if incomplete || mode == FlowMode::Labels {
            let touched = self.touched.iter().filter(|past| counts(past));
            evidence.extend(touched.map(|past| past.evidence(contact, None)));
        }
    }

    fn learn(
        &mut self,
        ResultOrigin { tool, labels }: &ResultOrigin,
        (run, run_call): (Option<Arc<str>>, Option<u64>),
        result: &Value,
    ) {
        let number = self.next();
        let labels = *labels;
        let origin = DataOrigin::new(number, &*tool.tool).with_labels(labels);
        self.memory.learn(origin, result);
        let past = Past { number, tool: tool.clone(), labels, run, run_call };
        match self.touched.iter_mut().find(|known| known.tool == past.tool && known.run == past.run)
        {
            Some(known) => known.labels = known.labels.union(labels),
            None => self.touched.push(past.clone()),
        }
        self.past.push_back(past);
        if self.past.len() > PAST {
            self.past.pop_front();
            self.first += 1;
        }
    }
}

impl Past {
    fn evidence(&self, contact: Contact, argument: Option<String>) -> Evidence {
        let Self { number, tool, labels, run_call, .. } = self;
        let (tool, call) = (tool.clone(), number + 1);
        Evidence { tool, call, run_call: *run_call, labels: *labels, contact, argument }
    }
}
