//! Queued runs: enqueued once, claimed by one writer, ended by any caller that is able to.

use std::collections::BTreeSet;

use store::batch::{Batch, CopyRow, QueueRow, RunUpdate};
use store::{Lease, RunState, SeenRun, TurnsToStop};
use uuid::Uuid;

use crate::support::{Turn, World};

impl World {
    /// Creates a workflow that allows `most` concurrent runs.
    async fn limited(&self, most: i32) -> Uuid {
        let workflow = self.workflow("limited").await.unwrap().id;
        let sql = format!("UPDATE workflows SET max_concurrent_runs = {most} WHERE id = '{workflow}'");
        self.database.execute(&sql).await.unwrap();
        workflow
    }

    async fn queued(&self) -> String {
        self.count("run_queue").await
    }

    async fn status(&self, turn: &Turn) -> RunState {
        self.store.run(turn.run).await.unwrap().unwrap().status
    }
}

fn queue_row(turn: &Turn, workflow_id: Uuid, waits_for_turn: bool) -> QueueRow {
    QueueRow { run_id: turn.run, workflow_id, turn: waits_for_turn, due_at: Some(turn.now) }
}

/// Parks the run for the `parking`th time.
fn park(turn: &Turn, parking: i32) -> Batch {
    Batch {
        updates: vec![RunUpdate { parking, ..turn.update(RunState::Waiting) }],
        queued: vec![queue_row(turn, Uuid::from_u128(1), false)],
        left: vec![turn.run],
        ..Batch::default()
    }
}

fn running(turn: &Turn) -> Batch {
    Batch { updates: vec![turn.update(RunState::Running)], ..Batch::default() }
}

/// The start of a run that waits for a workflow slot.
fn start(turn: &Turn, workflow: Uuid) -> Batch {
    Batch { queued: vec![queue_row(turn, workflow, true)], ..turn.begin() }
}

#[tokio::test]
async fn a_repeated_park_parks_a_run_once() {
    let world = World::new().await;
    let (one, two, turn) = (world.writer().await, world.writer().await, world.turn());
    world.commit(one, &turn.begin()).await.unwrap();
    for _ in 0..2 {
        world.commit(one, &park(&turn, 1)).await.unwrap();
        assert_eq!(world.queued().await, "1");
        assert_eq!(world.status(&turn).await, RunState::Waiting);
    }
    assert_eq!(world.store.take_due(two).await.unwrap(), [turn.run]);
    assert_eq!(world.queued().await, "0");
    world.commit(two, &running(&turn)).await.unwrap();
    // Late updates from the first writer, whose connection was considered dead, are ignored.
    for late in [park(&turn, 1), running(&turn), Batch { updates: turn.end().updates, ..Batch::default() }] {
        world.commit(one, &late).await.unwrap();
        assert_eq!(world.queued().await, "0");
        assert_eq!(world.status(&turn).await, RunState::Running);
    }
    // The same writer may have claimed it again.
    world.commit(two, &park(&turn, 2)).await.unwrap();
    assert_eq!(world.store.take_due(two).await.unwrap(), [turn.run]);
    world.commit(two, &park(&turn, 2)).await.unwrap();
    assert_eq!(world.queued().await, "0");
    world.commit(two, &turn.end()).await.unwrap();
    world.commit(two, &park(&turn, 3)).await.unwrap();
    assert_eq!(world.queued().await, "0", "it has ended");
    assert_eq!(world.status(&turn).await, RunState::Succeeded);
}

