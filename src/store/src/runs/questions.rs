//! What runs ask people, and their answers.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Nullable, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use serde_json::Value;
use uuid::Uuid;

use crate::error::corrupt;
use crate::schema::{run_questions, runs};
use crate::{Changes, Store, StoreError};

/// Names one attempt of a run that asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionKey {
    /// The run.
    pub run: Uuid,
    /// The node's name.
    pub node: String,
    /// Which visit of the node, from 1.
    pub visit: i32,
    /// Which attempt of the visit, from 1.
    pub attempt: i32,
}

/// A question that waits for its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenQuestion {
    /// Which attempt asks.
    pub step: QuestionKey,
    /// By which an answer names it.
    pub key: String,
    /// For the person who answers.
    pub message: Option<String>,
    /// JSON Schema of the answer.
    pub schema: Option<Value>,
    /// Who may answer; empty: every caller who may execute the workflow.
    pub audience: Vec<String>,
    /// When it was asked.
    pub asked_at: DateTime<Utc>,
    /// When it is too late.
    pub expires_at: Option<DateTime<Utc>>,
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswerOf {
    /// JSON.
    pub answer: String,
    /// Who, where that is known.
    pub by: Option<String>,
    /// When.
    pub at: DateTime<Utc>,
}

/// Where a run is that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// In the queue, and due now.
    Queued,
    /// With this writer.
    With(Uuid),
    /// Nowhere: the question was answered before, has expired, or its run has ended.
    TooLate,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = run_questions)]
#[diesel(check_for_backend(diesel::pg::Pg))]
struct Row {
    run_id: Uuid,
    node: String,
    visit: i32,
    attempt: i32,
    key: String,
    message: Option<String>,
    schema: Option<String>,
    audience: Value,
    asked_at: DateTime<Utc>,
    expires_at: Option<DateTime<Utc>>,
}

impl TryFrom<Row> for OpenQuestion {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        let schema = row.schema.as_deref().map(serde_json::from_str).transpose();
        Ok(Self {
            step: QuestionKey { run: row.run_id, node: row.node, visit: row.visit, attempt: row.attempt },
            key: row.key,
            message: row.message,
            schema: schema.map_err(|error| corrupt("a question's schema", error))?,
            audience: serde_json::from_value(row.audience).map_err(|error| corrupt("an audience", error))?,
            asked_at: row.asked_at,
            expires_at: row.expires_at,
        })
    }
}

impl Store {
    /// What an unfinished run asks, the oldest question first.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn open_questions(&self, run: Uuid) -> Result<Vec<OpenQuestion>, StoreError> {
        let now = self.now();
        let rows: Vec<Row> = run_questions::table
            .inner_join(runs::table.on(runs::id.eq(run_questions::run_id)))
            .filter(run_questions::run_id.eq(run))
            .filter(run_questions::answered_at.is_null())
            .filter(run_questions::expires_at.is_null().or(run_questions::expires_at.gt(now)))
            .filter(runs::finished_at.is_null())
            .order((run_questions::asked_at, run_questions::node, run_questions::visit))
            .select(Row::as_select())
            .load(&mut *self.connection().await?)
            .await?;
        rows.into_iter().map(TryInto::try_into).collect()
    }

    /// The answer to a question, if there is one.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn answer_to(&self, step: &QuestionKey) -> Result<Option<StoredAnswerOf>, StoreError> {
        type Columns = (Option<String>, Option<String>, Option<DateTime<Utc>>);
        let row: Option<Columns> = run_questions::table
            .find((step.run, &step.node, step.visit, step.attempt))
            .select((run_questions::answer, run_questions::answered_by, run_questions::answered_at))
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        let Some((Some(answer), by, Some(at))) = row else { return Ok(None) };
        Ok(Some(StoredAnswerOf { answer, by, at }))
    }
}

impl Changes {
    /// Stores the answer to a question that is still open, and makes its run due where it waits in the queue.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn answer_question(
        &mut self,
        step: &QuestionKey,
        answer: &Value,
        by: Option<&str>,
    ) -> Result<Answered, StoreError> {
        #[derive(QueryableByName)]
        struct Writer {
            #[diesel(sql_type = SqlUuid)]
            writer_id: Uuid,
        }
        let now = self.store.now();
        let connection = &mut *self.connection;
        let stored =
            diesel::update(run_questions::table.find((step.run, &step.node, step.visit, step.attempt)))
                .filter(run_questions::answered_at.is_null())
                .filter(run_questions::expires_at.is_null().or(run_questions::expires_at.gt(now)))
                .set((
                    run_questions::answer.eq(answer.to_string()),
                    run_questions::answered_by.eq(by),
                    run_questions::answered_at.eq(now),
                ))
                .execute(connection)
                .await?;
        let writer: Option<Writer> =
            diesel::sql_query("SELECT writer_id FROM runs WHERE id = $1 AND finished_at IS NULL")
                .bind::<SqlUuid, _>(step.run)
                .get_result(connection)
                .await
                .optional()?;
        let Some(writer) = writer.filter(|_| stored > 0) else { return Ok(Answered::TooLate) };
        let woken = diesel::sql_query("UPDATE run_queue SET due_at = least(due_at, $2) WHERE run_id = $1")
            .bind::<SqlUuid, _>(step.run)
            .bind::<Nullable<Timestamptz>, _>(Some(now))
            .execute(connection)
            .await?;
        Ok(if woken > 0 { Answered::Queued } else { Answered::With(writer.writer_id) })
    }
}
