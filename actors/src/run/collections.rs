//! Collections in a run's app, as nodes access them.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use engine::ports::{CollectionPut, CollectionQuery, Collections, no_app};
use engine::records::{RecordFault, record_text};
use engine::{NodeError, Schema};
use kernel::timestamp;
use serde_json::{Value, json};
use store::{Changes, RecordPage, RecordRefusal, RecordScope, RecordWrite, Store, StoreError, StoredRecord};
use tokio::sync::OnceCell;
use uuid::{Builder, Uuid, Variant, Version};
use wire::{CollectionKind, ErrorCode, FrozenCollection};

use super::RunApp;
use super::shares::WorkspaceShare;
use crate::run::quota::{Quota, WorkspaceFull};

/// Collections in the run's release.
pub(super) struct CollectionsOf<'a> {
    pub(super) app: Option<RunApp>,
    pub(super) workspace: Uuid,
    pub(super) store: &'a Store,
    pub(super) reads: WorkspaceShare,
    pub(super) changes: WorkspaceShare,
    pub(super) quota: &'a Quota,
    /// Read on first use.
    pub(super) frozen: OnceCell<BTreeMap<String, FrozenCollection>>,
}

impl CollectionsOf<'_> {
    async fn frozen(&self, app: RunApp) -> Result<&BTreeMap<String, FrozenCollection>, NodeError> {
        let read = async || {
            let release = self.store.release(app.id, app.release).await.map_err(|error| failed(&error))?;
            let collections = release.map(|release| serde_json::from_str(&release.collections)).transpose();
            collections
                .map_err(|_| NodeError::new(ErrorCode::Internal, "the release cannot be read"))
                .map(Option::unwrap_or_default)
        };
        self.frozen.get_or_try_init(read).await
    }

    /// Returns a collection in the release and the scope of records that the run can access.
    async fn found(&self, collection: &str) -> Result<(&FrozenCollection, RecordScope), NodeError> {
        let app = self.app.ok_or_else(no_app)?;
        let frozen = self.frozen(app).await?.get(collection);
        let frozen = frozen.ok_or_else(|| unknown(collection))?;
        let id = Uuid::parse_str(&frozen.id).map_err(|_| unknown(collection))?;
        let owner = match frozen.kind {
            CollectionKind::Shared => None,
            CollectionKind::User => Some(app.member.ok_or_else(|| {
                let message =
                    format!("'{collection}' has records of members, and no member has started the run");
                NodeError::new(ErrorCode::CollectionNoOwner, message)
            })?),
        };
        Ok((frozen, RecordScope { app: app.id, collection: id, owner }))
    }
}

#[async_trait]
impl Collections for CollectionsOf<'_> {
    async fn get(&self, collection: &str, id: &str) -> Result<Option<Value>, NodeError> {
        let _permit = self.reads.permit().await;
        let (_, scope) = self.found(collection).await?;
        let Ok(id) = Uuid::parse_str(id) else { return Ok(None) };
        match self.store.record(scope, id).await.map_err(|error| failed(&error))? {
            Ok(record) => written(&record).map(Some),
            Err(RecordRefusal::NotFound) => Ok(None),
            Err(refusal) => Err(refused(collection, refusal)),
        }
    }

    async fn query(
        &self,
        collection: &str,
        query: CollectionQuery,
    ) -> Result<(Vec<Value>, Option<String>), NodeError> {
        let _permit = self.reads.permit().await;
        let (_, scope) = self.found(collection).await?;
        let CollectionQuery { limit, descending, cursor } = query;
        let after = cursor.map(|cursor| position(&cursor, scope.collection, descending)).transpose()?;
        // One more row, to detect whether another page follows.
        let page = RecordPage { after, descending, limit: i64::from(limit) + 1 };
        let found = self.store.records(scope, page).await.map_err(|error| failed(&error))?;
        let mut found = found.map_err(|refusal| refused(collection, refusal))?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|last| cursor_after(last, scope.collection, descending));
        let items = found.iter().map(written).collect::<Result<_, _>>()?;
        Ok((items, next))
    }

    async fn put(&self, collection: &str, put: CollectionPut) -> Result<Value, NodeError> {
        let (frozen, scope) = {
            let _permit = self.reads.permit().await;
            self.found(collection).await?
        };
        let full = |full: WorkspaceFull| NodeError::new(ErrorCode::WorkspaceFull, full.to_string());
        self.quota.room(self.workspace).map_err(full)?;
        let CollectionPut { data, replaces, attempt } = put;
        let text = checked(Value::Object(data), frozen.schema.clone()).await?;
        let write = RecordWrite { data: &text, written_by: Some(&attempt) };
        let _permit = self.changes.permit().await;
        let stored = self.store.change(async |changes| match &replaces {
            None => created(changes, scope, id_of(&attempt), write).await,
            Some((id, version)) => replaced(changes, scope, id, *version, write).await,
        });
        match stored.await.map_err(|error| failed(&error))? {
            Ok(record) => written(&record),
            Err(WriteRefusal::Store(refusal)) => Err(refused(collection, refusal)),
            Err(WriteRefusal::Version(current)) => {
                let message = format!("the record has version {current}");
                Err(NodeError::new(ErrorCode::CollectionRecordConflict, message))
            }
        }
    }
}

enum WriteRefusal {
    Store(RecordRefusal),
    /// The record's current version.
    Version(i64),
}