#[tokio::test]
async fn turns_are_claimed_in_order_and_running_ones_occupy_slots() {
    let world = World::new().await;
    let (workflow, one, two) = (world.limited(1).await, world.writer().await, world.writer().await);
    let turns = [world.turn(), world.turn(), world.turn()];
    for turn in &turns {
        for _ in 0..2 {
            world.commit(one, &start(turn, workflow)).await.unwrap();
        }
    }
    assert_eq!(world.queued().await, "3");
    assert_eq!(world.store.workflows_with_turns().await.unwrap(), [workflow]);
    assert!(world.store.take_due(one).await.unwrap().is_empty(), "they wait for their turn");
    assert_eq!(world.store.take_turns(one, workflow).await.unwrap().unwrap(), [turns[0].run]);
    assert!(world.store.take_turns(two, workflow).await.unwrap().unwrap().is_empty(), "no slot is free");
    world.commit(one, &start(&turns[0], workflow)).await.unwrap();
    assert_eq!(world.queued().await, "2", "a repeated start does not start it again");
    assert!(world.store.left_run(one.writer_id, turns[0].run).await.unwrap().unwrap().placed);
    // It waits for a time, and is queued again in the same order; then the second run gets a slot.
    world.commit(one, &park(&turns[0], 1)).await.unwrap();
    assert_eq!(world.count("run_places").await, "0");
    assert_eq!(world.store.take_turns(two, workflow).await.unwrap().unwrap(), [turns[1].run]);
    // A resent batch does not release a slot that it no longer holds.
    assert_eq!(world.store.take_queued(two, turns[0].run).await.unwrap(), [turns[0].run]);
    let sql = format!("INSERT INTO run_places VALUES ('{}', '{workflow}')", turns[0].run);
    world.database.execute(&sql).await.unwrap();
    world.commit(one, &park(&turns[0], 1)).await.unwrap();
    assert_eq!(world.count("run_places").await, "2");
    let end = Batch { left: vec![turns[0].run], ..turns[0].end() };
    world.commit(two, &end).await.unwrap();
    assert_eq!(world.count("run_places").await, "1");
    // Without a limit, waiting runs are claimed and hold no slot.
    world.database.execute("UPDATE workflows SET max_concurrent_runs = NULL").await.unwrap();
    assert_eq!(world.store.take_turns(one, workflow).await.unwrap().unwrap(), [turns[2].run]);
    assert_eq!(world.count("run_places").await, "1");
    assert!(!world.store.left_run(one.writer_id, turns[2].run).await.unwrap().unwrap().placed);
}

#[tokio::test]
async fn ended_and_foreign_runs_are_not_claimed() {
    let world = World::new().await;
    let (workflow, one, two) = (world.limited(5).await, world.writer().await, world.writer().await);
    let (ended, queued) = (world.turn(), world.turn());
    world.commit(one, &ended.begin()).await.unwrap();
    world.commit(one, &ended.end()).await.unwrap();
    world.commit(one, &start(&queued, workflow)).await.unwrap();
    let sql = format!("INSERT INTO run_queue VALUES ('{}', '{workflow}', true, now())", ended.run);
    world.database.execute(&sql).await.unwrap();
    assert!(world.store.left_run(one.writer_id, queued.run).await.unwrap().is_none(), "it has no owner");
    assert_eq!(world.store.take_turns(two, workflow).await.unwrap().unwrap(), [queued.run]);
    assert_eq!(world.queued().await, "0", "the row of an ended run blocks nothing");
    assert!(world.store.left_run(one.writer_id, queued.run).await.unwrap().is_none());
    let left = world.store.left_run(two.writer_id, queued.run).await.unwrap().unwrap();
    assert_eq!((left.run.id, left.run.parked, left.placed), (queued.run, 0, true));
    // A writer that has lost its lease claims nothing.
    world.commit(two, &park(&queued, 1)).await.unwrap();
    world.store.take_lease(one.writer_id, Uuid::nil()).await.unwrap();
    assert!(world.store.take_due(one).await.unwrap().is_empty());
    assert!(world.store.take_queued(one, queued.run).await.unwrap().is_empty());
    assert_eq!(world.queued().await, "1");
}

#[tokio::test]
async fn a_failed_claim_names_the_uncertain_runs() {
    let world = World::new().await;
    let (lease, turn) = (world.writer().await, world.turn());
    world.commit(lease, &turn.begin()).await.unwrap();
    world.commit(lease, &park(&turn, 1)).await.unwrap();
    let failing = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE 'the commit fails'; END $$;
         CREATE CONSTRAINT TRIGGER refuse AFTER DELETE ON run_queue DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW EXECUTE FUNCTION refuse()";
    world.database.execute(failing).await.unwrap();
    for not in [world.store.take_due(lease).await, world.store.take_queued(lease, turn.run).await] {
        assert_eq!(not.unwrap_err().uncertain, [turn.run]);
    }
    assert_eq!(world.queued().await, "1");
}

