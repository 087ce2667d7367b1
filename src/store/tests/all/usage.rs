//! Measured storage usage of workspaces.

use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Clock as _, SystemClock};
use store::batch::{Batch, OutboxRow};
use store::{BlobUse, NewWorkspace};
use uuid::Uuid;

use crate::support::World;

/// Incompressible messages with 1,000 letters each, in a thread in this workspace.
async fn write(world: &World, workspace: Uuid, messages: u32) {
    let thread = world.uuid();
    let sql = format!(
        "INSERT INTO threads (id, workflow_id, workspace_id, owner_kind, status, created_at)
             VALUES ('{thread}', '{thread}', '{workspace}', 'anyone', 'active', now());
         INSERT INTO thread_items (thread_id, id, content)
             SELECT '{thread}', decode(lpad(to_hex(n), 48, '0'), 'hex'),
                 (SELECT string_agg(md5(n::text || i::text || '{thread}'), '') FROM generate_series(1, 31) i) || 'xxxxxxxx'
             FROM generate_series(1, {messages}) n"
    );
    world.database.execute(&sql).await.unwrap();
}

async fn bytes(world: &World, workspace: Uuid) -> i64 {
    world.store.workspace_usage(workspace).await.unwrap().unwrap().bytes
}

async fn other(world: &World) -> Uuid {
    let new = NewWorkspace { slug: "other", name: "Other", owner: None };
    world.store.change(async |changes| changes.create_workspace(new).await).await.unwrap().id
}

#[tokio::test]
async fn few_rows_are_counted_exactly() {
    let world = World::new().await;
    let (here, there) = (world.workspace().await, other(&world).await);
    let ever = DateTime::<Utc>::MAX_UTC;
    assert_eq!(world.store.workspace_usage(here).await.unwrap(), None);
    assert!(world.store.measure_usage(ever).await.unwrap());
    let before = bytes(&world, here).await;
    assert_eq!(bytes(&world, there).await, 0);
    write(&world, here, 40).await;
    write(&world, there, 10).await;
    assert!(world.store.measure_usage(ever).await.unwrap());
    assert_eq!(world.store.workspaces_of(10 * 1_154).await.unwrap(), [], "twice, to be sure");
    assert!(world.store.measure_usage(ever).await.unwrap());
    assert_eq!((bytes(&world, here).await - before, bytes(&world, there).await), (40 * 1_154, 10 * 1_154));
    // Another caller has measured it since then.
    let now = SystemClock::new().now();
    assert!(!world.store.measure_usage(now - TimeDelta::minutes(5)).await.unwrap());
    let full = world.store.workspaces_of(10 * 1_154).await.unwrap();
    assert_eq!(full.len(), 2);
    assert_eq!(world.store.workspaces_of(10 * 1_154 + 1).await.unwrap().len(), 1);
    // A workspace that did not exist at the start of the measurement waits for the next one.
    let sql = "UPDATE workspace_usage SET measured_at = '2000-01-01'; UPDATE workspaces SET created_at = now() + interval '1 h' WHERE slug = 'other'";
    world.database.execute(sql).await.unwrap();
    assert!(world.store.measure_usage(now - TimeDelta::minutes(5)).await.unwrap());
    let measured_at =
        async |workspace| world.store.workspace_usage(workspace).await.unwrap().unwrap().measured_at;
    assert!(measured_at(here).await >= now && measured_at(there).await < now);
    // While another session measures, the caller does not wait.
    let measuring = world.database.hold("SELECT pg_advisory_xact_lock(27973140998353761)").await;
    assert!(!world.store.measure_usage(ever).await.unwrap());
    measuring.release().await;
    assert!(world.store.measure_usage(ever).await.unwrap());
}

#[tokio::test]
async fn many_rows_are_estimated_from_a_sample() {
    let world = World::new().await;
    let (here, there) = (world.workspace().await, other(&world).await);
    // About 4,900 pages.
    write(&world, here, 25_000).await;
    write(&world, there, 9_000).await;
    assert!(world.store.measure_usage(DateTime::<Utc>::MAX_UTC).await.unwrap());
    for (workspace, rows) in [(here, 25_000), (there, 9_000)] {
        let (bytes, exactly) = (bytes(&world, workspace).await, rows * 1_154);
        assert!((bytes - exactly).abs() < exactly / 3, "{bytes} of {exactly}");
    }
}

