//! Versions.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use store::NewVersion;
use uuid::Uuid;

use crate::support::{World, outsider, pause, until};

/// A version with the graph `graph` and the prompts number `config`.
pub(crate) fn version(workflow_id: Uuid, graph: &str, config: u8) -> NewVersion {
    NewVersion {
        workflow_id,
        digest: format!("{graph} {config}").into_bytes(),
        // Accepted by json and rejected by jsonb.
        graph: json!({"name": graph, "text": "a\0b"}),
        runnable_config: json!({"config": config}).as_object().cloned(),
        metadata: json!({"from": "test"}).as_object().cloned().unwrap(),
        notes: Some("new".to_owned()),
        created_by: None,
    }
}

#[tokio::test]
async fn the_same_content_is_the_same_version() {
    let world = World::new().await;
    let id = world.workflow("w").await.unwrap().id;
    let (first, new) = world.store.change(async |c| c.save_version(version(id, "a", 1)).await).await.unwrap();
    assert_eq!((first.number, new), (Some(1), true));
    let (same, new) = world.store.change(async |c| c.save_version(version(id, "a", 1)).await).await.unwrap();
    assert_eq!((same.id, same.number, new), (first.id, Some(1), false));
    let (other, new) = world.store.change(async |c| c.save_version(version(id, "a", 2)).await).await.unwrap();
    assert_eq!((other.number, new), (Some(2), true));
    assert_ne!(other.digest, first.digest);
    // Saving an older content again is a revert.
    let (revert, new) =
        world.store.change(async |c| c.save_version(version(id, "a", 1)).await).await.unwrap();
    assert_eq!((revert.number, new), (Some(3), true));
    assert_eq!(revert.digest, first.digest);
    let workflow = world.store.workflow(&store::WorkflowRef::Id(id), Uuid::nil()).await.unwrap().unwrap();
    assert_eq!((workflow.latest_version, workflow.live_version), (Some(3), Some(3)));
}

/// A graph from a request is the live version if that has the same content.
#[tokio::test]
async fn a_draft_with_the_content_of_several_versions_is_the_live_one() {
    let world = World::new().await;
    let id = world.workflow("w").await.unwrap().id;
    for config in [1, 2, 1, 2] {
        world.store.change(async |c| c.save_version(version(id, "a", config)).await).await.unwrap();
    }
    let draft = async || {
        let saved = world.store.change(async |c| c.save_draft(version(id, "a", 1)).await).await;
        saved.unwrap().number
    };
    assert_eq!(draft().await, Some(3));
    let sql = "UPDATE workflows SET live_version = 1";
    outsider(world.database.dsn()).await.batch_execute(sql).await.unwrap();
    assert_eq!(draft().await, Some(1));
}

#[tokio::test]
async fn a_version_reads_back_as_it_was_saved() {
    let world = World::new().await;
    let id = world.workflow("w").await.unwrap().id;
    let saved = world.store.change(async |c| c.save_version(version(id, "a", 1)).await).await.unwrap().0;
    let read = world.store.version(id, 1).await.unwrap().unwrap();
    let expected = version(id, "a", 1);
    assert_eq!((read.id, read.created_at), (saved.id, saved.created_at));
    assert_eq!((read.graph, read.runnable_config), (expected.graph, expected.runnable_config));
    assert_eq!((read.metadata, read.notes), (expected.metadata, expected.notes));
    assert_eq!(world.store.version_by_id(saved.id).await.unwrap().unwrap().number, Some(1));
    assert!(world.store.version(id, 2).await.unwrap().is_none());
    assert!(world.store.version_by_id(world.uuid()).await.unwrap().is_none());
}

#[tokio::test]
async fn versions_saved_at_once_are_numbered_without_gaps() {
    let world = World::new().await;
    let id = world.workflow("w").await.unwrap().id;
    let saves = (0..20).map(|config| {
        let store = world.store.clone();
        tokio::spawn(async move {
            store.change(async |c| c.save_version(version(id, "a", config)).await).await.unwrap().0.number
        })
    });
    let numbers: BTreeSet<Option<i32>> = join_all(saves).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(numbers, (1..=20).map(Some).collect());
}

#[tokio::test]
async fn a_caller_that_disconnects_leaves_no_lock() {
    let world = World::new().await;
    let id = world.workflow("w").await.unwrap().id;
    let mut outsider = outsider(world.database.dsn()).await;
    let held = outsider.transaction().await.unwrap();
    held.batch_execute("SELECT FROM workflows FOR UPDATE").await.unwrap();
    let store = world.store.clone();
    let leaver = tokio::spawn(async move {
        store.change(async |c| c.save_version(version(id, "a", 1)).await).await.map(drop)
    });
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    until("the save waits", async || world.database.scalar(waiting).await == "1").await;
    leaver.abort();
    held.rollback().await.unwrap();
    let open =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'";
    pause(Duration::from_millis(200)).await;
    assert_eq!(world.database.scalar(open).await, "0", "a transaction is still open");
    assert_eq!(
        world.store.change(async |c| c.save_version(version(id, "a", 1)).await).await.unwrap().0.number,
        Some(1)
    );
}
