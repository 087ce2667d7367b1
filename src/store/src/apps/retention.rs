//! Cleanup of deleted apps and old deployments. Each call handles a batch and returns whether more may be left.

use chrono::TimeDelta;
use diesel::OptionalExtension;
use diesel::sql_types::{BigInt, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncConnection, RunQueryDsl};
use uuid::Uuid;

use crate::database::scalar::Scalar;
use crate::system::retention::is_full;
use crate::{Changes, Store, StoreError};

/// Period during which a deleted app's alias stays taken.
pub const ALIAS_HELD: TimeDelta = TimeDelta::days(30);
/// Retention of a deleted collection's row.
const COLLECTIONS_KEPT: TimeDelta = TimeDelta::days(30);
/// Maximum deployments per batch: each may have thousands of files.
const DEPLOYMENTS_PART: i64 = 2;
/// Maximum runs per batch.
const RUNS_PART: i64 = 10_000;
/// Maximum apps per batch.
const APPS_PART: i64 = 100;

/// Deletes the files and uses of the deployments in `gone`.
const FORGET_FILES: &str = "
     files AS (DELETE FROM app_files t USING gone WHERE t.deployment_id = gone.id),
     uses AS (DELETE FROM blob_uses t USING gone WHERE t.owner = gone.id AND t.kind = 'app_file')";

/// The number of newest deployments per app whose files are kept.
const DEPLOYMENTS_KEPT: i64 = 50;

/// Retention of a release's files after the next release becomes active: open pages still load them.
pub const EARLIER_SERVED: TimeDelta = TimeDelta::hours(1);
/// The number of newest releases per app whose files are kept: the likely targets for a rollback.
const RELEASES_KEPT: i64 = 10;

/// Selects `$1` deployments of the app `a` whose files have expired, after the newest `$2`. A release was
/// active until the next one.
const OLD_DEPLOYMENTS: &str = "
    SELECT o.id FROM (SELECT id FROM app_deployments WHERE app_id = a.id AND available ORDER BY id DESC OFFSET $2) o
    WHERE o.id NOT IN (SELECT r.deployment_id FROM app_releases r WHERE r.app_id = a.id ORDER BY r.number DESC LIMIT $3)
        AND NOT EXISTS (SELECT FROM app_releases r WHERE r.id = a.active_release AND r.deployment_id = o.id)
        AND NOT EXISTS (SELECT FROM (SELECT deployment_id, lead(created_at) OVER (ORDER BY number) AS until
            FROM app_releases WHERE app_id = a.id) r WHERE r.deployment_id = o.id AND r.until > $4)
    LIMIT $1";

impl Changes {
    /// Deletes a locked app's deployment, unless a release uses it; returns whether it was deleted.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn delete_unreleased(&mut self, app: Uuid, deployment: Uuid) -> Result<bool, StoreError> {
        let sql = format!(
            "WITH gone AS MATERIALIZED (SELECT d.id FROM app_deployments d WHERE d.id = $1 AND d.app_id = $2
                 AND NOT EXISTS (SELECT FROM app_releases r WHERE r.app_id = $2 AND r.deployment_id = d.id) FOR UPDATE),
                 {FORGET_FILES}
             DELETE FROM app_deployments t USING gone WHERE t.id = gone.id"
        );
        let deleted = diesel::sql_query(sql).bind::<SqlUuid, _>(deployment).bind::<SqlUuid, _>(app);
        Ok(deleted.execute(&mut *self.connection).await? > 0)
    }
}

