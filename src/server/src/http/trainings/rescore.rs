//! Re-evaluates stored results with other evaluators.

use std::sync::Arc;

use actix_web::web::{Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use actors::kinds::training::{NotRescored, RescoredCandidate, TrainingKey, names_credential};
use actors::kinds::workflow::IdempotencyKey;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value, json};
use wire::{ErrorCode, FieldError};

use super::found;
use super::start::accepted;
use crate::http::body::{self, BODY_LIMIT};
use crate::http::error::{ApiError, ApiResult};
use crate::http::fields::Fields;
use crate::http::guard::{Caller, WorkflowsExecute};
use crate::http::idempotency::{self, KeyScopes};
use crate::http::query::Params;

/// Responds with 202 and the evaluation's record.
pub(super) async fn rescore(
    caller: Caller<WorkflowsExecute>,
    path: Path<(String, String)>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<HttpResponse> {
    let clock = Arc::clone(caller.app().clock());
    let bytes = body::read(&request, payload, BODY_LIMIT, &*clock).await?;
    let key = idempotency::key(&request)?;
    let (workflow, _) = &*path;
    if caller.workflow(workflow).await?.archived_at.is_some() {
        return Err(ApiError::new(ErrorCode::WorkflowArchived));
    }
    let origin = found(&caller, &path).await?;
    let wanted = Params::from_request(&request).and(read(&body::object(&request, &bytes)?))?;
    let trainings = caller.app().trainings();
    let digest = digest(&SHA256, &bytes).as_ref().to_vec();
    let KeyScopes { first: scope, also } = KeyScopes::for_request(&caller, &request);
    let key = key.map(|key| IdempotencyKey { scope, also, key, digest: digest.clone() });
    let key = TrainingKey { key, run: None, digest };
    let started = match trainings.started(&key).await? {
        Some(started) => started,
        None => {
            if names_credential(&json!({"evaluators": wanted.0})) {
                caller.check_writes_workflows(origin.workspace_id).await?;
            }
            let prepared = trainings.prepare_rescore(&origin, wanted.0, wanted.1).await.map_err(refused)?;
            trainings.start(prepared, key).await?
        }
    };
    accepted(&caller, &started).await
}

fn read(members: &Map<String, Value>) -> Result<(Value, RescoredCandidate), Vec<FieldError>> {
    let mut fields = Fields::new(members);
    fields.require("evaluators");
    let evaluators = fields.stands("evaluators").cloned().unwrap_or_default();
    let candidate = match fields.stands("candidate") {
        None | Some(Value::Null) => RescoredCandidate::default(),
        Some(Value::String(word)) if word == "best" => RescoredCandidate::Best,
        Some(Value::String(word)) if word == "seed" => RescoredCandidate::Seed,
        Some(given) => match given.as_u64().and_then(|number| u32::try_from(number).ok()) {
            Some(number) => RescoredCandidate::Number(number),
            None => {
                let message = "must be the number of a candidate, \"best\" or \"seed\"";
                fields.note(FieldError::new("/candidate", "choice", message));
                RescoredCandidate::default()
            }
        },
    };
    let problems = fields.finish();
    if problems.is_empty() { Ok((evaluators, candidate)) } else { Err(problems) }
}

fn refused(error: NotRescored) -> ApiError {
    match error {
        NotRescored::NotEnded => ApiError::new(ErrorCode::RunNotEnded),
        NotRescored::Erased => ApiError::new(ErrorCode::RunContentErased),
        NotRescored::Refused(refused) => super::start::refused(refused),
    }
}
