//! The differences between two versions.

use actix_web::HttpRequest;
use actix_web::web::{Json, Path};
use wire::VersionDiff;

use super::versions::find;
use crate::http::error::ApiResult;
use crate::http::guard::{Caller, WorkflowsRead};
use crate::http::query;

pub(super) async fn diff(
    caller: Caller<WorkflowsRead>,
    path: Path<(String, String, String)>,
    request: HttpRequest,
) -> ApiResult<Json<VersionDiff>> {
    let (name, base, target) = path.into_inner();
    let workflow = caller.workflow(&name).await?;
    let base = find(&caller, &workflow, &base).await?;
    let target = find(&caller, &workflow, &target).await?;
    query::none(&request)?;
    let mut changes = engine::diff(&base.graph, &target.graph);
    changes.extend(engine::diff_config(base.runnable_config.as_ref(), target.runnable_config.as_ref()));
    Ok(Json(VersionDiff { base: base.number, target: target.number, changes }))
}
