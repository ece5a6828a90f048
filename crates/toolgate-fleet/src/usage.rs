//! Which query led to which call.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use toolgate_store::{PastUse, StoreError, UsageChange, UsageLog, UsagePosition, merged_uses};

use crate::{
    database::{FleetError, PLACE},
    node::{BUMP, Node},
};

/// Changes whenever entries were removed.
const TOPIC: &str = "usage";
/// After so many entries of this node, the rows are merged.
const MERGED_AFTER: u64 = 2_000;

/// The past uses of the fleet.
#[derive(Debug)]
pub(crate) struct SharedUsage {
    node: Arc<Node>,
    appended: AtomicU64,
}

/// Rows, and the position after them.
type Rows = (Vec<PastUse>, i64);

impl SharedUsage {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node, appended: AtomicU64::new(0) }
    }

    fn rows(&self, after: i64) -> Result<Rows, FleetError> {
        self.node.database.with(|connection| async move {
            let select =
                "SELECT position, content FROM past_use WHERE position > $1 ORDER BY position";
            let rows = connection.query(select, &[&after]).await?;
            let end = rows.last().map_or(after, |row| row.get(0));
            let uses = rows.iter().filter_map(|row| serde_json::from_slice(row.get(1)).ok());
            Ok((uses.filter(PastUse::is_sound).collect(), end))
        })
    }

    /// Replaces all entries up to a position.
    fn replace(&self, until: i64, uses: &[PastUse]) -> Result<(), FleetError> {
        let contents = contents(uses);
        self.node.database.with(|mut connection| async move {
            let transaction = connection.transaction().await?;
            transaction.execute("DELETE FROM past_use WHERE position <= $1", &[&until]).await?;
            let insert = "INSERT INTO past_use (content) SELECT unnest($1::bytea[])";
            transaction.execute(insert, &[&contents]).await?;
            let number: i64 = transaction.query_one(BUMP, &[&TOPIC]).await?.get(0);
            transaction.commit().await?;
            self.node.made(TOPIC, number);
            Ok(())
        })
    }
}

fn contents(uses: &[PastUse]) -> Vec<Vec<u8>> {
    let sound = uses.iter().filter(|past| past.is_sound());
    sound.filter_map(|past| serde_json::to_vec(past).ok()).collect()
}

fn unwritten(error: FleetError) -> StoreError {
    StoreError::of(PLACE, error.into_io())
}

impl UsageLog for SharedUsage {
    fn append(&self, uses: &[PastUse]) -> Result<(), StoreError> {
        let contents = contents(uses);
        if contents.is_empty() {
            return Ok(());
        }
        let added = contents.len() as u64;
        let appended = self.node.database.with(|connection| async move {
            let insert = "INSERT INTO past_use (content) SELECT unnest($1::bytea[])";
            Ok(connection.execute(insert, &[&contents]).await?)
        });
        appended.map_err(unwritten)?;
        if self.appended.fetch_add(added, Ordering::Relaxed) + added > MERGED_AFTER {
            self.appended.store(0, Ordering::Relaxed);
            let (uses, end) = self.rows(0).map_err(unwritten)?;
            self.replace(end, &merged_uses(uses)).map_err(unwritten)?;
        }
        Ok(())
    }

    fn read(&self) -> Vec<PastUse> {
        self.rows(0).map(|(uses, _)| merged_uses(uses)).unwrap_or_default()
    }

    fn follow(&self, position: &mut UsagePosition) -> UsageChange {
        let id = format!("fleet {}", self.node.version(TOPIC));
        let is_same = position.id == id;
        let after = if is_same { position.offset.cast_signed() } else { 0 };
        let Ok((uses, end)) = self.rows(after) else { return UsageChange::None };
        let is_first = *position == UsagePosition::default();
        *position = UsagePosition { id, offset: end.cast_unsigned() };
        match (is_same, uses.is_empty()) {
            (true, true) => UsageChange::None,
            (true, false) => UsageChange::Added(uses),
            (false, true) if is_first => UsageChange::None,
            (false, _) => UsageChange::Replaced(merged_uses(uses)),
        }
    }

    fn erase(&self, keep: &dyn Fn(&PastUse) -> bool) -> Result<Vec<PastUse>, StoreError> {
        let (uses, end) = self.rows(0).map_err(unwritten)?;
        let (kept, gone): (Vec<_>, Vec<_>) = merged_uses(uses).into_iter().partition(keep);
        if !gone.is_empty() {
            self.replace(end, &kept).map_err(unwritten)?;
        }
        Ok(gone)
    }
}
