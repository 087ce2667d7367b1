//! Version gates: started with the version, in its transaction.

use chrono::{DateTime, Utc};
use diesel::dsl::exists;
use diesel::prelude::*;
use diesel::sql_types::{
    Array, BigInt, Bytea, Double, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid,
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};
use uuid::Uuid;
use wire::{GateStatus, RolloutGate, VersionGate};

use super::records::StoredRollout;
use crate::error::corrupt;
use crate::schema::dataset_versions;
use crate::training::find_dataset;
use crate::{Changes, Store, StoreError};

/// Maximum evaluations handled per round.
const AT_ONCE: i64 = 100;

/// A gate evaluation that has no result yet, and whose run is not executing.
#[derive(Debug, Clone, QueryableByName)]
pub struct GateEvaluation {
    /// Its run.
    #[diesel(sql_type = SqlUuid)]
    pub run_id: Uuid,
    /// The workflow.
    #[diesel(sql_type = SqlUuid)]
    pub workflow_id: Uuid,
    /// Its workspace.
    #[diesel(sql_type = SqlUuid)]
    pub workspace_id: Uuid,
    /// The number of the evaluated version.
    #[diesel(sql_type = Integer)]
    pub version: i32,
    /// JSON: the object `evaluation`.
    #[diesel(sql_type = Text)]
    pub request: String,
    /// When the run was stored; `None`: it is not started yet.
    #[diesel(sql_type = Nullable<Timestamptz>)]
    pub started_at: Option<DateTime<Utc>>,
    /// When the run ended.
    #[diesel(sql_type = Nullable<Timestamptz>)]
    pub ended_at: Option<DateTime<Utc>>,
    /// JSON: the run's error.
    #[diesel(sql_type = Nullable<Text>)]
    pub run_error: Option<String>,
}

#[derive(QueryableByName)]
struct GateRow {
    #[diesel(sql_type = Integer)]
    version: i32,
    #[diesel(sql_type = Text)]
    status: String,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    run_id: Option<Uuid>,
    #[diesel(sql_type = Nullable<Double>)]
    score: Option<f64>,
    #[diesel(sql_type = Nullable<Integer>)]
    live_version: Option<i32>,
    #[diesel(sql_type = Nullable<Double>)]
    live_score: Option<f64>,
    #[diesel(sql_type = Nullable<Text>)]
    error: Option<String>,
}

/// An evaluation to start.
pub(super) struct NewEvaluation<'a> {
    pub(super) run_id: Uuid,
    pub(super) workflow_id: Uuid,
    pub(super) workspace_id: Uuid,
    pub(super) version: i32,
    pub(super) key: &'a [u8],
    pub(super) request: &'a str,
}

impl NewEvaluation<'_> {
    pub(super) async fn insert(
        &self,
        connection: &mut AsyncPgConnection,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        diesel::sql_query(
            "INSERT INTO gate_evaluations (run_id, workflow_id, version, workspace_id, key, request, created_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind::<SqlUuid, _>(self.run_id)
        .bind::<SqlUuid, _>(self.workflow_id)
        .bind::<Integer, _>(self.version)
        .bind::<SqlUuid, _>(self.workspace_id)
        .bind::<Bytea, _>(self.key)
        .bind::<Text, _>(self.request)
        .bind::<Timestamptz, _>(now)
        .execute(connection)
        .await?;
        Ok(())
    }
}

/// The object `evaluation` as text, and the SHA-256 of the parts that determine its score.
fn evaluation(request: Map<String, Value>) -> (String, Vec<u8>) {
    let text = |request: Map<String, Value>| Value::Object(request).to_string();
    let mut decisive = request.clone();
    decisive.shift_remove("budget");
    let key = digest(&SHA256, text(decisive).as_bytes()).as_ref().to_vec();
    (text(request), key)
}

impl Changes {
    /// Starts the gate for a version that is saved in this transaction: any instance starts its evaluation
    /// after the commit.
    pub(crate) async fn start_gate(
        &mut self,
        rollout: &StoredRollout,
        gate: &RolloutGate,
        version: i32,
    ) -> Result<(), StoreError> {
        let now = self.store.now();
        let run_id = self.store.ids().uuid()?;
        let found = gate_request(&mut self.connection, rollout, gate).await?;
        let (workflow_id, workspace_id) = (rollout.workflow_id, rollout.workspace_id);
        let started = match found {
            Ok(request) => {
                let (request, key) = evaluation(request);
                let new = NewEvaluation {
                    run_id,
                    workflow_id,
                    workspace_id,
                    version,
                    key: &key,
                    request: &request,
                };
                new.insert(&mut self.connection, now).await?;
                Ok(run_id)
            }
            Err(error) => Err(error),
        };
        let status = if started.is_ok() { GateStatus::Running } else { GateStatus::Failed };
        diesel::sql_query(
            "INSERT INTO version_gates (workflow_id, version, workspace_id, status, threshold, max_drop, run_id, error,
                 created_at, finished_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        )
        .bind::<SqlUuid, _>(workflow_id)
        .bind::<Integer, _>(version)
        .bind::<SqlUuid, _>(workspace_id)
        .bind::<Text, _>(status.as_str())
        .bind::<Double, _>(gate.threshold)
        .bind::<Double, _>(gate.max_drop)
        .bind::<Nullable<SqlUuid>, _>(started.as_ref().ok())
        .bind::<Nullable<Text>, _>(started.as_ref().err())
        .bind::<Timestamptz, _>(now)
        .bind::<Nullable<Timestamptz>, _>(started.is_err().then_some(now))
        .execute(&mut *self.connection)
        .await?;
        Ok(())
    }

