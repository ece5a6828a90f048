//! Which data a session and a run have received, and which of it a call carries.
//!
//! Without labels a call only pays for one uncontended lock: nothing is tracked until a tool with
//! labels has returned a result.

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

/// The labelled results that a session has received.
#[derive(Default)]
pub(crate) struct SessionDataFlow {
    results: Mutex<ResultMemory>,
}

/// A tool whose results were read before a run began or resumed. A run can resume in another
/// session, which has not seen these results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriorRead {
    /// The session that read it. While that session exists, it knows the content.
    pub session: Arc<str>,
    /// The tool that returned it.
    pub tool: ToolId,
    /// The labels of its results.
    pub labels: LabelSet,
}

/// Where a result of a run comes from. It is stored with the call, so that a resumed run knows it
/// even if the tool has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultOrigin {
    /// The tool that returned the result.
    pub tool: ToolId,
    /// The labels of the tool, and of the data that the call carried.
    pub labels: LabelSet,
}

/// The labelled results that a run has received.
pub(crate) struct RunDataFlow {
    /// The first script of the run. A corrected script may contain data that the first one was
    /// given, so it does not count as the author's own text.
    code: Arc<str>,
    pub(crate) before: Vec<PriorRead>,
    results: Mutex<ResultMemory>,
    /// How many results the session had when the run made its first call. The author of the script
    /// may have read those.
    began: OnceLock<u64>,
}

#[derive(Default)]
struct ResultMemory {
    memory: Memory,
    /// The results in the memory; `first` is the number of the oldest.
    past: VecDeque<PastResult>,
    first: u64,
    /// One entry a tool, with all labels that its results ever had.
    touched: Vec<PastResult>,
}

/// A labelled result.
#[derive(Clone)]
struct PastResult {
    number: u64,
    tool: ToolId,
    labels: LabelSet,
    run: Option<Arc<str>>,
    /// Its number in the run that looks back, if the result is the run's own.
    run_call: Option<u64>,
}

/// How many results are remembered in detail. Of older ones only the tool is known.
const PAST: usize = 65_536;

/// The labels that apply to results; the other labels are about what a tool accepts.
pub(crate) fn of_result(labels: LabelSet) -> LabelSet {
    labels.intersection([Label::Private, Label::Untrusted].into_iter().collect())
}

/// Finds the earlier results that the arguments of a call contain.
pub(crate) fn flow(context: &CallContext, tool: &str, arguments: &Value, mode: FlowMode) -> Flow {
    let mut evidence = Vec::new();
    let session = &context.session.data;
    let run = context.run.as_ref().map(|(run, _)| run);
    let began = run.map(|run| *run.data.began.get_or_init(|| session.results.lock().next()));
    if mode == FlowMode::Off {
        return Flow::NONE;
    }
    if let Some(run) = run {
        let mut results = run.data.results.lock();
        results.find(tool, arguments, mode, |_| true, &mut evidence);
        let others = run.data.before.iter().filter(|it| it.session != *context.session.id());
        evidence.extend(others.map(PriorRead::evidence));
    }
    let mut results = session.results.lock();
    // The run itself judges its own results, because it knows what its script says.
    let other = |past: &PastResult| run.is_none_or(|run| past.run.as_ref() != Some(run.id()));
    results.find(tool, arguments, mode, other, &mut evidence);
    if context.is_chosen_after_reading() {
        let before = |past: &&PastResult| began.is_none_or(|began| past.number < began);
        let untrusted =
            results.touched.iter().filter(|past| past.labels.contains(Label::Untrusted));
        evidence.extend(untrusted.filter(before).map(|past| past.evidence(Contact::Steered, None)));
    }
    Flow { evidence }
}

/// Remembers what a call returned.
pub(crate) fn learn(context: &CallContext, origin: &ResultOrigin, result: &Value) {
    if origin.labels.is_empty() {
        return;
    }
    let run = context.run.as_ref();
    if let Some((run, call)) = run {
        let mut results = run.data.results.lock();
        if results.touched.is_empty() {
            results.memory.knows(&run.data.code);
        }
        results.learn(origin, (None, Some(*call)), result);
    }
    let run = run.map(|(run, _)| Arc::clone(run.id()));
    context.session.data.results.lock().learn(origin, (run, None), result);
}

impl ResultOrigin {
    /// The origin of a result of a tool with these labels. The labels of the arguments apply to the
    /// result too, because a tool may return private data in another form.
    pub(crate) fn new(tool: &ToolId, labels: LabelSet, flow: &Flow) -> Self {
        let carried = flow.evidence.iter().filter(|evidence| evidence.contact == Contact::Carried);
        let labels = carried.fold(of_result(labels), |all, evidence| all.union(evidence.labels));
        Self { tool: tool.clone(), labels }
    }

    /// The origin of a result whose tool is not known. It gets every label.
    pub fn unknown(name: &str) -> Self {
        let tool = ToolId { server: "unknown".into(), tool: name.into() };
        Self { tool, labels: [Label::Private, Label::Untrusted].into_iter().collect() }
    }
}

impl RunDataFlow {
    pub(crate) fn new(code: &str) -> Self {
        let (before, results, began) = (Vec::new(), Mutex::default(), OnceLock::new());
        Self { code: code.into(), before, results, began }
    }
}

impl SessionDataFlow {
    /// The tools whose labelled results the session with this id has read.
    pub(crate) fn read(&self, session: &Arc<str>) -> Vec<PriorRead> {
        let mut read: Vec<PriorRead> = Vec::new();
        for past in &self.results.lock().touched {
            match read.iter_mut().find(|known| known.tool == past.tool) {
                Some(known) => known.labels = known.labels.union(past.labels),
                None => read.push(PriorRead {
                    session: Arc::clone(session),
                    tool: past.tool.clone(),
                    labels: past.labels,
                }),
            }
        }
        read
    }

    /// Remembers a text that was made from data another session has read.
    pub(crate) fn add_read(&self, read: &[PriorRead], text: &str) {
        let text = Value::String(text.to_owned());
        let mut results = self.results.lock();
        for PriorRead { tool, labels, .. } in read {
            let origin = ResultOrigin { tool: tool.clone(), labels: *labels };
            results.learn(&origin, (None, None), &text);
        }
    }
}

impl PriorRead {
    /// Evidence without a content: it is no longer known, so any argument may contain it.
    fn evidence(&self) -> Evidence {
        let Self { tool, labels, .. } = self;
        let (tool, contact, argument) = (tool.clone(), Contact::Carried, None);
        Evidence { tool, call: 0, run_call: None, labels: *labels, contact, argument }
    }
}

impl ResultMemory {
    /// The number of the next result.
    fn next(&self) -> u64 {
        self.first + self.past.len() as u64
    }

    fn find(
        &mut self,
        tool: &str,
        arguments: &Value,
        mode: FlowMode,
        counts: impl Fn(&PastResult) -> bool,
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
        // Data that was not traced, or is no longer remembered, may be in the arguments.
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
        let past = PastResult { number, tool: tool.clone(), labels, run, run_call };
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

impl PastResult {
    fn evidence(&self, contact: Contact, argument: Option<String>) -> Evidence {
        let Self { number, tool, labels, run_call, .. } = self;
        let (tool, call) = (tool.clone(), number + 1);
        Evidence { tool, call, run_call: *run_call, labels: *labels, contact, argument }
    }
}
