//! The actor: one round after the other, in a child task.

use std::sync::Arc;
use std::time::Duration;

use actix::fut::ActorFutureExt;
use actix::{Actor, AsyncContext, Context, Handler, WrapFuture};
use async_trait::async_trait;
use tokio::sync::Notify;

use super::round::Rounds;
use crate::runtime::{Blueprint, ChildExit, Envelope, ExitReason, Handle, Life, Supervised};

/// How often the queue is looked at when nobody says that something is in it: another instance may have died, and a request
/// that failed comes round again.
const EVERY: Duration = Duration::from_secs(1);
/// How long requests that are being sent may take after the shutdown has begun.
const DRAIN: Duration = Duration::from_secs(5);

/// There is something to send.
pub(super) struct Wake;

pub(super) struct OutboxBlueprint {
    pub(super) rounds: Arc<Rounds>,
    pub(super) wake: Arc<Notify>,
}

pub(super) struct OutboxActor {
    life: Life<Wake>,
    rounds: Arc<Rounds>,
    wake: Arc<Notify>,
}

#[async_trait(?Send)]
impl Blueprint for OutboxBlueprint {
    type Actor = OutboxActor;

    async fn build(&self, life: Life<Wake>, _restart: bool) -> Result<OutboxActor, String> {
        Ok(OutboxActor { life, rounds: Arc::clone(&self.rounds), wake: Arc::clone(&self.wake) })
    }

    async fn give_up(&self, _last: &ExitReason) {}

    fn ended(&self, _handle: &Handle<Wake>, reason: &ExitReason) {
        tracing::debug!(?reason, "the outbox is left alone");
    }
}

impl Supervised for OutboxActor {
    type Message = Wake;
}

impl Handler<Envelope<Wake>> for OutboxActor {
    type Result = ();

    fn handle(&mut self, envelope: Envelope<Wake>, _context: &mut Self::Context) {
        envelope.open(|Wake| self.wake.notify_one());
    }
}

impl Actor for OutboxActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        let (drain, clock) = (self.life.drain().clone(), Arc::clone(&self.rounds.clock));
        let late = async move {
            drain.cancelled().await;
            clock.sleep(DRAIN).await;
        };
        context.spawn(
            late.into_actor(self).map(|(), actor, context| actor.life.end(context, ExitReason::Drain)),
        );
        let (rounds, wake, drain) =
            (Arc::clone(&self.rounds), Arc::clone(&self.wake), self.life.drain().clone());
        let work = self.life.children().spawn(None, async move {
            rounds.take_up().await;
            while !drain.is_cancelled() {
                rounds.go().await;
                tokio::select! {
                    () = rounds.clock.sleep(EVERY) => {}
                    () = wake.notified() => {}
                    () = drain.cancelled() => {}
                }
            }
        });
        context.spawn(work.into_actor(self).map(|exit, actor, context| {
            let reason = match exit {
                ChildExit::Done(()) => ExitReason::Drain,
                ChildExit::Panicked(text) => {
                    ExitReason::Failed(format!("sending from the outbox panicked: {text}"))
                }
                ChildExit::TimedOut | ChildExit::Cut => ExitReason::Failed("was cut off".to_owned()),
            };
            actor.life.end(context, reason);
        }));
    }
}
