//! The thread as messages for a model.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use kernel::ItemKey;
use serde_json::{Value, json};
use store::StartedTurn;
use wire::chat::ThreadItem;

use super::again::{Again, created_at, is_users};

/// Returns the items as messages, without those that are queued after this turn. The message of this turn is last. `resumed`:
/// when the turn left the queue; messages before that were answered before it.
pub(super) fn messages(
    items: Vec<ThreadItem>,
    own: Option<&str>,
    resumed: Option<DateTime<Utc>>,
) -> Vec<Value> {
    let waits = |item: &ThreadItem| {
        is_users(item)
            && own.is_some_and(|own| item.id() > own)
            && resumed.is_none_or(|resumed| created_at(item).is_none_or(|created| created > resumed))
    };
    let (mine, others): (Vec<_>, Vec<_>) =
        items.into_iter().filter(|item| !waits(item)).partition(|item| own == Some(item.id()));
    let others = others.iter().map(ThreadItem::as_message);
    let messages = others.chain(mine.iter().map(with_quoted_text));
    messages.map(|(role, content)| json!({"role": role, "content": content})).collect()
}

/// The message of this turn, with the text that it quotes.
fn with_quoted_text(item: &ThreadItem) -> (&'static str, String) {
    let (role, mut content) = item.as_message();
    if let ThreadItem::UserMessage { quoted_text: Some(quoted), .. } = item
        && !quoted.trim().is_empty()
    {
        content.push_str("\n\nThe user is referring to this in particular:\n");
        content.push_str(quoted);
    }
    (role, content)
}

/// Whether messages may have arrived while an earlier one was still being answered, so that answers come after later messages.
/// Then two messages are adjacent, or two items of turns, of which the first may belong to the earlier message.
pub(super) fn may_be_interleaved(items: &[ThreadItem]) -> bool {
    let adjacent = |pair: &[ThreadItem]| pair.iter().all(is_users) || !pair.iter().any(is_users);
    items.iter().filter(|item| is_users(item)).nth(1).is_some() && items.windows(2).any(adjacent)
}

/// Puts each answer after the message that it answers. Turns of a thread never overlap, so an answer belongs to the turn that
/// started last before it. An item of an unknown turn stays where it is.
pub(super) fn paired(items: Vec<ThreadItem>, turns: &[StartedTurn]) -> Vec<ThreadItem> {
    let mut groups: Vec<Vec<ThreadItem>> = Vec::new();
    let (mut by_time, mut by_key) = (HashMap::new(), HashMap::new());
    for item in items {
        let place = if is_users(&item) {
            by_time.extend(created_at(&item).map(|at| (at.timestamp_micros(), groups.len())));
            by_key.extend(ItemKey::parse(item.id()).ok().map(|key| (key, groups.len())));
            None
        } else {
            let of = turn_of(&item, turns);
            let question = of.and_then(|turn| match Again::stored(turn.options.as_deref(), true) {
                Some(again) => by_key.get(&again.item),
                None => by_time.get(&turn.created_at.timestamp_micros()),
            });
            question.copied().or_else(|| groups.len().checked_sub(1))
        };
        match place.and_then(|place| groups.get_mut(place)) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups.into_iter().flatten().collect()
}

fn turn_of<'a>(item: &ThreadItem, turns: &'a [StartedTurn]) -> Option<&'a StartedTurn> {
    let at = created_at(item)?;
    turns.iter().rev().find(|turn| turn.started_at <= at)
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::turn::text::timestamp;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(second)
    }

    fn item(kind: &str, number: u8, second: i64) -> ThreadItem {
        let id = ItemKey([number; ItemKey::LENGTH]).wire("msg");
        serde_json::from_value(json!({
            "type": kind, "id": id, "thread_id": "thr_0", "created_at": timestamp(at(second)), "attachments": [],
            "inference_options": {}, "content": if kind == "sdk_hidden_context" { json!("note") } else { json!([]) },
        }))
        .unwrap()
    }

    fn turn(asked: i64, started: i64) -> StartedTurn {
        StartedTurn { created_at: at(asked), started_at: at(started), options: None }
    }

    fn numbers(items: &[ThreadItem]) -> Vec<u8> {
        items.iter().map(|item| ItemKey::parse(item.id()).unwrap().0[0]).collect()
    }

    #[test]
    fn each_answer_follows_its_question() {
        let (user, answer) = ("user_message", "assistant_message");
        // Three queued messages. The second has no answer; the third has an answer and a note.
        let items = vec![
            item(user, 1, 1),
            item(user, 2, 2),
            item(user, 3, 3),
            item(answer, 4, 5),
            item(answer, 5, 9),
            item("sdk_hidden_context", 6, 10),
        ];
        assert!(may_be_interleaved(&items));
        let turns = [turn(1, 1), turn(2, 6), turn(3, 8)];
        assert_eq!(numbers(&paired(items.clone(), &turns)), [1, 4, 2, 3, 5, 6]);
        // Answers of deleted turns stay where they are.
        assert_eq!(numbers(&paired(items, &[])), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_message_that_arrived_between_two_items_of_an_answer_is_found() {
        let (user, answer) = ("user_message", "assistant_message");
        // The second message arrived while the first turn continued.
        let items = vec![
            item(user, 1, 1),
            item(answer, 2, 2),
            item(user, 3, 3),
            item(answer, 4, 4),
            item(answer, 5, 9),
        ];
        assert!(may_be_interleaved(&items));
        assert_eq!(numbers(&paired(items, &[turn(1, 1), turn(3, 8)])), [1, 2, 4, 3, 5]);
        let plain = [item(user, 1, 1), item(answer, 2, 2), item(user, 3, 3), item(answer, 4, 4)];
        assert!(!may_be_interleaved(&plain) && !may_be_interleaved(&plain[..1]));
    }

    #[test]
    fn a_resumed_turn_reads_what_was_said_while_it_was_parked() {
        let (user, answer) = ("user_message", "assistant_message");
        let items = vec![item(user, 1, 1), item(user, 2, 5), item(answer, 3, 6), item(user, 4, 20)];
        let own = items[0].id().to_owned();
        let roles = |resumed| -> Vec<String> {
            let messages = messages(items.clone(), Some(&own), resumed);
            messages.iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(
            roles(Some(at(10))),
            ["user", "assistant", "user"],
            "its own is last, the fourth is queued"
        );
        assert_eq!(roles(None), ["assistant", "user"]);
    }

    #[test]
    fn a_regenerated_answer_follows_its_question() {
        let items = vec![
            item("user_message", 1, 1),
            item("user_message", 2, 2),
            item("assistant_message", 3, 20),
            item("assistant_message", 4, 30),
        ];
        let again = Again { item: ItemKey([1; 24]), asked: ItemKey([2; 24]), begun: true };
        let turns = [turn(2, 19), StartedTurn { options: Some(again.options()), ..turn(25, 29) }];
        assert_eq!(numbers(&paired(items, &turns)), [1, 4, 2, 3]);
    }
}
