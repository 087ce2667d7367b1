//! What a visitor can do with a collection.

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

/// How long a change waits for a permit.
const PERMIT_WAIT: Duration = Duration::from_secs(5);

/// A collection that the visitor can use in one way.
pub(super) struct Access {
    served: Arc<ServedApp>,
    name: String,
    /// Whether the visitor can read it, too.
    pub(super) can_read: bool,
    /// The visitor's records in it.
    pub(super) scope: RecordScope,
}

impl Access {
    /// The collection that the path names.
    ///
    /// # Errors
    /// `bad_request` if the path cannot be decoded, `not_found` if the release has none of this name, `login_required` if members could do it, else `forbidden`.
    pub(super) fn of(visitor: &Visitor, request: &HttpRequest, verb: CollectionVerb) -> AliasResult<Self> {
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

    /// As the release froze it.
    pub(super) fn collection(&self) -> Option<&ServedCollection> {
        self.served.release.collections.get(&self.name)
    }

    /// The path of a record.
    pub(super) fn path(&self, id: &str) -> String {
        format!("/__service/data/{}/{id}", self.name)
    }
}

/// The record that the path names. An id that is not one is of no record.
pub(super) fn id(request: &HttpRequest) -> AliasResult<Uuid> {
    let text = segment(request, "id")?;
    let id = Uuid::parse_str(text).ok().filter(|id| id.to_string() == text);
    Ok(id.ok_or(ErrorCode::AppPathNotFound)?)
}

/// Refuses parameters.
pub(super) fn no_query(request: &HttpRequest) -> AliasResult<()> {
    query(Params::of(request))
}

/// Refuses parameters with problems.
pub(super) fn query(params: Params) -> AliasResult<()> {
    let problems = params.finish();
    if problems.is_empty() {
        Ok(())
    } else {
        Err(ApiError::problems(ErrorCode::QueryInvalid, problems).into())
    }
}

/// Counts a change by a visitor who is not signed in.
///
/// # Errors
/// `rate_limited`.
pub(super) fn check_write(visitor: &Visitor) -> AliasResult<()> {
    match visitor.member {
        Some(_) => Ok(()),
        None => Ok(visitor.record_writes().check(&(visitor.served.id, visitor.network))?),
    }
}

/// Whether the workspace of the app can store more.
///
/// # Errors
/// `storage_full`.
pub(super) fn check_storage(visitor: &Visitor) -> AliasResult<()> {
    let room = visitor.runs().quota().room(visitor.served.workspace);
    room.map_err(|full| ApiError::new(ErrorCode::AppStorageFull).with_cause(full).into())
}

/// Waits for a permit of the app's workspace. A change takes it before a connection: writers of one collection, which wait for one
/// another, must not occupy the connections of other workspaces.
///
/// # Errors
/// `unavailable` if none is returned in time.
pub(super) async fn change_permit(visitor: &Visitor) -> AliasResult<SharePermit> {
    let share = visitor.record_changes().of(visitor.served.workspace);
    let permit = kernel::timeout(&**visitor.clock(), PERMIT_WAIT, share.permit()).await;
    let busy = || ApiError::new(ErrorCode::AppUnavailable).with_cause("too many changes of records at once");
    Ok(permit.ok_or_else(busy)?)
}
