//! The header `Idempotency-Key`, and requests that change something once however often they come.
//!
//! The answer that a key stands for is committed by the transaction of the change itself, so neither is ever there
//! without the other: a request that dies on its way leaves its key free, and one whose answer is lost is answered the
//! same again. Only successes are kept. A refused request has changed nothing, and its key may be used again, with
//! another body too.

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

/// Characters of the longest key.
const LONGEST: usize = 255;
/// What sealed answers are sealed for.
const CONTEXT: &str = "callboard|answer";
/// Of an answer that was given before.
pub(super) const REPLAYED: (&str, &str) = ("Idempotency-Replayed", "true");

/// The request's key, if it has one. Quotes around it are those of a structured field (RFC 8941), not of the key.
pub(super) fn key(request: &HttpRequest) -> ApiResult<Option<String>> {
    one(request, "idempotency-key", |text| {
        let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        inner.unwrap_or(text)
    })
}

/// The same where a sender says it in another header.
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

/// The scopes of a request's keys, in which different callers, workspaces, methods and paths never meet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeyScopes {
    /// Decides whether a key is known.
    pub(super) first: String,
    /// Also stores what the key stands for.
    pub(super) also: Option<String>,
}

impl KeyScopes {
    pub(super) fn of<S>(caller: &Caller<S>, request: &HttpRequest) -> Self {
        let principal = caller.principal();
        // An issuer may give one subject several tokens for several workspaces; a user's roles change.
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

    /// Instances of the previous version know keys by a joined text only, and a key lives for 24 hours: where that text means one
    /// request, it decides, and the array is stored in addition. The release after next drops the text.
    fn from_parts(parts: &ScopeParts<'_>) -> Self {
        let array = parts.array();
        match parts.unambiguous_text() {
            Some(text) => Self { first: text, also: Some(array) },
            None => Self { first: array, also: None },
        }
    }
}

/// The scope of an idempotency key.
struct ScopeParts<'a> {
    method: &'a str,
    /// As it was sent: what it names may have another name by the time of the retry.
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

    /// The joined text, if its parts cannot be cut in another way.
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

/// A request that changes something: once, where it has a key.
pub(super) struct Once {
    app: App,
    key: Option<RequestKey>,
}

impl Once {
    /// The request with its key, if it has one.
    pub(super) fn of<S>(caller: &Caller<S>, request: &HttpRequest, body: &[u8]) -> ApiResult<Self> {
        Self::with_digest(caller, request, digest(&SHA256, body).as_ref().to_vec())
    }

    /// The same where the SHA-256 of what was sent is known.
    pub(super) fn with_digest<S>(
        caller: &Caller<S>,
        request: &HttpRequest,
        digest: Vec<u8>,
    ) -> ApiResult<Self> {
        let key = key(request)?.map(|key| {
            let KeyScopes { first, also } = KeyScopes::of(caller, request);
            RequestKey { scopes: std::iter::once(first).chain(also).collect(), key, digest }
        });
        Ok(Self { app: caller.app().clone(), key })
    }

    /// The answer that the request received before. Handlers look it up before anything else: what the request names
    /// may be gone by now, or take no more changes.
    pub(super) async fn answered(&self) -> ApiResult<Option<HttpResponse>> {
        let Some(key) = &self.key else { return Ok(None) };
        match self.app.store().answered(key).await? {
            Reserved::New => Ok(None),
            Reserved::Same(answer) => Ok(Some(replayed(&self.app, answer)?)),
            Reserved::Different => Err(ApiError::new(ErrorCode::IdempotencyKeyReused)),
        }
    }

    /// Whether a request with this key was answered before, whatever it was.
    pub(super) async fn is_known(&self) -> ApiResult<bool> {
        let Some(key) = &self.key else { return Ok(false) };
        Ok(!matches!(self.app.store().answered(key).await?, Reserved::New))
    }

    /// Makes the changes, all or none, and the answer with them.
    pub(super) async fn change(
        &self,
        make: impl AsyncFnOnce(&mut Changes) -> ApiResult<Reply>,
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
                // A commit that has failed may have been made all the same.
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

/// What a change is answered with.
pub(super) struct Reply {
    status: StatusCode,
    body: String,
    secret: bool,
}

impl Reply {
    /// 200.
    pub(super) fn ok(body: &impl Serialize) -> ApiResult<Self> {
        Self::new(StatusCode::OK, body)
    }

    /// 202.
    pub(super) fn accepted(body: &impl Serialize) -> ApiResult<Self> {
        Self::new(StatusCode::ACCEPTED, body)
    }

    /// 201 for something new, 200 otherwise.
    pub(super) fn made(new: bool, body: &impl Serialize) -> ApiResult<Self> {
        Self::new(if new { StatusCode::CREATED } else { StatusCode::OK }, body)
    }

    /// 204.
    pub(super) fn nothing() -> Self {
        Self { status: StatusCode::NO_CONTENT, body: String::new(), secret: false }
    }

    /// The body holds a secret or a visitor's content: it is stored sealed for a retry.
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

/// The answer as it was given.
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
    fn the_text_of_the_previous_version_decides_where_it_means_one_request() {
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
