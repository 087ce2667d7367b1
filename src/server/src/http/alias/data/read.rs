//! `GET` for records.

use actix_web::http::header::ETAG;
use actix_web::{HttpRequest, HttpResponse};
use store::RecordPage;
use wire::{CollectionVerb, DataPage};

use super::super::error::AliasResult;
use super::super::visitor::Visitor;
use super::access::{CollectionAccess, id, no_query, query};
use super::cursor::RecordList;
use super::{answer, record, refused, tag};
use crate::http::etag;
use crate::http::query::Params;

const LIMIT: i64 = 50;
const MAX_LIMIT: i64 = 100;
const ORDERS: [&str; 2] = ["created_at", "-created_at"];

/// `GET /__service/data/{collection}`: returns a page of records.
pub(super) async fn list(visitor: Visitor, request: HttpRequest) -> AliasResult<HttpResponse> {
    let access = CollectionAccess::for_request(&visitor, &request, CollectionVerb::Read)?;
    let mut params = Params::from_request(&request);
    let limit = params.whole("limit", 1..=MAX_LIMIT).unwrap_or(LIMIT);
    let descending = params.one_of("order", &ORDERS).is_some_and(|order| order.starts_with('-'));
    let cursor = params.text("cursor");
    query(params)?;
    let list = RecordList { scope: access.scope, descending };
    let after = cursor.map(|cursor| list.open(&visitor, &cursor)).transpose()?;
    // One extra record shows whether a next page exists.
    let page = RecordPage { after, descending, limit: limit + 1 };
    let mut found = visitor.store().records(access.scope, page).await?.map_err(refused)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = found.len() > limit;
    found.truncate(limit);
    let last = found.last().filter(|_| more).map(|last| (last.created_at, last.id));
    let next_cursor = last.map(|last| list.seal(&visitor, last)).transpose()?;
    let items = found.iter().map(record).collect::<AliasResult<_>>()?;
    Ok(HttpResponse::Ok().json(DataPage { items, next_cursor }))
}

/// `GET /__service/data/{collection}/{id}`: returns a record.
pub(super) async fn get(visitor: Visitor, request: HttpRequest) -> AliasResult<HttpResponse> {
    let access = CollectionAccess::for_request(&visitor, &request, CollectionVerb::Read)?;
    no_query(&request)?;
    let stored = visitor.store().record(access.scope, id(&request)?).await?.map_err(refused)?;
    let tag = tag(stored.version);
    if etag::is_known(&request, &tag) {
        return Ok(HttpResponse::NotModified().insert_header((ETAG, tag)).finish());
    }
    Ok(answer(HttpResponse::Ok(), &record(&stored)?))
}
