//! The data of a chat's visitors over HTTP: listed, changed, exported and erased. Source: `chat-protocol.md` 15.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::chat::{FeedbackKind, Thread, ThreadItem, ThreadStatus};

/// A thread of a workflow, as its owner sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadRecord {
    /// Its id.
    pub id: String,
    /// Whose it is: `visitor:`, `session:` or `user:`, and an id; null if everyone who knows the thread's id may read it.
    pub visitor: Option<String>,
    /// Its title, once it has one.
    pub title: Option<String>,
    /// Whether it accepts messages.
    pub status: ThreadStatus,
    /// When it was started.
    pub created_at: Timestamp,
    /// When its last item was added; null without items.
    pub last_item_at: Option<Timestamp>,
    /// Visible items.
    pub items: u64,
}

/// `PATCH /api/workflows/{ref}/chat/threads/{id}`. What is left out stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UpdateThread {
    /// `active`, `locked` or `closed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Why it is locked or closed, shown to the visitor; at most 500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its title, 1 to 200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// The visitor's data is erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Erased {
    /// Threads that this request has erased.
    pub threads: u64,
}

/// The visitor's data is being erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Erasing {
    /// `erasing`.
    pub status: String,
}

/// A line of an export. An export without its last line, `end`, is incomplete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ExportLine {
    /// The first line.
    Visitor {
        /// Whose data follows.
        visitor: String,
        /// The workflow.
        workflow_id: String,
        /// When the export was made.
        at: Timestamp,
    },
    /// A thread, without its items; they follow.
    Thread {
        /// The thread.
        thread: Thread,
    },
    /// An item of the last thread, in order.
    Item {
        /// The item.
        item: ThreadItem,
    },
    /// Feedback of the visitor on an item of the last thread.
    Feedback {
        /// The thread.
        thread_id: String,
        /// The item.
        item_id: String,
        /// The rating.
        kind: FeedbackKind,
        /// The visitor's words.
        comment: Option<String>,
        /// When it was given.
        at: Timestamp,
    },
    /// A file; its bytes follow.
    Attachment {
        /// Its id.
        id: String,
        /// The thread that contains it; null if no message does.
        thread_id: Option<String>,
        /// The file's name.
        name: String,
        /// Its media type.
        mime_type: String,
        /// Bytes.
        size: u64,
        /// SHA-256 of the bytes in hex; null until they were uploaded.
        sha256: Option<String>,
        /// When it was announced or uploaded.
        at: Timestamp,
    },
    /// Bytes of the last attachment: the next 256 KiB, or the rest.
    AttachmentChunk {
        /// The attachment.
        id: String,
        /// From 0.
        number: u64,
        /// Standard base64 with padding.
        base64: String,
    },
    /// The last line.
    End {
        /// Threads in the export.
        threads: u64,
        /// Items in the export.
        items: u64,
        /// Attachments in the export.
        attachments: u64,
    },
}
