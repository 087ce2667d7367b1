//! Idempotency keys.

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use futures_util::future::join_all;
use kernel::{Clock, ManualClock};
use store::{Reservation, Reserved, Store};

use crate::support::World;

async fn reserve(store: &Store, key: &str, digest: &[u8], outcome: u64) -> Reserved<u64> {
    store.reserve_key(Reservation { scope: "caller", key, digest, outcome: &outcome }).await.unwrap()
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[tokio::test]
async fn a_key_is_bound_to_its_first_request() {
    let world = World::new().await;
    assert_eq!(reserve(&world.store, "k", b"one", 1).await, Reserved::New);
    assert_eq!(reserve(&world.store, "k", b"one", 2).await, Reserved::Same(1));
    assert_eq!(reserve(&world.store, "k", b"two", 3).await, Reserved::Different);
    assert_eq!(reserve(&world.store, "k", b"one", 4).await, Reserved::Same(1));
    assert_eq!(reserve(&world.store, "other", b"one", 5).await, Reserved::New);
    let elsewhere = Reservation { scope: "another", key: "k", digest: b"two", outcome: &6_u64 };
    assert_eq!(world.store.reserve_key(elsewhere).await.unwrap(), Reserved::New);
}

#[tokio::test]
async fn a_key_expires_after_a_day() {
    let clock = ManualClock::new(DateTime::from_timestamp(1_795_000_000, 0).unwrap());
    let world = World::at(Arc::new(clock.clone())).await;
    assert_eq!(reserve(&world.store, "k", b"one", 1).await, Reserved::New);
    clock.advance(DAY);
    assert_eq!(reserve(&world.store, "k", b"one", 2).await, Reserved::Same(1));
    assert_eq!(world.store.forget_old_keys(clock.now()).await.unwrap(), 0);
    clock.advance(Duration::from_secs(1));
    assert_eq!(reserve(&world.store, "k", b"two", 3).await, Reserved::New);
    assert_eq!(reserve(&world.store, "k", b"two", 4).await, Reserved::Same(3));
    clock.advance(DAY);
    clock.advance(Duration::from_secs(1));
    assert_eq!(reserve(&world.store, "young", b"one", 5).await, Reserved::New);
    assert_eq!(world.store.forget_old_keys(clock.now()).await.unwrap(), 1);
    assert_eq!(reserve(&world.store, "young", b"one", 6).await, Reserved::Same(5));
}

#[tokio::test]
async fn exactly_one_of_several_concurrent_requests_is_the_first() {
    let clock = ManualClock::new(DateTime::from_timestamp(1_795_000_000, 0).unwrap());
    let world = World::at(Arc::new(clock.clone())).await;
    // A new key, then the same key after it has expired.
    for _ in 0..2 {
        let requests = (0..20).map(|number| {
            let store = world.store.clone();
            tokio::spawn(async move { (number, reserve(&store, "k", b"one", number).await) })
        });
        let answers: Vec<_> = join_all(requests).await.into_iter().map(Result::unwrap).collect();
        let first: Vec<u64> = answers
            .iter()
            .filter(|(_, answer)| *answer == Reserved::New)
            .map(|(number, _)| *number)
            .collect();
        assert_eq!(first.len(), 1, "{answers:?}");
        let others = answers.iter().filter(|(number, _)| *number != first[0]);
        assert!(others.into_iter().all(|(_, answer)| *answer == Reserved::Same(first[0])), "{answers:?}");
        clock.advance(2 * DAY);
    }
}
