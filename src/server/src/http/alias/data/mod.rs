//! Record collections: data that app pages store.

mod access;
mod body;
mod change;
mod create;
mod cursor;
mod precondition;
mod read;

use actix_web::http::header::{ETAG, HeaderValue};
use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpResponse, HttpResponseBuilder};
use kernel::timestamp;
use serde_json::{Map, Value};
use store::{RecordRefusal, StoredRecord};
use wire::{DataRecord, ErrorCode};

use super::alias_paths::resource;
use super::error::{AliasError, AliasResult};
use crate::http::error::ApiError;

pub(super) fn routes(config: &mut ServiceConfig) {
    config
        .service(
            resource("/__service/data/{collection}", "GET, HEAD, POST")
                .route(web::get().to(read::list))
                .route(web::head().to(read::list))
                .route(web::post().to(create::create)),
        )
        .service(
            resource("/__service/data/{collection}/{id}", "GET, HEAD, PUT, PATCH, DELETE")
                .route(web::get().to(read::get))
                .route(web::head().to(read::get))
                .route(web::put().to(change::put))
                .route(web::patch().to(change::patch))
                .route(web::delete().to(change::delete)),
        );
}

fn refused(refusal: RecordRefusal) -> AliasError {
    let code = match refusal {
        RecordRefusal::Gone => ErrorCode::CollectionGone,
        RecordRefusal::NotFound => ErrorCode::AppPathNotFound,
        RecordRefusal::Full => ErrorCode::CollectionFull,
    };
    code.into()
}

fn record(stored: &StoredRecord) -> AliasResult<DataRecord> {
    let data: Map<String, Value> = serde_json::from_str(&stored.data)
        .map_err(|error| ApiError::new(ErrorCode::AppInternal).with_cause(error))?;
    Ok(DataRecord {
        id: stored.id.to_string(),
        version: stored.version,
        created_at: timestamp(stored.created_at),
        updated_at: timestamp(stored.updated_at),
        data,
    })
}

/// The version's ETag, with its quotes.
fn tag(version: i64) -> String {
    format!("\"v{version}\"")
}

/// A response with a record.
fn answer(head: HttpResponseBuilder, record: &DataRecord) -> HttpResponse {
    tagged(head, record.version).json(record)
}

/// A response head with a version's ETag.
fn tagged(mut head: HttpResponseBuilder, version: i64) -> HttpResponseBuilder {
    if let Ok(tag) = HeaderValue::from_str(&tag(version)) {
        head.insert_header((ETAG, tag));
    }
    head
}
