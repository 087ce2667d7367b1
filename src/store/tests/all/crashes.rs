//! Crash counts for unfinished runs.

use store::batch::Batch;
use store::{CRASH_LIMIT, CRASH_SUSPECT, Lease};
use uuid::Uuid;

use crate::support::{Turn, World};

impl World {
    /// The writer's process crashes and starts again.
    async fn crash(&self, lease: Lease) -> Lease {
        self.store.take_lease(lease.writer_id, self.uuid()).await.unwrap().0
    }

    /// The run's crash count, as its next life reads it.
    async fn crashes(&self, lease: Lease, turn: &Turn) -> i32 {
        self.store.left_run(lease.writer_id, turn.run).await.unwrap().unwrap().crashes
    }
}

#[tokio::test]
async fn crashes_without_a_new_journal_row_are_counted() {
    let world = World::new().await;
    let (mut lease, turn) = (world.writer().await, world.turn());
    world.commit(lease, &turn.begin()).await.unwrap();
    for ends in 1..=CRASH_SUSPECT {
        lease = world.crash(lease).await;
        assert_eq!(world.crashes(lease, &turn).await, ends);
    }
    lease = world.crash(lease).await;
    assert_eq!(world.crashes(lease, &turn).await, CRASH_SUSPECT, "it has not executed");
    world.store.set_alone(turn.run, true).await.unwrap();
    assert!(!world.store.has_progressed(turn.run).await.unwrap());
    lease = world.crash(lease).await;
    assert_eq!(world.crashes(lease, &turn).await, CRASH_LIMIT);
}

#[tokio::test]
async fn a_journal_row_resets_the_crash_count() {
    let world = World::new().await;
    let (mut lease, turn) = (world.writer().await, world.turn());
    world.commit(lease, &turn.begin()).await.unwrap();
    for status in ["started", "succeeded"] {
        for _ in 0..CRASH_SUSPECT {
            lease = world.crash(lease).await;
        }
        world.store.set_alone(turn.run, true).await.unwrap();
        world.commit(lease, &Batch { steps: vec![turn.step(status)], ..Batch::default() }).await.unwrap();
        assert!(world.store.has_progressed(turn.run).await.unwrap());
        lease = world.crash(lease).await;
        assert_eq!(world.crashes(lease, &turn).await, 1, "{status}");
    }
}

#[tokio::test]
async fn a_shutdown_resets_the_crash_count_but_a_service_failure_does_not() {
    let world = World::new().await;
    let (mut lease, turn) = (world.writer().await, world.turn());
    world.commit(lease, &turn.begin()).await.unwrap();
    for (shutdown, ends) in [(false, 1), (false, 2), (true, 0), (false, 1)] {
        world.store.release_lease(lease, shutdown).await.unwrap();
        lease = world.crash(lease).await;
        assert_eq!(world.crashes(lease, &turn).await, ends);
    }
    // After an instance's shutdown, another one resumes its runs.
    let other = world.writer().await;
    for (shutdown, ends) in [(false, 2), (true, 0)] {
        world.store.release_lease(lease, shutdown).await.unwrap();
        assert_eq!(world.store.take_over_expired(other).await.unwrap(), [turn.run]);
        assert_eq!(world.crashes(other, &turn).await, ends);
        let back = format!("UPDATE runs SET writer_id = '{}'", lease.writer_id);
        lease = world.crash(lease).await;
        world.database.execute(&back).await.unwrap();
    }
}

#[tokio::test]
async fn only_unfinished_runs_outside_the_queue_are_counted() {
    let world = World::new().await;
    let lease = world.writer().await;
    let [ended, parked] = [world.turn(), world.turn()];
    for turn in [&ended, &parked] {
        world.commit(lease, &turn.begin()).await.unwrap();
    }
    world.commit(lease, &ended.end()).await.unwrap();
    let queue = format!(
        "INSERT INTO run_queue (run_id, workflow_id, turn) VALUES ('{}', '{}', false)",
        parked.run,
        Uuid::from_u128(1)
    );
    world.database.execute(&queue).await.unwrap();
    world.crash(lease).await;
    assert_eq!(world.count("run_crashes").await, "0");
}
