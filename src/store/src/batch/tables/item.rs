//! Items of threads, and what retries take out of them.

use diesel::sql_types::{Bytea, Nullable, Text, Uuid as SqlUuid};
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
    /// The user's message that it answers; `None` for a user's message.
    pub answers: Option<ItemKey>,
}

/// Items that a retry takes out of a thread.
#[derive(Debug, Clone, Copy)]
pub struct CutRow {
    /// The thread.
    pub thread_id: ThreadId,
    /// Items before it are taken out.
    pub id: ItemKey,
    /// Items up to it stay.
    pub behind: ItemKey,
    /// Users' messages from here on stay.
    pub messages_from: ItemKey,
    /// Other items up to here stay.
    pub answers_behind: ItemKey,
}

lane_table! {
    Items: "thread_items" from &'a ItemRow as row => {
        thread_id: Uuid [SqlUuid] = row.thread_id.0,
        id: &'a [u8] [Bytea] = &row.id.0,
        content: &'a str [Text] = &row.content,
        answers: Option<&'a [u8]> [Nullable<Bytea>] = row.answers.as_ref().map(|key| &key.0[..]),
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
