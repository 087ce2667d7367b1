//! Chat visitors' data over HTTP: listed, changed, exported and erased. Source: `chat-protocol.md` 15.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::chat::{FeedbackKind, Thread, ThreadItem, ThreadStatus};

/// A workflow's thread, as its owner sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadRecord {
    /// Its id.
    pub id: String,
    /// The thread's owner: `visitor:`, `session:` or `user:`, and an id; null if everyone who knows the thread's id may
    /// read it.
    pub visitor: Option<String>,
    /// Its title, once it has one.
    pub title: Option<String>,
    /// Whether it accepts messages.
    pub status: ThreadStatus,
    /// Start time.
    pub created_at: Timestamp,
    /// Time at which the last item was added; null without items.
    pub last_item_at: Option<Timestamp>,
    /// Number of visible items.
    pub items: u64,
}

/// `PATCH /api/workflows/{ref}/chat/threads/{id}`. Absent members stay unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UpdateThread {
    /// `active`, `locked` or `closed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The reason for locking or closing it, shown to the visitor; at most 500 characters.
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
    /// Threads erased by this request.
    pub threads: u64,
}

/// The visitor's data is being erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Erasing {
    /// `erasing`.
    pub status: String,
}

/// An export line. An export without its last line, `end`, is incomplete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ExportLine {
    /// The first line.
    Visitor {
        /// The visitor whose data follows.
        visitor: String,
        /// The workflow.
        workflow_id: String,
        /// Export time.
        at: Timestamp,
    },
    /// A thread, without its items; they follow.
    Thread {
        /// The thread.
        thread: Thread,
    },
    /// An item in the last thread, in order.
    Item {
        /// The item.
        item: ThreadItem,
    },
    /// The visitor's feedback on an item in the last thread.
    Feedback {
        /// The thread.
        thread_id: String,
        /// The item.
        item_id: String,
        /// The rating.
        kind: FeedbackKind,
        /// The visitor's words.
        comment: Option<String>,
        /// Feedback time.
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
        /// SHA-256 of the bytes in hex; null before the upload.
        sha256: Option<String>,
        /// Announcement or upload time.
        at: Timestamp,
    },
    /// Bytes of the last attachment: the next 256 KiB, or the rest.
    AttachmentChunk {
        /// The attachment.
        id: String,
        /// The chunk's number, from 0.
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
