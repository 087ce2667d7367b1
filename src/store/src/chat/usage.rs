//! Model usage in chats.

use chrono::{DateTime, NaiveDate, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Date, Double, Nullable, Text, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use crate::database::prepared::prepared;
use crate::{Store, StoreError};

/// A usage sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, QueryableByName)]
pub struct ChatUsageSum {
    /// Answered model calls.
    #[diesel(sql_type = BigInt)]
    pub calls: i64,
    /// Input tokens.
    #[diesel(sql_type = BigInt)]
    pub input_tokens: i64,
    /// Output tokens.
    #[diesel(sql_type = BigInt)]
    pub output_tokens: i64,
    /// US dollars.
    #[diesel(sql_type = Double)]
    pub usd: f64,
}

/// One day's usage.
#[derive(Debug, Clone, PartialEq, QueryableByName)]
pub struct ChatUsageDay {
    /// The UTC day.
    #[diesel(sql_type = Date)]
    pub day: NaiveDate,
    /// Sessions with usage.
    #[diesel(sql_type = BigInt)]
    pub sessions: i64,
    /// Turns that have ended.
    #[diesel(sql_type = BigInt)]
    pub turns: i64,
    /// The sum over all sessions.
    #[diesel(embed)]
    pub sum: ChatUsageSum,
}

impl Store {
    /// Returns a workflow's chat usage on this UTC day, for one session or for all.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn chat_usage_of(
        &self,
        workflow: Uuid,
        session: Option<&str>,
        day: NaiveDate,
    ) -> Result<ChatUsageSum, StoreError> {
        Ok(prepared(
            "SELECT coalesce(sum(calls), 0)::bigint AS calls, coalesce(sum(input_tokens), 0)::bigint AS input_tokens,
                 coalesce(sum(output_tokens), 0)::bigint AS output_tokens, coalesce(sum(usd), 0) AS usd
             FROM chat_usage WHERE workflow_id = $1 AND day = $2 AND ($3::text IS NULL OR session = $3)",
        )
        .bind::<SqlUuid, _>(workflow)
        .bind::<Date, _>(day)
        .bind::<Nullable<Text>, _>(session)
        .get_result(&mut *self.connection().await?)
        .await?)
    }

    /// Returns a workflow's chat usage by day, latest first.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn chat_usage_by_day(
        &self,
        workflow: Uuid,
        from: Option<NaiveDate>,
        to: Option<NaiveDate>,
    ) -> Result<Vec<ChatUsageDay>, StoreError> {
        Ok(prepared(
            "SELECT day, count(DISTINCT session) AS sessions, sum(turns)::bigint AS turns, sum(calls)::bigint AS calls,
                 sum(input_tokens)::bigint AS input_tokens, sum(output_tokens)::bigint AS output_tokens, sum(usd) AS usd
             FROM chat_usage WHERE workflow_id = $1 AND ($2::date IS NULL OR day >= $2) AND ($3::date IS NULL OR day <= $3)
             GROUP BY day ORDER BY day DESC",
        )
        .bind::<SqlUuid, _>(workflow)
        .bind::<Nullable<Date>, _>(from)
        .bind::<Nullable<Date>, _>(to)
        .load(&mut *self.connection().await?)
        .await?)
    }

    /// Adds usage from a call outside runs.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn add_chat_usage(
        &self,
        workflow: Uuid,
        session: &str,
        writer: Uuid,
        used: ChatUsageSum,
    ) -> Result<(), StoreError> {
        prepared(
            "INSERT INTO chat_usage (day, workflow_id, session, writer_id, turns, calls, input_tokens, output_tokens, usd)
             VALUES ($1, $2, $3, $4, 0, $5, $6, $7, $8) ON CONFLICT (workflow_id, day, session, writer_id) DO UPDATE SET
                 calls = chat_usage.calls + excluded.calls,
                 input_tokens = chat_usage.input_tokens + excluded.input_tokens,
                 output_tokens = chat_usage.output_tokens + excluded.output_tokens, usd = chat_usage.usd + excluded.usd",
        )
        .bind::<Date, _>(self.now().date_naive())
        .bind::<SqlUuid, _>(workflow)
        .bind::<Text, _>(session)
        .bind::<SqlUuid, _>(writer)
        .bind::<BigInt, _>(used.calls)
        .bind::<BigInt, _>(used.input_tokens)
        .bind::<BigInt, _>(used.output_tokens)
        .bind::<Double, _>(used.usd)
        .execute(&mut *self.connection().await?)
        .await?;
        Ok(())
    }

    /// Deletes usage for days before then.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn forget_old_chat_usage(&self, before: DateTime<Utc>) -> Result<(), StoreError> {
        prepared("DELETE FROM chat_usage WHERE day < $1")
            .bind::<Date, _>(before.date_naive())
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(())
    }
}
