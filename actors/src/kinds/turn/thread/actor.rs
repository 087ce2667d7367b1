//! The thread actor: carries out the decisions of the pure state.

use std::collections::HashMap;
use std::sync::Arc;

use actix::fut::ActorFutureExt;
use actix::{Actor, AsyncContext, Context, Handler, WrapFuture};
use async_trait::async_trait;
use kernel::ThreadId;
use store::StoredRun;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use wire::ErrorCode;

use super::registry::{AcceptedTurn, Threads};
use super::slots::Slot;
use super::state::{Effect, Event, ThreadState};
use crate::kinds::turn::{TurnOf, Turns};
use crate::run::actor::settle;
use crate::run::drive::Driven;
use crate::run::kind::{Accepted, Kind};
use crate::run::lease::RunToken;
use crate::run::recover::{self, RecoveryError};
use crate::runtime::{Blueprint, ChildExit, Envelope, ExitReason, Handle, Life, Supervised};

/// Messages to a thread actor.
pub(super) enum ThreadMessage {
    /// A turn that is stored, or whose start is stored with its first writes.
    Accepted(Box<AcceptedTurn>),
    /// A stop of this turn was requested.
    Stop(Uuid),
}

pub(super) struct ThreadBlueprint {
    pub(super) thread: ThreadId,
    pub(super) threads: Threads,
}

pub(super) struct ThreadActor {
    threads: Threads,
    life: Life<ThreadMessage>,
    state: ThreadState,
    turns: HashMap<Uuid, ActiveTurn>,
    restarted: bool,
    /// Turns read from the database when a later life starts.
    loaded: Vec<AcceptedTurn>,
}

/// A turn in this life.
struct ActiveTurn {
    run: Arc<TurnOf>,
    token: RunToken,
    /// Released with the turn.
    _slot: Slot,
    stop: CancellationToken,
}

impl ThreadBlueprint {
    /// Returns the thread's unfinished turns without an owner here, in order.
    async fn stored(&self) -> Result<Vec<AcceptedTurn>, RecoveryError> {
        let inner = &self.threads.inner;
        let runs = inner.ports.store.unfinished_of_thread(self.thread, inner.ports.writer).await?;
        let is_turn = |run: &StoredRun| Turns::ROW.triggers.contains(&run.trigger.as_str());
        let runs = runs.into_iter().filter(is_turn).map(|run| run.id);
        let accepted = recover::accepted_of(&*inner.kind, &inner.ports, runs).await?;
        let placed = |accepted| AcceptedTurn { accepted, slot: self.threads.old_slot(self.thread) };
        Ok(accepted.into_iter().map(placed).collect())
    }
}

#[async_trait(?Send)]
impl Blueprint for ThreadBlueprint {
    type Actor = ThreadActor;

    async fn build(&self, life: Life<ThreadMessage>, restart: bool) -> Result<ThreadActor, String> {
        // The first life receives each turn as a message; later lives read the turns from the database.
        let loaded =
            if restart { self.stored().await.map_err(|error| error.to_string())? } else { Vec::new() };
        let (threads, state) = (self.threads.clone(), ThreadState::default());
        Ok(ThreadActor { threads, life, state, turns: HashMap::new(), restarted: restart, loaded })
    }

    async fn give_up(&self, _last: &ExitReason) {
        let unfinished = match self.stored().await {
            Ok(unfinished) => unfinished,
            Err(error) => {
                let thread = self.thread;
                return tracing::error!(%thread, %error, "failed to end the turns of a thread; retrying later");
            }
        };
        for AcceptedTurn { accepted: Accepted { run, token, .. }, slot: _slot } in unfinished {
            if self.threads.driver(run).fail(ErrorCode::ActorFailed).await == Driven::Ended {
                token.released();
            }
        }
    }

    fn ended(&self, handle: &Handle<ThreadMessage>, _reason: &ExitReason) {
        self.threads.ended(self.thread, handle);
    }
}

