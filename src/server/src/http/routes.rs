//! Registers routes for declared operations. A path is one resource; other methods get 405 with the allowed ones.

use std::collections::BTreeSet;

use actix_web::middleware::DefaultHeaders;
use actix_web::web::{self, ServiceConfig};
use actix_web::{FromRequest, Handler, HttpResponse, Resource, Responder, Route, guard};
use wire::ErrorCode;
use wire::operation::{Method, Operation};

use super::error::{ApiError, ApiResult};

/// The handlers by path.
#[derive(Default)]
pub(super) struct Routes(Vec<(&'static str, Resource)>);

impl Routes {
    /// Registers an operation's handler.
    pub(super) fn on<F, Args>(self, operation: &'static Operation, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.route(operation.path, method(operation).to(handler))
    }

    /// Registers a handler for every method of the operation's path, declared or not.
    pub(super) fn on_every_method<F, Args>(self, operation: &'static Operation, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.route(operation.path, web::route().to(handler))
    }

    fn route(mut self, path: &'static str, route: Route) -> Self {
        let place = self.0.iter().position(|(known, _)| *known == path);
        let (at, resource) = match place {
            Some(at) => (at, self.0.remove(at).1),
            None => (self.0.len(), resource(path)),
        };
        // The first resource that matches a path gets the request, so their order is kept.
        self.0.insert(at, (path, resource.route(route)));
        self
    }

    pub(super) fn register(self, config: &mut ServiceConfig) {
        for (_, resource) in self.0 {
            config.service(resource);
        }
    }

    /// Like [`Self::register`], with default headers for responses that do not set them.
    pub(super) fn register_with_headers(self, config: &mut ServiceConfig, headers: &[(&str, &str)]) {
        for (_, resource) in self.0 {
            let defaults = DefaultHeaders::new();
            config.service(
                resource.wrap(headers.iter().fold(defaults, |defaults, header| defaults.add(*header))),
            );
        }
    }
}

/// Creates a route for the operation's method. GET also matches HEAD, which is GET without the body.
fn method(operation: &Operation) -> Route {
    match operation.method {
        Method::Delete => web::delete(),
        Method::Get if operation.head => web::route().guard(guard::Any(guard::Get()).or(guard::Head())),
        Method::Get => web::get(),
        Method::Patch => web::patch(),
        Method::Post => web::post(),
        Method::Put => web::put(),
    }
}

fn resource(path: &'static str) -> Resource {
    let allow = allowed(path);
    web::resource(path).default_service(web::to(move || {
        let refused = ApiError::new(ErrorCode::MethodNotAllowed).with_header("Allow", allow.clone());
        async move { ApiResult::<HttpResponse>::Err(refused) }
    }))
}

/// The error for a method that no path supports.
pub(super) fn no_method_of_the_service() -> ApiError {
    ApiError::new(ErrorCode::MethodNotAllowed).with_header("Allow", methods(wire::operations::all()))
}

/// The methods of a path, for `Allow`.
fn allowed(path: &str) -> String {
    methods(wire::operations::all().filter(|operation| operation.path == path))
}

/// The methods of these operations, sorted.
fn methods(operations: impl Iterator<Item = &'static Operation>) -> String {
    let names = operations.flat_map(|operation| {
        let head = if operation.head { Some("HEAD") } else { None };
        [Some(operation.method.as_str()), head].into_iter().flatten()
    });
    names.collect::<BTreeSet<&str>>().into_iter().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_allows_its_declared_methods() {
        assert_eq!(allowed("/api/workflows/{ref}"), "DELETE, GET, HEAD, PUT");
        assert_eq!(allowed("/api/runs/{id}/events"), "GET");
        assert_eq!(allowed("/api/nowhere"), "");
        assert_eq!(methods(wire::operations::all()), "DELETE, GET, HEAD, PATCH, POST, PUT");
    }
}
