//! Cleanup of expired sign-ins to apps.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::sql_types::{BigInt, Timestamptz};
use diesel_async::RunQueryDsl;

use crate::system::retention::is_full;
use crate::{Store, StoreError};

/// Retention of expired rows: when a code is presented after that, the session that it opened has ended, too.
const KEPT: TimeDelta = TimeDelta::days(1);
/// Maximum rows per batch.
const PART: i64 = 10_000;

impl Store {
    /// Deletes old sign-ins, codes and sessions, and erased users' consents; `true` if more may be left.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn forget_old_app_sign_ins(&self, now: DateTime<Utc>) -> Result<bool, StoreError> {
        let mut connection = self.connection().await?;
        let mut more = false;
        let erased = "user_id IN (SELECT id FROM users WHERE email IS NULL)";
        for (table, condition) in [
            ("app_sign_ins", "expires_at < $1".to_owned()),
            ("app_codes", format!("expires_at < $1 OR {erased}")),
            ("app_sessions", format!("expires_at < $1 OR {erased}")),
            ("app_consents", format!("created_at < $1 AND {erased}")),
        ] {
            let sql = format!(
                "DELETE FROM {table} WHERE ctid = ANY (ARRAY(
                     SELECT ctid FROM {table} WHERE {condition} LIMIT $2 FOR UPDATE SKIP LOCKED))"
            );
            let deleted = diesel::sql_query(sql)
                .bind::<Timestamptz, _>(now - KEPT)
                .bind::<BigInt, _>(PART)
                .execute(&mut *connection)
                .await?;
            more |= is_full(deleted, PART);
        }
        Ok(more)
    }
}
