//! Time and size limits for a response.

use std::time::Duration;

/// Limits for one request including its redirects.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Maximum time until the response head, per hop: resolving, connecting, sending, waiting.
    pub head: Duration,
    /// Maximum time from the start to the end of the body; `None` leaves it to the caller.
    pub total: Option<Duration>,
    /// Maximum time between two body chunks.
    pub idle: Duration,
    /// Minimum average rate of the body; `None` for responses that are generated while they are sent.
    pub rate: Option<Rate>,
    /// Maximum bytes of header names and values.
    pub head_bytes: usize,
    /// Maximum body bytes, as received.
    pub body_bytes: u64,
    /// Maximum redirects; the operator client follows none.
    pub redirects: u8,
    /// Follows only redirects that keep origin and method (307 and 308), so the request's secrets stay with their
    /// origin.
    pub same_origin: bool,
}

/// The minimum rate of a body.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Average since the head arrived.
    pub bytes_per_second: u32,
    /// Initial period during which the body may be slower.
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
