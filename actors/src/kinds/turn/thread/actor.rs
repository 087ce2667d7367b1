//! The actor itself: carries out what the pure state decides.

use std::collections::HashMap;

use actix::fut::ActorFutureExt;
use actix::{Actor, AsyncContext, Context, Handler, WrapFuture};
use async_trait::async_trait;
use kernel::ThreadId;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use wire::ErrorCode;

use super::registry::{Accepted, Threads};
use super::state::{Effect, Event, State};
use crate::kinds::turn;
use crate::run::Driven;
use crate::run::recover;
use crate::runtime::{Blueprint, ChildExit, Envelope, ExitReason, Handle, Life, Supervised};

/// What a thread is told.
pub(super) enum Message {
    /// A stored turn.
    Accepted(Box<Accepted>),
    /// A turn's end was asked for.
    Stop(Uuid),
}

pub(super) struct ThreadBlueprint {
    pub(super) thread: ThreadId,
    pub(super) threads: Threads,
}

pub(super) struct ThreadActor {
    threads: Threads,
    life: Life<Message>,
    state: State,
    turns: HashMap<Uuid, Held>,
    restarted: bool,
    /// Taken in at the start, from the database.
    loaded: Vec<Accepted>,
}

/// A turn that this life looks after.
struct Held {
    accepted: Option<Accepted>,
    stop: CancellationToken,
}

#[async_trait(?Send)]
impl Blueprint for ThreadBlueprint {
    type Actor = ThreadActor;

    async fn build(&self, life: Life<Message>, restart: bool) -> Result<ThreadActor, String> {
        // The first life is told everything; a later one finds in the database what the last one held.
        let loaded = if restart {
            recover::of_thread(&self.threads, self.thread).await.map_err(|error| error.to_string())?
        } else {
            Vec::new()
        };
        let (threads, state) = (self.threads.clone(), State::default());
        Ok(ThreadActor { threads, life, state, turns: HashMap::new(), restarted: restart, loaded })
    }

    async fn give_up(&self, _last: &ExitReason) {
        let unfinished = match recover::of_thread(&self.threads, self.thread).await {
            Ok(unfinished) => unfinished,
            Err(error) => {
                tracing::error!(thread = %self.thread, %error, "a thread's turns cannot be ended now");
                return;
            }
        };
        for accepted in unfinished {
            let Accepted { turn, token, .. } = accepted;
            let ports = self.threads.inner.ports.clone();
            if turn::fail(turn, ports, ErrorCode::ActorFailed).await == Driven::Ended {
                token.released();
            }
        }
    }

    fn ended(&self, handle: &Handle<Message>, _reason: &ExitReason) {
        self.threads.ended(self.thread, handle);
    }
}

impl Supervised for ThreadActor {
    type Message = Message;
}

impl Actor for ThreadActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        let drain = self.life.drain().clone();
        context.spawn(
            async move { drain.cancelled().await }
                .into_actor(self)
                .map(|(), actor, context| actor.on(Event::Drain, context)),
        );
        for accepted in std::mem::take(&mut self.loaded) {
            self.take(accepted, context);
        }
        // What a restart was for may have ended meanwhile. A first life waits for what it was made for.
        if self.restarted && self.turns.is_empty() {
            self.idle_soon(context);
        }
    }
}

impl Handler<Envelope<Message>> for ThreadActor {
    type Result = ();

    fn handle(&mut self, envelope: Envelope<Message>, context: &mut Self::Context) {
        envelope.open(|message| match message {
            Message::Accepted(accepted) => self.take(*accepted, context),
            Message::Stop(run) => self.on(Event::Stop(run), context),
        });
        // A message may be all there was to this life; the passivation waits until its place is free.
        if self.turns.is_empty() {
            self.idle_soon(context);
        }
    }
}

impl ThreadActor {
    fn take(&mut self, accepted: Accepted, context: &mut Context<Self>) {
        let (run, order, stop) = (accepted.turn.run, accepted.turn.order, accepted.stop);
        if self.turns.contains_key(&run) {
            return;
        }
        let held = Held { accepted: Some(accepted), stop: CancellationToken::new() };
        if stop {
            held.stop.cancel();
        }
        self.turns.insert(run, held);
        self.on(Event::Accepted { turn: run, order }, context);
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

    /// Drives a turn in a child task; one whose stop is cancelled already only has its end written.
    fn start(&mut self, run: Uuid, context: &mut Context<Self>) {
        let Some(held) = self.turns.get(&run) else { return };
        let Some(turn) = held.accepted.as_ref().map(|accepted| accepted.turn.clone()) else { return };
        let ports = self.threads.inner.ports.clone();
        let span = tracing::info_span!("turn", %run, thread = %turn.thread, stream = %turn.stream);
        let child = {
            let _entered = span.enter();
            self.life.children().spawn_here(None, turn::drive(turn, ports, held.stop.clone()))
        };
        context.spawn(
            child.into_actor(self).map(move |exit, actor, context| actor.child_ended(run, exit, context)),
        );
    }

    fn child_ended(&mut self, run: Uuid, exit: ChildExit<Driven>, context: &mut Context<Self>) {
        let reason = match exit {
            ChildExit::Done(done @ (Driven::Ended | Driven::Parked)) => {
                if let Some(held) = self.turns.remove(&run) {
                    if let Some(accepted) = held.accepted {
                        accepted.token.released();
                    }
                    if done == Driven::Parked && held.stop.is_cancelled() {
                        // The stop came while it was parked: the queue ends it.
                        self.threads.inner.ports.run.wakeups.queue();
                    }
                }
                self.on(Event::Ended(run), context);
                return;
            }
            ChildExit::Done(Driven::Lost(error)) => format!("a turn's writes are refused: {error}"),
            ChildExit::Done(Driven::Unreadable(text)) => format!("a turn cannot be read: {text}"),
            ChildExit::Panicked(text) => format!("a turn panicked: {text}"),
            ChildExit::TimedOut | ChildExit::Cut => "a turn was cut off".to_owned(),
        };
        self.life.end(context, ExitReason::Failed(reason));
    }

    fn idle(&mut self, context: &mut Context<Self>) {
        if self.life.drain().is_cancelled() {
            self.life.end(context, ExitReason::Drain);
        } else if !self.life.passivate(context) {
            self.idle_soon(context);
        }
    }

    /// Looks again after the messages that are on their way.
    fn idle_soon(&self, context: &mut Context<Self>) {
        context.spawn(async { tokio::task::yield_now().await }.into_actor(self).map(|(), actor, context| {
            if actor.turns.is_empty() {
                actor.idle(context);
            }
        }));
    }
}
