//! Visible items in a thread.

use kernel::ItemKey;
use store::batch::{Batch, CutRow, ItemRow, ThreadChangeRow};
use store::{Slice, TurnsToStop};
use wire::chat::{ItemBody, ThreadItem, ThreadStatus};

use crate::support::World;

fn key(n: u8) -> ItemKey {
    ItemKey([n; ItemKey::LENGTH])
}

/// A user message for odd `n`, a reply for even `n`, as the service writes them.
fn content(n: u8) -> String {
    let (id, thread_id, created_at) = (key(n).wire("msg"), "thr_1".to_owned(), "t".to_owned());
    let body = if n % 2 == 1 {
        ItemBody::UserMessage {
            content: Vec::new(),
            attachments: Vec::new(),
            quoted_text: None,
            inference_options: wire::chat::InferenceOptions::default(),
        }
    } else {
        ItemBody::AssistantMessage { content: Vec::new(), status: None, reason: None }
    };
    let item = ThreadItem { id, thread_id, created_at, body };
    serde_json::to_string(&item).unwrap()
}

#[tokio::test]
async fn a_cut_hides_earlier_messages_but_not_later_ones() {
    let world = World::new().await;
    let (lease, turn) = (world.writer().await, world.turn());
    let thread = turn.thread;
    let other = world.turn().thread;
    let items = [thread, other].into_iter().flat_map(|thread_id| {
        (1..=9).map(move |n| ItemRow {
            thread_id,
            id: key(n),
            content: content(n),
            answers: None,
            run_id: None,
            key: None,
        })
    });
    world.commit(lease, &Batch { items: items.collect(), ..Batch::default() }).await.unwrap();
    let shown = async |thread| {
        let all = world.store.thread_items(thread).await.unwrap();
        let number = |item: &ThreadItem| ItemKey::parse(item.id()).unwrap().0[0];
        let numbers: Vec<u8> = all.iter().map(|stored| number(&stored.item)).collect();
        let keys: Vec<ItemKey> = (1..=9).map(key).collect();
        let mut named: Vec<u8> =
            world.store.items_named(thread, &keys).await.unwrap().iter().map(number).collect();
        named.sort_unstable();
        assert_eq!(named, numbers);
        let slice = Slice { after: None, ascending: true, limit: 100 };
        let part: Vec<u8> = world.store.items_of(thread, slice).await.unwrap().iter().map(number).collect();
        assert_eq!(part, numbers);
        numbers
    };
    assert_eq!(shown(thread).await, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let cut = |id, behind, messages_from, answers_behind| {
        let (behind, messages_from, answers_behind) = (key(behind), key(messages_from), key(answers_behind));
        let row = CutRow { thread_id: thread, id: key(id), behind, messages_from, answers_behind };
        Batch { cuts: vec![row], ..Batch::default() }
    };
    // Requested after 5: 4 and 5 are cut.
    let batch = cut(6, 3, 6, 3);
    world.commit(lease, &batch).await.unwrap();
    assert_eq!(shown(thread).await, [1, 2, 3, 6, 7, 8, 9]);
    // Started after 8: replies up to it are cut too, the message 7 stays.
    world.commit(lease, &cut(9, 3, 6, 3)).await.unwrap();
    assert_eq!(shown(thread).await, [1, 2, 3, 7, 9]);
    let before = world.everything().await;
    world.commit(lease, &batch).await.unwrap();
    assert_eq!(world.everything().await, before, "sent again");
    assert_eq!(shown(other).await, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    // 2 is the reply to an input before 1, and stays; 7 came later.
    world.commit(lease, &cut(10, 1, 7, 2)).await.unwrap();
    assert_eq!(shown(thread).await, [1, 2, 7, 9]);
    assert!(world.store.has_item(thread, key(7)).await.unwrap());
    assert!(!world.store.has_item(thread, key(3)).await.unwrap());
    assert!(!world.store.has_item(thread, key(10)).await.unwrap());
}

#[tokio::test]
async fn a_tombstone_keeps_its_id() {
    let world = World::new().await;
    let (lease, turn) = (world.writer().await, world.turn());
    world.commit(lease, &turn.begin()).await.unwrap();
    let title = world.store.thread(turn.thread).await.unwrap().unwrap().title;
    assert_eq!(title.as_deref(), Some("Hi"));
    let running = world.store.running_turn(turn.thread).await.unwrap().unwrap();
    assert_eq!((running.run, running.stream), (turn.run, turn.stream));
    assert_eq!(world.store.request_cancel_of_thread(turn.thread, TurnsToStop::All).await.unwrap(), [running]);
    assert_eq!(world.store.delete_thread(turn.thread).await.unwrap(), Some(vec![running]));
    assert_eq!(world.store.delete_thread(turn.thread).await.unwrap(), None, "twice");
    assert_eq!(world.store.thread_items(turn.thread).await.unwrap(), []);
    assert!(world.store.thread(turn.thread).await.unwrap().is_none());
    assert!(world.store.rename_thread(turn.thread, "T").await.unwrap().is_none());
    assert_eq!(world.count("threads").await, "1");
    world.commit(lease, &turn.end()).await.unwrap();
    assert!(world.store.running_turn(turn.thread).await.unwrap().is_none());
}

#[tokio::test]
async fn changes_of_a_thread_are_written_field_by_field() {
    let world = World::new().await;
    let (lease, turn) = (world.writer().await, world.turn());
    world.commit(lease, &turn.begin()).await.unwrap();
    let none =
        ThreadChangeRow { id: turn.thread, run_id: turn.run, title: None, status: None, image_domains: None };
    let locked = |reason: Option<&str>| ThreadStatus::Locked { reason: reason.map(str::to_owned) };
    let hosts = |hosts: &[&str]| Some(hosts.iter().map(|&host| host.to_owned()).collect::<Vec<_>>());
    let title = |title: &str| ThreadChangeRow { title: Some(title.to_owned()), ..none.clone() };
    let status = |status| ThreadChangeRow { status: Some(status), ..none.clone() };
    let images = |domains| ThreadChangeRow { image_domains: Some(domains), ..none.clone() };
    for (rows, expected) in [
        (vec![title("a")], (Some("a"), ThreadStatus::Active, None)),
        // Several in one commit: the last value per field applies.
        (
            vec![
                title("b"),
                status(ThreadStatus::Active),
                title("c"),
                status(locked(Some("r"))),
                images(hosts(&["x"])),
            ],
            (Some("c"), locked(Some("r")), hosts(&["x"])),
        ),
        (vec![images(hosts(&[]))], (Some("c"), locked(Some("r")), hosts(&[]))),
        (vec![images(None), title("d")], (Some("d"), locked(Some("r")), None)),
        (vec![status(locked(None))], (Some("d"), locked(None), None)),
        (vec![status(ThreadStatus::Active)], (Some("d"), ThreadStatus::Active, None)),
    ] {
        // Once more as after a lost acknowledgement.
        for _ in 0..2 {
            let batch = Batch { thread_changes: rows.clone(), ..Batch::default() };
            world.commit(lease, &batch).await.unwrap();
            let stored = world.store.thread(turn.thread).await.unwrap().unwrap();
            let (title, status, domains) = expected.clone();
            assert_eq!(
                (stored.title.as_deref(), stored.status, stored.image_domains),
                (title, status, domains)
            );
        }
    }
    world.store.delete_thread(turn.thread).await.unwrap().unwrap();
    let batch = Batch { thread_changes: vec![title("late")], ..Batch::default() };
    world.commit(lease, &batch).await.unwrap();
    assert_eq!(world.database.scalar("SELECT title FROM threads").await, "d", "nothing from a deleted one");
}
