//! Applying migrations at the start.

use diesel_async::{AsyncMigrationHarness, AsyncPgConnection, SimpleAsyncConnection};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};

use crate::StoreError;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations");

/// One service at a time migrates a database; the others wait.
const LOCK: &str = "SELECT pg_advisory_lock(hashtext('callboard migrations'))";
const UNLOCK: &str = "SELECT pg_advisory_unlock(hashtext('callboard migrations'))";

/// Applies what is missing and says how many that were.
pub(crate) async fn up(mut connection: AsyncPgConnection) -> Result<(AsyncPgConnection, usize), StoreError> {
    connection.batch_execute(LOCK).await?;
    let (mut connection, applied) = blocking(connection, |harness| {
        harness.run_pending_migrations(MIGRATIONS).map(|applied| applied.len())
    })
    .await?;
    connection.batch_execute(UNLOCK).await?;
    Ok((connection, applied))
}

/// Undoes every migration; for the test that each `down.sql` works.
#[cfg(test)]
pub(crate) async fn down(connection: AsyncPgConnection) -> Result<(AsyncPgConnection, usize), StoreError> {
    blocking(connection, |harness| harness.revert_all_migrations(MIGRATIONS).map(|undone| undone.len())).await
}

/// diesel's migrations are synchronous: they run on a thread that may block.
async fn blocking<T: Send + 'static>(
    connection: AsyncPgConnection,
    run: impl FnOnce(&mut AsyncMigrationHarness<AsyncPgConnection>) -> diesel::migration::Result<T>
    + Send
    + 'static,
) -> Result<(AsyncPgConnection, T), StoreError> {
    let work = tokio::task::spawn_blocking(move || {
        let mut harness = AsyncMigrationHarness::new(connection);
        let outcome = run(&mut harness).map_err(|error| StoreError::Migration(error.to_string()));
        outcome.map(|value| (harness.into_inner(), value))
    });
    work.await.map_err(|error| StoreError::Migration(error.to_string()))?
}
