//! Leases: acquire, renew, release, take over.

use std::collections::BTreeSet;

use store::{LEASE_SECONDS, LaneError, Lease, RunState};
use uuid::Uuid;

use crate::support::{Turn, World};

impl World {
    /// Commits the start of `count` turns.
    async fn begin(&self, lease: Lease, count: usize) -> Vec<Turn> {
        let turns: Vec<Turn> = (0..count).map(|_| self.turn()).collect();
        let mut lane = self.store.lane().await.unwrap();
        for turn in &turns {
            lane.commit(lease, &turn.begin()).await.unwrap();
        }
        turns
    }

    async fn expire(&self, lease: Lease) {
        let sql = format!(
            "UPDATE leases SET expires_at = now() - interval '1 second' WHERE writer_id = '{}'",
            lease.writer_id
        );
        self.database.execute(&sql).await.unwrap();
    }

    async fn seconds_left(&self, lease: Lease) -> f64 {
        let sql = format!(
            "SELECT extract(epoch FROM expires_at - clock_timestamp()) FROM leases WHERE writer_id = '{}'",
            lease.writer_id
        );
        self.database.scalar(&sql).await.parse().unwrap()
    }
}

fn runs(turns: &[Turn]) -> BTreeSet<Uuid> {
    turns.iter().map(|turn| turn.run).collect()
}

fn set(taken: Vec<Uuid>) -> BTreeSet<Uuid> {
    let count = taken.len();
    let set: BTreeSet<Uuid> = taken.into_iter().collect();
    assert_eq!(set.len(), count, "a run was named twice");
    set
}

#[tokio::test]
async fn each_owner_of_a_lease_has_a_higher_epoch() {
    let world = World::new().await;
    let (writer, first, later) = (world.uuid(), world.uuid(), world.uuid());
    let (one, since) = world.store.take_lease(writer, first).await.unwrap();
    assert_eq!((one.writer_id, since), (writer, first));
    let (two, since) = world.store.take_lease(writer, later).await.unwrap();
    // The previous owner's runs may be unfinished.
    assert!(two.epoch > one.epoch);
    assert_eq!(since, first);
    assert!(world.store.renew_lease(one, later).await.unwrap().is_none());
    assert!(world.store.renew_lease(two, later).await.unwrap().is_some());
    assert_eq!(world.store.take_lease(writer, world.uuid()).await.unwrap().1, later);
}

/// An instance that is gone permanently leaves no row, and one with the same id never repeats an epoch.
#[tokio::test]
async fn the_lease_of_a_dead_instance_is_deleted_after_a_day() {
    let world = World::new().await;
    let (gone, busy, own) = (world.writer().await, world.writer().await, world.writer().await);
    let turn = world.turn();
    world.commit(busy, &turn.begin()).await.unwrap();
    for lease in [gone, busy] {
        world.expire(lease).await;
    }
    assert_eq!(world.store.take_over_expired(own).await.unwrap(), [turn.run]);
    assert_eq!(world.store.forget_old_leases().await.unwrap(), 0, "not on the same day");
    let day = "UPDATE leases SET ended_at = ended_at - interval '25 hours' WHERE ended_at IS NOT NULL";
    world.database.execute(day).await.unwrap();
    // The state after an interrupted takeover.
    let back = format!("UPDATE runs SET writer_id = '{}'", busy.writer_id);
    world.database.execute(&back).await.unwrap();
    assert_eq!(world.store.forget_old_leases().await.unwrap(), 1, "the other has an unfinished run");
    let (again, _) = world.store.take_lease(gone.writer_id, world.uuid()).await.unwrap();
    assert!(again.epoch > gone.epoch);
    assert!(world.store.renew_lease(gone, world.uuid()).await.unwrap().is_none());
}

#[tokio::test]
async fn an_instance_that_joins_sees_the_rounds_of_the_others() {
    let world = World::new().await;
    let (one, two) = (world.writer().await, world.writer().await);
    let before = world.store.lease_rounds(two).await.unwrap();
    assert_eq!(before.keys().copied().collect::<Vec<_>>(), [one.writer_id]);
    world.store.renew_lease(one, world.uuid()).await.unwrap();
    assert_eq!(world.store.lease_rounds(two).await.unwrap()[&one.writer_id], before[&one.writer_id] + 1);
    world.expire(one).await;
    assert!(world.store.lease_rounds(two).await.unwrap().is_empty());
    assert!(world.store.has_others(two).await.unwrap(), "it may be about to renew");
}

#[tokio::test]
async fn renewal_extends_a_lease_and_release_ends_it() {
    let world = World::new().await;
    let lease = world.writer().await;
    let full = f64::from(LEASE_SECONDS);
    assert!((full - 5.0..=full).contains(&world.seconds_left(lease).await));
    world.expire(lease).await;
    assert!(world.store.renew_lease(lease, Uuid::nil()).await.unwrap().is_some());
    assert!((full - 5.0..=full).contains(&world.seconds_left(lease).await));
    let stale = Lease { epoch: lease.epoch - 1, ..lease };
    world.store.release_lease(stale, true).await.unwrap();
    assert!(world.seconds_left(lease).await > 0.0);
    world.store.release_lease(lease, true).await.unwrap();
    assert!(world.seconds_left(lease).await <= 0.0);
}

