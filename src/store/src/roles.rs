//! The role that the service works as: neither owner nor superuser.

use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};

use crate::StoreError;

/// Name of the role. Roles belong to the whole cluster, so several databases share it.
pub(crate) const ROLE: &str = "callboard_app";

/// Tables the role may only read and add to.
const APPEND_ONLY: [&str; 1] = ["workflow_versions"];

/// Makes the role and gives it its rights; `None` where the DSN's user may not create roles.
pub(crate) async fn ensure(connection: &mut AsyncPgConnection) -> Result<Option<&'static str>, StoreError> {
    if let Err(error) = connection.batch_execute(&create()).await {
        tracing::warn!(
            %error,
            "the database's user may not create roles, so the service works as that user; \
             grant it CREATEROLE to have the narrower role {ROLE}"
        );
        return Ok(None);
    }
    connection.batch_execute(&grants()).await?;
    Ok(Some(ROLE))
}

/// Several services may start at once on one cluster: the lock orders them, the exception covers other databases.
fn create() -> String {
    format!(
        "SELECT pg_advisory_lock(hashtext('{ROLE}'));
         DO $$ BEGIN
             IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{ROLE}') THEN
                 CREATE ROLE {ROLE} NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
             END IF;
             IF NOT pg_has_role(current_user, '{ROLE}', 'MEMBER') THEN
                 GRANT {ROLE} TO CURRENT_USER;
             END IF;
         EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
         END $$;
         SELECT pg_advisory_unlock(hashtext('{ROLE}'));"
    )
}

fn grants() -> String {
    let mut sql = format!(
        "GRANT USAGE ON SCHEMA public TO {ROLE};
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {ROLE};
         REVOKE ALL ON __diesel_schema_migrations FROM {ROLE};"
    );
    for table in APPEND_ONLY {
        sql.push_str(&format!("REVOKE UPDATE, DELETE, TRUNCATE ON {table} FROM {ROLE};"));
    }
    sql
}

#[derive(diesel::QueryableByName)]
struct Setting {
    #[diesel(sql_type = diesel::sql_types::Text)]
    value: String,
}

/// Refuses a database that would lose what it acknowledged.
pub(crate) async fn check_durability(connection: &mut AsyncPgConnection) -> Result<(), StoreError> {
    for (name, bad) in [("fsync", "off"), ("full_page_writes", "off"), ("synchronous_commit", "off")] {
        let setting: Setting = diesel::sql_query(format!("SELECT current_setting('{name}') AS value"))
            .get_result(connection)
            .await?;
        if setting.value == bad {
            return Err(StoreError::Unsafe(format!("{name} = {bad}")));
        }
    }
    Ok(())
}
