//! Admission of an app's run: its keys, and the limits of who starts it, in one transaction. Rows hold them, so all instances
//! share them.
//!
//! The keys come first: of equal requests at the same time one is judged, and the others wait for the outcome. A refusal takes them
//! back. The commit does not wait for the disk: the run's start is a later commit, which does, and takes this one with it.

use chrono::{DateTime, Days, NaiveTime, TimeDelta, Utc};
use diesel::prelude::*;
use diesel::sql_types::{
    Array, BigInt, Bool, Bytea, Date, Integer, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid,
};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use kernel::first_id_at;
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::database::idempotency::{KEPT_HOURS, known};
use crate::error::corrupt;
use crate::{Reserved, Store, StoreError};

/// How far back runs count as unfinished: none may take longer.
const LONGEST_RUN: TimeDelta = TimeDelta::hours(1);
/// How long an admitted run may take to be stored.
const STORED_WITHIN: TimeDelta = TimeDelta::seconds(10);
/// The row of all anonymous visitors of an app.
const EVERY_CLIENT: &str = "";

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

/// Why a transaction is rolled back.
enum Stop {
    Known,
    Limited(TimeDelta),
    Failed(StoreError),
}

impl From<diesel::result::Error> for Stop {
    fn from(error: diesel::result::Error) -> Self {
        Self::Failed(error.into())
    }
}

#[derive(QueryableByName)]
struct Scope {
    #[diesel(sql_type = Text)]
    scope: String,
}

#[derive(QueryableByName)]
struct UsedUntil {
    #[diesel(sql_type = Timestamptz)]
    used_until: DateTime<Utc>,
}

#[derive(QueryableByName)]
struct Binding {
    #[diesel(sql_type = BigInt)]
    unfinished: i64,
    #[diesel(sql_type = Bool)]
    limited: bool,
}

#[derive(QueryableByName)]
struct Flag {
    #[diesel(sql_type = Bool)]
    flag: bool,
}

