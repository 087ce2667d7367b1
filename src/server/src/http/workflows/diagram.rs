//! Diagrams of a version.

use actix_web::http::header::{ContentType, ETAG};
use actix_web::web::{self, Path};
use actix_web::{HttpRequest, HttpResponse};
use ring::digest::{Context, SHA256};
use store::{StoredVersion, StoredWorkflow};
use wire::ErrorCode;

use super::versions::find;
use crate::http::error::{ApiError, ApiResult};
use crate::http::etag;
use crate::http::guard::{Caller, WorkflowsRead};
use crate::http::query::Params;

/// Incremented when the same graph is drawn differently, so that no client keeps an old image.
const STYLE: &str = "1";
/// Keeps browsers from executing or loading anything in the image.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'; sandbox";

pub(super) async fn svg(
    caller: Caller<WorkflowsRead>,
    path: Path<(String, String)>,
    request: HttpRequest,
) -> ApiResult<HttpResponse> {
    let (workflow, version) = found(&caller, path, &request).await?;
    let title = match version.number {
        Some(number) => format!("{}, version {number}", workflow.name),
        None => format!("{}, draft", workflow.name),
    };
    let tag = tag("svg", &version, &title);
    if etag::is_known(&request, &tag) {
        return Ok(not_modified(&tag));
    }
    let graph = parsed(&version)?;
    // Drawing a large graph takes a while, and the worker must serve other requests.
    let drawn = web::block(move || diagram::svg(&graph, &title)).await;
    let drawn = drawn.map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))?;
    let svg = drawn.map_err(|_| ApiError::new(ErrorCode::DiagramTooLarge))?;
    Ok(answer("image/svg+xml", &tag).insert_header(("Content-Security-Policy", POLICY)).body(svg))
}

pub(super) async fn mermaid(
    caller: Caller<WorkflowsRead>,
    path: Path<(String, String)>,
    request: HttpRequest,
) -> ApiResult<HttpResponse> {
    let (_, version) = found(&caller, path, &request).await?;
    let tag = tag("mmd", &version, "");
    if etag::is_known(&request, &tag) {
        return Ok(not_modified(&tag));
    }
    let text = diagram::mermaid(&parsed(&version)?);
    Ok(answer(&ContentType::plaintext().to_string(), &tag).body(text))
}

async fn found(
    caller: &Caller<WorkflowsRead>,
    path: Path<(String, String)>,
    request: &HttpRequest,
) -> ApiResult<(StoredWorkflow, StoredVersion)> {
    let (name, number) = path.into_inner();
    let workflow = caller.workflow(&name).await?;
    let version = find(caller, &workflow, &number).await?;
    ApiError::refuse(Params::from_request(request).finish())?;
    Ok((workflow, version))
}

fn parsed(version: &StoredVersion) -> ApiResult<engine::Graph> {
    engine::parse(&version.graph).map_err(|problems| {
        let first = problems.into_iter().next().map(|problem| problem.message).unwrap_or_default();
        let cause = format!("the graph of version {} cannot be read: {first}", version.id);
        ApiError::new(ErrorCode::Internal).with_cause(cause)
    })
}

/// The ETag of everything that the image depends on.
fn tag(kind: &str, version: &StoredVersion, title: &str) -> String {
    let mut context = Context::new(&SHA256);
    for part in [STYLE.as_bytes(), kind.as_bytes(), version.digest.as_slice(), title.as_bytes()] {
        context.update(part);
        context.update(b"\n");
    }
    format!("\"{}\"", hex::encode(context.finish().as_ref().get(..16).unwrap_or_default()))
}

fn not_modified(tag: &str) -> HttpResponse {
    HttpResponse::NotModified()
        .insert_header((ETAG, tag))
        .insert_header(("Cache-Control", "no-cache"))
        .finish()
}

fn answer(kind: &str, tag: &str) -> actix_web::HttpResponseBuilder {
    let mut answer = HttpResponse::Ok();
    answer
        .insert_header(("Content-Type", kind))
        .insert_header((ETAG, tag))
        .insert_header(("Cache-Control", "no-cache"))
        .insert_header(("X-Content-Type-Options", "nosniff"));
    answer
}
