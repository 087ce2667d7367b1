//! A change's version precondition.

use actix_web::HttpRequest;
use actix_web::http::header::IF_MATCH;
use wire::ErrorCode;

use super::super::error::{AliasError, AliasResult};
use crate::http::error::ApiError;
use crate::http::etag;

/// The version that a request expects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Precondition {
    if_match: Option<IfMatch>,
    version: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum IfMatch {
    /// `*`: any version.
    Any,
    /// One of these versions. Weak or foreign tags match no version.
    Versions(Vec<i64>),
}

impl Precondition {
    /// Reads the header, and takes the body's version if the request may have one.
    pub(super) fn from_request(request: &HttpRequest, version: Option<i64>) -> Self {
        let values = request.headers().get_all(IF_MATCH).map(|value| value.to_str().unwrap_or_default());
        let values: Vec<&str> = values.collect();
        Self { if_match: read(&values), version }
    }

    /// Checks the precondition against the record's current version.
    ///
    /// # Errors
    /// `version_ambiguous`, `version_required`, `version_conflict`.
    pub(super) fn check(&self, current: i64) -> AliasResult<()> {
        let matches = match (&self.if_match, self.version) {
            (None, None) => return Err(ErrorCode::VersionRequired.into()),
            (Some(IfMatch::Versions(versions)), Some(version)) if !versions.contains(&version) => {
                return Err(ErrorCode::VersionAmbiguous.into());
            }
            (_, Some(version)) => version == current,
            (Some(IfMatch::Any), None) => true,
            (Some(IfMatch::Versions(versions)), None) => versions.contains(&current),
        };
        if matches { Ok(()) } else { Err(conflict(current)) }
    }
}

/// The error for a record with another version.
pub(super) fn conflict(current: i64) -> AliasError {
    ApiError::new(ErrorCode::VersionConflict).with_current_version(current).into()
}

fn read(values: &[&str]) -> Option<IfMatch> {
    if values.is_empty() {
        return None;
    }
    if values.iter().any(|value| value.trim() == "*") {
        return Some(IfMatch::Any);
    }
    let version = |tag: &str| {
        let digits = tag.strip_prefix("\"v")?.strip_suffix('"')?;
        let version: i64 = digits.parse().ok()?;
        (version.to_string() == digits).then_some(version)
    };
    Some(IfMatch::Versions(values.iter().flat_map(|value| etag::tags(value)).filter_map(version).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(if_match: &[&str], version: Option<i64>, current: i64) -> Option<&'static str> {
        let checked = Precondition { if_match: read(if_match), version }.check(current);
        match checked {
            Ok(()) => None,
            Err(AliasError::Api(error)) => Some(error.code().as_str()),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_change_requires_the_current_version() {
        assert_eq!(code(&[], None, 7), Some("version_required"));
        for good in [&["\"v7\""][..], &["*"], &["\"v6\", \"v7\""], &["\"x\"", "\"v7\""]] {
            assert_eq!(code(good, None, 7), None, "{good:?}");
        }
        for stale in [
            "\"v6\"",
            "W/\"v7\"",
            "v7",
            "7",
            "\"7\"",
            "\"v07\"",
            "\"v+7\"",
            "",
            "\"v7",
            "\"V7\"",
            "\"v7\"x",
            "\"v7\";q=1",
            "\"v7\"\"v8\"",
        ] {
            assert_eq!(code(&[stale], None, 7), Some("version_conflict"), "{stale}");
        }
        assert_eq!(code(&[], Some(7), 7), None);
        assert_eq!(code(&[], Some(8), 7), Some("version_conflict"));
        assert_eq!(code(&["\"v7\""], Some(7), 7), None);
        assert_eq!(code(&["*"], Some(7), 7), None);
        assert_eq!(code(&["*"], Some(6), 7), Some("version_conflict"));
        assert_eq!(code(&["\"v7\""], Some(6), 7), Some("version_ambiguous"));
        assert_eq!(code(&["\"v6\""], Some(7), 7), Some("version_ambiguous"));
        assert_eq!(code(&["\"v6\", \"v7\""], Some(7), 7), None);
    }
}
