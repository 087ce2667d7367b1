//! Opening a store.

use futures_util::future::join_all;
use store::StoreError;
use store::testing::TestDatabase;

use crate::support::{World, open, without};

const APPLIED: &str =
    "SELECT string_agg(version || ' ' || run_on, ',' ORDER BY version) FROM __diesel_schema_migrations";

#[tokio::test]
async fn a_second_open_applies_nothing() {
    let world = World::new().await;
    let before = world.database.scalar(APPLIED).await;
    let workspace = world.workspace().await;
    let second = world.database.store().await;
    assert_eq!(world.database.scalar(APPLIED).await, before);
    assert_eq!(second.workspace_id("default").await.unwrap(), Some(workspace));
    assert_eq!(second.workspace_id("other").await.unwrap(), None);
}

#[tokio::test]
async fn stores_that_open_an_empty_database_at_once_all_succeed() {
    let database = TestDatabase::create().await;
    for round in 0..5 {
        database.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public").await.unwrap();
        let opened = join_all((0..4).map(|_| open(database.dsn(), 1))).await;
        for store in opened {
            let store = store.unwrap_or_else(|error| panic!("round {round}: {error}"));
            store.ping().await.unwrap();
        }
        assert_eq!(database.scalar("SELECT count(*) FROM workspaces").await, "1");
    }
}

#[tokio::test]
async fn stores_that_open_a_migrated_database_at_once_all_succeed() {
    let database = TestDatabase::create().await;
    for _ in 0..3 {
        for store in join_all((0..6).map(|_| open(database.dsn(), 1))).await {
            store.unwrap().ping().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_database_that_may_lose_acknowledged_writes_is_rejected() {
    let database = TestDatabase::create().await;
    let name = database.scalar("SELECT current_database()").await;
    database.execute(&format!("ALTER DATABASE \"{name}\" SET synchronous_commit = off")).await.unwrap();
    let Err(error) = open(database.dsn(), 1).await else { panic!("it was opened") };
    assert!(matches!(error, StoreError::Unsafe(_)), "{error}");
    assert!(error.to_string().contains("synchronous_commit = off"), "{error}");
    // A replica that need not acknowledge loses nothing that this machine has acknowledged.
    database.execute(&format!("ALTER DATABASE \"{name}\" SET synchronous_commit = local")).await.unwrap();
    open(database.dsn(), 1).await.map(drop).unwrap();
}

#[tokio::test]
async fn an_error_never_shows_the_password() {
    for dsn in [
        "host=/nowhere user=u password=hunter2 dbname=d",
        "postgres://u:hunter2@localhost:1/d",
        "postgres://u:hunter2@localhost:port/d",
        "host=/nowhere password='hunter2 sslmode=bogus",
        "host=/nowhere password=hunter2 sslmode=bogus",
        "hunter2",
    ] {
        let Err(error) = open(dsn, 1).await else { panic!("{dsn} was opened") };
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
}

#[tokio::test]
async fn an_unfit_database_is_rejected_before_any_change() {
    let admin = TestDatabase::create().await;
    let name =
        admin.scalar("SELECT 'user_' || oid FROM pg_database WHERE datname = current_database()").await;
    let as_user = format!("{} user={name}", without(admin.dsn(), "user"));
    let rejection = async |sql: &str, dsn: &str| {
        admin.execute(sql).await.unwrap();
        let Err(error) = open(dsn, 1).await else { panic!("it was opened after {sql}") };
        assert!(matches!(error, StoreError::Unfit(_)), "{error:?}");
        assert!(error.to_string().contains("SERVICE_POSTGRES_DSN"), "{error}");
        error.to_string()
    };
    let make = format!("CREATE ROLE {name} LOGIN; REVOKE CREATE ON SCHEMA public FROM public");
    admin.execute(&make).await.unwrap();
    let grant = format!("GRANT CREATE ON SCHEMA public TO {name}");
    let text = rejection(&grant, &as_user).await;
    assert!(
        text.contains("belong to the user \"postgres\"; name that user in SERVICE_POSTGRES_DSN"),
        "{text}"
    );
    admin.execute(&format!("REVOKE CREATE ON SCHEMA public FROM {name}")).await.unwrap();
    let text =
        rejection(&format!("ALTER ROLE {name} SET default_transaction_read_only = on"), &as_user).await;
    assert!(text.contains("is read-only"), "{text}");
    let text = rejection("DROP SCHEMA public CASCADE", admin.dsn()).await;
    assert!(text.contains("has no schema public"), "{text}");
    admin.execute(&format!("CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO {name}")).await.unwrap();
    let text = rejection(&format!("ALTER ROLE {name} RESET default_transaction_read_only"), &as_user).await;
    assert!(
        text.starts_with(&format!("the user \"{name}\" may not create tables in the database \"")),
        "{text}"
    );
    let text = {
        admin.execute("CREATE TABLE workflows ()").await.unwrap();
        let Err(error) = open(admin.dsn(), 1).await else { panic!("it was opened") };
        error.to_string()
    };
    assert!(text.ends_with("name a database in SERVICE_POSTGRES_DSN that is this service's alone"), "{text}");
    admin.execute("DROP TABLE workflows").await.unwrap();
    let latin =
        format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'");
    let text = rejection(&latin, &format!("{} dbname={name}", without(admin.dsn(), "dbname"))).await;
    assert!(text.contains("stores texts as LATIN1"), "{text}");
    admin.execute(&format!("DROP DATABASE {name} WITH (FORCE)")).await.unwrap();
    admin.execute(&format!("DROP OWNED BY {name}; DROP ROLE {name}")).await.unwrap();
}

#[tokio::test]
async fn append_only_rows_are_immutable_even_for_the_owner() {
    let world = World::new().await;
    let workflow = world.workflow("w").await.unwrap();
    world
        .store
        .change(async |c| c.save_version(crate::versions::version(workflow.id, "a", 1)).await)
        .await
        .unwrap();
    for sql in [
        "UPDATE workflow_versions SET notes = 'x'",
        "DELETE FROM workflow_versions",
        "TRUNCATE workflow_versions",
    ] {
        let error = world.database.execute(sql).await.unwrap_err();
        assert!(error.contains("workflow_versions is append-only"), "{sql}: {error}");
    }
    assert_eq!(world.count("workflow_versions").await, "1");
}
