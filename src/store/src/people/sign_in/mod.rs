//! Sign-in: challenges, sessions, and the mail queue.
//!
//! Each step is one transaction. Code and token rows are locked while they are used, so only one of several
//! requests with the same one succeeds.

mod challenges;
mod identities;
mod mail;
mod oidc;
mod refresh;
mod sessions;
mod users;

pub use challenges::{LinkUse, NewSignIn, Proven, ShownCode};
pub use identities::NewIdentity;
pub use mail::{NewMail, OutgoingMail};
pub use oidc::{NewOidcSignIn, OidcReturn};
pub use refresh::{Refreshed, Revoked};
pub use sessions::{BrowserSession, NewSession, OpenedSession, StoredSession};
pub use users::{Membership, StoredUser};

use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;

use crate::schema::{oidc_sign_ins, sign_in_challenges, sign_in_sessions};
use crate::{Store, StoreError};

/// Retention of challenges: longer than any limit's window.
const CHALLENGES_KEPT: TimeDelta = TimeDelta::hours(24);
/// Retention of used challenges: for this time their browser has separate mail limits.
const USED_CHALLENGES_KEPT: TimeDelta = TimeDelta::days(30);
/// Retention of ended sessions.
const SESSIONS_KEPT: TimeDelta = TimeDelta::days(7);

impl Store {
    /// Deletes old challenges, provider sign-ins and sessions; returns their number.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn forget_old_sign_ins(&self, now: DateTime<Utc>) -> Result<usize, StoreError> {
        let mut connection = self.connection().await?;
        let challenges =
            sign_in_challenges::created_at.lt(now - USED_CHALLENGES_KEPT).or(sign_in_challenges::created_at
                .lt(now - CHALLENGES_KEPT)
                .and(sign_in_challenges::used_at.is_null()));
        let sessions = sign_in_sessions::expires_at.lt(now - SESSIONS_KEPT);
        let first =
            diesel::delete(sign_in_challenges::table).filter(challenges).execute(&mut *connection).await?;
        let asked = oidc_sign_ins::expires_at.lt(now - CHALLENGES_KEPT);
        let asked = diesel::delete(oidc_sign_ins::table).filter(asked).execute(&mut *connection).await?;
        let second =
            diesel::delete(sign_in_sessions::table).filter(sessions).execute(&mut *connection).await?;
        Ok(first + asked + second)
    }
}
