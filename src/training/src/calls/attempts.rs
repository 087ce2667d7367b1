//! The requests of one call, until it is answered or given up.

use std::time::Duration;

use kernel::{Clock, Random, backoff};
use models::ModelError;

use super::endpoint::InFlight;
use super::journal::{CallJournal, RecordedCall, Reply};
use super::outgoing::OutgoingCall;
use super::usage::Amount;

/// Maximum requests per call while the endpoint is unreachable or breaks off.
const ATTEMPTS: u32 = 3;
/// The first and the longest backoff between requests.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A call is given up after refusals alone for this long.
const REFUSED_FOR: Duration = Duration::from_secs(600);

/// The requests of one call. If it stays unanswered, even because its case has ended, they are recorded on drop.
pub(super) struct Attempts<'a> {
    journal: &'a CallJournal,
    clock: &'a dyn Clock,
    request: &'a OutgoingCall<'a>,
    begun: Duration,
    sent: u32,
    used: Amount,
    /// Usage of the request in flight if it is given up.
    in_flight: Amount,
    is_answered: bool,
    /// Whether the request in flight is stored as long-running.
    is_long: bool,
    /// The start of the current refusals, and the endpoint's answer count at that time.
    refused: Option<(Duration, u64)>,
    /// Failures other than refusals.
    failures: u32,
}

impl<'a> Attempts<'a> {
    pub(super) fn new(journal: &'a CallJournal, clock: &'a dyn Clock, request: &'a OutgoingCall<'a>) -> Self {
        Self {
            journal,
            clock,
            request,
            begun: clock.monotonic(),
            sent: 0,
            used: Amount::default(),
            in_flight: Amount::default(),
            is_answered: false,
            is_long: false,
            refused: None,
            failures: 0,
        }
    }

    /// Usage of all requests so far.
    pub(super) const fn used(&self) -> &Amount {
        &self.used
    }

    /// Whether a request was sent before.
    pub(super) const fn is_repeated(&self) -> bool {
        self.sent > 0
    }

    /// Whether the last request is stored as long-running.
    pub(super) const fn is_long(&self) -> bool {
        self.is_long
    }

    /// Counts a request that is sent now.
    pub(super) fn begin(&mut self) {
        if self.sent == 0 {
            self.begun = self.clock.monotonic();
        }
        self.sent = self.sent.saturating_add(1);
        self.in_flight = self.request.input;
    }

    /// Stores that the request is in flight for long.
    pub(super) fn set_long(&mut self) {
        self.is_long = true;
        self.journal.long_in_flight();
    }

    /// Counts the answer, and returns the call to record.
    pub(super) fn answered(&mut self, reply: Reply, used: &Amount, estimated: bool) -> RecordedCall {
        self.used = self.used.plus(used);
        self.is_answered = true;
        let duration = self.clock.monotonic().saturating_sub(self.begun);
        self.request.recorded(reply, self.used, estimated, self.sent, duration)
    }

    /// Counts a request without an answer.
    pub(super) fn failed(&mut self) {
        self.used = self.used.plus(&Amount { calls: 1, ..Amount::default() });
        self.in_flight = Amount::default();
        if std::mem::take(&mut self.is_long) {
            self.journal.landed();
        }
    }

    /// Slows the endpoint down after a refusal; returns whether it has refused for too long.
    pub(super) fn record_refusal(
        &mut self,
        in_flight: &InFlight,
        error: &ModelError,
        random: &dyn Random,
    ) -> bool {
        let now = self.clock.monotonic();
        in_flight.refused(now, error.retry_after, random);
        let answers = in_flight.answers();
        // Restarts if the endpoint answered other calls meanwhile.
        self.refused = self.refused.filter(|(_, before)| *before == answers);
        let (since, _) = *self.refused.get_or_insert((now, answers));
        now.saturating_sub(since) >= REFUSED_FOR
    }

    /// Counts a failure other than a refusal; returns whether the call is given up.
    pub(super) fn record_failure(&mut self, error: &ModelError) -> bool {
        self.failures = self.failures.saturating_add(1);
        !error.kind.is_retryable() || self.failures >= ATTEMPTS
    }

    /// The backoff before the next request.
    pub(super) fn pause(&self) -> Duration {
        backoff(PAUSE, self.failures, LONGEST_PAUSE)
    }
}

impl Drop for Attempts<'_> {
    fn drop(&mut self) {
        if self.is_answered || self.sent == 0 {
            return;
        }
        let duration = self.clock.monotonic().saturating_sub(self.begun);
        let used = self.used.plus(&self.in_flight);
        let estimated = self.in_flight != Amount::default();
        let call = self.request.unanswered(used, estimated, self.sent, duration);
        self.journal.record_unanswered(&call, self.is_long);
    }
}
