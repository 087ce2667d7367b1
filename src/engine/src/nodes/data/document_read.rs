//! `document_read`: returns the text of a document at an address, or of an attachment.

use std::time::Duration;

use async_trait::async_trait;
use minijinja::Value as View;
use net::header::{CONTENT_TYPE, HeaderMap};
use sandbox::DocumentText;
use serde_json::{Value, json};
use wire::FieldError;

use crate::NodeError;
use crate::check::Check;
use crate::credentials::fill_fields;
use crate::document::{self, Format, MOST_BYTES, MOST_PAGES};
use crate::execute::ports::attachment_not_found;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::outbound;
use crate::template::fill;

/// Default time limit per attempt, to fetch and read the document.
const TIMEOUT: Duration = Duration::from_secs(90);

pub(crate) const TYPE: NodeType = NodeType {
    name: "document_read",
    group: "data",
    summary: "Returns the text of a document: plain text, Markdown, CSV, HTML, PDF or DOCX of at most 10 MiB, at an address or \
              attached to a message. `[[name]]` in url and headers is a secret of the vault.",
    effect: Effect::Reads,
    secrets: &["url", "headers"],
    schema,
    result: "`{text}`, for a PDF `{text, pages}`: the number of pages; the text has a form feed between pages. Markdown and \
             CSV are returned unchanged, HTML and DOCX as plain text by paragraph. For an attachment also `name`, the file's \
             name.",
    members: &["text", "pages", "name"],
    example: || {
        json!({"name": "handbook", "type": "document_read", "url": "https://example.com/handbook.pdf",
               "retry": {"max_attempts": 3}})
    },
    build,
};

struct DocumentRead {
    source: DocumentSource,
    format: Option<Format>,
}

enum DocumentSource {
    Address { url: Value, headers: Option<Value> },
    Attachment(Value),
}

fn schema() -> Value {
    let pages =
        format!("Format of the document (default: detected). A PDF may have at most {MOST_PAGES} pages.");
    json!({"type": "object", "oneOf": [{"required": ["url"]}, {"required": ["attachment"]}], "properties": {
        "url": {"type": "string", "description": "An http or https address of a public host; a template."},
        "attachment": {"type": ["string", "object"],
                       "description": "The id of an attachment of the run's thread, or an object with it as `id`; a template."},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Texts; templates."},
        "format": {"enum": Format::NAMES, "description": pages}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let source =
        if fields.value("attachment").is_some() { attachment(fields, check) } else { address(fields, check) };
    let format = fields.word("format", &Format::NAMES, &mut check.problems).and_then(Format::named);
    Some(Box::new(DocumentRead { source: source?, format }))
}

fn address(fields: &mut Fields<'_>, check: &mut Check) -> Option<DocumentSource> {
    let url = outbound::url(fields, "url", check);
    let headers = outbound::object(fields, "headers", check);
    outbound::check_headers(headers.as_ref(), &fields.at("headers"), check);
    Some(DocumentSource::Address { url: url?, headers })
}

fn attachment(fields: &mut Fields<'_>, check: &mut Check) -> Option<DocumentSource> {
    for other in ["url", "headers"] {
        if fields.value(other).is_some() {
            let message = "cannot be combined with 'attachment': the node reads one document";
            check.note(
                FieldError::new(fields.at(other), "conflict", message).suggest(format!("remove '{other}'")),
            );
        }
    }
    let named = fields.value("attachment")?.clone();
    let id = named.as_str().or_else(|| named.get("id").and_then(Value::as_str));
    if id.is_none() {
        let message = "must be the id of an attachment, or an object with one";
        let problem = FieldError::new(fields.at("attachment"), "type", message);
        check.note(problem.suggest(r#""attachment": "{{ inputs.attachments[0].id }}""#));
        return None;
    }
    check.templates(&named, &fields.at("attachment")).then_some(DocumentSource::Attachment(named))
}

#[async_trait]
impl Node for DocumentRead {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        match &self.source {
            DocumentSource::Address { url, headers } => {
                fill_fields([("url", Some(url)), ("headers", headers.as_ref())], scope)
            }
            DocumentSource::Attachment(named) => {
                let named = fill(named, scope)?;
                let id = named.as_str().or_else(|| named.get("id").and_then(Value::as_str));
                let id = id.ok_or_else(|| {
                    NodeError::failed("'attachment' is not the id of an attachment".to_owned())
                })?;
                Ok(json!({"attachment": id}))
            }
        }
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        if let Some(id) = input.get("attachment").and_then(Value::as_str) {
            return Ok(self.attached(id, call).await?);
        }
        let fields = outbound::reveal(input, call).await?;
        let url = outbound::address(fields.text("url").unwrap_or_default())?;
        let answer = outbound::get(&fields, MOST_BYTES, call).await?;
        let (kind, charset) = media_type(answer.headers());
        let bytes = document::bytes_of(answer).await?;
        let format = match self.format {
            Some(format) => format,
            None => document::detect(&bytes, kind.as_deref(), url.path())?,
        };
        Ok(result(document::read(bytes, format, charset, call.sandbox()).await?, None))
    }

    fn timeout(&self) -> Option<Duration> {
        Some(TIMEOUT)
    }
}

impl DocumentRead {
    /// Reads an attachment in the run's thread.
    async fn attached(&self, id: &str, call: &Call<'_>) -> Result<Value, NodeError> {
        let found = call.attachments().find(&[id]).await?;
        let file = found.into_iter().next().ok_or_else(|| attachment_not_found(id))?;
        if file.size > MOST_BYTES {
            return Err(document::too_large(&format!("it has more than {MOST_BYTES} bytes")));
        }
        let _room = call.attachments().room(file.size).await;
        let bytes = call.attachments().bytes(&file, file.size).await?;
        let format = match self.format {
            Some(format) => format,
            None => document::detect(&bytes, Some(&file.mime_type), &file.name)?,
        };
        let read = document::read(bytes, format, None, call.sandbox()).await?;
        Ok(result(read, Some(file.name)))
    }
}

fn result(read: DocumentText, name: Option<String>) -> Value {
    let mut result = json!({"text": read.text});
    if let Some(members) = result.as_object_mut() {
        members.extend(read.pages.map(|pages| ("pages".to_owned(), json!(pages))));
        members.extend(name.map(|name| ("name".to_owned(), Value::String(name))));
    }
    result
}

/// Returns a response's media type without parameters, and its charset.
fn media_type(headers: &HeaderMap) -> (Option<String>, Option<String>) {
    let Some(said) = headers.get(CONTENT_TYPE).and_then(|said| said.to_str().ok()) else {
        return (None, None);
    };
    let mut parts = said.split(';');
    let kind = parts.next().map(|kind| kind.trim().to_ascii_lowercase()).filter(|kind| !kind.is_empty());
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"').to_owned())
    });
    (kind, charset)
}
