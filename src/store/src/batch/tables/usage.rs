//! Model usage in chats.

use chrono::NaiveDate;
use diesel::sql_types::{BigInt, Date, Double, Integer, Nullable, Text, Uuid as SqlUuid};
use uuid::Uuid;

/// Model usage by a part of a run. Counted once however often it is sent: with its step's row, or with the end
/// of its run.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatUsageRow {
    /// The run.
    pub run_id: Uuid,
    /// The step from the same batch, `(node, visit, attempt)`; `None`: the end of the run.
    pub step: Option<(String, i32, i32)>,
    /// The UTC day.
    pub day: NaiveDate,
    /// The run's workflow.
    pub workflow_id: Uuid,
    /// The caller's session.
    pub session: String,
    /// Turns that have ended.
    pub turns: i64,
    /// Answered model calls.
    pub calls: i64,
    /// Input tokens.
    pub input_tokens: i64,
    /// Output tokens.
    pub output_tokens: i64,
    /// US dollars.
    pub usd: f64,
}

lane_table! {
    ChatUsage: "chat_usage" from &'a ChatUsageRow as row => {
        run_id: Uuid [SqlUuid] = row.run_id,
        node: Option<&'a str> [Nullable<Text>] = row.step.as_ref().map(|(node, ..)| node.as_str()),
        visit: Option<i32> [Nullable<Integer>] = row.step.as_ref().map(|(_, visit, _)| *visit),
        attempt: Option<i32> [Nullable<Integer>] = row.step.as_ref().map(|(.., attempt)| *attempt),
        day: NaiveDate [Date] = row.day,
        workflow_id: Uuid [SqlUuid] = row.workflow_id,
        session: &'a str [Text] = &row.session,
        turns: i64 [BigInt] = row.turns,
        calls: i64 [BigInt] = row.calls,
        input_tokens: i64 [BigInt] = row.input_tokens,
        output_tokens: i64 [BigInt] = row.output_tokens,
        usd: f64 [Double] = row.usd,
    }
}
