//! What a simulated server has received.

/// Requests of one role.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallCount {
    /// Requests, those with a fault included.
    pub received: u64,
    /// Requests whose response was whole.
    pub answered: u64,
    /// Tokens of the messages of answered requests.
    pub input_tokens: u64,
    /// Tokens of the answers.
    pub output_tokens: u64,
}

/// Counts of a server since its start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests to task models.
    pub task: CallCount,
    /// Requests to reflectors.
    pub reflect: CallCount,
    /// Requests to judges.
    pub judge: CallCount,
    /// Requests that no model answers: another model name, or a body without messages.
    pub refused: u64,
    /// Responses with status 429.
    pub rate_limited: u64,
    /// Responses with status 500.
    pub failed: u64,
    /// Responses that ended in the middle.
    pub cut: u64,
    /// Responses that were delayed.
    pub slow: u64,
    /// Requests to a reflector that contain a canary of a val or test case, with the name of the world: must stay empty.
    pub canaries: Vec<String>,
    /// Requests to task models whose prompt has lost its placeholder.
    pub without_placeholder: u64,
}

impl Tally {
    /// All requests to models.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.task.received + self.reflect.received + self.judge.received
    }
}
