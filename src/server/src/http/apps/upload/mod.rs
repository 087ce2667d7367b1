//! Bundle uploads: authenticate, find the app, stream the body to a file, then get a permit for the check.

mod check;
mod folder;
mod pace;
mod permits;
mod receive;

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::error::InternalError;
use actix_web::{FromRequest, HttpRequest, HttpResponse, web};
use store::{Changes, StoredApp};
use wire::{BundleFinding, ErrorCode};

pub(super) use check::{CheckedBundle, check};
use folder::{UploadFile, UploadFolder};
use pace::UploadPace;
use permits::{BundlePermit, BundlePermits};
use receive::{Archive, Form, arriving, receive};

use super::find;
use crate::http::App;
use crate::http::chat::UploadPermits;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{self, Caller, RouteScope};
use crate::http::idempotency::{self, ChangeReply, Once};
use crate::http::query;

/// Maximum concurrent uploads per caller.
const PER_CALLER: usize = 4;
/// `Retry-After` in seconds for an upload that got no permit.
const RETRY_SECONDS: i64 = 5;

/// Temporary storage and concurrency limits for archives.
pub(crate) struct BundleUploads {
    /// The folder for archives.
    folder: UploadFolder,
    /// Permits for receiving, by caller.
    receiving: UploadPermits,
    /// Permits for checking.
    permits: BundlePermits,
}

impl BundleUploads {
    /// Opens the folder, which may contain files from an earlier process.
    ///
    /// # Errors
    /// If it cannot be created or read.
    pub(crate) fn open(data: &Path) -> io::Result<Self> {
        Ok(Self {
            folder: UploadFolder::open(data)?,
            receiving: UploadPermits::default(),
            permits: BundlePermits::new(),
        })
    }
}

/// An authenticated caller with an archive for an app. A repeated request with an idempotency key gets the stored
/// response and never reaches its handler.
pub(super) struct Upload<S> {
    pub(super) caller: Caller<S>,
    pub(super) app: StoredApp,
    /// The archive's SHA-256.
    pub(super) digest: [u8; 32],
    received: Arc<ReceivedArchive>,
    once: Once,
}

/// An archive with its permit, held while a thread uses it.
struct ReceivedArchive {
    file: UploadFile,
    _permit: BundlePermit,
}

impl<S: RouteScope> FromRequest for Upload<S> {
    type Error = actix_web::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self, actix_web::Error>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, mut payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let body = web::Payload::from_request(&request, &mut payload).await?;
            Self::extract(&request, body).await
        })
    }
}

impl<S: RouteScope> Upload<S> {
    async fn extract(request: &HttpRequest, body: web::Payload) -> Result<Self, actix_web::Error> {
        let caller = Caller::<S>::extract(request).await?;
        let name = request.match_info().get("app").unwrap_or_default();
        let app = match find(&caller, name).await {
            Err(error) if error.code() == ErrorCode::AppNotFound => {
                Self::of_deleted(&caller, request, name).await?.ok_or(error)?
            }
            found => found?,
        };
        query::none(request)?;
        idempotency::key(request)?;
        let (file, digest, permit) = match Self::receive(request, &caller, &app, body).await {
            Ok(received) => received,
            Err(error) => {
                super::deployments::audit_refusal(&caller, &app, &error).await?;
                return Err(error.into());
            }
        };
        // The caller's rights may have changed during the upload, so they are checked again.
        let caller = Caller::<S>::extract(request).await?;
        let once = Once::with_digest(&caller, request, digest.to_vec())?;
        if let Some(answer) = once.answered().await? {
            // An extractor can respond only through an error.
            return Err(InternalError::from_response("answered before", answer).into());
        }
        let app = find(&caller, name).await?;
        let received = Arc::new(ReceivedArchive { file, _permit: permit });
        Ok(Self { caller, app, digest, received, once })
    }

    /// Finds an app that was deleted after answering a request with this key. The archive's digest then tells whether
    /// this is the same request.
    async fn of_deleted(
        caller: &Caller<S>,
        request: &HttpRequest,
        name: &str,
    ) -> ApiResult<Option<StoredApp>> {
        if !Once::with_digest(caller, request, Vec::new())?.is_known().await? {
            return Ok(None);
        }
        Ok(caller.store().deleted_app(name).await?)
    }

    async fn receive(
        request: &HttpRequest,
        caller: &Caller<S>,
        app: &StoredApp,
        body: web::Payload,
    ) -> ApiResult<(UploadFile, [u8; 32], BundlePermit)> {
        let all: &App = caller.app();
        let form = Form::from_request(request)?;
        let limit = all.config().apps.max_compressed_bytes;
        form.check_length(request, limit)?;
        all.chat().check_room(app.workspace_id)?;
        let clock = &**all.clock();
        let mut pace = UploadPace::new(clock);
        let body = arriving(body, &mut pace).await?;
        let receiving = all.bundle_uploads().receiving.acquire(vec![(caller.identity(), PER_CALLER)]);
        let _receiving = receiving.map_err(|_| busy())?;
        let file = all.bundle_uploads().folder.create(all.new_id()?);
        let file = file.map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))?;
        let reservation = all.body_budget().begin(guard::sender(all, request));
        let mut archive = Archive::new(&file, limit, reservation)?;
        receive(request, form, body, &mut archive, &mut pace).await?;
        let digest = archive.finish().await?;
        // Acquired after the upload, so that a slow client does not block others.
        let permit = all.bundle_uploads().permits.acquire(app.workspace_id, clock).await;
        Ok((file, digest, permit.ok_or_else(busy)?))
    }

    /// Applies all changes or none, and stores the response in the same transaction.
    pub(super) async fn make(
        &self,
        make: impl AsyncFnOnce(&mut Changes) -> ApiResult<ChangeReply>,
    ) -> ApiResult<HttpResponse> {
        self.once.change(make).await
    }
}

/// The 503 error: no permit, or the check timed out.
pub(super) fn busy() -> ApiError {
    ApiError::new(ErrorCode::ValidationBusy).retry_after(RETRY_SECONDS)
}

/// A finding about the whole archive.
fn finding(code: ErrorCode, detail: String) -> BundleFinding {
    BundleFinding { code: code.as_str().to_owned(), path: None, line: None, detail }
}