    /// Returns the gate's decision about a version.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn version_gate(
        &mut self,
        workflow: Uuid,
        version: i32,
    ) -> Result<Option<VersionGate>, StoreError> {
        Ok(gates(&mut self.connection, workflow, &[version]).await?.pop().map(|(_, gate)| gate))
    }
}

impl Store {
    /// Returns the gate's decisions about these versions of a workflow; omits versions without a gate.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn version_gates(
        &self,
        workflow: Uuid,
        versions: &[i32],
    ) -> Result<Vec<(i32, VersionGate)>, StoreError> {
        gates(&mut *self.connection().await?, workflow, versions).await
    }

    /// Returns gate evaluations to start, and those whose run has ended without a result: the oldest from each
    /// workspace first, then the second from each, so that no workspace waits for all evaluations of another
    /// one.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn unfinished_gate_evaluations(&self) -> Result<Vec<GateEvaluation>, StoreError> {
        Ok(diesel::sql_query(
            "SELECT run_id, workflow_id, workspace_id, version, request, started_at, ended_at, run_error FROM (
                 SELECT e.run_id, e.workflow_id, e.workspace_id, e.version, e.request, r.created_at AS started_at,
                     r.finished_at AS ended_at, r.error AS run_error,
                     row_number() OVER (PARTITION BY e.workspace_id ORDER BY e.run_id) AS place
                 FROM gate_evaluations e LEFT JOIN runs r ON r.id = e.run_id
                 WHERE e.finished_at IS NULL AND (r.id IS NULL OR r.finished_at IS NOT NULL)) waiting
             ORDER BY place, run_id LIMIT $1",
        )
        .bind::<BigInt, _>(AT_ONCE)
        .load(&mut *self.connection().await?)
        .await?)
    }
}

/// The gate's object `evaluation`, with the versions from the time when the gate was set; a text if its dataset
/// is not found.
async fn gate_request(
    connection: &mut AsyncPgConnection,
    rollout: &StoredRollout,
    gate: &RolloutGate,
) -> Result<Result<Map<String, Value>, String>, StoreError> {
    let fixed = rollout.gate_evaluation.as_deref().map(serde_json::from_str::<Map<String, Value>>);
    let fixed = fixed.transpose().map_err(|error| corrupt("the evaluation of a gate", error))?;
    let id = fixed.as_ref().and_then(|fixed| fixed.get("dataset")?.get("id")?.as_str().map(str::to_owned));
    let wanted = id.as_ref().unwrap_or(&gate.dataset);
    let found = dataset_version(connection, rollout.workflow_id, wanted, gate).await?;
    Ok(found.map(|(dataset, number)| {
        fixed.unwrap_or_else(|| gate.evaluation(&dataset.to_string(), Some(number)))
    }))
}

/// The version of the dataset `wanted` that a gate names; a text if it is not found.
async fn dataset_version(
    connection: &mut AsyncPgConnection,
    workflow: Uuid,
    wanted: &str,
    gate: &RolloutGate,
) -> Result<Result<(Uuid, i32), String>, StoreError> {
    let Some(dataset) = find_dataset(connection, workflow, wanted).await? else {
        let named = gate.dataset.replace('\0', "");
        return Ok(Err(format!("the dataset '{named}' of the gate was not found")));
    };
    let Some(number) = gate.dataset_version else { return Ok(Ok((dataset.id, dataset.version))) };
    let version = dataset_versions::table.find((dataset.id, number));
    let is_found: bool = diesel::select(exists(version)).get_result(connection).await?;
    Ok(match is_found {
        true => Ok((dataset.id, number)),
        false => Err(format!("the dataset '{}' of the gate does not have the version", gate.dataset)),
    })
}

async fn gates(
    connection: &mut AsyncPgConnection,
    workflow: Uuid,
    versions: &[i32],
) -> Result<Vec<(i32, VersionGate)>, StoreError> {
    let rows: Vec<GateRow> = diesel::sql_query(
        "SELECT version, status, run_id, score, live_version, live_score, error FROM version_gates
         WHERE workflow_id = $1 AND version = ANY($2)",
    )
    .bind::<SqlUuid, _>(workflow)
    .bind::<Array<Integer>, _>(versions)
    .load(connection)
    .await?;
    let gate = |row: GateRow| {
        let status = GateStatus::from_name(&row.status)
            .ok_or_else(|| StoreError::Corrupt(format!("status {} of a gate", row.status)))?;
        let GateRow { version, score, live_version, live_score, error, .. } = row;
        let run_id = row.run_id.map(|run| run.to_string());
        Ok((version, VersionGate { status, run_id, score, live_version, live_score, error }))
    };
    rows.into_iter().map(gate).collect()
}
