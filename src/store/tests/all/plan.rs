//! The plan of the batch statement on a table that has grown since the plan was made.

use store::RunState;
use store::batch::Batch;

use crate::support::{Turn, World, until};

const RUNS: usize = 20_000;
const BATCH: usize = 250;

async fn statistic(world: &World, column: &str) -> i64 {
    let sql = format!("SELECT {column} FROM pg_stat_user_tables WHERE relname = 'runs'");
    world.database.scalar(&sql).await.parse().unwrap()
}

fn update(turns: &[Turn], status: RunState) -> Batch {
    Batch { updates: turns.iter().map(|turn| turn.update(status)).collect(), ..Batch::default() }
}

#[tokio::test]
async fn run_updates_use_the_key_even_if_planned_for_an_empty_table() {
    let world = World::new().await;
    let lease = world.writer().await;
    let turns: Vec<Turn> = (0..RUNS).map(|_| world.turn()).collect();
    let mut lane = world.store.lane().await.unwrap();
    let (scans, updates) = (statistic(&world, "seq_scan").await, 3 * BATCH as i64);
    // The plan is made now, for an empty table, and is kept.
    lane.commit(lease, &update(&turns[..1], RunState::Running)).await.unwrap();
    for some in turns.chunks(BATCH) {
        let runs = some.iter().map(Turn::run_row).collect();
        lane.commit(lease, &Batch { runs, ..Batch::default() }).await.unwrap();
    }
    lane.commit(lease, &update(&turns[..BATCH], RunState::Running)).await.unwrap();
    for turn in &turns[BATCH..2 * BATCH] {
        lane.commit(lease, &update(std::slice::from_ref(turn), RunState::Running)).await.unwrap();
    }
    let mut fresh = world.store.lane().await.unwrap();
    fresh.commit(lease, &update(&turns[2 * BATCH..3 * BATCH], RunState::Succeeded)).await.unwrap();
    // A connection reports its statistics when it ends.
    drop((lane, fresh));
    until("the figures", async || statistic(&world, "n_tup_upd").await == updates).await;
    assert_eq!(statistic(&world, "seq_scan").await - scans, 0, "scans of the whole table");
}
