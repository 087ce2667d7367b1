//! The service's database role: neither owner nor superuser.

use diesel::OptionalExtension;
use diesel::sql_types::{Bool, Text};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};

use crate::StoreError;
use crate::database::scalar::Scalar;

/// The role's name. Roles belong to the whole cluster, so several databases share it.
pub(crate) const ROLE: &str = "callboard_app";

/// Held until the end of the transaction; a statement with several parts is one transaction.
pub(crate) const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtext('callboard_app'));";

/// Tables that the role may only read and append to.
const APPEND_ONLY: [&str; 4] = ["app_releases", "audit_log", "training_checkpoints", "workflow_versions"];

/// Creates the role and grants its rights; `None` if the DSN's user may not create roles.
pub(crate) async fn ensure(connection: &mut AsyncPgConnection) -> Result<Option<&'static str>, StoreError> {
    if let Err(error) = connection.batch_execute(&create()).await {
        tracing::warn!(
            %error,
            "the database's user may not create roles, so the service uses that user; \
             grant it CREATEROLE to use the restricted role {ROLE}"
        );
        return Ok(None);
    }
    connection.batch_execute(&grants()).await?;
    Ok(Some(ROLE))
}

/// Whether [`ensure`] would succeed; the trial leaves no changes.
pub(crate) async fn on_trial(connection: &mut AsyncPgConnection) -> Result<bool, StoreError> {
    let tried = connection.batch_execute(&format!("BEGIN;{}", create())).await;
    connection.batch_execute("ROLLBACK").await?;
    Ok(tried.is_ok())
}

/// Whether the service bypasses row security: its role, or the DSN's user without a role.
pub(crate) async fn bypasses_row_security(
    connection: &mut AsyncPgConnection,
    role: bool,
) -> Result<bool, StoreError> {
    let found: Option<Scalar<bool>> = diesel::sql_query(
        "SELECT rolsuper OR rolbypassrls AS bypasses FROM pg_roles
         WHERE rolname = CASE WHEN $1 THEN $2 ELSE current_user END",
    )
    .bind::<Bool, _>(role)
    .bind::<Text, _>(ROLE)
    .get_result(connection)
    .await
    .optional()?;
    Ok(found.is_some_and(|found| found.0))
}

