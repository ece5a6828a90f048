//! Counts calls, and refuses those beyond a limit.

mod window;

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::sync::Notify;
use toolgate_policy::{CallLimit, LimitKey, definitions::shown};
use toolgate_store::{QuotaError, QuotaOutcome, QuotaRequest, Quotas, utc};

use window::MinuteWindow;

/// The counts of all limits. All hosts of a process share one, so that a limit holds for all of their
/// namespaces together.
pub struct CallLimiter {
    counts: Mutex<HashMap<CountKey, CallCount>>,
    /// Where the counts of a day are stored; without it they end with the process.
    file: Option<Arc<dyn Quotas>>,
    started: Instant,
    /// The latest day that was seen. A clock that is set back does not bring an earlier one.
    latest_day: AtomicI64,
    error_logged: AtomicBool,
}

/// Whose calls of which limit are counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CountKey {
    limit: LimitKey,
    caller: Arc<str>,
}

/// The calls of one caller that count for one limit.
#[derive(Debug, Default)]
struct CallCount {
    minute: MinuteWindow,
    /// The day, and the calls of that day as far as this process knows.
    day: (i64, u32),
    open: u32,
    freed: Arc<Notify>,
}

/// A call that was counted. It counts as open until this and all of its [`OpenCall`]s are dropped.
#[derive(Debug, Default)]
pub(crate) struct LimitSlot {
    limiter: Option<Arc<CallLimiter>>,
    counted: Vec<(Arc<CallLimit>, CountKey)>,
    day: i64,
    open: Option<Arc<OpenCall>>,
}

/// What keeps a call open: the server may still work on one for which nobody waits any more.
#[derive(Debug)]
pub(crate) struct OpenCall {
    limiter: Arc<CallLimiter>,
    counted: Vec<CountKey>,
}

/// Why a call is not made: a limit is reached.
#[derive(Debug, Clone, PartialEq, Error)]
pub struct CallLimitReached {
    limit: Arc<CallLimit>,
    kind: LimitKind,
    most: u32,
    caller: Arc<str>,
    /// When a call is allowed again, in seconds since 1970; `None` if that depends on other calls.
    until: Option<u64>,
    now: u64,
    /// Why the calls of today cannot be counted.
    uncounted: Option<Arc<str>>,
}

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// Calls in any 60 seconds.
    PerMinute,
    /// Calls in a day.
    PerDay,
    /// Open calls.
    InFlight,
}

/// What to do if too many calls are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenBusy {
    Refuse,
    /// A script makes many calls at once and does not see how many are open.
    Wait,
}

/// The counts that are held in memory. Callers beyond that share one count for each limit.
const MAX_COUNTS: usize = 10_000;
/// The count of callers that have none of their own.
const OTHERS: &str = "other callers";
/// The count of a limit that all callers share.
const EVERYBODY: &str = "all callers together";
/// The longest name of a caller that is stored.
const MAX_CALLER: usize = 200;
const DAY_SECONDS: u64 = 86_400;

impl CallLimiter {
    /// Counts that are stored in this file.
    pub fn new(file: Option<Arc<dyn Quotas>>) -> Arc<Self> {
        Arc::new(Self {
            counts: Mutex::default(),
            file,
            started: Instant::now(),
            latest_day: AtomicI64::new(0),
            error_logged: AtomicBool::new(false),
        })
    }

    /// Whether the limits allow a call now. Counts nothing.
    pub(crate) fn check(
        &self,
        limits: &[Arc<CallLimit>],
        caller: &Arc<str>,
    ) -> Result<(), CallLimitReached> {
        let times = self.times();
        let mut counts = self.counts.lock();
        for limit in limits {
            let (_, count) = entry(&mut counts, limit, caller);
            if let Some((kind, most, until)) = full(limit, count, times, |most| self.share(most))
                && kind != LimitKind::InFlight
            {
                let reached = reached(limit, kind, most, caller, until, times);
                drop(counts);
                self.note(&reached);
                return Err(reached);
            }
        }
        Ok(())
    }

