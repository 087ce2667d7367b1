//! Turns killed at any point: readers have exactly the stored output, and receive nothing twice.

use kernel::SeededRandom;

use super::world::*;
use super::*;

fn scripts() -> Vec<Vec<Act>> {
    use Act::{Annotate, Item, More, NewMessage, Text, Undo};
    vec![
        vec![
            Text("one "),
            Text("two"),
            Item(None, Some(task("a"))),
            Text("three"),
            Item(None, Some(hidden("h"))),
        ],
        vec![
            Item(Some("k"), Some(task("a"))),
            Text("x"),
            Item(Some("k"), Some(task("b"))),
            NewMessage,
            Text("y"),
        ],
        vec![Item(Some("k"), Some(widget("a"))), Item(Some("k"), Some(task("other kind"))), Text("y")],
        vec![Item(Some("k"), Some(task("a"))), Item(None, Some(task("b"))), Item(Some("k"), None), Text("z")],
        vec![Text("x"), Item(Some("earlier"), Some(task("changed"))), Text("y"), Item(Some("earlier"), None)],
        vec![Item(Some("earlier"), Some(task("1"))), Item(Some("earlier"), Some(task("2"))), Text("end")],
        vec![
            Text("half"),
            Item(None, Some(task("first attempt"))),
            Undo(vec![Undone::Item, Undone::Message(4)]),
            Text("half"),
            Item(None, Some(task("second attempt"))),
        ],
        vec![
            Text("kept "),
            Text("gone"),
            Item(Some("earlier"), Some(task("failed"))),
            Undo(vec![Undone::Item, Undone::Message(4)]),
            Text("stays"),
        ],
        // Hidden items are not in the stream, so their position among other items is unknown after a kill.
        vec![
            Item(Some("k"), Some(task("a"))),
            Item(None, Some(hidden("1"))),
            Item(Some("k"), Some(task("b"))),
            Item(None, Some(hidden("2"))),
            Item(None, Some(task("c"))),
            Text("d"),
        ],
        // Removing nothing also counts when an attempt fails.
        vec![
            Text("a"),
            Item(None, Some(task("b"))),
            Item(Some("none"), None),
            Undo(vec![Undone::Item]),
            Item(Some("none"), None),
            Text("c"),
        ],
        vec![
            Item(None, Some(hidden("1"))),
            Text("a"),
            Item(None, Some(hidden("2"))),
            Item(None, Some(task("t"))),
            Text("b"),
            Item(None, Some(hidden("3"))),
        ],
        vec![
            More("w", growing("He", "1")),
            Text("beside"),
            More("w", growing("Hello", "1")),
            More("w", growing("Hello", "2")),
            Item(Some("w"), Some(growing("Hello!", "3"))),
        ],
        // Completed at the end, including content that updates cannot express.
        vec![
            More("l", list(&["a"], None)),
            More("l", list(&["a", "b"], None)),
            More("l", list(&["A", "b", "c"], Some("s"))),
            Text("x"),
        ],
        vec![
            More("k", widget("a")),
            Item(Some("k"), Some(widget("a"))),
            More("k", widget("replaced")),
            More("k", widget("replaced again")),
        ],
        // Removed while open, then added again.
        vec![More("k", widget("a")), Item(Some("k"), None), More("k", task("b")), Text("x")],
        vec![More("earlier", task("1")), More("k", task("2")), Item(Some("k"), Some(task("3"))), Text("x")],
        vec![
            More("k", growing("a", "1")),
            More("k", growing("ab", "1")),
            Undo(vec![Undone::Item, Undone::Item]),
            More("k", growing("a", "1")),
            Item(Some("k"), Some(growing("abc", "1"))),
            Text("x"),
        ],
        vec![
            Text("x"),
            More("k", widget("failed")),
            Undo(vec![Undone::Item]),
            More("other", image(None, Some(0.1))),
            More("other", image(Some("https://e.org/1"), Some(0.5))),
            Item(Some("other"), Some(image(Some("https://e.org/2"), None))),
        ],
        vec![More("i", image(Some("https://e.org/1"), Some(0.5))), Text("the last state has no progress")],
        vec![
            Text("one é"),
            Annotate("a", 1),
            Annotate("a", 1),
            Text(" two"),
            Annotate("b", 0),
            Item(None, Some(task("t"))),
            Undo(vec![Undone::Item, Undone::Message(4)]),
            Text(" 2"),
            Annotate("c", 0),
            Item(Some("m"), Some(ItemBody::message("whole"))),
            Text("three"),
            Annotate("d", 5),
        ],
    ]
}

