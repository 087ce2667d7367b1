//! A complete response: status, headers, bytes.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::HeaderMap;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wire::ErrorBody;

use crate::ClientError;

/// A complete response.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// Whether the status is a 2xx.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns a header's first value, if it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body as text; invalid UTF-8 is replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON, whatever the status.
    ///
    /// # Errors
    /// [`ClientError::Protocol`] if the body is not JSON.
    pub fn json(&self) -> Result<Value, ClientError> {
        self.parse()
    }

    /// Parses the body of a successful response as `T`.
    ///
    /// # Errors
    /// [`ClientError::Api`] for an error response; [`ClientError::Protocol`] if the body does not fit `T`.
    pub fn ok<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        if self.is_success() { self.parse() } else { Err(self.error()) }
    }

    /// Returns `Ok` for a 2xx status and ignores the body.
    ///
    /// # Errors
    /// As [`Answer::ok`].
    pub fn done(&self) -> Result<(), ClientError> {
        if self.is_success() { Ok(()) } else { Err(self.error()) }
    }

    /// Like [`Self::ok`] for a body with a secret, which the error does not quote.
    pub(crate) fn ok_secret<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        self.ok().map_err(|error| match error {
            ClientError::Protocol { status: Some(status), .. } if self.is_success() => {
                let what = format!("the response (HTTP {status}) is not the expected JSON");
                ClientError::Protocol { what, status: Some(status) }
            }
            other => other,
        })
    }

    fn parse<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        serde_json::from_slice(&self.body).map_err(|error| ClientError::Protocol {
            what: format!("the response (HTTP {}) is not the expected JSON: {error}", self.status),
            status: Some(self.status),
        })
    }

    /// The error that this response represents.
    #[must_use]
    pub fn error(&self) -> ClientError {
        let status = self.status;
        match serde_json::from_slice::<ErrorBody>(&self.body) {
            Ok(body) if !self.is_success() => {
                ClientError::Api { status, detail: Box::new(body.detail), retry_after: self.retry_after() }
            }
            _ => {
                let what = match self.header("location") {
                    Some(to) => format!("HTTP {status} points to {to}; use that address"),
                    None => format!("HTTP {status} without an error body of this service"),
                };
                ClientError::Protocol { what, status: Some(status) }
            }
        }
    }

    /// The `Retry-After` header, if it is in seconds.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.header("retry-after")?.trim().parse().ok().map(Duration::from_secs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, headers: &[(&'static str, &str)], body: &str) -> Answer {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        Answer { status, headers: headers.collect(), body: Bytes::copy_from_slice(body.as_bytes()) }
    }

    #[test]
    fn an_error_body_becomes_an_api_error() {
        let body = r#"{"detail":{"message":"Busy.","code":"service.overloaded","more":1}}"#;
        let error = answer(503, &[("retry-after", "7")], body).error();
        assert_eq!((error.status(), error.code()), (Some(503), Some("service.overloaded")));
        assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    }

    #[test]
    fn other_bodies_are_protocol_errors() {
        let page = answer(502, &[], "<html>");
        assert!(matches!(page.ok::<Value>(), Err(ClientError::Protocol { status: Some(502), .. })));
        let moved = answer(308, &[("location", "https://example.org/")], "");
        assert!(moved.error().to_string().contains("https://example.org/"));
        assert!(matches!(answer(200, &[], "{").json(), Err(ClientError::Protocol { .. })));
        assert!(matches!(answer(200, &[], "{}").error(), ClientError::Protocol { .. }));
    }

    #[test]
    fn secret_responses_are_not_quoted_in_errors() {
        let wrong = answer(200, &[], r#""canary""#);
        assert!(wrong.ok::<Vec<u8>>().unwrap_err().to_string().contains("canary"));
        assert!(!wrong.ok_secret::<Vec<u8>>().unwrap_err().to_string().contains("canary"));
        let page = answer(502, &[], "canary").ok_secret::<u8>().unwrap_err();
        assert_eq!(page.status(), Some(502));
    }

    #[test]
    fn a_success_is_parsed_and_json_ignores_the_status() {
        assert_eq!(answer(201, &[], "[1]").ok::<Vec<u8>>().unwrap(), [1]);
        assert_eq!(answer(404, &[], "{}").json().unwrap(), serde_json::json!({}));
    }
}
