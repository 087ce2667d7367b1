//! Chat examples. Meanings are in matches without a wildcard, so an undescribed new variant does not compile.

use std::fmt::Write as _;

use anyhow::Result;
use serde::Serialize;
use serde_json::{Map, Value};
use wire::chat::*;
use wire::{ErrorCode, StopAnswer, StopStatus};

use super::{block, tag};

pub(super) const WORKFLOW: &str = "0198c2e7-3a10-7b52-8c0d-5e4f6a7b8c9d";
const STREAM: &str = "0198c2f0-…";
pub(super) const THREAD: &str = "thr_6f1d…";
const QUESTION: &str = "msg_0198c2f0…a1";
const ANSWER: &str = "msg_0198c2f0…b2";
const AT: &str = "2026-01-01T12:00:00.000Z";

pub(super) fn request(operation: ChatOperation) -> Result<String> {
    let mut body = serde_json::to_value(ChatRequest { operation, metadata: Map::new() })?;
    if let Some(body) = body.as_object_mut() {
        body.insert("workflow_id".to_owned(), Value::String(WORKFLOW.to_owned()));
    }
    block(&body)
}

pub(super) fn create_thread() -> Result<String> {
    request(ChatOperation::CreateThread { input: UserMessageInput::text("Where is my order?") })
}

pub(super) fn add_user_message() -> Result<String> {
    let input = UserMessageInput::text("It is number 7.");
    request(ChatOperation::AddUserMessage { thread_id: THREAD.into(), input })
}

pub(super) fn retry_after_item() -> Result<String> {
    request(ChatOperation::RetryAfterItem { thread_id: THREAD.into(), item_id: QUESTION.into() })
}

fn thread() -> Thread {
    Thread {
        id: THREAD.into(),
        created_at: AT.into(),
        status: ThreadStatus::Active,
        items: Page::default(),
        title: None,
        allowed_image_domains: None,
        metadata: Map::new(),
    }
}

pub(super) fn user_message(attachments: Vec<Attachment>) -> ThreadItem {
    let body = ItemBody::UserMessage {
        content: vec![UserMessageContent::InputText { text: "Where is my order?".into() }],
        attachments,
        quoted_text: None,
        inference_options: InferenceOptions::default(),
    };
    ThreadItem { id: QUESTION.into(), thread_id: THREAD.into(), created_at: AT.into(), body }
}

pub(super) fn assistant_message(text: Option<&str>) -> ThreadItem {
    let content = text.map(ContentPart::text).into_iter().collect();
    let body = ItemBody::AssistantMessage { content, status: None, reason: None };
    ThreadItem { id: ANSWER.into(), thread_id: THREAD.into(), created_at: AT.into(), body }
}

fn updated(update: ItemUpdate) -> ChatEvent {
    ChatEvent::ItemUpdated { item_id: ANSWER.into(), update }
}

fn annotation() -> Annotation {
    let url = "https://example.org/orders".to_owned();
    let place = SourcePlace::Url { url, attribution: None };
    let source = Source { title: "Orders".into(), description: None, timestamp: None, group: None, place };
    Annotation { source, index: Some(9) }
}

fn updates() -> Vec<ItemUpdate> {
    let text =
        |text: &str, annotations| ContentPart::OutputText(OutputText { text: text.into(), annotations });
    vec![
        ItemUpdate::PieceAdded { part: PiecePart { text: "It is ".into() } },
        ItemUpdate::PartAdded { content_index: 0, content: text("", Vec::new()) },
        ItemUpdate::TextDelta { content_index: 0, delta: "It is ".into() },
        ItemUpdate::AnnotationAdded { content_index: 0, annotation_index: 0, annotation: annotation() },
        ItemUpdate::PartDone { content_index: 0, content: text("It is on its way.", Vec::new()) },
    ]
}

/// The dialect and meaning of an update that this version sends.
fn update_meaning(update: &ItemUpdate) -> Option<(Dialect, &'static str)> {
    Some(match update {
        ItemUpdate::PieceAdded { .. } => (Dialect::Interface, "More text; pieces are appended."),
        ItemUpdate::PartAdded { .. } => (Dialect::Chatkit, "A part of the message starts."),
        ItemUpdate::TextDelta { .. } => (Dialect::Chatkit, "More text of a part; it is appended."),
        ItemUpdate::AnnotationAdded { .. } => (Dialect::Chatkit, "A mark in the text of a part."),
        ItemUpdate::PartDone { .. } => (Dialect::Chatkit, "A part is complete; this is all of it."),
        ItemUpdate::WidgetUpdated { .. }
        | ItemUpdate::ComponentUpdated { .. }
        | ItemUpdate::ComponentText { .. }
        | ItemUpdate::TaskAdded { .. }
        | ItemUpdate::TaskUpdated { .. }
        | ItemUpdate::ImageUpdated { .. } => return None,
    })
}

