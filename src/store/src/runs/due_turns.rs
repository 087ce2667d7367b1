//! Ended turns that continue without an answer: a question has expired, or something else is due.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Bytea, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncConnection, RunQueryDsl};
use kernel::{ItemKey, ThreadId};
use uuid::Uuid;

use super::continuations::{Continuation, change_item, insert, is_open, key, lock_item};
use crate::database::scalar::Scalar;
use crate::{Store, StoreError};

/// Maximum questions or turns per batch.
const PART: i64 = 100;

/// An expired question.
#[derive(Debug, Clone)]
pub struct ExpiredQuestion {
    /// Its item.
    pub id: ItemKey,
    /// The thread.
    pub thread: ThreadId,
    /// The run that asked, or that continues the turn that asked.
    pub run: Uuid,
    /// Whether the run continues without the answer.
    pub continues: bool,
}

/// SQL condition: no run is about to continue the turn `t`.
const NOT_CONTINUED: &str =
    "NOT EXISTS (SELECT FROM runs r WHERE r.continues = t.run_id AND r.finished_at IS NULL
                AND r.cancel_requested_at IS NULL)";

impl Store {
    /// Returns expired question items.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn expired_questions(&self) -> Result<Vec<ExpiredQuestion>, StoreError> {
        #[derive(QueryableByName)]
        struct ExpiredQuestionRow {
            #[diesel(sql_type = Bytea)]
            item_id: Vec<u8>,
            #[diesel(sql_type = SqlUuid)]
            thread_id: Uuid,
            #[diesel(sql_type = SqlUuid)]
            run_id: Uuid,
            #[diesel(sql_type = Bool)]
            continues_without: bool,
        }
        let rows: Vec<ExpiredQuestionRow> = diesel::sql_query(
            // If a tool call was sent again, only its last item.
            "SELECT DISTINCT ON (i.run_id, i.node, i.visit, i.attempt) i.item_id, i.thread_id, i.run_id, q.continues_without
             FROM run_questions q JOIN question_items i USING (run_id, node, visit, attempt)
             WHERE q.item IS NOT NULL AND q.answered_at IS NULL AND q.expires_at <= $1
             ORDER BY i.run_id, i.node, i.visit, i.attempt, i.item_id DESC LIMIT $2",
        )
        .bind::<Timestamptz, _>(self.now())
        .bind::<BigInt, _>(PART)
        .load(&mut *self.connection().await?)
        .await?;
        let read = |row: ExpiredQuestionRow| {
            Ok(ExpiredQuestion {
                id: key(row.item_id)?,
                thread: ThreadId(row.thread_id),
                run: row.run_id,
                continues: row.continues_without,
            })
        };
        rows.into_iter().map(read).collect()
    }

    /// Ends an expired question: stores its item without answers, and enqueues a run that continues the turn if
    /// the turn has ended and has no pending continuation. Returns whether this call ended the question.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn end_question(
        &self,
        question: &ExpiredQuestion,
        content: Option<&str>,
        next: Option<&Continuation>,
    ) -> Result<bool, StoreError> {
        let now = self.now();
        let mut connection = self.connection().await?;
        connection
            .transaction(async |connection| {
                // Locked first, so that an answer that is being committed counts.
                if lock_item(connection, question.id).await?.is_none() {
                    return Ok(false);
                }
                let ended = diesel::sql_query(
                    "UPDATE run_questions q SET item = NULL FROM question_items i WHERE i.item_id = $1 AND i.run_id = $2
                         AND (q.run_id, q.node, q.visit, q.attempt) = (i.run_id, i.node, i.visit, i.attempt)
                         AND q.answered_at IS NULL AND q.expires_at <= $3",
                )
                .bind::<Bytea, _>(&question.id.0[..])
                .bind::<SqlUuid, _>(question.run)
                .bind::<Timestamptz, _>(now)
                .execute(connection)
                .await?;
                if ended == 0 {
                    return Ok(false);
                }
                if let Some(content) = content {
                    change_item(connection, question.thread, question.id, content).await?;
                }
                if let Some(next) = next
                    && is_open(connection, question.run).await?
                {
                    insert(connection, question.run, next, now).await?;
                }
                Ok(true)
            })
            .await
    }

    /// Returns runs whose turns have ended with a question, and for which something other than a question is
    /// due.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn due_turns(&self) -> Result<Vec<Uuid>, StoreError> {
        let rows: Vec<Scalar<Uuid>> = diesel::sql_query(format!(
            "SELECT run_id FROM turns_sent t WHERE due_at <= $1 AND {NOT_CONTINUED} ORDER BY due_at LIMIT $2"
        ))
        .bind::<Timestamptz, _>(self.now())
        .bind::<BigInt, _>(PART)
        .load(&mut *self.connection().await?)
        .await?;
        Ok(rows.into_iter().map(|row| row.0).collect())
    }

    /// Makes turns due that ended with a question while another question was being answered, and that no run
    /// continues.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn wake_answered_turns(&self, since: DateTime<Utc>) -> Result<usize, StoreError> {
        let woken = diesel::sql_query(format!(
            "UPDATE turns_sent t SET due_at = $1
             FROM run_questions a JOIN run_steps s USING (run_id, node, visit, attempt)
             WHERE a.run_id = t.run_id AND t.continued_by IS NULL AND (t.due_at IS NULL OR t.due_at > $1)
               AND a.answered_at > $2 AND s.finished_at IS NULL AND {NOT_CONTINUED}"
        ))
        .bind::<Timestamptz, _>(self.now())
        .bind::<Timestamptz, _>(since)
        .execute(&mut *self.connection().await?)
        .await?;
        Ok(woken)
    }

    /// Enqueues a run that continues a due turn. Returns whether this call did it.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn continue_due_turn(&self, turn: Uuid, next: &Continuation) -> Result<bool, StoreError> {
        let now = self.now();
        let mut connection = self.connection().await?;
        connection
            .transaction(async |connection| {
                let due = diesel::sql_query(format!(
                    "UPDATE turns_sent t SET due_at = NULL
                     WHERE run_id = $1 AND due_at <= $2 AND continued_by IS NULL AND {NOT_CONTINUED}"
                ))
                .bind::<SqlUuid, _>(turn)
                .bind::<Timestamptz, _>(now)
                .execute(connection)
                .await?;
                if due == 0 {
                    return Ok(false);
                }
                insert(connection, turn, next, now).await
            })
            .await
    }
}
