//! Periodic work, one file per job. Each job executes a round, waits, and repeats.

pub(crate) mod canaries;
pub(crate) mod clock_leaps;
mod cron;
mod encodings;
pub(crate) mod erasures;
pub(crate) mod gates;
pub(crate) mod lease;
pub(crate) mod maintenance;
pub(crate) mod questions;
pub(crate) mod replies;
pub(crate) mod retention;
mod run_queue;
mod streams;
pub(crate) mod usage;

use std::sync::Arc;
use std::time::Duration;

use actix::fut::ActorFutureExt;
use actix::{Actor, AsyncContext, Context, Handler, WrapFuture};
use async_trait::async_trait;
use kernel::Clock;

use crate::runtime::{
    ActorKind, Blueprint, ChildExit, Envelope, ExitReason, Guardian, Handle, Life, Supervised,
};

/// An instance's periodic job.
#[async_trait]
pub(crate) trait Job: Send + Sync + 'static {
    /// Selects its restart policy and its name in logs.
    const KIND: ActorKind;
    /// Pause between two rounds.
    const PAUSE: Duration;

    /// Executes one round.
    ///
    /// # Errors
    /// [`JobError`] if the actor must be restarted. A round that can simply be repeated logs its failure instead.
    async fn round(&self) -> Result<(), JobError>;
}

/// A round failed in a way that only a restart can repair.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct JobError(pub(crate) String);

/// Starts a job.
pub(crate) fn start<J: Job>(guardian: &Guardian, clock: &Arc<dyn Clock>, job: J) {
    let _ = guardian.supervise(J::KIND, Periodic { job: Arc::new(job), clock: Arc::clone(clock) });
}

/// The blueprint of a job's actor.
struct Periodic<J> {
    job: Arc<J>,
    clock: Arc<dyn Clock>,
}

/// A job receives no messages.
enum Nothing {}

struct PeriodicActor<J> {
    life: Life<Nothing>,
    job: Arc<J>,
    clock: Arc<dyn Clock>,
}

#[async_trait(?Send)]
impl<J: Job> Blueprint for Periodic<J> {
    type Actor = PeriodicActor<J>;

    async fn build(&self, life: Life<Nothing>, _restart: bool) -> Result<PeriodicActor<J>, String> {
        Ok(PeriodicActor { life, job: Arc::clone(&self.job), clock: Arc::clone(&self.clock) })
    }

    async fn give_up(&self, _last: &ExitReason) {}

    fn ended(&self, _handle: &Handle<Nothing>, reason: &ExitReason) {
        tracing::debug!(name = J::KIND.name(), ?reason, "periodic job ended");
    }
}

impl<J: Job> Supervised for PeriodicActor<J> {
    type Message = Nothing;
}

impl<J: Job> Handler<Envelope<Nothing>> for PeriodicActor<J> {
    type Result = ();

    fn handle(&mut self, envelope: Envelope<Nothing>, _context: &mut Self::Context) {
        envelope.open(|nothing| match nothing {});
    }
}

impl<J: Job> Actor for PeriodicActor<J> {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        self.life.on_drain(context, |actor, context| actor.life.end(context, ExitReason::Drain));
        self.next_round(context);
    }
}

impl<J: Job> PeriodicActor<J> {
    fn next_round(&self, context: &mut Context<Self>) {
        let (job, clock) = (Arc::clone(&self.job), Arc::clone(&self.clock));
        let work = self.life.children().spawn(None, async move {
            job.round().await?;
            clock.sleep(J::PAUSE).await;
            Ok::<(), JobError>(())
        });
        context.spawn(work.into_actor(self).map(|exit, actor, context| {
            let reason = match exit {
                ChildExit::Done(Ok(())) => return actor.next_round(context),
                ChildExit::Done(Err(error)) => error.to_string(),
                ChildExit::Panicked(text) => format!("panicked: {text}"),
                ChildExit::TimedOut | ChildExit::Cut => "was interrupted".to_owned(),
            };
            actor.life.end(context, ExitReason::Failed(reason));
        }));
    }
}
