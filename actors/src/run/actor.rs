//! The run actor, which drives its run in a child task, and the registry of run actors, one per kind.

use std::sync::Arc;

use actix::fut::ActorFutureExt;
use actix::{Actor, AsyncContext, Context, Handler, WrapFuture};
use async_trait::async_trait;
use dashmap::DashMap;
use engine::RunInput;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kernel::ThreadId;
use parking_lot::Mutex;
use store::StoreError;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use wire::ErrorCode;

use super::drive::{Driven, Driver};
use super::kind::{Accepted, Door, Kind, KindRow, PastRun, RecoveredRun, Run};
use super::lease::RunToken;
use super::{RunPorts, recover};
use crate::runtime::{Blueprint, ChildExit, Envelope, ExitReason, Guardian, Handle, Life, Supervised};

/// The message that a stop was requested; the request is already stored.
pub(crate) struct StopMessage;

/// The runs of one kind in this process. Cheap to clone.
pub(crate) struct RunActors<K: Kind> {
    inner: Arc<ActorsInner<K>>,
}

impl<K: Kind> Clone for RunActors<K> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

struct ActorsInner<K: Kind> {
    kind: Arc<K>,
    ports: RunPorts,
    guardian: Guardian,
    actors: DashMap<Uuid, Handle<StopMessage>>,
}

impl<K: Kind> ActorsInner<K> {
    fn driver(&self, run: Arc<Run<K>>) -> Driver<K> {
        Driver { kind: Arc::clone(&self.kind), run, ports: self.ports.clone() }
    }
}

impl<K: Kind> RunActors<K> {
    pub(crate) fn new(kind: K, guardian: Guardian, ports: RunPorts) -> Self {
        Self {
            inner: Arc::new(ActorsInner { kind: Arc::new(kind), ports, guardian, actors: DashMap::new() }),
        }
    }

    /// Creates the actor for a stored run. Only the holder of the run token calls it.
    pub(crate) fn accept(&self, accepted: Accepted<K>) {
        let id = accepted.run.id;
        let blueprint = RunBlueprint { run: id, actors: self.clone(), first: Mutex::new(Some(accepted)) };
        // The entry stays locked during the insertion, so an actor that ends at once finds its own entry.
        self.inner.actors.entry(id).insert(self.inner.guardian.supervise(K::ROW.actor, blueprint));
    }

    /// Number of run actors in this process.
    pub(crate) fn len(&self) -> usize {
        self.inner.actors.len()
    }

    fn ended(&self, run: Uuid, handle: &Handle<StopMessage>) {
        self.inner.actors.remove_if(&run, |_, known| known.is_same(handle));
    }
}

impl<K: Kind> Door for RunActors<K> {
    fn row(&self) -> KindRow {
        K::ROW
    }

    fn take_up(&self, recovered: RecoveredRun, token: RunToken) -> Result<(), String> {
        self.accept(Accepted::recovered(&*self.inner.kind, recovered, token)?);
        Ok(())
    }

    fn stop(&self, run: Uuid, _thread: Option<ThreadId>) {
        let told = self.inner.actors.get(&run).map(|handle| handle.tell(StopMessage));
        if let Some(Err(error)) = told {
            tracing::debug!(%run, %error, "failed to notify a run of its stop; retrying");
        }
    }

    fn pause(&self, run: Uuid) {
        self.inner.kind.pause(run);
    }

    fn past_input<'a>(&'a self, past: PastRun<'a>) -> BoxFuture<'a, Result<RunInput, StoreError>> {
        self.inner.kind.past_input(past, &self.inner.ports).boxed()
    }
}

/// Releases the token of a run that has ended or is parked.
///
/// # Errors
/// Otherwise, the reason why this actor life ends.
pub(crate) fn settle(
    exit: ChildExit<Driven>,
    name: &str,
    token: impl FnOnce() -> Option<RunToken>,
    stop: &CancellationToken,
    ports: &RunPorts,
) -> Result<(), String> {
    match exit {
        ChildExit::Done(done @ (Driven::Ended | Driven::Parked)) => {
            if let Some(token) = token() {
                token.released();
            }
            if done == Driven::Parked && stop.is_cancelled() {
                // The stop arrived while the run was being parked; the queue ends the run.
                ports.wakeups.queue();
            }
            Ok(())
        }
        ChildExit::Done(Driven::Lost(error)) => Err(format!("the writes of a {name} are refused: {error}")),
        ChildExit::Done(Driven::Unreadable(text)) => Err(format!("failed to read a {name}: {text}")),
        ChildExit::Panicked(text) => Err(format!("a {name} panicked: {text}")),
        ChildExit::TimedOut | ChildExit::Cut => Err(format!("a {name} was interrupted")),
    }
}