/// After a kill at every point, and a second one at every later point, the thread is the same as without kills, and
/// readers receive no item twice.
#[test]
fn a_kill_at_any_point_does_not_change_the_output() {
    for dialect in [Dialect::Interface, Dialect::Chatkit] {
        for script in scripts() {
            let mut expected = World::with("earlier", task("0"));
            let mut whole = fresh(dialect);
            play(&mut expected, &mut whole, &script, &|_| true);
            whole.settle();
            expected.commit(&mut whole);
            expected.check_reader();
            for first in 0..=script.len() {
                for second in 0..=script.len() {
                    let mut world = World::with("earlier", task("0"));
                    for killed in [first, second] {
                        let mut writer = next_life(&world, dialect);
                        play(&mut world, &mut writer, &script[..killed], &|_| true);
                    }
                    let mut last = next_life(&world, dialect);
                    play(&mut world, &mut last, &script, &|number| number % 2 == 0);
                    last.settle();
                    world.commit(&mut last);
                    world.check_reader();
                    let place = format!("{script:?} {dialect:?} killed after {first} and {second}");
                    assert!(world.open.is_empty(), "{place}");
                    assert_eq!(world.contents(), expected.contents(), "{place}");
                }
            }
        }
    }
}

/// A run whose nodes act differently after the kill ends with the later output.
#[test]
fn different_output_after_a_kill_replaces_and_removes_the_earlier_output() {
    let random = SeededRandom::new(7);
    let pick = |most: usize| {
        let mut byte = [0_u8];
        kernel::Random::fill(&random, &mut byte).unwrap();
        usize::from(byte[0]) % most
    };
    let all = scripts();
    for dialect in [Dialect::Interface, Dialect::Chatkit] {
        for before in &all {
            for after in &all {
                let killed = pick(before.len() + 1);
                let mut world = World::with("earlier", task("0"));
                let mut first = fresh(dialect);
                play(&mut world, &mut first, &before[..killed], &|_| true);
                let mut second = next_life(&world, dialect);
                play(&mut world, &mut second, after, &|_| true);
                second.settle();
                world.commit(&mut second);
                world.check_reader();
                // A removal is final.
                let is_removed = |act: &Act| matches!(act, Act::Item(Some("earlier"), None));
                let mut alone = match before[..killed].iter().any(is_removed) {
                    true => World::default(),
                    false => World::with("earlier", task("0")),
                };
                let mut whole = fresh(dialect);
                play(&mut alone, &mut whole, after, &|_| true);
                whole.settle();
                alone.commit(&mut whole);
                let place = format!("{:?} then {after:?}, {dialect:?}", &before[..killed]);
                // Items hidden from readers keep their relative order.
                let parted = |world: &World| -> (Vec<ItemBody>, Vec<ItemBody>) {
                    world
                        .contents()
                        .into_iter()
                        .partition(|body| matches!(body, ItemBody::HiddenContextItem { .. }))
                };
                assert_eq!(parted(&world), parted(&alone), "{place}");
            }
        }
    }
}

/// A different key creates a different item, even in the next attempt by the same node.
#[test]
fn an_attempt_with_another_key_sends_another_item() {
    for dialect in [Dialect::Interface, Dialect::Chatkit] {
        let mut world = World::default();
        let mut writer = fresh(dialect);
        let script = [
            Act::Item(Some("a"), Some(task("1"))),
            Act::Undo(vec![Undone::Item]),
            Act::Item(Some("b"), Some(task("2"))),
            Act::Item(Some("a"), None),
        ];
        play(&mut world, &mut writer, &script, &|_| true);
        writer.settle();
        world.commit(&mut writer);
        world.check_reader();
        let rows: Vec<_> =
            world.rows.values().map(|(key, item)| (key.as_deref(), item.body.clone())).collect();
        assert_eq!(rows, [(Some("b"), task("2"))]);
    }
}

#[test]
fn a_failed_run_keeps_the_items_that_readers_received() {
    for dialect in [Dialect::Interface, Dialect::Chatkit] {
        let mut world = World::default();
        let mut writer = fresh(dialect);
        let script = [
            Act::Text("said"),
            Act::Item(None, Some(task("t"))),
            Act::Undo(vec![Undone::Item, Undone::Message(4)]),
        ];
        play(&mut world, &mut writer, &script, &|_| true);
        writer.keep_what_was_told();
        writer.leave_incomplete(IncompleteReason::Failed);
        world.commit(&mut writer);
        world.check_reader();
        assert_eq!(world.contents(), [ItemBody::message("said"), task("t")]);
    }
}

