//! Limits for a chat's models, and the accounts they apply to. Pure.

use chrono::{DateTime, NaiveTime, Utc};
use engine::ports::Spending;
use uuid::Uuid;
use wire::{ChatLimits, ErrorCode};

/// The account: a workflow's chat, or one of its sessions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct AccountKey {
    pub(super) workflow: Uuid,
    /// `None`: the whole chat.
    pub(super) session: Option<String>,
}

/// A limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BudgetLimit {
    of_session: bool,
    most: Most,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Most {
    Tokens(u64),
    Dollars(f64),
}

impl BudgetLimit {
    pub(super) fn all(limits: &ChatLimits) -> Vec<Self> {
        let ChatLimits { session_tokens_per_day, session_usd_per_day, tokens_per_day, usd_per_day } = *limits;
        let tokens =
            |of_session, most: Option<u64>| most.map(|most| Self { of_session, most: Most::Tokens(most) });
        let dollars =
            |of_session, most: Option<f64>| most.map(|most| Self { of_session, most: Most::Dollars(most) });
        let all = [
            tokens(true, session_tokens_per_day),
            dollars(true, session_usd_per_day),
            tokens(false, tokens_per_day),
            dollars(false, usd_per_day),
        ];
        all.into_iter().flatten().collect()
    }

    /// The account that this limit applies to, for a caller in this session.
    pub(super) fn key(&self, workflow: Uuid, session: &str) -> AccountKey {
        AccountKey { workflow, session: self.of_session.then(|| session.to_owned()) }
    }

    pub(super) fn code(&self) -> ErrorCode {
        if self.of_session { ErrorCode::ChatBudgetSession } else { ErrorCode::ChatBudgetWorkflow }
    }

    pub(super) fn is_reached(&self, sum: &Spending) -> bool {
        match self.most {
            Most::Tokens(most) => sum.tokens() >= most,
            Most::Dollars(most) => sum.dollars >= most,
        }
    }

    /// Whether a call exceeds the limit. `sum`: used and reserved, including this call. Calls to a model without a
    /// price cost nothing.
    pub(super) fn is_exceeded(&self, sum: &Spending, call: &Spending) -> bool {
        match self.most {
            Most::Tokens(most) => sum.tokens() > most,
            Most::Dollars(most) => call.dollars > 0.0 && sum.dollars > most,
        }
    }
}

/// The end of the UTC day.
pub(super) fn next_day(now: DateTime<Utc>) -> DateTime<Utc> {
    let tomorrow = now.date_naive().succ_opt().unwrap_or(chrono::NaiveDate::MAX);
    tomorrow.and_time(NaiveTime::MIN).and_utc()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_ends_at_midnight() {
        let now = DateTime::parse_from_rfc3339("2026-12-31T23:59:59Z").unwrap().to_utc();
        assert_eq!(next_day(now).to_rfc3339(), "2027-01-01T00:00:00+00:00");
    }
}