#[tokio::test]
async fn a_stop_is_found_by_each_instance_that_can_end_the_run() {
    let world = World::new().await;
    let (one, two) = (world.writer().await, world.writer().await);
    let (own, parked) = (world.turn(), world.turn());
    for turn in [&own, &parked] {
        world.commit(one, &turn.begin()).await.unwrap();
    }
    let found = async |lease: Lease| -> BTreeSet<(Uuid, bool)> {
        let stops = world.store.stop_requests(lease.writer_id).await.unwrap();
        stops.into_iter().filter(|stop| !stop.over).map(|stop| (stop.run, stop.queued)).collect()
    };
    assert!(found(one).await.is_empty());
    assert!(world.store.request_cancel(own.run).await.unwrap().unwrap().cancel_requested);
    assert_eq!(world.store.request_cancel_of_thread(parked.thread, TurnsToStop::All).await.unwrap().len(), 1);
    world.store.request_cancel(parked.run).await.unwrap();
    assert_eq!(found(one).await, [(own.run, false), (parked.run, false)].into());
    assert!(found(two).await.is_empty());
    world.commit(one, &park(&parked, 1)).await.unwrap();
    assert_eq!(found(one).await, [(own.run, false), (parked.run, true)].into());
    assert_eq!(found(two).await, [(parked.run, true)].into());
    world.store.forget_stops().await.unwrap();
    assert_eq!(world.count("run_stops").await, "2");
    world.commit(one, &own.end()).await.unwrap();
    assert_eq!(found(one).await, [(parked.run, true)].into());
    let stops = world.store.stop_requests(two.writer_id).await.unwrap();
    assert_eq!(stops.iter().filter(|stop| stop.over).map(|stop| stop.run).collect::<Vec<_>>(), [own.run]);
    world.store.forget_stops().await.unwrap();
    assert_eq!(world.count("run_stops").await, "1");
    world.store.request_cancel(own.run).await.unwrap();
    assert_eq!(world.count("run_stops").await, "1", "it has ended");
}

#[tokio::test]
async fn orphaned_runs_are_found_and_owned_ones_are_kept() {
    let world = World::new().await;
    let (one, two) = (world.writer().await, world.writer().await);
    let (ended, parked, foreign, own) = (world.turn(), world.turn(), world.turn(), world.turn());
    for (lease, turn) in [(one, &ended), (one, &parked), (one, &foreign), (two, &own)] {
        world.commit(lease, &turn.begin()).await.unwrap();
    }
    world.commit(one, &ended.end()).await.unwrap();
    world.commit(one, &park(&parked, 1)).await.unwrap();
    let seen = |turn: &Turn, lease: Lease| SeenRun { run: turn.run, writer: lease.writer_id };
    let looked = world.store.scan_ownership(two, Uuid::nil(), 10).await.unwrap();
    assert_eq!((looked.orphaned, looked.owned), (vec![], vec![seen(&own, two)]));
    assert_eq!((looked.first_unfinished, looked.last), (Some(parked.run), None));
    // Its writer is gone, and no other writer has adopted its runs.
    let gone = format!("DELETE FROM leases WHERE writer_id = '{}'", one.writer_id);
    world.database.execute(&gone).await.unwrap();
    let looked = world.store.scan_ownership(two, ended.run, 2).await.unwrap();
    assert_eq!((looked.orphaned, looked.last), (vec![seen(&foreign, one)], Some(foreign.run)));
    let all = [seen(&ended, one), seen(&parked, one), seen(&foreign, one)];
    let three = world.writer().await;
    assert_eq!(world.store.adopt_orphaned(two, &all).await.unwrap(), [foreign.run]);
    assert!(
        world.store.adopt_orphaned(three, &all).await.unwrap().is_empty(),
        "another writer owns it by now"
    );
    let looked = world.store.scan_ownership(two, Uuid::nil(), 10).await.unwrap();
    assert_eq!((looked.orphaned, looked.owned.clone()), (vec![], vec![seen(&foreign, two), seen(&own, two)]));
    assert_eq!(
        world.store.adopt_orphaned(two, &looked.owned).await.unwrap().len(),
        2,
        "its runs may be resumed"
    );
    assert!(world.store.adopt_orphaned(three, &looked.owned).await.unwrap().is_empty(), "their writer lives");
}

#[tokio::test]
async fn a_repeated_run_copies_steps_up_to_a_limit() {
    let world = World::new().await;
    let (lease, first, again) = (world.writer().await, world.turn(), world.turn());
    let mut steps =
        vec![first.step("succeeded"), first.step("failed"), first.step("started"), first.step("succeeded")];
    for (number, step) in (1..).zip(&mut steps) {
        step.visit = number;
        step.step = number;
    }
    steps[0].result = Some(format!("\"{}\"", "x".repeat(100_000)));
    world.commit(lease, &Batch { steps, ..first.begin() }).await.unwrap();
    assert_eq!(world.store.last_step(first.run).await.unwrap(), Some(4));
    assert_eq!(world.store.last_step(again.run).await.unwrap(), None);
    let copies = vec![CopyRow { from: first.run, to: again.run, before: 4 }];
    let start = Batch { copies, ..again.begin() };
    for _ in 0..2 {
        world.commit(lease, &start).await.unwrap();
        let [of_first, copied] =
            [world.store.journal(first.run).await.unwrap(), world.store.journal(again.run).await.unwrap()]
                .map(|journal| journal.into_iter().map(|step| format!("{step:?}")).collect::<Vec<_>>());
        assert_eq!(copied, of_first[..2]);
    }
}
