//! What a canary is judged by, and its end.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Integer, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use kernel::first_id_at;
use uuid::Uuid;
use wire::{CanaryCounts, CanaryOutcome, EndedCanary, VersionCounts};

use super::records::StoredCanary;
use crate::{Changes, Store, StoreError};

/// The canary of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionOfCanary {
    /// The workflow.
    pub workflow: Uuid,
    /// The canary.
    pub canary: StoredCanary,
    /// The live version.
    pub live: i32,
}

/// How a canary ends.
#[derive(Debug, Clone, PartialEq)]
pub struct CanaryEnd {
    /// What becomes of it.
    pub outcome: CanaryOutcome,
    /// Why.
    pub reason: Option<String>,
    /// What it was judged by.
    pub counts: Option<CanaryCounts>,
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = Integer)]
    version: i32,
    #[diesel(sql_type = BigInt)]
    n: i64,
    #[diesel(sql_type = BigInt)]
    part: i64,
}

/// Turns that have ended since the canary started, by version. A turn that waits for an answer counts once it has ended.
const TURNS: &str =
    "SELECT v.number AS version, count(*) AS n, count(*) FILTER (WHERE r.status = 'failed') AS part
     FROM runs r JOIN workflow_versions v ON v.id = r.version_id AND v.number IN ($3, $4)
     WHERE r.workflow_id = $1 AND r.id >= $2 AND r.trigger = 'chat' AND r.status IN ('succeeded', 'failed')
         AND r.created_at >= $5
     GROUP BY 1";

/// Feedback since the canary started, by version: once for each turn and author, negative if any of it is.
const RATINGS: &str = "SELECT version, count(*) AS n, count(*) FILTER (WHERE negative) AS part FROM (
         SELECT v.number AS version, bool_or(f.kind = 'negative') AS negative
         FROM item_feedback f JOIN runs r ON r.id = f.run_id JOIN workflow_versions v ON v.id = r.version_id
             AND v.number IN ($3, $4)
         WHERE f.workflow_id = $1 AND f.id >= $2 AND r.workflow_id = $1 AND r.created_at >= $5
         GROUP BY v.number, f.run_id, f.author_kind, f.author_id) rated
     GROUP BY 1";

impl Store {
    /// What a canary and the live version are judged by: turns since the canary started, and feedback on them.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn canary_counts(&self, of: VersionOfCanary) -> Result<CanaryCounts, StoreError> {
        let mut connection = self.connection().await?;
        let mut counts = CanaryCounts::default();
        for (sql, is_turns) in [(TURNS, true), (RATINGS, false)] {
            let rows: Vec<Count> = diesel::sql_query(sql)
                .bind::<SqlUuid, _>(of.workflow)
                .bind::<SqlUuid, _>(first_id_at(of.canary.since))
                .bind::<Integer, _>(of.canary.version)
                .bind::<Integer, _>(of.live)
                .bind::<Timestamptz, _>(of.canary.since)
                .load(&mut *connection)
                .await?;
            for row in rows {
                let is_canary = row.version == of.canary.version;
                let counted = if is_canary { &mut counts.canary } else { &mut counts.live };
                let whole = |count: i64| u32::try_from(count).unwrap_or(u32::MAX);
                *counted = if is_turns {
                    VersionCounts { turns: whole(row.n), failed_turns: whole(row.part), ..*counted }
                } else {
                    VersionCounts { ratings: whole(row.n), negative_ratings: whole(row.part), ..*counted }
                };
            }
        }
        Ok(counts)
    }
}

impl Changes {
    /// Ends a canary unless it has ended by now; returns whether it did. Its threads use the live version from then on.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn end_canary(
        &mut self,
        workflow: Uuid,
        canary: StoredCanary,
        end: CanaryEnd,
    ) -> Result<bool, StoreError> {
        let now = self.store.now();
        // The order in which everything locks these rows.
        diesel::sql_query("SELECT FROM workflows WHERE id = $1 FOR UPDATE")
            .bind::<SqlUuid, _>(workflow)
            .execute(&mut *self.connection)
            .await?;
        let Some(mut rollout) = self.rollout(workflow).await? else { return Ok(false) };
        if rollout.canary.is_none_or(|known| (known.version, known.since) != (canary.version, canary.since)) {
            return Ok(false);
        }
        rollout.canary = None;
        rollout.last_canary = Some(ended(canary, end, now));
        self.put_rollout(&rollout).await?;
        Ok(true)
    }
}

/// A canary that ends, as it is shown later.
pub(super) fn ended(canary: StoredCanary, end: CanaryEnd, now: DateTime<Utc>) -> EndedCanary {
    EndedCanary {
        version: canary.version,
        percent: canary.percent,
        outcome: end.outcome,
        reason: end.reason,
        started_at: kernel::timestamp(canary.since),
        ended_at: kernel::timestamp(now),
        counts: end.counts,
    }
}