/// Several services may start concurrently on one cluster: the lock serializes them, the exceptions cover other
/// databases. Since PostgreSQL 16 the creator of a role is a member of it, but may still lack the right to set
/// it.
fn create() -> String {
    format!(
        "{LOCK}
         DO $$ BEGIN
             BEGIN
                 IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{ROLE}') THEN
                     CREATE ROLE {ROLE} NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
                 END IF;
             EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
             END;
             IF NOT pg_has_role(current_user, '{ROLE}',
                 CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' END) THEN
                 GRANT {ROLE} TO CURRENT_USER;
             END IF;
         EXCEPTION WHEN unique_violation THEN NULL;
         END $$;"
    )
}

fn grants() -> String {
    let mut sql = format!(
        "{LOCK}
         GRANT USAGE ON SCHEMA public TO {ROLE};
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {ROLE};
         GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {ROLE};
         REVOKE ALL ON __diesel_schema_migrations FROM {ROLE};"
    );
    for table in APPEND_ONLY {
        sql.push_str(&format!("REVOKE UPDATE, DELETE, TRUNCATE ON {table} FROM {ROLE};"));
    }
    sql
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kernel::{Ids, SystemClock, SystemRandom};

    use super::*;
    use crate::database::connect::SessionKind;
    use crate::testing::TestDatabase;
    use crate::{Store, StoreOptions};

    async fn ask(connection: &mut AsyncPgConnection, sql: &str) -> String {
        let row: Scalar<String> =
            diesel::sql_query(format!("SELECT ({sql})::text AS value")).get_result(connection).await.unwrap();
        row.0
    }

    async fn refusal(connection: &mut AsyncPgConnection, sql: &str) -> String {
        let Err(error) = connection.batch_execute(sql).await else { panic!("{sql} was allowed") };
        error.to_string()
    }

    #[tokio::test]
    async fn connections_use_a_role_that_cannot_change_append_only_tables() {
        let database = TestDatabase::create().await;
        let store = database.store().await;
        let mut pooled = store.connection().await.unwrap();
        let mut lane = store.connector().open(SessionKind::Lane(Some(ROLE))).await.unwrap();
        for connection in [&mut *pooled, &mut lane] {
            assert_eq!(ask(connection, "current_user").await, ROLE);
            assert_eq!(
                ask(connection, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user").await,
                "false"
            );
            for sql in [
                "UPDATE workflow_versions SET notes = 'x'",
                "DELETE FROM workflow_versions",
                "TRUNCATE workflow_versions",
                "ALTER TABLE workflow_versions DISABLE TRIGGER ALL",
                "TRUNCATE workflows",
                "DROP TABLE workflows",
                "CREATE TABLE mine (id int)",
                "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
                "SELECT * FROM __diesel_schema_migrations",
            ] {
                let error = refusal(connection, sql).await;
                assert!(
                    error.contains("permission denied") || error.contains("must be owner"),
                    "{sql}: {error}"
                );
            }
        }
        // It has access to every table, also after a second start.
        drop((pooled, database.store().await));
        let readable = "SELECT bool_and(has_table_privilege('callboard_app', oid, 'SELECT, INSERT')) FROM pg_class \
                        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') \
                        AND relname !~ '^__diesel|^stream_events_'";
        assert_eq!(database.scalar(readable).await, "true");
    }

    #[tokio::test]
    async fn every_append_only_table_has_its_triggers() {
        let database = TestDatabase::create().await;
        let sql = "SELECT string_agg(relname, ',' ORDER BY relname) FROM (SELECT relname FROM pg_trigger \
                   JOIN pg_class ON pg_class.oid = tgrelid WHERE tgfoid = 'refuse_change'::regproc \
                   GROUP BY relname HAVING count(*) >= 2) AS guarded";
        assert_eq!(database.scalar(sql).await, APPEND_ONLY.join(","));
    }

    /// Opens a store on a database whose user has these rights; returns the role that the store works as, and
    /// that user.
    async fn works_as(rights: &str, grant: Option<&str>) -> (String, String) {
        let admin = TestDatabase::create().await;
        // The role already exists, as from another database in the cluster.
        admin.store().await;
        let user =
            admin.scalar("SELECT 'user_' || oid FROM pg_database WHERE datname = current_database()").await;
        for sql in
            [format!("CREATE ROLE {user} LOGIN {rights}"), format!("CREATE DATABASE {user} OWNER {user}")]
        {
            TestDatabase::execute(&admin, &sql).await.unwrap();
        }
        if let Some(options) = grant {
            TestDatabase::execute(&admin, &format!("GRANT {ROLE} TO {user} {options}")).await.unwrap();
        }
        let dsn =
            admin.dsn().split(' ').filter(|part| !part.starts_with("user=") && !part.starts_with("dbname="));
        let dsn = format!("{} user={user} dbname={user}", dsn.collect::<Vec<_>>().join(" "));
        let mut names = Vec::new();
        for _ in 0..2 {
            let (clock, random) = (Arc::new(SystemClock::new()), Arc::new(SystemRandom::new()));
            let ids = Ids::new(clock.clone(), random.clone());
            let options = StoreOptions { dsn: dsn.clone().into(), connections: 2, clock, random, ids };
            let store = Store::open(options).await.unwrap();
            assert!(store.workspace_id("default").await.unwrap().is_some());
            names.push(ask(&mut store.connection().await.unwrap(), "current_user").await);
            store.lane().await.unwrap();
        }
        assert_eq!(names[0], names[1]);
        TestDatabase::execute(&admin, &format!("DROP DATABASE {user} WITH (FORCE)")).await.unwrap();
        TestDatabase::execute(&admin, &format!("DROP ROLE {user}")).await.unwrap();
        (names.remove(0), user)
    }

    #[tokio::test]
    async fn a_user_who_may_not_create_roles_works_as_itself() {
        let (name, user) = works_as("NOCREATEROLE", None).await;
        assert_eq!(name, user);
    }

    #[tokio::test]
    async fn a_user_who_was_granted_the_role_works_as_it() {
        assert_eq!(works_as("NOCREATEROLE", Some("")).await.0, ROLE);
    }

    #[tokio::test]
    async fn a_user_who_may_create_roles_works_as_the_role() {
        let version: u32 = TestDatabase::create()
            .await
            .scalar("SELECT current_setting('server_version_num')")
            .await
            .parse()
            .unwrap();
        // The grant that a role's creator gets since PostgreSQL 16; before that any CREATEROLE user may grant
        // it.
        let made = (version >= 160_000).then_some("WITH ADMIN TRUE, INHERIT FALSE, SET FALSE");
        assert_eq!(works_as("CREATEROLE", made).await.0, ROLE);
    }
}
