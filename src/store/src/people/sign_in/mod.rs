//! Sign-in: what was asked for, who signed in, and the mail in between.
//!
//! Each step is one transaction. Codes and tokens are rows that are locked while they are used, so of several requests
//! with the same one, one wins.

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

/// How long a challenge is kept: longer than any limit counts back.
const CHALLENGES_KEPT: TimeDelta = TimeDelta::hours(24);
/// How long a challenge is kept that has signed a user in: so long its browser has mails of its own.
const USED_CHALLENGES_KEPT: TimeDelta = TimeDelta::days(30);
/// How long a session is kept that has come to its end.
const SESSIONS_KEPT: TimeDelta = TimeDelta::days(7);

impl Store {
    /// Forgets challenges, ways to the provider and sessions that are long over; says how many.
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
