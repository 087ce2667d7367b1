//! Admits an app's run: its idempotency keys and its caller's limits, in one call to the function
//! `admit_app_run`. The state is in rows, so all instances share it.
//!
//! The keys come first: of several concurrent equal requests one is checked, and the others wait for the
//! outcome. A rejection removes the keys again.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use diesel::sql_types::{
    Array, BigInt, Bool, Bytea, Date, Integer, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid,
};
use diesel_async::RunQueryDsl;
use kernel::first_id_at;
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::database::idempotency::{KEPT_HOURS, known};
use crate::database::prepared::prepared;
use crate::error::corrupt;
use crate::{Reserved, Store, StoreError};

/// The age up to which a network's runs count as unfinished: a binding's longest timeout. Runs that have been
/// queued for longer do not count.
const LONGEST_RUN: TimeDelta = TimeDelta::hours(1);
/// Maximum time to store an admitted run.
const STORED_WITHIN: TimeDelta = TimeDelta::seconds(10);

/// A rate limit: a burst of starts, refilled evenly over a minute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MinuteLimit {
    /// The counted client.
    pub client: String,
    /// Starts per minute, at least 1.
    pub most: u32,
}

/// Limits for an anonymous visitor; `None`: no limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnonymousLimits {
    /// The client's network.
    pub network: String,
    /// Maximum unfinished runs per client.
    pub unfinished: Option<u32>,
    /// Maximum starts per client and day.
    pub day: Option<u32>,
    /// Maximum starts per day by all the app's anonymous visitors.
    pub app_day: Option<u32>,
}

/// A start to admit.
#[derive(Debug)]
pub struct AppAdmission<'a, T> {
    /// The key's scopes; the first one decides whether the key is known.
    pub scopes: &'a [String],
    /// Its key.
    pub key: &'a str,
    /// SHA-256 of the request.
    pub digest: &'a [u8],
    /// The ids for the start.
    pub outcome: &'a T,
    /// The run's id among them.
    pub run: Uuid,
    /// The app.
    pub app: Uuid,
    /// The binding.
    pub binding: &'a str,
    /// The binding's workflow.
    pub workflow: Uuid,
    /// Maximum unfinished runs for the binding.
    pub max_concurrent: u32,
    /// Rate limits, all of which must admit the start.
    pub minutes: &'a [MinuteLimit],
    /// The limits for a visitor who is not signed in.
    pub anonymous: Option<&'a AnonymousLimits>,
    /// Whether the input is valid.
    pub fits: bool,
}

/// The admission result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admitted<T> {
    /// Its key is reserved. The flag says whether the workflow's runs wait for a free slot.
    Reserved(Reserved<T>, bool),
    /// A limit is reached for this time. Nothing is reserved.
    Limited(TimeDelta),
    /// The input is invalid. Nothing is reserved; the start counts toward the rate limits.
    Unfit,
}

#[derive(QueryableByName)]
struct AdmissionRow {
    #[diesel(sql_type = Text)]
    verdict: String,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    free_at: Option<DateTime<Utc>>,
    #[diesel(sql_type = Bool)]
    is_limited: bool,
}

impl Store {
    /// Reserves a start's key. Checks in this order: the key is new, the rate limits, the input, the other
    /// limits.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn admit_app_run<T: Serialize + DeserializeOwned + Sync>(
        &self,
        wanted: &AppAdmission<'_, T>,
    ) -> Result<Admitted<T>, StoreError> {
        let now = self.now();
        let outcome = serde_json::to_value(wanted.outcome).map_err(|e| corrupt("idempotency outcome", e))?;
        let clients: Vec<&str> = wanted.minutes.iter().map(|limit| limit.client.as_str()).collect();
        let rates: Vec<i32> =
            wanted.minutes.iter().map(|limit| i32::try_from(limit.most.max(1)).unwrap_or(i32::MAX)).collect();
        let limit = |of: fn(&AnonymousLimits) -> Option<u32>| wanted.anonymous.and_then(of).map(i64::from);
        let mut connection = self.connection().await?;
        let AdmissionRow { verdict, free_at, is_limited } = prepared(
            "SELECT * FROM admit_app_run($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)",
        )
        .bind::<SqlUuid, _>(wanted.run)
        .bind::<SqlUuid, _>(wanted.app)
        .bind::<Text, _>(wanted.binding)
        .bind::<SqlUuid, _>(wanted.workflow)
        .bind::<Array<Text>, _>(wanted.scopes)
        .bind::<Text, _>(wanted.key)
        .bind::<Bytea, _>(wanted.digest)
        .bind::<Jsonb, _>(outcome)
        .bind::<Array<Text>, _>(clients)
        .bind::<Array<Integer>, _>(rates)
        .bind::<Bool, _>(wanted.fits)
        .bind::<BigInt, _>(i64::from(wanted.max_concurrent))
        .bind::<Nullable<Text>, _>(wanted.anonymous.map(|limits| limits.network.as_str()))
        .bind::<Nullable<BigInt>, _>(limit(|limits| limits.unfinished))
        .bind::<Nullable<BigInt>, _>(limit(|limits| limits.day))
        .bind::<Nullable<BigInt>, _>(limit(|limits| limits.app_day))
        .bind::<Timestamptz, _>(now)
        .bind::<Timestamptz, _>(now - TimeDelta::hours(KEPT_HOURS))
        .bind::<SqlUuid, _>(first_id_at(now - LONGEST_RUN))
        .bind::<SqlUuid, _>(first_id_at(now - STORED_WITHIN))
        .get_result(&mut *connection)
        .await?;
        match verdict.as_str() {
            "new" => Ok(Admitted::Reserved(Reserved::New, is_limited)),
            "known" => {
                let scope = wanted.scopes.first().map_or("", String::as_str);
                let known = known(&mut connection, scope, wanted.key, wanted.digest, now).await?;
                Ok(Admitted::Reserved(known, is_limited))
            }
            "unfit" => Ok(Admitted::Unfit),
            "limited" => Ok(Admitted::Limited(free_at.unwrap_or(now) - now)),
            other => Err(corrupt("verdict of an admission", other)),
        }
    }

    /// Deletes expired limit rows.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn forget_old_app_limits(&self, now: DateTime<Utc>) -> Result<(), StoreError> {
        diesel::sql_query(
            "DELETE FROM app_limits WHERE (app_id, client) IN (SELECT app_id, client FROM app_limits
                 WHERE day < $1 AND used_until < $2 FOR UPDATE SKIP LOCKED)",
        )
        .bind::<Date, _>(now.date_naive())
        .bind::<Timestamptz, _>(now)
        .execute(&mut *self.connection().await?)
        .await?;
        Ok(())
    }
}
