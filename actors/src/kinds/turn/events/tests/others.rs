//! Parked turns, and changes by other turns meanwhile.

use super::world::*;
use super::*;

/// Returns the items in the thread and at the reader after a parked turn was resumed. `meanwhile` is another turn's
/// change; its events are not in this turn's stream.
fn resumed_after(
    before: &[Act],
    meanwhile: impl Fn(&mut World),
    after: &[Act],
    dialect: Dialect,
) -> Vec<ItemBody> {
    let mut world = World::with("earlier", task("0"));
    let mut first = fresh(dialect);
    play(&mut world, &mut first, before, &|_| true);
    meanwhile(&mut world);
    let mut second = next_life(&world, dialect);
    play(&mut world, &mut second, after, &|_| true);
    second.settle();
    second.end_changes();
    world.commit(&mut second);
    world.check_reader();
    world.contents()
}

/// Another turn's change to the newest item with a key.
fn other_turn(key: &'static str, body: Option<ItemBody>) -> impl Fn(&mut World) {
    move |world| {
        let id = world.with_key(key).unwrap().id.0.to_vec();
        world.before.clear();
        match &body {
            Some(body) => world.rows.get_mut(&id).unwrap().1.body = body.clone(),
            None => drop(world.rows.remove(&id)),
        }
    }
}

/// Changes and removals by other turns during a wait stay, even if the resumed turn changed the item before them, and
/// whether it repeats, omits or takes back that change.
#[test]
fn changes_by_another_turn_during_a_wait_stay() {
    use Act::{Item, Text, Undo};
    let mine = || Item(Some("earlier"), Some(task("mine")));
    let own = || Item(Some("own"), Some(task("mine")));
    let (theirs, message) = (|| Some(task("theirs")), || ItemBody::message("waits, and ends"));
    let after = |acts: &[Act]| [acts, &[Text("waits"), Text(", and ends")]].concat();
    let taken_back = |key| [Item(Some(key), Some(task("failed"))), Undo(vec![Undone::Item])];
    for dialect in [Dialect::Interface, Dialect::Chatkit] {
        for acts in [vec![mine()], vec![], [vec![mine()], taken_back("earlier").to_vec()].concat()] {
            let before = [mine(), Text("waits")];
            let changed = resumed_after(&before, other_turn("earlier", theirs()), &after(&acts), dialect);
            assert_eq!(changed, [task("theirs"), message()], "{acts:?}");
            let removed = resumed_after(&before, other_turn("earlier", None), &after(&acts), dialect);
            assert_eq!(removed, [message()], "{acts:?}");
        }
        let before = [own(), Text("waits")];
        for acts in [vec![own()], [vec![own()], taken_back("own").to_vec()].concat()] {
            let changed = resumed_after(&before, other_turn("own", theirs()), &after(&acts), dialect);
            assert_eq!(changed, [task("0"), task("theirs"), message()], "{acts:?}");
            let removed = resumed_after(&before, other_turn("own", None), &after(&acts), dialect);
            assert_eq!(removed, [task("0"), message()], "{acts:?}");
        }
        // A change by the turn after that is new.
        let acts = [vec![own()], after(&[]), vec![Item(Some("own"), Some(task("again")))]].concat();
        let changed = resumed_after(&before, other_turn("own", theirs()), &acts, dialect);
        assert_eq!(changed, [task("0"), task("again"), message()]);
        let removed = resumed_after(&before, other_turn("own", None), &acts, dialect);
        assert_eq!(removed, [task("0"), message(), task("again")], "another item");
    }
}

/// Another turn has reused the key for a new item.
#[test]
fn a_newer_item_of_another_turn_stays() {
    use Act::{Item, Text};
    let acts = [Item(Some("earlier"), Some(task("mine"))), Text("waits"), Text(", and ends")];
    for dialect in [Dialect::Interface, Dialect::Chatkit] {
        let renew = |world: &mut World| {
            other_turn("earlier", None)(world);
            let (id, body) = (IDS.item().unwrap(), task("theirs"));
            let item = ThreadItem {
                id: id.wire("tsk"),
                thread_id: THREAD.to_string(),
                created_at: "t".into(),
                body: body.clone(),
            };
            world.shown.push((item.id.clone(), body));
            world.rows.insert(id.0.to_vec(), (Some("earlier".to_owned()), item));
            world.others.push(id.0.to_vec());
        };
        let contents = resumed_after(&acts[..2], renew, &acts, dialect);
        assert_eq!(contents, [ItemBody::message("waits, and ends"), task("theirs")]);
    }
}

/// A failed attempt's output is in the stream, and is not produced again.
#[test]
fn a_resumed_turn_does_not_repeat_a_retried_attempt() {
    use Act::{Item, Text, Undo};
    let attempt = |text| Item(Some("k"), Some(task(text)));
    let rest = [Text("said"), Item(None, Some(task("c"))), attempt("d")];
    for dialect in [Dialect::Interface, Dialect::Chatkit] {
        let mut world = World::default();
        let mut first = fresh(dialect);
        let failed = [attempt("a"), Undo(vec![Undone::Item])];
        play(&mut world, &mut first, &[&failed[..], &[attempt("b")], &rest].concat(), &|_| true);
        let mut second = next_life(&world, dialect);
        play(&mut world, &mut second, &[&[attempt("b")], &rest[..]].concat(), &|_| false);
        second.settle();
        assert!(sent_events(&mut second).is_empty(), "readers have received everything");
    }
}

#[test]
fn an_undone_change_does_not_count_as_an_answer() {
    use Act::{Item, Undo};
    let mut world = World::with("earlier", task("0"));
    let mut writer = fresh(Dialect::Interface);
    let changed = Item(Some("earlier"), Some(task("1")));
    play(&mut world, &mut writer, &[changed.clone(), Undo(vec![Undone::Item])], &|_| true);
    writer.settle();
    assert!(!writer.has_spoken());
    play(&mut world, &mut writer, &[changed], &|_| true);
    writer.settle();
    assert!(writer.has_spoken());
}
