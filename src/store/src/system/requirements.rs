//! Requirements for a database, checked before the service changes it.

use diesel_async::{AsyncPgConnection, RunQueryDsl};

use crate::StoreError;

#[derive(diesel::QueryableByName)]
struct Facts {
    #[diesel(sql_type = diesel::sql_types::Text)]
    user_name: String,
    #[diesel(sql_type = diesel::sql_types::Text)]
    database: String,
    #[diesel(sql_type = diesel::sql_types::Bool)]
    read_only: bool,
    #[diesel(sql_type = diesel::sql_types::Nullable<diesel::sql_types::Bool>)]
    may_create: Option<bool>,
    #[diesel(sql_type = diesel::sql_types::Nullable<diesel::sql_types::Text>)]
    other_owner: Option<String>,
    #[diesel(sql_type = diesel::sql_types::Text)]
    encoding: String,
    #[diesel(sql_type = diesel::sql_types::Nullable<diesel::sql_types::Text>)]
    lossy: Option<String>,
}

/// Reads all facts in one query. `has_schema_privilege` would fail for a missing schema.
const FACTS: &str = "SELECT current_user::text AS user_name, current_database()::text AS database,
    pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS read_only,
    (SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = 'public') AS may_create,
    (SELECT pg_get_userbyid(relowner)::text FROM pg_class
     WHERE oid = to_regclass('public.__diesel_schema_migrations') AND NOT pg_has_role(relowner, 'USAGE')) AS other_owner,
    current_setting('server_encoding') AS encoding,
    (SELECT name || ' = off' FROM unnest(ARRAY['fsync', 'full_page_writes', 'synchronous_commit']) AS name
     WHERE current_setting(name) = 'off' LIMIT 1) AS lossy";

/// Rejects a database that would lose acknowledged writes, or that the service cannot use.
pub(crate) async fn check(connection: &mut AsyncPgConnection) -> Result<(), StoreError> {
    let facts: Facts = diesel::sql_query(FACTS).get_result(connection).await?;
    let Facts { user_name, database, .. } = &facts;
    if let Some(setting) = facts.lossy {
        return Err(StoreError::Unsafe(setting));
    }
    if facts.read_only {
        return Err(StoreError::Unfit(format!(
            "the database \"{database}\" is read-only, as on a standby; name the primary in SERVICE_POSTGRES_DSN"
        )));
    }
    // SQL_ASCII stores bytes unchanged; any other encoding would reject characters outside its set.
    if !matches!(facts.encoding.as_str(), "UTF8" | "SQL_ASCII") {
        return Err(StoreError::Unfit(format!(
            "the database \"{database}\" stores texts as {}; create one with ENCODING 'UTF8' and name it in \
             SERVICE_POSTGRES_DSN",
            facts.encoding
        )));
    }
    if let Some(owner) = &facts.other_owner {
        return Err(StoreError::Unfit(format!(
            "the tables in the database \"{database}\" belong to the user \"{owner}\"; name that user in \
             SERVICE_POSTGRES_DSN, or let \"{user_name}\" use its role (GRANT \"{owner}\" TO \"{user_name}\")"
        )));
    }
    match facts.may_create {
        Some(true) => Ok(()),
        Some(false) => Err(StoreError::Unfit(format!(
            "the user \"{user_name}\" may not create tables in the database \"{database}\"; as its owner run GRANT CREATE \
             ON SCHEMA public TO \"{user_name}\", or name another user in SERVICE_POSTGRES_DSN"
        ))),
        None => Err(StoreError::Unfit(format!(
            "the database \"{database}\" has no schema public; as its owner run CREATE SCHEMA public, or name another \
             database in SERVICE_POSTGRES_DSN"
        ))),
    }
}
