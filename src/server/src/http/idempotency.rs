//! The `Idempotency-Key` header: a change with a key is applied once, even if the request is repeated.
//!
//! The response stored for a key is committed in the transaction of the change itself, so neither exists without the
//! other. A request that dies midway leaves its key free. A request whose response is lost gets the same response
//! again. Only successes are stored. A refused request has changed nothing, and its key may be reused, even with
//! another body.

use std::fmt::Display;

use actix_web::http::StatusCode;
use actix_web::http::header::ContentType;
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use ring::digest::{SHA256, digest};
use serde::Serialize;
use serde_json::json;
use store::{Changes, RequestKey, RequestState, Reserved, StoredAnswer};
use wire::ErrorCode;

use super::App;
use super::error::{ApiError, ApiResult};
use super::guard::Caller;

/// Maximum key length in characters.
const LONGEST: usize = 255;
/// The sealing context of sealed responses.
const CONTEXT: &str = "callboard|answer";
/// The header that marks a replayed response.
pub(super) const REPLAYED: (&str, &str) = ("Idempotency-Replayed", "true");

/// The request's key, if any. Surrounding quotes belong to the structured field (RFC 8941), not to the key.
pub(super) fn key(request: &HttpRequest) -> ApiResult<Option<String>> {
    one(request, "idempotency-key", |text| {
        let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        inner.unwrap_or(text)
    })
}

/// Reads the key from another header.
pub(super) fn key_in(request: &HttpRequest, header: &str) -> ApiResult<Option<String>> {
    one(request, header, |text| text)
}

fn one(request: &HttpRequest, header: &str, key_of: fn(&str) -> &str) -> ApiResult<Option<String>> {
    let mut values = request.headers().get_all(header);
    let Some(value) = values.next() else { return Ok(None) };
    let text = key_of(value.to_str().unwrap_or_default().trim());
    let good = !text.is_empty() && text.len() <= LONGEST && text.bytes().all(|b| b.is_ascii_graphic());
    if !good || values.next().is_some() {
        return Err(ApiError::new(ErrorCode::IdempotencyKeyInvalid));
    }
    Ok(Some(text.to_owned()))
}

/// The scopes of a request's key. They keep the keys of different callers, workspaces, methods and paths apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeyScopes {
    /// The scope that decides whether a key is known.
    pub(super) first: String,
    /// The scope that also stores the outcome.
    pub(super) also: Option<String>,
}

impl KeyScopes {
    pub(super) fn for_request<S>(caller: &Caller<S>, request: &HttpRequest) -> Self {
        let principal = caller.principal();
        // Issuers may give one subject several tokens for several workspaces. Users are excluded because their roles
        // change.
        let mut only = principal.workspaces().filter(|_| principal.user_id().is_none());
        if let Some(only) = &mut only {
            only.sort();
        }
        let only = only.as_ref().map(|only| only.iter().map(String::as_str).collect());
        Self::from_parts(&ScopeParts {
            method: request.method().as_str(),
            path: request.path(),
            caller: &caller.identity(),
            named_workspace: caller.named_workspace(),
            only_workspaces: only,
        })
    }

    /// Instances of the previous version know only the joined text, and a key lives for 24 hours. If the text is
    /// unambiguous, it decides, and the array is stored in addition. The release after next drops the text.
    fn from_parts(parts: &ScopeParts<'_>) -> Self {
        let array = parts.array();
        match parts.unambiguous_text() {
            Some(text) => Self { first: text, also: Some(array) },
            None => Self { first: array, also: None },
        }
    }
}

/// The parts of an idempotency key's scope.
struct ScopeParts<'a> {
    method: &'a str,
    /// The path as sent, because the resource may be renamed before the retry.
    path: &'a str,
    caller: &'a str,
    named_workspace: Option<&'a str>,
    only_workspaces: Option<Vec<&'a str>>,
}

