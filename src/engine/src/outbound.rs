//! What nodes that call out have in common: fields with secrets, requests, and what refusals mean.

use kernel::{Clock, Secret};
use net::{Limits, Method, NetError, Request, Response, Url};
use serde_json::Value;
use wire::{ErrorCode, FieldError};

use crate::NodeError;
use crate::channel::kind;
use crate::check::Check;
use crate::credentials::{Hole, has_secrets, put_in, read_input, segments};
use crate::execute::Call;
use crate::execute::ports::Credentials;
use crate::graph::fields::{Fields, escape};
use crate::redact::{Redactor, percent_encoded};
use crate::template::{as_text, has_holes};
use net::retry_after;

/// Who calls.
pub(crate) const USER_AGENT: &str = concat!("Callboard/", env!("CARGO_PKG_VERSION"));
/// Bytes of a refusal's body that are looked at.
const MOST_READ: usize = 64 * 1024;
/// Letters of it that are repeated.
const MOST_SAID: usize = 300;

/// A text that must be there, with templates and secrets inside.
pub(crate) fn text(fields: &mut Fields<'_>, name: &'static str, check: &mut Check) -> Option<Value> {
    let text = Value::String(fields.text(name, &mut check.problems)?.to_owned());
    check.templates_with_secrets(&text, &fields.at(name)).then_some(text)
}

/// An address that must be there, with templates and secrets inside; one without secrets is checked now.
pub(crate) fn url(fields: &mut Fields<'_>, name: &'static str, check: &mut Check) -> Option<Value> {
    let url = text(fields, name, check)?;
    if !has_secrets(&segments(url.as_str().unwrap_or_default())) {
        check_url(&url, fields.at(name), check);
    }
    Some(url)
}

/// The same, where it is there.
pub(crate) fn optional_url(fields: &mut Fields<'_>, name: &'static str, check: &mut Check) -> Option<Value> {
    if fields.value(name).is_some() { url(fields, name, check) } else { None }
}

/// Says what is wrong with an address that stands there as it is.
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

/// A text that names its secret in the vault.
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

/// The same, where it is there.
pub(crate) fn optional_secret(
    fields: &mut Fields<'_>,
    name: &'static str,
    example: &str,
    check: &mut Check,
) -> Option<Value> {
    if fields.value(name).is_some() { secret(fields, name, example, check) } else { None }
}

/// A text, where it is there.
pub(crate) fn optional_text(fields: &mut Fields<'_>, name: &'static str, check: &mut Check) -> Option<Value> {
    if fields.value(name).is_some() { text(fields, name, check) } else { None }
}

/// Any value, where it is there.
pub(crate) fn optional(fields: &mut Fields<'_>, name: &'static str, check: &mut Check) -> Option<Value> {
    let value = fields.value(name)?;
    check.templates_with_secrets(value, &fields.at(name)).then(|| value.clone())
}

/// An object, where it is there.
pub(crate) fn object(fields: &mut Fields<'_>, name: &'static str, check: &mut Check) -> Option<Value> {
    if !fields.value(name)?.is_object() {
        check.note(
            FieldError::new(fields.at(name), "type", "must be an object").suggest("{\"name\": \"value\"}"),
        );
        return None;
    }
    optional(fields, name, check)
}

/// Names that can be sent, and none that belongs to the connection.
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

/// Fields with their secrets in them: for the call alone, and nothing that prints.
pub(crate) struct Revealed {
    fields: Value,
    holes: Vec<Hole>,
}

impl Revealed {
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.fields.get(name)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// Whether a secret stands in one of these fields.
    pub(crate) fn has_secret_under(&self, pointers: &[&str]) -> bool {
        let under = |hole: &Hole| pointers.iter().any(|pointer| hole.pointer.starts_with(pointer));
        self.holes.iter().any(under)
    }
}

/// An input whose fields are all texts: what a template has made of one must not be mistaken for a field that is not there.
pub(crate) fn texts(input: Value) -> Result<Value, NodeError> {
    for (name, value) in input.get("fields").and_then(Value::as_object).into_iter().flatten() {
        if !value.is_string() || is_nothing(value) {
            return Err(no_text(name, value));
        }
    }
    Ok(input)
}

/// Whether nothing stands there.
pub(crate) fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty())
}

