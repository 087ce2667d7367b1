//! Collections in memory, such as "likes".

use std::sync::Arc;

use async_trait::async_trait;
use engine::NodeError;
use engine::ports::{CollectionPut, CollectionQuery, Collections};
use parking_lot::Mutex;
use serde_json::{Value, json};
use wire::ErrorCode;

/// A record, and the digest of the attempt that stored it.
type Stored = (Value, [u8; 32]);

/// Records, each with the attempt that stored it.
#[derive(Clone, Default)]
pub(crate) struct MemoryCollections(pub(crate) Arc<Mutex<Vec<Stored>>>);

fn known(collection: &str) -> Result<(), NodeError> {
    match collection {
        "likes" | "favourites" => Ok(()),
        _ => Err(NodeError::new(ErrorCode::CollectionUnknown, format!("no '{collection}'"))),
    }
}

#[async_trait]
impl Collections for MemoryCollections {
    async fn get(&self, collection: &str, id: &str) -> Result<Option<Value>, NodeError> {
        known(collection)?;
        let records = self.0.lock();
        Ok(records.iter().map(|(record, _)| record).find(|record| record["id"] == id).cloned())
    }

    async fn query(
        &self,
        collection: &str,
        query: CollectionQuery,
    ) -> Result<(Vec<Value>, Option<String>), NodeError> {
        known(collection)?;
        let mut records: Vec<Value> = self.0.lock().iter().map(|(record, _)| record.clone()).collect();
        if query.descending {
            records.reverse();
        }
        let from: usize = query.cursor.map_or(0, |cursor| cursor.parse().unwrap());
        let to = (from + usize::try_from(query.limit).unwrap()).min(records.len());
        let next = (to < records.len()).then(|| to.to_string());
        Ok((records[from..to].to_vec(), next))
    }

    async fn put(&self, collection: &str, put: CollectionPut) -> Result<Value, NodeError> {
        known(collection)?;
        let mut records = self.0.lock();
        if let Some((record, _)) = records.iter().find(|(_, by)| *by == put.attempt) {
            return Ok(record.clone());
        }
        let (id, version) = match put.replaces {
            None => (format!("r{}", records.len() + 1), 1),
            Some((id, version)) => {
                let place = records.iter().position(|(record, _)| record["id"] == id.as_str());
                let missing = || NodeError::new(ErrorCode::CollectionRecordNotFound, "no record");
                let (record, _) = records.remove(place.ok_or_else(missing)?);
                if record["version"] != version {
                    return Err(NodeError::new(ErrorCode::CollectionRecordConflict, "another version"));
                }
                (id, version + 1)
            }
        };
        let record = json!({"id": id, "version": version, "data": put.data});
        records.push((record.clone(), put.attempt));
        Ok(record)
    }
}
