//! Reads query parameters and collects every problem; an unknown parameter is one.

use std::ops::RangeInclusive;

use actix_web::HttpRequest;
use chrono::{DateTime, Utc};
use url::form_urlencoded;
use wire::{ErrorCode, FieldError, MOST_PROBLEMS};

use super::error::{ApiError, ApiResult};
use super::fields;

/// Refuses all query parameters.
///
/// # Errors
/// One unknown-parameter problem per parameter.
pub(super) fn none(request: &HttpRequest) -> ApiResult<()> {
    ApiError::refuse(Params::from_request(request).finish())
}

/// Query parameters. An empty value is invalid if a value is expected.
pub(super) struct Params {
    given: Vec<(String, String)>,
    known: Vec<&'static str>,
    problems: Vec<FieldError>,
}

impl Params {
    pub(super) fn from_request(request: &HttpRequest) -> Self {
        Self::parse(request.query_string())
    }

    pub(super) fn parse(query: &str) -> Self {
        let given = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        Self { given, known: Vec::new(), problems: Vec::new() }
    }

    /// Records a problem with a parameter.
    pub(super) fn note(&mut self, name: &str, code: &str, message: impl Into<String>) {
        self.problems.push(FieldError::new(format!("/{name}"), code, message));
    }

    /// Returns a parameter's raw value.
    pub(super) fn text(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        let mut given = self.given.iter().filter(|(known, _)| known == name);
        let text = given.next().map(|(_, text)| text.clone());
        if given.next().is_some() {
            self.note(name, "repeated", "may be given only once");
            return None;
        }
        text
    }

    /// Accepts parameters that another reader handles.
    pub(super) fn pass_over(&mut self, names: &[&'static str]) {
        self.known.extend(names);
    }

    /// `true` or `false`; false if absent.
    pub(super) fn flag(&mut self, name: &'static str) -> bool {
        match self.text(name).as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => {
                self.note(name, "type", "must be true or false");
                false
            }
        }
    }

    /// A comma-separated list of allowed words; empty if absent.
    pub(super) fn words(&mut self, name: &'static str, choice: &[&str]) -> Vec<String> {
        let Some(text) = self.text(name) else { return Vec::new() };
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        if words.iter().any(|word| !choice.contains(word)) {
            self.note(
                name,
                "choice",
                format!("must be one or several of {}, separated by commas", choice.join(", ")),
            );
            return Vec::new();
        }
        words.into_iter().map(str::to_owned).collect()
    }

    /// One of the allowed words, if present.
    pub(super) fn one_of(&mut self, name: &'static str, choice: &[&str]) -> Option<String> {
        let word = self.text(name)?;
        if choice.contains(&word.as_str()) {
            return Some(word);
        }
        self.note(name, "choice", format!("must be one of {}", choice.join(", ")));
        None
    }

    /// A time, if present.
    pub(super) fn time(&mut self, name: &'static str) -> Option<DateTime<Utc>> {
        let text = self.text(name)?;
        let time = DateTime::parse_from_rfc3339(&text).ok();
        if time.is_none() {
            self.note(name, "format", "must be a time such as 2026-11-23T09:00:00Z");
        }
        time.map(|time| time.to_utc())
    }

    /// A whole number within bounds, if present.
    pub(super) fn whole(&mut self, name: &'static str, bounds: RangeInclusive<i64>) -> Option<i64> {
        let text = self.text(name)?;
        // Without this check, `+1` would parse too.
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        let number = text.parse().ok().filter(|number| digits && bounds.contains(number));
        if number.is_none() {
            let message = format!("must be a whole number from {} to {}", bounds.start(), bounds.end());
            self.note(name, "range", message);
        }
        number
    }

    /// Returns all problems, including unknown parameters.
    pub(super) fn finish(mut self) -> Vec<FieldError> {
        let mut told: Vec<&str> = Vec::new();
        for (name, _) in self.given.iter().filter(|(name, _)| !self.known.contains(&name.as_str())) {
            if self.problems.len() > MOST_PROBLEMS {
                break;
            }
            // A stray `&` is not a parameter.
            if name.is_empty() || told.contains(&name.as_str()) {
                continue;
            }
            told.push(name);
            let pointer = format!("/{}", fields::escape(name));
            let (code, what) = ("unknown_parameter", "query parameter");
            self.problems.push(fields::unknown(pointer, code, what, name, &self.known));
        }
        self.problems
    }

    /// Returns the value read from the rest of the request, unless it or the query has problems.
    pub(super) fn and<T>(self, read: Result<T, Vec<FieldError>>) -> ApiResult<T> {
        let mut problems = self.finish();
        match read {
            Ok(value) => ApiError::refuse(problems).map(|()| value),
            Err(more) => {
                problems.extend(more);
                Err(ApiError::problems(ErrorCode::InvalidRequest, problems))
            }
        }
    }

    /// Returns the problems of known parameters only.
    pub(super) fn finish_leniently(self) -> Vec<FieldError> {
        self.problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(query: &str) -> Vec<String> {
        let mut params = Params::parse(query);
        params.flag("include_archived");
        params.whole("limit", 1..=200);
        let line = |problem: FieldError| {
            format!("{} {} {}", problem.pointer, problem.code, problem.suggestion.unwrap_or_default())
        };
        params.finish().into_iter().map(|problem| line(problem).trim_end().to_owned()).collect()
    }

    #[test]
    fn a_valid_query_is_parsed() {
        let mut params = Params::parse("include_archived=true&limit=007&cursor=a%20b+c");
        assert!(params.flag("include_archived"));
        assert_eq!(params.whole("limit", 1..=200), Some(7));
        assert_eq!(params.text("cursor").as_deref(), Some("a b c"));
        assert_eq!(params.text("more"), None);
        assert_eq!(params.finish(), []);
        for query in ["", "&&", "=", "include_archived=false", "limit=200"] {
            assert_eq!(problems(query), [""; 0], "{query}");
        }
    }

    #[test]
    fn every_problem_is_reported() {
        assert_eq!(
            problems("include_archived=maybe&limit=201&include_archive=true&x=1&x=2&a%2Fb"),
            [
                "/include_archived type",
                "/limit range",
                "/include_archive unknown_parameter did you mean 'include_archived'?",
                "/x unknown_parameter allowed: include_archived, limit",
                "/a~1b unknown_parameter allowed: include_archived, limit",
            ]
        );
        assert_eq!(problems("limit=1&limit=1"), ["/limit repeated"]);
        for limit in ["", "0", "-1", "+1", "1.5", "%ff", "99999999999999999999", "x"] {
            assert_eq!(problems(&format!("limit={limit}")), ["/limit range"], "{limit}");
        }
        for flag in ["include_archived", "include_archived=", "include_archived=1", "include_archived=TRUE"] {
            assert_eq!(problems(flag), ["/include_archived type"], "{flag}");
        }
        assert_eq!(
            Params::parse("require_login=true").finish()[0].suggestion.as_deref(),
            Some("omit it; none is allowed here")
        );
    }
}
