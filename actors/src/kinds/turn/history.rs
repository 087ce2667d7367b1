//! The thread as messages for a model.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use kernel::{ItemKey, ThreadId};
use serde_json::{Value, json};
use store::{Store, StoreError, StoredAttachment, StoredItem};
use uuid::Uuid;
use wire::chat::{ItemBody, ThreadItem, ToolCallStatus};

use super::again::{created_at, is_users};

/// Maximum bytes of client tool output that models read.
const CALL_OUTPUT: usize = 64 << 10;

/// The thread items that belong to the turn.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TurnItems<'a> {
    /// The message that it answers.
    pub(super) message: Option<&'a str>,
    /// Output of the turns that it continues.
    pub(super) items: &'a [String],
}

/// Converts items to messages, without those queued after this turn. The turn's own items come last. `resumed`: when
/// the turn left the queue; earlier messages were answered before it. `files`: the thread's attachments.
pub(super) fn messages(
    items: Vec<ThreadItem>,
    files: &[StoredAttachment],
    own: TurnItems<'_>,
    resumed: Option<DateTime<Utc>>,
) -> Vec<Value> {
    let TurnItems { message: own, items: sent } = own;
    let waits = |item: &ThreadItem| {
        is_users(item)
            && own.is_some_and(|own| item.id() > own)
            && resumed.is_none_or(|resumed| created_at(item).is_none_or(|created| created > resumed))
    };
    let (mine, others): (Vec<_>, Vec<_>) = items
        .into_iter()
        .filter(|item| !waits(item))
        .partition(|item| own == Some(item.id()) || sent.iter().any(|id| id == item.id()));
    let files: HashMap<String, &StoredAttachment> =
        files.iter().map(|file| (file.id.to_string(), file)).collect();
    let message = |item: &ThreadItem, (role, content): (&str, String)| {
        let mut message = json!({"role": role, "content": content});
        let parts = parts(item, &content, &files);
        if let (false, Some(members)) = (parts.is_empty(), message.as_object_mut()) {
            members.insert("parts".to_owned(), Value::Array(parts));
        }
        message
    };
    let all = others.iter().map(|item| (item, item.as_message()));
    let all = all.chain(mine.iter().map(|item| (item, with_quoted_text(item))));
    all.flat_map(|(item, said)| match said {
        Some(said) => vec![message(item, said)],
        None => call_messages(item),
    })
    .collect()
}

/// A client tool call with its output; empty for other items, and for a call without output.
fn call_messages(item: &ThreadItem) -> Vec<Value> {
    let ItemBody::ClientToolCall { status: ToolCallStatus::Completed, call_id, name, arguments, output } =
        &item.body
    else {
        return Vec::new();
    };
    let output = match output {
        Some(Value::String(text)) => text.clone(),
        Some(output) => output.to_string(),
        None => Value::Null.to_string(),
    };
    // Endpoints refuse other characters in tool names.
    let name = name.replace(|letter: char| !letter.is_ascii_alphanumeric() && !"_-".contains(letter), "_");
    let output = output.get(..output.floor_char_boundary(CALL_OUTPUT)).unwrap_or_default();
    vec![
        json!({"role": "assistant", "content": "",
               "tool_calls": [{"id": call_id, "name": name, "arguments": arguments}]}),
        json!({"role": "tool", "content": output, "tool_call_id": call_id}),
    ]
}

/// The attachments of these thread items.
pub(super) async fn files(
    store: &Store,
    thread: ThreadId,
    items: &[StoredItem],
) -> Result<Vec<StoredAttachment>, StoreError> {
    let has = |item: &ThreadItem| matches!(&item.body, ItemBody::UserMessage { attachments, .. } if !attachments.is_empty());
    if items.iter().any(|stored| has(&stored.item)) {
        store.attachments_of(thread).await
    } else {
        Ok(Vec::new())
    }
}

/// The parts of a message with attachments: the text, if any, and the attachments.
fn parts(item: &ThreadItem, content: &str, files: &HashMap<String, &StoredAttachment>) -> Vec<Value> {
    let ItemBody::UserMessage { attachments, .. } = &item.body else { return Vec::new() };
    if attachments.is_empty() {
        return Vec::new();
    }
    let text = (!content.trim().is_empty()).then(|| json!({"type": "text", "text": content}));
    let found = attachments.iter().filter_map(|one| files.get(&one.id));
    text.into_iter().chain(found.map(|file| part(file))).collect()
}

fn part(file: &StoredAttachment) -> Value {
    let kind = match file.mime_type.split_once('/') {
        Some((kind @ ("image" | "audio"), _)) => kind,
        _ => "file",
    };
    json!({"type": kind, "attachment": file.id.to_string(), "name": file.name, "mime_type": file.mime_type,
           "size": file.size, "digest": file.digest.map(hex::encode)})
}

/// The thread as it was before a run without a message started.
pub(crate) async fn before(store: &Store, thread: ThreadId, run: Uuid) -> Result<Vec<Value>, StoreError> {
    let items = store.thread_items(thread).await?;
    let files = files(store, thread, &items).await?;
    let own = ItemKey::at(run).wire("msg");
    Ok(messages(paired(items), &files, TurnItems { message: Some(&own), items: &[] }, None))
}

/// The ids of items that answer this message.
pub(super) fn answers_to(items: &[StoredItem], message: Option<ItemKey>) -> Vec<String> {
    let answers = |stored: &&StoredItem| message.is_some() && stored.answers == message;
    items.iter().filter(answers).map(|stored| stored.item.id().to_owned()).collect()
}

