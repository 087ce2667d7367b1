//! WebSocket transport: whole messages in, messages out, and closing. `http::ws` handles authentication and message
//! contents.
//!
//! An `actix-web-actors` actor reads and writes the socket, and it freezes when its client stops reading. So the owner
//! of the [`Socket`] does all work that must continue meanwhile.

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

/// Maximum unwritten messages; senders of more wait.
const OUTBOUND: usize = 16;

/// An input from the client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A whole text message, valid UTF-8.
    Text(Bytes),
    /// A binary message.
    Binary,
    /// A fault, after which nothing is read.
    Fault(SocketFault),
}

/// The reason why a socket stops reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SocketFault {
    /// A message exceeds the limit.
    TooLarge,
    /// Unfinished messages exceed the memory budget.
    Overloaded,
    /// A text message is not UTF-8.
    NotUtf8,
    /// A violation of the protocol.
    Protocol,
}

/// An output to the client.
#[derive(Debug)]
pub(crate) enum Say {
    /// A message.
    Text(String),
    /// A ping.
    Ping,
}

/// The close frame of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closing {
    /// The protocol's close code (RFC 6455, 7.4).
    pub(crate) code: u16,
    /// At most 123 bytes.
    pub(crate) reason: &'static str,
}

/// Signals that nothing more is read from a connection, since its WebSocket has ended. Otherwise the HTTP library would
/// keep reading for a while, as after an unread body, and clients would wait for the connection to end.
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

/// The service's end of an open WebSocket. Dropping it closes the WebSocket with an internal error.
pub(crate) struct Socket {
    heard: mpsc::UnboundedReceiver<Heard>,
    /// Permits one incoming message at a time.
    place: Arc<Semaphore>,
    say: mpsc::Sender<Say>,
    close: oneshot::Sender<Closing>,
    last_received: Arc<LastReceived>,
}

impl Socket {
    /// Returns the next input; `None` after the client has left. Cancel-safe.
    pub(crate) async fn hear(&mut self) -> Option<Heard> {
        let heard = self.heard.recv().await?;
        if !matches!(heard, Heard::Fault(_)) {
            self.place.add_permits(1);
        }
        Some(heard)
    }

    /// Returns a sender for messages, which waits while too many are unread.
    pub(crate) fn speaker(&self) -> mpsc::Sender<Say> {
        self.say.clone()
    }

    /// The time since the last incoming data.
    pub(crate) fn silence(&self) -> Duration {
        self.last_received.since()
    }

    /// Closes the socket after all sent messages, once every sender is dropped.
    pub(crate) fn close(self, closing: Closing) {
        let _ = self.close.send(closing);
    }
}

/// The time of the last incoming data.
struct LastReceived {
    clock: Arc<dyn Clock>,
    /// Milliseconds of monotonic time.
    last: AtomicU64,
}

impl LastReceived {
    fn new(clock: Arc<dyn Clock>) -> Self {
        let last_received = Self { clock, last: AtomicU64::new(0) };
        last_received.record();
        last_received
    }

    fn now(&self) -> u64 {
        u64::try_from(self.clock.monotonic().as_millis()).unwrap_or(u64::MAX)
    }

    fn record(&self) {
        self.last.store(self.now(), Ordering::Relaxed);
    }

    fn since(&self) -> Duration {
        Duration::from_millis(self.now().saturating_sub(self.last.load(Ordering::Relaxed)))
    }
}
