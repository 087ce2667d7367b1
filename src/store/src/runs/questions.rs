//! Questions that runs ask people, and their answers.

use chrono::{DateTime, Utc};
use diesel::dsl::exists;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Nullable, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::ItemKey;
use serde_json::Value;
use uuid::Uuid;
use wire::chat::ItemBody;

use super::continuations::{self, AnsweredItem, Continuation};
use crate::error::corrupt;
use crate::schema::{question_items, run_questions, runs, turns_sent};
use crate::{Changes, Store, StoreError};

/// SQL condition: no retry has cut the question's item from its thread.
const NOT_TAKEN_OUT: &str =
    "NOT EXISTS (SELECT FROM thread_cuts c WHERE c.thread_id = question_items.thread_id
    AND question_items.item_id > c.behind AND question_items.item_id < c.id)";

/// Identifies the attempt that asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionKey {
    /// The run.
    pub run: Uuid,
    /// The node's name.
    pub node: String,
    /// The node's visit number, from 1.
    pub visit: i32,
    /// The visit's attempt number, from 1.
    pub attempt: i32,
}

/// A question that waits for its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenQuestion {
    /// The attempt that asks.
    pub step: QuestionKey,
    /// The key that an answer refers to.
    pub key: String,
    /// The text for the person who answers.
    pub message: Option<String>,
    /// The answer's JSON Schema.
    pub schema: Option<Value>,
    /// The people who may answer; empty: every caller who may execute the workflow.
    pub audience: Vec<String>,
    /// When it was asked.
    pub asked_at: DateTime<Utc>,
    /// When it expires.
    pub expires_at: Option<DateTime<Utc>>,
    /// The pending item that shows it in a chat.
    pub item: Option<ItemBody>,
    /// The id of that item, after the turn has ended with it.
    pub item_id: Option<ItemKey>,
}

/// A stored answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswerOf {
    /// JSON.
    pub answer: String,
    /// The person who answered, if known.
    pub by: Option<String>,
    /// When it was answered.
    pub at: DateTime<Utc>,
}

/// The location of a run after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// In the queue, and due now.
    Queued,
    /// Owned by this writer.
    With(Uuid),
    /// Its turn has ended with a question; a queued run continues it.
    Continues,
    /// None: the question was already answered, has expired, or its run has ended.
    TooLate,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = run_questions)]
#[diesel(check_for_backend(diesel::pg::Pg))]
struct OpenQuestionRow {
    run_id: Uuid,
    node: String,
    visit: i32,
    attempt: i32,
    key: String,
    message: Option<String>,
    schema: Option<String>,
    audience: Value,
    item: Option<String>,
    asked_at: DateTime<Utc>,
    expires_at: Option<DateTime<Utc>>,
}

/// A question's row, and the id of its item.
type QuestionColumns = (OpenQuestionRow, Option<Vec<u8>>);

impl OpenQuestion {
    fn from_columns(row: OpenQuestionRow, item_id: Option<Vec<u8>>) -> Result<Self, StoreError> {
        let schema = row.schema.as_deref().map(serde_json::from_str).transpose();
        let item = row.item.as_deref().map(serde_json::from_str).transpose();
        Ok(Self {
            step: QuestionKey { run: row.run_id, node: row.node, visit: row.visit, attempt: row.attempt },
            key: row.key,
            message: row.message,
            schema: schema.map_err(|error| corrupt("a question's schema", error))?,
            audience: serde_json::from_value(row.audience).map_err(|error| corrupt("an audience", error))?,
            asked_at: row.asked_at,
            expires_at: row.expires_at,
            item: item.map_err(|error| corrupt("the item of a question", error))?,
            item_id: item_id.and_then(|id| id.try_into().ok()).map(ItemKey),
        })
    }
}