/// A stopped turn removes its open items, and a parked turn completes them.
#[test]
fn open_items_end_when_their_turn_stops_or_parks() {
    for dialect in [Dialect::Interface, Dialect::Chatkit] {
        for is_resumed in [false, true] {
            let script = [
                Act::More("a", growing("a", "1")),
                Act::Item(None, Some(task("complete"))),
                Act::More("b", list(&["b"], None)),
            ];
            let played = |world: &mut World| {
                let mut writer = fresh(dialect);
                play(world, &mut writer, &script, &|_| true);
                if is_resumed { next_life(world, dialect) } else { writer }
            };
            let mut stopped = World::default();
            let mut writer = played(&mut stopped);
            writer.keep_what_was_told();
            writer.remove_open_items();
            stopped.commit(&mut writer);
            stopped.check_reader();
            assert_eq!(stopped.contents(), [task("complete")]);

            let mut parked = World::default();
            let mut writer = played(&mut parked);
            writer.complete_open_items();
            parked.commit(&mut writer);
            parked.check_reader();
            let all = [growing("a", "1"), task("complete"), list(&["b"], None)];
            assert_eq!(parked.contents(), all);
            // Later states replace them.
            let mut later = next_life(&parked, dialect);
            play(&mut parked, &mut later, &script, &|_| true);
            play(&mut parked, &mut later, &[Act::More("a", growing("ab", "1"))], &|_| true);
            later.settle();
            parked.commit(&mut later);
            parked.check_reader();
            let all = [growing("ab", "1"), task("complete"), list(&["b"], None)];
            assert_eq!(parked.contents(), all);
        }
    }
}

/// Updates are small: readers do not receive a whole widget for each word.
#[test]
fn open_items_are_sent_as_updates() {
    let mut writer = fresh(Dialect::Chatkit);
    let mut world = World::default();
    let script = [
        Act::More("w", growing("a", "1")),
        Act::More("w", growing("ab", "1")),
        Act::More("l", list(&["a"], None)),
        Act::More("l", list(&["a", "b"], Some("s"))),
    ];
    play(&mut world, &mut writer, &script, &|_| false);
    writer.settle();
    let kinds: Vec<String> = sent_events(&mut writer)
        .iter()
        .map(|event| {
            let event = serde_json::to_value(event).unwrap();
            let update = event.pointer("/update/type").or(event.get("type"));
            update.and_then(Value::as_str).unwrap().to_owned()
        })
        .collect();
    let expected = [
        "thread.item.added",
        "widget.streaming_text.value_delta",
        "thread.item.added",
        "workflow.task.added",
        "thread.item.done",
        "thread.item.done",
    ];
    assert_eq!(kinds, expected);
}

/// Content without updates, such as a copy text or a summary, does not make readers see earlier states again.
#[test]
fn a_resumed_turn_repeats_no_update() {
    let card = |text: &str| match growing(text, "1") {
        ItemBody::Widget { widget, .. } => ItemBody::Widget { widget, copy_text: Some(text.to_owned()) },
        other => other,
    };
    let script = [
        Act::More("w", card("a")),
        Act::More("w", card("ab")),
        Act::More("w", card("abc")),
        Act::More("i", image(Some("https://e.org/1"), Some(0.1))),
        Act::More("i", image(Some("https://e.org/2"), Some(0.2))),
        Act::More("l", list(&["a"], Some("1"))),
        Act::More("l", list(&["a", "b"], Some("2"))),
        Act::More("t", task("a")),
        Act::More("t", task("b")),
    ];
    for dialect in [Dialect::Interface, Dialect::Chatkit] {
        let mut world = World::default();
        let mut first = fresh(dialect);
        play(&mut world, &mut first, &script, &|_| true);
        let mut second = next_life(&world, dialect);
        play(&mut world, &mut second, &script, &|_| false);
        let again = sent_events(&mut second);
        assert!(again.is_empty(), "{again:?}");
        second.settle();
        world.commit(&mut second);
        world.check_reader();
        let last =
            [card("abc"), image(Some("https://e.org/2"), None), list(&["a", "b"], Some("2")), task("b")];
        assert_eq!(world.contents(), last);
    }
}

/// A failed attempt's annotations are removed, even at the end of text that stays.
#[test]
fn an_annotation_is_undone_with_its_text() {
    for dialect in [Dialect::Interface, Dialect::Chatkit] {
        let mut world = World::default();
        let mut writer = fresh(dialect);
        let script = [
            Act::Text("one"),
            Act::Annotate("kept", 0),
            Act::Text(" two"),
            Act::Annotate("gone", 4),
            Act::Item(None, Some(task("t"))),
            Act::Undo(vec![Undone::Item, Undone::Message(4)]),
            Act::Text(" 2"),
        ];
        play(&mut world, &mut writer, &script, &|_| true);
        writer.settle();
        world.commit(&mut writer);
        world.check_reader();
        let text = serde_json::to_string(&world.contents()).unwrap();
        assert!(text.contains("one 2") && text.contains("kept") && !text.contains("gone"), "{text}");
    }
}
