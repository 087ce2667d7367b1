//! Case rows of a dataset version.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Array, Bytea, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::ThreadId;
use uuid::Uuid;

use crate::StoreError;
use crate::schema::dataset_versions;

/// Maximum cases stored per statement.
const PART: usize = 2_000;

/// A case to store.
#[derive(Debug, Clone)]
pub struct NewCase {
    /// SHA-256 of its canonical JSON.
    pub digest: [u8; 32],
    /// JSON.
    pub content: String,
    /// The run that it was copied from.
    pub run: Option<Uuid>,
    /// That run's thread.
    pub thread: Option<ThreadId>,
}

/// A dataset version to store.
pub(super) struct NewVersion<'a> {
    pub(super) workspace: Uuid,
    pub(super) dataset: Uuid,
    /// The version number, from 1.
    pub(super) number: i32,
    /// SHA-256 of its case digests in order.
    pub(super) fingerprint: &'a [u8],
    /// The number of cases.
    pub(super) n_cases: usize,
}

/// Stores a version with these cases.
pub(super) async fn store_version(
    connection: &mut AsyncPgConnection,
    new: &NewVersion<'_>,
    cases: &[NewCase],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    if new.number > 1 {
        diesel::sql_query("UPDATE dataset_entries SET until = $2 WHERE dataset_id = $1 AND until IS NULL")
            .bind::<SqlUuid, _>(new.dataset)
            .bind::<Integer, _>(new.number)
            .execute(connection)
            .await?;
    }
    store_appended(connection, new, cases, 0, now).await
}

/// Stores a version with the previous version's cases, and these at the indexes from `first` on.
pub(super) async fn store_appended(
    connection: &mut AsyncPgConnection,
    new: &NewVersion<'_>,
    cases: &[NewCase],
    first: usize,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let number = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    diesel::insert_into(dataset_versions::table)
        .values((
            dataset_versions::dataset_id.eq(new.dataset),
            dataset_versions::number.eq(new.number),
            dataset_versions::n_cases.eq(number(new.n_cases)),
            dataset_versions::fingerprint.eq(new.fingerprint),
            dataset_versions::created_at.eq(now),
        ))
        .execute(connection)
        .await?;
    store_contents(connection, new.workspace, cases, now).await?;
    for (part, cases) in cases.chunks(PART).enumerate() {
        let digests: Vec<&[u8]> = cases.iter().map(|case| &case.digest[..]).collect();
        diesel::sql_query(
            "INSERT INTO dataset_entries (dataset_id, number, place, digest)
             SELECT $1, $2, $3 + t.place::int - 1, t.digest FROM unnest($4) WITH ORDINALITY AS t (digest, place)",
        )
        .bind::<SqlUuid, _>(new.dataset)
        .bind::<Integer, _>(new.number)
        .bind::<Integer, _>(number(first + part * PART))
        .bind::<Array<Bytea>, _>(&digests)
        .execute(connection)
        .await?;
    }
    Ok(())
}

async fn store_contents(
    connection: &mut AsyncPgConnection,
    workspace: Uuid,
    cases: &[NewCase],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    // Sorted by digest: two writers with the same cases lock them in the same order.
    let mut sorted: Vec<&NewCase> = cases.iter().collect();
    sorted.sort_by_key(|case| case.digest);
    sorted.dedup_by_key(|case| case.digest);
    for cases in sorted.chunks(PART) {
        let digests: Vec<&[u8]> = cases.iter().map(|case| &case.digest[..]).collect();
        let contents: Vec<&str> = cases.iter().map(|case| case.content.as_str()).collect();
        let runs: Vec<Option<Uuid>> = cases.iter().map(|case| case.run).collect();
        let threads: Vec<Option<Uuid>> =
            cases.iter().map(|case| case.thread.map(|thread| thread.0)).collect();
        // Resets the age of an existing case, which could otherwise be deleted concurrently.
        diesel::sql_query(
            "INSERT INTO dataset_cases (workspace_id, digest, content, run_id, thread_id, created_at)
             SELECT $1, t.digest, t.content, t.run_id, t.thread_id, $2
             FROM unnest($3, $4, $5, $6) AS t (digest, content, run_id, thread_id)
             ON CONFLICT (workspace_id, digest) DO UPDATE SET created_at = excluded.created_at
                 WHERE dataset_cases.created_at < excluded.created_at - interval '1 hour'",
        )
        .bind::<SqlUuid, _>(workspace)
        .bind::<Timestamptz, _>(now)
        .bind::<Array<Bytea>, _>(&digests)
        .bind::<Array<Text>, _>(&contents)
        .bind::<Array<Nullable<SqlUuid>>, _>(&runs)
        .bind::<Array<Nullable<SqlUuid>>, _>(&threads)
        .execute(connection)
        .await?;
    }
    Ok(())
}
