//! Reading the journal.

use store::StepPlace;
use store::batch::{Batch, INLINE_RESULT, StepRow};

use crate::support::World;

#[tokio::test]
async fn a_large_result_is_stored_as_a_blob_and_reads_back() {
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
async fn the_note_of_a_start_is_kept() {
    let world = World::new().await;
    let (lease, turn) = (world.writer().await, world.turn());
    let start = Batch { steps: vec![turn.step("started")], ..Batch::default() };
    world.commit(lease, &start).await.unwrap();
    let ended = StepRow { begun: true, note: None, ..turn.step("succeeded") };
    world.commit(lease, &Batch { steps: vec![ended], ..Batch::default() }).await.unwrap();
    let journal = world.store.journal(turn.run).await.unwrap();
    assert_eq!(journal[0].note.as_deref(), Some(r#"{"version":1}"#));
    assert_eq!((journal[0].status.as_str(), journal[0].finished_at.is_some()), ("succeeded", true));
}

#[tokio::test]
async fn a_journal_is_read_page_by_page_in_the_order_of_starts() {
    let world = World::new().await;
    let (lease, turn) = (world.writer().await, world.turn());
    let row = |index: i32| {
        let base = turn.step("succeeded");
        // With equal start times the node decides; node order differs from start order.
        let started_at = base.started_at + chrono::TimeDelta::microseconds(i64::from(index / 2));
        StepRow { node: format!("n{}:/[{}]", 9 - index, index), step: 1 + index / 5, started_at, ..base }
    };
    let batch = Batch { steps: (0..10).map(row).collect(), ..Batch::default() };
    world.commit(lease, &batch).await.unwrap();
    let mut expected: Vec<_> = (0..10).map(row).collect();
    expected.sort_by_key(|row| (row.step, row.started_at, row.node.clone()));
    let expected: Vec<String> = expected.into_iter().map(|row| row.node).collect();
    for limit in [1, 3, 10, 11] {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = world.store.journal_page(turn.run, after.as_ref(), limit).await.unwrap();
            assert!(i64::try_from(page.steps.len()).unwrap() <= limit);
            let last = page.steps.last().map(StepPlace::from_step).unwrap();
            // Round trip through a cursor's text.
            assert_eq!(last.to_string().parse(), Ok(last.clone()));
            after = Some(last);
            seen.extend(page.steps.into_iter().map(|step| step.node));
            if !page.more {
                break;
            }
        }
        assert_eq!(seen, expected, "{limit}");
    }
    assert!(world.store.journal_page(world.turn().run, None, 5).await.unwrap().steps.is_empty());
    for bad in ["", "1", "1:x:1:1:n", "1:2:3:4", "1:9223372036854775807:1:1:n"] {
        assert!(bad.parse::<StepPlace>().is_err(), "{bad}");
    }
}

#[tokio::test]
async fn a_page_ends_before_its_results_are_too_large() {
    let world = World::new().await;
    let (lease, turn) = (world.writer().await, world.turn());
    let large = |index: u8| {
        let result = Some(format!("\"{index}{}\"", "x".repeat(7 << 20)));
        StepRow { node: format!("n{index}"), result, ..turn.step("succeeded") }
    };
    for index in 0..5 {
        world.commit(lease, &Batch { steps: vec![large(index)], ..Batch::default() }).await.unwrap();
    }
    let (mut sizes, mut after) = (Vec::new(), None);
    loop {
        let page = world.store.journal_page(turn.run, after.as_ref(), 100).await.unwrap();
        sizes.push(page.steps.len());
        after = page.steps.last().map(StepPlace::from_step);
        if !page.more {
            break;
        }
    }
    // A page ends with the row that exceeds 16 MiB.
    assert_eq!(sizes, [3, 2]);
}

#[tokio::test]
async fn model_usage_is_found_in_rows_and_blobs() {
    let world = World::new().await;
    let (lease, turn) = (world.writer().await, world.turn());
    let usage =
        |calls: u8| format!(r#"{{"calls":{calls},"input_tokens":1,"output_tokens":1,"cost_usd":null}}"#);
    let row = |node: &str, result: Option<String>, error: Option<String>| {
        let status = if result.is_some() { "succeeded" } else { "failed" };
        StepRow { node: node.to_owned(), result, error, ..turn.step(status) }
    };
    let text = |bytes: usize, calls| {
        format!(r#"{{"model":"m","text":"{}","usage":{}}}"#, "x".repeat(bytes), usage(calls))
    };
    let steps = vec![
        row("small", Some(text(10, 1)), None),
        row("large", Some(text(300 << 10, 2)), None),
        row(
            "failed",
            None,
            Some(format!(r#"{{"code":"model.bad_answer","message":"no","usage":{}}}"#, usage(3))),
        ),
        row("plain", Some(r#"{"text":"\"cost_usd\""}"#.to_owned()), None),
        row("quoting", Some(format!(r#"{{"usage":{}}}"#, usage(9))), None),
        row("other", None, Some(r#"{"code":"node.failed","message":"\"cost_usd\""}"#.to_owned())),
    ];
    world.commit(lease, &Batch { steps, ..Batch::default() }).await.unwrap();
    let mut used: Vec<(String, u64)> = Vec::new();
    for step in world.store.models_usage(turn.run).await.unwrap() {
        used.push((step.node, step.usage["calls"].as_u64().unwrap()));
    }
    used.sort();
    assert_eq!(used, [("failed".to_owned(), 3), ("large".to_owned(), 2), ("small".to_owned(), 1)]);
}
