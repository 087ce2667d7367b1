//! The pool: when it is exhausted, and when the server closes connections.

use std::time::Duration;

use futures_util::future::join_all;
use kernel::{Clock, SystemClock};
use store::{LaneError, StoreError};

use crate::support::{World, outsider, until};

const WAITING: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
const KILL: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                    WHERE datname = current_database() AND pid <> pg_backend_pid()";
const OTHERS: &str = "SELECT count(*) FROM pg_stat_activity \
                      WHERE datname = current_database() AND pid <> pg_backend_pid()";

#[tokio::test]
async fn a_busy_pool_reports_it_after_five_seconds() {
    let world = World::new().await;
    let mut outsider = outsider(world.database.dsn()).await;
    let held = outsider.transaction().await.unwrap();
    held.batch_execute("LOCK TABLE workspaces IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let busy: Vec<_> = (0..4)
        .map(|_| {
            let store = world.store.clone();
            tokio::spawn(async move { store.workspace_id("default").await })
        })
        .collect();
    until("all connections are busy", async || world.database.scalar(WAITING).await == "4").await;
    let clock = SystemClock::new();
    let error = world.store.ping().await.unwrap_err();
    let waited = clock.monotonic();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    assert_eq!(error.code(), wire::ErrorCode::DatabaseUnavailable);
    assert!((Duration::from_millis(4_900)..Duration::from_secs(60)).contains(&waited), "{waited:?}");
    // The lanes have separate connections.
    world.store.lane().await.unwrap();
    held.rollback().await.unwrap();
    for answer in join_all(busy).await {
        assert!(answer.unwrap().unwrap().is_some());
    }
    world.store.ping().await.unwrap();
}

#[tokio::test]
async fn a_server_that_has_become_a_standby_is_unavailable_and_its_connections_are_replaced() {
    let world = World::new().await;
    let name = world.database.scalar("SELECT quote_ident(current_database())").await;
    let writes = format!("ALTER DATABASE {name} SET default_transaction_read_only");
    world.database.execute(&format!("{writes} = on")).await.unwrap();
    world.database.execute(KILL).await.unwrap();
    until("they are gone", async || world.database.scalar(OTHERS).await == "0").await;
    until("connections to be new", async || {
        matches!(world.workflow("w").await, Err(StoreError::Unavailable(reason)) if reason.contains("read-only"))
    })
    .await;
    let error = world.store.ping().await.unwrap_err();
    assert_eq!(error.code(), wire::ErrorCode::DatabaseUnavailable);
    let outsider = outsider(world.database.dsn()).await;
    outsider.batch_execute("SET default_transaction_read_only = off").await.unwrap();
    outsider.batch_execute(&format!("{writes} = off")).await.unwrap();
    until("connections that write", async || world.store.ping().await.is_ok()).await;
    world.workflow("w").await.unwrap();
}

#[tokio::test]
async fn connections_that_the_server_ended_are_replaced() {
    let world = World::new().await;
    for _ in 0..3 {
        for answer in join_all((0..4).map(|_| world.store.ping())).await {
            answer.unwrap();
        }
        world.database.execute(KILL).await.unwrap();
        until("they are gone", async || world.database.scalar(OTHERS).await == "0").await;
        let mut failed = 0;
        for _ in 0..8 {
            if let Err(error) = world.store.ping().await {
                assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
                failed += 1;
            }
        }
        // Each broken connection is detected at most once.
        assert!(failed <= 4, "{failed} of 8 calls failed");
    }
}

#[tokio::test]
async fn a_query_whose_connection_is_ended_is_unavailable() {
    let world = World::new().await;
    let mut outsider = outsider(world.database.dsn()).await;
    let held = outsider.transaction().await.unwrap();
    held.batch_execute("LOCK TABLE workspaces IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let store = world.store.clone();
    let query = tokio::spawn(async move { store.workspace_id("default").await });
    until("the query waits", async || world.database.scalar(WAITING).await == "1").await;
    let kill = format!("{KILL} AND wait_event_type = 'Lock'");
    world.database.execute(&kill).await.unwrap();
    let error = query.await.unwrap().unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    held.rollback().await.unwrap();
    // The pool may not have noticed its end yet.
    let found = match world.store.workspace_id("default").await {
        Err(StoreError::Unavailable(_)) => world.store.workspace_id("default").await,
        other => other,
    };
    assert!(found.unwrap().is_some());
}

#[tokio::test]
async fn a_batch_is_repeated_on_a_new_lane_after_its_connection_ended() {
    let world = World::new().await;
    let (lease, turn) = (world.writer().await, world.turn());
    let mut lane = world.store.lane().await.unwrap();
    lane.commit(lease, &turn.begin()).await.unwrap();

    // First while idle, then in the middle of a commit.
    world.database.execute(KILL).await.unwrap();
    until("it is gone", async || world.database.scalar(OTHERS).await == "0").await;
    for _ in 0..2 {
        let error = lane.commit(lease, &turn.end()).await.unwrap_err();
        assert!(matches!(error, LaneError::Unavailable(_)), "{error:?}");
    }
    let mut lane = world.store.lane().await.unwrap();
    let mut outsider = outsider(world.database.dsn()).await;
    let held = outsider.transaction().await.unwrap();
    held.batch_execute("SELECT FROM leases FOR UPDATE").await.unwrap();
    let commit = tokio::spawn(async move { lane.commit(lease, &turn.end()).await });
    until("the commit waits", async || world.database.scalar(WAITING).await == "1").await;
    world.database.execute(&format!("{KILL} AND wait_event_type = 'Lock'")).await.unwrap();
    let error = commit.await.unwrap().unwrap_err();
    assert!(matches!(error, LaneError::Unavailable(_)), "{error:?}");
    held.rollback().await.unwrap();
    world.commit(lease, &turn.end()).await.unwrap();
}
