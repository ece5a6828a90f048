//! What a person should look at in the definitions of servers. It is found in the background: to read all definitions takes
//! longer than a page may.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::{PageSource, PageState, ShownDefinitions};

/// Changes that follow each other this closely are looked at together.
const TOGETHER: Duration = Duration::from_millis(200);
/// Prompts and resources change without a notice, so they are looked at again after this time.
const USED_FOR: Duration = Duration::from_mins(1);

/// What was found last.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    known: Mutex<Known>,
    is_looking: AtomicBool,
    /// Changes when what was found does.
    version: AtomicU64,
}

#[derive(Debug, Default)]
struct Known {
    /// The change of the tools that it is about, and when it was looked at.
    at: Option<(u64, Instant)>,
    found: Arc<ShownDefinitions>,
}

impl Definitions {
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    fn is_current(&self, changes: u64) -> bool {
        let at = self.known.lock().at;
        at.is_some_and(|(known, at)| known == changes && at.elapsed() < USED_FOR)
    }

    async fn look(&self, source: &dyn PageSource) {
        loop {
            tokio::time::sleep(TOGETHER).await;
            let changes = *source.host().changes().borrow();
            let found = Arc::new(source.definitions().await);
            let before = {
                let mut known = self.known.lock();
                known.at = Some((changes, Instant::now()));
                std::mem::replace(&mut known.found, Arc::clone(&found))
            };
            if before != found {
                self.version.fetch_add(1, Ordering::Relaxed);
            }
            if *source.host().changes().borrow() == changes {
                return;
            }
        }
    }
}

/// What was found last. If it may have changed, it is looked at in the background.
pub(crate) fn latest(page: &PageState) -> Arc<ShownDefinitions> {
    let definitions = &page.definitions;
    let changes = *page.source.host().changes().borrow();
    if !definitions.is_current(changes) && !definitions.is_looking.swap(true, Ordering::AcqRel) {
        let (definitions, source) = (Arc::clone(definitions), Arc::clone(&page.source));
        tokio::spawn(async move {
            definitions.look(&*source).await;
            definitions.is_looking.store(false, Ordering::Release);
        });
    }
    Arc::clone(&definitions.known.lock().found)
}