struct RunBlueprint<K: Kind> {
    run: Uuid,
    actors: RunActors<K>,
    /// Input of the first life; later lives read the database.
    first: Mutex<Option<Accepted<K>>>,
}

struct RunActor<K: Kind> {
    actors: RunActors<K>,
    life: Life<StopMessage>,
    /// `None` after the run has ended.
    run: Option<Arc<Run<K>>>,
    token: Option<RunToken>,
    stop: CancellationToken,
}

impl<K: Kind> RunBlueprint<K> {
    async fn stored(&self) -> Result<Option<Accepted<K>>, recover::RecoveryError> {
        let inner = &self.actors.inner;
        recover::accepted(&*inner.kind, &inner.ports, self.run).await
    }
}

#[async_trait(?Send)]
impl<K: Kind> Blueprint for RunBlueprint<K> {
    type Actor = RunActor<K>;

    async fn build(&self, life: Life<StopMessage>, _restart: bool) -> Result<RunActor<K>, String> {
        let first = self.first.lock().take();
        let accepted = match first {
            Some(first) => Some(first),
            None => self.stored().await.map_err(|error| error.to_string())?,
        };
        let stop = CancellationToken::new();
        if accepted.as_ref().is_some_and(|accepted| accepted.stop) {
            stop.cancel();
        }
        let (run, token) = accepted.map(|accepted| (accepted.run, accepted.token)).unzip();
        Ok(RunActor { actors: self.actors.clone(), life, run, token, stop })
    }

    async fn give_up(&self, _last: &ExitReason) {
        match self.stored().await {
            Ok(Some(Accepted { run, token, .. })) => {
                let driver = self.actors.inner.driver(run);
                if driver.fail(ErrorCode::ActorFailed).await == Driven::Ended {
                    token.released();
                }
            }
            Ok(None) => {}
            Err(error) => tracing::error!(run = %self.run, %error, "failed to end a run; retrying later"),
        }
    }

    fn ended(&self, handle: &Handle<StopMessage>, _reason: &ExitReason) {
        self.actors.ended(self.run, handle);
    }
}

impl<K: Kind> Supervised for RunActor<K> {
    type Message = StopMessage;
}

impl<K: Kind> Actor for RunActor<K> {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        let Some(run) = &self.run else {
            self.life.end(context, ExitReason::Done);
            return;
        };
        let inner = &self.actors.inner;
        let drain = self.life.drain().clone();
        if drain.is_cancelled() {
            self.life.end(context, ExitReason::Drain);
            return;
        }
        if let Some(limit) = K::ROW.drain {
            let clock = Arc::clone(&inner.ports.clock);
            let drained = async move {
                drain.cancelled().await;
                clock.sleep(limit).await;
            };
            context.spawn(
                drained.into_actor(self).map(|(), actor, context| actor.life.end(context, ExitReason::Drain)),
            );
        }
        let span = tracing::info_span!("run", run = %run.id, workflow = %run.workflow);
        let child = {
            let _entered = span.enter();
            let driver = inner.driver(Arc::clone(run));
            let children = self.life.children();
            let drain = self.life.drain().clone();
            children.spawn_here(None, driver.drive(self.stop.clone(), children.clone(), drain))
        };
        context.spawn(child.into_actor(self).map(|exit, actor, context| actor.child_ended(exit, context)));
    }
}

impl<K: Kind> Handler<Envelope<StopMessage>> for RunActor<K> {
    type Result = ();

    fn handle(&mut self, envelope: Envelope<StopMessage>, _context: &mut Self::Context) {
        envelope.open(|StopMessage| self.stop.cancel());
    }
}

impl<K: Kind> RunActor<K> {
    fn child_ended(&mut self, exit: ChildExit<Driven>, context: &mut Context<Self>) {
        let ports = &self.actors.inner.ports;
        let settled = settle(exit, K::ROW.name, || self.token.take(), &self.stop, ports);
        let reason = match settled {
            Ok(()) => ExitReason::Done,
            // The next process resumes the run.
            Err(_) if self.life.drain().is_cancelled() => ExitReason::Drain,
            Err(text) => ExitReason::Failed(text),
        };
        self.life.end(context, reason);
    }
}