fn events() -> Vec<ChatEvent> {
    vec![
        ChatEvent::ThreadCreated { thread: thread() },
        ChatEvent::ThreadUpdated { thread: Thread { title: Some("An order".into()), ..thread() } },
        ChatEvent::ItemAdded { item: assistant_message(None) },
        updated(ItemUpdate::PieceAdded { part: PiecePart { text: "It is ".into() } }),
        ChatEvent::ItemDone { item: assistant_message(Some("It is on its way.")) },
        ChatEvent::ItemReplaced { item: assistant_message(Some("It is")) },
        ChatEvent::ItemRemoved { item_id: ANSWER.into() },
        ChatEvent::StreamOptions { stream_options: StreamOptions { allow_cancel: true } },
        ChatEvent::ProgressUpdate { text: "Looking up the order".into(), icon: Some("search".into()) },
        ChatEvent::ClientEffect { name: "highlight".into(), data: Map::new() },
        ChatEvent::Notice {
            level: NoticeLevel::Info,
            message: "The answer was stopped.".into(),
            title: None,
        },
        ChatEvent::failure(ErrorCode::NodeFailed, true),
    ]
}

fn event_meaning(event: &ChatEvent) -> &'static str {
    match event {
        ChatEvent::ThreadCreated { .. } => "A new thread; keep `thread.id` for the next message.",
        ChatEvent::ThreadUpdated { .. } => "The thread's title or status changed.",
        ChatEvent::ItemAdded { .. } => "An item starts. It is not stored yet.",
        ChatEvent::ItemUpdated { .. } => "The item changes; see the next table.",
        ChatEvent::ItemDone { .. } => "An item is complete and stored. Its text replaces the streamed text.",
        ChatEvent::ItemReplaced { .. } => {
            "The item contains this now; following pieces of a message are appended to its text."
        }
        ChatEvent::ItemRemoved { .. } => "An item was deleted.",
        ChatEvent::StreamOptions { .. } => "Whether a stop button has an effect.",
        ChatEvent::ProgressUpdate { .. } => "What the workflow is doing. Not stored.",
        ChatEvent::ClientEffect { .. } => "An action for the page. Not stored.",
        ChatEvent::Notice { .. } => "A message outside the conversation, in Markdown. Not stored.",
        ChatEvent::Error { .. } => "The turn failed. Nothing follows.",
    }
}

fn items() -> Vec<ThreadItem> {
    let item =
        |id: &str, body| ThreadItem { id: id.into(), thread_id: THREAD.into(), created_at: AT.into(), body };
    let task = |title: &str, status_indicator| Task {
        status_indicator,
        body: TaskBody::Custom { title: Some(title.into()), icon: None, content: None },
    };
    let workflow = TaskList {
        kind: TaskListKind::Custom,
        tasks: vec![
            task("Find the order", TaskStatus::Complete),
            task("Ask the carrier", TaskStatus::Loading),
        ],
        summary: Some(TaskSummary::Title { title: "Order 7".into(), icon: None }),
        expanded: true,
    };
    let key = |id: &str, prefix: &str| id.replacen("msg", prefix, 1);
    vec![
        user_message(Vec::new()),
        assistant_message(Some("It is on its way.")),
        item(&key(ANSWER, "tsk"), ItemBody::Task { task: task("Find the order", TaskStatus::None) }),
        item(&key(ANSWER, "wf"), ItemBody::Workflow { workflow }),
        item(&key(ANSWER, "eot"), ItemBody::EndOfTurn),
    ]
}

fn item_meaning(item: &ThreadItem) -> Option<&'static str> {
    match item.body {
        ItemBody::UserMessage { .. } => Some("The user's message."),
        ItemBody::AssistantMessage { .. } => Some("The workflow's answer."),
        ItemBody::Task { .. } => Some("A task of the workflow."),
        ItemBody::Workflow { .. } => Some("A list of tasks."),
        ItemBody::EndOfTurn => Some("A hint: nothing more of this turn is visible."),
        // Not sent by this version.
        ItemBody::ClientToolCall { .. }
        | ItemBody::StructuredInput { .. }
        | ItemBody::Widget { .. }
        | ItemBody::GeneratedImage { .. } => None,
        // Never sent to a client.
        ItemBody::HiddenContextItem { .. } | ItemBody::SdkHiddenContext { .. } | ItemBody::Unknown => None,
    }
}

