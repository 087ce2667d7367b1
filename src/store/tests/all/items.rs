//! Replaced and removed items.

use kernel::ItemKey;
use serde_json::json;
use store::batch::{Batch, ItemRow, RemovedItemRow, ReplacedItemRow, RunUpdate, ThreadChangeRow};
use store::{Lease, RunState};
use wire::chat::{ItemBody, ThreadItem};

use crate::support::World;

/// Each item's content, key, and previous content.
async fn items_now(world: &World) -> String {
    let sql = "SELECT coalesce(string_agg(concat_ws('|', content, key, before), ',' ORDER BY id), '') FROM thread_items";
    world.database.scalar(sql).await
}

#[tokio::test]
async fn items_are_replaced_and_removed_across_batches() {
    let world = World::new().await;
    let (lease, turn) = (world.writer().await, world.turn());
    world.commit(lease, &turn.begin()).await.unwrap();
    let add = |text: &str, run| {
        let row = ItemRow { run_id: run, key: Some("k".to_owned()), ..turn.item(1, text) };
        Batch { items: vec![row], ..Batch::default() }
    };
    let replace = |text: &str, run_id| {
        let row = ReplacedItemRow {
            thread_id: turn.thread,
            id: turn.items[1],
            content: Some(text.to_owned()),
            run_id,
        };
        Batch { replaced_items: vec![row], ..Batch::default() }
    };
    let remove = Batch {
        removed_items: vec![RemovedItemRow { thread_id: turn.thread, id: turn.items[1], run_id: turn.run }],
        ..Batch::default()
    };
    let all = |batches: &[&Batch]| {
        let mut whole = Batch::default();
        batches.iter().for_each(|batch| whole.append((*batch).clone()));
        whole
    };
    let first = items_now(&world).await;
    let (own, other) = (turn.run, world.uuid());
    // In one commit, and once more as after a lost acknowledgement.
    let at_once = all(&[&add("1", Some(own)), &replace("2", own), &replace("3", own)]);
    for _ in 0..2 {
        world.commit(lease, &at_once).await.unwrap();
        assert_eq!(items_now(&world).await, format!("{first},3|k"));
    }
    // A first commit that was considered lost, sent again with more rows.
    world.commit(lease, &all(&[&add("1", Some(own)), &replace("4", own)])).await.unwrap();
    assert_eq!(items_now(&world).await, format!("{first},4|k"));
    // Another run's change keeps only the content directly before it.
    for (text, expected) in [("5", "5|k|4"), ("6", "6|k|4")] {
        world.commit(lease, &replace(text, other)).await.unwrap();
        assert_eq!(items_now(&world).await, format!("{first},{expected}"));
    }
    let end = |run_id| {
        let row = ReplacedItemRow { thread_id: turn.thread, id: turn.items[1], content: None, run_id };
        Batch { replaced_items: vec![row], ..Batch::default() }
    };
    world.commit(lease, &end(world.uuid())).await.unwrap();
    assert_eq!(items_now(&world).await, format!("{first},6|k|4"), "the end of a run with a successor");
    world.commit(lease, &end(other)).await.unwrap();
    assert_eq!(items_now(&world).await, format!("{first},6|k"), "the run has ended");
    world.commit(lease, &all(&[&replace("9", other), &end(other)])).await.unwrap();
    assert_eq!(items_now(&world).await, format!("{first},9|k"), "it ends in the commit of its change");
    let found = world.store.item_with_key(turn.thread, "k", other).await;
    assert!(found.is_err(), "not an item: {found:?}");
    world.commit(lease, &remove).await.unwrap();
    assert_eq!(items_now(&world).await, first);
    for _ in 0..2 {
        world.commit(lease, &all(&[&add("1", Some(own)), &replace("2", own), &remove])).await.unwrap();
        assert_eq!(items_now(&world).await, first);
    }
    // A writer that has lost its lease changes nothing.
    world.commit(lease, &add("7", Some(own))).await.unwrap();
    let old = Lease { epoch: lease.epoch - 1, ..lease };
    assert!(world.commit(old, &replace("8", own)).await.is_err());
    assert!(world.commit(old, &remove).await.is_err());
    assert_eq!(items_now(&world).await, format!("{first},7|k"));
}

