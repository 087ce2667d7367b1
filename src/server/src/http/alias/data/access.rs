//! A visitor's access to a collection.

use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpRequest;
use actors::SharePermit;
use store::RecordScope;
use uuid::Uuid;
use wire::{CollectionKind, CollectionVerb, ErrorCode};

use super::super::error::AliasResult;
use super::super::path::segment;
use super::super::served::{ServedApp, ServedCollection};
use super::super::visitor::Visitor;
use crate::http::error::ApiError;
use crate::http::query::Params;

/// Maximum time that a change waits for a permit.
const PERMIT_WAIT: Duration = Duration::from_secs(5);

/// A collection that the visitor may use for one verb.
pub(super) struct CollectionAccess {
    served: Arc<ServedApp>,
    name: String,
    /// Whether the visitor may also read it.
    pub(super) can_read: bool,
    /// The visitor's records in the collection.
    pub(super) scope: RecordScope,
}

impl CollectionAccess {
    /// Checks access to the collection that the path names.
    ///
    /// # Errors
    /// `bad_request` if the path cannot be decoded, `not_found` if the release has no such collection, `login_required`
    /// if members would have access, else `forbidden`.
    pub(super) fn for_request(
        visitor: &Visitor,
        request: &HttpRequest,
        verb: CollectionVerb,
    ) -> AliasResult<Self> {
        let name = segment(request, "collection")?.to_owned();
        let collection = visitor.served.release.collections.get(&name).ok_or(ErrorCode::AppPathNotFound)?;
        let capabilities = &collection.frozen.capabilities;
        let is_user = collection.frozen.kind == CollectionKind::User;
        let member = visitor.member.as_ref().map(|member| member.user);
        let can = |verb: CollectionVerb| match member {
            Some(_) => capabilities.member.contains(&verb),
            None => capabilities.anonymous.contains(&verb) && !is_user,
        };
        if !can(verb) {
            let could = capabilities.member.contains(&verb) && member.is_none();
            return Err(if could { ErrorCode::LoginRequired } else { ErrorCode::AppForbidden }.into());
        }
        let owner = member.filter(|_| is_user);
        let scope = RecordScope { app: visitor.served.id, collection: collection.id, owner };
        let can_read = can(CollectionVerb::Read);
        Ok(Self { served: Arc::clone(&visitor.served), name, can_read, scope })
    }

    /// The frozen collection.
    pub(super) fn collection(&self) -> Option<&ServedCollection> {
        self.served.release.collections.get(&self.name)
    }

    /// A record's path.
    pub(super) fn path(&self, id: &str) -> String {
        format!("/__service/data/{}/{id}", self.name)
    }
}

/// The record id in the path. A malformed id counts as not found.
pub(super) fn id(request: &HttpRequest) -> AliasResult<Uuid> {
    let text = segment(request, "id")?;
    let id = Uuid::parse_str(text).ok().filter(|id| id.to_string() == text);
    Ok(id.ok_or(ErrorCode::AppPathNotFound)?)
}

/// Refuses all query parameters.
pub(super) fn no_query(request: &HttpRequest) -> AliasResult<()> {
    query(Params::from_request(request))
}

/// Refuses query parameters with problems.
pub(super) fn query(params: Params) -> AliasResult<()> {
    let problems = params.finish();
    if problems.is_empty() {
        Ok(())
    } else {
        Err(ApiError::problems(ErrorCode::QueryInvalid, problems).into())
    }
}

/// Counts a change by an anonymous visitor against the rate limit.
///
/// # Errors
/// `rate_limited`.
pub(super) fn check_write(visitor: &Visitor) -> AliasResult<()> {
    match visitor.member {
        Some(_) => Ok(()),
        None => Ok(visitor.record_writes().check(&(visitor.served.id, visitor.network))?),
    }
}

/// Checks that the app's workspace has storage left.
///
/// # Errors
/// `storage_full`.
pub(super) fn check_storage(visitor: &Visitor) -> AliasResult<()> {
    let room = visitor.runs().quota().room(visitor.served.workspace);
    room.map_err(|full| ApiError::new(ErrorCode::AppStorageFull).with_cause(full).into())
}

/// Waits for a permit from the app's workspace. It is taken before a connection: writers of one collection wait for one
/// another and must not occupy the connections of other workspaces.
///
/// # Errors
/// `unavailable` if none becomes free in time.
pub(super) async fn change_permit(visitor: &Visitor) -> AliasResult<SharePermit> {
    let share = visitor.record_changes().for_workspace(visitor.served.workspace);
    let permit = kernel::timeout(&**visitor.clock(), PERMIT_WAIT, share.permit()).await;
    let busy = || ApiError::new(ErrorCode::AppUnavailable).with_cause("too many changes of records at once");
    Ok(permit.ok_or_else(busy)?)
}
