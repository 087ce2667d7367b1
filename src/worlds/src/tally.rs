//! Request counts in a simulated server.

/// Requests in one role.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallCount {
    /// Requests, including those with a fault.
    pub received: u64,
    /// Requests with a complete response.
    pub answered: u64,
    /// Message tokens in answered requests.
    pub input_tokens: u64,
    /// Answer tokens.
    pub output_tokens: u64,
}

/// Server counts since its start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests to task models.
    pub task: CallCount,
    /// Requests to reflectors.
    pub reflect: CallCount,
    /// Requests to judges.
    pub judge: CallCount,
    /// Requests that no model answers: an unknown model name, or a body without messages.
    pub refused: u64,
    /// Responses with status 429.
    pub rate_limited: u64,
    /// Responses with status 500.
    pub failed: u64,
    /// Responses that broke off in the middle.
    pub cut: u64,
    /// Delayed responses.
    pub slow: u64,
    /// World names for reflector requests that contain a val or test canary: must stay empty.
    pub canaries: Vec<String>,
    /// Requests to task models whose prompt lost its placeholder.
    pub without_placeholder: u64,
}

impl Tally {
    /// All requests to models.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.task.received + self.reflect.received + self.judge.received
    }
}
