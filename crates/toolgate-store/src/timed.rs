//! Values that expire, in the memory of one process: nobody else can have them.

use std::{collections::HashMap, fmt, io};

use parking_lot::Mutex;

use crate::{NodeMessage, StoreError, TimedKind, TimedValue, TimedValues};

/// The values of one process.
#[derive(Default)]
pub struct LocalValues {
    values: Mutex<HashMap<(TimedKind, String), TimedValue>>,
    receivers: Mutex<Vec<Receiver>>,
}

type Receiver = Box<dyn Fn(&NodeMessage) + Send + Sync>;

/// The most values. Further ones are refused.
const MAX_VALUES: usize = 100_000;

impl TimedValues for LocalValues {
    fn put(&self, kind: TimedKind, key: &str, value: &TimedValue) -> Result<(), StoreError> {
        let mut values = self.values.lock();
        if values.len() >= MAX_VALUES {
            let now = now();
            values.retain(|_, value| value.expires > now);
        }
        let key = (kind, key.to_owned());
        if values.len() >= MAX_VALUES && !values.contains_key(&key) {
            let full = io::Error::other("it has too many values");
            return Err(StoreError::of("the memory of this process", full));
        }
        values.insert(key, value.clone());
        Ok(())
    }

    fn get(&self, kind: TimedKind, key: &str, owner: &str) -> Result<Option<String>, StoreError> {
        let values = self.values.lock();
        let found = values.get(&(kind, key.to_owned()));
        let found = found.filter(|value| value.owner == owner && value.expires > now());
        Ok(found.map(|value| value.content.clone()))
    }

    fn remove(&self, kind: TimedKind, key: &str, owner: &str) -> Result<bool, StoreError> {
        let key = (kind, key.to_owned());
        let mut values = self.values.lock();
        let is_own = values.get(&key).is_some_and(|value| value.owner == owner);
        if is_own {
            values.remove(&key);
        }
        Ok(is_own)
    }

    fn send(&self, message: &NodeMessage) -> Result<(), StoreError> {
        self.receivers.lock().iter().for_each(|receive| receive(message));
        Ok(())
    }

    fn on_message(&self, receive: Box<dyn Fn(&NodeMessage) + Send + Sync>) {
        self.receivers.lock().push(receive);
    }
}

fn now() -> u64 {
    u64::try_from(crate::since_epoch().as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Debug for LocalValues {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LocalValues").finish_non_exhaustive()
    }
}
