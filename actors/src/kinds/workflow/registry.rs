//! Every run that has an actor in this process, and the way to it.

use std::sync::Arc;

use dashmap::DashMap;
use parking_lot::Mutex;
use uuid::Uuid;

use super::actor::{RunBlueprint, Stop};
use super::driver::Run;
use crate::run::RunPorts;
use crate::run::lease::RunToken;
use crate::runtime::{ActorKind, Guardian, Handle};

/// An accepted run.
pub(crate) struct AcceptedRun {
    pub(crate) run: Run,
    pub(crate) token: RunToken,
    /// Whether its end was asked for before it was handed over.
    pub(crate) stop: bool,
}

/// The runs of this process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Registry {
    inner: Arc<Inner>,
}

struct Inner {
    ports: RunPorts,
    guardian: Guardian,
    actors: DashMap<Uuid, Handle<Stop>>,
}

impl Registry {
    pub(crate) fn new(guardian: Guardian, ports: RunPorts) -> Self {
        Self { inner: Arc::new(Inner { ports, guardian, actors: DashMap::new() }) }
    }

    pub(crate) fn ports(&self) -> &RunPorts {
        &self.inner.ports
    }

    /// Creates the actor of a stored run. Only the holder of the run's token calls it.
    pub(crate) fn accept(&self, accepted: AcceptedRun) {
        let id = accepted.run.id;
        let blueprint = RunBlueprint { run: id, registry: self.clone(), first: Mutex::new(Some(accepted)) };
        // Under the entry's lock: an actor that ends at once finds itself here.
        self.inner.actors.entry(id).insert(self.inner.guardian.supervise(ActorKind::Run, blueprint));
    }

    /// Tells a run that its end was asked for, if it has an actor here.
    pub(crate) fn stop(&self, run: Uuid) {
        let told = self.inner.actors.get(&run).map(|handle| handle.tell(Stop));
        if let Some(Err(error)) = told {
            tracing::debug!(%run, %error, "a run was not told of its end; it will be again");
        }
    }

    pub(super) fn ended(&self, run: Uuid, handle: &Handle<Stop>) {
        self.inner.actors.remove_if(&run, |_, known| known.is_same(handle));
    }

    pub(crate) fn len(&self) -> usize {
        self.inner.actors.len()
    }
}
