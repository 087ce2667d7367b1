//! `http_request`: sends a request to an address that the graph names, and returns the response.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kernel::json::{Numbers, check_numbers};
use minijinja::Value as View;
use net::header::{CONTENT_TYPE, HeaderMap};
use net::{Limits, Method, NetError, Request, Response, Url};
use serde_json::{Map, Value, json};
use std::time::Duration;
use wire::{ErrorCode, FieldError};

use crate::NodeError;
use crate::check::Check;
use crate::credentials::fill_fields;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::outbound::{self, Revealed};
use crate::template::as_text;

/// Default time limit per attempt.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum response body bytes.
const MOST_BODY: u64 = 4 * 1024 * 1024;
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

pub(crate) const TYPE: NodeType = NodeType {
    name: "http_request",
    group: "network",
    summary: "Sends an HTTP request. `[[name]]` in url, headers, query, json and body is a secret of the vault.",
    effect: Effect::Outbound,
    secrets: &["url", "headers", "query", "json", "body"],
    schema,
    result: "`{status, headers, json}` for a JSON response, else `{status, headers, text}`; bytes that are not text are \
             in `base64`.",
    members: &["status", "headers", "json", "text", "base64"],
    example: || {
        json!({"name": "charge", "type": "http_request", "method": "POST", "url": "https://api.example.com/v1/charges",
               "headers": {"X-Team": "support"}, "json": {"amount": "{{ inputs.amount }}"}, "timeout_seconds": 20,
               "retry": {"max_attempts": 3}, "idempotent": true})
    },
    build,
};

struct HttpRequest {
    method: Method,
    url: Value,
    headers: Option<Value>,
    query: Option<Value>,
    json: Option<Value>,
    body: Option<Value>,
    fail_on_status: bool,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["url"], "properties": {
        "method": {"enum": METHODS, "default": "GET", "description": "HTTP method."},
        "url": {"type": "string",
                "description": "An http or https address of a public host; a template. A `[[name]]` at the beginning is used \
                                as an address; after it a secret is escaped for its position."},
        "headers": {"type": "object", "additionalProperties": {"type": "string"},
                    "description": "Headers; values are templates. `Idempotency-Key` is added unless given."},
        "query": {"type": "object",
                  "description": "Query parameters, appended to those of `url`; strings are templates; each entry of a list becomes a parameter."},
        "json": {"description": "The body as JSON; strings inside are templates."},
        "body": {"type": "string", "description": "The body as text; a template."},
        "fail_on_status": {"type": "boolean", "default": true,
                           "description": "Whether a status of 400 or more fails the node."}},
        "not": {"required": ["json", "body"]}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let method = fields.word("method", &METHODS, &mut check.problems).unwrap_or("GET");
    let url = outbound::url(fields, "url", check);
    let headers = outbound::object(fields, "headers", check);
    outbound::check_headers(headers.as_ref(), &fields.at("headers"), check);
    let query = outbound::object(fields, "query", check);
    let json = outbound::optional(fields, "json", check);
    let body = outbound::optional_text(fields, "body", check);
    let bodiless = ["GET", "HEAD"].contains(&method);
    for name in ["json", "body"] {
        let given = if name == "json" { json.is_some() } else { body.is_some() };
        if given && bodiless {
            let problem = FieldError::new(fields.at(name), "body", format!("{method} has no body"));
            check.note(problem.suggest("\"method\": \"POST\", or `query` for parameters"));
        }
    }
    if json.is_some() && body.is_some() {
        let problem = FieldError::new(fields.at("body"), "body", "only one body is allowed: json or body");
        check.note(problem.suggest("remove one of them"));
    }
    let fail_on_status = fields.boolean("fail_on_status", &mut check.problems).unwrap_or(true);
    let method = Method::from_bytes(method.as_bytes()).ok()?;
    Some(Box::new(HttpRequest { method, url: url?, headers, query, json, body, fail_on_status }))
}

