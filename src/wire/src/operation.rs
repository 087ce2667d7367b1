//! An HTTP operation: a route, its access, its request and its answers.

mod shape;

use crate::{ErrorCode, Scope};

pub use shape::Shape;
pub(crate) use shape::{binary, events, file_form, json, lines, media, text};

/// An HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// `DELETE`.
    Delete,
    /// `GET`.
    Get,
    /// `PATCH`.
    Patch,
    /// `POST`.
    Post,
    /// `PUT`.
    Put,
}

impl Method {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delete => "DELETE",
            Self::Get => "GET",
            Self::Patch => "PATCH",
            Self::Post => "POST",
            Self::Put => "PUT",
        }
    }
}

/// The callers who may call an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Callers with the scope, in the workspace of the object in the path.
    Scope(Scope),
    /// Callers with the scope in any workspace.
    Anywhere(Scope),
    /// Signed-in users, by an access token or their browser's cookie.
    User,
    /// The operation has its own rules.
    Own,
}

/// Declares operations and their list.
macro_rules! operations {
    ($($name:ident = $operation:expr;)*) => {
        $(
            #[expect(missing_docs, reason = "the operation's text says what it does")]
            pub static $name: $crate::operation::Operation = $operation;
        )*

        /// All operations, in documentation order.
        pub(crate) static ALL: &[&$crate::operation::Operation] = &[$(&$name,)*];
    };
}

pub(crate) use operations;

/// A request body.
#[derive(Clone, Copy)]
pub struct Body {
    /// Its type.
    pub shape: Shape,
    /// Whether the request may have no body.
    pub optional: bool,
}

/// A successful answer.
#[derive(Clone, Copy)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// The case for this status, if there are several.
    pub when: &'static str,
    /// Its body, if it has one.
    pub shape: Option<Shape>,
}

impl Answer {
    /// An answer with a body.
    #[must_use]
    pub const fn new(status: u16, shape: Shape) -> Self {
        Self { status, when: "", shape: Some(shape) }
    }

    /// An answer without a body.
    #[must_use]
    pub const fn empty(status: u16) -> Self {
        Self { status, when: "", shape: None }
    }

    /// The same answer, with the case in which it is sent.
    #[must_use]
    pub const fn when(self, when: &'static str) -> Self {
        Self { when, ..self }
    }
}

/// A query parameter's allowed values.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// Any text.
    Text,
    /// `true` or `false`.
    Boolean,
    /// A whole number in this range.
    Integer(i64, i64),
    /// A number in this range.
    Number(f64, f64),
    /// A time, RFC 3339.
    Time,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// Any of these, separated by commas.
    AnyOf(&'static [&'static str]),
}

/// An optional query parameter.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its effect.
    pub about: &'static str,
    /// Its values.
    pub values: Values,
}

/// One operation: a method, a path, and everything that a client must know.
#[derive(Clone, Copy)]
pub struct Operation {
    /// The method. [`Method::Get`] also covers HEAD, unless [`Operation::head`] is false.
    pub method: Method,
    /// The path with its parameters in braces.
    pub path: &'static str,
    /// Its name in generated clients.
    pub id: &'static str,
    /// Its effect, in a sentence or two of Markdown, with links as in `docs/PROTOCOL.md`.
    pub about: &'static str,
    /// The callers who may call it.
    pub access: Access,
    /// Whether it answers HEAD like GET.
    pub head: bool,
    /// Whether it honours the header `Idempotency-Key`.
    pub repeatable: bool,
    /// The query parameters.
    pub query: &'static [Parameter],
    /// The request body.
    pub body: Option<Body>,
    /// The successful answers.
    pub answers: &'static [Answer],
    /// Refusal codes that only this operation has.
    pub errors: &'static [ErrorCode],
    /// Refusal codes that it shares with similar operations.
    pub shared_errors: &'static [ErrorCode],
    /// A refusal with a different status here than in the table.
    pub exception: Option<(ErrorCode, u16)>,
    /// A refusal with this possible status besides its usual one.
    pub also: Option<(ErrorCode, u16)>,
}