#[tokio::test]
async fn a_shared_large_value_counts_once() {
    let world = World::new().await;
    let lease = world.writer().await;
    let here = world.workspace().await;
    let mut state = 7_u64;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'A' + u8::try_from((state >> 40) % 26).unwrap())
    };
    let large = format!("\"{}\"", (0..600_000).map(|_| letter()).collect::<String>());
    for _ in 0..2 {
        let turn = world.turn();
        let mut step = turn.step("succeeded");
        step.result = Some(large.clone());
        world
            .commit(lease, &Batch { runs: turn.begin().runs, steps: vec![step], ..Batch::default() })
            .await
            .unwrap();
    }
    world.database.execute(&format!("UPDATE runs SET workspace_id = '{here}'")).await.unwrap();
    assert!(world.store.measure_usage(DateTime::<Utc>::MAX_UTC).await.unwrap());
    let kept = bytes(&world, here).await;
    assert!((400_000..620_000).contains(&kept), "{kept}");
    assert_eq!(
        world.store.workspaces_of(1).await.unwrap(),
        [],
        "one measurement is not enough, not even the first"
    );
    // Uses in another workspace count there too, but only once.
    let there = other(&world).await;
    let address = world.store.put_blob(large.as_bytes()).await.unwrap();
    for (owner, workspace) in [(1, here), (2, there), (3, there)] {
        let blob_use = BlobUse { kind: "attachment", owner: Uuid::from_u128(owner), workspace };
        assert!(world.store.use_blob(&address, blob_use).await.unwrap());
    }
    assert!(world.store.measure_usage(DateTime::<Utc>::MAX_UTC).await.unwrap());
    for workspace in [here, there] {
        let kept = bytes(&world, workspace).await;
        assert!((400_000..620_000).contains(&kept), "{kept}");
    }
}

/// A run's deliveries, and the rows of an indexed document.
#[tokio::test]
async fn deliveries_and_documents_count() {
    let world = World::new().await;
    let lease = world.writer().await;
    let here = world.workspace().await;
    let measured = async || {
        assert!(world.store.measure_usage(DateTime::<Utc>::MAX_UTC).await.unwrap());
        bytes(&world, here).await
    };
    let turn = world.turn();
    world.commit(lease, &turn.begin()).await.unwrap();
    world.database.execute(&format!("UPDATE runs SET workspace_id = '{here}'")).await.unwrap();
    let before = measured().await;
    let request = "r".repeat(1_500);
    let outbox = vec![OutboxRow { id: world.uuid(), run_id: turn.run, request, created_at: turn.now }];
    world.commit(lease, &Batch { outbox, ..Batch::default() }).await.unwrap();
    let outbox_bytes = measured().await - before;
    assert!((1_500..1_800).contains(&outbox_bytes), "{outbox_bytes}");
    let document = format!(
        "INSERT INTO search_indexes (workspace_id, name) VALUES ('{here}', 'docs');
         INSERT INTO search_documents (index_id, document, terms)
             SELECT id, 'd', (SELECT array_agg(md5(n::text)) FROM generate_series(1, 40) n) FROM search_indexes"
    );
    world.database.execute(&document).await.unwrap();
    let document_bytes = measured().await - before - outbox_bytes;
    assert!((40 * 32..40 * 45 + 200).contains(&document_bytes), "{document_bytes}");
}

#[tokio::test]
async fn copies_of_feedback_count() {
    let world = World::new().await;
    let here = world.workspace().await;
    write(&world, here, 1).await;
    let ever = DateTime::<Utc>::MAX_UTC;
    assert!(world.store.measure_usage(ever).await.unwrap());
    let before = bytes(&world, here).await;
    let copy = "INSERT INTO feedback_turns (thread_id, run_id, version_id, inputs, messages, output_text)
        SELECT id, id, id, '{}', '[]', (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 50) i) FROM threads";
    world.database.execute(copy).await.unwrap();
    assert!(world.store.measure_usage(ever).await.unwrap());
    assert!(bytes(&world, here).await - before >= 1_600);
}
