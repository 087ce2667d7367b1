//! `POST` for a record; applied once if the request has a key.

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::LOCATION;
use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use actors::SharePermit;
use serde_json::Value;
use store::{Changes, RecordWrite, RequestKey, RequestState, Reserved, StoredAnswer};
use wire::{CollectionVerb, DataRecord, ErrorCode};

use super::super::error::AliasResult;
use super::super::key::{self, Principal};
use super::super::visitor::Visitor;
use super::access::{CollectionAccess, change_permit, check_storage, check_write, no_query};
use super::body::{check_schema, form, members, read_json};
use super::{answer, record, refused};
use crate::http::error::ApiError;
use crate::http::idempotency::REPLAYED;

/// The poll interval and maximum polls while another request with the same key runs.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSES: u32 = 100;

/// `POST /__service/data/{collection}`: creates a record.
pub(super) async fn create(
    visitor: Visitor,
    request: HttpRequest,
    payload: Payload,
) -> AliasResult<HttpResponse> {
    let access = Arc::new(CollectionAccess::for_request(&visitor, &request, CollectionVerb::Create)?);
    no_query(&request)?;
    let key = key::optional(&request)?;
    let body = read_json(&visitor, &request, payload).await?;
    let mut members = members(&body, &["data"])?;
    let data = Arc::new(members.shift_remove("data").unwrap_or_default());
    let principal = key.is_some().then(|| Principal::for_request(&visitor, &request)).transpose()?;
    let key = principal
        .as_ref()
        .zip(key)
        .map(|(principal, key)| principal.record_key(access.scope.app, access.scope.collection, key, &data));
    if let Some(key) = &key {
        match visitor.store().answered(key).await? {
            Reserved::New => {}
            Reserved::Same(known) => return replayed(&access, &known, &data),
            Reserved::Different => return Err(ErrorCode::AppKeyReused.into()),
        }
    }
    check_write(&visitor)?;
    let text = form(&data)?;
    check_schema(&access, &data).await?;
    check_storage(&visitor)?;
    let (state, _permit) = begin(&visitor, key).await?;
    let mut changes = match state {
        RequestState::New(changes) => changes,
        RequestState::Answered(known) => return replayed(&access, &known, &data),
        RequestState::Reused => return Err(ErrorCode::AppKeyReused.into()),
        RequestState::InProgress => return Err(ErrorCode::AppUnavailable.into()),
    };
    let made = make(&visitor, &access, &mut changes, &text).await;
    match made {
        Ok(made) => {
            changes.commit(Some(&noted(&made))).await?;
            let mut head = HttpResponse::Created();
            if let Some(cookie) = principal.and_then(Principal::into_cookie) {
                head.cookie(cookie.into_cookie());
            }
            Ok(created(head, &access, &made))
        }
        Err(error) => {
            changes.roll_back().await;
            Err(error)
        }
    }
}

async fn make(
    visitor: &Visitor,
    access: &CollectionAccess,
    changes: &mut Changes,
    text: &str,
) -> AliasResult<DataRecord> {
    let id = visitor.new_id()?;
    let locked = changes.lock_collection(access.scope).await?.map_err(refused)?;
    let write = RecordWrite { data: text, written_by: None };
    let made = changes.create_record(&locked, id, write).await?.map_err(refused)?;
    record(&made)
}

/// Begins the change after any other request with the same key has ended.
async fn begin(visitor: &Visitor, key: Option<RequestKey>) -> AliasResult<(RequestState, SharePermit)> {
    let mut pauses = 0;
    loop {
        let permit = change_permit(visitor).await?;
        let state = match &key {
            Some(key) => visitor.store().begin_request(key.clone()).await?,
            None => RequestState::New(Box::new(visitor.store().begin().await?)),
        };
        if !matches!(state, RequestState::InProgress) || pauses == PAUSES {
            return Ok((state, permit));
        }
        drop(permit);
        pauses += 1;
        visitor.clock().sleep(PAUSE).await;
    }
}

/// The outcome stored for a key: the record without its data, which the repeated request contains.
fn noted(made: &DataRecord) -> StoredAnswer {
    let body = format!("{} {}", made.id, made.created_at);
    StoredAnswer { status: 201, body, sealed: false }
}

/// Replays the original response, even if the record was changed or deleted since.
fn replayed(access: &CollectionAccess, known: &StoredAnswer, data: &Value) -> AliasResult<HttpResponse> {
    let corrupt = || ApiError::new(ErrorCode::AppInternal).with_cause("the answer of a key cannot be read");
    let (id, at) = known.body.split_once(' ').ok_or_else(corrupt)?;
    let data = data.as_object().cloned().unwrap_or_default();
    let (id, created_at, updated_at) = (id.to_owned(), at.to_owned(), at.to_owned());
    let made = DataRecord { id, version: 1, created_at, updated_at, data };
    let mut head = HttpResponse::Created();
    head.insert_header(REPLAYED);
    Ok(created(head, access, &made))
}

fn created(mut head: HttpResponseBuilder, access: &CollectionAccess, made: &DataRecord) -> HttpResponse {
    head.insert_header((LOCATION, access.path(&made.id)));
    answer(head, made)
}
