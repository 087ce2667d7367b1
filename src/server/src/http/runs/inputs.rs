//! Accepts people's answers to questions from runs.

use actix_web::HttpResponse;
use actix_web::web::Path;
use auth::role::Role;
use kernel::ItemKey;
use serde_json::Value;
use store::{Answered, AnsweredItem, Changes, NewAnswer, OpenQuestion, StoredRun};
use uuid::Uuid;
use wire::chat::ThreadItem;
use wire::{ErrorCode, FieldError, RunState};

use super::{found, records};
use crate::http::change::Change;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{Caller, WorkflowsExecute};
use crate::http::idempotency::ChangeReply;
use crate::http::thread_ids::ThreadIds;

/// Answers a run's open question; the body is the answer itself. Responds with 202: the run continues, or another run
/// continues its turn.
pub(super) async fn answer(
    change: Change<WorkflowsExecute>,
    path: Path<(String, String)>,
) -> ApiResult<HttpResponse> {
    let (id, key) = path.into_inner();
    let caller = &change.caller;
    let (named, _) = found(caller, &id).await?;
    let answer = change.value()?;
    let runs = caller.app().runs();
    // The id of a run whose turn was continued refers to the latest continuation.
    let latest = runs.latest_continuation(named.id).await?;
    let (run, version) = found(caller, &latest.to_string()).await?;
    let asked = runs.questions(run.id).await?.into_iter().find(|question| question.key == key);
    let question = asked.ok_or_else(|| ApiError::new(ErrorCode::RunNotWaiting))?;
    let item = item_of(caller, &run, &question).await?;
    let mut answered = Answered::TooLate;
    let told = change
        .make(async |changes| {
            check_audience(caller, &run, &question, changes).await?;
            check_fits(&question, &answer)?;
            let given = given(item.as_ref(), &question, answer)?;
            let (answer, item) = (&given.0, given.1);
            let next = runs.continuation(item.as_ref().map(|(_, item)| item))?;
            let item = item.and_then(|(key, item)| {
                let content = serde_json::to_string(&item).ok()?;
                Some(AnsweredItem { thread: run.thread_id?, id: key, content })
            });
            let by = caller.name();
            let new = NewAnswer { answer, by: by.as_deref(), item, next: Some(&next) };
            answered = changes.answer_question(Some(&question.step), new).await?;
            if answered == Answered::TooLate {
                return Err(ApiError::new(ErrorCode::RunNotWaiting));
            }
            let record = records::run(run.clone(), version, Vec::new());
            // Whether the run resumes at once is not known yet. If it has ended, another run continues its turn.
            let status = if run.finished_at.is_some() { record.status } else { RunState::Running };
            let ids = ThreadIds::for_caller(caller, run.workspace_id);
            ChangeReply::accepted(&ids.record(wire::RunRecord { status, ..record })?)
        })
        .await?;
    runs.answered(run.id, answered).await;
    Ok(told)
}

/// Returns the stored chat item that asks the question.
async fn item_of(
    caller: &Caller<WorkflowsExecute>,
    run: &StoredRun,
    question: &OpenQuestion,
) -> ApiResult<Option<(ItemKey, ThreadItem)>> {
    let (Some(thread), Some(key)) = (run.thread_id, question.item_id) else { return Ok(None) };
    let item = caller.app().chat().items_named(thread, &[key]).await?.pop();
    // A retry has removed the item from the thread.
    item.map(|item| Some((key, item))).ok_or_else(|| ApiError::new(ErrorCode::RunNotWaiting))
}

/// Converts the answer to the run's input and the updated item.
fn given(
    item: Option<&(ItemKey, ThreadItem)>,
    question: &OpenQuestion,
    answer: Value,
) -> ApiResult<(Value, Option<(ItemKey, ThreadItem)>)> {
    let Some(body) = item.map(|(_, item)| &item.body).or(question.item.as_ref()) else {
        return Ok((answer, None));
    };
    let answered = body
        .answered(answer)
        .map_err(|problems| ApiError::problems(ErrorCode::RunInputInvalid, problems))?
        .ok_or_else(|| ApiError::new(ErrorCode::RunNotWaiting))?;
    let item = item.map(|(key, item)| (*key, ThreadItem { body: answered.body, ..item.clone() }));
    Ok((answered.value, item))
}

fn check_fits(question: &OpenQuestion, answer: &Value) -> ApiResult<()> {
    let problems = question.schema.as_ref().map(|schema| engine::check_answer(schema, answer, ""));
    match problems {
        Some(problems) if !problems.is_empty() => {
            Err(ApiError::problems(ErrorCode::RunInputInvalid, problems))
        }
        _ => Ok(()),
    }
}

/// Checks that the caller belongs to the audience. If it names roles or addresses, only those people themselves may
/// answer, not tokens. If the service does not authenticate callers, every caller may.
async fn check_audience(
    caller: &Caller<WorkflowsExecute>,
    run: &StoredRun,
    question: &OpenQuestion,
    changes: &mut Changes,
) -> ApiResult<()> {
    if question.audience.is_empty() || caller.principal().is_anonymous() {
        return Ok(());
    }
    let actor = caller.principal().actor();
    let user = actor.id.as_deref().filter(|_| actor.kind == "user").and_then(|id| Uuid::parse_str(id).ok());
    let member = match user {
        Some(user) => changes.member(run.workspace_id, user).await?,
        None => None,
    };
    let belongs = member.is_some_and(|member| {
        let role = Role::parse(&member.role);
        question.audience.iter().any(|entry| match entry.strip_prefix("role:") {
            Some(least) => role.is_some_and(|role| Role::parse(least).is_some_and(|least| role >= least)),
            None => member.email.as_deref().is_some_and(|email| email.eq_ignore_ascii_case(entry)),
        })
    });
    if belongs {
        return Ok(());
    }
    let problem =
        FieldError::new("", "audience", format!("may be answered only by {}", question.audience.join(", ")));
    Err(ApiError::problems(ErrorCode::RunInputForbidden, vec![problem]))
}
