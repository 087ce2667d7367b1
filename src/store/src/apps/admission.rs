//! Admission of an app's run: its keys, and the limits of who starts it, in one call of the function `admit_app_run`. Rows hold them, so
//! all instances share them.
//!
//! The keys come first: of equal requests at the same time one is judged, and the others wait for the outcome. A refusal takes them
//! back.

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

/// How far back runs of a network count as unfinished: the longest timeout of a binding. One that has waited in a queue for longer does not
/// count.
const LONGEST_RUN: TimeDelta = TimeDelta::hours(1);
/// How long an admitted run may take to be stored.
const STORED_WITHIN: TimeDelta = TimeDelta::seconds(10);

/// Starts at once, and then one each part of a minute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MinuteLimit {
    /// Who is counted.
    pub client: String,
    /// Starts of a minute, at least 1.
    pub most: u32,
}

/// Limits of an anonymous visitor; `None`: no limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnonymousLimits {
    /// The network of the client.
    pub network: String,
    /// Runs of the client that have not ended.
    pub unfinished: Option<u32>,
    /// Starts of the client in a day.
    pub day: Option<u32>,
    /// Starts of all anonymous visitors of the app in a day.
    pub app_day: Option<u32>,
}

/// A start to admit.
#[derive(Debug)]
pub struct AppAdmission<'a, T> {
    /// The scopes of its key; the first one decides whether the key is known.
    pub scopes: &'a [String],
    /// Its key.
    pub key: &'a str,
    /// SHA-256 of the request.
    pub digest: &'a [u8],
    /// The ids that the start will have.
    pub outcome: &'a T,
    /// The run among them.
    pub run: Uuid,
    /// The app.
    pub app: Uuid,
    /// The binding.
    pub binding: &'a str,
    /// The workflow of the binding.
    pub workflow: Uuid,
    /// Unfinished runs of the binding.
    pub max_concurrent: u32,
    /// Rates, of which each must admit the start.
    pub minutes: &'a [MinuteLimit],
    /// The limits of a visitor who is not signed in.
    pub anonymous: Option<&'a AnonymousLimits>,
    /// Whether the input fits.
    pub fits: bool,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admitted<T> {
    /// Its key is reserved. The flag says whether runs of the workflow wait for their turn.
    Reserved(Reserved<T>, bool),
    /// A limit is reached for so long. Nothing is reserved.
    Limited(TimeDelta),
    /// The input does not fit. Nothing is reserved; the start counts for the minute.
    Unfit,
}

#[derive(QueryableByName)]
struct Verdict {
    #[diesel(sql_type = Text)]
    verdict: String,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    free_at: Option<DateTime<Utc>>,
    #[diesel(sql_type = Bool)]
    is_limited: bool,
}

impl Store {
    /// Reserves the key of a start, unless it is known, a limit is reached or the input does not fit, in this order, except that the
    /// rates come before the input.
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
        let Verdict { verdict, free_at, is_limited } = prepared(
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

    /// Deletes rows of limits that allow everything again.
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
