//! One task per actor: builds it from its blueprint, watches it, and restarts it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use actix::fut::{ActorFutureExt, wrap_future};
use actix::{Actor, ActorContext, AsyncContext, Context, Handler};
use async_trait::async_trait;
use futures_util::{FutureExt, Stream};
use kernel::{Clock, Random, jittered};
use tokio::runtime::Handle as Runtime;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::exit::panic_text;
use super::policy::{ActorKind, Exhausted, RestartPolicy};
use super::{ArbiterPool, Children, Envelope, ExitReason, Handle, Health};

/// An actor that a guardian can supervise.
pub trait Supervised: Actor<Context = Context<Self>> + Handler<Envelope<Self::Message>> {
    /// The messages it handles.
    type Message: Send + 'static;
}

/// Builds an actor for each of its lives.
#[async_trait(?Send)]
pub trait Blueprint: Send + 'static {
    /// The actor.
    type Actor: Supervised;

    /// Builds the actor from database state. `restart` is false in its first life.
    ///
    /// # Errors
    /// A text for the log; counts as a failed life.
    async fn build(&self, life: Life<ActorMessage<Self>>, restart: bool) -> Result<Self::Actor, String>;

    /// Called when all restarts are used up: ends the actor's entity and notifies its clients.
    async fn give_up(&self, last: &ExitReason);

    /// Called when the actor has ended for good.
    fn ended(&self, handle: &Handle<ActorMessage<Self>>, reason: &ExitReason);
}

/// The messages that a blueprint's actor handles.
pub(super) type ActorMessage<B> = <<B as Blueprint>::Actor as Supervised>::Message;

/// An actor's access to its guardian during one life.
pub struct Life<M> {
    reason: Rc<RefCell<Option<ExitReason>>>,
    handle: Handle<M>,
    children: Children,
    drain: CancellationToken,
}

impl<M> Life<M> {
    /// Ends this life with a reason.
    pub fn end<A: Actor<Context = Context<A>>>(&self, context: &mut Context<A>, reason: ExitReason) {
        *self.reason.borrow_mut() = Some(reason);
        context.stop();
    }

    /// Ends this life because it is idle, unless a message is on its way. Returns whether it ends.
    pub fn passivate<A: Actor<Context = Context<A>>>(&self, context: &mut Context<A>) -> bool {
        let idle = self.handle.retire();
        if idle {
            self.end(context, ExitReason::Passivated);
        }
        idle
    }

    /// Starts child tasks, which run foreign code.
    #[must_use]
    pub fn children(&self) -> &Children {
        &self.children
    }

    /// Calls `then` when the service shuts down.
    pub fn on_drain<A: Actor<Context = Context<A>>>(
        &self,
        context: &mut Context<A>,
        then: impl FnOnce(&mut A, &mut Context<A>) + 'static,
    ) {
        let drain = self.drain.clone();
        let drained = wrap_future::<_, A>(async move { drain.cancelled().await });
        context.spawn(drained.map(move |(), actor, context| then(actor, context)));
    }

    /// Cancelled when the service shuts down.
    #[must_use]
    pub fn drain(&self) -> &CancellationToken {
        &self.drain
    }
}

/// Starts supervised actors.
#[derive(Clone)]
pub struct Guardian {
    inner: Arc<GuardianInner>,
}

struct GuardianInner {
    arbiters: ArbiterPool,
    children: Runtime,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    health: Health,
    drain: CancellationToken,
    actors: TaskTracker,
}

impl Guardian {
    /// Creates a guardian over these threads; child tasks run on `children`.
    #[must_use]
    pub fn new(
        arbiters: ArbiterPool,
        children: Runtime,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        health: Health,
    ) -> Self {
        let (drain, actors) = (CancellationToken::new(), TaskTracker::new());
        Self { inner: Arc::new(GuardianInner { arbiters, children, clock, random, health, drain, actors }) }
    }

    /// Starts an actor under its kind's policy.
    pub fn supervise<B: Blueprint>(&self, kind: ActorKind, blueprint: B) -> Handle<ActorMessage<B>> {
        self.supervise_with(kind, kind.policy(), blueprint)
    }

    /// Starts an actor under a separate policy.
    pub fn supervise_with<B: Blueprint>(
        &self,
        kind: ActorKind,
        policy: RestartPolicy,
        blueprint: B,
    ) -> Handle<ActorMessage<B>> {
        let (handle, receiver) = Handle::new(policy.mailbox);
        let (inner, own) = (Arc::clone(&self.inner), handle.clone());
        let token = self.inner.actors.token();
        self.inner.arbiters.spawn(move || async move {
            let mailbox = Rc::new(RefCell::new(receiver));
            Watch { inner, kind, policy, blueprint, handle: own, mailbox }.run().await;
            drop(token);
        });
        handle
    }

    /// Asks all actors to end and waits for them, at most `limit`; returns whether all have ended.
    pub async fn drain(&self, limit: Duration) -> bool {
        self.inner.drain.cancel();
        self.inner.actors.close();
        kernel::timeout(&*self.inner.clock, limit, self.inner.actors.wait()).await.is_some()
    }

    /// Cancelled when the service shuts down.
    #[must_use]
    pub fn draining(&self) -> &CancellationToken {
        &self.inner.drain
    }

