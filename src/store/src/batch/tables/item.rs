//! Thread items, and the ranges that retries cut from threads.

use diesel::sql_types::{Bool, Bytea, Nullable, Text, Uuid as SqlUuid};
use kernel::{ItemKey, ThreadId};
use uuid::Uuid;

/// A thread item to add.
#[derive(Debug, Clone)]
pub struct ItemRow {
    /// Its thread.
    pub thread_id: ThreadId,
    /// Its key.
    pub id: ItemKey,
    /// A `wire::chat::ThreadItem` as JSON.
    pub content: String,
    /// The user message that it answers; `None` for a user message.
    pub answers: Option<ItemKey>,
    /// The run that created it; `None` for a user message.
    pub run_id: Option<Uuid>,
    /// The name by which graphs replace or remove it.
    pub key: Option<String>,
}

/// New content for an item.
#[derive(Debug, Clone)]
pub struct ReplacedItemRow {
    /// Its thread.
    pub thread_id: ThreadId,
    /// Its key.
    pub id: ItemKey,
    /// A `wire::chat::ThreadItem` as JSON; `None`: the run has ended, and the previous content is discarded.
    pub content: Option<String>,
    /// The run that changes it.
    pub run_id: Uuid,
}

/// An attachment contained in a message from the same batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContainedRow {
    /// The attachment.
    pub attachment: Uuid,
    /// The message's thread.
    pub thread_id: ThreadId,
}

/// An item to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemovedItemRow {
    /// Its thread.
    pub thread_id: ThreadId,
    /// Its key.
    pub id: ItemKey,
    /// The run that deletes it.
    pub run_id: Uuid,
}

/// Items that a retry cuts from a thread.
#[derive(Debug, Clone, Copy)]
pub struct CutRow {
    /// The thread.
    pub thread_id: ThreadId,
    /// Items before this one are cut.
    pub id: ItemKey,
    /// Items up to this one stay.
    pub behind: ItemKey,
    /// User messages from here on stay.
    pub messages_from: ItemKey,
    /// Other items up to here stay.
    pub answers_behind: ItemKey,
}

lane_table! {
    Items: "thread_items" from (&'a ItemRow, &'a str) as (row, content) => {
        thread_id: Uuid [SqlUuid] = row.thread_id.0,
        id: &'a [u8] [Bytea] = &row.id.0,
        content: &'a str [Text] = content,
        answers: Option<&'a [u8]> [Nullable<Bytea>] = row.answers.as_ref().map(|key| &key.0[..]),
        run_id: Option<Uuid> [Nullable<SqlUuid>] = row.run_id,
        key: Option<&'a str> [Nullable<Text>] = row.key.as_deref(),
    }
}

lane_table! {
    ReplacedItems: "thread_items" from (&'a ReplacedItemRow, bool) as (row, is_final) => {
        thread_id: Uuid [SqlUuid] = row.thread_id.0,
        id: &'a [u8] [Bytea] = &row.id.0,
        content: Option<&'a str> [Nullable<Text>] = row.content.as_deref(),
        run_id: Uuid [SqlUuid] = row.run_id,
        is_final: bool [Bool] = is_final,
    }
}

lane_table! {
    RemovedItems: "thread_items" from &'a RemovedItemRow as row => {
        thread_id: Uuid [SqlUuid] = row.thread_id.0,
        id: &'a [u8] [Bytea] = &row.id.0,
        run_id: Uuid [SqlUuid] = row.run_id,
    }
}

lane_table! {
    Cuts: "thread_cuts" from &'a CutRow as row => {
        thread_id: Uuid [SqlUuid] = row.thread_id.0,
        id: &'a [u8] [Bytea] = &row.id.0,
        behind: &'a [u8] [Bytea] = &row.behind.0,
        messages_from: &'a [u8] [Bytea] = &row.messages_from.0,
        answers_behind: &'a [u8] [Bytea] = &row.answers_behind.0,
    }
}