/// Refusals for every operation.
const EVERYWHERE: &[ErrorCode] = &[
    ErrorCode::InvalidHost,
    ErrorCode::InvalidRequest,
    ErrorCode::MethodNotAllowed,
    ErrorCode::Overloaded,
    ErrorCode::DatabaseUnavailable,
    ErrorCode::Draining,
    ErrorCode::StorageFull,
    ErrorCode::Internal,
];
/// Refusals for operations that change something: they read a body, if only to reject its members.
const WITH_BODY: &[ErrorCode] = &[
    ErrorCode::InvalidJson,
    ErrorCode::TooLarge,
    ErrorCode::UnsupportedMediaType,
    ErrorCode::RequestTimeout,
];
/// Refusals for operations that honour `Idempotency-Key`.
const REPEATABLE: &[ErrorCode] =
    &[ErrorCode::IdempotencyKeyInvalid, ErrorCode::IdempotencyKeyReused, ErrorCode::IdempotencyInProgress];
/// Refusals for credentials.
pub(crate) const CREDENTIAL: &[ErrorCode] = &[
    ErrorCode::OriginMismatch,
    ErrorCode::HostMismatch,
    ErrorCode::MissingToken,
    ErrorCode::InvalidScheme,
    ErrorCode::InvalidToken,
    ErrorCode::TokenExpired,
    ErrorCode::UnsupportedAlgorithm,
    ErrorCode::InvalidAudience,
    ErrorCode::InvalidIssuer,
    ErrorCode::KeyUnavailable,
    ErrorCode::AuthRateLimited,
];
/// Refusals for operations that need a scope, besides those for credentials.
const SCOPED: &[ErrorCode] = &[
    ErrorCode::MissingScope,
    ErrorCode::WorkspaceForbidden,
    ErrorCode::WorkspaceRequired,
    ErrorCode::WorkspaceNotFound,
];

const fn operation(method: Method, path: &'static str, id: &'static str, about: &'static str) -> Operation {
    Operation {
        method,
        path,
        id,
        about,
        access: Access::Own,
        head: matches!(method, Method::Get),
        repeatable: false,
        query: &[],
        body: None,
        answers: &[],
        errors: &[],
        shared_errors: &[],
        exception: None,
        also: None,
    }
}

pub(crate) const fn get(path: &'static str, id: &'static str, about: &'static str) -> Operation {
    operation(Method::Get, path, id, about)
}

pub(crate) const fn post(path: &'static str, id: &'static str, about: &'static str) -> Operation {
    operation(Method::Post, path, id, about)
}

pub(crate) const fn put(path: &'static str, id: &'static str, about: &'static str) -> Operation {
    operation(Method::Put, path, id, about)
}

pub(crate) const fn patch(path: &'static str, id: &'static str, about: &'static str) -> Operation {
    operation(Method::Patch, path, id, about)
}

pub(crate) const fn delete(path: &'static str, id: &'static str, about: &'static str) -> Operation {
    operation(Method::Delete, path, id, about)
}

impl Operation {
    /// Restricts the operation to callers with the scope in the workspace of the object in the path.
    pub(crate) const fn needs(self, scope: Scope) -> Self {
        Self { access: Access::Scope(scope), ..self }
    }

    /// Restricts the operation to callers with the scope in any workspace.
    pub(crate) const fn needs_anywhere(self, scope: Scope) -> Self {
        Self { access: Access::Anywhere(scope), ..self }
    }

    /// Restricts the operation to signed-in users.
    pub(crate) const fn needs_user(self) -> Self {
        Self { access: Access::User, ..self }
    }

    /// Sets a different status for a refusal than in the table.
    pub(crate) const fn except(self, code: ErrorCode, status: u16) -> Self {
        Self { exception: Some((code, status)), ..self }
    }

