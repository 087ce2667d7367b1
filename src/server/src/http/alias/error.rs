//! Errors for app requests: only app error codes, without internal details.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, ResponseError};
use store::StoreError;
use wire::ErrorCode;

use super::page;
use crate::http::error::ApiError;

/// An error for an app visitor.
#[derive(Debug)]
pub(in crate::http) enum AliasError {
    /// No app is published under the host. The response is identical for every such host.
    NoApp,
    /// Any other error.
    Api(ApiError),
}

pub(in crate::http) type AliasResult<T> = Result<T, AliasError>;

/// The codes that visitors may receive. All other codes are mapped to one of them.
const CODES: [ErrorCode; 31] = [
    ErrorCode::AppBadRequest,
    ErrorCode::AppInvalidJson,
    ErrorCode::IdempotencyKeyRequired,
    ErrorCode::AppIdempotencyKeyInvalid,
    ErrorCode::CursorInvalid,
    ErrorCode::VersionAmbiguous,
    ErrorCode::LoginFailed,
    ErrorCode::LoginRequired,
    ErrorCode::AppForbidden,
    ErrorCode::AppOriginMismatch,
    ErrorCode::WorkerRefused,
    ErrorCode::AppTlsRequired,
    ErrorCode::AppPathNotFound,
    ErrorCode::AppMethodNotAllowed,
    ErrorCode::CollectionGone,
    ErrorCode::VersionConflict,
    ErrorCode::InputTooLarge,
    ErrorCode::RecordTooLarge,
    ErrorCode::AppUnsupportedMediaType,
    ErrorCode::AppKeyReused,
    ErrorCode::InputInvalid,
    ErrorCode::RecordInvalid,
    ErrorCode::QueryInvalid,
    ErrorCode::VersionRequired,
    ErrorCode::AppRateLimited,
    ErrorCode::AppInternal,
    ErrorCode::LoginNotConfigured,
    ErrorCode::AppUnavailable,
    ErrorCode::CollectionFull,
    ErrorCode::AppStorageFull,
    ErrorCode::NotAMember,
];

/// Maps a service code to the code for visitors.
fn public(code: ErrorCode) -> ErrorCode {
    match code {
        known if CODES.contains(&known) => known,
        ErrorCode::StorageFull | ErrorCode::WorkspaceFull => ErrorCode::AppStorageFull,
        other if other.status() == 503 => ErrorCode::AppUnavailable,
        other if other.status() == 429 => ErrorCode::AppRateLimited,
        _ => ErrorCode::AppInternal,
    }
}

impl From<ApiError> for AliasError {
    fn from(error: ApiError) -> Self {
        let public = public(error.code());
        if public == error.code() {
            return Self::Api(error);
        }
        // Messages and problems of other codes contain details that visitors must not learn.
        Self::Api(ApiError::new(public).with_cause(error.reason()))
    }
}

impl From<ErrorCode> for AliasError {
    fn from(code: ErrorCode) -> Self {
        ApiError::new(code).into()
    }
}

impl From<StoreError> for AliasError {
    fn from(error: StoreError) -> Self {
        ApiError::from(error).into()
    }
}

impl fmt::Display for AliasError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoApp => f.write_str("no app"),
            Self::Api(error) => error.fmt(f),
        }
    }
}

impl ResponseError for AliasError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::NoApp => StatusCode::NOT_FOUND,
            Self::Api(error) => error.status_code(),
        }
    }

    fn error_response(&self) -> HttpResponse {
        match self {
            Self::NoApp => page(),
            Self::Api(error) => error.error_response(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visitor_receives_no_code_of_the_service() {
        for code in ErrorCode::ALL {
            let public = public(*code);
            assert!(CODES.contains(&public), "{}", code.as_str());
            assert!(!public.as_str().contains('.'), "{}", code.as_str());
        }
        assert_eq!(public(ErrorCode::DatabaseUnavailable), ErrorCode::AppUnavailable);
        assert_eq!(public(ErrorCode::WorkspaceFull), ErrorCode::AppStorageFull);
        assert_eq!(public(ErrorCode::WorkflowNotFound), ErrorCode::AppInternal);
    }
}
