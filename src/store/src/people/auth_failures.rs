//! The exact sliding log of failed sign-ins, shared by all instances.
//!
//! The transaction that records a failure also decides about it, under a lock for each of its keys: with any
//! number of concurrent failures, exactly as many are counted as the limit allows.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use ring::digest::{SHA256, digest};

use crate::people::audit::{self, AuditEntry};
use crate::schema::auth_failures;
use crate::{Store, StoreError};

diesel::define_sql_function! {
    /// Takes a transaction-level lock, and waits for it.
    fn pg_advisory_xact_lock(key: BigInt);
}

/// The result of recording a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailureVerdict {
    /// It was counted.
    Counted,
    /// One of its keys had reached its limit: the failure was not counted.
    Limited {
        /// The key.
        key: String,
        /// When the oldest failure leaves the window, so that the key is free again.
        free_at: DateTime<Utc>,
    },
}

#[derive(QueryableByName)]
struct BlockedKey {
    #[diesel(sql_type = Text)]
    key: String,
    #[diesel(sql_type = Timestamptz)]
    free_at: DateTime<Utc>,
}

impl Store {
    /// Counts a failure under each of its keys, unless one of them has reached its limit within the window. A
    /// counted failure also adds the audit row.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn record_failure(
        &self,
        keys: &[(String, i64)],
        window: TimeDelta,
        entry: Option<&AuditEntry>,
    ) -> Result<FailureVerdict, StoreError> {
        let mut keys = keys.to_vec();
        // Sorted, so that two requests do not deadlock.
        keys.sort_unstable();
        self.change(async |changes| {
            let (id, now) = (changes.store.ids().uuid()?, changes.store.now());
            let connection = &mut *changes.connection;
            for (key, _) in &keys {
                diesel::select(pg_advisory_xact_lock(lock(key))).execute(connection).await?;
            }
            for (key, limit) in &keys {
                if let Some(free_at) = free_at(connection, key, *limit, now, window).await? {
                    return Ok(FailureVerdict::Limited { key: key.clone(), free_at });
                }
            }
            let rows: Vec<_> = keys
                .iter()
                .map(|(key, _)| (auth_failures::key.eq(key.as_str()), auth_failures::at.eq(now)))
                .collect();
            diesel::insert_into(auth_failures::table).values(rows).execute(connection).await?;
            if let Some(entry) = entry {
                audit::add(connection, id, now, entry).await?;
            }
            Ok(FailureVerdict::Counted)
        })
        .await
    }

    /// Returns the keys that have reached their limit within the window, with the time at which each is free
    /// again. Keys with the prefix `address:` have one limit, all others the other.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn blocked_keys(
        &self,
        per_address: Option<i64>,
        per_identity: Option<i64>,
        window: TimeDelta,
    ) -> Result<Vec<(String, DateTime<Utc>)>, StoreError> {
        let now = self.now();
        // Another failure is allowed after the limit-th newest one leaves the window.
        let sql = "SELECT key, at + $4 * interval '1 microsecond' AS free_at FROM (
                       SELECT key, at, row_number() OVER (PARTITION BY key ORDER BY at DESC) AS newest,
                              CASE WHEN key LIKE 'address:%' THEN $1 ELSE $2 END AS most
                       FROM auth_failures WHERE at > $3) AS recent
                   WHERE newest = most ORDER BY free_at DESC LIMIT 100000";
        let rows: Vec<BlockedKey> = diesel::sql_query(sql)
            .bind::<BigInt, _>(per_address.unwrap_or(i64::MAX))
            .bind::<BigInt, _>(per_identity.unwrap_or(i64::MAX))
            .bind::<Timestamptz, _>(now - window)
            .bind::<BigInt, _>(window.num_microseconds().unwrap_or(i64::MAX))
            .load(&mut *self.connection().await?)
            .await?;
        Ok(rows.into_iter().map(|row| (row.key, row.free_at)).collect())
    }

    /// Deletes failures that are older than any window.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn forget_old_failures(&self, before: DateTime<Utc>) -> Result<usize, StoreError> {
        let old = diesel::delete(auth_failures::table).filter(auth_failures::at.lt(before));
        Ok(old.execute(&mut *self.connection().await?).await?)
    }
}

/// Returns when the key allows another failure; `None` if it allows one now.
async fn free_at(
    connection: &mut AsyncPgConnection,
    key: &str,
    limit: i64,
    now: DateTime<Utc>,
    window: TimeDelta,
) -> Result<Option<DateTime<Utc>>, StoreError> {
    let nth: Option<DateTime<Utc>> = auth_failures::table
        .filter(auth_failures::key.eq(key))
        .filter(auth_failures::at.gt(now - window))
        .order(auth_failures::at.desc())
        .select(auth_failures::at)
        .offset(limit - 1)
        .first(connection)
        .await
        .optional()?;
    Ok(nth.map(|at| at + window))
}

/// The prefix keeps these locks separate from request locks.
fn lock(key: &str) -> i64 {
    let mut first = [0; 8];
    let whole = digest(&SHA256, format!("auth failure\n{key}").as_bytes());
    for (byte, of_digest) in first.iter_mut().zip(whole.as_ref()) {
        *byte = *of_digest;
    }
    i64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use chrono::SubsecRound;
    use kernel::{Clock, ManualClock, SystemClock};

    use super::*;
    use crate::testing::TestDatabase;

    #[tokio::test]
    async fn failures_are_allowed_up_to_the_limit_in_a_sliding_window() {
        let database = TestDatabase::create().await;
        // PostgreSQL stores times in microseconds.
        let clock = ManualClock::new(SystemClock::new().now().trunc_subsecs(6));
        let store = database.store_with(Arc::new(clock.clone())).await;
        let window = TimeDelta::seconds(60);
        let keys = [("address:192.0.2.1".to_owned(), 3), ("token:x".to_owned(), 100)];
        let start = store.now();
        let mut counted = 0;
        let fails = |_| {
            let (store, keys) = (store.clone(), keys.clone());
            async move { store.record_failure(&keys, window, None).await.unwrap() }
        };
        for verdict in futures_util::future::join_all((0..16).map(fails)).await {
            match verdict {
                FailureVerdict::Counted => counted += 1,
                FailureVerdict::Limited { key, free_at } => {
                    assert_eq!((key.as_str(), free_at), ("address:192.0.2.1", start + window));
                }
            }
        }
        assert_eq!(counted, 3);
        let blocked = store.blocked_keys(Some(3), Some(100), window).await.unwrap();
        assert_eq!(blocked, [("address:192.0.2.1".to_owned(), start + window)]);
        assert_eq!(store.blocked_keys(None, None, window).await.unwrap(), []);
        clock.advance(Duration::from_secs(59));
        let limited = store.record_failure(&keys, window, None).await.unwrap();
        assert!(
            matches!(limited, FailureVerdict::Limited { .. }),
            "rejected requests do not extend the window"
        );
        clock.advance(Duration::from_secs(1));
        assert_eq!(store.record_failure(&keys, window, None).await.unwrap(), FailureVerdict::Counted);
        assert_eq!(store.forget_old_failures(store.now() - window / 2).await.unwrap(), 6);
        assert_eq!(database.scalar("SELECT count(*) FROM auth_failures").await, "2");
    }
}