/// Creates a record, or returns the one that an earlier attempt created (by id).
async fn created(
    changes: &mut Changes,
    scope: RecordScope,
    id: Uuid,
    write: RecordWrite<'_>,
) -> Result<Result<StoredRecord, WriteRefusal>, StoreError> {
    let locked = match changes.lock_collection(scope).await? {
        Ok(locked) => locked,
        Err(refusal) => return Ok(Err(WriteRefusal::Store(refusal))),
    };
    // Checked first: if the earlier attempt filled the collection, the record already exists.
    if let Some(known) = changes.record(&locked, id).await? {
        return Ok(Ok(known));
    }
    Ok(changes.create_record(&locked, id, write).await?.map_err(WriteRefusal::Store))
}

/// Replaces a record, unless an earlier attempt did.
async fn replaced(
    changes: &mut Changes,
    scope: RecordScope,
    id: &str,
    version: i64,
    write: RecordWrite<'_>,
) -> Result<Result<StoredRecord, WriteRefusal>, StoreError> {
    let locked = match changes.lock_collection(scope).await? {
        Ok(locked) => locked,
        Err(refusal) => return Ok(Err(WriteRefusal::Store(refusal))),
    };
    let current = match Uuid::parse_str(id) {
        Ok(id) => changes.record(&locked, id).await?,
        Err(_) => None,
    };
    let Some(current) = current else { return Ok(Err(WriteRefusal::Store(RecordRefusal::NotFound))) };
    if current.written_by.as_deref() == write.written_by {
        return Ok(Ok(current));
    }
    if current.version != version {
        return Ok(Err(WriteRefusal::Version(current.version)));
    }
    Ok(changes.replace_record(&locked, &current, write).await?.map_err(WriteRefusal::Store))
}

/// Derives the record id from the attempt: a version 8 UUID.
fn id_of(attempt: &[u8; 32]) -> Uuid {
    let mut bytes = [0; 16];
    for (byte, of_digest) in bytes.iter_mut().zip(attempt) {
        *byte = *of_digest;
    }
    Builder::from_bytes(bytes).with_variant(Variant::RFC4122).with_version(Version::Custom).into_uuid()
}

/// Returns the data in stored form. Validates it on a blocking thread, which delays no actor.
async fn checked(data: Value, schema: Option<Value>) -> Result<String, NodeError> {
    let checking = tokio::task::spawn_blocking(move || {
        let schema = schema.as_ref().map(Schema::read).transpose();
        let schema = schema.map_err(|_| NodeError::new(ErrorCode::Internal, "the schema cannot be read"))?;
        record_text(&data, schema.as_ref()).map_err(|fault| invalid(&fault))
    });
    let panicked = |_| NodeError::new(ErrorCode::Internal, "checking a record panicked");
    checking.await.map_err(panicked)?
}

fn invalid(fault: &RecordFault) -> NodeError {
    let message = match fault {
        RecordFault::TooLarge => "the data has more than 64 KiB".to_owned(),
        RecordFault::Invalid(problems) => {
            let told =
                problems.iter().take(3).map(|problem| format!("{} {}", problem.pointer, problem.message));
            told.collect::<Vec<_>>().join("; ")
        }
    };
    NodeError::new(ErrorCode::CollectionRecordInvalid, message)
}

fn written(record: &StoredRecord) -> Result<Value, NodeError> {
    let data: Value = serde_json::from_str(&record.data)
        .map_err(|_| NodeError::new(ErrorCode::Internal, "a record cannot be read"))?;
    Ok(json!({"id": record.id, "version": record.version, "created_at": timestamp(record.created_at),
              "updated_at": timestamp(record.updated_at), "data": data}))
}

/// A cursor marks where a workflow's page begins. It grants no access: the run can access all of these records anyway.
fn cursor_after(last: &StoredRecord, collection: Uuid, descending: bool) -> String {
    let order = if descending { '-' } else { '+' };
    hex::encode(format!("{collection}{order}{}:{}", last.created_at.timestamp_micros(), last.id))
}

fn position(cursor: &str, collection: Uuid, descending: bool) -> Result<(DateTime<Utc>, Uuid), NodeError> {
    let order = if descending { "-" } else { "+" };
    let read = || {
        let text = String::from_utf8(hex::decode(cursor).ok()?).ok()?;
        let rest = text.strip_prefix(&collection.to_string())?.strip_prefix(order)?;
        let (at, id) = rest.split_once(':')?;
        Some((DateTime::from_timestamp_micros(at.parse().ok()?)?, Uuid::parse_str(id).ok()?))
    };
    read().ok_or_else(|| NodeError::failed("the cursor is not one of this collection and order"))
}

fn unknown(collection: &str) -> NodeError {
    let message = format!("the release has no collection '{collection}'");
    NodeError::new(ErrorCode::CollectionUnknown, message)
}

fn refused(collection: &str, refusal: RecordRefusal) -> NodeError {
    match refusal {
        RecordRefusal::Gone => {
            let message = format!("the collection '{collection}' was deleted");
            NodeError::new(ErrorCode::CollectionUnknown, message)
        }
        RecordRefusal::NotFound => {
            NodeError::new(ErrorCode::CollectionRecordNotFound, format!("'{collection}' has no such record"))
        }
        RecordRefusal::Full => {
            NodeError::new(ErrorCode::CollectionNoRoom, format!("the collection '{collection}' is full"))
        }
    }
}

fn failed(error: &StoreError) -> NodeError {
    tracing::warn!(%error, "failed to read or store records");
    NodeError::retryable(error.code(), error.code().message())
}
