//! Reading a stream's stored events.

use store::batch::Batch;
use uuid::Uuid;
use wire::sse::split_after;

use crate::support::{World, frames};

#[tokio::test]
async fn a_reader_continues_exactly_after_any_event() {
    let world = World::new().await;
    let (lease, turn) = (world.writer().await, world.turn());
    let mut lane = world.store.lane().await.unwrap();
    // Another stream on the same day must not appear.
    lane.commit(lease, &world.turn().begin()).await.unwrap();
    for seqs in [1..=3, 4..=4, 5..=11, 12..=13] {
        lane.commit(lease, &Batch { events: vec![turn.events(seqs)], ..Batch::default() }).await.unwrap();
    }
    for limit in [1, 2, 100] {
        for after in 0..=14 {
            let (mut text, mut seen) = (String::new(), after);
            loop {
                let rows = world.store.frames_after(turn.stream, seen, limit).await.unwrap();
                assert!(rows.len() <= limit as usize);
                let Some(last) = rows.last() else { break };
                let last = last.last_seq;
                for row in &rows {
                    text.push_str(split_after(&row.frames, row.first_seq, seen));
                }
                seen = last;
            }
            assert_eq!(text, frames(turn.stream, after + 1..=13), "after {after}, {limit} rows at a time");
        }
    }
    assert!(world.store.frames_after(turn.stream, u64::MAX, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_missing_stream_is_none() {
    let world = World::new().await;
    // One of the ids contains no time.
    for id in [world.uuid(), Uuid::nil()] {
        assert!(world.store.stream(id).await.unwrap().is_none());
        assert!(world.store.frames_after(id, 0, 10).await.unwrap().is_empty());
        assert!(world.store.run(id).await.unwrap().is_none());
        assert!(world.store.thread(kernel::ThreadId(id)).await.unwrap().is_none());
    }
}