impl Store {
    /// Reserves the key of a start, unless it is known, a limit is reached or the input does not fit, which is looked at after the
    /// rates.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn admit_app_run<T: Serialize + DeserializeOwned + Sync>(
        &self,
        wanted: &AppAdmission<'_, T>,
        fits: impl FnOnce() -> bool + Send,
    ) -> Result<Admitted<T>, StoreError> {
        let now = self.now();
        let outcome = serde_json::to_value(wanted.outcome).map_err(|e| corrupt("idempotency outcome", e))?;
        let mut connection = self.connection().await?;
        let done = connection
            .transaction(async |connection| {
                if !reserved(connection, wanted, &outcome, now).await? {
                    return Err(Stop::Known);
                }
                for limit in wanted.minutes {
                    count_minute(connection, wanted.app, limit, now).await?;
                }
                if !fits() {
                    // The count of the minute stays.
                    forget_keys(connection, wanted).await?;
                    return Ok(None);
                }
                let binding = of_binding(connection, wanted, now).await?;
                if binding.unfinished >= i64::from(wanted.max_concurrent) {
                    return Err(Stop::Limited(TimeDelta::seconds(1)));
                }
                if let Some(limits) = wanted.anonymous {
                    count_client(connection, wanted, limits, now).await?;
                    count_app(connection, wanted.app, limits.app_day, now).await?;
                }
                Ok(Some(binding.limited))
            })
            .await;
        match done {
            Ok(Some(limited)) => Ok(Admitted::Reserved(Reserved::New, limited)),
            Ok(None) => Ok(Admitted::Unfit),
            Err(Stop::Known) => {
                let scope = wanted.scopes.first().map_or("", String::as_str);
                let known = known(&mut connection, scope, wanted.key, wanted.digest, now).await?;
                Ok(Admitted::Reserved(known, is_limited(&mut connection, wanted.workflow).await?))
            }
            Err(Stop::Limited(wait)) => Ok(Admitted::Limited(wait)),
            Err(Stop::Failed(error)) => Err(error),
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

/// Reserves the key in each scope; `false` if it is known in the first.
async fn reserved<T>(
    connection: &mut AsyncPgConnection,
    wanted: &AppAdmission<'_, T>,
    outcome: &serde_json::Value,
    now: DateTime<Utc>,
) -> Result<bool, Stop> {
    let new: Vec<Scope> = diesel::sql_query(
        "WITH soon AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
         INSERT INTO idempotency_keys AS k (scope, key, request_digest, outcome, created_at)
         SELECT s.scope, $2, $3, $4, $5 FROM soon, unnest($1) AS s (scope)
         ON CONFLICT (scope, key) DO UPDATE SET request_digest = excluded.request_digest, outcome = excluded.outcome,
             created_at = excluded.created_at WHERE k.created_at < $6
         RETURNING scope",
    )
    .bind::<Array<Text>, _>(wanted.scopes)
    .bind::<Text, _>(wanted.key)
    .bind::<Bytea, _>(wanted.digest)
    .bind::<Jsonb, _>(outcome)
    .bind::<Timestamptz, _>(now)
    .bind::<Timestamptz, _>(now - TimeDelta::hours(KEPT_HOURS))
    .load(connection)
    .await?;
    Ok(wanted.scopes.first().is_none_or(|first| new.iter().any(|new| new.scope == *first)))
}

/// Takes back keys that this transaction has reserved.
async fn forget_keys<T>(
    connection: &mut AsyncPgConnection,
    wanted: &AppAdmission<'_, T>,
) -> Result<(), Stop> {
    diesel::sql_query("DELETE FROM idempotency_keys WHERE scope = ANY($1) AND key = $2")
        .bind::<Array<Text>, _>(wanted.scopes)
        .bind::<Text, _>(wanted.key)
        .execute(connection)
        .await?;
    Ok(())
}

/// Counts a start for a rate, and locks its row.
async fn count_minute(
    connection: &mut AsyncPgConnection,
    app: Uuid,
    limit: &MinuteLimit,
    now: DateTime<Utc>,
) -> Result<(), Stop> {
    let minute = TimeDelta::minutes(1);
    let most = i32::try_from(limit.most.max(1)).unwrap_or(i32::MAX);
    let step = minute / most;
    // Later than any start can leave it: the clock was set back.
    let latest = now + minute + step;
    let counted: Vec<UsedUntil> = diesel::sql_query(
        "INSERT INTO app_limits AS l (app_id, client, used_until, day, day_count, recent)
         VALUES ($1, $2, $4, $5, 0, '{}')
         ON CONFLICT (app_id, client) DO UPDATE
             SET used_until = $4 + (greatest(CASE WHEN l.used_until > $6 THEN $3 ELSE l.used_until END, $3) - $3)
             WHERE l.used_until <= $7 OR l.used_until > $6
         RETURNING used_until",
    )
    .bind::<SqlUuid, _>(app)
    .bind::<Text, _>(&limit.client)
    .bind::<Timestamptz, _>(now)
    .bind::<Timestamptz, _>(now + step)
    .bind::<Date, _>(now.date_naive())
    .bind::<Timestamptz, _>(latest)
    .bind::<Timestamptz, _>(now + minute - step)
    .load(connection)
    .await?;
    if !counted.is_empty() {
        return Ok(());
    }
    let used: Option<UsedUntil> =
        diesel::sql_query("SELECT used_until FROM app_limits WHERE app_id = $1 AND client = $2")
            .bind::<SqlUuid, _>(app)
            .bind::<Text, _>(&limit.client)
            .get_result(connection)
            .await
            .optional()?;
    let free_at = used.map_or(now, |used| used.used_until) - minute + step;
    Err(Stop::Limited(free_at - now))
}

/// The unfinished runs of the binding, of which no more are counted than it may have, and whether runs of its workflow wait for their turn.
async fn of_binding<T>(
    connection: &mut AsyncPgConnection,
    wanted: &AppAdmission<'_, T>,
    now: DateTime<Utc>,
) -> Result<Binding, Stop> {
    let found = diesel::sql_query(
        "SELECT (SELECT count(*) FROM (SELECT FROM runs r JOIN app_runs a ON a.run_id = r.id
                 WHERE r.trigger = 'app' AND r.finished_at IS NULL AND r.id > $1 AND a.app_id = $2 AND a.binding = $3
                 LIMIT $5) AS q) AS unfinished,
             EXISTS (SELECT FROM workflows WHERE id = $4 AND max_concurrent_runs IS NOT NULL) AS limited",
    )
    .bind::<SqlUuid, _>(first_id_at(now - LONGEST_RUN))
    .bind::<SqlUuid, _>(wanted.app)
    .bind::<Text, _>(wanted.binding)
    .bind::<SqlUuid, _>(wanted.workflow)
    .bind::<BigInt, _>(i64::from(wanted.max_concurrent))
    .get_result(connection)
    .await?;
    Ok(found)
}

async fn is_limited(connection: &mut AsyncPgConnection, workflow: Uuid) -> Result<bool, StoreError> {
    let sql =
        "SELECT EXISTS (SELECT FROM workflows WHERE id = $1 AND max_concurrent_runs IS NOT NULL) AS flag";
    let found: Flag = diesel::sql_query(sql).bind::<SqlUuid, _>(workflow).get_result(connection).await?;
    Ok(found.flag)
}

