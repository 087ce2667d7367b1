//! Workflows.

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use kernel::{Clock, ManualClock};
use store::{Publication, StoreError, WorkflowChange, WorkflowRef};
use uuid::Uuid;

use crate::support::World;

fn handle(text: &str) -> WorkflowRef {
    WorkflowRef::parse(text)
}

#[tokio::test]
async fn a_workflow_is_found_by_id_and_by_handle() {
    let world = World::new().await;
    let (made, workspace) = (world.workflow("greeter").await.unwrap(), world.workspace().await);
    assert_eq!(made.tags, ["a"]);
    assert!(!made.is_public && made.latest_version.is_none() && made.published_at.is_none());
    for name in [handle("greeter"), handle(&made.id.to_string())] {
        let found = world.store.workflow(&name, workspace).await.unwrap().unwrap();
        assert_eq!((found.id, found.name.as_str()), (made.id, "The greeter"));
        assert_eq!(found.created_at, made.created_at);
    }
    for name in [handle("nobody"), handle(&world.uuid().to_string()), handle("")] {
        assert!(world.store.workflow(&name, workspace).await.unwrap().is_none());
    }
    assert!(world.store.workflow(&handle("greeter"), Uuid::nil()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_handle_that_the_database_cannot_store_is_not_found() {
    let world = World::new().await;
    let workspace = world.workspace().await;
    assert!(world.store.workflow(&handle("a\0b"), workspace).await.unwrap().is_none());
}

#[tokio::test]
async fn a_handle_is_unique() {
    let world = World::new().await;
    world.workflow("greeter").await.unwrap();
    let Err(StoreError::Taken(key)) = world.workflow("greeter").await else { panic!("it was created twice") };
    assert_eq!(key, "workflows_workspace_id_handle_key");
}

#[tokio::test]
async fn the_list_is_newest_first_and_leaves_archived_ones_out() {
    let world = World::new().await;
    let workspace = world.workspace().await;
    let mut made = Vec::new();
    for name in ["a", "b", "c"] {
        made.push(world.workflow(name).await.unwrap().id);
    }
    let archive = format!("UPDATE workflows SET archived_at = now() WHERE id = '{}'", made[1]);
    world.database.execute(&archive).await.unwrap();
    let ids = async |archived| -> Vec<Uuid> {
        world
            .store
            .workflows(workspace, archived, None, 1000)
            .await
            .unwrap()
            .iter()
            .map(|workflow| workflow.id)
            .collect()
    };
    assert_eq!(ids(false).await, [made[2], made[0]]);
    assert_eq!(ids(true).await, [made[2], made[1], made[0]]);
    assert!(world.store.workflows(Uuid::nil(), true, None, 1000).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_first_publication_stays_until_it_is_withdrawn() {
    let clock = ManualClock::new(DateTime::from_timestamp(1_795_000_000, 0).unwrap());
    let world = World::at(Arc::new(clock.clone())).await;
    let id = world.workflow("w").await.unwrap().id;
    let first = clock.now();
    let (published, outcome) =
        world.store.change(async |c| c.publish_workflow(id, Some(false), Some("ann")).await).await.unwrap();
    assert_eq!(outcome, Publication::New);
    assert!(published.is_public && !published.require_login);
    assert_eq!((published.published_at, published.published_by.as_deref()), (Some(first), Some("ann")));

    clock.advance(Duration::from_secs(60));
    let (again, outcome) =
        world.store.change(async |c| c.publish_workflow(id, Some(true), Some("bob")).await).await.unwrap();
    assert_eq!(outcome, Publication::Changed);
    assert!(again.is_public && again.require_login);
    assert_eq!((again.published_at, again.published_by.as_deref()), (Some(first), Some("ann")));
    assert_eq!(again.updated_at, clock.now());
    clock.advance(Duration::from_secs(60));
    let (unchanged, outcome) =
        world.store.change(async |c| c.publish_workflow(id, None, None).await).await.unwrap();
    assert_eq!((outcome, unchanged.updated_at), (Publication::Same, again.updated_at));
    assert!(unchanged.is_public && unchanged.require_login);

    let (private, was_public) = world.store.change(async |c| c.unpublish_workflow(id).await).await.unwrap();
    assert!(was_public && !private.is_public && !private.require_login);
    assert_eq!((private.published_at, private.published_by), (None, None));

    clock.advance(Duration::from_secs(60));
    let (published_again, outcome) =
        world.store.change(async |c| c.publish_workflow(id, None, Some("bob")).await).await.unwrap();
    assert_eq!(outcome, Publication::New);
    assert!(published_again.is_public && !published_again.require_login);
    assert_eq!(
        (published_again.published_at, published_again.published_by.as_deref()),
        (Some(clock.now()), Some("bob"))
    );
}

#[tokio::test]
async fn an_archived_workflow_is_private_and_read_only() {
    let clock = ManualClock::new(DateTime::from_timestamp(1_795_000_000, 0).unwrap());
    let world = World::at(Arc::new(clock.clone())).await;
    let id = world.workflow("w").await.unwrap().id;
    world.store.change(async |c| c.publish_workflow(id, Some(true), Some("ann")).await).await.unwrap();
    let at = clock.now();
    for first in [true, false] {
        let (archived, is_new) = world.store.change(async |c| c.archive_workflow(id).await).await.unwrap();
        assert_eq!(is_new, first);
        assert_eq!((archived.archived_at, archived.updated_at), (Some(at), at));
        assert!(!archived.is_public && !archived.require_login && archived.published_at.is_none());
        clock.advance(Duration::from_secs(60));
    }
    let published = world.store.change(async |c| c.publish_workflow(id, None, None).await).await;
    assert!(matches!(published, Err(StoreError::Archived)), "{published:?}");
    let saved =
        world.store.change(async |c| c.save_version(crate::versions::version(id, "a", 1)).await).await;
    assert!(matches!(saved, Err(StoreError::Archived)), "{saved:?}");
    let (private, was_public) = world.store.change(async |c| c.unpublish_workflow(id).await).await.unwrap();
    assert!(!private.is_public && !was_public);
    assert!(matches!(world.workflow("w").await, Err(StoreError::Taken(_))), "its handle stays reserved");
    for first in [true, false] {
        let (restored, is_new) = world.store.change(async |c| c.restore_workflow(id).await).await.unwrap();
        assert_eq!((is_new, restored.archived_at, restored.is_public), (first, None, false));
    }
    world.store.change(async |c| c.save_version(crate::versions::version(id, "a", 1)).await).await.unwrap();
}

#[tokio::test]
async fn withdrawing_an_unpublished_workflow_changes_nothing() {
    let clock = ManualClock::new(DateTime::from_timestamp(1_795_000_000, 0).unwrap());
    let world = World::at(Arc::new(clock.clone())).await;
    let made = world.workflow("w").await.unwrap();
    clock.advance(Duration::from_secs(60));
    let (same, _) = world.store.change(async |c| c.unpublish_workflow(made.id).await).await.unwrap();
    assert_eq!((same.id, same.updated_at), (made.id, made.updated_at));
}

#[tokio::test]
async fn a_change_updates_only_named_fields() {
    let clock = ManualClock::new(DateTime::from_timestamp(1_795_000_000, 0).unwrap());
    let world = World::at(Arc::new(clock.clone())).await;
    let made = world.workflow("w").await.unwrap();
    world.workflow("other").await.unwrap();
    clock.advance(Duration::from_secs(60));
    let same = WorkflowChange {
        name: Some(made.name.clone()),
        handle: Some("w".to_owned()),
        description: Some(None),
        ..WorkflowChange::default()
    };
    for nothing in [WorkflowChange::default(), same] {
        assert_eq!(
            world.store.change(async |c| c.change_workflow(made.id, nothing).await).await.unwrap(),
            made
        );
    }
    let change =
        WorkflowChange { description: Some(Some("It sorts.".to_owned())), ..WorkflowChange::default() };
    let changed = world.store.change(async |c| c.change_workflow(made.id, change).await).await.unwrap();
    assert_eq!((changed.description.as_deref(), changed.updated_at), (Some("It sorts."), clock.now()));
    assert_eq!((&changed.name, &changed.tags, &changed.chat), (&made.name, &made.tags, &made.chat));
    let taken = WorkflowChange { handle: Some("other".to_owned()), ..WorkflowChange::default() };
    let refused = world.store.change(async |c| c.change_workflow(made.id, taken.clone()).await).await;
    assert!(matches!(refused, Err(StoreError::Taken(_))), "{refused:?}");
    world.store.change(async |c| c.archive_workflow(made.id).await).await.unwrap();
    let refused = world.store.change(async |c| c.change_workflow(made.id, taken).await).await;
    assert!(matches!(refused, Err(StoreError::Archived)), "{refused:?}");
}
