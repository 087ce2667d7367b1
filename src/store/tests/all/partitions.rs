//! Daily partitions for the stored events.

use std::sync::Arc;

use chrono::{DateTime, Days, NaiveDate, Utc};
use futures_util::future::join_all;
use kernel::{Ids, ManualClock, SystemRandom};
use store::{LaneError, PARTITIONS_AHEAD};

use crate::support::World;

fn noon(day: NaiveDate) -> DateTime<Utc> {
    day.and_hms_opt(12, 0, 0).unwrap().and_utc()
}

impl World {
    async fn partitions(&self) -> String {
        let sql = "SELECT string_agg(inhrelid::regclass::text, ' ' ORDER BY inhrelid::regclass::text) \
                   FROM pg_inherits WHERE inhparent = 'stream_events'::regclass";
        self.database.scalar(sql).await
    }
}

#[tokio::test]
async fn partitions_exist_for_yesterday_today_and_some_days_ahead() {
    let today = NaiveDate::from_ymd_opt(2031, 2, 28).unwrap();
    let world = World::at(Arc::new(ManualClock::new(noon(today)))).await;
    let partitions = world.partitions().await;
    let expected = "stream_events_20310227 stream_events_20310228 stream_events_20310301 stream_events_20310302 \
                  stream_events_20310303";
    assert!(partitions.ends_with(expected), "{partitions}");
    world.store.ensure_partitions(today).await.unwrap();
    world.store.ensure_partitions(today).await.unwrap();
    assert_eq!(world.partitions().await, partitions);

    let lease = world.writer().await;
    let mut lane = world.store.lane().await.unwrap();
    let last = today.checked_add_days(Days::new(PARTITIONS_AHEAD)).unwrap();
    let outside = [today - Days::new(2), last + Days::new(1)];
    for day in [today - Days::new(1), today, last].into_iter().chain(outside) {
        for (hour, minute, second) in [(0, 0, 0), (23, 59, 59)] {
            let clock = Arc::new(ManualClock::new(day.and_hms_opt(hour, minute, second).unwrap().and_utc()));
            let mut turn = world.turn();
            turn.stream = Ids::new(clock, Arc::new(SystemRandom::new())).uuid().unwrap();
            match lane.commit(lease, &turn.begin()).await {
                Ok(()) => assert!(!outside.contains(&day), "{day}"),
                Err(LaneError::NoPartition(_)) => assert!(outside.contains(&day), "{day}"),
                Err(error) => panic!("{day}: {error}"),
            }
        }
    }
}

#[tokio::test]
async fn partitions_can_be_created_concurrently() {
    let world = World::new().await;
    for month in 1..=6 {
        let day = NaiveDate::from_ymd_opt(2041, month, 10).unwrap();
        for made in join_all((0..8).map(|_| world.store.ensure_partitions(day))).await {
            made.unwrap();
        }
    }
}
