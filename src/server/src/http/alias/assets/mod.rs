//! Serves files from the active release.

mod answer;
mod body;
mod flights;
mod hashed;
mod index;
mod members;
mod negotiate;
mod parts;

use std::sync::Arc;

use actix_web::http::header::{CACHE_CONTROL, LOCATION};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse};
use bundle::MANIFEST;
use kernel::Clock;
use store::{EARLIER_SERVED, Store};
use wire::{AppAccess, ErrorCode};

pub(super) use hashed::routes;

use super::alias_paths::{self, PREFIX};
use super::error::AliasResult;
use super::page;
use super::path;
use super::served::ServedApp;
use super::visitor::{refuse_workers, says, served};
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard;
use answer::{AssetResponse, Caching};
use index::{Asset, Index, Indexes};
use parts::PartCache;

/// The page for unknown paths.
const NOT_FOUND: &str = "404.html";
const INDEX: &str = "index.html";
/// The methods for files.
const METHODS: &str = "GET, HEAD";

/// The files that this instance serves.
pub(in crate::http) struct Assets {
    store: Store,
    clock: Arc<dyn Clock>,
    indexes: Indexes,
    parts: PartCache,
}

/// A path lookup result.
enum PathLookup {
    /// A file.
    File(Arc<Asset>),
    /// A folder with an index; its URL must end with a slash.
    Folder,
    /// Nothing, with the app's own not-found document, if any.
    Missing(Option<Arc<Asset>>),
}

impl Assets {
    pub(in crate::http) fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        let indexes = Indexes::new(store.clone(), Arc::clone(&clock));
        Self { parts: PartCache::new(store.clone()), store, clock, indexes }
    }

    async fn find(&self, request: &HttpRequest, served: &ServedApp, path: &str) -> ApiResult<PathLookup> {
        let index = self.indexes.for_deployment(served.release.deployment).await?;
        Ok(found(&index, served, request, path))
    }

    /// Finds a file from an earlier release, which pages loaded from it still request.
    async fn find_earlier(&self, served: &ServedApp, path: &str) -> ApiResult<Option<Arc<Asset>>> {
        let since = self.clock.now() - EARLIER_SERVED;
        let found = self.store.earlier_file(served.id, served.release.id, path, since).await?;
        Ok(found.and_then(Asset::from_file).map(Arc::new))
    }
}

/// Finds a path in a release.
fn found(index: &Index, served: &ServedApp, request: &HttpRequest, path: &str) -> PathLookup {
    if path == MANIFEST {
        return PathLookup::Missing(None);
    }
    let file = if path.is_empty() || path.ends_with('/') {
        index.file(&format!("{path}{INDEX}"))
    } else {
        index.file(path)
    };
    if let Some(file) = file {
        return PathLookup::File(Arc::clone(file));
    }
    if !path.is_empty() && !path.ends_with('/') && index.file(&format!("{path}/{INDEX}")).is_some() {
        return PathLookup::Folder;
    }
    let missing = index.file(NOT_FOUND);
    let falls_back = served.release.spa && missing.is_none() && opens_view(request, path);
    match index.file(INDEX).filter(|_| falls_back) {
        Some(index) => PathLookup::File(Arc::clone(index)),
        None => PathLookup::Missing(missing.map(Arc::clone)),
    }
}

/// Whether the path can be a page's client-side view. A path with a file extension is a missing file instead.
fn opens_view(request: &HttpRequest, path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or_default();
    let headers = request.headers();
    !last.contains('.') && (members::accepts_html(headers) || says(headers, "sec-fetch-dest", "document"))
}

/// Serves the file at the requested path.
///
/// # Errors
/// [`super::error::AliasError`].
pub(super) async fn asset(request: HttpRequest) -> AliasResult<HttpResponse> {
    let app = guard::app_of(&request)?;
    let assets = app.assets();
    let mut current = served(app, &request, false).await?;
    let path = path::decode(request.uri().path()).ok_or(ErrorCode::AppBadRequest)?;
    check_method(&request)?;
    refuse_workers(&request)?;
    if let Some(elsewhere) = members::admit(app, &request, &current).await? {
        return Ok(elsewhere);
    }
    if is_of_service(&path) {
        return Err(ErrorCode::AppPathNotFound.into());
    }
    let mut found = assets.find(&request, &current, &path).await?;
    let may_have_changed = match &found {
        PathLookup::File(file) => file.is_document(),
        PathLookup::Folder => false,
        // Another instance may have sent a page from a newer release.
        PathLookup::Missing(_) => true,
    };
    if may_have_changed {
        let fresh = served(app, &request, true).await?;
        if fresh.access != current.access
            && let Some(elsewhere) = members::admit(app, &request, &fresh).await?
        {
            return Ok(elsewhere);
        }
        if fresh.release.id != current.release.id {
            found = assets.find(&request, &fresh, &path).await?;
        }
        current = fresh;
    }
    let (file, status) = match found {
        PathLookup::File(file) => (file, StatusCode::OK),
        PathLookup::Folder => return Ok(to_folder(&request, &current)),
        PathLookup::Missing(_) if path == MANIFEST => return Ok(page()),
        PathLookup::Missing(page_of_app) => match assets.find_earlier(&current, &path).await? {
            Some(file) => (file, StatusCode::OK),
            None => match page_of_app {
                Some(file) => (file, StatusCode::NOT_FOUND),
                None => return Ok(page()),
            },
        },
    };
    let in_frames = !current.release.frame_ancestors.is_empty();
    let caching = caching(&current);
    AssetResponse { app, request: &request, asset: &file, status, caching, in_frames }
        .send(&assets.parts)
        .await
}

/// Whether a decoded path is below [`PREFIX`].
fn is_of_service(path: &str) -> bool {
    let prefix = PREFIX.trim_start_matches('/');
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn caching(served: &ServedApp) -> Caching {
    match served.access {
        AppAccess::Public => Caching::Revalidated,
        AppAccess::Members => Caching::Private,
    }
}

pub(super) fn check_method(request: &HttpRequest) -> AliasResult<()> {
    match *request.method() {
        Method::GET | Method::HEAD => Ok(()),
        _ => Err(ApiError::new(ErrorCode::AppMethodNotAllowed).with_header("Allow", METHODS).into()),
    }
}

fn to_folder(request: &HttpRequest, served: &ServedApp) -> HttpResponse {
    let uri = request.uri();
    let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
    HttpResponse::PermanentRedirect()
        .insert_header((LOCATION, format!("{}/{query}", uri.path())))
        .insert_header((CACHE_CONTROL, caching(served).header()))
        .finish()
}