#[tokio::test]
async fn runs_of_a_dead_writer_are_taken_over_and_the_writer_is_fenced() {
    let world = World::new().await;
    let (dead, by) = (world.writer().await, world.writer().await);
    let turns = world.begin(dead, 4).await;
    world.commit(dead, &turns[1].end()).await.unwrap();
    // The dead writer had reported that nothing before its second turn is unfinished.
    assert!(world.store.renew_lease(dead, turns[1].run).await.unwrap().is_some());
    world.expire(dead).await;
    let taken = set(world.store.take_over_expired(by).await.unwrap());
    assert_eq!(taken, runs(&turns[2..]));
    let mine = world.store.unfinished_of_writer(by.writer_id, Uuid::nil()).await.unwrap();
    assert_eq!(mine.iter().map(|run| run.id).collect::<BTreeSet<_>>(), runs(&turns[2..]));
    assert!(mine.iter().all(|run| run.thread_id.is_some()));
    let late = world.commit(dead, &turns[2].end()).await;
    assert!(matches!(late, Err(LaneError::Fenced)));
    assert_eq!(world.store.run(turns[2].run).await.unwrap().unwrap().status, RunState::Queued);
    world.commit(by, &turns[2].end()).await.unwrap();
    assert!(world.store.take_over_expired(by).await.unwrap().is_empty());
    assert!(world.store.renew_lease(dead, Uuid::nil()).await.unwrap().is_none());
    // When it comes back, it is a new owner.
    let (back, _) = world.store.take_lease(dead.writer_id, Uuid::nil()).await.unwrap();
    world.commit(back, &world.turn().begin()).await.unwrap();
}

/// The leases were renewed while the database's clock was ahead; it has since been set back.
#[tokio::test]
async fn an_expiry_too_far_in_the_future_is_shortened() {
    let world = World::new().await;
    let (live, dead) = (world.writer().await, world.writer().await);
    let turns = world.begin(dead, 1).await;
    let ahead = "UPDATE leases SET expires_at = now() + interval '10 days'";
    world.database.execute(ahead).await.unwrap();
    assert!(world.store.renew_lease(live, Uuid::nil()).await.unwrap().is_some());
    assert!(world.seconds_left(dead).await <= f64::from(LEASE_SECONDS));
    assert!(world.seconds_left(live).await <= f64::from(LEASE_SECONDS));
    world.expire(dead).await;
    assert_eq!(set(world.store.take_over_expired(live).await.unwrap()), runs(&turns));
}

/// An id from an earlier life may be later than current ids.
#[tokio::test]
async fn a_lease_covers_current_runs_after_the_clock_was_set_back() {
    let world = World::new().await;
    let (writer, now) = (world.uuid(), world.uuid());
    let future =
        kernel::first_id_at(kernel::Clock::now(&kernel::SystemClock::new()) + chrono::TimeDelta::days(10));
    let (lease, _) = world.store.take_lease(writer, future).await.unwrap();
    assert!(world.store.renew_lease(lease, future).await.unwrap().is_some());
    assert_eq!(world.store.take_lease(writer, now).await.unwrap().1, now);
}

#[tokio::test]
async fn a_live_lease_is_not_taken_over() {
    let world = World::new().await;
    let (live, by) = (world.writer().await, world.writer().await);
    let turns = world.begin(live, 2).await;
    // Its own expired lease does not count.
    world.expire(by).await;
    assert!(world.store.take_over_expired(by).await.unwrap().is_empty());
    world.commit(live, &turns[0].end()).await.unwrap();
    world.commit(by, &world.turn().begin()).await.unwrap();
}

#[tokio::test]
async fn two_concurrent_takeovers_take_disjoint_runs() {
    let world = World::new().await;
    for _ in 0..5 {
        let (one, two) = (world.writer().await, world.writer().await);
        let mut left = BTreeSet::new();
        for _ in 0..6 {
            let dead = world.writer().await;
            left.extend(runs(&world.begin(dead, 5).await));
            world.expire(dead).await;
        }
        let (a, b) = tokio::join!(world.store.take_over_expired(one), world.store.take_over_expired(two));
        let (a, b) = (set(a.unwrap()), set(b.unwrap()));
        assert!(a.is_disjoint(&b));
        let rest = set(world.store.take_over_expired(one).await.unwrap());
        assert!(rest.is_disjoint(&a) && rest.is_disjoint(&b));
        assert_eq!(&(&a | &b) | &rest, left);
        world.store.release_lease(one, true).await.unwrap();
        world.store.release_lease(two, true).await.unwrap();
        let clean_up = world.writer().await;
        assert_eq!(set(world.store.take_over_expired(clean_up).await.unwrap()), left);
    }
}

#[tokio::test]
async fn runs_taken_over_are_found_again_after_the_new_owner_dies() {
    let world = World::new().await;
    let dead = world.writer().await;
    let turns = world.begin(dead, 2).await;
    // It is younger than the runs it takes over, like a service that was started in the meantime.
    let (by, _) = world.store.take_lease(world.uuid(), world.uuid()).await.unwrap();
    world.expire(dead).await;
    assert_eq!(set(world.store.take_over_expired(by).await.unwrap()), runs(&turns));
    world.expire(by).await;
    let last = world.writer().await;
    assert_eq!(set(world.store.take_over_expired(last).await.unwrap()), runs(&turns));
}

#[tokio::test]
async fn a_fenced_writer_takes_nothing_over() {
    let world = World::new().await;
    let (dead, slow, live) = (world.writer().await, world.writer().await, world.writer().await);
    world.expire(slow).await;
    assert!(world.store.take_over_expired(live).await.unwrap().is_empty());
    let turns = world.begin(dead, 2).await;
    world.expire(dead).await;
    assert!(world.store.take_over_expired(slow).await.unwrap().is_empty());
    assert_eq!(set(world.store.take_over_expired(live).await.unwrap()), runs(&turns));
}