    /// Counts a call, or says which limit is reached. Then nothing is counted.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        limits: &[Arc<CallLimit>],
        caller: &Arc<str>,
        when_busy: WhenBusy,
    ) -> Result<LimitSlot, CallLimitReached> {
        if limits.is_empty() {
            return Ok(LimitSlot::default());
        }
        let slot = loop {
            match self.try_enter(limits, caller) {
                Ok(slot) => break slot,
                Err((reached, freed))
                    if reached.kind == LimitKind::InFlight
                        && reached.most > 0
                        && when_busy == WhenBusy::Wait =>
                {
                    freed.notified_owned().await;
                }
                Err((reached, _)) => {
                    self.note(&reached);
                    return Err(reached);
                }
            }
        };
        self.count_day(slot).await
    }

    /// Counts a call in memory.
    fn try_enter(
        self: &Arc<Self>,
        limits: &[Arc<CallLimit>],
        caller: &Arc<str>,
    ) -> Result<LimitSlot, (CallLimitReached, WaitForSlot)> {
        let times = self.times();
        let mut counts = self.counts.lock();
        for limit in limits {
            let (_, count) = entry(&mut counts, limit, caller);
            if let Some((kind, most, until)) = full(limit, count, times, |most| self.share(most)) {
                let wait = WaitForSlot::new(&count.freed);
                return Err((reached(limit, kind, most, caller, until, times), wait));
            }
        }
        let mut counted = Vec::with_capacity(limits.len());
        for limit in limits {
            let (key, count) = entry(&mut counts, limit, caller);
            if limit.per_minute.is_some() {
                count.minute.add(times.since_start);
            }
            count.day.1 += u32::from(limit.per_day.is_some());
            count.open += 1;
            counted.push((Arc::clone(limit), key));
        }
        let keys = counted.iter().map(|(_, key)| key.clone()).collect();
        let open = OpenCall { limiter: Arc::clone(self), counted: keys };
        let (limiter, open) = (Some(Arc::clone(self)), Some(Arc::new(open)));
        Ok(LimitSlot { limiter, counted, day: times.day, open })
    }

    /// Counts the call in the file, where other processes count too.
    async fn count_day(self: &Arc<Self>, slot: LimitSlot) -> Result<LimitSlot, CallLimitReached> {
        let daily = slot.counted.iter().filter_map(|(limit, key)| Some((limit.per_day?, key)));
        let daily: Vec<(u32, CountKey)> = daily.map(|(most, key)| (most, key.clone())).collect();
        let Some(file) = self.file.clone().filter(|_| !daily.is_empty()) else { return Ok(slot) };
        let (day, asked) = (slot.day, daily.clone());
        let counted = tokio::task::spawn_blocking(move || {
            let requests: Vec<QuotaRequest<'_>> = asked
                .iter()
                .map(|(most, key)| QuotaRequest {
                    limit: key.limit.as_str(),
                    caller: &key.caller,
                    most: *most,
                })
                .collect();
            let outcome = file.count(day, &requests)?;
            Ok::<_, QuotaError>((outcome, file.day(day)?))
        });
        let (position, day) = match counted.await {
            Ok(Ok((QuotaOutcome::Counted(used), _))) => {
                let mut counts = self.counts.lock();
                for ((_, key), used) in daily.iter().zip(used) {
                    let count = counts.get_mut(key).filter(|count| count.day.0 == day);
                    if let Some(count) = count {
                        count.day.1 = count.day.1.max(used);
                    }
                }
                return Ok(slot);
            }
            Ok(Ok((QuotaOutcome::Full(position), day))) => (position, day),
            Ok(Err(error)) => {
                if !self.error_logged.swap(true, Ordering::Relaxed) {
                    tracing::warn!("{error}; calls that a limit by the day is about are refused");
                }
                // How many calls were made today is not known.
                let first = slot.counted.iter().find(|(limit, _)| limit.per_day.is_some());
                let refused = first.map(|(limit, key)| {
                    let most = limit.per_day.unwrap_or_default();
                    let times = self.times();
                    let refused = reached(limit, LimitKind::PerDay, most, &key.caller, None, times);
                    CallLimitReached { uncounted: Some(error.to_string().into()), ..refused }
                });
                slot.take_back_in_memory();
                return refused.map_or_else(|| Ok(LimitSlot::default()), Err);
            }
            // The runtime is shutting down.
            Err(_) => return Ok(slot),
        };
        let (_, key) = &daily[position];
        let found = slot.counted.iter().find(|(_, known)| known == key);
        let limit = found.map(|(limit, _)| Arc::clone(limit));
        let caller = Arc::clone(&key.caller);
        slot.take_back_in_memory();
        if let Some(count) = self.counts.lock().get_mut(key) {
            // Other processes have made the rest.
            count.day = (day, daily[position].0);
        }
        let times = self.times();
        match limit {
            Some(limit) => {
                let until = Some(next_day(day));
                Err(reached(&limit, LimitKind::PerDay, daily[position].0, &caller, until, times))
            }
            None => Ok(LimitSlot::default()),
        }
    }

    /// Stores until when a limit by the minute refuses, for `toolgate status`.
    fn note(&self, reached: &CallLimitReached) {
        let (Some(file), Some(until)) = (self.file.clone(), reached.until) else { return };
        let key = CountKey::of(&reached.limit, &reached.caller);
        let is_new = {
            let mut counts = self.counts.lock();
            counts.get_mut(&key).is_some_and(|count| count.minute.note_refusal(until))
        };
        if reached.kind == LimitKind::PerMinute && is_new {
            let day = self.times().day;
            let noted = move || file.refused(day, key.limit.as_str(), &key.caller, until);
            match tokio::runtime::Handle::try_current() {
                Ok(runtime) => drop(runtime.spawn_blocking(noted)),
                Err(_) => drop(noted()),
            }
        }
    }

    /// The part of a number that this process may use, if others share the limits.
    fn share(&self, most: u32) -> u32 {
        self.file.as_ref().map_or(most, |file| file.share(most))
    }

    fn times(&self) -> Times {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let day = i64::try_from(now / DAY_SECONDS).unwrap_or_default();
        let latest = self.latest_day.fetch_max(day, Ordering::Relaxed);
        Times { since_start: self.started.elapsed(), now, day: day.max(latest) }
    }
}

