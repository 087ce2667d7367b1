//! A run takes over the turn that it continues.

use diesel::prelude::*;
use diesel::sql_types::Uuid as SqlUuid;
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use kernel::ItemKey;
use uuid::Uuid;

use super::continuations::key;
use crate::schema::{question_items, run_questions, turns_sent};
use crate::{Store, StoreError};

/// A turn that a run continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContinuedTurn {
    /// Its run.
    pub run: Uuid,
    /// The output that it sent, JSON.
    pub sent: String,
    /// Its question items.
    pub items: Vec<AskedItem>,
}

/// A question item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedItem {
    /// The item.
    pub id: ItemKey,
    /// The answer, if there is one, JSON.
    pub answer: Option<String>,
}

impl Store {
    /// Makes a run the continuation of a turn, or of the latest run that has continued that turn: it receives
    /// the journal and the questions. `None` if no turn is left to continue: the latest one has ended without a
    /// question, or has not ended. Returns the same turn again for a run that already received one.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn continue_turn(&self, run: Uuid, turn: Uuid) -> Result<Option<ContinuedTurn>, StoreError> {
        let mut connection = self.connection().await?;
        connection.transaction(async |connection| take_over(connection, run, turn).await).await
    }

    /// Whether another run will continue the same turn as this run.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn has_other_continuation(&self, run: Uuid) -> Result<bool, StoreError> {
        let found = diesel::sql_query(
            "SELECT FROM runs o JOIN runs r ON r.id = $1 AND o.continues = r.continues AND o.id <> r.id
             WHERE o.finished_at IS NULL AND o.cancel_requested_at IS NULL LIMIT 1",
        )
        .bind::<SqlUuid, _>(run)
        .execute(&mut *self.connection().await?)
        .await?;
        Ok(found > 0)
    }

    /// Replaces the stored output of a turn.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn set_turn_sent(&self, run: Uuid, sent: &str) -> Result<(), StoreError> {
        diesel::update(turns_sent::table.find(run))
            .set(turns_sent::sent.eq(sent))
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(())
    }
}

async fn take_over(
    connection: &mut AsyncPgConnection,
    run: Uuid,
    mut turn: Uuid,
) -> Result<Option<ContinuedTurn>, StoreError> {
    let taken: Option<(Uuid, String)> = turns_sent::table
        .filter(turns_sent::continued_by.eq(run))
        .select((turns_sent::run_id, turns_sent::sent))
        .first(connection)
        .await
        .optional()?;
    if let Some((turn, sent)) = taken {
        return Ok(Some(ContinuedTurn { run: turn, sent, items: asked_items(connection, run).await? }));
    }
    loop {
        // Before the turn: answers lock in this order.
        let items: Vec<Vec<u8>> = question_items::table
            .filter(question_items::run_id.eq(turn))
            .order(question_items::item_id)
            .select(question_items::item_id)
            .for_update()
            .load(connection)
            .await?;
        drop(items);
        let before: Option<(String, Option<Uuid>)> = turns_sent::table
            .find(turn)
            .select((turns_sent::sent, turns_sent::continued_by))
            .for_update()
            .first(connection)
            .await
            .optional()?;
        match before {
            None => return Ok(None),
            Some((_, Some(by))) => turn = by,
            Some((sent, None)) => {
                give(connection, turn, run).await?;
                let items = asked_items(connection, run).await?;
                return Ok(Some(ContinuedTurn { run: turn, sent, items }));
            }
        }
    }
}

/// Returns a run's question items.
async fn asked_items(connection: &mut AsyncPgConnection, run: Uuid) -> Result<Vec<AskedItem>, StoreError> {
    let is_of_item = run_questions::run_id
        .eq(question_items::run_id)
        .and(run_questions::node.eq(question_items::node))
        .and(run_questions::visit.eq(question_items::visit))
        .and(run_questions::attempt.eq(question_items::attempt));
    let asked: Vec<(Vec<u8>, Option<String>)> = question_items::table
        .inner_join(run_questions::table.on(is_of_item))
        .filter(question_items::run_id.eq(run))
        .order(question_items::item_id)
        .select((question_items::item_id, run_questions::answer))
        .load(connection)
        .await?;
    asked.into_iter().map(|(id, answer)| Ok(AskedItem { id: key(id)?, answer })).collect()
}

/// Moves a turn's journal and questions to the run that continues it; other runs that were going to continue
/// the turn now continue that run's turn.
async fn give(connection: &mut AsyncPgConnection, turn: Uuid, run: Uuid) -> Result<(), StoreError> {
    for statement in [
        "UPDATE turns_sent SET continued_by = $2, due_at = NULL WHERE run_id = $1",
        "INSERT INTO run_steps (run_id, node, visit, attempt, step, status, input_digest, result, result_blob, error, note,
             started_at, finished_at)
         SELECT $2, node, visit, attempt, step, status, input_digest, result, result_blob, error, note, started_at, finished_at
         FROM run_steps WHERE run_id = $1 ON CONFLICT DO NOTHING",
        "UPDATE question_items SET run_id = $2 WHERE run_id = $1",
        "UPDATE run_questions SET run_id = $2 WHERE run_id = $1",
        "UPDATE runs SET continues = $2 WHERE continues = $1 AND finished_at IS NULL AND id <> $2",
        "UPDATE runs SET continues = $1 WHERE id = $2 AND continues IS DISTINCT FROM $1",
    ] {
        diesel::sql_query(statement)
            .bind::<SqlUuid, _>(turn)
            .bind::<SqlUuid, _>(run)
            .execute(connection)
            .await?;
    }
    Ok(())
}
