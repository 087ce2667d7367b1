//! What an earlier life of a turn had told its readers. Pure.

use kernel::{ItemKey, ThreadId};
use store::StoredFrames;
use wire::chat::{ChatEvent, Dialect, ThreadItem};
use wire::sse;

use super::message::Message;

/// Where an earlier life had got to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resumed {
    /// Sequence number of the last event.
    pub(super) last_seq: u64,
    /// How many messages were completed.
    pub(super) completed: usize,
    /// The message that was begun and not completed.
    pub(super) message: Option<Message>,
    /// The user's message of this turn.
    pub(super) user_item: Option<ItemKey>,
}

/// Reads the stored events of a stream.
pub(super) fn fold(stored: &[StoredFrames], thread: ThreadId, dialect: Dialect) -> Resumed {
    let mut begun: Option<(ItemKey, String, String)> = None;
    let mut user_item = None;
    let mut completed = 0;
    for event in stored.iter().flat_map(|row| sse::data(&row.frames)) {
        let Ok(event) = serde_json::from_str::<ChatEvent>(event) else { continue };
        match event {
            ChatEvent::ItemAdded { item: ThreadItem::AssistantMessage { id, created_at, .. } } => {
                begun = ItemKey::parse(&id).ok().map(|key| (key, created_at, String::new()));
            }
            ChatEvent::ItemUpdated { update, .. } => {
                if let (Some((_, _, told)), Some(more)) = (&mut begun, update.appended_text()) {
                    told.push_str(more);
                }
            }
            ChatEvent::ItemReplaced { item } => {
                if let Some((_, _, told)) = &mut begun {
                    *told = item.as_message().1;
                }
            }
            ChatEvent::ItemDone { item: ThreadItem::UserMessage { id, .. } } => {
                user_item = ItemKey::parse(&id).ok();
            }
            ChatEvent::ItemDone { item: ThreadItem::AssistantMessage { .. } } => {
                completed += 1;
                begun = None;
            }
            _ => {}
        }
    }
    Resumed {
        last_seq: stored.last().map_or(0, |row| row.last_seq),
        completed,
        message: begun.map(|(id, created_at, told)| Message::begun(id, thread, created_at, dialect, told)),
        user_item,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn stored(events: &[ChatEvent], first_seq: u64) -> StoredFrames {
        let mut frames = String::new();
        let mut seq = first_seq;
        for event in events {
            sse::push_event(&mut frames, "s", seq, &serde_json::to_string(event).unwrap());
            seq += 1;
        }
        StoredFrames { first_seq, last_seq: seq - 1, frames }
    }

    #[test]
    fn a_half_told_message_goes_on_under_its_id() {
        let thread = ThreadId(Uuid::nil());
        for dialect in [Dialect::Interface, Dialect::Chatkit] {
            let mut message = Message::new(ItemKey([3; 24]), thread, "t".into(), dialect);
            message.append("one ");
            let first = message.tell();
            message.append("two");
            let second = message.tell();
            let told = u64::try_from(first.len()).unwrap();
            let rows = [stored(&first, 1), stored(&second, told + 1)];
            let resumed = fold(&rows, thread, dialect);
            assert_eq!(resumed.last_seq, told + u64::try_from(second.len()).unwrap());
            let expected = Message::begun(ItemKey([3; 24]), thread, "t".into(), dialect, "one two".into());
            assert_eq!(resumed.message, Some(expected));
        }
    }

    #[test]
    fn nothing_stored_means_from_the_start() {
        let resumed = fold(&[], ThreadId(Uuid::nil()), Dialect::Interface);
        assert_eq!(resumed, Resumed { last_seq: 0, completed: 0, message: None, user_item: None });
    }
}