impl Supervised for ThreadActor {
    type Message = ThreadMessage;
}

impl Actor for ThreadActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        self.life.on_drain(context, |actor, context| actor.on(Event::Drain, context));
        for accepted in std::mem::take(&mut self.loaded) {
            self.take(accepted, context);
        }
        // After a restart, the turns may have ended meanwhile. A first life waits for its first turn.
        if self.restarted && self.turns.is_empty() {
            self.idle_soon(context);
        }
    }
}

impl Handler<Envelope<ThreadMessage>> for ThreadActor {
    type Result = ();

    fn handle(&mut self, envelope: Envelope<ThreadMessage>, context: &mut Self::Context) {
        envelope.open(|message| match message {
            ThreadMessage::Accepted(accepted) => self.take(*accepted, context),
            ThreadMessage::Stop(run) => self.on(Event::Stop(run), context),
        });
        // This may have been the only message; passivation waits until its mailbox slot is free.
        if self.turns.is_empty() {
            self.idle_soon(context);
        }
    }
}

impl ThreadActor {
    fn take(&mut self, turn: AcceptedTurn, context: &mut Context<Self>) {
        let AcceptedTurn { accepted: Accepted { run, token, stop: stopping }, slot } = turn;
        let (id, order) = (run.id, run.own.order);
        if self.turns.contains_key(&id) {
            return;
        }
        let stop = CancellationToken::new();
        if stopping {
            stop.cancel();
        }
        self.turns.insert(id, ActiveTurn { run, token, _slot: slot, stop });
        self.on(Event::Accepted { turn: id, order }, context);
    }

    fn on(&mut self, event: Event, context: &mut Context<Self>) {
        for effect in self.state.step(event) {
            match effect {
                Effect::Start(run) => self.start(run, context),
                Effect::Stop(run) => self.stop(run),
                Effect::EndUnstarted(run) => {
                    self.stop(run);
                    self.start(run, context);
                }
                Effect::Idle => self.idle(context),
            }
        }
    }

    fn stop(&self, run: Uuid) {
        if let Some(held) = self.turns.get(&run) {
            held.stop.cancel();
        }
    }

    /// Drives a turn in a child task; for a turn that was stopped before, only writes the end.
    fn start(&mut self, run: Uuid, context: &mut Context<Self>) {
        let Some(held) = self.turns.get(&run) else { return };
        let turn = &held.run;
        let span = tracing::info_span!("turn", %run, thread = %turn.own.thread, stream = %turn.stream);
        let child = {
            let _entered = span.enter();
            let driver = self.threads.driver(Arc::clone(turn));
            let children = self.life.children();
            let drain = self.life.drain().clone();
            children.spawn_here(None, driver.drive(held.stop.clone(), children.clone(), drain))
        };
        context.spawn(
            child.into_actor(self).map(move |exit, actor, context| actor.child_ended(run, exit, context)),
        );
    }

    fn child_ended(&mut self, run: Uuid, exit: ChildExit<Driven>, context: &mut Context<Self>) {
        let stop = self.turns.get(&run).map(|held| held.stop.clone()).unwrap_or_default();
        let token = || self.turns.remove(&run).map(|held| held.token);
        match settle(exit, Turns::ROW.name, token, &stop, &self.threads.inner.ports) {
            Ok(()) => self.on(Event::Ended(run), context),
            Err(reason) => self.life.end(context, ExitReason::Failed(reason)),
        }
    }

    fn idle(&mut self, context: &mut Context<Self>) {
        if self.life.drain().is_cancelled() {
            self.life.end(context, ExitReason::Drain);
        } else if !self.life.passivate(context) {
            self.idle_soon(context);
        }
    }

    /// Checks for idleness again after the messages under way.
    fn idle_soon(&self, context: &mut Context<Self>) {
        context.spawn(async { tokio::task::yield_now().await }.into_actor(self).map(|(), actor, context| {
            if actor.turns.is_empty() {
                actor.idle(context);
            }
        }));
    }
}
