//! What nodes that call out have in common: fields with secrets, requests, and what refusals mean.

use kernel::{Clock, Secret};
use net::{NetError, Request, Response, Url};
use serde_json::Value;
use wire::{ErrorCode, FieldError};

use super::Call;
use crate::NodeError;
use crate::check::Check;
use crate::credentials::{Hole, put_in, read_input};
use crate::graph::fields::{Fields, escape};
use crate::models::transport::refusal::retry_after;
use crate::ports::Credentials;
use crate::redact::{Redactor, percent_encoded};

/// Who calls.
pub(crate) const USER_AGENT: &str = concat!("Callboard/", env!("CARGO_PKG_VERSION"));
/// Bytes of a refusal's body that are looked at.
const MOST_READ: usize = 64 * 1024;
/// Letters of it that are repeated.
const MOST_SAID: usize = 300;

/// A text that must be there, with templates and secrets inside.
pub(super) fn text(fields: &mut Fields<'_>, name: &'static str, check: &mut Check) -> Option<Value> {
    let text = Value::String(fields.text(name, &mut check.problems)?.to_owned());
    check.templates_with_secrets(&text, &fields.at(name)).then_some(text)
}

/// A text, where it is there.
pub(super) fn optional_text(fields: &mut Fields<'_>, name: &'static str, check: &mut Check) -> Option<Value> {
    if fields.value(name).is_some() { text(fields, name, check) } else { None }
}

/// Any value, where it is there.
pub(super) fn optional(fields: &mut Fields<'_>, name: &'static str, check: &mut Check) -> Option<Value> {
    let value = fields.value(name)?;
    check.templates_with_secrets(value, &fields.at(name)).then(|| value.clone())
}

/// An object, where it is there.
pub(super) fn object(fields: &mut Fields<'_>, name: &'static str, check: &mut Check) -> Option<Value> {
    if !fields.value(name)?.is_object() {
        check.note(
            FieldError::new(fields.at(name), "type", "must be an object").suggest("{\"name\": \"value\"}"),
        );
        return None;
    }
    optional(fields, name, check)
}

/// Names that can be sent, and none that belongs to the connection.
pub(super) fn check_headers(headers: Option<&Value>, at: &str, check: &mut Check) {
    for (name, value) in headers.and_then(Value::as_object).into_iter().flatten() {
        let pointer = format!("{at}/{}", escape(name));
        if !value.is_string() && !value.is_number() {
            let problem = FieldError::new(pointer.clone(), "type", "must be a string");
            check.note(problem.suggest(format!("\"{name}\": \"…\"")));
        }
        if net::header::HeaderName::try_from(name).is_err() {
            let problem = FieldError::new(pointer, "header", "is no name of a header");
            check.note(problem.suggest("letters, digits and hyphens, such as X-Request-Source"));
        } else if Request::is_of_connection(name) {
            let problem = FieldError::new(pointer, "header", format!("'{name}' belongs to the connection"));
            check.note(problem.suggest(format!("leave '{name}' out")));
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
    pub(super) fn has_secret_under(&self, pointers: &[&str]) -> bool {
        let under = |hole: &Hole| pointers.iter().any(|pointer| hole.pointer.starts_with(pointer));
        self.holes.iter().any(under)
    }
}

/// Asks the vault for the secrets of an input, and puts them in. From then on the run says none of them.
pub(super) async fn reveal(input: Value, call: &Call<'_>) -> Result<Revealed, NodeError> {
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
    if ["/url", "/webhook_url", "/dsn"].contains(&hole.pointer.as_str()) && hole.at > 0 {
        return percent_encoded(secret);
    }
    // Whoever pastes a secret brings the end of its line along.
    secret.trim_end_matches(['\r', '\n']).to_owned()
}

/// An address; the error does not repeat it.
pub(crate) fn address(text: &str) -> Result<Url, NodeError> {
    let refused = |why: String| NodeError::new(ErrorCode::EgressRefused, why);
    let url = Url::parse(text.trim()).map_err(|error| refused(format!("the url is no address: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused(format!("'{}:' is neither http nor https", url.scheme())));
    }
    Ok(url)
}

/// Adds a header; the error names it and not what it says.
pub(crate) fn header(request: Request, name: &str, value: &str) -> Result<Request, NodeError> {
    let bad = |_| {
        NodeError::failed(format!("the header '{name}' cannot be sent: it has a line break or no letters"))
    };
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
pub(super) async fn refusal(answer: Response, call: &Call<'_>) -> NodeError {
    refused(answer, call.clock(), call.redactor()).await
}

/// The same outside of a node.
pub(crate) async fn refused(answer: Response, clock: &dyn Clock, redactor: &Redactor) -> NodeError {
    let status = answer.status().as_u16();
    let place = answer.place().to_owned();
    let wait = retry_after(answer.headers(), clock.now());
    // Cut behind the masks: half a secret would be no secret to look for.
    let said = redactor.text(answer.excerpt(MOST_READ).await);
    let said: String =
        said.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MOST_SAID).collect();
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    let error = NodeError::failed(format!("{place} answered {status}{said}"));
    let retryable = matches!(status, 408 | 425 | 429 | 500..=599);
    NodeError { retryable, retry_after: wait.filter(|_| retryable), ..error }
}
