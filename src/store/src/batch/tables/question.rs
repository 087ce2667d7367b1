//! Questions that runs ask people.

use chrono::{DateTime, Utc};
use diesel::sql_types::{Integer, Json, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use uuid::Uuid;

/// A question that a run asks; asked once for each attempt.
#[derive(Debug, Clone)]
pub struct QuestionRow {
    /// The run.
    pub run_id: Uuid,
    /// The node's name.
    pub node: String,
    /// Which visit of the node, from 1.
    pub visit: i32,
    /// Which attempt of the visit, from 1.
    pub attempt: i32,
    /// The key that an answer names.
    pub key: String,
    /// For the person who answers.
    pub message: Option<String>,
    /// JSON Schema of the answer.
    pub schema: Option<String>,
    /// Who may answer, a JSON list.
    pub audience: serde_json::Value,
    /// When it was asked.
    pub asked_at: DateTime<Utc>,
    /// When it expires.
    pub expires_at: Option<DateTime<Utc>>,
}

lane_table! {
    Questions: "run_questions" from &'a QuestionRow as row => {
        run_id: Uuid [SqlUuid] = row.run_id,
        node: &'a str [Text] = &row.node,
        visit: i32 [Integer] = row.visit,
        attempt: i32 [Integer] = row.attempt,
        key: &'a str [Text] = &row.key,
        message: Option<&'a str> [Nullable<Text>] = row.message.as_deref(),
        schema: Option<&'a str> [Nullable<Text>] = row.schema.as_deref(),
        audience: &'a serde_json::Value [Json] = &row.audience,
        asked_at: DateTime<Utc> [Timestamptz] = row.asked_at,
        expires_at: Option<DateTime<Utc>> [Nullable<Timestamptz>] = row.expires_at,
    }
}
