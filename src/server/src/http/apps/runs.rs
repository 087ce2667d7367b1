//! Lists the runs started by an app's pages, for its owners.

use actix_web::HttpRequest;
use actix_web::web::{Json, Path};
use auth::app_handle;
use store::{AppRunsFilter, ListedAppRun};
use uuid::Uuid;
use wire::{AppRunError, AppRunRecord, AppRunState, AppVisitor, Listed};

use super::find;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{AppsRead, Caller};
use crate::http::paging::{self, PageQuery};
use crate::http::query::Params;
use crate::http::{App, time};

/// The list's name in cursors.
const LIST: &str = "app-runs";

/// Lists the newest first.
pub(super) async fn list(
    caller: Caller<AppsRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<AppRunRecord>>> {
    let app = find(&caller, &name).await?;
    let mut query = Params::from_request(&request);
    let part: PageQuery<Uuid> = PageQuery::from_params(&mut query, LIST);
    let filter = filter(&mut query);
    ApiError::refuse(query.finish())?;
    let page = caller.store().app_runs(app.id, &filter, part.after, part.limit).await?;
    let next_cursor = page.next.map(|next| paging::cursor(LIST, &next));
    let data = page.runs.into_iter().map(|run| record(caller.app(), app.id, run)).collect();
    Ok(Json(Listed { data, next_cursor }))
}

fn filter(query: &mut Params) -> AppRunsFilter {
    let states = query.words("state", &AppRunState::NAMES);
    let binding = query.text("binding");
    if binding.as_deref().is_some_and(|name| !bundle::is_name(name)) {
        query.note("binding", "format", "must be the name of a binding");
    }
    AppRunsFilter { states: states.iter().filter_map(|name| AppRunState::from_name(name)).collect(), binding }
}

fn record(app: &App, id: Uuid, run: ListedAppRun) -> AppRunRecord {
    AppRunRecord {
        id: run.run.to_string(),
        handle_prefix: app_handle::shown(&app.app_handles().handle(id, run.run)),
        binding: run.binding,
        state: run.state,
        release_id: run.release.to_string(),
        visitor: if run.is_of_member { AppVisitor::Member } else { AppVisitor::Anonymous },
        created_at: time(run.created_at),
        finished_at: run.finished_at.map(time),
        error: run.error_code.map(|code| AppRunError { code }),
    }
}
