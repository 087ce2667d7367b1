//! `/authorize`: whether an app may learn who a user is, and why it does not.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use minijinja::context;

use super::{html, sign_in};
use crate::http::error::{ApiError, ApiResult};

/// What a user agrees to.
pub(in crate::http) struct Consent<'a> {
    /// The app's name.
    pub(in crate::http) name: &'a str,
    /// Its alias.
    pub(in crate::http) alias: &'a str,
    /// The user's address.
    pub(in crate::http) email: &'a str,
    /// Scheme, host and port of the app.
    pub(in crate::http) origin: &'a str,
    /// The members of the request, which the form repeats.
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

/// A request that gets no code. `root`: the relative address of the service's first page.
pub(in crate::http) fn not_authorized(
    error: &ApiError,
    title: &str,
    text: &str,
    root: &str,
) -> ApiResult<HttpResponse> {
    sign_in::private(html::closed(error, title, text, root)?)
}
