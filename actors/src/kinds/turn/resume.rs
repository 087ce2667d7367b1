//! Rebuilds the reader state that an earlier life of a turn left. Pure.

use kernel::{ItemKey, ThreadId};
use store::StoredFrames;
use wire::chat::{ChatEvent, ContentPart, Dialect, ItemBody, OutputText, ThreadItem};
use wire::sse;

use super::continuing::Continued;
use super::images::without_address;
use super::message::DraftMessage;
use super::sent::OutputList;

/// The state that an earlier life left.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Resumed {
    /// Sequence number of the last event.
    pub(super) last_seq: u64,
    /// The output list, except for the unfinished message.
    pub(super) sent: OutputList,
    /// The message that was started and not completed.
    pub(super) message: Option<DraftMessage>,
    /// The user's message of this turn.
    pub(super) user_item: Option<ItemKey>,
    /// The turn that it continues.
    pub(super) continued: Option<Continued>,
    /// Whether an earlier life of this run added an item.
    pub(super) has_added: bool,
}

/// Reads a stream's stored events. `before`: the initial state of a turn that continues another one.
pub(super) fn fold(before: Resumed, stored: &[StoredFrames], thread: ThreadId, dialect: Dialect) -> Resumed {
    let mut resumed = Resumed { last_seq: stored.last().map_or(0, |row| row.last_seq), ..before };
    let mut begun: Option<(ItemKey, ThreadItem)> = None;
    for event in stored.iter().flat_map(|row| sse::data(&row.frames)) {
        let Ok(event) = serde_json::from_str(event).map(without_address) else { continue };
        let is_begun = |id: ItemKey, begun: &Option<(ItemKey, ThreadItem)>| {
            begun.as_ref().is_some_and(|(begun, _)| *begun == id)
        };
        match event {
            ChatEvent::ItemAdded { item } => {
                resumed.has_added = true;
                let Ok(id) = ItemKey::parse(&item.id) else { continue };
                match &item.body {
                    ItemBody::AssistantMessage { .. } => begun = Some((id, item)),
                    _ => resumed.sent.received_open(id, item),
                }
            }
            ChatEvent::ItemUpdated { item_id, update } => {
                let Ok(id) = ItemKey::parse(&item_id) else { continue };
                match &mut begun {
                    Some((begun, item)) if *begun == id => update.apply(&mut item.body),
                    _ => resumed.sent.received_update(id, &update),
                }
            }
            // Questions are not node output.
            ChatEvent::ItemReplaced { item } | ChatEvent::ItemDone { item } if is_question(&item) => {}
            ChatEvent::ItemReplaced { item } => {
                let Ok(id) = ItemKey::parse(&item.id) else { continue };
                match &mut begun {
                    Some((begun, known)) if *begun == id => *known = item,
                    _ => resumed.sent.received_change(id, item),
                }
            }
            ChatEvent::ItemDone { item } => {
                let Ok(id) = ItemKey::parse(&item.id) else { continue };
                if matches!(item.body, ItemBody::UserMessage { .. }) {
                    resumed.user_item = Some(id);
                    continue;
                }
                begun = begun.filter(|(begun, _)| *begun != id);
                resumed.has_added = true;
                resumed.sent.received(id, item);
            }
            ChatEvent::ItemRemoved { item_id } => {
                let Ok(id) = ItemKey::parse(&item_id) else { continue };
                if is_begun(id, &begun) {
                    begun = None;
                }
                resumed.sent.received_removal(id);
            }
            _ => {}
        }
    }
    resumed.message = begun.map(|(id, item)| {
        let created_at = item.created_at.clone();
        DraftMessage::begun(id, thread, created_at, dialect, first_part(item))
    });
    resumed
}

fn is_question(item: &ThreadItem) -> bool {
    matches!(item.body, ItemBody::StructuredInput { .. } | ItemBody::ClientToolCall { .. })
}

/// The first part of an unfinished message.
fn first_part(item: ThreadItem) -> OutputText {
    match item.body {
        ItemBody::AssistantMessage { content, .. } => {
            content.into_iter().next().map(|ContentPart::OutputText(part)| part).unwrap_or_default()
        }
        _ => OutputText::default(),
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
    fn a_partly_sent_message_continues_under_its_id() {
        let thread = ThreadId(Uuid::nil());
        for dialect in [Dialect::Interface, Dialect::Chatkit] {
            let mut message = DraftMessage::new(ItemKey([3; 24]), thread, "t".into(), dialect);
            message.append("one ");
            let first = message.tell();
            message.append("two");
            let second = message.tell();
            let first_count = u64::try_from(first.len()).unwrap();
            let rows = [stored(&first, 1), stored(&second, first_count + 1)];
            let resumed = fold(Resumed::default(), &rows, thread, dialect);
            assert_eq!(resumed.last_seq, first_count + u64::try_from(second.len()).unwrap());
            let text = OutputText { text: "one two".into(), annotations: Vec::new() };
            let expected = DraftMessage::begun(ItemKey([3; 24]), thread, "t".into(), dialect, text);
            assert_eq!(resumed.message, Some(expected));
        }
    }

    #[test]
    fn without_stored_frames_a_turn_starts_from_the_beginning() {
        let resumed = fold(Resumed::default(), &[], ThreadId(Uuid::nil()), Dialect::Interface);
        assert_eq!(resumed, Resumed::default());
    }
}
