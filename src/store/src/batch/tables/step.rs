//! Run journals.

use chrono::{DateTime, Utc};
use diesel::sql_types::{Bytea, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use uuid::Uuid;

/// A journal row. The same attempt may be sent again with its outcome.
#[derive(Debug, Clone)]
pub struct StepRow {
    /// The run.
    pub run_id: Uuid,
    /// The node's name.
    pub node: String,
    /// The node's visit number, from 1.
    pub visit: i32,
    /// The visit's attempt number, from 1.
    pub attempt: i32,
    /// The super-step, from 1.
    pub step: i32,
    /// Whether the attempt's start was sent before.
    pub begun: bool,
    /// `started`, `succeeded` or `failed`.
    pub status: &'static str,
    /// SHA-256 of the node's input.
    pub input_digest: Vec<u8>,
    /// JSON; larger results than [`INLINE_RESULT`](super::INLINE_RESULT) are stored as blobs.
    pub result: Option<String>,
    /// JSON `{code, message}`.
    pub error: Option<String>,
    /// State for a resumed attempt, JSON; for an attempt whose start is sent.
    pub note: Option<String>,
    /// When it started.
    pub started_at: DateTime<Utc>,
    /// When it ended, if it has.
    pub finished_at: Option<DateTime<Utc>>,
}

/// Journal rows that a new run copies from another run.
#[derive(Debug, Clone, Copy)]
pub struct CopyRow {
    /// The run that executed them.
    pub from: Uuid,
    /// The new run.
    pub to: Uuid,
    /// Steps before this super-step are copied.
    pub before: i32,
}

lane_table! {
    /// The second value is the digest of a result that is stored as a blob.
    Steps: "run_steps" from (&'a StepRow, Option<[u8; 32]>) as (row, blob) => {
        run_id: Uuid [SqlUuid] = row.run_id,
        node: &'a str [Text] = &row.node,
        visit: i32 [Integer] = row.visit,
        attempt: i32 [Integer] = row.attempt,
        step: i32 [Integer] = row.step,
        status: &'a str [Text] = row.status,
        input_digest: &'a [u8] [Bytea] = &row.input_digest,
        result: Option<&'a str> [Nullable<Text>] = row.result.as_deref().filter(|_| blob.is_none()),
        result_blob: Option<Vec<u8>> [Nullable<Bytea>] = blob.map(|digest| digest.to_vec()),
        error: Option<&'a str> [Nullable<Text>] = row.error.as_deref(),
        note: Option<&'a str> [Nullable<Text>] = row.note.as_deref(),
        started_at: DateTime<Utc> [Timestamptz] = row.started_at,
        finished_at: Option<DateTime<Utc>> [Nullable<Timestamptz>] = row.finished_at,
    }
}

lane_table! {
    Copies: "run_steps" from &'a CopyRow as row => {
        origin: Uuid [SqlUuid] = row.from,
        target: Uuid [SqlUuid] = row.to,
        before: i32 [Integer] = row.before,
    }
}
