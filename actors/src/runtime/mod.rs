//! Features that `actix::Supervisor` lacks: restarts after a panic, from fresh state, with backoff and a limit; a
//! strict mailbox bound; messages that survive their sender.

mod arbiters;
mod children;
mod envelope;
mod exit;
mod guardian;
mod handle;
mod health;
mod policy;

pub use arbiters::ArbiterPool;
pub use children::{ChildExit, Children};
pub use envelope::Envelope;
pub use exit::ExitReason;
pub(crate) use exit::panic_text;
pub use guardian::{Blueprint, Guardian, Life, Supervised};
pub use handle::{Handle, Place, TellError};
pub use health::Health;
pub use policy::{ActorKind, Exhausted, RestartPolicy};
