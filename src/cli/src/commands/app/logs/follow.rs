//! Follows an app's runs: finds runs that started or changed state since the last poll.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use chrono::{DateTime, FixedOffset, TimeDelta};
use client::{AppRunsFilter, Part};
use kernel::{Clock, SystemClock, backoff};
use wire::{AppRunRecord, AppRunState, Listed};

use crate::options::ServiceSession;
use crate::output::{CommandError, complain};

/// Time between polls.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Size of a poll's first page; a poll usually finds few new runs.
const FIRST_PAGE: u32 = 20;
const PAGE: u32 = 200;
/// Maximum delay until a run becomes visible after a newer run.
const OVERLAP: TimeDelta = TimeDelta::seconds(10);
/// Backoff between attempts while the service does not respond.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// An app's runs that were printed or skipped.
pub(super) struct Follower<'a> {
    session: &'a ServiceSession,
    app: &'a str,
    filter: AppRunsFilter,
    /// Runs since `since`, and earlier unfinished runs.
    known: HashMap<String, RunSnapshot>,
    /// Runs before this time are not new; `None` if there was no run.
    since: Option<DateTime<FixedOffset>>,
    failures: u32,
}

/// A run's last seen state.
struct RunSnapshot {
    state: AppRunState,
    at: DateTime<FixedOffset>,
}

impl<'a> Follower<'a> {
    /// Skips the existing runs.
    pub(super) async fn start(
        session: &'a ServiceSession,
        app: &'a str,
        filter: AppRunsFilter,
    ) -> Result<Self, CommandError> {
        let mut follower = Self { session, app, filter, known: HashMap::new(), since: None, failures: 0 };
        let newest = Part { limit: Some(1), cursor: None };
        // A service that cannot be reached at the start is probably the wrong one, so this is an error.
        let newest = session.client.app_runs(app, &AppRunsFilter::default(), &newest).await;
        let newest = session.received(newest)?.data.into_iter().next();
        follower.since = newest.as_ref().and_then(begun).map(|at| at - OVERLAP);
        if follower.since.is_some() {
            for run in follower.unfinished().await? {
                follower.note(&run);
            }
            follower.changed().await?;
        }
        Ok(follower)
    }

    /// Waits until the next poll.
    pub(super) async fn wait(&self) {
        SystemClock::new().sleep(POLL_INTERVAL).await;
    }

    /// Remembers a run. Returns whether it is new or has another state.
    pub(super) fn note(&mut self, run: &AppRunRecord) -> bool {
        let Some(at) = begun(run) else { return false };
        let before = self.known.insert(run.id.clone(), RunSnapshot { state: run.state, at });
        before.is_none_or(|before| before.state != run.state)
    }

    /// Matching runs that are new or changed state, oldest first.
    pub(super) async fn changed(&mut self) -> Result<Vec<AppRunRecord>, CommandError> {
        let mut moved = self.moved().await?;
        let mut found = Vec::new();
        let mut part = Part { limit: Some(FIRST_PAGE), cursor: None };
        loop {
            let page = self.page(&AppRunsFilter::default(), &part).await?;
            let mut is_past = false;
            for run in page.data {
                let is_new = begun(&run).is_some_and(|at| self.since.is_none_or(|since| at >= since));
                is_past |= !is_new;
                if moved.remove(&run.id) || is_new {
                    found.push(run);
                }
            }
            part = Part { limit: Some(PAGE), cursor: page.next_cursor };
            if part.cursor.is_none() || (is_past && moved.is_empty()) {
                break;
            }
        }
        // Deleted runs.
        self.known.retain(|id, _| !moved.contains(id));
        found.reverse();
        let newest = found.last().and_then(begun).map(|at| at - OVERLAP);
        found.retain(|run| self.note(run) && self.matches(run));
        self.since = newest.max(self.since);
        self.known
            .retain(|_, known| !known.state.is_final() || self.since.is_none_or(|since| known.at >= since));
        Ok(found)
    }

    /// Known unfinished runs whose state has changed.
    async fn moved(&mut self) -> Result<HashSet<String>, CommandError> {
        let open = self.known.iter().filter(|(_, known)| !known.state.is_final());
        let mut open: HashSet<String> = open.map(|(id, _)| id.clone()).collect();
        if !open.is_empty() {
            for run in self.unfinished().await? {
                let is_same = self.known.get(&run.id).is_none_or(|known| known.state == run.state);
                if is_same {
                    open.remove(&run.id);
                }
            }
        }
        Ok(open)
    }

    async fn unfinished(&mut self) -> Result<Vec<AppRunRecord>, CommandError> {
        let states = vec![AppRunState::Queued, AppRunState::Running];
        let filter = AppRunsFilter { states, binding: None };
        let (mut runs, mut part) = (Vec::new(), Part { limit: Some(PAGE), cursor: None });
        loop {
            let page = self.page(&filter, &part).await?;
            runs.extend(page.data);
            part.cursor = page.next_cursor;
            if part.cursor.is_none() {
                return Ok(runs);
            }
        }
    }

    /// Reads a page; retries until the service responds.
    async fn page(
        &mut self,
        filter: &AppRunsFilter,
        part: &Part,
    ) -> Result<Listed<AppRunRecord>, CommandError> {
        loop {
            let error = match self.session.client.app_runs(self.app, filter, part).await {
                Ok(page) => {
                    if std::mem::take(&mut self.failures) > 0 {
                        complain("Connected again.");
                    }
                    return Ok(page);
                }
                Err(error) if error.is_passing() => error,
                Err(error) => return Err(self.session.failed(error)),
            };
            if self.failures == 0 {
                complain(format_args!("{error}; trying again …"));
            }
            self.failures = self.failures.saturating_add(1);
            let pause = backoff(FIRST_PAUSE, self.failures, LONGEST_PAUSE);
            SystemClock::new().sleep(pause.max(error.retry_after().unwrap_or_default())).await;
        }
    }

    fn matches(&self, run: &AppRunRecord) -> bool {
        let AppRunsFilter { states, binding } = &self.filter;
        (states.is_empty() || states.contains(&run.state))
            && binding.as_ref().is_none_or(|binding| *binding == run.binding)
    }
}

/// The time at which a run was accepted.
fn begun(run: &AppRunRecord) -> Option<DateTime<FixedOffset>> {
    DateTime::parse_from_rfc3339(&run.created_at).ok()
}
