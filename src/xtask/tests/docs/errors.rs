//! `docs/ERRORS.md`: a section for each `wire::ErrorCode`.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use serde_json::json;
use wire::chat::{ChatEvent, ChatRequest};
use wire::{ErrorBody, ErrorCode, FieldError};

pub(super) fn page() -> Result<String> {
    let mut page = intro()?;
    page.push_str("## Overview\n\n| code | status | message |\n|---|---|---|\n");
    for code in ErrorCode::ALL {
        let name = code.as_str();
        writeln!(page, "| [`{name}`](#{name}) | {} | {} |", status(*code), code.message())?;
    }
    for code in ErrorCode::ALL {
        let name = code.as_str();
        write!(page, "\n<a id=\"{name}\"></a>\n\n## `{name}`\n\n")?;
        writeln!(page, "- Status: {}", status_in_words(*code))?;
        writeln!(page, "- Message: {}", code.message())?;
        writeln!(page, "- When: {}", code.when())?;
        writeln!(page, "- What to do: {}", code.help())?;
        writeln!(page, "- A retry may help: {}", if code.retry_may_help() { "yes" } else { "no" })?;
    }
    Ok(page)
}

/// Links to the overview and to each group's first code.
fn contents() -> String {
    let mut groups: Vec<&str> = Vec::new();
    let mut list = "- [Overview of all codes](#overview)".to_owned();
    for code in ErrorCode::ALL {
        let name = code.as_str();
        let group = name.split_once('.').map_or("hosted apps", |(group, _)| group);
        if !groups.contains(&group) {
            groups.push(group);
            // Writing to a String cannot fail.
            let _ = write!(list, "\n- [`{group}`](#{name})");
        }
    }
    list
}

fn status(code: ErrorCode) -> String {
    match code.status() {
        200 => "in the stream".to_owned(),
        status => status.to_string(),
    }
}

fn status_in_words(code: ErrorCode) -> String {
    match code.status() {
        200 => "none; the code is in an `error` event of a stream or in a run's record".to_owned(),
        status => status.to_string(),
    }
}

fn intro() -> Result<String> {
    let mut invalid = ErrorBody::new(ErrorCode::ChatInvalidRequest);
    invalid.detail.errors = problems()?;
    let mut internal = ErrorBody::new(ErrorCode::Internal);
    internal.detail.request_id = Some("0198c2f0-7a51-7cc3-9d41-2f1b6a7e0c35".to_owned());
    Ok(format!(
        "<!-- Written by `cargo xtask docs` from src/wire/src/error_code/table.rs. Change it there. -->

# Errors

{contents}

Every error response has the same body: an object `detail` with a `message` for people and a `code`
for programs. Compare codes, never messages: a code keeps its meaning, the wording of a message may change.

A request that does not validate lists every problem in `detail.errors`. Each has a JSON pointer (RFC 6901) to the
value in the body (or to the query parameter or header of that name), its own code, a message, and, if possible, a suggestion:

```json
{invalid}
```

An error of the service itself has a `request_id`. The log has the cause under the same id. Every response has it
in the header `X-Request-Id` too.

```json
{internal}
```

Statuses 429 and 503 have the header `Retry-After`, in seconds.

After a chat stream has started, its status stays 200. A turn that fails ends with an `error` event, and `error_code`
is the code. `allow_retry` is true only if the same message may succeed a second time:

```json
{event}
```

An absent field is not set; clients ignore unknown fields.

",
        contents = contents(),
        invalid = serde_json::to_string_pretty(&invalid)?,
        internal = serde_json::to_string_pretty(&internal)?,
        event = serde_json::to_string_pretty(&ChatEvent::failure(ErrorCode::NodeTimeout, true))?,
    ))
}

/// The service's field errors for a request with two mistakes.
fn problems() -> Result<Vec<FieldError>> {
    let body = json!({"type": "threads.add_user_message",
                      "params": {"input": {"content": [{"type": "text", "text": "Hello"}]}}});
    let body = body.as_object().context("the example is not an object")?;
    ChatRequest::parse(body).err().context("the example has no mistake")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_section() {
        let page = page().unwrap();
        for code in ErrorCode::ALL {
            let anchor = format!("<a id=\"{}\"></a>", code.as_str());
            assert_eq!(page.matches(&anchor).count(), 1, "{anchor}");
            assert!(page.contains(code.help()) && page.contains(code.when()));
        }
    }
}