/// Counts a start for the day and the unfinished runs of its client. The row is locked first, by the count of the minute unless there is
/// none: the statement that judges begins afterwards, and sees what those before it have committed.
async fn count_client<T>(
    connection: &mut AsyncPgConnection,
    wanted: &AppAdmission<'_, T>,
    limits: &AnonymousLimits,
    now: DateTime<Utc>,
) -> Result<(), Stop> {
    if limits.unfinished.is_none() && limits.day.is_none() {
        return Ok(());
    }
    let today = now.date_naive();
    if !wanted.minutes.iter().any(|limit| limit.client == limits.network) {
        diesel::sql_query(
            "INSERT INTO app_limits AS l (app_id, client, used_until, day, day_count, recent) VALUES ($1, $2, $3, $4, 0, '{}')
             ON CONFLICT (app_id, client) DO UPDATE SET day = l.day",
        )
        .bind::<SqlUuid, _>(wanted.app)
        .bind::<Text, _>(&limits.network)
        .bind::<Timestamptz, _>(now)
        .bind::<Date, _>(today)
        .execute(connection)
        .await?;
    }
    let of = |limit: Option<u32>| limit.map(i64::from);
    let young = first_id_at(now - STORED_WITHIN);
    let counted = diesel::sql_query(
        "UPDATE app_limits l SET day = $3, day_count = CASE WHEN l.day = $3 THEN l.day_count ELSE 0 END + 1,
             recent = ARRAY(SELECT u.id FROM unnest(l.recent) AS u (id) WHERE u.id > $4) || $5
         WHERE l.app_id = $1 AND l.client = $2 AND ($6 IS NULL OR l.day <> $3 OR l.day_count < $6)
             AND ($7 IS NULL OR $7 > (SELECT count(*) FROM (
                 SELECT a.run_id FROM app_runs a JOIN runs r ON r.id = a.run_id
                     WHERE a.app_id = $1 AND a.network = $2 AND a.run_id > $8 AND r.finished_at IS NULL
                 UNION SELECT u.id FROM unnest(l.recent) AS u (id)
                     WHERE u.id > $4 AND NOT EXISTS (SELECT FROM app_runs s WHERE s.run_id = u.id)) AS unfinished (id)))",
    )
    .bind::<SqlUuid, _>(wanted.app)
    .bind::<Text, _>(&limits.network)
    .bind::<Date, _>(today)
    .bind::<SqlUuid, _>(young)
    .bind::<SqlUuid, _>(wanted.run)
    .bind::<Nullable<BigInt>, _>(of(limits.day))
    .bind::<Nullable<BigInt>, _>(of(limits.unfinished))
    .bind::<SqlUuid, _>(first_id_at(now - LONGEST_RUN))
    .execute(connection)
    .await?;
    if counted > 0 {
        return Ok(());
    }
    let day_is_full: Flag = diesel::sql_query(
        "SELECT EXISTS (SELECT FROM app_limits WHERE app_id = $1 AND client = $2 AND day = $3 AND day_count >= $4) AS flag",
    )
    .bind::<SqlUuid, _>(wanted.app)
    .bind::<Text, _>(&limits.network)
    .bind::<Date, _>(today)
    .bind::<BigInt, _>(of(limits.day).unwrap_or(i64::MAX))
    .get_result(connection)
    .await?;
    Err(Stop::Limited(if day_is_full.flag { until_midnight(now) } else { TimeDelta::seconds(1) }))
}

/// Counts a start for the day of its app.
async fn count_app(
    connection: &mut AsyncPgConnection,
    app: Uuid,
    limit: Option<u32>,
    now: DateTime<Utc>,
) -> Result<(), Stop> {
    let Some(limit) = limit else { return Ok(()) };
    let counted = diesel::sql_query(
        "INSERT INTO app_limits AS l (app_id, client, used_until, day, day_count, recent) VALUES ($1, $2, $3, $4, 1, '{}')
         ON CONFLICT (app_id, client) DO UPDATE SET day = $4, day_count = CASE WHEN l.day = $4 THEN l.day_count ELSE 0 END + 1
             WHERE l.day <> $4 OR l.day_count < $5",
    )
    .bind::<SqlUuid, _>(app)
    .bind::<Text, _>(EVERY_CLIENT)
    .bind::<Timestamptz, _>(now)
    .bind::<Date, _>(now.date_naive())
    .bind::<Integer, _>(i32::try_from(limit).unwrap_or(i32::MAX))
    .execute(connection)
    .await?;
    if counted > 0 { Ok(()) } else { Err(Stop::Limited(until_midnight(now))) }
}

fn until_midnight(now: DateTime<Utc>) -> TimeDelta {
    let tomorrow = now.date_naive().checked_add_days(Days::new(1));
    tomorrow.map_or(TimeDelta::days(1), |day| day.and_time(NaiveTime::MIN).and_utc() - now)
}
