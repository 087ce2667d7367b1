//! `/login`, the page for links in sign-in mails, and the page for failed sign-ins.

use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use auth::sign_in::is_local;
use minijinja::context;
use store::LinkUse;
use url::form_urlencoded;
use wire::ErrorCode;

use super::html;
use crate::http::auth::Browser;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::Anyone;
use crate::http::query::Params;
use crate::http::{request_id, session};

/// Asks for an email address, then for the code. Tells signed-in users that they are signed in.
pub(super) async fn login(app: Anyone, request: HttpRequest) -> ApiResult<HttpResponse> {
    // Targets other than local paths are dropped.
    let return_to = Params::from_request(&request).text("return_to").filter(|path| is_local(path));
    let user = session::signed_in(&app, &request).await?;
    let (email, secure) = (user.map(|user| user.email), app.keeps_cookies(&request));
    let by_mail = app.config().offers_mail_sign_in();
    let provider = app.provider().map(|provider| {
        let mut address = "api/auth/oidc/start".to_owned();
        if let Some(path) = &return_to {
            address = format!("{address}?{}", query(path));
        }
        context! { host => provider.host(), address }
    });
    let filling = context! { email, return_to, secure, by_mail, provider };
    let mut page = html::page(StatusCode::OK, "login.html", filling)?;
    let browser = Browser::from_request(&app, &request)?;
    if !browser.known {
        page.add_cookie(&browser.cookie())
            .map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))?;
    }
    private(page)
}

/// A failed sign-in: the reason in plain words and a link to start again.
pub(in crate::http) fn sign_in_failed(
    error: &ApiError,
    text: &str,
    return_to: Option<&str>,
) -> ApiResult<HttpResponse> {
    let answer = error.error_response();
    let id = if answer.status().is_server_error() { request_id::current() } else { None };
    let mut again = "../../../login".to_owned();
    if let Some(path) = return_to {
        again = format!("{again}?{}", query(path));
    }
    let filling = context! { text, again, code => error.code().as_str(), request_id => id };
    let mut page = html::page(answer.status(), "sign-in-failed.html", filling)?;
    html::keep_headers(&mut page, &answer);
    private(page)
}

/// The state of a sign-in link, with a button if it is valid.
pub(in crate::http) fn link(link_use: &LinkUse) -> ApiResult<HttpResponse> {
    let (status, state, email) = match link_use {
        LinkUse::Good(proven) => (StatusCode::OK, "good", Some(proven.email.as_str())),
        LinkUse::OtherBrowser => (StatusCode::OK, "other_browser", None),
        LinkUse::Over => (StatusCode::NOT_FOUND, "over", None),
    };
    private(html::page(status, "link.html", context! { state, email })?)
}

/// The URL of the sign-in page that returns to `return_to`. It is relative to that path, because the service may be
/// hosted below a path.
pub(in crate::http) fn login_address(return_to: &str) -> String {
    let path = return_to.split_once('?').map_or(return_to, |(path, _)| path);
    let up = "../".repeat(path.matches('/').count().saturating_sub(1));
    format!("{up}login?{}", query(return_to))
}

fn query(return_to: &str) -> String {
    form_urlencoded::Serializer::new(String::new()).append_pair("return_to", return_to).finish()
}

/// Keeps a page that names a user out of caches.
pub(super) fn private(mut page: HttpResponse) -> ApiResult<HttpResponse> {
    page.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sign_in_page_is_linked_from_any_path_depth() {
        assert_eq!(login_address("/chat/x"), "../login?return_to=%2Fchat%2Fx");
        assert_eq!(
            login_address("/workflows/x/training?run=a/b"),
            "../../login?return_to=%2Fworkflows%2Fx%2Ftraining%3Frun%3Da%2Fb"
        );
    }
}
