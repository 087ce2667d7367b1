//! Turn starts in a thread while several instances own turns.

use store::batch::{Batch, QueueRow, RunUpdate};
use store::{Lease, RunState, TurnStart};
use uuid::Uuid;

use crate::support::{Turn, World};

/// A later turn in the same thread.
async fn later(world: &World, lease: Lease, thread: &Turn) -> Turn {
    let turn = Turn { thread: thread.thread, ..world.turn() };
    let begin = Batch { threads: Vec::new(), ..turn.begin() };
    world.commit(lease, &begin).await.unwrap();
    turn
}

async fn start(world: &World, lease: Lease, turn: &Turn) -> TurnStart {
    start_at(world, lease, turn, turn.run).await
}

async fn start_at(world: &World, lease: Lease, turn: &Turn, order: Uuid) -> TurnStart {
    world.store.start_turn(turn.thread, order, turn.run, lease.writer_id).await.unwrap()
}

fn park(turn: &Turn, parking: i32) -> Batch {
    Batch {
        updates: vec![RunUpdate { parking, finished_at: None, ..turn.update(RunState::Waiting) }],
        queued: vec![QueueRow {
            run_id: turn.run,
            workflow_id: Uuid::from_u128(1),
            turn: false,
            due_at: None,
        }],
        ..Batch::default()
    }
}

#[tokio::test]
async fn one_turn_of_a_thread_starts_at_a_time_in_order() {
    let world = World::new().await;
    let (one, two) = (world.writer().await, world.writer().await);
    let first = world.turn();
    world.commit(one, &first.begin()).await.unwrap();
    let second = later(&world, two, &first).await;
    let third = later(&world, one, &first).await;
    assert_eq!(start(&world, two, &second).await, TurnStart::Waits, "the first comes before it");
    assert_eq!(start(&world, one, &first).await, TurnStart::Started);
    assert_eq!(start(&world, one, &first).await, TurnStart::Started, "again, after a restart of its actor");
    let started = world.store.run(first.run).await.unwrap().unwrap().started_at;
    assert_eq!(started, None, "the start time is not stored yet");
    assert_eq!(start(&world, two, &first).await, TurnStart::NotOurs, "it belongs to the other");
    assert_eq!(
        start(&world, one, &third).await,
        TurnStart::Started,
        "its actor keeps the order of its turns"
    );
    world.commit(one, &first.end()).await.unwrap();
    assert_eq!(start(&world, two, &second).await, TurnStart::Waits, "the third executes");
    world.commit(one, &third.end()).await.unwrap();
    assert_eq!(start(&world, two, &second).await, TurnStart::Started);
    assert_eq!(start(&world, one, &first).await, TurnStart::NotOurs, "it has ended");
}

/// One instance's clock lags, or the commit of a start was slow.
#[tokio::test]
async fn a_late_turn_with_a_smaller_id_waits_for_the_executing_turn() {
    let world = World::new().await;
    let (one, two) = (world.writer().await, world.writer().await);
    let late = world.turn();
    let executes = world.turn();
    world.commit(one, &executes.begin()).await.unwrap();
    assert_eq!(start(&world, one, &executes).await, TurnStart::Started);
    let late = Turn { thread: executes.thread, ..late };
    assert!(late.run < executes.run);
    world.commit(two, &Batch { threads: Vec::new(), ..late.begin() }).await.unwrap();
    assert_eq!(start(&world, two, &late).await, TurnStart::Waits);
    // The executing turn is recovered after a crash: it resumes, even if other turns now come before it.
    assert_eq!(start(&world, one, &executes).await, TurnStart::Started);
    world.commit(one, &executes.end()).await.unwrap();
    assert_eq!(start(&world, two, &late).await, TurnStart::Started);
}

#[tokio::test]
async fn one_of_two_concurrent_messages_on_two_instances_starts() {
    for _ in 0..20 {
        let world = World::new().await;
        let (one, two) = (world.writer().await, world.writer().await);
        let first = world.turn();
        world.commit(one, &first.begin()).await.unwrap();
        let second = later(&world, two, &first).await;
        let (a, b) = tokio::join!(start(&world, one, &first), start(&world, two, &second));
        assert_eq!([a, b], [TurnStart::Started, TurnStart::Waits]);
    }
}

#[tokio::test]
async fn a_parked_turn_frees_its_slot_and_takes_a_new_one_when_it_resumes() {
    let world = World::new().await;
    let (one, two) = (world.writer().await, world.writer().await);
    let first = world.turn();
    world.commit(one, &first.begin()).await.unwrap();
    assert_eq!(start(&world, one, &first).await, TurnStart::Started);
    world.commit(one, &park(&first, 1)).await.unwrap();
    assert_eq!(start(&world, one, &first).await, TurnStart::NotOurs, "it is in the queue");
    let second = later(&world, two, &first).await;
    assert_eq!(start(&world, two, &second).await, TurnStart::Started);
    assert_eq!(world.store.take_queued(one, first.run).await.unwrap(), [first.run]);
    let resumed = world.store.run(first.run).await.unwrap().unwrap();
    assert_eq!(resumed.status, RunState::Waiting);
    let order = resumed.turn_order.unwrap();
    assert!(order > first.run);
    assert_eq!(start_at(&world, one, &first, order).await, TurnStart::Waits, "the second executes");
    let running = world.store.running_turn(first.thread).await.unwrap().unwrap();
    assert_eq!((running.run, running.parked), (second.run, false), "the older one waits for it");
    let third = later(&world, two, &first).await;
    world.commit(two, &second.end()).await.unwrap();
    assert!(third.run > order);
    assert_eq!(start(&world, two, &third).await, TurnStart::Waits, "the resumed one comes before it");
    assert_eq!(start_at(&world, one, &first, order).await, TurnStart::Started);
}

/// One of three instances has died, and another one has taken over its turn.
#[tokio::test]
async fn turns_of_three_instances_do_not_wait_for_each_other() {
    let world = World::new().await;
    let (gone, two, three) = (world.writer().await, world.writer().await, world.writer().await);
    let first = world.turn();
    world.commit(gone, &first.begin()).await.unwrap();
    assert_eq!(start(&world, gone, &first).await, TurnStart::Started);
    let second = later(&world, two, &first).await;
    let third = later(&world, three, &first).await;
    for (lease, turn) in [(two, &second), (three, &third)] {
        assert_eq!(start(&world, lease, turn).await, TurnStart::Waits);
    }
    let sql = format!("UPDATE runs SET writer_id = '{}' WHERE id = '{}'", three.writer_id, first.run);
    world.database.execute(&sql).await.unwrap();
    // The first is queued after the third in its actor: the third must not wait for the second, which waits for
    // the first.
    assert_eq!(start(&world, two, &second).await, TurnStart::Waits);
    assert_eq!(start(&world, three, &third).await, TurnStart::Started);
}
