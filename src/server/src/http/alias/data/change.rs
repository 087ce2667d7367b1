//! `PUT`, `PATCH` and `DELETE` for a record, each conditional on a version that the request names.

use std::sync::Arc;

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use engine::records::merge_patch;
use serde_json::Value;
use store::{Changes, LockedCollection, RecordRefusal, RecordWrite, StoredRecord};
use uuid::Uuid;
use wire::{CollectionVerb, DataRecord, ErrorCode, MergedRecord};

use super::super::error::{AliasError, AliasResult};
use super::super::visitor::Visitor;
use super::access::{CollectionAccess, change_permit, check_storage, check_write, id, no_query};
use super::body::{MERGE_PATCH, check_schema, form, json, members, read, read_json, version};
use super::precondition::Precondition;
use super::{answer, record, refused, tagged};
use crate::http::error::ApiError;

/// Maximum merge attempts for a patch before it is merged under the record lock.
const MERGES: u32 = 3;

/// `PUT /__service/data/{collection}/{id}`: replaces the data.
pub(super) async fn put(
    visitor: Visitor,
    request: HttpRequest,
    payload: Payload,
) -> AliasResult<HttpResponse> {
    let access = Arc::new(CollectionAccess::for_request(&visitor, &request, CollectionVerb::Update)?);
    no_query(&request)?;
    let body = read_json(&visitor, &request, payload).await?;
    let mut members = members(&body, &["data", "version"])?;
    let precondition = Precondition::from_request(&request, version(&members)?);
    let data = Arc::new(members.shift_remove("data").unwrap_or_default());
    check_write(&visitor)?;
    let text = form(&data)?;
    check_schema(&access, &data).await?;
    check_storage(&visitor)?;
    let id = id(&request)?;
    let _permit = change_permit(&visitor).await?;
    let changed = in_transaction(&visitor, async |changes: &mut Changes| {
        let (locked, current) = found(changes, &access, id, &precondition).await?;
        replace(changes, &locked, &current, &text).await
    });
    Ok(answer(HttpResponse::Ok(), &changed.await?))
}

/// `PATCH /__service/data/{collection}/{id}`: merges a patch into the data.
pub(super) async fn patch(
    visitor: Visitor,
    request: HttpRequest,
    payload: Payload,
) -> AliasResult<HttpResponse> {
    let access = Arc::new(CollectionAccess::for_request(&visitor, &request, CollectionVerb::Update)?);
    no_query(&request)?;
    let body = read(&visitor, &request, payload, MERGE_PATCH).await?;
    let patch = json(&body)?;
    check_write(&visitor)?;
    check_storage(&visitor)?;
    let precondition = Precondition::from_request(&request, None);
    let id = id(&request)?;
    let _permit = change_permit(&visitor).await?;
    let mut attempt = 1;
    loop {
        // Merging and validation may take long; inside the transaction they would block all writers of the collection.
        let read = visitor.store().record(access.scope, id).await?.map_err(refused)?;
        precondition.check(read.version)?;
        let text = merged(&access, &read, &patch).await?;
        let changed = in_transaction(&visitor, async |changes: &mut Changes| {
            let (locked, current) = found(changes, &access, id, &precondition).await?;
            if current.version == read.version {
                return replace(changes, &locked, &current, &text).await.map(Some);
            }
            if attempt < MERGES {
                return Ok(None);
            }
            // Other writers were faster each time, so merge under the lock.
            let text = merged(&access, &current, &patch).await?;
            replace(changes, &locked, &current, &text).await.map(Some)
        });
        if let Some(changed) = changed.await? {
            return Ok(merged_answer(&access, changed));
        }
        attempt += 1;
    }
}

/// The response to a patch. It omits the data if the visitor cannot read the record, because the request contained only
/// part of it.
fn merged_answer(access: &CollectionAccess, changed: DataRecord) -> HttpResponse {
    if access.can_read {
        return answer(HttpResponse::Ok(), &changed);
    }
    let DataRecord { id, version, created_at, updated_at, data: _ } = changed;
    tagged(HttpResponse::Ok(), version).json(MergedRecord { id, version, created_at, updated_at })
}

/// Merges and validates a patch; returns the record data as stored.
async fn merged(access: &Arc<CollectionAccess>, record: &StoredRecord, patch: &Value) -> AliasResult<String> {
    let before: Value = serde_json::from_str(&record.data).map_err(|error| internal(&error))?;
    let data = Arc::new(merge_patch(before, patch));
    let text = form(&data)?;
    check_schema(access, &data).await?;
    Ok(text)
}

/// `DELETE /__service/data/{collection}/{id}`: deletes the record and erases its data.
pub(super) async fn delete(visitor: Visitor, request: HttpRequest) -> AliasResult<HttpResponse> {
    let access = CollectionAccess::for_request(&visitor, &request, CollectionVerb::Delete)?;
    no_query(&request)?;
    check_write(&visitor)?;
    let precondition = Precondition::from_request(&request, None);
    let id = id(&request)?;
    let _permit = change_permit(&visitor).await?;
    in_transaction(&visitor, async |changes: &mut Changes| {
        let (locked, current) = found(changes, &access, id, &precondition).await?;
        Ok(changes.delete_record(&locked, &current).await?)
    })
    .await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Locks the record and checks that it has the requested version.
async fn found(
    changes: &mut Changes,
    access: &CollectionAccess,
    id: Uuid,
    precondition: &Precondition,
) -> AliasResult<(LockedCollection, StoredRecord)> {
    let locked = changes.lock_collection(access.scope).await?.map_err(refused)?;
    let current = changes.record(&locked, id).await?.ok_or_else(|| refused(RecordRefusal::NotFound))?;
    precondition.check(current.version)?;
    Ok((locked, current))
}

async fn replace(
    changes: &mut Changes,
    locked: &LockedCollection,
    current: &StoredRecord,
    text: &str,
) -> AliasResult<DataRecord> {
    let write = RecordWrite { data: text, written_by: None };
    let changed = changes.replace_record(locked, current, write).await?.map_err(refused)?;
    record(&changed)
}

/// Applies a change atomically.
async fn in_transaction<T>(
    visitor: &Visitor,
    make: impl AsyncFnOnce(&mut Changes) -> AliasResult<T>,
) -> AliasResult<T> {
    let mut changes = visitor.store().begin().await?;
    match make(&mut changes).await {
        Ok(made) => {
            changes.commit(None).await?;
            Ok(made)
        }
        Err(error) => {
            changes.roll_back().await;
            Err(error)
        }
    }
}

fn internal(error: &serde_json::Error) -> AliasError {
    ApiError::new(ErrorCode::AppInternal).with_cause(error).into()
}
