//! Applies migrations at the start.

use diesel::migration::MigrationSource;
use diesel::pg::Pg;
use diesel_async::{AsyncMigrationHarness, AsyncPgConnection, SimpleAsyncConnection};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};

use crate::StoreError;
use crate::database::scalar::Scalar;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations");

/// Serializes migrations: one service at a time migrates a database; the others wait.
const LOCK: &str = "SELECT pg_advisory_lock(hashtext('callboard migrations'))";
const UNLOCK: &str = "SELECT pg_advisory_unlock(hashtext('callboard migrations'))";

/// Applies missing migrations and returns their number.
pub(crate) async fn up(mut connection: AsyncPgConnection) -> Result<(AsyncPgConnection, usize), StoreError> {
    connection.batch_execute(LOCK).await?;
    let (mut connection, applied) = blocking(connection, |harness| {
        harness.run_pending_migrations(MIGRATIONS).map(|applied| applied.len())
    })
    .await?;
    connection.batch_execute(UNLOCK).await?;
    Ok((connection, applied))
}

/// Counts a database's pending migrations, and those unknown to this version. Changes nothing.
pub(crate) async fn compare(connection: &mut AsyncPgConnection) -> Result<Compared, StoreError> {
    use diesel_async::RunQueryDsl;
    let there = "SELECT to_regclass('public.__diesel_schema_migrations') IS NOT NULL AS there";
    let there: Scalar<bool> = diesel::sql_query(there).get_result(connection).await?;
    let applied: Vec<Scalar<String>> = if there.0 {
        let sql = "SELECT version FROM public.__diesel_schema_migrations ORDER BY version";
        diesel::sql_query(sql).load(connection).await?
    } else {
        Vec::new()
    };
    let known = MigrationSource::<Pg>::migrations(&MIGRATIONS)
        .map_err(|error| StoreError::Migration(error.to_string()))?;
    let known: Vec<String> = known.iter().map(|migration| migration.name().version().to_string()).collect();
    let has = |version: &str| applied.iter().any(|row| row.0 == version);
    Ok(Compared {
        pending: known.iter().filter(|version| !has(version)).count(),
        unknown: applied.iter().filter(|row| !known.contains(&row.0)).count(),
    })
}

/// A comparison of a database's migrations with this version's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compared {
    pub(crate) pending: usize,
    pub(crate) unknown: usize,
}

/// Another application's tables are the only cause that a user can fix.
fn told(error: &str) -> String {
    if error.contains("already exists") {
        format!("{error}; name a database in SERVICE_POSTGRES_DSN that is this service's alone")
    } else {
        error.to_owned()
    }
}

/// Reverts all migrations; for the test that each `down.sql` works.
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
        let outcome = run(&mut harness).map_err(|error| StoreError::Migration(told(&error.to_string())));
        outcome.map(|value| (harness.into_inner(), value))
    });
    work.await.map_err(|error| StoreError::Migration(error.to_string()))?
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tokio::runtime::Handle;

    use super::*;
    use crate::database::connect::{Connector, SessionKind};
    use crate::testing::TestDatabase;

    /// Everything that migrations can leave, except diesel's own table.
    async fn objects(connection: &mut AsyncPgConnection) -> BTreeSet<String> {
        use diesel_async::RunQueryDsl;
        let sql = "SELECT relkind::text || ' ' || relname AS name FROM pg_class
                   WHERE relnamespace = 'public'::regnamespace AND relname !~ '^__diesel'
                   UNION ALL SELECT 'function ' || proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
                   UNION ALL SELECT 'type ' || typname FROM pg_type
                   WHERE typnamespace = 'public'::regnamespace AND typname !~ '__diesel'";
        let names: Vec<Scalar<String>> = diesel::sql_query(sql).load(connection).await.unwrap();
        names.into_iter().map(|row| row.0).collect()
    }

    #[tokio::test]
    async fn migrations_go_up_down_and_up_again() {
        let database = TestDatabase::create().await;
        database.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public").await.unwrap();
        let connector = Connector::new(database.dsn(), Handle::current()).unwrap();
        let mut connection = connector.open(SessionKind::Owner).await.unwrap();
        let before = compare(&mut connection).await.unwrap();
        assert_eq!(objects(&mut connection).await, BTreeSet::new(), "an inspection changes nothing");
        let (connection, applied) = up(connection).await.unwrap();
        assert!(applied > 0);
        assert_eq!(before, Compared { pending: applied, unknown: 0 });
        let (mut connection, none) = up(connection).await.unwrap();
        assert_eq!(none, 0);
        assert_eq!(compare(&mut connection).await.unwrap(), Compared { pending: 0, unknown: 0 });
        let created = objects(&mut connection).await;
        assert!(
            created.contains("p stream_events") && created.contains("function refuse_change"),
            "{created:?}"
        );
        // As in service: with partitions and rows.
        let today = chrono::NaiveDate::from_ymd_opt(2026, 1, 1).unwrap();
        crate::system::partitions::ensure(&mut connection, today).await.unwrap();
        let (mut connection, undone) = down(connection).await.unwrap();
        assert_eq!((undone, objects(&mut connection).await), (applied, BTreeSet::new()));
        let (mut connection, again) = up(connection).await.unwrap();
        assert_eq!((again, objects(&mut connection).await), (applied, created));
    }
}
