mod kills;
mod others;
mod world;

use std::sync::LazyLock;

use engine::ports::{ImmediateEvent, SentAnnotation, SentItem, Undone};
use kernel::{SystemClock, SystemRandom};
use store::batch::Batch;
use wire::chat::NoticeLevel;
use wire::sse;

use super::*;
use crate::kinds::turn::resume::{Resumed, fold};
use crate::run::Frames;

const THREAD: ThreadId = ThreadId(Uuid::nil());

/// Ids in later processes must follow those in earlier ones.
static IDS: LazyLock<Ids> =
    LazyLock::new(|| Ids::new(Arc::new(SystemClock::new()), Arc::new(SystemRandom::new())));

fn writer(dialect: Dialect, resumed: Resumed) -> ChatEvents {
    let (ids, clock) = (IDS.clone(), Arc::new(SystemClock::new()));
    let turn = TurnIdentity { thread: THREAD, run: Uuid::nil(), question: None };
    ChatEvents::new(turn, dialect, ids, clock, resumed.sent, resumed.message)
}

fn fresh(dialect: Dialect) -> ChatEvents {
    writer(dialect, Resumed::default())
}

/// Returns the pending events.
fn sent_events(writer: &mut ChatEvents) -> Vec<ChatEvent> {
    let mut frames = Frames::new("s".to_owned(), 1);
    writer.write(&mut frames, &mut Batch::default());
    let (text, ..) = frames.take();
    sse::data(&text).map(|event| serde_json::from_str(event).unwrap()).collect()
}

fn done(events: &[ChatEvent]) -> Vec<String> {
    let texts = events.iter().filter_map(|event| match event {
        ChatEvent::ItemDone { item } => item.body.text(),
        _ => None,
    });
    texts.collect()
}

#[test]
fn a_new_message_completes_the_previous_one_unless_it_is_empty() {
    let mut writer = fresh(Dialect::Interface);
    writer.new_message();
    writer.text("a", "one");
    writer.new_message();
    writer.new_message();
    writer.text("b", "two");
    writer.complete();
    assert_eq!(done(&sent_events(&mut writer)), ["one", "two"]);
}

#[test]
fn a_resumed_turn_does_not_complete_a_message_twice() {
    for dialect in [Dialect::Interface, Dialect::Chatkit] {
        let script = |writer: &mut ChatEvents| {
            writer.text("a", "one");
            writer.new_message();
            // A retried attempt.
            writer.text("b", "tw");
            writer.undo("b", &[Undone::Text(2)]);
            writer.new_message();
            writer.text("b", "two");
        };
        let mut first = fresh(dialect);
        script(&mut first);
        let mut frames = Frames::new("s".to_owned(), 1);
        first.write(&mut frames, &mut Batch::default());
        let (text, first_seq, last_seq) = frames.take();
        let stored = store::StoredFrames { first_seq, last_seq, frames: text };
        let mut second = writer(dialect, fold(Resumed::default(), &[stored], THREAD, dialect));
        script(&mut second);
        assert!(sent_events(&mut second).is_empty(), "everything was sent");
        second.complete();
        assert_eq!(done(&sent_events(&mut second)), ["two"]);
    }
}

#[test]
fn undone_messages_without_a_replacement_are_removed() {
    let mut writer = fresh(Dialect::Interface);
    writer.text("a", "half");
    assert_eq!(sent_events(&mut writer).len(), 2);
    writer.undo("a", &[Undone::Text(4)]);
    assert!(!writer.has_spoken());
    writer.complete();
    assert!(matches!(sent_events(&mut writer)[..], [ChatEvent::ItemRemoved { .. }]));
}

#[test]
fn a_notice_follows_the_text_sent_before_it() {
    let mut writer = fresh(Dialect::Interface);
    writer.text("a", "said");
    writer.immediate(ImmediateEvent::Notice {
        level: NoticeLevel::Info,
        message: "careful".to_owned(),
        title: None,
    });
    writer.text("a", " more");
    let kinds: Vec<bool> =
        sent_events(&mut writer).iter().map(|event| matches!(event, ChatEvent::Notice { .. })).collect();
    assert_eq!(kinds, [false, false, true, false]);
}
