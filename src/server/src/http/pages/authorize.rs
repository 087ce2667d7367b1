//! `/authorize`: asks whether an app may learn the user's identity, or explains why it may not.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use minijinja::context;

use super::{html, sign_in};
use crate::http::error::{ApiError, ApiResult};

/// The details of a consent request.
pub(in crate::http) struct Consent<'a> {
    /// The app's name.
    pub(in crate::http) name: &'a str,
    /// The app's alias.
    pub(in crate::http) alias: &'a str,
    /// The user's email address.
    pub(in crate::http) email: &'a str,
    /// The app's scheme, host and port.
    pub(in crate::http) origin: &'a str,
    /// The request members, which the form repeats.
    pub(in crate::http) members: &'a [(&'static str, &'a str)],
}

/// Asks once, with one button.
pub(in crate::http) fn consent(consent: Consent<'_>) -> ApiResult<HttpResponse> {
    let Consent { name, alias, email, origin, members } = consent;
    let member = |&(name, value): &(&str, &str)| [name.to_owned(), value.to_owned()];
    let members: Vec<[String; 2]> = members.iter().map(member).collect();
    let filling = context! { name, alias, email, origin, members };
    let mut page = html::page(StatusCode::OK, "authorize.html", filling)?;
    html::allow_form(&mut page, origin);
    sign_in::private(page)
}

/// The page for a request that gets no code. `root` is the relative URL of the service's home page.
pub(in crate::http) fn not_authorized(
    error: &ApiError,
    title: &str,
    text: &str,
    root: &str,
) -> ApiResult<HttpResponse> {
    sign_in::private(html::closed(error, title, text, root)?)
}
