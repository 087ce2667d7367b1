//! The journal, read back.

use store::batch::{Batch, INLINE_RESULT, StepRow};

use crate::support::World;

#[tokio::test]
async fn a_large_result_is_a_blob_and_reads_the_same() {
    let world = World::new().await;
    let (lease, turn, other) = (world.writer().await, world.turn(), world.turn());
    let result = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    let sizes = [INLINE_RESULT, INLINE_RESULT + 1, 300 << 10, 8 << 20];
    let steps = |turn: &crate::support::Turn| -> Vec<StepRow> {
        let row = |bytes: &usize| StepRow {
            node: format!("n{bytes}"),
            result: Some(result(*bytes)),
            ..turn.step("succeeded")
        };
        sizes.iter().map(row).collect()
    };
    // Twice, and by two runs: a value is stored once.
    for turn in [&turn, &turn, &other] {
        world.commit(lease, &Batch { steps: steps(turn), ..Batch::default() }).await.unwrap();
    }
    for turn in [&turn, &other] {
        let mut journal = world.store.journal(turn.run).await.unwrap();
        journal.sort_by_key(|step| step.result.as_ref().map(String::len));
        let read: Vec<usize> = journal.iter().map(|step| step.result.as_ref().unwrap().len()).collect();
        assert_eq!(read, sizes);
        assert_eq!(journal[3].result.as_deref(), Some(result(8 << 20).as_str()));
    }
    assert_eq!(world.count("blobs").await, "3");
    assert_eq!(world.count("run_steps WHERE result IS NULL").await, "6");
}

#[tokio::test]
async fn what_was_noted_with_a_start_stays() {
    let world = World::new().await;
    let (lease, turn) = (world.writer().await, world.turn());
    let begun = Batch { steps: vec![turn.step("started")], ..Batch::default() };
    world.commit(lease, &begun).await.unwrap();
    let ended = StepRow { begun: true, note: None, ..turn.step("succeeded") };
    world.commit(lease, &Batch { steps: vec![ended], ..Batch::default() }).await.unwrap();
    let journal = world.store.journal(turn.run).await.unwrap();
    assert_eq!(journal[0].note.as_deref(), Some(r#"{"version":1}"#));
    assert_eq!((journal[0].status.as_str(), journal[0].finished_at.is_some()), ("succeeded", true));
}
