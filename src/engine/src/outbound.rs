//! Shared parts of nodes that call out: fields with secrets, requests, and error responses.

use kernel::{Clock, Secret};
use net::{Limits, Method, NetError, Request, Response, Url};
use serde_json::Value;
use wire::{ErrorCode, FieldError};

use crate::NodeError;
use crate::channel::kind;
use crate::check::Check;
use crate::credentials::{SecretPosition, has_secrets, put_in, read_input, segments};
use crate::execute::Call;
use crate::execute::ports::Credentials;
use crate::graph::fields::{Fields, escape};
use crate::redact::{Redactor, percent_encoded};
use crate::template::{as_text, has_holes};
use net::retry_after;

/// The `User-Agent` header.
pub(crate) const USER_AGENT: &str = concat!("Callboard/", env!("CARGO_PKG_VERSION"));
/// Maximum bytes read from an error response.
const MOST_READ: usize = 64 * 1024;
/// Maximum characters of it that are quoted.
const MOST_SAID: usize = 300;

/// Reads a required text with templates and secrets inside.
pub(crate) fn text(fields: &mut Fields<'_>, name: &'static str, check: &mut Check) -> Option<Value> {
    let text = Value::String(fields.text(name, &mut check.problems)?.to_owned());
    check.templates_with_secrets(&text, &fields.at(name)).then_some(text)
}

/// Reads a required address with templates and secrets inside. Checks it now if it has no secrets.
pub(crate) fn url(fields: &mut Fields<'_>, name: &'static str, check: &mut Check) -> Option<Value> {
    let url = text(fields, name, check)?;
    if !has_secrets(&segments(url.as_str().unwrap_or_default())) {
        check_url(&url, fields.at(name), check);
    }
    Some(url)
}

/// As [`url()`], but optional.
pub(crate) fn optional_url(fields: &mut Fields<'_>, name: &'static str, check: &mut Check) -> Option<Value> {
    if fields.value(name).is_some() { url(fields, name, check) } else { None }
}

/// Reports an invalid literal address.
pub(crate) fn check_url(url: &Value, pointer: String, check: &mut Check) {
    let text = url.as_str().unwrap_or_default();
    if has_holes(text) {
        return;
    }
    if let Err(error) = address(text) {
        let problem = FieldError::new(pointer, "url", error.message);
        check.note_at_saving(
            problem.suggest("https://api.example.com/v1, or a template such as {{ inputs.url }}"),
        );
    }
}

/// Reads a text that names its secret in the vault.
pub(crate) fn secret(
    fields: &mut Fields<'_>,
    name: &'static str,
    example: &str,
    check: &mut Check,
) -> Option<Value> {
    let secret = text(fields, name, check)?;
    if !has_secrets(&segments(secret.as_str().unwrap_or_default())) {
        let message = "store the secret in the vault: every reader of the workflow can read its graph";
        let problem = FieldError::new(fields.at(name), "secret", message);
        let create = format!("callboard credential create \"{example}\", and \"{name}\": \"[[{example}]]\"");
        check.note(problem.suggest(create));
    }
    Some(secret)
}

/// As [`secret`], but optional.
pub(crate) fn optional_secret(
    fields: &mut Fields<'_>,
    name: &'static str,
    example: &str,
    check: &mut Check,
) -> Option<Value> {
    if fields.value(name).is_some() { secret(fields, name, example, check) } else { None }
}

/// Reads an optional text.
pub(crate) fn optional_text(fields: &mut Fields<'_>, name: &'static str, check: &mut Check) -> Option<Value> {
    if fields.value(name).is_some() { text(fields, name, check) } else { None }
}

/// Reads an optional value.
pub(crate) fn optional(fields: &mut Fields<'_>, name: &'static str, check: &mut Check) -> Option<Value> {
    let value = fields.value(name)?;
    check.templates_with_secrets(value, &fields.at(name)).then(|| value.clone())
}

/// Reads an optional object.
pub(crate) fn object(fields: &mut Fields<'_>, name: &'static str, check: &mut Check) -> Option<Value> {
    if !fields.value(name)?.is_object() {
        check.note(
            FieldError::new(fields.at(name), "type", "must be an object").suggest("{\"name\": \"value\"}"),
        );
        return None;
    }
    optional(fields, name, check)
}

/// Checks that header names can be sent and do not belong to the connection.
pub(crate) fn check_headers(headers: Option<&Value>, at: &str, check: &mut Check) {
    for (name, value) in headers.and_then(Value::as_object).into_iter().flatten() {
        let pointer = format!("{at}/{}", escape(name));
        if !value.is_string() && !value.is_number() {
            let problem = FieldError::new(pointer.clone(), "type", "must be a string");
            check.note(problem.suggest(format!("\"{name}\": \"…\"")));
        }
        if net::header::HeaderName::try_from(name).is_err() {
            let problem = FieldError::new(pointer, "header", "is not a valid header name");
            check.note(problem.suggest("use letters, digits and hyphens, such as X-Request-Source"));
        } else if Request::is_of_connection(name) {
            let problem = FieldError::new(pointer, "header", format!("'{name}' is set by the connection"));
            check.note(problem.suggest(format!("remove '{name}'")));
        }
    }
}

/// Fields with their secrets inserted, only for the call; never printed.
pub(crate) struct Revealed {
    fields: Value,
    positions: Vec<SecretPosition>,
}

impl Revealed {
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.fields.get(name)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// Whether one of these fields contains a secret.
    pub(crate) fn has_secret_under(&self, pointers: &[&str]) -> bool {
        let under =
            |position: &SecretPosition| pointers.iter().any(|pointer| position.pointer.starts_with(pointer));
        self.positions.iter().any(under)
    }
}