#[tokio::test]
async fn an_item_is_found_by_key_with_its_state_before_the_run() {
    let world = World::new().await;
    let (lease, turn) = (world.writer().await, world.turn());
    world.commit(lease, &turn.begin()).await.unwrap();
    let other = world.uuid();
    let item = |text: &str| {
        let body = ItemBody::HiddenContextItem { content: json!(text) };
        let (id, thread_id) = (turn.items[1].wire("hcx"), turn.thread.to_string());
        serde_json::to_string(&ThreadItem { id, thread_id, created_at: "t".to_owned(), body }).unwrap()
    };
    let row = ItemRow { run_id: Some(turn.run), key: Some("k".to_owned()), ..turn.item(1, &item("1")) };
    world.commit(lease, &Batch { items: vec![row], ..Batch::default() }).await.unwrap();
    let find = async |key, run| {
        let found = world.store.item_with_key(turn.thread, key, run).await.unwrap();
        let text = |item: ThreadItem| item.as_message().unwrap().1;
        found.map(|found| (text(found.item), found.before.map(text)))
    };
    let some = |now: &str, before: Option<&str>| Some((now.to_owned(), before.map(str::to_owned)));
    assert_eq!(find("x", turn.run).await, None);
    assert_eq!(find("k", turn.run).await, some("1", None));
    let (thread_id, id) = (turn.thread, turn.items[1]);
    let row = ReplacedItemRow { thread_id, id, content: Some(item("2")), run_id: other };
    world.commit(lease, &Batch { replaced_items: vec![row], ..Batch::default() }).await.unwrap();
    assert_eq!(find("k", other).await, some("2", Some("1")));
    assert_eq!(find("k", turn.run).await, some("2", None), "another run found it so");
    let of = async |run| world.store.items_of_run(turn.thread, run, &[]).await.unwrap().len();
    assert_eq!((of(turn.run).await, of(other).await, of(world.uuid()).await), (1, 1, 0));
}

/// The answer to a turn's last commit was lost. A later turn has changed items before the commit is sent again.
#[tokio::test]
async fn a_repeated_commit_keeps_changes_of_later_turns() {
    for parks in [false, true] {
        let world = World::new().await;
        let (lease, turn) = (world.writer().await, world.turn());
        world.commit(lease, &turn.begin()).await.unwrap();
        let (thread_id, run_id) = (turn.thread, turn.run);
        let added = |n: u8| {
            let id = ItemKey([n; ItemKey::LENGTH]);
            ItemRow { thread_id, id, run_id: Some(run_id), ..turn.item(1, &n.to_string()) }
        };
        let replaced = |n: u8, text: &str, run_id| {
            let (id, content) = (ItemKey([n; ItemKey::LENGTH]), Some(text.to_owned()));
            ReplacedItemRow { thread_id, id, content, run_id }
        };
        let removed = |n: u8, run_id| {
            let id = ItemKey([n; ItemKey::LENGTH]);
            Batch { removed_items: vec![RemovedItemRow { thread_id, id, run_id }], ..Batch::default() }
        };
        let early = Batch { items: vec![added(1), added(2)], ..Batch::default() };
        world.commit(lease, &early).await.unwrap();
        let title = |title: &str, run_id| ThreadChangeRow {
            id: thread_id,
            run_id,
            title: Some(title.to_owned()),
            status: None,
            image_domains: None,
        };
        let update = match parks {
            true => RunUpdate { parking: 1, ..turn.update(RunState::Waiting) },
            false => turn.update(RunState::Succeeded),
        };
        let last = Batch {
            items: vec![added(3)],
            replaced_items: vec![replaced(1, "mine", run_id)],
            thread_changes: vec![title("mine", run_id)],
            updates: vec![update],
            events: vec![turn.events(3..=5)],
            ..removed(2, run_id)
        };
        let now = async || {
            let items =
                "SELECT string_agg(content, ',' ORDER BY id) FROM thread_items WHERE run_id IS NOT NULL";
            (world.database.scalar(items).await, world.database.scalar("SELECT title FROM threads").await)
        };
        let pair = |items: &str, title: &str| (items.to_owned(), title.to_owned());
        // No later turn exists: it is stored once.
        for _ in 0..2 {
            world.commit(lease, &last).await.unwrap();
            assert_eq!(now().await, pair("mine,3", "mine"));
        }
        let other = world.uuid();
        let follows = Batch {
            replaced_items: vec![replaced(1, "theirs", other)],
            thread_changes: vec![title("theirs", other)],
            ..removed(3, other)
        };
        world.commit(lease, &follows).await.unwrap();
        world.commit(lease, &last).await.unwrap();
        assert_eq!(now().await, pair("theirs", "theirs"), "parks: {parks}");
    }
}
