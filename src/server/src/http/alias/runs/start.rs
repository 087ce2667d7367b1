//! Starts a run. The checks have a fixed order.

use actix_web::http::header::LOCATION;
use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use actors::kinds::app::{AppStart, NewAppRun, RunApp, RunStartError};
use actors::kinds::workflow::StartedRun;
use auth::app_handle;
use chrono::TimeDelta;
use wire::{BindingAccess, ErrorCode};

use super::super::error::{AliasError, AliasResult};
use super::super::visitor::Visitor;
use super::cookie::NewCookie;
use super::disclosure::{self, StartedAnswer};
use super::key::{self, Principal};
use super::{input, limits, segment};
use crate::http::error::ApiError;
use crate::http::idempotency::REPLAYED;

pub(super) async fn start(
    visitor: Visitor,
    request: HttpRequest,
    payload: Payload,
) -> AliasResult<HttpResponse> {
    let served = &visitor.served;
    let name = segment(&request, "binding")?;
    let binding = served.release.bindings.get(name).ok_or(ErrorCode::AppPathNotFound)?;
    if binding.frozen.access_mode == BindingAccess::Authenticated && visitor.member.is_none() {
        return Err(ErrorCode::LoginRequired.into());
    }
    let key = key::header(&request)?;
    let input = input::read(&request, payload, &**visitor.clock()).await?;
    let principal = Principal::for_request(&visitor, &request)?;
    let key = principal.key(served.id, name, key, &input);
    let runs = visitor.app_runs();
    let version = runs.version(binding.version).await.map_err(ApiError::from)?;
    let problems = input::problems(&input, binding, &version);
    let frozen = &binding.frozen.limits;
    let (minutes, anonymous) = limits::for_visitor(&visitor, name, frozen);
    let member = visitor.member.as_ref().map(|member| member.user);
    let new = NewAppRun {
        app: RunApp { id: served.id, release: served.release.id, member },
        workspace: served.workspace,
        binding: name.to_owned(),
        version,
        input,
        fits: problems.is_empty(),
        timeout_seconds: frozen.timeout_seconds,
        max_concurrent: frozen.max_concurrent,
        visitor: principal.visitor(),
        minutes,
        anonymous,
        key,
    };
    let handle = |run| app_handle::stored(&visitor.app_handles().handle(served.id, run));
    match runs.start(new, handle).await.map_err(refused)? {
        AppStart::Started(started) => answer(&visitor, started, principal.into_cookie()).await,
        AppStart::Limited(wait) => Err(limited(wait)),
        AppStart::Unfit => Err(ApiError::problems(ErrorCode::InputInvalid, problems).into()),
    }
}

/// Responds with 202 and the handle; a retry gets the current state. Only the first response sets the cookie of a new
/// visitor.
async fn answer(
    visitor: &Visitor,
    started: StartedRun,
    cookie: Option<NewCookie>,
) -> AliasResult<HttpResponse> {
    let handle = visitor.app_handles().handle(visitor.served.id, started.run);
    let mut answer = HttpResponse::Accepted();
    answer.insert_header((LOCATION, format!("/__service/runs/{handle}")));
    let state = if started.replayed {
        answer.insert_header(REPLAYED);
        let stored = visitor.store().app_run(visitor.served.id, &app_handle::stored(&handle)).await?;
        match stored {
            Some(stored) => disclosure::state(&stored),
            None => return Err(ErrorCode::AppPathNotFound.into()),
        }
    } else {
        if let Some(cookie) = cookie {
            answer.cookie(cookie.into_cookie());
        }
        disclosure::QUEUED
    };
    Ok(answer.json(StartedAnswer { handle, state }))
}

fn refused(error: RunStartError) -> AliasError {
    match error {
        RunStartError::KeyReused => ErrorCode::AppKeyReused.into(),
        other => ApiError::from(other).into(),
    }
}

fn limited(wait: TimeDelta) -> AliasError {
    let part = i64::from(wait.subsec_nanos() > 0);
    let seconds = wait.num_seconds().saturating_add(part).max(1);
    ApiError::new(ErrorCode::AppRateLimited).retry_after(seconds).into()
}
