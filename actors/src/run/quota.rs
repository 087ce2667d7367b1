//! How much a workspace may keep. What it keeps is measured every few minutes, so it may go a little beyond.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::RwLock;
use store::{Store, StoreError};
use uuid::Uuid;

/// How old a measurement may get.
const FRESH: TimeDelta = TimeDelta::minutes(5);

/// A workspace keeps as much as it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the workspace keeps {used} bytes, and may keep {limit}")]
pub struct WorkspaceFull {
    /// Bytes that it kept when it was measured.
    pub used: i64,
    /// Bytes that it may keep.
    pub limit: i64,
}

/// Which workspaces are full. Cheap to clone.
#[derive(Clone)]
pub struct Quota {
    limit: Option<i64>,
    full: Arc<RwLock<HashMap<Uuid, i64>>>,
}

impl Quota {
    pub(crate) fn new(limit: Option<i64>) -> Self {
        Self { limit, full: Arc::default() }
    }

    /// Bytes that a workspace may keep; `None`: as many as there are.
    #[must_use]
    pub fn limit(&self) -> Option<i64> {
        self.limit
    }

    /// Whether a workspace may keep more.
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

    /// Measures if a measurement is due, and reads which workspaces are full.
    pub(crate) async fn measure(&self, store: &Store, now: DateTime<Utc>) -> Result<(), StoreError> {
        // First what is known: measuring takes a while, and may fail.
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