/// The times that a call is counted at.
#[derive(Debug, Clone, Copy)]
struct Times {
    since_start: Duration,
    now: u64,
    day: i64,
}

/// Waits for the end of an open call. It is registered before the lock is released, so that no end is
/// missed.
struct WaitForSlot(std::pin::Pin<Box<tokio::sync::futures::OwnedNotified>>);

impl WaitForSlot {
    fn new(freed: &Arc<Notify>) -> Self {
        let mut waiting = Box::pin(Arc::clone(freed).notified_owned());
        waiting.as_mut().enable();
        Self(waiting)
    }

    async fn notified_owned(self) {
        self.0.await;
    }
}

impl CountKey {
    fn of(limit: &CallLimit, caller: &Arc<str>) -> Self {
        let caller = match limit.shared {
            true => EVERYBODY.into(),
            false if caller.len() > MAX_CALLER => {
                let hash = toolgate_catalog::Fingerprint::of(&json!(caller));
                let start: String = caller.chars().take(MAX_CALLER / 2).collect();
                format!("{start}… {hash}").into()
            }
            false => Arc::clone(caller),
        };
        Self { limit: limit.key.clone(), caller }
    }
}

/// The count of a limit for a caller.
fn entry<'c>(
    counts: &'c mut HashMap<CountKey, CallCount>,
    limit: &CallLimit,
    caller: &Arc<str>,
) -> (CountKey, &'c mut CallCount) {
    let mut key = CountKey::of(limit, caller);
    if counts.len() >= MAX_COUNTS && !counts.contains_key(&key) {
        // Counts of a day are in the file.
        counts.retain(|_, count| count.open > 0 || !count.minute.is_empty());
        if counts.len() >= MAX_COUNTS {
            key.caller = OTHERS.into();
        }
    }
    (key.clone(), counts.entry(key).or_default())
}

/// The part of a limit that is reached, and until when.
fn full(
    limit: &CallLimit,
    count: &mut CallCount,
    times: Times,
    share: impl Fn(u32) -> u32,
) -> Option<(LimitKind, u32, Option<u64>)> {
    // The day of a clock that was set back goes on.
    if count.day.0 < times.day {
        count.day = (times.day, 0);
    }
    if let Some(most) = limit.per_day
        && count.day.1 >= most
    {
        return Some((LimitKind::PerDay, most, Some(next_day(count.day.0))));
    }
    if let Some(most) = limit.per_minute
        && let Some(wait) = count.minute.wait(times.since_start, share(most))
    {
        // A part of a second is a whole one: the call must not come too early.
        return Some((LimitKind::PerMinute, most, Some(times.now + wait.as_secs() + 1)));
    }
    if let Some(most) = limit.in_flight
        // One call at a time goes through everywhere, or it would wait for ever.
        && count.open >= share(most).max(most.min(1))
    {
        return Some((LimitKind::InFlight, most, None));
    }
    None
}

fn reached(
    limit: &Arc<CallLimit>,
    kind: LimitKind,
    most: u32,
    caller: &Arc<str>,
    until: Option<u64>,
    times: Times,
) -> CallLimitReached {
    let (limit, caller) = (Arc::clone(limit), Arc::clone(caller));
    // If no call is allowed at all, waiting does not help.
    let until = until.filter(|_| most > 0);
    CallLimitReached { limit, kind, most, caller, until, now: times.now, uncounted: None }
}

