//! Questions that runs ask people, and turns that end with them.

use chrono::{DateTime, Utc};
use diesel::sql_types::{Bool, Bytea, Integer, Json, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use kernel::{ItemKey, ThreadId};
use uuid::Uuid;
use wire::chat::Dialect;

/// A question that a run asks, once per attempt.
#[derive(Debug, Clone)]
pub struct QuestionRow {
    /// The run.
    pub run_id: Uuid,
    /// The node's name.
    pub node: String,
    /// The node's visit number, from 1.
    pub visit: i32,
    /// The visit's attempt number, from 1.
    pub attempt: i32,
    /// The key that an answer refers to.
    pub key: String,
    /// The text for the person who answers.
    pub message: Option<String>,
    /// The answer's JSON Schema.
    pub schema: Option<String>,
    /// The people who may answer, a JSON list.
    pub audience: serde_json::Value,
    /// When it was asked.
    pub asked_at: DateTime<Utc>,
    /// When it expires.
    pub expires_at: Option<DateTime<Utc>>,
    /// The pending item that shows it in a chat, a `wire::chat::ItemBody` as JSON.
    pub item: Option<String>,
    /// Whether the run continues after the question expires.
    pub continues_without: bool,
}

/// The question item that ends a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionItemRow {
    /// The item.
    pub item_id: ItemKey,
    /// Its thread.
    pub thread_id: ThreadId,
    /// The run that asks the question.
    pub run_id: Uuid,
    /// The node's name.
    pub node: String,
    /// The node's visit number, from 1.
    pub visit: i32,
    /// The visit's attempt number, from 1.
    pub attempt: i32,
}

/// Closes the open question items of an ended run, which no longer accept answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedQuestionsRow {
    /// The run.
    pub run_id: Uuid,
    /// The attempt that asked, `(node, visit, attempt)`; `None`: all questions.
    pub step: Option<(String, i32, i32)>,
    /// When the run ended.
    pub at: DateTime<Utc>,
}

/// The output of a turn that ends with a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnSentRow {
    /// The run.
    pub run_id: Uuid,
    /// Its thread.
    pub thread_id: ThreadId,
    /// The stream's dialect.
    pub dialect: Dialect,
    /// JSON.
    pub sent: String,
    /// When something other than a question becomes due.
    pub due_at: Option<DateTime<Utc>>,
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
        item: Option<&'a str> [Nullable<Text>] = row.item.as_deref(),
        continues_without: bool [Bool] = row.continues_without,
    }
}

lane_table! {
    QuestionItems: "question_items" from &'a QuestionItemRow as row => {
        item_id: &'a [u8] [Bytea] = &row.item_id.0,
        thread_id: Uuid [SqlUuid] = row.thread_id.0,
        run_id: Uuid [SqlUuid] = row.run_id,
        node: &'a str [Text] = &row.node,
        visit: i32 [Integer] = row.visit,
        attempt: i32 [Integer] = row.attempt,
    }
}

lane_table! {
    TurnsSent: "turns_sent" from &'a TurnSentRow as row => {
        run_id: Uuid [SqlUuid] = row.run_id,
        thread_id: Uuid [SqlUuid] = row.thread_id.0,
        dialect: &'a str [Text] = row.dialect.as_str(),
        sent: &'a str [Text] = &row.sent,
        due_at: Option<DateTime<Utc>> [Nullable<Timestamptz>] = row.due_at,
    }
}

lane_table! {
    ClosedQuestions: "run_questions" from &'a ClosedQuestionsRow as row => {
        run_id: Uuid [SqlUuid] = row.run_id,
        node: Option<&'a str> [Nullable<Text>] = row.step.as_ref().map(|(node, ..)| node.as_str()),
        visit: Option<i32> [Nullable<Integer>] = row.step.as_ref().map(|(_, visit, _)| *visit),
        attempt: Option<i32> [Nullable<Integer>] = row.step.as_ref().map(|(.., attempt)| *attempt),
        at: DateTime<Utc> [Timestamptz] = row.at,
    }
}
