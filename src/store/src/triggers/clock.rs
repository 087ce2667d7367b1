//! Repairs due times that were computed by a clock which was ahead and has been set back.
//!
//! Such a time could be days away. Parked runs wake and recompute their times; entries from the future no
//! longer count toward limits.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::dsl::exists;
use diesel::prelude::*;
use diesel::sql_types::Timestamptz;
use diesel_async::{AsyncConnection, RunQueryDsl};
use kernel::first_id_at;
use uuid::Uuid;

use crate::schema::{cron_triggers, runs};
use crate::{Store, StoreError};

/// Maximum difference between the clocks of several machines.
const TOLERANCE: TimeDelta = TimeDelta::seconds(60);
/// Maximum delay until deliveries are retried: the time also reserves a delivery for its current sender.
const DELIVERIES: TimeDelta = TimeDelta::minutes(10);

impl Store {
    /// Whether the newest run was created later than now.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn has_runs_of_the_future(&self, now: DateTime<Utc>) -> Result<bool, StoreError> {
        let later = runs::table.filter(runs::id.gt(first_id_at(now + TOLERANCE)));
        Ok(diesel::select(exists(later)).get_result(&mut *self.connection().await?).await?)
    }

    /// Repairs times after the clock was set back: runs that wait for a time become due and recompute it;
    /// claims, deliveries and limits from the future end. Idempotent.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn clock_went_back(&self, now: DateTime<Utc>) -> Result<(), StoreError> {
        let soon = now + DELIVERIES;
        let statements = [
            // A step's wait is measured from its start.
            (
                "UPDATE run_questions q SET asked_at = $1, expires_at = $1 + (q.expires_at - q.asked_at)
                 FROM run_queue r WHERE r.run_id = q.run_id AND q.asked_at > $1",
                now,
            ),
            (
                "UPDATE run_questions q SET asked_at = $1, expires_at = $1 + (q.expires_at - q.asked_at)
                 FROM turns_sent t WHERE t.run_id = q.run_id AND t.continued_by IS NULL AND q.asked_at > $1",
                now,
            ),
            (
                "UPDATE turns_sent t SET due_at = t.due_at - (s.started_at - $1)
                 FROM (SELECT run_id, max(started_at) AS started_at FROM run_steps WHERE status = 'started' AND started_at > $1
                       GROUP BY run_id) s
                 WHERE s.run_id = t.run_id AND t.due_at > $1",
                now,
            ),
            (
                "UPDATE run_steps s SET started_at = $1 FROM turns_sent t
                 WHERE t.run_id = s.run_id AND t.continued_by IS NULL AND s.status = 'started' AND s.started_at > $1",
                now,
            ),
            (
                "UPDATE run_steps s SET started_at = $1 FROM run_queue r
                 WHERE r.run_id = s.run_id AND s.status = 'started' AND s.started_at > $1",
                now,
            ),
            ("UPDATE run_queue SET due_at = $1 WHERE NOT turn AND due_at > $1", now),
            ("UPDATE cron_triggers SET claimed_until = $1 WHERE claimed_until > $1", now + TOLERANCE),
            ("UPDATE outbox SET next_attempt_at = $1 WHERE next_attempt_at > $1", soon),
            ("UPDATE outgoing_mail SET next_attempt_at = $1 WHERE next_attempt_at > $1", soon),
            ("DELETE FROM auth_failures WHERE at > $1", now + TOLERANCE),
            ("UPDATE sign_in_challenges SET created_at = $1 WHERE created_at > $1", now + TOLERANCE),
        ];
        let mut connection = self.connection().await?;
        connection
            .transaction(async |connection| {
                for (statement, at) in statements {
                    diesel::sql_query(statement).bind::<Timestamptz, _>(at).execute(connection).await?;
                }
                Ok(())
            })
            .await
    }

    /// Returns the enabled cron triggers whose next fire is after this time.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn cron_fires_after(&self, now: DateTime<Utc>) -> Result<Vec<PlannedFire>, StoreError> {
        let found = cron_triggers::table
            .filter(cron_triggers::next_fire_at.gt(now).assume_not_null())
            .filter(cron_triggers::enabled)
            .select((
                cron_triggers::workflow_id,
                cron_triggers::expression,
                cron_triggers::timezone,
                cron_triggers::next_fire_at.assume_not_null(),
            ))
            .load(&mut *self.connection().await?)
            .await?;
        Ok(found)
    }

    /// Moves a planned, unclaimed fire to another time. Does nothing if the fire has already moved.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn move_cron_fire(&self, fire: &PlannedFire, next: DateTime<Utc>) -> Result<(), StoreError> {
        diesel::update(cron_triggers::table.find(fire.workflow))
            .filter(cron_triggers::next_fire_at.eq(Some(fire.at)))
            .set((
                cron_triggers::next_fire_at.eq(Some(next)),
                cron_triggers::claimed_at.eq(None::<DateTime<Utc>>),
            ))
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(())
    }
}

/// A cron trigger's next fire.
#[derive(Debug, Clone, PartialEq, Eq, Queryable)]
pub struct PlannedFire {
    /// The trigger's workflow.
    pub workflow: Uuid,
    /// The configured cron expression.
    pub expression: String,
    /// The expression's time zone.
    pub timezone: String,
    /// The fire's time.
    pub at: DateTime<Utc>,
}