impl ScopeParts<'_> {
    fn array(&self) -> String {
        let Self { method, path, caller, named_workspace, only_workspaces } = self;
        json!([method, path, caller, named_workspace, only_workspaces]).to_string()
    }

    /// The joined text, if it can be split in only one way.
    fn unambiguous_text(&self) -> Option<String> {
        const IN: &str = "|in ";
        const OF: &str = "|of ";
        let named = self.named_workspace.unwrap_or_default();
        let only = self.only_workspaces.as_deref().unwrap_or_default();
        let has_mark = |text: &str| text.contains(IN) || text.contains(OF);
        let is_ambiguous = self.path.contains('|')
            || has_mark(self.caller)
            || has_mark(named)
            || named.contains('\0')
            || only.iter().any(|name| name.is_empty() || name.contains(' '));
        if is_ambiguous {
            return None;
        }
        let mut text = format!("{} {}|{}", self.method, self.path, self.caller);
        if let Some(named) = self.named_workspace {
            text.extend([IN, named]);
        }
        if self.only_workspaces.is_some() {
            text.extend([OF, &only.join(" ")]);
        }
        Some(text)
    }
}

/// A change request that is applied once if it has a key.
pub(super) struct Once {
    app: App,
    key: Option<RequestKey>,
}

impl Once {
    /// Reads the request's key, if any.
    pub(super) fn for_request<S>(caller: &Caller<S>, request: &HttpRequest, body: &[u8]) -> ApiResult<Self> {
        Self::with_digest(caller, request, digest(&SHA256, body).as_ref().to_vec())
    }

    /// Like [`Self::for_request`], with a precomputed SHA-256 of the sent content.
    pub(super) fn with_digest<S>(
        caller: &Caller<S>,
        request: &HttpRequest,
        digest: Vec<u8>,
    ) -> ApiResult<Self> {
        let key = key(request)?.map(|key| {
            let KeyScopes { first, also } = KeyScopes::for_request(caller, request);
            RequestKey { scopes: std::iter::once(first).chain(also).collect(), key, digest }
        });
        Ok(Self { app: caller.app().clone(), key })
    }

    /// Returns the stored response to an earlier request. Handlers check it first, since the resource may be gone or
    /// read-only by now.
    pub(super) async fn answered(&self) -> ApiResult<Option<HttpResponse>> {
        let Some(key) = &self.key else { return Ok(None) };
        match self.app.store().answered(key).await? {
            Reserved::New => Ok(None),
            Reserved::Same(answer) => Ok(Some(replayed(&self.app, answer)?)),
            Reserved::Different => Err(ApiError::new(ErrorCode::IdempotencyKeyReused)),
        }
    }

    /// Whether the key is known, for this or any other request.
    pub(super) async fn is_known(&self) -> ApiResult<bool> {
        let Some(key) = &self.key else { return Ok(false) };
        Ok(!matches!(self.app.store().answered(key).await?, Reserved::New))
    }

    /// Applies all changes or none, and stores the response in the same transaction.
    pub(super) async fn change(
        &self,
        make: impl AsyncFnOnce(&mut Changes) -> ApiResult<ChangeReply>,
    ) -> ApiResult<HttpResponse> {
        let state = match &self.key {
            Some(key) => self.app.store().begin_request(key.clone()).await?,
            None => RequestState::New(Box::new(self.app.store().begin().await?)),
        };
        let mut changes = match state {
            RequestState::New(changes) => changes,
            RequestState::Answered(answer) => return replayed(&self.app, answer),
            RequestState::Reused => return Err(ApiError::new(ErrorCode::IdempotencyKeyReused)),
            RequestState::InProgress => {
                let refused = ApiError::new(ErrorCode::IdempotencyInProgress);
                return Err(refused.with_header("Retry-After", "1"));
            }
        };
        match make(&mut changes).await {
            Ok(reply) => {
                let touched = changes.touched();
                let committed = changes.commit(Some(&reply.stored(&self.app)?)).await;
                // A commit that reports failure may still have succeeded.
                for workflow in touched {
                    self.app.chat().forget(workflow);
                }
                committed?;
                Ok(head(reply.status).body(reply.body))
            }
            Err(error) => {
                changes.roll_back().await;
                Err(error)
            }
        }
    }
}

/// The response to a change.
pub(super) struct ChangeReply {
    status: StatusCode,
    body: String,
    secret: bool,
}

impl ChangeReply {
    /// A 200 response.
    pub(super) fn ok(body: &impl Serialize) -> ApiResult<Self> {
        Self::new(StatusCode::OK, body)
    }

    /// A 202 response.
    pub(super) fn accepted(body: &impl Serialize) -> ApiResult<Self> {
        Self::new(StatusCode::ACCEPTED, body)
    }