    /// Adds a possible status for a refusal besides its usual one.
    pub(crate) const fn also(self, code: ErrorCode, status: u16) -> Self {
        Self { also: Some((code, status)), ..self }
    }

    /// Disables HEAD.
    pub(crate) const fn without_head(self) -> Self {
        Self { head: false, ..self }
    }

    /// Honours `Idempotency-Key`: a repeated request changes nothing more.
    pub(crate) const fn repeatable(self) -> Self {
        Self { repeatable: true, ..self }
    }

    pub(crate) const fn query(self, query: &'static [Parameter]) -> Self {
        Self { query, ..self }
    }

    pub(crate) const fn body(self, shape: Shape) -> Self {
        Self { body: Some(Body { shape, optional: false }), ..self }
    }

    pub(crate) const fn optional_body(self, shape: Shape) -> Self {
        Self { body: Some(Body { shape, optional: true }), ..self }
    }

    pub(crate) const fn answers(self, answers: &'static [Answer]) -> Self {
        Self { answers, ..self }
    }

    pub(crate) const fn errors(self, errors: &'static [ErrorCode]) -> Self {
        Self { errors, ..self }
    }

    pub(crate) const fn shared_errors(self, shared_errors: &'static [ErrorCode]) -> Self {
        Self { shared_errors, ..self }
    }

    /// All its refusal codes, in table order.
    #[must_use]
    pub fn codes(&self) -> Vec<ErrorCode> {
        let scoped = self.scope().is_some();
        let groups = [
            (true, EVERYWHERE),
            (!matches!(self.method, Method::Get), WITH_BODY),
            (self.repeatable, REPEATABLE),
            (scoped || matches!(self.access, Access::User), CREDENTIAL),
            (scoped, SCOPED),
            (true, self.shared_errors),
            (true, self.errors),
        ];
        let has = |code: &ErrorCode| groups.iter().any(|(applies, codes)| *applies && codes.contains(code));
        ErrorCode::ALL.iter().copied().filter(has).collect()
    }

    /// A refusal's status.
    #[must_use]
    pub fn status_of(&self, code: ErrorCode) -> u16 {
        match self.exception {
            Some((exception, status)) if exception == code => status,
            _ => code.status(),
        }
    }

    /// The scope that a caller needs, if any.
    #[must_use]
    pub const fn scope(&self) -> Option<Scope> {
        match self.access {
            Access::Scope(scope) | Access::Anywhere(scope) => Some(scope),
            Access::User | Access::Own => None,
        }
    }

    /// The path with `*` for each parameter.
    #[must_use]
    pub fn pattern(&self) -> String {
        let segment = |one: &'static str| if one.starts_with('{') { "*" } else { one };
        self.path.split('/').map(segment).collect::<Vec<_>>().join("/")
    }

    /// The path parameter names, in order.
    pub fn parameters(&self) -> impl Iterator<Item = &'static str> {
        let named = self.path.split('/').filter_map(|one| one.strip_prefix('{')?.strip_suffix('}'));
        named.map(|name| name.split_once(':').map_or(name, |(name, _)| name))
    }

    /// The path segments, with these values for the parameters.
    #[must_use]
    pub fn segments<'a>(&self, values: &[&'a str]) -> Vec<&'a str>
    where
        'static: 'a,
    {
        let mut values = values.iter().copied();
        let segments = self.path.split('/').skip(1);
        segments
            .map(|one| if one.starts_with('{') { values.next().unwrap_or_default() } else { one })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_parameters_are_listed() {
        let one = get("/api/workflows/{ref}/versions/{number}", "read_version", "");
        assert_eq!(one.parameters().collect::<Vec<_>>(), ["ref", "number"]);
        assert_eq!(one.pattern(), "/api/workflows/*/versions/*");
        assert_eq!(one.segments(&["desk", "3"]), ["api", "workflows", "desk", "versions", "3"]);
        assert_eq!(get("/assets/{path:.*}", "read_asset", "").parameters().collect::<Vec<_>>(), ["path"]);
    }
}
