//! Which data a session and a run have received, and which of it a call carries.
//!
//! Without labels a call only pays for one uncontended lock: nothing is tracked until a tool with
//! labels has returned a result.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, OnceLock},
    time::Instant,
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolgate_catalog::{Fingerprint, ServerName, ToolId};
use toolgate_flow::{DataOrigin, Label, LabelSet, Memory, SHORTEST, Trace};
use toolgate_mcp::meta;
use toolgate_policy::{Contact, Evidence, Flow, FlowMode, ScriptWay, ToolPolicy};

use crate::{
    caller_reads::{CallerReads, KeepTime, ReadElsewhere, ReadsRegistration},
    context::{CallContext, SessionContext},
    script_flow::ScriptFlow,
};

/// The labelled results that a session has received.
#[derive(Default)]
pub(crate) struct SessionDataFlow {
    results: SharedResults,
    /// From the first result on, the other sessions of the caller know of the results, and of what
    /// servers were given.
    registration: OnceLock<ReadsRegistration>,
}

/// The labelled results of a session, for all sessions of its caller.
#[derive(Clone, Default)]
pub(crate) struct SharedResults(Arc<Mutex<ResultMemory>>);

/// What a call sends to a server.
pub(crate) struct SentData<'a> {
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a Value,
    pub(crate) meta: Option<&'a Map<String, Value>>,
}

/// Where the results of other sessions of the caller are, and how long they count.
#[derive(Debug, Default)]
pub(crate) struct CallerMemory {
    pub(crate) reads: CallerReads,
    pub(crate) keep: KeepTime,
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
    /// What the text of the script says about its data.
    pub(crate) script: OnceLock<ScriptFlow>,
    /// Whether the script is another one than that with which the run began.
    pub(crate) is_corrected: bool,
    results: Mutex<ResultMemory>,
    /// The labels of the data that each server was given to keep. It may return it under any name.
    stored: Mutex<BTreeMap<ServerName, LabelSet>>,
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
    /// The labels of the data that each server was given to keep. A later script may fetch it.
    stored: BTreeMap<ServerName, LabelSet>,
}

/// A labelled result.
#[derive(Clone)]
struct PastResult {
    number: u64,
    tool: ToolId,
    /// The exposed name of the tool.
    name: Arc<str>,
    labels: LabelSet,
    run: Option<Arc<str>>,
    /// Its number in the run that looks back, if the result is the run's own.
    run_call: Option<u64>,
    /// The place in the script of that run that made the call, if it is known.
    place: Option<u32>,
}

/// The call that returned a result.
#[derive(Default)]
struct ReturningCall {
    run: Option<Arc<str>>,
    run_call: Option<u64>,
    place: Option<u32>,
}

/// How many runs of a session are told apart in what they read from a tool.
const RUNS_APART: usize = 64;
/// How many results are remembered in detail. Of older ones only the tool is known.
const PAST: usize = 65_536;

/// The labels that apply to results; the other labels are about what a tool accepts.
pub(crate) fn of_result(labels: LabelSet) -> LabelSet {
    labels.intersection([Label::Private, Label::Untrusted].into_iter().collect())
}

/// Finds the earlier results that the arguments and the `_meta` of a call contain. `branches` says
/// whether results count that only decide.
pub(crate) fn flow(
    context: &CallContext,
    sent: &SentData<'_>,
    (mode, branches): (FlowMode, bool),
    callers: &CallerMemory,
) -> Flow {
    let mut evidence = Vec::new();
    let session = &context.session.data;
    let run = context.run.as_ref().map(|(run, _)| run);
    let began = run.map(|run| *run.data.began.get_or_init(|| session.results.0.lock().next()));
    if mode == FlowMode::Off {
        return Flow::NONE;
    }
    let meta = sent.meta.and_then(chosen_meta).map(|meta| json!({ "_meta": meta }));
    let (tool, values) = (sent.tool, [Some(sent.arguments), meta.as_ref()]);
    if let Some(run) = run {
        let mut results = run.data.results.lock();
        if mode == FlowMode::Program {
            let script = run.data.script.get();
            results.follow((tool, context.place), script, branches, &mut evidence);
        }
        // What a script says about its data holds, but not about the data in its own text.
        if mode != FlowMode::Program || run.data.is_corrected {
            results.find(tool, values, mode, |_| true, &mut evidence);
        }
        let others = run.data.before.iter().filter(|it| it.session != *context.session.id());
        evidence.extend(others.map(|read| read.evidence(Contact::Carried)));
    }
    // The run itself judges its own results, because it knows what its script says.
    let other = |past: &PastResult| run.is_none_or(|run| past.run.as_ref() != Some(run.id()));
    let (caller, id) = (&context.session.caller().identity, context.session.id());
    let mut elsewhere = Vec::new();
    let others = callers.reads.others(caller, id, Instant::now());
    for read in &others.older {
        elsewhere.push(read.evidence(Contact::Carried));
        if context.is_chosen_after_reading() && read.labels.contains(Label::Untrusted) {
            elsewhere.push(read.evidence(Contact::Steered));
        }
    }
    for results in others.results {
        let mut results = results.0.lock();
        results.find(tool, values, mode, other, &mut elsewhere);
        if context.is_chosen_after_reading() {
            elsewhere.extend(results.steering(|past| other(past)));
        }
    }
    // These results have no number in this session.
    evidence.extend(elsewhere.into_iter().map(|evidence| Evidence { call: 0, ..evidence }));
    let mut results = session.results.0.lock();
    results.find(tool, values, mode, other, &mut evidence);
    if context.is_chosen_after_reading() {
        let before = |past: &PastResult| began.is_none_or(|began| past.number < began);
        evidence.extend(results.steering(before));
    }
    Flow { evidence }
}

