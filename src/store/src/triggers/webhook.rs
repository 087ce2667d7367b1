//! Webhooks: addresses that start a run when called.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Interval, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use serde_json::Value;
use uuid::Uuid;

use crate::database::prepared::prepared;
use crate::database::scalar::Scalar;
use crate::schema::{webhook_replays, webhook_triggers};
use crate::{Changes, Store, StoreError};

/// A webhook's row.
#[derive(Clone, Queryable, Selectable)]
#[diesel(table_name = webhook_triggers)]
#[diesel(check_for_backend(diesel::pg::Pg))]
pub struct StoredWebhook {
    /// The workflow that it runs.
    pub workflow_id: Uuid,
    /// The configuration without secrets.
    pub config: Value,
    /// The sealed secrets.
    pub secrets: Vec<u8>,
    /// When it was configured.
    pub created_at: DateTime<Utc>,
    /// When its configuration last changed.
    pub updated_at: DateTime<Utc>,
}

impl Store {
    /// Returns a workflow's webhook.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn webhook(&self, workflow: Uuid) -> Result<Option<StoredWebhook>, StoreError> {
        let found = webhook_triggers::table
            .find(workflow)
            .select(StoredWebhook::as_select())
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        Ok(found)
    }

    /// Counts a call against a rate limit: one call per `part`, with bursts up to `interval`. `Some`: the limit
    /// is reached; the time to wait.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn count_webhook_call(
        &self,
        workflow: Uuid,
        part: TimeDelta,
        interval: TimeDelta,
    ) -> Result<Option<TimeDelta>, StoreError> {
        let now = self.now();
        let mut connection = self.connection().await?;
        let counted: Vec<Scalar<DateTime<Utc>>> = prepared(
            "UPDATE webhook_triggers SET used_until = greatest(coalesce(used_until, $2), $2) + $3
             WHERE workflow_id = $1 AND greatest(coalesce(used_until, $2), $2) + $3 <= $2 + $4 RETURNING used_until",
        )
        .bind::<SqlUuid, _>(workflow)
        .bind::<Timestamptz, _>(now)
        .bind::<Interval, _>(part)
        .bind::<Interval, _>(interval)
        .load(&mut *connection)
        .await?;
        if counted.iter().any(|counted| counted.0 > now) {
            return Ok(None);
        }
        let used: Option<DateTime<Utc>> = webhook_triggers::table
            .find(workflow)
            .select(webhook_triggers::used_until)
            .first(&mut *connection)
            .await
            .optional()?
            .flatten();
        Ok(used.map(|used| used + part - interval - now))
    }

    /// Records a signed call for as long as it could be replayed; returns whether it is the first one, or has
    /// the same key as before.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn take_webhook_call(
        &self,
        workflow: Uuid,
        digest: &[u8],
        key: &str,
        until: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let mut connection = self.connection().await?;
        let taken = diesel::insert_into(webhook_replays::table)
            .values((
                webhook_replays::workflow_id.eq(workflow),
                webhook_replays::digest.eq(digest),
                webhook_replays::key.eq(key),
                webhook_replays::expires_at.eq(until),
            ))
            .on_conflict_do_nothing()
            .execute(&mut *connection)
            .await?;
        if taken > 0 {
            return Ok(true);
        }
        let known: Option<String> = webhook_replays::table
            .find((workflow, digest))
            .select(webhook_replays::key)
            .first(&mut *connection)
            .await
            .optional()?;
        Ok(known.is_some_and(|known| known == key))
    }

    /// Deletes calls that can no longer be replayed.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn forget_old_webhook_calls(&self, now: DateTime<Utc>) -> Result<usize, StoreError> {
        let gone = diesel::delete(webhook_replays::table.filter(webhook_replays::expires_at.lt(now)))
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(gone)
    }
}

impl Changes {
    /// Configures a workflow's webhook.
    ///
    /// # Errors
    /// [`StoreError::Archived`] when the workflow is archived.
    pub async fn set_webhook(
        &mut self,
        workflow: Uuid,
        config: &Value,
        secrets: &[u8],
    ) -> Result<StoredWebhook, StoreError> {
        super::hold_unarchived(self, workflow).await?;
        let now = self.store.now();
        let told = (
            webhook_triggers::config.eq(config),
            webhook_triggers::secrets.eq(secrets),
            webhook_triggers::updated_at.eq(now),
            // Resets the call counter: the limit may have changed.
            webhook_triggers::used_until.eq(None::<DateTime<Utc>>),
        );
        let row = diesel::insert_into(webhook_triggers::table)
            .values((webhook_triggers::workflow_id.eq(workflow), webhook_triggers::created_at.eq(now), told))
            .on_conflict(webhook_triggers::workflow_id)
            .do_update()
            .set(told)
            .returning(StoredWebhook::as_returning())
            .get_result(&mut *self.connection)
            .await?;
        Ok(row)
    }

    /// Removes a workflow's webhook; returns whether there was one.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn remove_webhook(&mut self, workflow: Uuid) -> Result<bool, StoreError> {
        let removed =
            diesel::delete(webhook_triggers::table.find(workflow)).execute(&mut *self.connection).await?;
        Ok(removed > 0)
    }
}
