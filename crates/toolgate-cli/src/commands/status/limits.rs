//! What is used up of the limits.

use std::{
    collections::HashMap,
    fmt,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use toolgate_policy::{CallLimit, PolicySettings, definitions::shown};
use toolgate_store::{QuotaCount, utc};

use crate::load::{self, Loaded};

/// The count of a caller for a limit that has been used today.
pub(super) struct LimitUse {
    limit: Arc<CallLimit>,
    count: QuotaCount,
    /// Until when calls are refused.
    until: Option<u64>,
}

const DAY_SECONDS: u64 = 86_400;
/// The longest name of a caller that is shown.
const CALLER: usize = 200;

/// The counts of today, by limit and caller, and why they are not known.
pub(super) fn used(loaded: &Loaded) -> (Vec<LimitUse>, Option<String>) {
    let mut limits: HashMap<&str, &Arc<CallLimit>> = HashMap::new();
    let mut policy: Option<&PolicySettings> = Some(loaded.policy());
    while let Some(settings) = policy {
        limits.extend(settings.limits.iter().map(|limit| (limit.key.as_str(), limit)));
        policy = settings.above.as_deref();
    }
    if limits.is_empty() {
        return (Vec::new(), None);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let today = now / DAY_SECONDS;
    let counts = load::store().map(|store| store.quotas().counts(today.cast_signed()));
    let (counts, unknown) = match counts {
        Some(Err(error)) => (Vec::new(), Some(error.to_string())),
        counts => (counts.and_then(Result::ok).unwrap_or_default(), None),
    };
    let unknown = unknown.filter(|_| limits.values().any(|limit| limit.per_day.is_some()));
    let used = counts.into_iter().filter_map(|count| {
        let limit = Arc::clone(limits.get(count.limit.as_str())?);
        let day = limit.per_day.filter(|most| count.used >= *most);
        let until = day.map(|_| (today + 1) * DAY_SECONDS);
        let until = until.or((count.refused_until > now).then_some(count.refused_until));
        Some(LimitUse { limit, count, until })
    });
    (used.collect(), unknown)
}

impl LimitUse {
    pub(super) fn to_value(&self) -> Value {
        let Self { limit, count, until } = self;
        json!({
            "limit": limit.origin,
            "calls": limit.to_value(),
            "caller": count.caller,
            "usedToday": count.used,
            "perDay": limit.per_day,
            "perMinute": limit.per_minute,
            "usedUpUntil": until.map(utc),
        })
    }
}

impl fmt::Display for LimitUse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, count, until } = self;
        let caller = shown(&count.caller, CALLER);
        write!(formatter, "Limit {}, {limit}: {caller} has used ", limit.origin)?;
        match limit.per_day {
            Some(most) => write!(formatter, "{} of {most} calls today", count.used)?,
            None => write!(formatter, "the calls of the minute")?,
        }
        match until {
            Some(until) => write!(formatter, "; more are refused until {}.", utc(*until)),
            None => formatter.write_str("."),
        }
    }
}
