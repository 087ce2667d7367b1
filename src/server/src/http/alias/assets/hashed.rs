//! Serves files at URLs that contain their digest.

use actix_web::http::StatusCode;
use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use wire::{AppAccess, ErrorCode};

use super::answer::{AssetResponse, Caching};
use super::index::Asset;
use super::{METHODS, alias_paths, guard, members, path, refuse_workers, served};
use crate::http::alias::alias_paths::ASSETS;
use crate::http::alias::error::AliasResult;

/// Hexadecimal digits in a digest.
const DIGITS: usize = 64;

pub(in crate::http::alias) fn routes(config: &mut ServiceConfig) {
    let resource = alias_paths::resource("/__service/assets/{digest}/{name}", METHODS);
    config.service(resource.route(web::get().to(file)).route(web::head().to(file)));
}

/// `GET /__service/assets/<sha256>/<name>`: a file from any retained deployment that the app has published.
async fn file(request: HttpRequest) -> AliasResult<HttpResponse> {
    let app = guard::app_of(&request)?;
    let served = served(app, &request, false).await?;
    let path = path::decode(request.uri().path()).ok_or(ErrorCode::AppBadRequest)?;
    refuse_workers(&request)?;
    if let Some(elsewhere) = members::admit(app, &request, &served).await? {
        return Ok(elsewhere);
    }
    let not_found = ErrorCode::AppPathNotFound;
    let (digits, name) = path
        .strip_prefix(ASSETS.trim_start_matches('/'))
        .and_then(|rest| rest.split_once('/'))
        .ok_or(not_found)?;
    let digest = digest(digits).filter(|_| !name.is_empty()).ok_or(not_found)?;
    let assets = app.assets();
    let index = assets.indexes.for_deployment(served.release.deployment).await?;
    let (asset, is_active) = match index.with_digest(&digest, name) {
        Some(known) => (known.clone(), true),
        None => {
            let kept = assets.store.kept_file(served.id, &digest, name).await?;
            // Framing is denied: the origins allowed by another deployment may differ from those of the active release.
            (
                kept.and_then(Asset::from_file)
                    .and_then(Asset::without_frames)
                    .map(Into::into)
                    .ok_or(not_found)?,
                false,
            )
        }
    };
    let caching = match served.access {
        AppAccess::Members => Caching::Private,
        // A document's policy may change between responses, so it is revalidated.
        AppAccess::Public if asset.is_document() => Caching::Revalidated,
        AppAccess::Public => Caching::Immutable,
    };
    let in_frames = is_active && !served.release.frame_ancestors.is_empty();
    let answer =
        AssetResponse { app, request: &request, asset: &asset, status: StatusCode::OK, caching, in_frames };
    answer.send(&assets.parts).await
}

/// Parses a SHA-256 in lower-case hexadecimal digits.
fn digest(digits: &str) -> Option<[u8; 32]> {
    let is_lower = digits.len() == DIGITS && !digits.bytes().any(|digit| digit.is_ascii_uppercase());
    let mut digest = [0; 32];
    hex::decode_to_slice(Some(digits).filter(|_| is_lower)?, &mut digest).ok()?;
    Some(digest)
}
