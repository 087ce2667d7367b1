//! The HTTP edge: a handler extracts, makes one call and maps the result.

mod admin;
mod alias;
mod answered;
mod app;
mod apps;
mod auth;
mod body;
mod change;
mod chat;
mod client_end;
mod cookies;
mod cors;
mod credentials;
mod datasets;
mod diagnosis;
mod edge;
mod error;
mod etag;
mod events;
mod fields;
mod guard;
mod health;
mod idempotency;
mod indexes;
mod interim;
mod nodes;
mod origin;
mod pages;
mod paging;
mod paths;
mod place;
mod query;
mod range;
mod refused;
mod request_id;
mod routes;
mod runs;
mod session;
mod surplus;
mod thread_ids;
mod tls_ask;
mod trainings;
mod triggers;
mod workflows;
mod workspaces;
mod ws;

use actix_web::body::MessageBody;
use actix_web::dev::{HttpServiceFactory, ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::middleware::from_fn;
use actix_web::web::PathConfig;
use actix_web::{HttpRequest, HttpResponse, web};
use kernel::timestamp as time;

pub(crate) use answered::Answered;
pub(crate) use app::{App, AppParts, AppServices};
pub(crate) use apps::BundleUploads;
pub(crate) use auth::Keys as SignInKeys;
pub(crate) use client_end::ClientEnd;
pub(crate) use edge::header_lines;
use error::{ApiError, ApiResult};
pub(crate) use guard::{Gate, GateParts};
pub(crate) use interim::Interim;
pub(crate) use refused::{Refusal, Unreadable};
pub(crate) use surplus::Surplus;
use wire::ErrorCode;

/// The application with all routes.
pub(crate) fn application(
    app: App,
) -> actix_web::App<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody>,
        Error = actix_web::Error,
        InitError = (),
    >,
> {
    let domain = app.config().apps.domain.clone();
    actix_web::App::new()
        .app_data(guard::shared(app))
        .app_data(PathConfig::default().error_handler(|_, _| ApiError::new(ErrorCode::RouteNotFound).into()))
        .wrap(from_fn(edge::middleware))
        // First, because a page of an app must not pass for ours on an open service.
        .service(alias::scope(&domain))
        .service(central())
        .default_service(web::to(without_path))
}

/// Handles a target that is not a path, such as `*` with OPTIONS.
async fn without_path(app: guard::Anyone, request: HttpRequest) -> ApiResult<HttpResponse> {
    match alias::without_path(&app, &request).await {
        Some(answer) => Ok(answer),
        None if *request.method() == Method::OPTIONS => Err(routes::no_method_of_the_service()),
        None => not_found(request).await,
    }
}

/// Everything outside the apps domain.
fn central() -> impl HttpServiceFactory {
    web::scope("")
        .wrap(from_fn(cors::middleware))
        // Resources are tried in this order, and chat requests are the most frequent.
        .configure(chat::routes)
        .configure(health::routes)
        .configure(diagnosis::routes)
        .configure(tls_ask::routes)
        .configure(workflows::routes)
        .configure(runs::routes)
        .configure(trainings::routes)
        .configure(datasets::routes)
        .configure(apps::routes)
        .configure(triggers::routes)
        .configure(nodes::routes)
        .configure(indexes::routes)
        .configure(workspaces::routes)
        .configure(credentials::routes)
        .configure(admin::routes)
        .configure(auth::routes)
        .configure(ws::routes)
        .configure(pages::routes)
        .default_service(web::to(not_found))
}

async fn not_found(request: HttpRequest) -> ApiResult<HttpResponse> {
    let error = ApiError::new(ErrorCode::RouteNotFound);
    Err(match paths::near(request.path()) {
        Some(near) => error.with_message(format!("There is nothing at this path; did you mean {near}?")),
        None => error,
    })
}