/// The first second of the day after this one.
fn next_day(day: i64) -> u64 {
    u64::try_from(day + 1).unwrap_or_default() * DAY_SECONDS
}

impl LimitSlot {
    /// What keeps the call open beyond the slot, if it is limited.
    pub(crate) fn open_call(&self) -> Option<Arc<OpenCall>> {
        self.open.clone()
    }

    /// Takes the counts back, because nothing was sent after all.
    pub(crate) async fn take_back(self) {
        let Some(limiter) = &self.limiter else { return };
        let (day, file) = (self.day, limiter.file.clone());
        let daily = self.counted.iter().filter(|(limit, _)| limit.per_day.is_some());
        let daily: Vec<CountKey> = daily.map(|(_, key)| key.clone()).collect();
        self.take_back_in_memory();
        if let Some(file) = file.filter(|_| !daily.is_empty()) {
            let work = move || {
                for key in daily {
                    if let Err(error) = file.uncount(day, key.limit.as_str(), &key.caller) {
                        tracing::debug!("{error}");
                    }
                }
            };
            let _ = tokio::task::spawn_blocking(work).await;
        }
    }

    fn take_back_in_memory(self) {
        let Some(limiter) = &self.limiter else { return };
        let mut counts = limiter.counts.lock();
        for (limit, key) in &self.counted {
            let Some(count) = counts.get_mut(key) else { continue };
            if limit.per_minute.is_some() {
                count.minute.take_back();
            }
            if limit.per_day.is_some() && count.day.0 == self.day {
                count.day.1 = count.day.1.saturating_sub(1);
            }
        }
        drop(counts);
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let mut counts = self.limiter.counts.lock();
        for key in &self.counted {
            if let Some(count) = counts.get_mut(key) {
                count.open = count.open.saturating_sub(1);
                count.freed.notify_waiters();
            }
        }
    }
}

impl LimitKind {
    /// The key of the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PerMinute => "perMinute",
            Self::PerDay => "perDay",
            Self::InFlight => "inFlight",
        }
    }
}

impl CallLimitReached {
    /// The limit.
    pub fn limit(&self) -> &CallLimit {
        &self.limit
    }

    /// The same for programs.
    pub fn to_value(&self) -> Value {
        json!({
            "limit": self.kind.as_str(),
            "most": self.most,
            "calls": self.limit.to_value(),
            "caller": self.who(),
            "until": self.until.map(utc),
        })
    }

    fn who(&self) -> String {
        if self.limit.shared { EVERYBODY.to_owned() } else { shown(&self.caller, MAX_CALLER) }
    }
}

impl fmt::Display for CallLimitReached {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, kind, most, .. } = self;
        let calls = if *most == 1 { "call" } else { "calls" };
        let what = match kind {
            LimitKind::PerMinute => format!("{most} {calls} a minute"),
            LimitKind::PerDay => format!("{most} {calls} a day"),
            LimitKind::InFlight => format!("{most} {calls} at the same time"),
        };
        let who = self.who();
        let who = if limit.shared { who } else { format!("`{}`", who.replace('`', "'")) };
        write!(formatter, "{} allows {who} {what} of {}", limit.origin, limit)?;
        if let Some(why) = &self.uncounted {
            return write!(
                formatter,
                ", and how many were made today is not known: {why}. No such call is possible until a \
                 person has repaired that"
            );
        }
        match (kind, self.until) {
            _ if *most == 0 => {
                formatter.write_str(". No such call is possible until a person changes the limit")
            }
            (LimitKind::InFlight, _) => write!(
                formatter,
                ", and so many are open now. The next one is possible when one of them has ended"
            ),
            (_, Some(until)) => write!(
                formatter,
                ", and they are used up. The next one is possible at {} (in {}). Until then every \
                 such call is refused",
                utc(until),
                length(until.saturating_sub(self.now)),
            ),
            (_, None) => formatter.write_str(", and they are used up"),
        }
    }
}

/// A length of time for people.
fn length(seconds: u64) -> String {
    match seconds {
        0..=1 => "1 second".to_owned(),
        2..=119 => format!("{seconds} seconds"),
        120..=7_199 => format!("{} minutes", seconds / 60),
        _ => format!("{} hours", seconds / 3_600),
    }
}

impl fmt::Debug for CallLimiter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CallLimiter").field("file", &self.file).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
