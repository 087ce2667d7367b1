//! The app that a host serves, with its active release.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use kernel::Clock;
use parking_lot::Mutex;
use schema::Schema;
use serde::de::DeserializeOwned;
use store::{Store, StoredApp, StoredRelease};
use tokio::task::spawn_blocking;
use uuid::Uuid;
use wire::{AppAccess, ErrorCode, FrozenBinding, FrozenCollection};

use super::copies::{Copies, Copy};
use crate::http::error::{ApiError, ApiResult};

/// Maximum age of a cached app.
const FRESH: Duration = Duration::from_secs(1);
/// The approximate memory per release, plus the memory per byte of its frozen JSON.
const RELEASE: usize = 4_096;
const BYTE_OF_JSON: usize = 8;

/// A published app with its active release.
#[derive(Debug, Clone)]
pub(in crate::http) struct ServedApp {
    pub(in crate::http) id: Uuid,
    pub(in crate::http) workspace: Uuid,
    pub(in crate::http) alias: String,
    pub(in crate::http) name: String,
    pub(in crate::http) access: AppAccess,
    pub(in crate::http) release: Arc<ServedRelease>,
}

/// A release's frozen contents.
#[derive(Debug)]
pub(in crate::http) struct ServedRelease {
    pub(in crate::http) id: Uuid,
    pub(in crate::http) deployment: Uuid,
    pub(in crate::http) bindings: BTreeMap<String, ServedBinding>,
    pub(in crate::http) collections: BTreeMap<String, ServedCollection>,
    pub(in crate::http) spa: bool,
    pub(in crate::http) frame_ancestors: Vec<String>,
    pub(in crate::http) created_at: DateTime<Utc>,
    /// The approximate memory used.
    pub(super) bytes: usize,
}

/// A workflow that pages can run.
#[derive(Debug)]
pub(in crate::http) struct ServedBinding {
    pub(in crate::http) frozen: FrozenBinding,
    pub(in crate::http) version: Uuid,
    pub(in crate::http) schema: Option<Schema>,
}

/// A record collection that pages read and write.
#[derive(Debug)]
pub(in crate::http) struct ServedCollection {
    pub(in crate::http) frozen: FrozenCollection,
    pub(in crate::http) id: Uuid,
    pub(in crate::http) schema: Option<Schema>,
}

/// A cache of the apps that this instance serves.
pub(in crate::http) struct Aliases {
    store: Store,
    clock: Arc<dyn Clock>,
    copies: Mutex<Copies>,
}

impl Aliases {
    pub(in crate::http) fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, copies: Mutex::default() }
    }

    /// Returns the app, cached for at most one second; `None` if nothing is published under the alias now.
    ///
    /// # Errors
    /// [`ApiError`] if the database does not answer and the copy is older or absent.
    pub(in crate::http) async fn recent(&self, alias: &str) -> ApiResult<Option<Arc<ServedApp>>> {
        let now = self.clock.monotonic();
        if let Some(copy) = self.copies.lock().get(alias)
            && now.saturating_sub(copy.read_at) < FRESH
            // A newly published app must be found at once, so absence is not cached.
            && let Some(app) = &copy.app
        {
            return Ok(Some(Arc::clone(app)));
        }
        self.fresh(alias).await
    }

    /// Returns the current app. Later [`Self::recent`] calls return nothing older.
    ///
    /// # Errors
    /// [`ApiError`] if the database does not answer.
    pub(in crate::http) async fn fresh(&self, alias: &str) -> ApiResult<Option<Arc<ServedApp>>> {
        let read_at = self.clock.monotonic();
        let known = self.copies.lock().get(alias).and_then(|copy| copy.app.clone());
        // A lookup by id also finds an app, but an id is not a host name.
        let app = match self.store.app(alias).await?.filter(|app| app.alias == alias) {
            Some(app) => self.serve(app, known).await?.map(Arc::new),
            None => None,
        };
        let mut copies = self.copies.lock();
        // Entries for hosts without an app would evict those of real apps.
        if app.is_some() || copies.get(alias).is_some() {
            copies.insert(alias, Copy { read_at, app: app.clone() });
        }
        Ok(app)
    }

    /// Invalidates the cached app after a change of its release or access, so that the next request reads the database.
    /// A read that began earlier cannot restore the old copy.
    pub(in crate::http) fn forget(&self, alias: &str) {
        let read_at = self.clock.monotonic();
        self.copies.lock().insert(alias, Copy { read_at, app: None });
    }

    async fn serve(&self, app: StoredApp, known: Option<Arc<ServedApp>>) -> ApiResult<Option<ServedApp>> {
        let Some(active) = app.active_release else { return Ok(None) };
        let known = known.map(|known| Arc::clone(&known.release)).filter(|release| release.id == active);
        let release = match known {
            Some(release) => release,
            None => match self.store.release(app.id, active).await? {
                Some(stored) => Arc::new(load(stored).await?),
                None => return Ok(None),
            },
        };
        let access = AppAccess::from_name(&app.access).unwrap_or(AppAccess::Members);
        let (id, workspace) = (app.id, app.workspace_id);
        Ok(Some(ServedApp { id, workspace, alias: app.alias, name: app.name, access, release }))
    }
}

/// Parses a release's frozen contents on a blocking thread, so that no request waits.
async fn load(stored: StoredRelease) -> ApiResult<ServedRelease> {
    let read = spawn_blocking(move || read(&stored)).await;
    let read = read.map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))?;
    read.map_err(|cause| ApiError::new(ErrorCode::Internal).with_cause(cause))
}

fn read(stored: &StoredRelease) -> Result<ServedRelease, String> {
    let bindings: BTreeMap<String, FrozenBinding> = parsed(&stored.bindings)?;
    let collections: BTreeMap<String, FrozenCollection> = parsed(&stored.collections)?;
    let schema = |schema: &Option<serde_json::Value>| {
        schema.as_ref().map(Schema::read).transpose().map(|read| read.map(Schema::for_strangers))
    };
    let bindings = bindings.into_iter().map(|(name, frozen)| {
        let version = id(&frozen.version_id)?;
        let schema = schema(&frozen.input_schema)?;
        Ok((name, ServedBinding { frozen, version, schema }))
    });
    let collections = collections.into_iter().map(|(name, frozen)| {
        let (id, schema) = (id(&frozen.id)?, schema(&frozen.schema)?);
        Ok((name, ServedCollection { frozen, id, schema }))
    });
    let bindings = bindings.collect::<Result<BTreeMap<_, _>, String>>()?;
    let collections = collections.collect::<Result<BTreeMap<_, _>, String>>()?;
    let schemas = bindings.values().filter_map(|binding| binding.schema.as_ref());
    let schemas = schemas.chain(collections.values().filter_map(|collection| collection.schema.as_ref()));
    let patterns: usize = schemas.map(Schema::pattern_bytes).sum();
    let json = stored.bindings.len().saturating_add(stored.collections.len());
    Ok(ServedRelease {
        id: stored.id,
        deployment: stored.deployment_id,
        bytes: RELEASE.saturating_add(json.saturating_mul(BYTE_OF_JSON)).saturating_add(patterns),
        bindings,
        collections,
        spa: stored.spa,
        frame_ancestors: parsed(&stored.frame_ancestors)?,
        created_at: stored.created_at,
    })
}

fn parsed<T: DeserializeOwned>(json: &str) -> Result<T, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}

fn id(text: &str) -> Result<Uuid, String> {
    Uuid::parse_str(text).map_err(|error| error.to_string())
}
