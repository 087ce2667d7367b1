//! Storage limits of workspaces. Usage is measured every few minutes, so a workspace may exceed its limit slightly.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::RwLock;
use store::{Store, StoreError};
use uuid::Uuid;

/// Maximum age of a measurement.
const FRESH: TimeDelta = TimeDelta::minutes(5);

/// A workspace has reached its storage limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the workspace stores {used} bytes; at most {limit} are allowed")]
pub struct WorkspaceFull {
    /// Bytes in use at the last measurement.
    pub used: i64,
    /// Maximum bytes.
    pub limit: i64,
}

/// The full workspaces. Cheap to clone.
#[derive(Clone)]
pub struct Quota {
    limit: Option<i64>,
    full: Arc<RwLock<HashMap<Uuid, i64>>>,
}

impl Quota {
    pub(crate) fn new(limit: Option<i64>) -> Self {
        Self { limit, full: Arc::default() }
    }

    /// Maximum bytes per workspace; `None`: unlimited.
    #[must_use]
    pub fn limit(&self) -> Option<i64> {
        self.limit
    }

    /// Checks whether a workspace may store more.
    ///
    /// # Errors
    /// [`WorkspaceFull`] when it may not.
    pub fn room(&self, workspace: Uuid) -> Result<(), WorkspaceFull> {
        let used = self.full.read().get(&workspace).copied();
        match used.zip(self.limit) {
            Some((used, limit)) => Err(WorkspaceFull { used, limit }),
            None => Ok(()),
        }
    }

    /// Measures usage if due, and reads the list of full workspaces.
    pub(crate) async fn measure(&self, store: &Store, now: DateTime<Utc>) -> Result<(), StoreError> {
        // Known results first: measuring takes a while and may fail.
        self.read(store).await?;
        if store.measure_usage(now - FRESH).await? {
            self.read(store).await?;
        }
        Ok(())
    }

    async fn read(&self, store: &Store) -> Result<(), StoreError> {
        if let Some(limit) = self.limit {
            let full = store.workspaces_of(limit).await?;
            *self.full.write() = full.into_iter().map(|usage| (usage.workspace_id, usage.bytes)).collect();
        }
        Ok(())
    }
}