/// Adds a row with an example in its wire form.
fn row(table: &mut String, value: &impl Serialize, middle: &str) -> Result<()> {
    writeln!(table, "| `{}` | {middle} | `{}` |", tag(value)?, serde_json::to_string(value)?)?;
    Ok(())
}

pub(super) fn event_table() -> Result<String> {
    let mut table = "| `type` | meaning | example |\n|---|---|---|\n".to_owned();
    for event in events() {
        row(&mut table, &event, event_meaning(&event))?;
    }
    Ok(table)
}

pub(super) fn update_table() -> Result<String> {
    let mut table =
        "| `update.type` | dialect | meaning | example of `update` |\n|---|---|---|---|\n".to_owned();
    for update in updates() {
        let Some((dialect, meaning)) = update_meaning(&update) else { continue };
        row(&mut table, &update, &format!("{} | {meaning}", dialect.as_str()))?;
    }
    Ok(table)
}

pub(super) fn item_table() -> Result<String> {
    let mut table = "| `item.type` | meaning | example |\n|---|---|---|\n".to_owned();
    for item in items() {
        row(&mut table, &item, item_meaning(&item).unwrap_or_default())?;
    }
    Ok(table)
}

/// All frames in a turn.
pub(super) fn turn(dialect: Dialect) -> Result<String> {
    let delta = |text: &str| match dialect {
        Dialect::Interface => updated(ItemUpdate::PieceAdded { part: PiecePart { text: text.into() } }),
        Dialect::Chatkit => updated(ItemUpdate::TextDelta { content_index: 0, delta: text.into() }),
    };
    let chatkit = |update| (dialect == Dialect::Chatkit).then(|| updated(update));
    let begun = ItemUpdate::PartAdded { content_index: 0, content: ContentPart::text("") };
    let whole = "It is on its way.";
    let done = ItemUpdate::PartDone { content_index: 0, content: ContentPart::text(whole) };
    let events = [
        Some(ChatEvent::ThreadCreated { thread: thread() }),
        Some(ChatEvent::ItemDone { item: user_message(Vec::new()) }),
        Some(ChatEvent::StreamOptions { stream_options: StreamOptions { allow_cancel: true } }),
        Some(ChatEvent::ThreadUpdated {
            thread: Thread { title: Some("Where is my order?".into()), ..thread() },
        }),
        Some(ChatEvent::ItemAdded { item: assistant_message(None) }),
        chatkit(begun),
        Some(delta("It is ")),
        Some(delta("on its way.")),
        chatkit(done),
        Some(ChatEvent::ItemDone { item: assistant_message(Some(whole)) }),
    ];
    let mut frames = String::new();
    for (seq, event) in (1..).zip(events.into_iter().flatten()) {
        wire::sse::push_event(&mut frames, STREAM, seq, &serde_json::to_string(&event)?);
    }
    Ok(format!("```\n{}\n```", frames.trim_end()))
}

pub(super) fn stop_table() -> Result<String> {
    let mut table = "| answer | meaning |\n|---|---|\n".to_owned();
    let all = [StopStatus::Stopping, StopStatus::Stopped, StopStatus::Completed, StopStatus::Failed];
    for status in all {
        let meaning = match status {
            StopStatus::Stopping => "The request is stored and the turn is about to end.",
            StopStatus::Stopped => "The turn was stopped.",
            StopStatus::Completed => "The turn had already ended.",
            StopStatus::Failed => "The turn had already failed.",
        };
        writeln!(table, "| `{}` | {meaning} |", serde_json::to_string(&StopAnswer { status })?)?;
    }
    Ok(table)
}

pub(super) fn failures() -> Result<String> {
    let unexpected = ChatEvent::Error {
        code: StreamErrorCode::Stream,
        message: None,
        allow_retry: true,
        error_code: Some(ErrorCode::Internal.as_str().to_owned()),
    };
    let known = serde_json::to_string(&ChatEvent::failure(ErrorCode::NodeTimeout, true))?;
    Ok(format!("```\ndata: {known}\n\ndata: {}\n```", serde_json::to_string(&unexpected)?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_kind_occurs_once() {
        let distinct = |tags: Vec<String>| {
            let all = tags.len();
            assert_eq!(tags.into_iter().collect::<BTreeSet<_>>().len(), all);
            all
        };
        assert_eq!(distinct(events().iter().map(|event| tag(event).unwrap()).collect()), 12);
        assert_eq!(distinct(updates().iter().map(|update| tag(update).unwrap()).collect()), 5);
        assert!(items().iter().all(|item| item_meaning(item).is_some()));
    }
}