/// Checks that all fields of an input are texts: a template's non-text value must not count as an absent field.
pub(crate) fn texts(input: Value) -> Result<Value, NodeError> {
    for (name, value) in input.get("fields").and_then(Value::as_object).into_iter().flatten() {
        if !value.is_string() || is_nothing(value) {
            return Err(no_text(name, value));
        }
    }
    Ok(input)
}

/// Whether the value is null or blank.
pub(crate) fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty())
}

/// The error for a field that must contain text.
pub(crate) fn no_text(name: &str, value: &Value) -> NodeError {
    if value.is_string() {
        return NodeError::failed(format!("'{name}' is empty"));
    }
    NodeError::failed(format!("'{name}' must be a string; its template returned {}", kind(value)))
}

/// Resolves an input's secrets in the vault and inserts them. From then on, the run redacts them.
pub(crate) async fn reveal(input: Value, call: &Call<'_>) -> Result<Revealed, NodeError> {
    let (fields, positions) = read_input(input)?;
    revealed(fields, positions, call.credentials(), call.redactor()).await
}

/// As [`reveal`], with the positions of secrets given.
pub(crate) async fn revealed(
    mut fields: Value,
    positions: Vec<SecretPosition>,
    credentials: &dyn Credentials,
    redactor: &Redactor,
) -> Result<Revealed, NodeError> {
    let mut names: Vec<String> = positions.iter().map(|position| position.name.clone()).collect();
    names.sort_unstable();
    names.dedup();
    let secrets = if names.is_empty() { Vec::new() } else { credentials.resolve(&names).await? };
    secrets.iter().for_each(|secret| redactor.learn(secret));
    let secret = |name: &str| -> Option<Secret> {
        let place = names.iter().position(|known| known == name)?;
        secrets.get(place).cloned()
    };
    put_in(&mut fields, &positions, secret, spelt)?;
    Ok(Revealed { fields, positions })
}

/// Escapes a secret inside an address, unless the address begins with it.
fn spelt(position: &SecretPosition, secret: &str) -> String {
    if ["/url", "/webhook_url", "/base_url", "/dsn"].contains(&position.pointer.as_str()) && position.at > 0 {
        return percent_encoded(secret);
    }
    // Users who paste a secret often include the line end.
    secret.trim_end_matches(['\r', '\n']).to_owned()
}

/// Parses an address; the error does not repeat it.
pub(crate) fn address(text: &str) -> Result<Url, NodeError> {
    let refused = |why: String| NodeError::new(ErrorCode::EgressRefused, why);
    let url = Url::parse(text.trim())
        .map_err(|error| refused(format!("the url is not a valid address: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused(format!("'{}:' is neither http nor https", url.scheme())));
    }
    Ok(url)
}

/// Returns an address below another.
pub(crate) fn under(base: &str, path: &str) -> Result<Url, NodeError> {
    address(&format!("{}/{path}", base.trim().trim_end_matches('/')))
}

/// Fetches the address in `url` with `headers`; at most `most` bytes.
pub(crate) async fn get(fields: &Revealed, most: u64, call: &Call<'_>) -> Result<Response, NodeError> {
    let url = address(fields.text("url").unwrap_or_default())?;
    let mut request = Request::new(Method::GET, url.as_str());
    let mut is_told = false;
    for (name, value) in fields.get("headers").and_then(Value::as_object).into_iter().flatten() {
        is_told |= name.eq_ignore_ascii_case("user-agent");
        request = header(request, name, &as_text(value))?;
    }
    if !is_told {
        request = header(request, "User-Agent", USER_AGENT)?;
    }
    let limits = Limits { body_bytes: most, total: None, redirects: 3, ..Limits::default() };
    let answer = call.outbound().send(request, &limits).await.map_err(|error| fault(&error))?;
    if answer.status().as_u16() >= 400 {
        return Err(refusal(answer, call).await);
    }
    Ok(answer)
}

/// Adds a header; the error names it without its value.
pub(crate) fn header(request: Request, name: &str, value: &str) -> Result<Request, NodeError> {
    let bad =
        |_| NodeError::failed(format!("the header '{name}' cannot be sent: it has a line break or is empty"));
    request.header(name, value).map_err(bad)
}

/// Converts a network error: no response arrived.
pub(crate) fn fault(error: &NetError) -> NodeError {
    let (code, message) = (error.kind.code(), error.message.clone());
    if error.kind.is_retryable() {
        NodeError::retryable(code, message)
    } else {
        NodeError::new(code, message)
    }
}

/// Converts an error response. Its status decides whether a retry may succeed.
pub(crate) async fn refusal(answer: Response, call: &Call<'_>) -> NodeError {
    refused(answer, call.clock(), call.redactor()).await
}

/// Whether a retry may succeed.
pub(crate) fn is_retryable(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..=599)
}

/// Shortens external text to one line. Callers mask secrets first, because half a secret would not be recognized.
pub(crate) fn in_short(said: &str) -> String {
    said.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MOST_SAID).collect()
}

/// As [`refusal`], outside a node.
pub(crate) async fn refused(answer: Response, clock: &dyn Clock, redactor: &Redactor) -> NodeError {
    let status = answer.status().as_u16();
    let place = answer.place().to_owned();
    let wait = retry_after(answer.headers(), clock.now());
    // Truncated after masking: half a secret would not be recognized.
    let said = in_short(&redactor.text(answer.excerpt(MOST_READ).await));
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    let error = NodeError::failed(format!("{place} answered {status}{said}"));
    let retryable = is_retryable(status);
    NodeError { retryable, retry_after: wait.filter(|_| retryable), ..error }
}