#[async_trait]
impl Node for HttpRequest {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let fields = [
            ("url", Some(&self.url)),
            ("headers", self.headers.as_ref()),
            ("query", self.query.as_ref()),
            ("json", self.json.as_ref()),
            ("body", self.body.as_ref()),
        ];
        fill_fields(fields, scope)
    }

    /// Omits the response headers: they cost tokens and do not help a model. The trace has them.
    fn for_model(&self, mut result: Value) -> Value {
        if let Some(members) = result.as_object_mut() {
            members.shift_remove("headers");
        }
        result
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let fields = outbound::reveal(input, call).await?;
        let request = self.request(&fields, call)?;
        let limits = Limits {
            body_bytes: MOST_BODY,
            total: None,
            // A redirect to another host drops the headers but keeps the body.
            redirects: if fields.has_secret_under(&["/json", "/body"]) { 0 } else { 3 },
            ..Limits::default()
        };
        let answer = call.outbound().send(request, &limits).await.map_err(|error| fault(&error))?;
        if self.fail_on_status && answer.status().as_u16() >= 400 {
            return Err(outbound::refusal(answer, call).await.into());
        }
        Ok(self.result(answer).await?)
    }

    fn is_idempotent(&self) -> bool {
        self.only_reads()
    }

    fn only_reads(&self) -> bool {
        self.method == Method::GET || self.method == Method::HEAD
    }

    fn timeout(&self) -> Option<Duration> {
        Some(TIMEOUT)
    }
}

impl HttpRequest {
    fn request(&self, fields: &Revealed, call: &Call<'_>) -> Result<Request, NodeError> {
        let mut url = outbound::address(fields.text("url").unwrap_or_default())?;
        if let Some(query) = fields.get("query").and_then(Value::as_object) {
            add_query(&mut url, query);
        }
        let mut request = Request::new(self.method.clone(), url.as_str());
        let headers = fields.get("headers").and_then(Value::as_object);
        let mut given: Vec<String> = Vec::new();
        for (name, value) in headers.into_iter().flatten() {
            given.push(name.to_ascii_lowercase());
            request = outbound::header(request, name, &as_text(value))?;
        }
        let is_given = |name: &str| given.iter().any(|given| given == name);
        if !is_given("idempotency-key") {
            request = outbound::header(request, "Idempotency-Key", &call.idempotency_key())?;
        }
        if !is_given("user-agent") {
            request = outbound::header(request, "User-Agent", outbound::USER_AGENT)?;
        }
        let (kind, body) = match (fields.get("json"), fields.text("body")) {
            (Some(json), _) => ("application/json", json.to_string()),
            (None, Some(text)) => ("text/plain; charset=utf-8", text.to_owned()),
            (None, None) => return Ok(request),
        };
        if !is_given("content-type") {
            request = outbound::header(request, "Content-Type", kind)?;
        }
        Ok(request.body(body))
    }

    async fn result(&self, answer: Response) -> Result<Value, NodeError> {
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let body = answer.bytes().await.map_err(|error| fault(&error))?;
        let mut result = json!({"status": status, "headers": read_headers(&headers)});
        let (name, value) = if let Some(json) = read_json(&headers, &body)? {
            ("json", json)
        } else {
            match std::str::from_utf8(&body) {
                Ok(text) => ("text", Value::String(text.to_owned())),
                Err(_) => ("base64", Value::String(STANDARD.encode(&body))),
            }
        };
        if let Some(members) = result.as_object_mut() {
            members.insert(name.to_owned(), value);
        }
        Ok(result)
    }
}

/// Adds parameters; null adds none, and each list entry adds one.
fn add_query(url: &mut Url, query: &Map<String, Value>) {
    let mut pairs = url.query_pairs_mut();
    for (name, value) in query {
        match value {
            Value::Null => {}
            Value::Array(items) => {
                pairs.extend_pairs(items.iter().map(|item| (name, as_text(item))));
            }
            other => {
                pairs.append_pair(name, &as_text(other));
            }
        }
    }
    drop(pairs);
    if url.query() == Some("") {
        url.set_query(None);
    }
}

/// Names in lower case; repeated headers are joined as in RFC 9110.
fn read_headers(headers: &HeaderMap) -> Value {
    let mut read = Map::new();
    for name in headers.keys() {
        let values = headers.get_all(name).iter();
        let values: Vec<_> = values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        read.insert(name.as_str().to_owned(), Value::String(values.join(", ")));
    }
    Value::Object(read)
}

/// Parses the body if it is JSON; a number that would be rounded is an error.
fn read_json(headers: &HeaderMap, body: &[u8]) -> Result<Option<Value>, NodeError> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()?.split(';').next());
    let kind = kind.unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = kind == "application/json" || kind.ends_with("+json");
    let Some(json) = is_json.then(|| serde_json::from_slice(body).ok()).flatten() else { return Ok(None) };
    check_numbers(body, Numbers::Values)
        .map_err(|error| NodeError::failed(format!("in the response, {error}")))?;
    Ok(Some(json))
}

fn fault(error: &NetError) -> NodeError {
    let fault = outbound::fault(error);
    let too_large = error.kind == net::NetErrorKind::TooLarge;
    if too_large { NodeError { code: ErrorCode::NodeResultTooLarge, ..fault } } else { fault }
}
