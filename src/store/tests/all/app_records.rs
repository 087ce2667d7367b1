//! Collection records: row security, and cleanup.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use kernel::ManualClock;
use store::{
    MAX_COLLECTION_RECORDS, NewApp, RecordPage, RecordRefusal, RecordScope, RecordWrite, StoredCollection,
    StoredRecord,
};
use uuid::Uuid;

use crate::support::{World, outsider};

const DAY: Duration = Duration::from_secs(86_400);
const ALL: RecordPage = RecordPage { after: None, descending: false, limit: 100 };

async fn collection(world: &World, alias: &str, kind: &str) -> RecordScope {
    let workspace = world.workspace().await;
    let id = world.uuid();
    let made = world.store.change(async |changes| {
        let app = match world.store.app(alias).await? {
            Some(app) => app,
            None => changes.create_app(NewApp { workspace, alias, name: "An app", access: "public" }).await?,
        };
        let new = StoredCollection {
            id,
            app_id: app.id,
            workspace_id: workspace,
            name: kind.to_owned(),
            kind: kind.to_owned(),
            capabilities: "{}".to_owned(),
            schema: None,
            created_at: app.created_at,
        };
        changes.create_collection(new).await?;
        Ok(app.id)
    });
    RecordScope { app: made.await.unwrap(), collection: id, owner: None }
}

async fn put(world: &World, scope: RecordScope, data: &str) -> StoredRecord {
    let id = world.uuid();
    let made = world.store.change(async |changes| {
        let locked = changes.lock_collection(scope).await?.unwrap();
        changes.create_record(&locked, id, RecordWrite { data, written_by: None }).await
    });
    made.await.unwrap().unwrap()
}

async fn data(world: &World, scope: RecordScope) -> Result<Vec<String>, RecordRefusal> {
    let found = world.store.records(scope, ALL).await.unwrap()?;
    Ok(found.into_iter().map(|record| record.data).collect())
}

