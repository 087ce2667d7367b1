//! Periodic work: each job does a round, waits, and does the next.

pub(crate) mod clock_leaps;
pub(crate) mod retention;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use actix::fut::ActorFutureExt;
use actix::{Actor, AsyncContext, Context, Handler, WrapFuture};
use async_trait::async_trait;
use kernel::Clock;

use crate::runtime::{Blueprint, ChildExit, Envelope, ExitReason, Handle, Life, Supervised};

/// One round of the work.
pub(crate) type Round =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync>;

/// Does a round, waits, does the next.
pub(crate) struct Periodic {
    pub(crate) name: &'static str,
    pub(crate) every: Duration,
    pub(crate) round: Round,
    pub(crate) clock: Arc<dyn Clock>,
}

/// Nothing is ever told to it.
pub(crate) enum Nothing {}

pub(crate) struct PeriodicActor {
    life: Life<Nothing>,
    every: Duration,
    round: Round,
    clock: Arc<dyn Clock>,
}

#[async_trait(?Send)]
impl Blueprint for Periodic {
    type Actor = PeriodicActor;

    async fn build(&self, life: Life<Nothing>, _restart: bool) -> Result<PeriodicActor, String> {
        let (round, clock) = (Arc::clone(&self.round), Arc::clone(&self.clock));
        Ok(PeriodicActor { life, every: self.every, round, clock })
    }

    async fn give_up(&self, _last: &ExitReason) {}

    fn ended(&self, _handle: &Handle<Nothing>, reason: &ExitReason) {
        tracing::debug!(name = self.name, ?reason, "periodic work has ended");
    }
}

impl Supervised for PeriodicActor {
    type Message = Nothing;
}

impl Handler<Envelope<Nothing>> for PeriodicActor {
    type Result = ();

    fn handle(&mut self, envelope: Envelope<Nothing>, _context: &mut Self::Context) {
        envelope.open(|nothing| match nothing {});
    }
}

impl Actor for PeriodicActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        let drain = self.life.drain().clone();
        context.spawn(
            async move { drain.cancelled().await }
                .into_actor(self)
                .map(|(), actor, context| actor.life.end(context, ExitReason::Drain)),
        );
        self.begin(context);
    }
}

impl PeriodicActor {
    fn begin(&self, context: &mut Context<Self>) {
        let (round, clock, every) = (Arc::clone(&self.round), Arc::clone(&self.clock), self.every);
        let work = self.life.children().spawn(None, async move {
            round().await?;
            clock.sleep(every).await;
            Ok::<(), String>(())
        });
        context.spawn(work.into_actor(self).map(|exit, actor, context| {
            let reason = match exit {
                ChildExit::Done(Ok(())) => return actor.begin(context),
                ChildExit::Done(Err(text)) => text,
                ChildExit::Panicked(text) => format!("panicked: {text}"),
                ChildExit::TimedOut | ChildExit::Cut => "was cut off".to_owned(),
            };
            actor.life.end(context, ExitReason::Failed(reason));
        }));
    }
}