/// The turn's message, including the text that it quotes.
fn with_quoted_text(item: &ThreadItem) -> Option<(&'static str, String)> {
    let (role, mut content) = item.as_message()?;
    if let ItemBody::UserMessage { quoted_text: Some(quoted), .. } = &item.body
        && !quoted.trim().is_empty()
    {
        content.push_str("\n\nThe user is referring to this in particular:\n");
        content.push_str(quoted);
    }
    Some((role, content))
}

/// Moves each item after the message that it answers, because messages may arrive while an earlier one is being
/// answered. An item whose message is unknown keeps its position.
pub(super) fn paired(items: Vec<StoredItem>) -> Vec<ThreadItem> {
    let mut groups: Vec<Vec<ThreadItem>> = Vec::new();
    let mut group_of = HashMap::new();
    for StoredItem { item, answers, .. } in items {
        let group = if is_users(&item) {
            group_of.extend(ItemKey::parse(item.id()).ok().map(|key| (key, groups.len())));
            None
        } else {
            let question = answers.and_then(|question| group_of.get(&question).copied());
            question.or_else(|| groups.len().checked_sub(1))
        };
        match group.and_then(|group| groups.get_mut(group)) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::text::timestamp;

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

    /// Returns the item numbers after pairing. Each item: its number, and the number of the message that it answers.
    fn paired_numbers(items: &[(u8, Option<u8>)]) -> Vec<u8> {
        let stored = items.iter().map(|(number, answers)| {
            let kind = if answers.is_none() { "user_message" } else { "assistant_message" };
            let item = item(kind, *number, (*number).into());
            StoredItem {
                item,
                answers: answers.map(|answers| ItemKey([answers; ItemKey::LENGTH])),
                run: None,
            }
        });
        let paired = paired(stored.collect());
        paired.iter().map(|item| ItemKey::parse(item.id()).unwrap().0[0]).collect()
    }

    #[test]
    fn each_answer_follows_its_question() {
        // Three queued messages. The second has no answer; the third has two items.
        let queued = [(1, None), (2, None), (3, None), (4, Some(1)), (5, Some(3)), (6, Some(3))];
        assert_eq!(paired_numbers(&queued), [1, 4, 2, 3, 5, 6]);
        // A message that arrived between two items of one answer.
        let between = [(1, None), (2, Some(1)), (3, None), (4, Some(1)), (5, Some(3))];
        assert_eq!(paired_numbers(&between), [1, 2, 4, 3, 5]);
        // The first turn was parked twice, and the others were answered meanwhile.
        let parked =
            [(1, None), (2, None), (3, Some(2)), (4, Some(1)), (5, None), (6, Some(5)), (7, Some(1))];
        assert_eq!(paired_numbers(&parked), [1, 4, 7, 2, 3, 5, 6]);
    }

    #[test]
    fn an_item_with_an_unknown_message_keeps_its_position() {
        assert_eq!(paired_numbers(&[(1, None), (2, Some(9)), (3, None), (4, Some(9))]), [1, 2, 3, 4]);
        assert_eq!(paired_numbers(&[(2, Some(1)), (3, None)]), [2, 3]);
    }

    #[test]
    fn a_resumed_turn_reads_messages_sent_while_it_was_parked() {
        let (user, answer) = ("user_message", "assistant_message");
        let items = vec![item(user, 1, 1), item(user, 2, 5), item(answer, 3, 6), item(user, 4, 20)];
        let own = items[0].id().to_owned();
        let roles = |resumed| -> Vec<String> {
            let own = TurnItems { message: Some(&own), items: &[] };
            let messages = messages(items.clone(), &[], own, resumed);
            messages.iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(
            roles(Some(at(10))),
            ["user", "assistant", "user"],
            "its run is last, the fourth is queued"
        );
        assert_eq!(roles(None), ["assistant", "user"]);
    }

    #[test]
    fn a_continued_turn_reads_earlier_messages_and_the_answer_last() {
        let call = json!({"type": "client_tool_call", "status": "completed", "call_id": "call_1", "name": "place",
                          "arguments": {"a": 1}, "output": {"b": null}, "id": "tc_3", "thread_id": "t", "created_at": "x"});
        let call: ThreadItem = serde_json::from_value(call).unwrap();
        let pending = ThreadItem { id: "tc_9".into(), ..call.clone() };
        let ItemBody::ClientToolCall { call_id, name, arguments, .. } = call.body.clone() else {
            unreachable!()
        };
        let body = ItemBody::ClientToolCall {
            status: ToolCallStatus::Pending,
            call_id,
            name,
            arguments,
            output: None,
        };
        let items = vec![
            item("user_message", 1, 1),
            call.clone(),
            ThreadItem { body, ..pending },
            item("user_message", 5, 5),
            item("assistant_message", 6, 6),
        ];
        let (own, sent) = (items[0].id().to_owned(), [call.id().to_owned()]);
        let own = TurnItems { message: Some(&own), items: &sent };
        let messages = messages(items.clone(), &[], own, Some(at(10)));
        let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["user", "assistant", "user", "assistant", "tool"]);
        assert_eq!(
            messages[3]["tool_calls"],
            json!([{"id": "call_1", "name": "place", "arguments": {"a": 1}}])
        );
        assert_eq!(
            (&messages[4]["tool_call_id"], &messages[4]["content"]),
            (&json!("call_1"), &json!("{\"b\":null}"))
        );
    }
}
