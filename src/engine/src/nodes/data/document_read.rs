//! `document_read`: fetches a document and yields what it says.

use std::time::Duration;

use async_trait::async_trait;
use minijinja::Value as View;
use net::header::{CONTENT_TYPE, HeaderMap};
use serde_json::{Value, json};

use crate::NodeError;
use crate::check::Check;
use crate::credentials::fill_fields;
use crate::document::{self, Format, MOST_BYTES, MOST_PAGES};
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::outbound;

/// Limit of one attempt unless the graph says otherwise: fetching it, and reading it.
const TIMEOUT: Duration = Duration::from_secs(90);

pub(crate) const TYPE: NodeType = NodeType {
    name: "document_read",
    group: "data",
    summary: "Fetches a document and returns its text: plain text, Markdown, CSV, HTML, PDF or DOCX of at most 10 MiB. \
              `[[name]]` in url and headers is a secret of the vault.",
    effect: Effect::Reads,
    secrets: &["url", "headers"],
    schema,
    result: "`{text}`, for a PDF `{text, pages}`: the number of pages; the text has a form feed between pages. Markdown and \
             CSV are returned unchanged, HTML and DOCX as plain text by paragraph.",
    members: &["text", "pages"],
    example: || {
        json!({"name": "handbook", "type": "document_read", "url": "https://example.com/handbook.pdf",
               "retry": {"max_attempts": 3}})
    },
    build,
};

struct DocumentRead {
    url: Value,
    headers: Option<Value>,
    format: Option<Format>,
}

fn schema() -> Value {
    let pages =
        format!("Format of the document (default: detected). A PDF may have at most {MOST_PAGES} pages.");
    json!({"type": "object", "required": ["url"], "properties": {
        "url": {"type": "string", "description": "An http or https address of a public host; a template."},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Texts; templates."},
        "format": {"enum": Format::NAMES, "description": pages}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    fields.refuse_later(&["attachment"], &mut check.problems);
    let url = outbound::url(fields, "url", check);
    let headers = outbound::object(fields, "headers", check);
    outbound::check_headers(headers.as_ref(), &fields.at("headers"), check);
    let format = fields.word("format", &Format::NAMES, &mut check.problems).and_then(Format::named);
    Some(Box::new(DocumentRead { url: url?, headers, format }))
}

#[async_trait]
impl Node for DocumentRead {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        fill_fields([("url", Some(&self.url)), ("headers", self.headers.as_ref())], scope)
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let fields = outbound::reveal(input, call).await?;
        let url = outbound::address(fields.text("url").unwrap_or_default())?;
        let answer = outbound::get(&fields, MOST_BYTES, call).await?;
        let (kind, charset) = media_type(answer.headers());
        let bytes = document::bytes_of(answer).await?;
        let format = match self.format {
            Some(format) => format,
            None => document::of(&bytes, kind.as_deref(), url.path())?,
        };
        let read = document::read(bytes, format, charset, call.sandbox()).await?;
        let mut result = json!({"text": read.text});
        if let (Some(pages), Some(members)) = (read.pages, result.as_object_mut()) {
            members.insert("pages".to_owned(), json!(pages));
        }
        Ok(result)
    }

    fn timeout(&self) -> Option<Duration> {
        Some(TIMEOUT)
    }
}

/// The media type of an answer without its parameters, and its charset.
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
