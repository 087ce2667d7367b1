//! An actor that follows instructions and records its life.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use actix::{Actor, ActorFutureExt, AsyncContext, Context, Handler, WrapFuture};
use actors::runtime::{
    ActorKind, ArbiterPool, Blueprint, ChildExit, Envelope, ExitReason, Guardian, Handle, Health, Life,
    RestartPolicy, Supervised,
};
use async_trait::async_trait;
use futures_util::future::BoxFuture;
use kernel::{Clock, SeededRandom, SystemClock};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The messages to a probe.
pub(crate) enum Say {
    /// Record this note.
    Note(usize),
    /// Panic in the handler.
    Panic,
    /// End this life with a failure.
    Fail,
    /// Handle no further message.
    Stall,
    /// Run this in a child task.
    Child(Option<Duration>, BoxFuture<'static, ()>),
}

/// The start of a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Birth {
    /// Normal.
    Sound,
    /// The build fails.
    Err,
    /// The build panics.
    Panic,
    /// It ends in `started`.
    DiesAtOnce,
    /// It waits forever in `started`.
    Deaf,
    /// It does not end when the service drains.
    Stubborn,
}

/// The record of a probe's lives.
#[derive(Default)]
pub(crate) struct Record {
    /// Number of lives started.
    pub(crate) lives: AtomicUsize,
    /// Number of lives ended.
    pub(crate) deaths: AtomicUsize,
    /// Lives and the notes that they handled.
    pub(crate) heard: Mutex<Vec<(usize, usize)>>,
    /// Results of child tasks.
    pub(crate) children: Mutex<Vec<ChildExit<()>>>,
    /// Reasons why it was given up.
    pub(crate) given_up: Mutex<Vec<ExitReason>>,
    /// Reasons why it ended for good.
    pub(crate) ended: Mutex<Vec<ExitReason>>,
    /// Whether `stopped` panics.
    pub(crate) panics_when_stopped: AtomicBool,
    /// Whether it passivates after every message.
    pub(crate) passivates: AtomicBool,
    /// Set by an event that a test expects before a life is built.
    pub(crate) flag: Arc<AtomicBool>,
    /// The flag's value at each build.
    pub(crate) flags: Mutex<Vec<bool>>,
}

impl Record {
    pub(crate) fn deaths(&self) -> usize {
        self.deaths.load(Ordering::SeqCst)
    }

    pub(crate) fn lives(&self) -> usize {
        self.lives.load(Ordering::SeqCst)
    }

    /// The notes, in whichever life they were handled.
    pub(crate) fn notes(&self) -> Vec<usize> {
        self.heard.lock().iter().map(|(_, note)| *note).collect()
    }
}

type Births = Box<dyn Fn(usize) -> Birth + Send>;

pub(crate) struct Probe {
    pub(crate) record: Arc<Record>,
    /// The start of life `n`, counted from 1.
    pub(crate) births: Births,
    /// The first life is built after this is notified.
    pub(crate) gate: Option<Arc<Notify>>,
    /// Number of lives of this actor.
    lives: AtomicUsize,
}

impl Probe {
    pub(crate) fn sound(record: &Arc<Record>) -> Self {
        Self::born(record, |_| Birth::Sound)
    }

    pub(crate) fn born(record: &Arc<Record>, births: impl Fn(usize) -> Birth + Send + 'static) -> Self {
        Self { record: Arc::clone(record), births: Box::new(births), gate: None, lives: AtomicUsize::new(0) }
    }

    /// A normal probe that is built only after `gate` is notified.
    pub(crate) fn gated(record: &Arc<Record>, gate: &Arc<Notify>) -> Self {
        Self { gate: Some(Arc::clone(gate)), ..Self::sound(record) }
    }
}

pub(crate) struct ProbeActor {
    life: Life<Say>,
    number: usize,
    birth: Birth,
    record: Arc<Record>,
}

#[async_trait(?Send)]
impl Blueprint for Probe {
    type Actor = ProbeActor;

    async fn build(&self, life: Life<Say>, restart: bool) -> Result<ProbeActor, String> {
        let number = self.lives.fetch_add(1, Ordering::SeqCst) + 1;
        self.record.lives.fetch_add(1, Ordering::SeqCst);
        assert_eq!(restart, number > 1);
        self.record.flags.lock().push(self.record.flag.load(Ordering::SeqCst));
        if let Some(gate) = self.gate.as_ref().filter(|_| number == 1) {
            gate.notified().await;
        }
        let birth = (self.births)(number);
        match birth {
            Birth::Err => Err("not now".to_owned()),
            Birth::Panic => panic!("planned: the factory"),
            birth => Ok(ProbeActor { life, number, birth, record: Arc::clone(&self.record) }),
        }
    }

    async fn give_up(&self, last: &ExitReason) {
        self.record.given_up.lock().push(last.clone());
    }

    fn ended(&self, _handle: &Handle<Say>, reason: &ExitReason) {
        self.record.ended.lock().push(reason.clone());
    }
}

impl Supervised for ProbeActor {
    type Message = Say;
}

impl Actor for ProbeActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        match self.birth {
            Birth::DiesAtOnce => self.life.end(context, ExitReason::Failed("at once".to_owned())),
            Birth::Deaf => context.wait(std::future::pending::<()>().into_actor(self)),
            _ => {}
        }
        if self.birth != Birth::Stubborn {
            let drain = self.life.drain().clone();
            let drained = async move { drain.cancelled().await };
            context.spawn(drained.into_actor(self).map(|(), actor, context| {
                actor.life.end(context, ExitReason::Drain);
            }));
        }
    }

    fn stopped(&mut self, _context: &mut Self::Context) {
        self.record.deaths.fetch_add(1, Ordering::SeqCst);
        if self.record.panics_when_stopped.swap(false, Ordering::SeqCst) {
            panic!("planned: stopped()");
        }
    }
}

impl Handler<Envelope<Say>> for ProbeActor {
    type Result = ();

    fn handle(&mut self, envelope: Envelope<Say>, context: &mut Self::Context) {
        envelope.open(|say| match say {
            Say::Note(note) => self.record.heard.lock().push((self.number, note)),
            Say::Panic => panic!("planned: a handler"),
            Say::Fail => self.life.end(context, ExitReason::Failed("told to".to_owned())),
            Say::Stall => context.wait(std::future::pending::<()>().into_actor(self)),
            Say::Child(limit, work) => {
                let child = self.life.children().spawn(limit, work);
                context.spawn(child.into_actor(self).map(|exit, actor, _| {
                    actor.record.children.lock().push(exit);
                }));
            }
        });
        if self.record.passivates.load(Ordering::SeqCst) {
            self.life.passivate(context);
        }
    }
}

/// A guardian over two threads.
pub(crate) fn guardian(clock: &Arc<dyn Clock>, health: &Health) -> Guardian {
    let children = tokio::runtime::Handle::current();
    let random = Arc::new(SeededRandom::new(1));
    Guardian::new(ArbiterPool::start(2), children, Arc::clone(clock), random, health.clone())
}

/// A guardian on the system clock.
pub(crate) fn plain_guardian() -> Guardian {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    guardian(&clock, &Health::default())
}

/// The thread policy with pauses of one millisecond.
pub(crate) fn quick() -> RestartPolicy {
    let pause = Duration::from_millis(1);
    RestartPolicy { backoff: pause, backoff_max: pause, ..ActorKind::Thread.policy() }
}