/// The part of the `_meta` of a call that says something the caller chose for this call.
///
/// Left out is what belongs to the connection (the version, and what the client is and can do: it is
/// the same in every call), a short progress token (toolgate sends its own in its place), and a
/// well-formed `traceparent` (servers repeat the ids of a trace in their results).
pub(crate) fn chosen_meta(sent: &Map<String, Value>) -> Option<Map<String, Value>> {
    const OF_THE_CONNECTION: [&str; 4] =
        [meta::PROTOCOL_VERSION, meta::CLIENT_INFO, meta::CLIENT_CAPABILITIES, meta::LOG_LEVEL];
    let is_traced = |(key, value): &(&String, &Value)| match (key.as_str(), value) {
        (meta::PROGRESS_TOKEN, Value::Number(_)) => false,
        (meta::PROGRESS_TOKEN, Value::String(token)) => token.len() >= SHORTEST,
        ("traceparent", Value::String(trace)) => !is_trace(trace),
        (key, _) => !OF_THE_CONNECTION.contains(&key),
    };
    let traced: Map<String, Value> =
        sent.iter().filter(is_traced).map(|(key, value)| (key.clone(), value.clone())).collect();
    (!traced.is_empty()).then_some(traced)
}

/// The hash of the part of `_meta` that a grant covers; `None` for nothing. Left out is what differs in
/// each call of a client: `tracestate`, and short ids.
pub(crate) fn granted_meta(chosen: &Map<String, Value>) -> Option<Fingerprint> {
    let is_covered = |(key, value): &(&String, &Value)| *key != "tracestate" && !is_id(key, value);
    let covered: Map<String, Value> =
        chosen.iter().filter(is_covered).map(|(key, value)| (key.clone(), value.clone())).collect();
    (!covered.is_empty()).then(|| Fingerprint::of(&Value::Object(covered)))
}

/// Whether a member is an id, such as `"client/toolUseId": "toolu_1"`: by its name, and by a value
/// that is a number or a short text without spaces.
fn is_id(key: &str, value: &Value) -> bool {
    const LONGEST: usize = 64;
    let is_named = key.ends_with("Id") || key.rsplit(['/', '.', '_', '-']).next() == Some("id");
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-_.:".contains(letter);
    is_named
        && match value {
            Value::Number(_) => true,
            Value::String(id) => id.len() <= LONGEST && id.chars().all(is_part),
            _ => false,
        }
}

