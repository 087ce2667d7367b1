//! The actor of a queue: the work is its child task.

use std::sync::Arc;
use std::time::Duration;

use actix::fut::ActorFutureExt;
use actix::{Actor, AsyncContext, Context, Handler, WrapFuture};
use async_trait::async_trait;
use tokio::sync::Notify;

use super::{Queue, work};
use crate::runtime::{Blueprint, ChildExit, Envelope, ExitReason, Handle, Life, Supervised};

/// Maximum time for deliveries in progress after shutdown has begun.
const DRAIN: Duration = Duration::from_secs(5);

/// The message that something may be due.
pub(super) struct Wake;

pub(super) struct SendingBlueprint<Q> {
    pub(super) queue: Arc<Q>,
    pub(super) wake: Arc<Notify>,
}

pub(super) struct SendingActor<Q> {
    life: Life<Wake>,
    queue: Arc<Q>,
    wake: Arc<Notify>,
}

#[async_trait(?Send)]
impl<Q: Queue> Blueprint for SendingBlueprint<Q> {
    type Actor = SendingActor<Q>;

    async fn build(&self, life: Life<Wake>, _restart: bool) -> Result<SendingActor<Q>, String> {
        Ok(SendingActor { life, queue: Arc::clone(&self.queue), wake: Arc::clone(&self.wake) })
    }

    async fn give_up(&self, _last: &ExitReason) {}

    fn ended(&self, _handle: &Handle<Wake>, reason: &ExitReason) {
        tracing::debug!(queue = Q::NAME, ?reason, "queue paused");
    }
}

impl<Q: Queue> Supervised for SendingActor<Q> {
    type Message = Wake;
}

impl<Q: Queue> Handler<Envelope<Wake>> for SendingActor<Q> {
    type Result = ();

    fn handle(&mut self, envelope: Envelope<Wake>, _context: &mut Self::Context) {
        envelope.open(|Wake| self.wake.notify_one());
    }
}

impl<Q: Queue> Actor for SendingActor<Q> {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        let (drain, clock) = (self.life.drain().clone(), Arc::clone(self.queue.clock()));
        let late = async move {
            drain.cancelled().await;
            clock.sleep(DRAIN).await;
        };
        context.spawn(
            late.into_actor(self).map(|(), actor, context| actor.life.end(context, ExitReason::Drain)),
        );
        let (queue, wake, drain) =
            (Arc::clone(&self.queue), Arc::clone(&self.wake), self.life.drain().clone());
        let work = self.life.children().spawn(None, async move { work(&queue, &wake, &drain).await });
        context.spawn(work.into_actor(self).map(|exit, actor, context| {
            let reason = match exit {
                ChildExit::Done(()) => ExitReason::Drain,
                ChildExit::Panicked(text) => ExitReason::Failed(format!("the {} panicked: {text}", Q::NAME)),
                ChildExit::TimedOut | ChildExit::Cut => ExitReason::Failed("interrupted".to_owned()),
            };
            actor.life.end(context, reason);
        }));
    }
}
