//! Lists and deletes a workspace's search indexes. Workflows add and remove their documents.

use actix_web::web::{Json, Path, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use store::{AuditTarget, NamedIndex};
use wire::operations::indexes as operations;
use wire::{AuditAction, ErrorCode, IndexRecord, Listed};

use super::change::Change;
use super::error::{ApiError, ApiResult, MAX_CANDIDATES};
use super::guard::{Caller, WorkflowsRead, WorkflowsWrite};
use super::idempotency::ChangeReply;
use super::paging::PageQuery;
use super::routes::Routes;

/// The list's name in cursors.
const LIST: &str = "indexes";

pub(super) fn routes(config: &mut ServiceConfig) {
    Routes::default().on(&operations::LIST, list).on(&operations::DELETE, delete).register(config);
}

/// Lists indexes by name.
async fn list(caller: Caller<WorkflowsRead>, request: HttpRequest) -> ApiResult<Json<Listed<IndexRecord>>> {
    let workspace = caller.workspace().await?;
    let part: PageQuery<String> = PageQuery::from_request(&request, LIST)?;
    let mut found = caller.store().search_indexes(workspace, part.after.as_deref(), part.wanted()).await?;
    let next_cursor = part.cut(LIST, &mut found, |index| index.name.clone());
    Ok(Json(Listed { data: found.into_iter().map(record).collect(), next_cursor }))
}

/// Responds with 204. The index is immediately not found; its contents are erased soon after.
async fn delete(change: Change<WorkflowsWrite>, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let workspace = caller.workspace().await?;
    change.wants_no_more()?;
    let deleted = change
        .make(async |changes| {
            let deleted = changes.delete_search_index(workspace, &name).await?;
            let deleted = deleted.ok_or_else(|| ApiError::new(ErrorCode::IndexNotFound))?;
            let target = AuditTarget { kind: "search_index", id: deleted.to_string() };
            changes
                .audit(&caller.requester().audit(
                    AuditAction::SearchIndexDeleted,
                    target,
                    Some(workspace),
                    Some(name.clone()),
                ))
                .await?;
            Ok(ChangeReply::nothing())
        })
        .await;
    match deleted {
        Err(error) if error.code() == ErrorCode::IndexNotFound => {
            let known = caller.store().search_indexes(workspace, None, MAX_CANDIDATES).await?;
            Err(error.suggest("search index", &name, known.iter().map(|index| index.name.as_str())))
        }
        deleted => deleted,
    }
}

fn record(index: NamedIndex) -> IndexRecord {
    IndexRecord {
        name: index.name,
        documents: index.documents,
        chunks: index.chunks,
        vectors: index.vectors,
        dimensions: index.dimensions,
    }
}