impl Store {
    /// Deletes the files of an app's deployments that are not among its newest, and that no recent release
    /// serves; the deployment rows stay.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn forget_old_deployments(&self) -> Result<bool, StoreError> {
        let active_since = self.now() - EARLIER_SERVED;
        let mut connection = self.connection().await?;
        let sql = format!("SELECT a.id FROM apps a WHERE EXISTS ({OLD_DEPLOYMENTS}) LIMIT 1");
        let found: Option<Scalar<Uuid>> = diesel::sql_query(sql)
            .bind::<BigInt, _>(DEPLOYMENTS_PART)
            .bind::<BigInt, _>(DEPLOYMENTS_KEPT)
            .bind::<BigInt, _>(RELEASES_KEPT)
            .bind::<Timestamptz, _>(active_since)
            .get_result(&mut *connection)
            .await
            .optional()?;
        drop(connection);
        let Some(Scalar(app)) = found else { return Ok(false) };
        self.forget_old_deployments_of(app).await?;
        Ok(true)
    }

    /// The same for one app: deletes a batch.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn forget_old_deployments_of(&self, app: Uuid) -> Result<(), StoreError> {
        let active_since = self.now() - EARLIER_SERVED;
        self.connection()
            .await?
            .transaction(async |connection| {
                // Releases are created under this lock: the next statement sees a new release, or the release
                // sees this deletion.
                diesel::sql_query("SELECT id FROM apps WHERE id = $1 FOR UPDATE")
                    .bind::<SqlUuid, _>(app)
                    .execute(connection)
                    .await?;
                let sql = format!(
                    "WITH gone AS MATERIALIZED (SELECT d.id FROM app_deployments d WHERE d.available
                         AND d.id IN (SELECT old.id FROM apps a CROSS JOIN LATERAL ({OLD_DEPLOYMENTS}) old WHERE a.id = $5)
                         ORDER BY d.id FOR UPDATE), {FORGET_FILES}
                     UPDATE app_deployments t SET available = false FROM gone WHERE t.id = gone.id"
                );
                diesel::sql_query(sql)
                    .bind::<BigInt, _>(DEPLOYMENTS_PART)
                    .bind::<BigInt, _>(DEPLOYMENTS_KEPT)
                    .bind::<BigInt, _>(RELEASES_KEPT)
                    .bind::<Timestamptz, _>(active_since)
                    .bind::<SqlUuid, _>(app)
                    .execute(connection)
                    .await
            })
            .await?;
        Ok(())
    }

    /// Deletes the rows of collections that were deleted 30 days ago.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn forget_deleted_collections(&self) -> Result<bool, StoreError> {
        let sql =
            "DELETE FROM app_collections WHERE id IN (SELECT id FROM app_collections WHERE deleted_at <= $2
            AND record_count = 0 AND tombstones = 0 ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)";
        let forgotten = diesel::sql_query(sql)
            .bind::<BigInt, _>(APPS_PART)
            .bind::<Timestamptz, _>(self.now() - COLLECTIONS_KEPT)
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(is_full(forgotten, APPS_PART))
    }

    /// Erases the data of deleted apps, and deletes the rows of those that no longer hold their alias.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn erase_deleted_apps(&self) -> Result<bool, StoreError> {
        let now = self.now();
        let mut connection = self.connection().await?;
        let sql = format!(
            "WITH gone AS MATERIALIZED (SELECT d.id FROM app_deployments d JOIN apps a ON a.id = d.app_id
                 WHERE a.deleted_at IS NOT NULL AND a.erased_at IS NULL
                 ORDER BY d.id LIMIT $1 FOR UPDATE OF d SKIP LOCKED), {FORGET_FILES}
             DELETE FROM app_deployments t USING gone WHERE t.id = gone.id"
        );
        let deployments =
            diesel::sql_query(sql).bind::<BigInt, _>(DEPLOYMENTS_PART).execute(&mut *connection);
        if is_full(deployments.await?, DEPLOYMENTS_PART) {
            return Ok(true);
        }
        // The runs have the same retention as other workflows' runs; the link to the person who started them is
        // deleted.
        let runs = diesel::sql_query(
            "DELETE FROM app_runs WHERE run_id IN (SELECT r.run_id FROM app_runs r JOIN apps a ON a.id = r.app_id
                 WHERE a.deleted_at IS NOT NULL AND a.erased_at IS NULL LIMIT $1)",
        )
        .bind::<BigInt, _>(RUNS_PART)
        .execute(&mut *connection);
        if is_full(runs.await?, RUNS_PART) {
            return Ok(true);
        }
        let erased = diesel::sql_query(
            "WITH gone AS MATERIALIZED (SELECT id FROM apps WHERE deleted_at IS NOT NULL AND erased_at IS NULL
                 AND NOT EXISTS (SELECT FROM app_deployments d WHERE d.app_id = apps.id)
                 AND NOT EXISTS (SELECT FROM app_runs r WHERE r.app_id = apps.id)
                 AND NOT EXISTS (SELECT FROM app_collections c WHERE c.app_id = apps.id
                     AND (c.record_count > 0 OR c.tombstones > 0))
                 ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED),
             limits AS (DELETE FROM app_limits t USING gone WHERE t.app_id = gone.id),
             bindings AS (DELETE FROM app_bindings t USING gone WHERE t.app_id = gone.id),
             collections AS (DELETE FROM app_collections t USING gone WHERE t.app_id = gone.id
                 AND t.record_count = 0 AND t.tombstones = 0),
             acknowledged AS (DELETE FROM app_acknowledgements t USING gone WHERE t.app_id = gone.id),
             sign_ins AS (DELETE FROM app_sign_ins t USING gone WHERE t.app_id = gone.id),
             codes AS (DELETE FROM app_codes t USING gone WHERE t.app_id = gone.id),
             sessions AS (DELETE FROM app_sessions t USING gone WHERE t.app_id = gone.id),
             consents AS (DELETE FROM app_consents t USING gone WHERE t.app_id = gone.id)
             UPDATE apps t SET erased_at = $2, name = '' FROM gone WHERE t.id = gone.id",
        )
        .bind::<BigInt, _>(APPS_PART)
        .bind::<Timestamptz, _>(now)
        .execute(&mut *connection)
        .await?;
        let forgotten = diesel::sql_query(
            "DELETE FROM apps WHERE id IN (SELECT id FROM apps WHERE deleted_at <= $2 AND erased_at IS NOT NULL
                 ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)",
        )
        .bind::<BigInt, _>(APPS_PART)
        .bind::<Timestamptz, _>(now - ALIAS_HELD)
        .execute(&mut *connection)
        .await?;
        Ok(is_full(erased, APPS_PART) || is_full(forgotten, APPS_PART))
    }
}
