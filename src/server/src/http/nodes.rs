//! The node catalogue: the node types that graphs can use.

use actix_web::HttpRequest;
use actix_web::web::{Json, Path, ServiceConfig};
use engine::nodes::{CATALOGUE, find};
use wire::operations::nodes as operations;
use wire::{ErrorCode, Listed, NodeTypeRecord};

use super::error::{ApiError, ApiResult};
use super::guard::{Caller, WorkflowsRead};
use super::paging::PageQuery;
use super::query;
use super::routes::Routes;

/// The list's name in cursors.
const LIST: &str = "nodes";

pub(super) fn routes(config: &mut ServiceConfig) {
    Routes::default().on(&operations::LIST, list).on(&operations::READ, show).register(config);
}

/// Lists node types in documentation order.
async fn list(
    _caller: Caller<WorkflowsRead>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<NodeTypeRecord>>> {
    let part: PageQuery<usize> = PageQuery::from_request(&request, LIST)?;
    let wanted = usize::try_from(part.wanted()).unwrap_or(usize::MAX);
    // The cursor holds the number of node types already returned.
    let skipped = part.after.unwrap_or(0);
    let mut found: Vec<_> = CATALOGUE.iter().enumerate().skip(skipped).take(wanted).collect();
    let next_cursor = part.cut(LIST, &mut found, |(index, _)| index + 1);
    Ok(Json(Listed { data: found.into_iter().map(|(_, kind)| kind.record()).collect(), next_cursor }))
}

async fn show(
    _caller: Caller<WorkflowsRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<NodeTypeRecord>> {
    let kind = find(&name).map_err(|unknown| {
        let mut message = unknown.to_string();
        if let Some(first) = message.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        if !message.ends_with('?') {
            message.push('.');
        }
        ApiError::new(ErrorCode::NodeTypeNotFound).with_message(message)
    })?;
    query::none(&request)?;
    Ok(Json(kind.record()))
}
