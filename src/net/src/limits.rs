//! How much an answer may cost.

use std::time::Duration;

/// The bounds of one request, redirects and all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// From the start to the answer's head, of each hop: resolving, connecting, sending, waiting.
    pub head: Duration,
    /// From the start to the end of the body; `None` leaves it to the caller.
    pub total: Option<Duration>,
    /// Between two pieces of the body.
    pub idle: Duration,
    /// The least rate of the body on average; `None` for answers that are written while they are sent.
    pub rate: Option<Rate>,
    /// Bytes of the head's names and values.
    pub head_bytes: usize,
    /// Bytes of the body, as they come.
    pub body_bytes: u64,
    /// Redirects that are followed; the operator's face follows none.
    pub redirects: u8,
    /// Follows only redirects that keep origin and method (307 and 308): the secrets of the request stay where they belong.
    pub same_origin: bool,
}

/// A rate that a body must keep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// On average since the head came.
    pub bytes_per_second: u32,
    /// How long it may be slower at first.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(30),
            total: Some(Duration::from_secs(120)),
            idle: Duration::from_secs(30),
            rate: Some(Rate { bytes_per_second: 256, grace: Duration::from_secs(10) }),
            head_bytes: 64 * 1024,
            body_bytes: 8 * 1024 * 1024,
            redirects: 3,
            same_origin: false,
        }
    }
}
