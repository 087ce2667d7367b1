//! Changes under a key: made once, with their response, in spite of failures in between.

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use kernel::ManualClock;
use store::{Changes, RequestKey, RequestState, Reserved, Store, StoredAnswer};
use uuid::Uuid;

use crate::support::World;

fn key(scope: &str, digest: &[u8]) -> RequestKey {
    RequestKey { scopes: vec![scope.to_owned()], key: "k".to_owned(), digest: digest.to_vec() }
}

fn answer(body: &str) -> StoredAnswer {
    StoredAnswer { status: 201, body: body.to_owned(), sealed: false }
}

async fn begin(store: &Store, key: RequestKey) -> Box<Changes> {
    match store.begin_request(key).await.unwrap() {
        RequestState::New(changes) => changes,
        RequestState::Answered(answer) => panic!("answered before: {answer:?}"),
        RequestState::Reused => panic!("reused"),
        RequestState::InProgress => panic!("in progress"),
    }
}

/// Publishes and responds.
async fn publish(store: &Store, key: RequestKey, workflow: Uuid, body: &str) {
    let mut changes = begin(store, key).await;
    changes.publish_workflow(workflow, None, None).await.unwrap();
    changes.commit(Some(&answer(body))).await.unwrap();
}

async fn is_public(world: &World) -> bool {
    world.database.scalar("SELECT is_public FROM workflows").await == "true"
}

#[tokio::test]
async fn a_change_and_its_answer_are_committed_together() {
    let world = World::new().await;
    let workflow = world.workflow("w").await.unwrap().id;
    let (one, body) = (key("s", b"one"), r#"{"b":"é\u0000\"", "a":1.0}"#);
    assert_eq!(world.store.answered(&one).await.unwrap(), Reserved::New);
    publish(&world.store, one.clone(), workflow, body).await;
    assert!(is_public(&world).await);
    assert_eq!(world.store.answered(&one).await.unwrap(), Reserved::Same(answer(body)));
    assert!(
        matches!(world.store.begin_request(one).await.unwrap(), RequestState::Answered(known) if known == answer(body))
    );
    let other_body = key("s", b"two");
    assert_eq!(world.store.answered(&other_body).await.unwrap(), Reserved::Different);
    assert!(matches!(world.store.begin_request(other_body).await.unwrap(), RequestState::Reused));
    begin(&world.store, key("t", b"two")).await.roll_back().await;
}

#[tokio::test]
async fn an_aborted_request_leaves_neither_its_change_nor_its_key() {
    let world = World::new().await;
    let workflow = world.workflow("w").await.unwrap().id;
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                WHERE datname = current_database() AND state = 'idle in transaction'";
    for killed in [false, true] {
        let mut changes = begin(&world.store, key("s", b"one")).await;
        changes.publish_workflow(workflow, None, None).await.unwrap();
        if killed {
            assert_eq!(world.database.scalar(kill).await, "1");
            changes.commit(Some(&answer("{}"))).await.unwrap_err();
        } else {
            drop(changes);
        }
        assert!(!is_public(&world).await);
        world.assert_free(&key("s", b"other")).await;
    }
    publish(&world.store, key("s", b"one"), workflow, "{}").await;
    assert!(is_public(&world).await);
}

impl World {
    /// The lock ends with its connection, a moment later.
    async fn assert_free(&self, key: &RequestKey) {
        crate::support::until("the key to be free", async || {
            match self.store.begin_request(key.clone()).await.unwrap() {
                RequestState::New(changes) => {
                    changes.roll_back().await;
                    true
                }
                RequestState::InProgress => false,
                RequestState::Answered(_) | RequestState::Reused => panic!("the dead request left its key"),
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_duplicate_of_a_running_request_is_in_progress() {
    let world = World::new().await;
    let workflow = world.workflow("w").await.unwrap().id;
    let mut first = begin(&world.store, key("s", b"one")).await;
    first.publish_workflow(workflow, None, None).await.unwrap();
    for digest in [b"one", b"two"] {
        let twin = world.store.begin_request(key("s", digest)).await.unwrap();
        assert!(matches!(twin, RequestState::InProgress));
    }
    begin(&world.store, key("another caller", b"one")).await.roll_back().await;
    first.commit(Some(&answer("{}"))).await.unwrap();
    let twin = world.store.begin_request(key("s", b"one")).await.unwrap();
    assert!(matches!(twin, RequestState::Answered(known) if known == answer("{}")));
}

#[tokio::test]
async fn an_answer_is_found_in_each_scope_of_its_key() {
    let world = World::new().await;
    let workflow = world.workflow("w").await.unwrap().id;
    let both = RequestKey { scopes: vec!["s".to_owned(), "t".to_owned()], ..key("s", b"one") };
    publish(&world.store, both, workflow, "{}").await;
    for scope in ["s", "t"] {
        assert_eq!(world.store.answered(&key(scope, b"one")).await.unwrap(), Reserved::Same(answer("{}")));
        assert_eq!(world.store.answered(&key(scope, b"two")).await.unwrap(), Reserved::Different);
    }
}

#[tokio::test]
async fn an_answer_is_kept_for_a_day() {
    let clock = ManualClock::new(DateTime::from_timestamp(1_795_000_000, 0).unwrap());
    let world = World::at(Arc::new(clock.clone())).await;
    let workflow = world.workflow("w").await.unwrap().id;
    let one = key("s", b"one");
    publish(&world.store, one.clone(), workflow, "1").await;
    clock.advance(Duration::from_secs(24 * 60 * 60));
    assert_eq!(world.store.answered(&one).await.unwrap(), Reserved::Same(answer("1")));
    clock.advance(Duration::from_secs(1));
    assert_eq!(world.store.answered(&one).await.unwrap(), Reserved::New);
    publish(&world.store, key("s", b"two"), workflow, "2").await;
    assert_eq!(world.store.answered(&key("s", b"two")).await.unwrap(), Reserved::Same(answer("2")));
}
