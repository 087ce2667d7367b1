//! File responses: the whole file, a range, or 304.

use actix_web::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_RANGE,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, RANGE, VARY,
};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse};

use super::body::{AssetBody, Unsent};
use super::index::Asset;
use super::negotiate::{Encoding, choose};
use super::parts::PartCache;
use crate::http::alias::error::AliasResult;
use crate::http::alias::headers::InFrames;
use crate::http::range::{self, BodyRange};
use crate::http::{App, etag};

/// A response's caching policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caching {
    /// No caching.
    Private,
    /// Clients revalidate on each use.
    Revalidated,
    /// Cached forever: the URL names the content.
    Immutable,
}

impl Caching {
    pub(super) fn header(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Private => "private, no-store",
            Self::Revalidated => "no-cache",
            Self::Immutable => "public, max-age=31536000, immutable",
        })
    }
}

/// The parts of a file response.
pub(super) struct AssetResponse<'a> {
    pub(super) app: &'a App,
    pub(super) request: &'a HttpRequest,
    pub(super) asset: &'a Asset,
    pub(super) status: StatusCode,
    pub(super) caching: Caching,
    /// Whether other origins may frame the app.
    pub(super) in_frames: bool,
}

impl AssetResponse<'_> {
    /// Creates the response and reads the file's first part.
    ///
    /// # Errors
    /// [`crate::http::alias::error::AliasError`] if the database does not answer.
    pub(super) async fn send(self, parts: &PartCache) -> AliasResult<HttpResponse> {
        let Self { request, asset, status, .. } = &self;
        let (encoding, part) = self.wanted();
        let tag = asset.tag(encoding);
        if *status == StatusCode::OK && etag::is_known(request, &tag) {
            let mut answer = HttpResponse::NotModified().finish();
            self.describe(answer.headers_mut(), &tag);
            self.note_frames(&mut answer);
            return Ok(answer);
        }
        let blob = asset.blob(encoding);
        let (status, range) = match part {
            BodyRange::Whole => (*status, 0..blob.size),
            BodyRange::Bytes(range) => {
                let bound = |bound: usize| u64::try_from(bound).unwrap_or(u64::MAX);
                (StatusCode::PARTIAL_CONTENT, bound(range.start)..bound(range.end))
            }
            BodyRange::Outside => return Ok(self.outside(&tag, blob.size)),
        };
        let mut builder = HttpResponse::build(status);
        if status == StatusCode::PARTIAL_CONTENT {
            let last = range.end.saturating_sub(1);
            builder.insert_header((CONTENT_RANGE, format!("bytes {}-{last}/{}", range.start, blob.size)));
        }
        let mut answer = if request.method() == Method::HEAD {
            builder.body(Unsent(blob.size))
        } else {
            builder.body(AssetBody::open(parts, blob, range).await?)
        };
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, asset.kind.clone());
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        match encoding {
            Encoding::Identity => {}
            Encoding::Br => drop(headers.insert(CONTENT_ENCODING, HeaderValue::from_static("br"))),
            Encoding::Gzip => drop(headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"))),
        }
        if asset.is_of_unknown_kind {
            headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
        }
        self.describe(headers, &tag);
        self.note_frames(&mut answer);
        Ok(answer)
    }

    /// Chooses the encoding and the part. Ranges refer to the file as uploaded.
    fn wanted(&self) -> (Encoding, BodyRange) {
        let Self { request, asset, status, .. } = self;
        let whole = asset.blob(Encoding::Identity).size;
        if *status == StatusCode::OK
            && request.method() == Method::GET
            && request.headers().contains_key(RANGE)
        {
            let length = usize::try_from(whole).unwrap_or(usize::MAX);
            let part = range::part(request, length, &asset.tag(Encoding::Identity));
            if part != BodyRange::Whole {
                return (Encoding::Identity, part);
            }
        }
        let encoding = choose(request.headers(), asset.has(Encoding::Br), asset.has(Encoding::Gzip));
        (encoding, BodyRange::Whole)
    }

    fn outside(&self, tag: &str, size: u64) -> HttpResponse {
        let mut answer = HttpResponse::RangeNotSatisfiable()
            .insert_header((CONTENT_RANGE, format!("bytes */{size}")))
            .insert_header((ACCEPT_RANGES, "bytes"))
            .finish();
        self.describe(answer.headers_mut(), tag);
        self.note_frames(&mut answer);
        answer
    }

    /// Sets the headers that a 304 has too.
    fn describe(&self, headers: &mut HeaderMap, tag: &str) {
        if let Ok(tag) = HeaderValue::from_str(tag) {
            headers.insert(ETAG, tag);
        }
        headers.insert(CACHE_CONTROL, self.caching.header());
        headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
        if let Some(policy) = &self.asset.policy {
            let over_https = self.app.is_asked_over_https(self.request);
            let policy = if over_https { &policy.over_https } else { &policy.over_http };
            headers.insert(CONTENT_SECURITY_POLICY, policy.clone());
        }
    }

    fn note_frames(&self, answer: &mut HttpResponse) {
        if self.in_frames && self.asset.is_document() {
            answer.extensions_mut().insert(InFrames);
        }
    }
}
