//! Small texts that are read often and changed seldom: choices with consents, and learned types.

use std::sync::Arc;

use toolgate_store::{
    ChoiceStore, Choices, DamagedChoices, MAX_SHAPES_BYTES, PinStore, PolicyStore, ShapeStore,
    StoreError, StoreStamp, VersionedText,
};

use crate::{
    database::{FleetError, PLACE},
    node::{BUMP, Node},
};

/// The choices of one configuration.
#[derive(Debug)]
pub(crate) struct SharedChoices {
    node: Arc<Node>,
    name: String,
}

/// The approved definitions.
#[derive(Debug)]
pub(crate) struct SharedPins(pub(crate) Arc<Node>);

/// The name of their document, and the topic of its changes.
const PINS: &str = "pins";

/// The policy that was saved for all nodes.
#[derive(Debug)]
pub(crate) struct SharedPolicy(pub(crate) Arc<Node>);

/// The name of its document, and the topic of its changes.
const POLICY: &str = "policy";

/// The learned types of results.
#[derive(Debug)]
pub(crate) struct SharedShapes(pub(crate) Arc<Node>);

impl SharedChoices {
    pub(crate) fn new(node: Arc<Node>, configuration: &str) -> Self {
        Self { node, name: format!("choices {configuration}") }
    }
}

impl ChoiceStore for SharedChoices {
    fn stamp(&self) -> Option<StoreStamp> {
        Some(StoreStamp::Version(self.node.version(&self.name)))
    }

    fn read(&self) -> Result<Choices, DamagedChoices> {
        let name = &self.name;
        let read = self.node.database.with(|connection| async move {
            let row = connection
                .query_opt("SELECT content FROM document WHERE name = $1", &[name])
                .await?;
            Ok(row.map(|row| row.get::<_, Vec<u8>>(0)))
        });
        match read.map_err(|error| DamagedChoices::of(PLACE, error.to_string()))? {
            Some(content) => serde_json::from_slice(&content)
                .map_err(|error| DamagedChoices::of(PLACE, error.to_string())),
            None => Ok(Choices::default()),
        }
    }

    fn change_by(&self, change: &mut dyn FnMut(&mut Choices)) -> Result<(), StoreError> {
        let name = &self.name;
        let changed = self.node.database.with(|mut connection| async move {
            let transaction = connection.transaction().await?;
            // The row is there to be locked.
            let row =
                "INSERT INTO document (name, content) VALUES ($1, '{}') ON CONFLICT DO NOTHING";
            transaction.execute(row, &[name]).await?;
            let read = "SELECT content FROM document WHERE name = $1 FOR UPDATE";
            let content: Vec<u8> = transaction.query_one(read, &[name]).await?.get(0);
            let system = |error: serde_json::Error| FleetError::System(error.to_string());
            let mut choices: Choices = serde_json::from_slice(&content).map_err(system)?;
            let before = choices.clone();
            change(&mut choices);
            choices.bound();
            if choices == before {
                return Ok(());
            }
            let content = serde_json::to_vec(&choices).map_err(system)?;
            let write = "UPDATE document SET content = $2 WHERE name = $1";
            transaction.execute(write, &[name, &content]).await?;
            let number: i64 = transaction.query_one(BUMP, &[name]).await?.get(0);
            transaction.commit().await?;
            self.node.made(name, number);
            Ok(())
        });
        changed.map_err(|error| StoreError::of(PLACE, error.into_io()))
    }
}

impl PinStore for SharedPins {
    fn stamp(&self) -> Option<StoreStamp> {
        Some(StoreStamp::Version(self.0.version(PINS)))
    }

    fn read(&self) -> Result<Option<String>, StoreError> {
        let read = self.0.database.with(|connection| async move {
            let select = "SELECT content FROM document WHERE name = $1 AND content <> ''";
            let row = connection.query_opt(select, &[&PINS]).await?;
            Ok(row.map(|row| crate::text(row.get(0))))
        });
        read.map_err(|error| StoreError::of(PLACE, error.into_io()))
    }