    /// A 201 response for something new, else 200.
    pub(super) fn made(new: bool, body: &impl Serialize) -> ApiResult<Self> {
        Self::new(if new { StatusCode::CREATED } else { StatusCode::OK }, body)
    }

    /// A 204 response.
    pub(super) fn nothing() -> Self {
        Self { status: StatusCode::NO_CONTENT, body: String::new(), secret: false }
    }

    /// Marks the body as containing a secret or visitor content, so it is stored sealed for retries.
    pub(super) fn secret(self) -> Self {
        Self { secret: true, ..self }
    }

    fn new(status: StatusCode, body: &impl Serialize) -> ApiResult<Self> {
        let body = serde_json::to_string(body)
            .map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))?;
        Ok(Self { status, body, secret: false })
    }

    fn stored(&self, app: &App) -> ApiResult<StoredAnswer> {
        let body = if self.secret {
            let sealed = app.answers_key().seal(CONTEXT, self.body.as_bytes(), app.random());
            hex::encode(sealed.map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))?)
        } else {
            self.body.clone()
        };
        Ok(StoredAnswer { status: self.status.as_u16(), body, sealed: self.secret })
    }
}

/// Replays a stored response.
fn replayed(app: &App, answer: StoredAnswer) -> ApiResult<HttpResponse> {
    let internal = |cause: &dyn Display| ApiError::new(ErrorCode::Internal).with_cause(cause);
    let status = StatusCode::from_u16(answer.status).map_err(|error| internal(&error))?;
    let body = if answer.sealed {
        let sealed = hex::decode(&answer.body).map_err(|error| internal(&error))?;
        let key = app.answers_key();
        key.open(key.active(), CONTEXT, &sealed).map_err(|error| internal(&error))?
    } else {
        answer.body.into_bytes()
    };
    Ok(head(status).insert_header(REPLAYED).body(body))
}

fn head(status: StatusCode) -> HttpResponseBuilder {
    let mut response = HttpResponse::build(status);
    if status != StatusCode::NO_CONTENT {
        response.content_type(ContentType::json());
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(path: &str, caller: &str, named: Option<&str>, only: Option<&[&str]>) -> KeyScopes {
        KeyScopes::from_parts(&ScopeParts {
            method: "POST",
            path,
            caller,
            named_workspace: named,
            only_workspaces: only.map(<[&str]>::to_vec),
        })
    }

    #[test]
    fn different_parts_have_different_scopes() {
        let all = [
            scopes("/a", "jwt:x|in s", None, None),
            scopes("/a", "jwt:x", Some("s"), None),
            scopes("/a|jwt:x", "in s", None, None),
            scopes("/a", "jwt:x|of s", None, None),
            scopes("/a", "jwt:x", None, Some(&["s"])),
            scopes("/a", "jwt:x", Some("s|of t"), None),
            scopes("/a", "jwt:x", Some("s"), Some(&["t"])),
            scopes("/a", "jwt:x", None, Some(&["s t"])),
            scopes("/a", "jwt:x", None, Some(&["s", "t"])),
            scopes("/a", "jwt:x", None, Some(&[])),
            scopes("/a", "jwt:x", None, Some(&[""])),
            scopes("/a", "jwt:x", Some("s\0"), None),
            scopes("/a", "jwt:x", Some("s?"), None),
        ];
        for (index, one) in all.iter().enumerate() {
            for other in &all[index + 1..] {
                assert_ne!(one.first, other.first);
                assert!(one.also.is_none() || one.also != other.also, "{one:?}");
                assert_ne!(Some(&one.first), other.also.as_ref());
            }
        }
    }

    #[test]
    fn the_scope_text_of_the_previous_version_is_used_if_unambiguous() {
        let plain = scopes("/api/workflows", "jwt:auth0|7", Some("team"), Some(&["a", "b"]));
        assert_eq!(plain.first, "POST /api/workflows|jwt:auth0|7|in team|of a b");
        let array = r#"["POST","/api/workflows","jwt:auth0|7","team",["a","b"]]"#;
        assert_eq!(plain.also.as_deref(), Some(array));
        let crafted = scopes("/a", "jwt:x|in s", None, None);
        assert_eq!(
            crafted,
            KeyScopes { first: r#"["POST","/a","jwt:x|in s",null,null]"#.to_owned(), also: None }
        );
    }
}