/// Whether a text is a `traceparent`: a version, the id of a trace, of a span, and flags.
fn is_trace(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths = parts.iter().map(|part| part.len());
    lengths.eq([2, 32, 16, 2])
        && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Notes the data that a server is given, and may return later. A tool that only reads keeps nothing.
pub(crate) fn give(
    context: &CallContext,
    tool: &ToolId,
    policy: &ToolPolicy,
    flow: &Flow,
    callers: &CallerMemory,
) {
    let given = carried(flow);
    if given.is_empty() || policy.is_read_only() {
        return;
    }
    context.session.register_reads(callers);
    let add = |stored: &mut BTreeMap<ServerName, LabelSet>| {
        let known = stored.entry(tool.server.clone()).or_insert(LabelSet::EMPTY);
        *known = known.union(given);
    };
    if let Some((run, _)) = &context.run {
        add(&mut run.data.stored.lock());
    }
    add(&mut context.session.data.results.0.lock().stored);
    let caller = &context.session.caller().identity;
    callers.reads.tell(caller, ReadElsewhere::Gave(tool.server.clone(), given), &callers.keep);
}

/// The origin of what a call returns: the labels of the tool and of the data that the call carries.
/// For a script also the labels of the data that the server was given before: by the script, by the
/// session, or by another session of the caller.
pub(crate) fn origin(
    context: &CallContext,
    tool: &ToolId,
    labels: LabelSet,
    flow: &Flow,
    callers: &CallerMemory,
) -> ResultOrigin {
    let mut origin = ResultOrigin::new(tool, labels.union(context.stored_labels()), flow);
    if let Some((run, _)) = &context.run {
        let server = &tool.server;
        let in_run = run.data.stored.lock().get(server).copied().unwrap_or(LabelSet::EMPTY);
        let (caller, id) = (&context.session.caller().identity, context.session.id());
        let elsewhere = callers.reads.given_by_others(caller, id, server, Instant::now());
        let in_session = context.session.data.results.given(server);
        let all = [in_run, in_session, elsewhere].into_iter();
        origin.labels = all.fold(origin.labels, LabelSet::union);
    }
    origin
}

/// The labels of the data that a call carries.
fn carried(flow: &Flow) -> LabelSet {
    let carried = flow.evidence.iter().filter(|evidence| evidence.contact == Contact::Carried);
    carried.fold(LabelSet::EMPTY, |all, evidence| all.union(evidence.labels))
}

/// Remembers what a call of the tool with this exposed name returned.
pub(crate) fn learn(
    context: &CallContext,
    name: &str,
    origin: &ResultOrigin,
    result: &Value,
    callers: &CallerMemory,
) {
    if origin.labels.is_empty() {
        return;
    }
    let session = &context.session;
    session.register_reads(callers);
    let run = context.run.as_ref();
    if let Some((run, call)) = run {
        let mut results = run.data.results.lock();
        if results.touched.is_empty() {
            results.memory.knows(&run.data.code);
        }
        let call = ReturningCall { run: None, run_call: Some(*call), place: context.place };
        results.learn(name, origin, call, result);
    }
    let run = run.map(|(run, _)| Arc::clone(run.id()));
    let call = ReturningCall { run, ..ReturningCall::default() };
    session.data.results.0.lock().learn(name, origin, call, result);
    let read = ReadElsewhere::Read(origin.tool.clone(), origin.labels);
    callers.reads.tell(&session.caller().identity, read, &callers.keep);
}

impl ResultOrigin {
    /// The origin of a result of a tool with these labels. The labels of the arguments apply to the
    /// result too, because a tool may return private data in another form.
    pub(crate) fn new(tool: &ToolId, labels: LabelSet, flow: &Flow) -> Self {
        Self { tool: tool.clone(), labels: of_result(labels).union(carried(flow)) }
    }

    /// The origin of a result whose tool is not known. It gets every label.
    pub fn unknown(name: &str) -> Self {
        let tool = ToolId { server: "unknown".into(), tool: name.into() };
        Self { tool, labels: [Label::Private, Label::Untrusted].into_iter().collect() }
    }
}

impl RunDataFlow {
    pub(crate) fn new(code: &str) -> Self {
        Self {
            code: code.into(),
            before: Vec::new(),
            script: OnceLock::new(),
            is_corrected: false,
            results: Mutex::default(),
            stored: Mutex::default(),
            began: OnceLock::new(),
        }
    }
}

impl SessionContext {
    /// Lets what the session reads and gives away count for the other sessions of its caller.
    fn register_reads(&self, callers: &CallerMemory) {
        self.data.registration.get_or_init(|| {
            let (caller, results) = (&self.caller().identity, &self.data.results);
            callers.reads.register(caller, self.id(), results, &callers.keep)
        });
    }
}

impl SessionDataFlow {
    /// The tools whose labelled results the session with this id has read.
    pub(crate) fn read(&self, session: &Arc<str>) -> Vec<PriorRead> {
        self.results.read(session)
    }

    /// Remembers a text that was made from data another session has read.
    pub(crate) fn add_read(&self, read: &[PriorRead], text: &str) {
        let text = Value::String(text.to_owned());
        let mut results = self.results.0.lock();
        for PriorRead { tool, labels, .. } in read {
            let origin = ResultOrigin { tool: tool.clone(), labels: *labels };
            results.learn(&tool.tool, &origin, ReturningCall::default(), &text);
        }
    }
}

impl SharedResults {
    /// How many hashes of contents are stored.
    pub(crate) fn hashes(&self) -> usize {
        self.0.lock().memory.hashes()
    }

    /// The labels of the data that a server was given.
    pub(crate) fn given(&self, server: &ServerName) -> LabelSet {
        self.0.lock().stored.get(server).copied().unwrap_or(LabelSet::EMPTY)
    }

    /// The same for all servers that were given labelled data.
    pub(crate) fn all_given(&self) -> BTreeMap<ServerName, LabelSet> {
        self.0.lock().stored.clone()
    }

    /// The tools whose results the session with this id has read.
    pub(crate) fn read(&self, session: &Arc<str>) -> Vec<PriorRead> {
        let mut read: Vec<PriorRead> = Vec::new();
        for past in &self.0.lock().touched {
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

    #[cfg(test)]
    pub(crate) fn with_a_result(number: usize) -> Self {
        let results = Self::default();
        let tool = ToolId::new("crm", "get");
        let origin = ResultOrigin { tool, labels: Label::Private.into() };
        let text = json!(format!("customer {number} owes us {number} and forty-eight thousand"));
        results.0.lock().learn("crm_get", &origin, ReturningCall::default(), &text);
        results.0.lock().stored.insert("notes".into(), Label::Private.into());
        results
    }
}

impl PriorRead {
    /// Evidence without a content: it is no longer known, so any argument may contain it.
    fn evidence(&self, contact: Contact) -> Evidence {
        let Self { tool, labels, .. } = self;
        let (tool, argument) = (tool.clone(), None);
        Evidence { tool, call: 0, run_call: None, labels: *labels, contact, argument, way: None }
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
        values: [Option<&Value>; 2],
        mode: FlowMode,
        counts: impl Fn(&PastResult) -> bool,
        evidence: &mut Vec<Evidence>,
    ) {
        if self.touched.is_empty() {
            return;
        }
        let (mut all, mut incomplete) = (Vec::new(), false);
        for value in values.into_iter().flatten() {
            let trace: Trace = self.memory.trace(tool, value);
            all.extend(trace.matches);
            incomplete |= trace.incomplete;
        }
        for found in all {
            let past = found.origin.call.checked_sub(self.first);
            let past = past.and_then(|at| self.past.get(usize::try_from(at).ok()?));
            if let Some(past) = past.filter(|past| counts(past)) {
                evidence.push(past.evidence(Contact::Carried, Some(found.field)));
            }
        }
        // Data that was not traced, or is no longer remembered, may be in the arguments.
        let contact = if incomplete { Contact::Carried } else { Contact::Touched };
        if incomplete || mode == FlowMode::Labels {
            let mut latest: BTreeMap<&ToolId, Evidence> = BTreeMap::new();
            for past in self.touched.iter().filter(|past| counts(past)) {
                let new = past.evidence(contact, None);
                // The latest result of a tool stands for all.
                match latest.get_mut(&past.tool) {
                    Some(known) if known.call > new.call => {
                        known.labels = known.labels.union(new.labels);
                    }
                    Some(known) => {
                        *known = Evidence { labels: known.labels.union(new.labels), ..new };
                    }
                    None => _ = latest.insert(&past.tool, new),
                }
            }
            evidence.extend(latest.into_values());
        }
    }

    /// The untrusted results that may have influenced who chose a call.
    fn steering(&self, counts: impl Fn(&PastResult) -> bool) -> Vec<Evidence> {
        let untrusted = self.touched.iter().filter(|past| past.labels.contains(Label::Untrusted));
        let counted = untrusted.filter(|past| counts(past));
        counted.map(|past| past.evidence(Contact::Steered, None)).collect()
    }

    /// Adds the results that can reach an argument of a call, as the text of the script says.
    fn follow(
        &self,
        (tool, place): (&str, Option<u32>),
        script: Option<&ScriptFlow>,
        branches: bool,
        evidence: &mut Vec<Evidence>,
    ) {
        let Some(script) = script else {
            let all = self.touched.iter().map(|past| past.evidence(Contact::Carried, None));
            evidence.extend(all);
            return;
        };
        if self.touched.is_empty() {
            return;
        }
        let to = script.sites(tool, place);
        let from: Vec<_> =
            self.touched.iter().map(|past| (past, script.sites(&past.name, past.place))).collect();
        for edge in script.into(&to).filter(|edge| branches || !edge.way.is_choice) {
            for (past, _) in from.iter().filter(|(_, sites)| sites.contains(&edge.from)) {
                let way = Some(edge.way.clone());
                let found = Evidence { way, ..past.evidence(Contact::Carried, edge.pointer()) };
                let is_same =
                    |known: &Evidence| known.call == found.call && known.argument == found.argument;
                // Data is more than a decision.
                match evidence.iter_mut().find(|known| is_same(known)) {
                    Some(known) if decides(known.way.as_ref()) => *known = found,
                    Some(_) => {}
                    None => evidence.push(found),
                }
            }
        }
    }

    fn learn(
        &mut self,
        name: &str,
        ResultOrigin { tool, labels }: &ResultOrigin,
        ReturningCall { run, run_call, place }: ReturningCall,
        result: &Value,
    ) {
        let number = self.next();
        let labels = *labels;
        let origin = DataOrigin::new(number, &*tool.tool).with_labels(labels);
        self.memory.learn(origin, result);
        let (tool, name) = (tool.clone(), name.into());
        let past = PastResult { number, tool, name, labels, run, run_call, place };
        let is_same = |known: &PastResult| {
            known.tool == past.tool && known.name == past.name && known.run == past.run
        };
        if let Some(known) =
            self.touched.iter_mut().find(|known| is_same(known) && known.place == past.place)
        {
            known.labels = known.labels.union(labels);
            // The latest one stands for all.
            (known.number, known.run_call) = (past.number, past.run_call);
        } else {
            self.touched.push(past.clone());
            self.join_older(&past);
        }
        self.past.push_back(past);
        if self.past.len() > PAST {
            self.past.pop_front();
            self.first += 1;
        }
    }
}

impl ResultMemory {
    /// Joins the results of the oldest run of a tool to those of no run in particular, so that a
    /// session with many runs does not get slower. They then count for every run.
    fn join_older(&mut self, new: &PastResult) {
        let is_same = |known: &PastResult| known.tool == new.tool && known.name == new.name;
        let of_runs = |known: &PastResult| is_same(known) && known.run.is_some();
        if self.touched.iter().filter(|known| of_runs(known)).count() <= RUNS_APART {
            return;
        }
        let Some(oldest) = self.touched.iter().position(of_runs) else { return };
        let mut oldest = self.touched.remove(oldest);
        (oldest.run, oldest.run_call, oldest.place) = (None, None, None);
        let joined =
            |known: &PastResult| is_same(known) && known.run.is_none() && known.place.is_none();
        match self.touched.iter_mut().find(|known| joined(known)) {
            Some(known) => {
                known.labels = known.labels.union(oldest.labels);
                known.number = known.number.max(oldest.number);
            }
            None => self.touched.push(oldest),
        }
    }
}

impl PastResult {
    fn evidence(&self, contact: Contact, argument: Option<String>) -> Evidence {
        let Self { number, tool, labels, run_call, .. } = self;
        let (tool, call) = (tool.clone(), number + 1);
        let (run_call, labels) = (*run_call, *labels);
        Evidence { tool, call, run_call, labels, contact, argument, way: None }
    }
}

fn decides(way: Option<&ScriptWay>) -> bool {
    way.is_some_and(|way| way.is_choice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_with_many_runs_stays_small() {
        let mut results = ResultMemory::default();
        let origin =
            ResultOrigin { tool: ToolId::new("crm", "get"), labels: Label::Private.into() };
        let run = |number: usize| Arc::<str>::from(format!("run_{number}"));
        for number in 0..2_000 {
            let call = ReturningCall { run: Some(run(number)), ..ReturningCall::default() };
            results.learn("crm_get", &origin, call, &json!(number));
        }
        assert_eq!(results.touched.len(), RUNS_APART + 1);
        let found = |results: &mut ResultMemory, own: usize| {
            let (own, mut evidence) = (run(own), Vec::new());
            let other = |past: &PastResult| past.run.as_ref() != Some(&own);
            let values = [Some(&Value::Null), None];
            results.find("mail_send", values, FlowMode::Labels, other, &mut evidence);
            evidence
        };
        // What an older run has read counts, and a run's own results do not.
        let evidence = found(&mut results, 1_999);
        assert_eq!((evidence.len(), evidence[0].call), (1, 1_999));
        let mut one = ResultMemory::default();
        let call = ReturningCall { run: Some(run(1)), ..ReturningCall::default() };
        one.learn("crm_get", &origin, call, &json!("x"));
        assert_eq!((found(&mut one, 1).len(), found(&mut one, 2).len()), (0, 1));
    }
}