/// A field that must say something does not.
pub(crate) fn no_text(name: &str, value: &Value) -> NodeError {
    if value.is_string() {
        return NodeError::failed(format!("'{name}' is empty"));
    }
    NodeError::failed(format!("'{name}' must be a string; its template returned {}", kind(value)))
}

/// Asks the vault for the secrets of an input, and puts them in. From then on the run says none of them.
pub(crate) async fn reveal(input: Value, call: &Call<'_>) -> Result<Revealed, NodeError> {
    let (fields, holes) = read_input(input)?;
    revealed(fields, holes, call.credentials(), call.redactor()).await
}

/// The same with the places of the secrets at hand.
pub(crate) async fn revealed(
    mut fields: Value,
    holes: Vec<Hole>,
    credentials: &dyn Credentials,
    redactor: &Redactor,
) -> Result<Revealed, NodeError> {
    let mut names: Vec<String> = holes.iter().map(|hole| hole.name.clone()).collect();
    names.sort_unstable();
    names.dedup();
    let secrets = if names.is_empty() { Vec::new() } else { credentials.resolve(&names).await? };
    secrets.iter().for_each(|secret| redactor.learn(secret));
    let secret = |name: &str| -> Option<Secret> {
        let place = names.iter().position(|known| known == name)?;
        secrets.get(place).cloned()
    };
    put_in(&mut fields, &holes, secret, spelt)?;
    Ok(Revealed { fields, holes })
}

/// A secret inside an address is escaped, unless the address begins with it.
fn spelt(hole: &Hole, secret: &str) -> String {
    if ["/url", "/webhook_url", "/base_url", "/dsn"].contains(&hole.pointer.as_str()) && hole.at > 0 {
        return percent_encoded(secret);
    }
    // A user who pastes a secret often includes the end of its line.
    secret.trim_end_matches(['\r', '\n']).to_owned()
}

/// An address; the error does not repeat it.
pub(crate) fn address(text: &str) -> Result<Url, NodeError> {
    let refused = |why: String| NodeError::new(ErrorCode::EgressRefused, why);
    let url = Url::parse(text.trim())
        .map_err(|error| refused(format!("the url is not a valid address: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused(format!("'{}:' is neither http nor https", url.scheme())));
    }
    Ok(url)
}

/// An address beneath another.
pub(crate) fn under(base: &str, path: &str) -> Result<Url, NodeError> {
    address(&format!("{}/{path}", base.trim().trim_end_matches('/')))
}

/// Fetches what the fields `url` and `headers` name, of at most so many bytes.
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

/// Adds a header; the error names it and not what it says.
pub(crate) fn header(request: Request, name: &str, value: &str) -> Result<Request, NodeError> {
    let bad =
        |_| NodeError::failed(format!("the header '{name}' cannot be sent: it has a line break or is empty"));
    request.header(name, value).map_err(bad)
}

/// Why no answer came.
pub(crate) fn fault(error: &NetError) -> NodeError {
    let (code, message) = (error.kind.code(), error.message.clone());
    if error.kind.is_retryable() {
        NodeError::retryable(code, message)
    } else {
        NodeError::new(code, message)
    }
}

/// What an answer that says no means. Whether another attempt may go well is a matter of its status.
pub(crate) async fn refusal(answer: Response, call: &Call<'_>) -> NodeError {
    refused(answer, call.clock(), call.redactor()).await
}

/// Whether another attempt may go well.
pub(crate) fn is_retryable(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..=599)
}

/// What another party said, in one short line. Callers mask secrets first: half of one would not be recognized.
pub(crate) fn in_short(said: &str) -> String {
    said.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MOST_SAID).collect()
}

/// The same outside of a node.
pub(crate) async fn refused(answer: Response, clock: &dyn Clock, redactor: &Redactor) -> NodeError {
    let status = answer.status().as_u16();
    let place = answer.place().to_owned();
    let wait = retry_after(answer.headers(), clock.now());
    // Cut behind the masks: half a secret would be no secret to look for.
    let said = in_short(&redactor.text(answer.excerpt(MOST_READ).await));
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    let error = NodeError::failed(format!("{place} answered {status}{said}"));
    let retryable = is_retryable(status);
    NodeError { retryable, retry_after: wait.filter(|_| retryable), ..error }
}
