//! The actor itself: drives its run in a child task and sees to what becomes of it.

use std::time::Duration;

use actix::fut::ActorFutureExt;
use actix::{Actor, AsyncContext, Context, Handler, WrapFuture};
use async_trait::async_trait;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use wire::ErrorCode;

use super::driver;
use super::registry::{AcceptedRun, Registry};
use crate::run::Driven;
use crate::run::recover;
use crate::runtime::{Blueprint, ChildExit, Envelope, ExitReason, Handle, Life, Supervised};

/// How long a run may go on after the shutdown has begun. What it has not finished by then, the next process does:
/// the journal knows how far it has got.
const DRAIN: Duration = Duration::from_secs(5);

/// The run's end was asked for, and it is stored that it was.
pub(super) struct Stop;

pub(super) struct RunBlueprint {
    pub(super) run: Uuid,
    pub(super) registry: Registry,
    /// What the first life is given; a later one finds it in the database.
    pub(super) first: Mutex<Option<AcceptedRun>>,
}

pub(super) struct RunActor {
    registry: Registry,
    life: Life<Stop>,
    /// `None`: it is over.
    accepted: Option<AcceptedRun>,
    stop: CancellationToken,
}

#[async_trait(?Send)]
impl Blueprint for RunBlueprint {
    type Actor = RunActor;

    async fn build(&self, life: Life<Stop>, _restart: bool) -> Result<RunActor, String> {
        let first = self.first.lock().take();
        let accepted = match first {
            Some(first) => Some(first),
            None => {
                let found = recover::of_run(&self.registry, self.run).await;
                found.map_err(|error| error.to_string())?
            }
        };
        let stop = CancellationToken::new();
        if accepted.as_ref().is_some_and(|accepted| accepted.stop) {
            stop.cancel();
        }
        Ok(RunActor { registry: self.registry.clone(), life, accepted, stop })
    }

    async fn give_up(&self, _last: &ExitReason) {
        match recover::of_run(&self.registry, self.run).await {
            Ok(Some(AcceptedRun { run, token, .. })) => {
                let ports = self.registry.ports().clone();
                if driver::fail(run, ports, ErrorCode::ActorFailed).await == Driven::Ended {
                    token.released();
                }
            }
            Ok(None) => {}
            Err(error) => tracing::error!(run = %self.run, %error, "a run cannot be ended now"),
        }
    }

    fn ended(&self, handle: &Handle<Stop>, _reason: &ExitReason) {
        self.registry.ended(self.run, handle);
    }
}

impl Supervised for RunActor {
    type Message = Stop;
}

impl Actor for RunActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        let Some(accepted) = &self.accepted else {
            self.life.end(context, ExitReason::Done);
            return;
        };
        let (drain, clock) = (self.life.drain().clone(), self.registry.ports().clock.clone());
        if drain.is_cancelled() {
            self.life.end(context, ExitReason::Drain);
            return;
        }
        let drained = async move {
            drain.cancelled().await;
            clock.sleep(DRAIN).await;
        };
        context.spawn(
            drained.into_actor(self).map(|(), actor, context| actor.life.end(context, ExitReason::Drain)),
        );
        let (run, ports) = (accepted.run.clone(), self.registry.ports().clone());
        let span = tracing::info_span!("run", run = %run.id, workflow = %run.workflow);
        let child = {
            let _entered = span.enter();
            self.life.children().spawn_here(None, driver::drive(run, ports, self.stop.clone()))
        };
        context.spawn(child.into_actor(self).map(|exit, actor, context| actor.child_ended(exit, context)));
    }
}

impl Handler<Envelope<Stop>> for RunActor {
    type Result = ();

    fn handle(&mut self, envelope: Envelope<Stop>, _context: &mut Self::Context) {
        envelope.open(|Stop| self.stop.cancel());
    }
}

impl RunActor {
    fn child_ended(&mut self, exit: ChildExit<Driven>, context: &mut Context<Self>) {
        let reason = match exit {
            ChildExit::Done(Driven::Ended) => {
                if let Some(accepted) = self.accepted.take() {
                    accepted.token.released();
                }
                self.life.end(context, ExitReason::Done);
                return;
            }
            ChildExit::Done(Driven::Parked) => {
                if let Some(accepted) = self.accepted.take() {
                    // The instance that claims it from the queue owns it.
                    accepted.token.released();
                    if self.stop.is_cancelled() {
                        self.registry.ports().wakeups.queue();
                    }
                }
                self.life.end(context, ExitReason::Done);
                return;
            }
            ChildExit::Done(Driven::Lost(error)) => {
                format!("a run's writes are refused: {error}")
            }
            ChildExit::Done(Driven::Unreadable(text)) => {
                format!("a run cannot be read: {text}")
            }
            ChildExit::Panicked(text) => format!("a run panicked: {text}"),
            ChildExit::TimedOut | ChildExit::Cut => "a run was cut off".to_owned(),
        };
        self.life.end(context, ExitReason::Failed(reason));
    }
}
