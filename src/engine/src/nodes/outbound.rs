//! What nodes that call out have in common: fields with secrets, requests, and what refusals mean.

use kernel::Secret;
use net::{NetError, Request, Response, Url};
use serde_json::Value;
use wire::{ErrorCode, FieldError};

use super::Call;
use crate::NodeError;
use crate::check::Check;
use crate::credentials::{Hole, put_in, read_input};
use crate::graph::fields::Fields;
use crate::models::openai::refusal::retry_after;
use crate::redact::percent_encoded;

/// Who calls.
pub(super) const USER_AGENT: &str = concat!("Callboard/", env!("CARGO_PKG_VERSION"));
/// Bytes of a refusal's body that are looked at.
const MOST_READ: usize = 64 * 1024;
/// Letters of it that are repeated.
const MOST_SAID: usize = 300;

/// A text that must be there, with templates and secrets inside.
pub(super) fn text(fields: &mut Fields<'_>, name: &'static str, check: &mut Check) -> Option<Value> {
    let text = Value::String(fields.text(name, &mut check.problems)?.to_owned());
    check.templates_with_secrets(&text, &fields.at(name)).then_some(text)
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

/// Fields with their secrets in them: for the call alone, and nothing that prints.
pub(super) struct Revealed {
    fields: Value,
    holes: Vec<Hole>,
}

impl Revealed {
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.fields.get(name)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
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
    let (mut fields, holes) = read_input(input)?;
    let mut names: Vec<String> = holes.iter().map(|hole| hole.name.clone()).collect();
    names.sort_unstable();
    names.dedup();
    let secrets = if names.is_empty() { Vec::new() } else { call.secrets(&names).await? };
    let secret = |name: &str| -> Option<Secret> {
        let place = names.iter().position(|known| known == name)?;
        secrets.get(place).cloned()
    };
    put_in(&mut fields, &holes, secret, spelt)?;
    Ok(Revealed { fields, holes })
}

/// A secret inside an address is escaped, unless the address begins with it.
fn spelt(hole: &Hole, secret: &str) -> String {
    if hole.pointer == "/url" && hole.at > 0 {
        percent_encoded(secret)
    } else {
        secret.trim_end_matches(['\r', '\n']).to_owned()
    }
}

/// An address; the error does not repeat it.
pub(super) fn address(text: &str) -> Result<Url, NodeError> {
    let refused = |why: String| NodeError::new(ErrorCode::EgressRefused, why);
    let url = Url::parse(text.trim()).map_err(|error| refused(format!("the url is no address: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused(format!("'{}:' is neither http nor https", url.scheme())));
    }
    Ok(url)
}

/// Adds a header; the error names it and not what it says.
pub(super) fn header(request: Request, name: &str, value: &str) -> Result<Request, NodeError> {
    let bad = |_| {
        NodeError::failed(format!("the header '{name}' cannot be sent: it has a line break or no letters"))
    };
    request.header(name, value).map_err(bad)
}

/// Why no answer came.
pub(super) fn fault(error: &NetError) -> NodeError {
    let (code, message) = (error.kind.code(), error.message.clone());
    if error.kind.is_retryable() {
        NodeError::retryable(code, message)
    } else {
        NodeError::new(code, message)
    }
}

/// What an answer that says no means. Whether another attempt may go well is a matter of its status.
pub(super) async fn refusal(answer: Response, call: &Call<'_>) -> NodeError {
    let status = answer.status().as_u16();
    let place = answer.place().to_owned();
    let wait = retry_after(answer.headers(), call.clock().now());
    // Cut behind the masks: half a secret would be no secret to look for.
    let said = call.redacted(answer.excerpt(MOST_READ).await);
    let said: String =
        said.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MOST_SAID).collect();
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    let error = NodeError::failed(format!("{place} answered {status}{said}"));
    let retryable = matches!(status, 408 | 425 | 429 | 500..=599);
    NodeError { retryable, retry_after: wait.filter(|_| retryable), ..error }
}
