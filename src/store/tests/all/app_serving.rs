//! Deployment files: retention and compressed forms.

use std::sync::Arc;
use std::time::Duration;

use kernel::ManualClock;
use store::{EncodedContent, NewApp, StoredApp};
use uuid::Uuid;

use crate::support::World;

const HOUR: Duration = Duration::from_secs(3_600);

async fn make(world: &World) -> StoredApp {
    let workspace = world.workspace().await;
    let new = NewApp { workspace, alias: "desk", name: "Desk", access: "public" };
    world.store.change(async |changes| changes.create_app(new).await).await.unwrap()
}

/// A deployment with a file.
async fn deploy(world: &World, app: &StoredApp, path: &str, content: &[u8]) -> Uuid {
    let (id, digest) = (world.uuid(), world.store.put_blob(content).await.unwrap());
    let sql = format!(
        "INSERT INTO app_deployments VALUES ('{id}', '{}', '{}', '\\x01', 1, 1, 1, true, '{{}}', false, '{{}}', false, false,
             '[]', false, '{{}}', NULL, now());
         INSERT INTO app_files VALUES ('{id}', '{path}', {}, 'text/javascript; charset=utf-8', '\\x{}', NULL);
         INSERT INTO blob_uses VALUES ('\\x{3}', 'app_file', '{id}', '{1}')",
        app.id,
        app.workspace_id,
        content.len(),
        hex::encode(digest)
    );
    world.database.execute(&sql).await.unwrap();
    id
}

async fn release(world: &World, app: &StoredApp, deployment: Uuid, clock: &ManualClock) -> Uuid {
    let (id, at) = (world.uuid(), kernel::Clock::now(clock).to_rfc3339());
    let sql = format!(
        "INSERT INTO app_releases SELECT '{id}', '{}', '{}', 1 + coalesce(max(number), 0), '{deployment}', NULL, 'none', '{{}}',
             '{{}}', '{{}}', false, '[]', false, NULL, '{at}' FROM app_releases;
         UPDATE apps SET active_release = '{id}'",
        app.id, app.workspace_id
    );
    world.database.execute(&sql).await.unwrap();
    id
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(chrono::DateTime::UNIX_EPOCH + chrono::TimeDelta::days(20_000)))
}

async fn forget(world: &World) {
    while world.store.forget_old_deployments().await.unwrap() {}
}

#[tokio::test]
async fn the_newest_deployments_and_those_of_recent_releases_keep_their_files() {
    let clock = clock();
    let world = World::at(clock.clone()).await;
    let app = make(&world).await;
    let mut deployments = Vec::new();
    for number in 0..70 {
        deployments.push(deploy(&world, &app, "a.js", format!("{number}").as_bytes()).await);
    }
    // Released long ago, then ten more, then one: the first one is active again.
    for deployment in &deployments[..12] {
        release(&world, &app, *deployment, &clock).await;
    }
    clock.advance(HOUR * 2);
    release(&world, &app, deployments[0], &clock).await;
    forget(&world).await;
    let kept = async |deployment: &Uuid| !world.store.served_files(*deployment).await.unwrap().is_empty();
    let mut found = Vec::new();
    for (number, deployment) in deployments.iter().enumerate() {
        if kept(deployment).await {
            found.push(number);
        }
    }
    // 0 is active; 3 to 11 are in the last ten releases; 11 was active within the last hour; 20 to 69 are the
    // newest.
    let expected: Vec<usize> = std::iter::once(0).chain(3..12).chain(20..70).collect();
    assert_eq!(found, expected);
    assert_eq!(world.count("app_deployments WHERE available").await, "60");
    assert_eq!(world.count("blob_uses").await, "60");
    // Many releases with one deployment: the one before them was active until they started.
    for _ in 0..12 {
        release(&world, &app, deployments[69], &clock).await;
    }
    forget(&world).await;
    assert!(kept(&deployments[0]).await, "it was active within the last hour");
    assert!(!kept(&deployments[3]).await);
    clock.advance(HOUR);
    forget(&world).await;
    assert!(!kept(&deployments[0]).await);
    assert_eq!(world.count("app_deployments WHERE available").await, "50");
}

