//! The HTTP edge: a handler extracts, makes one call and maps the answer.

mod app;
mod body;
mod chat;
mod cors;
mod error;
mod extract;
mod health;
mod request_id;
mod workflows;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::from_fn;
use actix_web::{HttpResponse, web};

pub(crate) use app::{App, AppParts};
use error::{ApiError, ApiResult};
use wire::ErrorCode;

/// Every route.
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
    actix_web::App::new()
        .app_data(web::Data::new(app))
        .wrap(from_fn(cors::middleware))
        .wrap(from_fn(request_id::middleware))
        .configure(health::routes)
        .configure(workflows::routes)
        .configure(chat::routes)
        .default_service(web::to(not_found))
}

async fn not_found() -> ApiResult<HttpResponse> {
    Err(ApiError::new(ErrorCode::RouteNotFound))
}

/// A resource that answers other methods with 405 and says which it takes.
fn resource(path: &str, allow: &'static str) -> actix_web::Resource {
    web::resource(path).default_service(web::to(move || async move {
        let refused = ApiError::new(ErrorCode::MethodNotAllowed).with_header("Allow", allow);
        ApiResult::<HttpResponse>::Err(refused)
    }))
}
