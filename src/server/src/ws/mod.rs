//! A websocket's transport: whole messages in, messages out, and how it ends. Who may, and what is said, is the
//! business of `http::ws`.
//!
//! An actor of `actix-web-actors` writes and reads the socket, and freezes as soon as its client stops reading. So the
//! owner of the [`Socket`] does all that has to continue meanwhile.

mod frames;
mod intake;
mod session;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use kernel::Clock;
use tokio::sync::{Semaphore, mpsc, oneshot};

pub(crate) use intake::MessageIntake;
pub(crate) use session::open;

/// Messages that wait to be written; the sender of one more waits.
const OUTBOUND: usize = 16;

/// What the client has said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A whole message, which is UTF-8.
    Text(Bytes),
    /// A message that is no text.
    Binary,
    /// Nothing more can be understood.
    Fault(Fault),
}

/// How a client broke the rules of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A message is larger than may be.
    TooLarge,
    /// The bytes of unfinished messages are too many.
    Overloaded,
    /// A text is no UTF-8.
    NotUtf8,
    /// Anything else.
    Protocol,
}

/// What is said to the client.
#[derive(Debug)]
pub(crate) enum Say {
    /// A message.
    Text(String),
    /// Are you there?
    Ping,
}

/// How a socket is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closing {
    /// The code of the protocol (RFC 6455, 7.4).
    pub(crate) code: u16,
    /// At most 123 bytes.
    pub(crate) reason: &'static str,
}

/// Says that nothing more is read from a connection: its websocket is over. Else the HTTP library would read on for a while, as after a
/// body that it has not read, and clients wait for the end of the connection.
#[derive(Clone, Default)]
pub(crate) struct ReadEnd(Arc<AtomicBool>);

impl ReadEnd {
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// One end of an open websocket. Dropping it closes it as after a defect.
pub(crate) struct Socket {
    heard: mpsc::UnboundedReceiver<Heard>,
    /// One message is taken in at a time.
    place: Arc<Semaphore>,
    say: mpsc::Sender<Say>,
    close: oneshot::Sender<Closing>,
    pulse: Arc<Pulse>,
}

impl Socket {
    /// What the client says next; `None` when it has gone. May be dropped while it waits.
    pub(crate) async fn hear(&mut self) -> Option<Heard> {
        let heard = self.heard.recv().await?;
        if !matches!(heard, Heard::Fault(_)) {
            self.place.add_permits(1);
        }
        Some(heard)
    }

    /// Says something, and waits while too much is unread.
    pub(crate) fn speaker(&self) -> mpsc::Sender<Say> {
        self.say.clone()
    }

    /// How long nothing has come from the client.
    pub(crate) fn silence(&self) -> Duration {
        self.pulse.since()
    }

    /// Closes it behind what was said, once every speaker is dropped.
    pub(crate) fn close(self, closing: Closing) {
        let _ = self.close.send(closing);
    }
}

/// When anything came last.
struct Pulse {
    clock: Arc<dyn Clock>,
    /// Milliseconds of the clock's monotonic time.
    last: AtomicU64,
}

impl Pulse {
    fn new(clock: Arc<dyn Clock>) -> Self {
        let pulse = Self { clock, last: AtomicU64::new(0) };
        pulse.beat();
        pulse
    }

    fn now(&self) -> u64 {
        u64::try_from(self.clock.monotonic().as_millis()).unwrap_or(u64::MAX)
    }

    fn beat(&self) {
        self.last.store(self.now(), Ordering::Relaxed);
    }

    fn since(&self) -> Duration {
        Duration::from_millis(self.now().saturating_sub(self.last.load(Ordering::Relaxed)))
    }
}