#[tokio::test]
async fn a_member_reaches_only_their_own_records() {
    let world = World::new().await;
    let shared = collection(&world, "one", "shared").await;
    let of = collection(&world, "one", "user").await;
    let (ann, ben) = (world.uuid(), world.uuid());
    let (of_ann, of_ben) = (RecordScope { owner: Some(ann), ..of }, RecordScope { owner: Some(ben), ..of });
    put(&world, shared, r#"{"of":"all"}"#).await;
    let record = put(&world, of_ann, r#"{"of":"ann"}"#).await;
    put(&world, of_ben, r#"{"of":"ben"}"#).await;
    assert_eq!(data(&world, of_ann).await.unwrap(), [r#"{"of":"ann"}"#]);
    assert_eq!(data(&world, of_ben).await.unwrap(), [r#"{"of":"ben"}"#]);
    assert_eq!(data(&world, of).await.unwrap(), [""; 0]);
    for other in [of_ben, of, shared, RecordScope { owner: Some(ann), ..shared }] {
        assert_eq!(world.store.record(other, record.id).await.unwrap(), Err(RecordRefusal::NotFound));
        let locked = world.store.change(async |changes| {
            let locked = changes.lock_collection(other).await?.unwrap();
            changes.record(&locked, record.id).await
        });
        assert_eq!(locked.await.unwrap(), None);
    }
    // The id is taken, even for other owners.
    let taken = world.store.change(async |changes| {
        let locked = changes.lock_collection(of_ben).await?.unwrap();
        changes.create_record(&locked, record.id, RecordWrite { data: "{}", written_by: None }).await
    });
    assert_eq!(taken.await.unwrap(), Err(RecordRefusal::NotFound));
}

#[tokio::test]
async fn a_query_without_app_and_owner_settings_returns_no_record() {
    let world = World::new().await;
    let shared = collection(&world, "one", "shared").await;
    let of = collection(&world, "two", "user").await;
    let ann = world.uuid();
    put(&world, shared, "{}").await;
    put(&world, RecordScope { owner: Some(ann), ..of }, "{}").await;
    assert_eq!(world.count("app_records").await, "2");
    let client = outsider(world.database.dsn()).await;
    client.batch_execute("SET ROLE callboard_app").await.unwrap();
    let count =
        async || -> i64 { client.query_one("SELECT count(*) FROM app_records", &[]).await.unwrap().get(0) };
    let seen = async |app: &str, owner: &str| {
        let names = format!("SET LOCAL callboard.app = '{app}'; SET LOCAL callboard.owner = '{owner}'");
        client.batch_execute(&format!("BEGIN; {names}")).await.unwrap();
        let seen = count().await;
        let changed = client.execute("UPDATE app_records SET data = data", &[]).await.unwrap();
        client.batch_execute("ROLLBACK").await.unwrap();
        assert_eq!(i64::try_from(changed).unwrap(), seen);
        seen
    };
    assert_eq!(count().await, 0);
    let (one, two) = (shared.app.to_string(), of.app.to_string());
    let ann = ann.to_string();
    for (app, owner, count) in [
        ("", "", 0),
        (one.as_str(), "", 0),
        ("", "shared", 0),
        (&one, "shared", 1),
        (&two, "shared", 0),
        (&one, &ann, 0),
        (&two, &ann, 1),
        (&two, &one, 0),
    ] {
        assert_eq!(seen(app, owner).await, count, "{app} {owner}");
    }
    assert_eq!(count().await, 0, "the names have ended");
    // Records of another app or owner cannot be written either.
    for (app, owner) in [("", ""), (two.as_str(), "shared"), (&one, &ann), (&one, "any")] {
        let names = format!("SET LOCAL callboard.app = '{app}'; SET LOCAL callboard.owner = '{owner}'");
        let row = format!(
            "INSERT INTO app_records (id, app_id, collection_id, version, data, created_at, updated_at)
             VALUES (gen_random_uuid(), '{one}', '{}', 1, '{{}}', now(), now())",
            shared.collection
        );
        let refused = client.batch_execute(&format!("BEGIN; {names}; {row}")).await.unwrap_err();
        client.batch_execute("ROLLBACK").await.unwrap();
        assert_eq!(refused.code().unwrap().code(), "42501", "{app} {owner}");
    }
}

#[tokio::test]
async fn app_and_owner_settings_end_with_their_transaction() {
    let world = World::new().await;
    let shared = collection(&world, "one", "shared").await;
    put(&world, shared, "{}").await;
    // Every pooled connection has had such a transaction.
    for _ in 0..8 {
        assert_eq!(data(&world, shared).await.unwrap().len(), 1);
    }
    assert_eq!(data(&world, RecordScope { app: Uuid::nil(), ..shared }).await, Err(RecordRefusal::Gone));
}

#[tokio::test]
async fn deleted_records_are_erased_after_thirty_days() {
    let clock = Arc::new(ManualClock::new(DateTime::UNIX_EPOCH + TimeDelta::days(20_000)));
    let world = World::at(clock.clone()).await;
    let shared = collection(&world, "one", "shared").await;
    let record = put(&world, shared, r#"{"a":1}"#).await;
    put(&world, shared, r#"{"b":2}"#).await;
    world
        .store
        .change(async |changes| {
            let locked = changes.lock_collection(shared).await?.unwrap();
            let record = changes.record(&locked, record.id).await?.unwrap();
            changes.delete_record(&locked, &record).await
        })
        .await
        .unwrap();
    let counts = "SELECT concat_ws(' ', record_count, record_bytes, tombstones) FROM app_collections";
    assert_eq!(world.database.scalar(counts).await, "1 7 1");
    clock.advance(DAY * 30 - Duration::from_secs(1));
    assert!(!world.store.forget_deleted_records().await.unwrap());
    assert_eq!(world.count("app_records").await, "2");
    clock.advance(Duration::from_secs(1));
    assert!(!world.store.forget_deleted_records().await.unwrap());
    assert_eq!(world.database.scalar(counts).await, "1 7 0");
    assert_eq!(data(&world, shared).await.unwrap(), [r#"{"b":2}"#]);
}

#[tokio::test]
async fn retention_does_not_wait_for_writers() {
    let clock = Arc::new(ManualClock::new(DateTime::UNIX_EPOCH + TimeDelta::days(20_000)));
    let world = World::at(clock.clone()).await;
    let (busy, idle) = (collection(&world, "one", "shared").await, collection(&world, "two", "shared").await);
    for scope in [busy, idle] {
        let record = put(&world, scope, r#"{"a":1}"#).await;
        let deleted = world.store.change(async |changes| {
            let locked = changes.lock_collection(scope).await?.unwrap();
            let record = changes.record(&locked, record.id).await?.unwrap();
            changes.delete_record(&locked, &record).await
        });
        deleted.await.unwrap();
    }
    let mut writer = world.store.begin().await.unwrap();
    writer.lock_collection(busy).await.unwrap().unwrap();
    clock.advance(DAY * 30);
    assert!(!world.store.forget_deleted_records().await.unwrap());
    assert_eq!(world.count("app_records").await, "1", "only the record of the collection being changed");
    writer.roll_back().await;
    assert!(!world.store.forget_deleted_records().await.unwrap());
    assert_eq!(world.count("app_records").await, "0");
}

#[tokio::test]
async fn retention_locks_only_collections_with_rows_to_delete() {
    let world = World::new().await;
    let shared = collection(&world, "one", "shared").await;
    let record = put(&world, shared, r#"{"a":1}"#).await;
    let deleted = world.store.change(async |changes| {
        let locked = changes.lock_collection(shared).await?.unwrap();
        let record = changes.record(&locked, record.id).await?.unwrap();
        changes.delete_record(&locked, &record).await
    });
    deleted.await.unwrap();
    // A locked row has this transaction in its header.
    let touched = "SELECT xmax FROM app_collections";
    let before = world.database.scalar(touched).await;
    assert!(!world.store.forget_deleted_records().await.unwrap());
    assert_eq!(world.database.scalar(touched).await, before);
}

#[tokio::test]
async fn records_of_deleted_collections_and_of_users_are_erased() {
    let world = World::new().await;
    let shared = collection(&world, "one", "shared").await;
    let of = collection(&world, "one", "user").await;
    let (ann, ben) = (world.uuid(), world.uuid());
    world
        .database
        .execute(&format!(
            "INSERT INTO users (id, email, created_at) SELECT id, id || '@example.org', now() FROM unnest(ARRAY['{ann}', '{ben}']::uuid[]) AS u (id)"
        ))
        .await
        .unwrap();
    let (of_ann, of_ben) = (RecordScope { owner: Some(ann), ..of }, RecordScope { owner: Some(ben), ..of });
    put(&world, shared, r#"{"of":"all"}"#).await;
    put(&world, of_ann, r#"{"of":"ann"}"#).await;
    put(&world, of_ben, r#"{"of":"ben"}"#).await;
    assert!(!world.store.erase_records_of_absent_users().await.unwrap());
    assert_eq!(data(&world, of_ann).await.unwrap().len(), 1);
    assert_eq!(data(&world, of_ben).await.unwrap().len(), 1);
    world.database.execute(&format!("DELETE FROM users WHERE id = '{ben}'")).await.unwrap();
    assert!(!world.store.erase_records_of_absent_users().await.unwrap());
    assert_eq!(data(&world, of_ben).await.unwrap().len(), 0);
    assert_eq!(data(&world, of_ann).await.unwrap().len(), 1);
    world.database.execute("DELETE FROM users").await.unwrap();
    assert!(!world.store.erase_records_of_absent_users().await.unwrap());
    world.store.change(async |changes| changes.delete_collection(shared.app, "shared").await).await.unwrap();
    assert_eq!(data(&world, shared).await, Err(RecordRefusal::Gone));
    assert!(!world.store.erase_records_of_deleted().await.unwrap());
    assert_eq!(world.count("app_records").await, "0");
    let counts = "SELECT sum(record_count + record_bytes + tombstones) FROM app_collections";
    assert_eq!(world.database.scalar(counts).await, "0");
}

#[tokio::test]
async fn a_collection_accepts_records_up_to_its_limit() {
    let world = World::new().await;
    let shared = collection(&world, "one", "shared").await;
    let sql = format!("UPDATE app_collections SET record_count = {}", MAX_COLLECTION_RECORDS - 1);
    world.database.execute(&sql).await.unwrap();
    let record = put(&world, shared, "{}").await;
    let full = world.store.change(async |changes| {
        let locked = changes.lock_collection(shared).await?.unwrap();
        changes.create_record(&locked, record.id, RecordWrite { data: "{}", written_by: None }).await
    });
    assert_eq!(full.await.unwrap(), Err(RecordRefusal::Full));
}

#[tokio::test]
async fn records_count_for_their_workspace() {
    let world = World::new().await;
    let shared = collection(&world, "one", "shared").await;
    let workspace = world.workspace().await;
    let used = async || {
        world.database.execute("DELETE FROM workspace_usage").await.unwrap();
        let now = DateTime::UNIX_EPOCH;
        assert!(world.store.measure_usage(now).await.unwrap());
        world.store.workspace_usage(workspace).await.unwrap().unwrap().bytes
    };
    let before = used().await;
    put(&world, shared, &format!(r#"{{"a":"{}"}}"#, "x".repeat(10_000))).await;
    let after = used().await;
    assert!((10_000..11_000).contains(&(after - before)), "{before} {after}");
}
