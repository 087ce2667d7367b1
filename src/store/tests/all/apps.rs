//! Apps: their aliases, and the data left after a deletion.

use std::sync::Arc;
use std::time::Duration;

use kernel::ManualClock;
use store::{AppChange, BlobPart, NewApp, NewWorkspace, StoreError, StoredApp};
use uuid::Uuid;

use crate::support::{World, outsider, until};

const DAY: Duration = Duration::from_secs(86_400);

async fn make(world: &World, workspace: Uuid, alias: &str) -> Result<StoredApp, StoreError> {
    let new = NewApp { workspace, alias, name: "An app", access: "public" };
    world.store.change(async |changes| changes.create_app(new).await).await
}

async fn delete(world: &World, app: &StoredApp) -> bool {
    world.store.change(async |changes| changes.delete_app(app.id).await).await.unwrap()
}

#[tokio::test]
async fn an_app_is_found_by_its_id_and_its_alias_until_it_is_deleted() {
    let world = World::new().await;
    let here = world.workspace().await;
    let (first, second) =
        (make(&world, here, "first").await.unwrap(), make(&world, here, "second").await.unwrap());
    assert_eq!(world.store.app("first").await.unwrap().as_ref(), Some(&first));
    assert_eq!(world.store.app(&second.id.to_string()).await.unwrap().as_ref(), Some(&second));
    for missing in ["third", "First", "a\0b", &Uuid::nil().to_string()] {
        assert_eq!(world.store.app(missing).await.unwrap(), None);
    }
    assert_eq!(world.store.apps(here, None, 1).await.unwrap(), std::slice::from_ref(&second));
    assert_eq!(world.store.apps(here, Some(second.id), 9).await.unwrap(), std::slice::from_ref(&first));
    assert_eq!(world.store.apps(Uuid::nil(), None, 9).await.unwrap(), []);
    let change = AppChange { name: Some("New".to_owned()), access: None };
    let changed = world.store.change(async |changes| changes.change_app(first.id, change).await).await;
    let changed = changed.unwrap().unwrap();
    assert_eq!((changed.name.as_str(), changed.access.as_str()), ("New", "public"));
    assert!(changed.updated_at >= first.updated_at);
    assert!(delete(&world, &first).await && !delete(&world, &first).await);
    assert_eq!(world.store.app("first").await.unwrap(), None);
    let change = AppChange { name: Some("Newer".to_owned()), access: None };
    let gone = world.store.change(async |changes| changes.change_app(first.id, change).await).await;
    assert_eq!(gone.unwrap(), None);
}

#[tokio::test]
async fn an_alias_is_unique_in_the_installation_and_stays_taken_for_thirty_days() {
    let clock = Arc::new(ManualClock::new(chrono::DateTime::UNIX_EPOCH + chrono::TimeDelta::days(20_000)));
    let world = World::at(clock.clone()).await;
    let here = world.workspace().await;
    let new = NewWorkspace { slug: "other", name: "Other", owner: None };
    let other = world.store.change(async |changes| changes.create_workspace(new).await).await.unwrap().id;
    let app = make(&world, here, "taken").await.unwrap();
    let taken = async |workspace| match make(&world, workspace, "taken").await {
        Err(StoreError::Taken(key)) => key == "apps_alias_key",
        Ok(_) | Err(_) => false,
    };
    assert!(taken(here).await && taken(other).await);
    assert!(delete(&world, &app).await);
    assert!(taken(here).await && taken(other).await);
    // Retention erases the app and keeps its alias.
    assert!(!world.store.erase_deleted_apps().await.unwrap());
    clock.advance(DAY * 30 - Duration::from_secs(1));
    assert!(!world.store.erase_deleted_apps().await.unwrap());
    assert!(taken(other).await, "a second is left");
    clock.advance(Duration::from_secs(1));
    make(&world, other, "taken").await.unwrap();
    assert_eq!(world.count("apps").await, "2");
    world.store.erase_deleted_apps().await.unwrap();
    assert_eq!(world.count("apps").await, "1");
    assert_eq!(world.store.app("taken").await.unwrap().unwrap().workspace_id, other);
}

