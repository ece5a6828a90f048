//! The workers of components.

use std::{collections::HashMap, io, sync::Arc};

use parking_lot::Mutex;

use super::{WorkerProgram, spawner::Spawner};
use crate::{component, language::ComponentProgram};

/// Starts a zygote for each component when a script of its language runs first.
#[derive(Debug)]
pub(super) struct ComponentPool {
    program: WorkerProgram,
    warm: usize,
    spawners: Mutex<HashMap<Arc<ComponentProgram>, Arc<Spawner>>>,
}

impl ComponentPool {
    pub(super) fn new(program: WorkerProgram, warm: usize) -> Self {
        Self { program, warm, spawners: Mutex::default() }
    }

    pub(super) fn waiting(&self) -> usize {
        self.spawners.lock().values().map(|spawner| spawner.waiting()).sum()
    }

    /// The workers of a component. A component that replaces another one ends the workers of the
    /// other one that wait.
    pub(super) fn of(&self, component: &Arc<ComponentProgram>) -> io::Result<Arc<Spawner>> {
        let mut spawners = self.spawners.lock();
        if let Some(spawner) = spawners.get(component) {
            return Ok(Arc::clone(spawner));
        }
        component::runs_components().map_err(io::Error::other)?;
        let program = component::worker_program(&self.program, component);
        spawners.retain(|other, _| other.language != component.language);
        let spawner = Arc::new(Spawner::new(program, self.warm));
        spawners.insert(Arc::clone(component), Arc::clone(&spawner));
        Ok(spawner)
    }

    pub(super) fn retire_zygote(&self, component: &Arc<ComponentProgram>) {
        let spawner = self.spawners.lock().get(component).cloned();
        if let Some(spawner) = spawner {
            spawner.retire_zygote();
        }
    }
}
