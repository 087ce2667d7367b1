//! A writer whose lease has passed to another writer writes nothing.

use store::{LaneError, Lease, RunState};

use crate::support::{World, outsider, until};

#[tokio::test]
async fn a_stale_lease_writes_nothing() {
    let world = World::new().await;
    let (old, turn) = (world.writer().await, world.turn());
    let mut lane = world.store.lane().await.unwrap();
    lane.commit(old, &turn.begin()).await.unwrap();
    let before = world.everything().await;
    let (new, _) = world.store.take_lease(old.writer_id, uuid::Uuid::nil()).await.unwrap();
    assert!(new.epoch > old.epoch);
    let unknown = Lease { writer_id: world.uuid(), epoch: 1 };
    for lease in [old, unknown] {
        for batch in [turn.end(), world.turn().begin()] {
            assert!(matches!(lane.commit(lease, &batch).await, Err(LaneError::Fenced)));
        }
    }
    assert_eq!(world.everything().await, before);
    lane.commit(new, &turn.end()).await.unwrap();
    assert_eq!(world.store.run(turn.run).await.unwrap().unwrap().status, RunState::Succeeded);
}

#[tokio::test]
async fn a_commit_waiting_for_a_takeover_is_fenced() {
    let world = World::new().await;
    let (lease, turn) = (world.writer().await, world.turn());
    let mut lane = world.store.lane().await.unwrap();
    lane.commit(lease, &turn.begin()).await.unwrap();
    let before = world.everything().await;
    let mut outsider = outsider(world.database.dsn()).await;
    let takeover = outsider.transaction().await.unwrap();
    takeover.batch_execute("UPDATE leases SET epoch = epoch + 1").await.unwrap();
    let commit = tokio::spawn(async move { lane.commit(lease, &turn.end()).await });
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    until("the commit waits", async || world.database.scalar(waiting).await == "1").await;
    takeover.commit().await.unwrap();
    assert!(matches!(commit.await.unwrap(), Err(LaneError::Fenced)));
    assert_eq!(world.everything().await, before);
}
