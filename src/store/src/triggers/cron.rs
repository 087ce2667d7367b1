//! Cron triggers. A fire is claimed before its run is started and settled after it: if the claimer dies in
//! between, the fire is claimed again, with the decision based on the first claim's time.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Timestamptz};
use diesel_async::RunQueryDsl;
use serde_json::Value;
use uuid::Uuid;
use wire::{MissedFires, TriggerError, TriggerSkip};

use crate::database::scalar::Scalar;
use crate::error::corrupt;
use crate::schema::cron_triggers;
use crate::{Changes, Store, StoreError};

/// The validated trigger settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronSettings {
    /// The cron expression.
    pub expression: String,
    /// The expression's time zone.
    pub timezone: String,
    /// Whether a run is started while the last one is unfinished.
    pub overlap: bool,
    /// The policy for missed fires.
    pub missed: MissedFires,
    /// Whether the trigger is enabled.
    pub enabled: bool,
}

/// A trigger's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCron {
    /// The workflow that it runs.
    pub workflow_id: Uuid,
    /// Its settings.
    pub settings: CronSettings,
    /// The next fire; `None`: it does not fire.
    pub next_fire_at: Option<DateTime<Utc>>,
    /// When the fire was first claimed.
    pub claimed_at: Option<DateTime<Utc>>,
    /// The scheduled time of its last run.
    pub last_scheduled_for: Option<DateTime<Utc>>,
    /// Its last run.
    pub last_run_id: Option<Uuid>,
    /// The last skipped fire.
    pub last_skipped: Option<TriggerSkip>,
    /// The reason why the last fire failed.
    pub last_error: Option<TriggerError>,
    /// When it was configured.
    pub created_at: DateTime<Utc>,
    /// When its configuration last changed.
    pub updated_at: DateTime<Utc>,
}