impl Store {
    /// Returns the open questions of an unfinished run, or of a turn that has ended with a question; oldest
    /// first.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn open_questions(&self, run: Uuid) -> Result<Vec<OpenQuestion>, StoreError> {
        let now = self.now();
        let mut questions = self.unanswered_questions(run).await?;
        questions.retain(|question| question.expires_at.is_none_or(|expires_at| expires_at > now));
        Ok(questions)
    }

    /// As [`Self::open_questions`], including expired ones.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn unanswered_questions(&self, run: Uuid) -> Result<Vec<OpenQuestion>, StoreError> {
        let is_item = question_items::run_id
            .eq(run_questions::run_id)
            .and(question_items::node.eq(run_questions::node))
            .and(question_items::visit.eq(run_questions::visit))
            .and(question_items::attempt.eq(run_questions::attempt));
        let ended_with_it = exists(turns_sent::table.filter(turns_sent::run_id.eq(run)));
        let rows: Vec<QuestionColumns> = run_questions::table
            .inner_join(runs::table.on(runs::id.eq(run_questions::run_id)))
            .left_join(question_items::table.on(is_item))
            .filter(run_questions::run_id.eq(run))
            .filter(run_questions::answered_at.is_null())
            .filter(runs::finished_at.is_null().or(ended_with_it))
            .filter(diesel::dsl::sql::<Bool>(NOT_TAKEN_OUT))
            .order((
                run_questions::asked_at,
                run_questions::node,
                run_questions::visit,
                run_questions::attempt,
            ))
            .select((OpenQuestionRow::as_select(), question_items::item_id.nullable()))
            .load(&mut *self.connection().await?)
            .await?;
        let mut questions = rows
            .into_iter()
            .map(|(row, item_id)| OpenQuestion::from_columns(row, item_id))
            .collect::<Result<Vec<_>, _>>()?;
        // A tool call that was sent again has two items; the last one counts.
        questions.dedup_by(|later, kept| {
            let same = later.step == kept.step;
            if same {
                kept.item_id = later.item_id.max(kept.item_id);
            }
            same
        });
        Ok(questions)
    }

    /// Returns a run's answers as JSON by question key, in the order of the questions.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn answers_of_run(&self, run: Uuid) -> Result<Vec<(String, String)>, StoreError> {
        Ok(run_questions::table
            .filter(run_questions::run_id.eq(run))
            .filter(run_questions::answer.is_not_null())
            .order((
                run_questions::asked_at,
                run_questions::node,
                run_questions::visit,
                run_questions::attempt,
            ))
            .select((run_questions::key, run_questions::answer.assume_not_null()))
            .load(&mut *self.connection().await?)
            .await?)
    }

    /// Returns the answer to a question, if there is one.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn answer_to(&self, step: &QuestionKey) -> Result<Option<StoredAnswerOf>, StoreError> {
        type AnswerColumns = (Option<String>, Option<String>, Option<DateTime<Utc>>);
        let row: Option<AnswerColumns> = run_questions::table
            .find((step.run, &step.node, step.visit, step.attempt))
            .select((run_questions::answer, run_questions::answered_by, run_questions::answered_at))
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        let Some((Some(answer), by, Some(at))) = row else { return Ok(None) };
        Ok(Some(StoredAnswerOf { answer, by, at }))
    }
}

/// An answer to store.
#[derive(Debug, Clone)]
pub struct NewAnswer<'a> {
    /// The answer.
    pub answer: &'a Value,
    /// The person who answers, if known.
    pub by: Option<&'a str>,
    /// The answered item, if an item asked.
    pub item: Option<AnsweredItem>,
    /// The run that continues the turn, if the turn has ended with a question.
    pub next: Option<&'a Continuation>,
}

impl Changes {
    /// Stores the answer to a question that is still open, with its item. Makes its run due if it is in the
    /// queue, or enqueues another run that continues the turn, if the turn has ended or an item asked. `step`:
    /// the question, if no item asks it.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn answer_question(
        &mut self,
        step: Option<&QuestionKey>,
        new: NewAnswer<'_>,
    ) -> Result<Answered, StoreError> {
        let now = self.store.now();
        let connection = &mut *self.connection;
        let step = match &new.item {
            // It may belong to another run by now.
            Some(item) => continuations::lock_item(connection, item.id).await?,
            None => step.cloned(),
        };
        let Some(step) = step else { return Ok(Answered::TooLate) };
        let Some(state) = state_of(connection, step.run).await? else { return Ok(Answered::TooLate) };
        if state.finished && !state.asks || !store_answer(connection, &step, &new, now).await? {
            return Ok(Answered::TooLate);
        }
        if let Some(AnsweredItem { thread, id, content }) = &new.item {
            continuations::change_item(connection, *thread, *id, content).await?;
        }
        if let Some(next) = new.next.filter(|_| new.item.is_some() || state.finished) {
            if !continuations::insert(connection, step.run, next, now).await? {
                return Ok(Answered::TooLate);
            }
            if let Some(item) = &new.item {
                continuations::name_stream(connection, item.id, next.stream).await?;
            }
            return Ok(Answered::Continues);
        }
        let woken = diesel::sql_query("UPDATE run_queue SET due_at = least(due_at, $2) WHERE run_id = $1")
            .bind::<SqlUuid, _>(step.run)
            .bind::<Nullable<Timestamptz>, _>(Some(now))
            .execute(connection)
            .await?;
        Ok(if woken > 0 { Answered::Queued } else { Answered::With(state.writer_id) })
    }
}

#[derive(QueryableByName)]
struct RunOfQuestion {
    #[diesel(sql_type = SqlUuid)]
    writer_id: Uuid,
    #[diesel(sql_type = Bool)]
    finished: bool,
    /// Whether it ended with a question.
    #[diesel(sql_type = Bool)]
    asks: bool,
}

async fn state_of(
    connection: &mut AsyncPgConnection,
    run: Uuid,
) -> Result<Option<RunOfQuestion>, StoreError> {
    Ok(diesel::sql_query(
        "SELECT writer_id, finished_at IS NOT NULL AS finished,
             EXISTS (SELECT FROM turns_sent t WHERE t.run_id = runs.id) AS asks FROM runs WHERE id = $1",
    )
    .bind::<SqlUuid, _>(run)
    .get_result(connection)
    .await
    .optional()?)
}

/// Stores the answer; returns whether the question was still open.
async fn store_answer(
    connection: &mut AsyncPgConnection,
    step: &QuestionKey,
    new: &NewAnswer<'_>,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let stored = diesel::update(run_questions::table.find((step.run, &step.node, step.visit, step.attempt)))
        .filter(run_questions::answered_at.is_null())
        .filter(run_questions::expires_at.is_null().or(run_questions::expires_at.gt(now)))
        .set((
            run_questions::answer.eq(new.answer.to_string()),
            run_questions::answered_by.eq(new.by),
            run_questions::answered_at.eq(now),
        ))
        .execute(connection)
        .await?;
    Ok(stored > 0)
}