    fn change(
        &self,
        change: &mut dyn FnMut(Option<&str>) -> Option<String>,
    ) -> Result<(), StoreError> {
        let changed = self.0.database.with(|mut connection| async move {
            let transaction = connection.transaction().await?;
            // The row is there to be locked. Without a text it counts for nothing.
            let row = "INSERT INTO document (name, content) VALUES ($1, '') ON CONFLICT DO NOTHING";
            transaction.execute(row, &[&PINS]).await?;
            let read = "SELECT content FROM document WHERE name = $1 FOR UPDATE";
            let text = crate::text(transaction.query_one(read, &[&PINS]).await?.get(0));
            let before = (!text.is_empty()).then_some(text.as_str());
            let Some(after) = change(before).filter(|after| before != Some(after)) else {
                return Ok(());
            };
            let write = "UPDATE document SET content = $2 WHERE name = $1";
            transaction.execute(write, &[&PINS, &after.as_bytes()]).await?;
            let number: i64 = transaction.query_one(BUMP, &[&PINS]).await?.get(0);
            transaction.commit().await?;
            self.0.made(PINS, number);
            Ok(())
        });
        changed.map_err(|error| StoreError::of(PLACE, error.into_io()))
    }
}

impl PolicyStore for SharedPolicy {
    fn stamp(&self) -> StoreStamp {
        StoreStamp::Version(self.0.version(POLICY))
    }

    fn read(&self) -> Result<VersionedText, StoreError> {
        let read = self.0.database.with(|connection| async move {
            // One statement, so that the text is that of the version.
            let select = "SELECT
                coalesce((SELECT number FROM version WHERE topic = $1), 0),
                (SELECT content FROM document WHERE name = $1 AND content <> '')";
            let row = connection.query_one(select, &[&POLICY]).await?;
            let (number, content): (i64, Option<Vec<u8>>) = (row.get(0), row.get(1));
            Ok(VersionedText { version: number.cast_unsigned(), text: content.map(crate::text) })
        });
        read.map_err(|error| StoreError::of(PLACE, error.into_io()))
    }

    fn replace(&self, before: u64, text: Option<&str>) -> Result<Option<u64>, StoreError> {
        let replaced = self.0.database.with(|mut connection| async move {
            let transaction = connection.transaction().await?;
            // The row is there to be locked. Without a text it counts for nothing.
            let row = "INSERT INTO document (name, content) VALUES ($1, '') ON CONFLICT DO NOTHING";
            transaction.execute(row, &[&POLICY]).await?;
            let lock = "SELECT 1 FROM document WHERE name = $1 FOR UPDATE";
            transaction.query_one(lock, &[&POLICY]).await?;
            // A statement of its own, which sees what another one has committed before the lock was free.
            let current = "SELECT coalesce((SELECT number FROM version WHERE topic = $1), 0)";
            let current: i64 = transaction.query_one(current, &[&POLICY]).await?.get(0);
            if current.cast_unsigned() != before {
                return Ok(None);
            }
            let write = "UPDATE document SET content = $2 WHERE name = $1";
            transaction.execute(write, &[&POLICY, &text.unwrap_or_default().as_bytes()]).await?;
            let number: i64 = transaction.query_one(BUMP, &[&POLICY]).await?.get(0);
            transaction.commit().await?;
            self.0.made(POLICY, number);
            Ok(Some(number.cast_unsigned()))
        });
        replaced.map_err(|error| StoreError::of(PLACE, error.into_io()))
    }

    fn on_change(&self, wake: Box<dyn Fn() + Send + Sync>) {
        self.0.on_change(POLICY, wake);
    }
}

impl ShapeStore for SharedShapes {
    fn load(&self, server: &str) -> Option<String> {
        let name = format!("shapes {server}");
        let read = self.0.database.with(|connection| async move {
            let row = connection
                .query_opt("SELECT content FROM document WHERE name = $1", &[&name])
                .await?;
            Ok(row.map(|row| row.get::<_, Vec<u8>>(0)))
        });
        String::from_utf8(read.ok()??).ok()
    }

    fn save(&self, server: &str, text: &str) -> Result<(), StoreError> {
        if text.len() > MAX_SHAPES_BYTES {
            return Ok(());
        }
        let (name, content) = (format!("shapes {server}"), text.as_bytes());
        let saved = self.0.database.with(|connection| async move {
            let write = "INSERT INTO document (name, content) VALUES ($1, $2)
                ON CONFLICT (name) DO UPDATE SET content = excluded.content";
            Ok(connection.execute(write, &[&name, &content]).await?)
        });
        saved.map(drop).map_err(|error| StoreError::of(PLACE, error.into_io()))
    }
}