/// The result of a fire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FiredCron {
    /// Started this run.
    Started(Uuid, DateTime<Utc>),
    /// Skipped.
    Skipped(TriggerSkip),
    /// Failed.
    Failed(TriggerError),
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = cron_triggers)]
#[diesel(check_for_backend(diesel::pg::Pg))]
struct CronRow {
    workflow_id: Uuid,
    expression: String,
    timezone: String,
    overlap: bool,
    missed: String,
    enabled: bool,
    next_fire_at: Option<DateTime<Utc>>,
    claimed_at: Option<DateTime<Utc>>,
    last_scheduled_for: Option<DateTime<Utc>>,
    last_run_id: Option<Uuid>,
    last_skipped: Option<Value>,
    last_error: Option<Value>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl TryFrom<CronRow> for StoredCron {
    type Error = StoreError;

    fn try_from(row: CronRow) -> Result<Self, StoreError> {
        let CronRow { expression, timezone, overlap, enabled, .. } = row;
        let missed = MissedFires::parse(&row.missed)
            .ok_or_else(|| StoreError::Corrupt(format!("missed is {}", row.missed)))?;
        let skipped = row.last_skipped.map(serde_json::from_value).transpose();
        let error = row.last_error.map(serde_json::from_value).transpose();
        Ok(Self {
            workflow_id: row.workflow_id,
            settings: CronSettings { expression, timezone, overlap, missed, enabled },
            next_fire_at: row.next_fire_at,
            claimed_at: row.claimed_at,
            last_scheduled_for: row.last_scheduled_for,
            last_run_id: row.last_run_id,
            last_skipped: skipped.map_err(|e| corrupt("last_skipped", e))?,
            last_error: error.map_err(|e| corrupt("last_error", e))?,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

impl Store {
    /// Returns a workflow's cron trigger.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn cron_trigger(&self, workflow: Uuid) -> Result<Option<StoredCron>, StoreError> {
        let row: Option<CronRow> = cron_triggers::table
            .find(workflow)
            .select(CronRow::as_select())
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        row.map(TryInto::try_into).transpose()
    }

    /// Claims due fires, oldest first; no other caller can claim them during `busy`.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn claim_cron_fires(&self, busy: TimeDelta, most: i64) -> Result<Vec<StoredCron>, StoreError> {
        let now = self.now();
        let mut connection = self.connection().await?;
        let claimed: Vec<Scalar<Uuid>> = diesel::sql_query(
            "UPDATE cron_triggers SET claimed_at = coalesce(claimed_at, $1), claimed_until = $2
             WHERE workflow_id IN (SELECT workflow_id FROM cron_triggers
                                   WHERE next_fire_at <= $1 AND (claimed_until IS NULL OR claimed_until <= $1)
                                   ORDER BY next_fire_at LIMIT $3 FOR UPDATE SKIP LOCKED)
             RETURNING workflow_id",
        )
        .bind::<Timestamptz, _>(now)
        .bind::<Timestamptz, _>(now + busy)
        .bind::<BigInt, _>(most)
        .load(&mut *connection)
        .await?;
        if claimed.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<Uuid> = claimed.into_iter().map(|row| row.0).collect();
        let rows: Vec<CronRow> = cron_triggers::table
            .filter(cron_triggers::workflow_id.eq_any(ids))
            .filter(cron_triggers::claimed_at.is_not_null())
            .order(cron_triggers::next_fire_at)
            .select(CronRow::as_select())
            .load(&mut *connection)
            .await?;
        rows.into_iter().map(TryInto::try_into).collect()
    }

    /// Postpones a claimed fire that cannot be decided now: it is due again at `at`.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn put_cron_fire_off(&self, fire: &StoredCron, at: DateTime<Utc>) -> Result<(), StoreError> {
        diesel::update(cron_triggers::table.find(fire.workflow_id))
            .filter(cron_triggers::next_fire_at.eq(fire.next_fire_at))
            .filter(cron_triggers::claimed_at.is_not_null())
            .set(cron_triggers::claimed_until.eq(Some(at)))
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(())
    }

    /// Settles a claimed fire. If the trigger was reconfigured in the meantime, only records the fire's result.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn settle_cron_fire(
        &self,
        fire: &StoredCron,
        fired: &FiredCron,
        next: Option<DateTime<Utc>>,
    ) -> Result<(), StoreError> {
        let row = cron_triggers::table.find(fire.workflow_id);
        let json = |value| serde_json::to_value(value).map_err(|e| corrupt("skipped fire", e));
        let mut connection = self.connection().await?;
        match fired {
            FiredCron::Started(run, scheduled_for) => {
                diesel::update(row)
                    .set((
                        cron_triggers::last_scheduled_for.eq(Some(scheduled_for)),
                        cron_triggers::last_run_id.eq(Some(run)),
                        cron_triggers::last_error.eq(None::<Value>),
                    ))
                    .execute(&mut *connection)
                    .await?;
            }
            FiredCron::Skipped(skip) => {
                diesel::update(row)
                    .set(cron_triggers::last_skipped.eq(Some(json(skip)?)))
                    .execute(&mut *connection)
                    .await?;
            }
            FiredCron::Failed(error) => {
                let error = serde_json::to_value(error).map_err(|e| corrupt("failed fire", e))?;
                diesel::update(row)
                    .set(cron_triggers::last_error.eq(Some(error)))
                    .execute(&mut *connection)
                    .await?;
            }
        }
        diesel::update(cron_triggers::table.find(fire.workflow_id))
            .filter(cron_triggers::next_fire_at.eq(fire.next_fire_at))
            .filter(cron_triggers::claimed_at.eq(fire.claimed_at))
            .set((
                cron_triggers::next_fire_at.eq(next),
                cron_triggers::claimed_at.eq(None::<DateTime<Utc>>),
                cron_triggers::claimed_until.eq(None::<DateTime<Utc>>),
            ))
            .execute(&mut *connection)
            .await?;
        Ok(())
    }
}

impl Changes {
    /// Configures a workflow's cron trigger. The results of earlier fires are kept.
    ///
    /// # Errors
    /// [`StoreError::Archived`] when the workflow is archived.
    pub async fn set_cron_trigger(
        &mut self,
        workflow: Uuid,
        settings: &CronSettings,
        next: Option<DateTime<Utc>>,
    ) -> Result<StoredCron, StoreError> {
        super::hold_unarchived(self, workflow).await?;
        let now = self.store.now();
        let told = (
            cron_triggers::expression.eq(&settings.expression),
            cron_triggers::timezone.eq(&settings.timezone),
            cron_triggers::overlap.eq(settings.overlap),
            cron_triggers::missed.eq(settings.missed.as_str()),
            cron_triggers::enabled.eq(settings.enabled),
            cron_triggers::next_fire_at.eq(next),
            cron_triggers::claimed_at.eq(None::<DateTime<Utc>>),
            cron_triggers::claimed_until.eq(None::<DateTime<Utc>>),
            cron_triggers::updated_at.eq(now),
        );
        let row: CronRow = diesel::insert_into(cron_triggers::table)
            .values((cron_triggers::workflow_id.eq(workflow), cron_triggers::created_at.eq(now), told))
            .on_conflict(cron_triggers::workflow_id)
            .do_update()
            .set(told)
            .returning(CronRow::as_returning())
            .get_result(&mut *self.connection)
            .await?;
        row.try_into()
    }

    /// Removes a workflow's cron trigger; returns whether there was one.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn remove_cron_trigger(&mut self, workflow: Uuid) -> Result<bool, StoreError> {
        let removed =
            diesel::delete(cron_triggers::table.find(workflow)).execute(&mut *self.connection).await?;
        Ok(removed > 0)
    }
}
