//! How many calls were made today, and the parts of limits that this node may use.
//!
//! A node leases a part of a count, and counts calls in it without asking the others. The count in the database is at
//! least what was used: the rest of the lease of a node that was killed counts as used.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use toolgate_store::{QuotaCount, QuotaError, QuotaOutcome, QuotaRequest, Quotas};

use crate::{
    database::{FleetError, PLACE},
    node::Node,
};

/// The most calls of one lease.
const MOST_LEASED: u32 = 100;
/// A lease of each node is at most this part of the limit.
const LEASED_PART: u32 = 20;

/// The counts of the fleet.
#[derive(Debug)]
pub(crate) struct SharedQuotas {
    node: Arc<Node>,
    leases: Mutex<HashMap<QuotaKey, Lease>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct QuotaKey {
    day: i64,
    limit: String,
    caller: String,
}

/// Calls that this node may make without asking.
#[derive(Debug, Default, Clone, Copy)]
struct Lease {
    left: u32,
    /// The count in the database, with the whole lease.
    counted: u32,
}

impl SharedQuotas {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node, leases: Mutex::default() }
    }

    /// Leases calls; the returned lease has none if the count is at its limit.
    fn lease(&self, key: &QuotaKey, most: u32) -> Result<Lease, FleetError> {
        let wanted = (most / LEASED_PART / self.node.nodes()).clamp(1, MOST_LEASED);
        let (wanted, most) = (i64::from(wanted), i64::from(most));
        let QuotaKey { day, limit, caller } = key;
        self.node.database.with(|mut connection| async move {
            let transaction = connection.transaction().await?;
            transaction.execute("DELETE FROM quota WHERE day < $1", &[day]).await?;
            let row = "INSERT INTO quota (day, \"limit\", caller) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
            transaction.execute(row, &[day, limit, caller]).await?;
            let take = "UPDATE quota SET used = greatest(quota.used, least(quota.used + $4, $5))
                FROM (SELECT used FROM quota WHERE day = $1 AND \"limit\" = $2 AND caller = $3 FOR UPDATE) AS before
                WHERE day = $1 AND \"limit\" = $2 AND caller = $3
                RETURNING quota.used, quota.used - before.used";
            let row = transaction.query_one(take, &[day, limit, caller, &wanted, &most]).await?;
            transaction.commit().await?;
            let number = |column| u32::try_from(row.get::<_, i64>(column)).unwrap_or(u32::MAX);
            Ok(Lease { left: number(1), counted: number(0) })
        })
    }

    /// Gives back what was leased and not used.
    pub(crate) fn give_back(&self) {
        let leases = std::mem::take(&mut *self.leases.lock());
        for (key, lease) in leases.into_iter().filter(|(_, lease)| lease.left > 0) {
            // If this fails, the rest counts as used.
            let _ = self.less(&key, lease.left);
        }
    }

    fn less(&self, key: &QuotaKey, count: u32) -> Result<(), FleetError> {
        let QuotaKey { day, limit, caller } = key;
        let count = i64::from(count);
        self.node.database.with(|connection| async move {
            let less = "UPDATE quota SET used = greatest(0, used - $4)
                WHERE day = $1 AND \"limit\" = $2 AND caller = $3";
            connection.execute(less, &[day, limit, caller, &count]).await?;
            Ok(())
        })
    }

    fn day_in_force(&self, today: i64) -> Result<i64, FleetError> {
        self.node.database.with(|connection| async move {
            let latest = connection.query_one("SELECT max(day) FROM quota", &[]).await?;
            Ok(latest.get::<_, Option<i64>>(0).map_or(today, |latest| latest.max(today)))
        })
    }
}

fn failed(error: FleetError) -> QuotaError {
    QuotaError::of(PLACE, String::from(error))
}

impl Quotas for SharedQuotas {
    fn count(&self, day: i64, requests: &[QuotaRequest<'_>]) -> Result<QuotaOutcome, QuotaError> {
        let mut day = day;
        let mut leases = self.leases.lock();
        leases.retain(|key, _| key.day >= day);
        if let Some(latest) = leases.keys().map(|key| key.day).max() {
            day = latest;
        } else {
            day = self.day_in_force(day).map_err(failed)?;
        }
        let key = |request: &QuotaRequest<'_>| QuotaKey {
            day,
            limit: request.limit.to_owned(),
            caller: request.caller.to_owned(),
        };
        for (position, request) in requests.iter().enumerate() {
            let key = key(request);
            if leases.get(&key).is_some_and(|lease| lease.left > 0) {
                continue;
            }
            let lease = self.lease(&key, request.most).map_err(failed)?;
            leases.insert(key, lease);
            if lease.left == 0 {
                return Ok(QuotaOutcome::Full(position));
            }
        }
        let mut used = Vec::with_capacity(requests.len());
        for request in requests {
            let lease = leases.entry(key(request)).or_default();
            lease.left = lease.left.saturating_sub(1);
            used.push(lease.counted - lease.left);
        }
        Ok(QuotaOutcome::Counted(used))
    }

    fn uncount(&self, day: i64, limit: &str, caller: &str) -> Result<(), QuotaError> {
        let key = QuotaKey { day, limit: limit.to_owned(), caller: caller.to_owned() };
        if let Some(lease) = self.leases.lock().get_mut(&key) {
            lease.left += 1;
            return Ok(());
        }
        self.less(&key, 1).map_err(failed)
    }

    fn refused(&self, day: i64, limit: &str, caller: &str, until: u64) -> Result<(), QuotaError> {
        let until = until.cast_signed();
        let noted = self.node.database.with(|connection| async move {
            let write = "INSERT INTO quota (day, \"limit\", caller, refused_until) VALUES ($1, $2, $3, $4)
                ON CONFLICT (day, \"limit\", caller) DO UPDATE SET refused_until = excluded.refused_until";
            Ok(connection.execute(write, &[&day, &limit, &caller, &until]).await?)
        });
        noted.map(drop).map_err(failed)
    }

    fn day(&self, today: i64) -> Result<i64, QuotaError> {
        let latest = self.leases.lock().keys().map(|key| key.day).max();
        match latest.filter(|latest| *latest >= today) {
            Some(latest) => Ok(latest),
            None => self.day_in_force(today).map_err(failed),
        }
    }

    fn counts(&self, day: i64) -> Result<Vec<QuotaCount>, QuotaError> {
        let day = self.day_in_force(day).map_err(failed)?;
        let rows = self.node.database.with(|connection| async move {
            let select = "SELECT \"limit\", caller, used, refused_until FROM quota WHERE day = $1
                ORDER BY \"limit\", caller";
            Ok(connection.query(select, &[&day]).await?)
        });
        let count = |row: &tokio_postgres::Row| QuotaCount {
            limit: row.get(0),
            caller: row.get(1),
            used: u32::try_from(row.get::<_, i64>(2)).unwrap_or(u32::MAX),
            refused_until: row.get::<_, i64>(3).cast_unsigned(),
        };
        Ok(rows.map_err(failed)?.iter().map(count).collect())
    }

    fn share(&self, most: u32) -> u32 {
        self.node.share(most)
    }
}