#[tokio::test]
async fn data_of_a_deleted_app_is_erased_in_parts() {
    let world = World::new().await;
    let here = world.workspace().await;
    let (kept, gone) = (make(&world, here, "kept").await.unwrap(), make(&world, here, "gone").await.unwrap());
    let digest = world.store.put_blob(b"a file").await.unwrap();
    for (app, deployments) in [(&kept, 1), (&gone, 5)] {
        for _ in 0..deployments {
            let id = world.uuid();
            let sql = format!(
                "INSERT INTO app_deployments VALUES ('{id}', '{0}', '{here}', '\\x00', 1, 1, 1, true, '{{}}', true, '{{}}', true,
                     false, '[]', false, '{{}}', NULL, now());
                 INSERT INTO app_files VALUES ('{id}', 'index.html', 6, 'text/html', '\\x{1}', NULL);
                 INSERT INTO blob_uses VALUES ('\\x{1}', 'app_file', '{id}', '{here}')",
                app.id,
                hex::encode(digest)
            );
            world.database.execute(&sql).await.unwrap();
        }
        let sql = format!(
            "INSERT INTO app_bindings VALUES ('{0}', 'run', '{here}', '{{}}', now(), now());
             INSERT INTO app_collections VALUES ('{1}', '{0}', '{here}', 'records', 'shared', '{{}}', NULL, now(), NULL)",
            app.id,
            world.uuid()
        );
        world.database.execute(&sql).await.unwrap();
    }
    assert!(delete(&world, &gone).await);
    let mut parts = 1;
    while world.store.erase_deleted_apps().await.unwrap() {
        parts += 1;
    }
    assert_eq!(parts, 3);
    for table in ["app_deployments", "app_files", "blob_uses", "app_bindings", "app_collections"] {
        assert_eq!(world.count(table).await, "1", "{table}");
    }
    let erased = world.database.scalar("SELECT name FROM apps WHERE erased_at IS NOT NULL").await;
    assert_eq!(erased, "");
}

#[tokio::test]
async fn the_apps_of_a_workspace_are_deleted_together() {
    let world = World::new().await;
    let here = world.workspace().await;
    let new = NewWorkspace { slug: "other", name: "Other", owner: None };
    let other = world.store.change(async |changes| changes.create_workspace(new).await).await.unwrap().id;
    make(&world, here, "a").await.unwrap();
    make(&world, other, "b").await.unwrap();
    make(&world, other, "c").await.unwrap();
    let deleted = world.store.change(async |changes| changes.delete_apps_of(other).await).await.unwrap();
    assert_eq!(deleted.len(), 2);
    assert!(world.store.app("b").await.unwrap().is_none() && world.store.app("a").await.unwrap().is_some());
}

#[tokio::test]
async fn a_blob_stored_during_its_deletion_keeps_its_chunks() {
    let world = World::new().await;
    let digest: [u8; 32] = ring::digest::digest(&ring::digest::SHA256, b"hello").as_ref().try_into().unwrap();
    let part = BlobPart { digest, size: 5, number: 0, bytes: b"hello".to_vec() };
    world.store.put_blob_parts(vec![part.clone()]).await.unwrap();
    let deleting = outsider(world.database.dsn()).await;
    deleting.batch_execute("BEGIN; DELETE FROM blobs").await.unwrap();
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    let (stored, ()) = tokio::join!(world.store.put_blob_parts(vec![part]), async {
        until("the upload waits", async || world.database.scalar(waiting).await != "0").await;
        deleting.batch_execute("COMMIT").await.unwrap();
    });
    stored.unwrap();
    assert_eq!(world.store.blob(&digest).await.unwrap().as_deref(), Some(b"hello".as_slice()));
}