    /// Number of live actors.
    #[must_use]
    pub fn alive(&self) -> usize {
        self.inner.actors.len()
    }

    /// Stops the arbiters, which ends everything left on them.
    pub fn stop(&self) {
        self.inner.arbiters.stop();
    }
}

/// The guardian task of one actor.
struct Watch<B: Blueprint> {
    inner: Arc<GuardianInner>,
    kind: ActorKind,
    policy: RestartPolicy,
    blueprint: B,
    handle: Handle<ActorMessage<B>>,
    mailbox: Mailbox<ActorMessage<B>>,
}

type Mailbox<M> = Rc<RefCell<UnboundedReceiver<Envelope<M>>>>;

impl<B: Blueprint> Watch<B> {
    async fn run(self) {
        let mut restarts: VecDeque<Duration> = VecDeque::new();
        let mut restart = false;
        let reason = loop {
            let reason = self.live(restart).await;
            if !reason.restarts() || self.inner.drain.is_cancelled() {
                break reason;
            }
            tracing::warn!(actor = self.kind.name(), ?reason, restarts = restarts.len(), "actor failed");
            let now = self.inner.clock.monotonic();
            restarts.retain(|at| now.saturating_sub(*at) < self.policy.window);
            if restarts.len() >= self.policy.restarts {
                self.exhausted(&reason).await;
                break reason;
            }
            let pause = jittered(self.policy.pause(restarts.len()), &*self.inner.random);
            restarts.push_back(now);
            restart = true;
            tokio::select! {
                () = self.inner.clock.sleep(pause) => {}
                () = self.inner.drain.cancelled() => break reason,
            }
        };
        self.handle.close();
        self.blueprint.ended(&self.handle, &reason);
    }

    async fn exhausted(&self, reason: &ExitReason) {
        match self.policy.exhausted {
            Exhausted::FailEntity => {
                kernel::warn_once_a_minute!(self.kind.name(), ?reason, "actor restart limit reached");
                let giving_up = AssertUnwindSafe(self.blueprint.give_up(reason)).catch_unwind();
                if giving_up.await.is_err() {
                    kernel::warn_once_a_minute!(
                        "actor.not_ended",
                        actor = self.kind.name(),
                        "actor cleanup panicked"
                    );
                }
            }
            Exhausted::Escalate => {
                tracing::error!(actor = self.kind.name(), ?reason, "actor restart limit reached");
                self.inner.health.escalate(&format!("the {} actor failed: {reason:?}", self.kind.name()));
            }
        }
    }

    /// Runs one life, from the build to the end of its children.
    async fn live(&self, restart: bool) -> ExitReason {
        let reason = Rc::new(RefCell::new(None));
        let children = Children::new(self.inner.children.clone(), Arc::clone(&self.inner.clock));
        let _cut = children.cut_on_drop();
        let life = Life {
            reason: Rc::clone(&reason),
            handle: self.handle.clone(),
            children: children.clone(),
            drain: self.inner.drain.clone(),
        };
        let built = AssertUnwindSafe(self.blueprint.build(life, restart)).catch_unwind().await;
        let ended = match built {
            Ok(Ok(actor)) => self.run_actor(actor).await,
            Ok(Err(text)) => Some(ExitReason::Failed(text)),
            Err(payload) => Some(ExitReason::Panicked(panic_text(&*payload))),
        };
        // The next life reads the database, so nothing in this one may write any more.
        children.end().await;
        let named = reason.borrow_mut().take();
        ended.or(named).unwrap_or_else(|| ExitReason::Failed("the actor stopped without a reason".to_owned()))
    }

    /// Runs an actor to its end; `None` when the actor set the reason itself.
    async fn run_actor(&self, actor: B::Actor) -> Option<ExitReason> {
        let mut context = Context::new();
        context.add_message_stream(Letters(Rc::clone(&self.mailbox)));
        // Dropping a panicked actor may panic again, so that is caught too.
        let mut running = Box::pin(context.into_future(actor));
        let ended = tokio::select! {
            ended = AssertUnwindSafe(&mut running).catch_unwind() => {
                ended.err().map(|payload| ExitReason::Panicked(panic_text(&*payload)))
            }
            () = self.stuck() => Some(ExitReason::Stuck),
        };
        let dropped = std::panic::catch_unwind(AssertUnwindSafe(move || drop(running)));
        match (ended, dropped) {
            (None, Err(payload)) => Some(ExitReason::Panicked(panic_text(&*payload))),
            (ended, _) => ended,
        }
    }

    /// Ends when messages have waited for the policy's time and none was handled.
    async fn stuck(&self) {
        let mut before = self.handle.progress();
        loop {
            self.inner.clock.sleep(self.policy.stuck_after).await;
            let now = self.handle.progress();
            let ((waited, taken_then), (waiting, taken)) = (before, now);
            if waited > 0 && waiting > 0 && taken == taken_then {
                return;
            }
            before = now;
        }
    }
}

/// The mailbox as a stream; remaining messages pass to the next life.
struct Letters<M>(Mailbox<M>);

impl<M> Stream for Letters<M> {
    type Item = Envelope<M>;

    fn poll_next(self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<Option<Self::Item>> {
        self.0.borrow_mut().poll_recv(context)
    }
}
