//! Reads the audit trail.

use actix_web::HttpRequest;
use actix_web::web::Json;
use auth::principal::Place;
use auth::scope::Scope;
use store::{AuditFilter, AuditOutcome, StoredAudit};
use uuid::Uuid;
use wire::{AuditRecord, Listed};

use super::records;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{Caller, TokensRead};
use crate::http::paging::PageQuery;
use crate::http::query::Params;
use crate::http::thread_ids::ThreadIds;

/// The list's name in cursors.
const LIST: &str = "audit";

/// Lists the newest first, filtered by `?action=`, `?actor=` and `?outcome=`. Callers restricted to workspaces see only
/// rows from those.
pub(super) async fn list(
    caller: Caller<TokensRead>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<AuditRecord>>> {
    let mut query = Params::from_request(&request);
    let part: PageQuery<Uuid> = PageQuery::from_params(&mut query, LIST);
    let text = |text: Option<String>| text.filter(|text| !text.contains('\0'));
    let (action, actor) = (text(query.text("action")), text(query.text("actor")));
    let outcome = query.text("outcome");
    let wanted = outcome.as_deref().and_then(AuditOutcome::parse);
    if outcome.is_some() && wanted.is_none() {
        query.note("outcome", "choice", "must be one of success, denied");
    }
    ApiError::refuse(query.finish())?;
    let workspaces = match caller.principal().workspaces() {
        None => None,
        Some(names) => {
            let mut open = caller.store().workspaces_named(&names).await?;
            open.retain(|workspace| {
                let place = Place { id: workspace.id, slug: &workspace.slug };
                caller.principal().may_in(Scope::TokensRead, place).is_ok()
            });
            Some(open.into_iter().map(|workspace| workspace.id).collect())
        }
    };
    let filter = AuditFilter { before: part.after, action, actor, outcome: wanted, workspaces };
    let mut found = caller.store().audit_trail(filter, part.wanted()).await?;
    let next_cursor = part.cut(LIST, &mut found, |row| row.id);
    let record = |row: StoredAudit| {
        let ids = ThreadIds::for_caller(&caller, row.workspace_id.unwrap_or_default());
        ids.record(records::audit(row))
    };
    Ok(Json(Listed { data: found.into_iter().map(record).collect::<ApiResult<_>>()?, next_cursor }))
}
