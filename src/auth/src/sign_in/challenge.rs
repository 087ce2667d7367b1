//! Decides the outcome when a user presents a code or a link.

use chrono::{DateTime, Utc};

use super::TRIES;

/// The state of a challenge.
#[derive(Debug, Clone, Copy)]
pub struct Challenge {
    /// Wrong codes so far.
    pub tries: i32,
    /// The challenge is invalid from this time.
    pub expires_at: DateTime<Utc>,
    /// Whether a user has signed in with it.
    pub used: bool,
    /// Whether the same address requested another one later.
    pub superseded: bool,
}

/// The action to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeVerdict {
    /// Sign the user in and mark the challenge as used.
    Accepted,
    /// Count a try.
    Wrong,
    /// Do nothing: the challenge is used, burnt, replaced or expired.
    Over,
}

impl Challenge {
    /// Whether it can still be used.
    #[must_use]
    pub fn is_open(&self, now: DateTime<Utc>) -> bool {
        !self.used && !self.superseded && self.tries < TRIES && now < self.expires_at
    }

    /// Decides about a presented code, right or wrong. Even the right code does not reopen a closed challenge.
    #[must_use]
    pub fn try_code(&self, now: DateTime<Utc>, right: bool) -> CodeVerdict {
        match (self.is_open(now), right) {
            (false, _) => CodeVerdict::Over,
            (true, true) => CodeVerdict::Accepted,
            (true, false) => CodeVerdict::Wrong,
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use proptest::prelude::*;

    use super::*;
    use crate::sign_in::CHALLENGE_LIFE;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(second)
    }

    fn fresh() -> Challenge {
        Challenge { tries: 0, expires_at: at(0) + CHALLENGE_LIFE, used: false, superseded: false }
    }

    #[test]
    fn a_challenge_is_valid_until_it_expires() {
        assert_eq!(fresh().try_code(at(599), true), CodeVerdict::Accepted);
        assert_eq!(fresh().try_code(at(600), true), CodeVerdict::Over);
        assert_eq!(Challenge { used: true, ..fresh() }.try_code(at(1), true), CodeVerdict::Over);
        assert_eq!(Challenge { superseded: true, ..fresh() }.try_code(at(1), true), CodeVerdict::Over);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// At most one code is accepted, in any order, and none after the fifth wrong one.
        #[test]
        fn at_most_one_code_is_accepted(shown in prop::collection::vec((any::<bool>(), 0_i64..120), 0..20)) {
            let (mut challenge, mut now, mut accepted) = (fresh(), 0, 0);
            for (right, later) in shown {
                now += later;
                let before = challenge.tries;
                match challenge.try_code(at(now), right) {
                    CodeVerdict::Accepted => { challenge.used = true; accepted += 1; prop_assert!(right && before < TRIES && now < 600) }
                    CodeVerdict::Wrong => challenge.tries += 1,
                    CodeVerdict::Over => {}
                }
            }
            prop_assert!(accepted <= 1 && challenge.tries <= TRIES);
        }
    }
}