#[tokio::test]
async fn files_of_an_earlier_release_stay_while_its_pages_may_be_open() {
    let clock = clock();
    let world = World::at(clock.clone()).await;
    let app = make(&world).await;
    let first = deploy(&world, &app, "one.js", b"one").await;
    let second = deploy(&world, &app, "two.js", b"two").await;
    release(&world, &app, first, &clock).await;
    clock.advance(HOUR);
    let between = release(&world, &app, second, &clock).await;
    let active = release(&world, &app, first, &clock).await;
    let now = kernel::Clock::now(&*clock);
    let find = async |release, path: &str, since| {
        let found = world.store.earlier_file(app.id, release, path, since).await.unwrap();
        found.map(|file| file.path)
    };
    let before = now - chrono::TimeDelta::seconds(1);
    assert_eq!(find(active, "two.js", before).await.as_deref(), Some("two.js"));
    assert_eq!(find(active, "one.js", before).await.as_deref(), Some("one.js"));
    assert_eq!(find(active, "two.js", now).await, None);
    assert_eq!(find(between, "one.js", before).await.as_deref(), Some("one.js"));
    assert_eq!(find(between, "two.js", before).await, None, "only from earlier releases");
    world.database.execute("UPDATE app_files SET policy = 'p'").await.unwrap();
    assert_eq!(find(active, "two.js", before).await, None, "documents are those of the active release");
}

#[tokio::test]
async fn compressed_files_are_kept_while_their_deployment_is_used() {
    let clock = clock();
    let world = World::at(clock.clone()).await;
    let app = make(&world).await;
    let text = b"text ".repeat(1_000);
    let first = deploy(&world, &app, "a.js", &text).await;
    assert!(world.store.deployments_to_encode(9).await.unwrap().is_empty());
    release(&world, &app, first, &clock).await;
    assert_eq!(world.store.deployments_to_encode(9).await.unwrap(), [first]);
    let pending_files = world.store.files_to_encode(first).await.unwrap();
    assert_eq!(pending_files.len(), 1);
    let encodings = EncodedContent { br: Some(b"br".to_vec()), gzip: None };
    world.store.store_encodings(first, &pending_files[0].digest, &encodings).await.unwrap();
    let file = world.store.served_files(first).await.unwrap().remove(0);
    assert_eq!((file.br_size, &file.gzip, file.awaits_encoding), (Some(2), &None, false));
    assert_eq!(world.count("blob_uses").await, "2");
    assert!(world.store.deployments_to_encode(9).await.unwrap().is_empty());
    // Another deployment with the same content reuses them.
    let second = deploy(&world, &app, "b.js", &text).await;
    assert!(world.store.served_files(second).await.unwrap()[0].awaits_encoding);
    assert_eq!(world.store.files_to_encode(second).await.unwrap(), []);
    let copied = world.store.served_files(second).await.unwrap().remove(0);
    assert_eq!((copied.br, copied.br_size, copied.awaits_encoding), (file.br, Some(2), false));
    assert_eq!(world.count("blob_uses").await, "4");
    // Nothing is stored for a deployment whose files are deleted.
    world.database.execute("UPDATE app_deployments SET available = false").await.unwrap();
    let other = EncodedContent { br: Some(b"other".to_vec()), gzip: None };
    world.store.store_encodings(first, &pending_files[0].digest, &other).await.unwrap();
    assert_eq!(
        world.store.blob_part(&pending_files[0].digest.clone().try_into().unwrap(), 0, 9).await.unwrap(),
        text
    );
    assert_eq!(world.count("blob_uses").await, "4");
}

#[tokio::test]
async fn workspaces_take_turns_in_the_compression_of_deployments() {
    let clock = clock();
    let world = World::at(clock.clone()).await;
    let (own, other) = (world.workspace().await, world.uuid());
    world
        .database
        .execute(&format!(
            "INSERT INTO workspaces (id, slug, name, created_at) SELECT '{other}', 'other', name, created_at FROM workspaces LIMIT 1"
        ))
        .await
        .unwrap();
    let text = b"text ".repeat(1_000);
    let mut deployments = Vec::new();
    for (alias, workspace) in [("a", own), ("b", own), ("c", own), ("d", other)] {
        let new = NewApp { workspace, alias, name: "App", access: "public" };
        let app = world.store.change(async |changes| changes.create_app(new).await).await.unwrap();
        let deployment = deploy(&world, &app, "a.js", &text).await;
        release(&world, &app, deployment, &clock).await;
        deployments.push((app, deployment));
    }
    // The helper makes a release the active one for each app.
    for (app, deployment) in &deployments {
        let sql = format!(
            "UPDATE apps SET active_release = (SELECT id FROM app_releases WHERE deployment_id = '{deployment}') WHERE id = '{}'",
            app.id
        );
        world.database.execute(&sql).await.unwrap();
    }
    let [a, b, c, d] = [0, 1, 2, 3].map(|n: usize| deployments[n].1);
    assert_eq!(world.store.deployments_to_encode(9).await.unwrap(), [a, d, b, c]);
    assert_eq!(world.store.deployments_to_encode(2).await.unwrap(), [a, d]);
}
