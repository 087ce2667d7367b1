//! Authorization codes for hosted apps: a signed-in member carries one to the app's host.

use actix_web::http::header::{LOCATION, REFERRER_POLICY};
use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use auth::app_sign_in::{AUTHORIZE, CodeRequest};
use auth::sign_in::Token;
use control::app_sign_in::{self, Authorized, SignedInUser};
use serde_json::Value;
use store::StoredApp;
use url::form_urlencoded;
use wire::ErrorCode;

use super::binding;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::Anyone;
use crate::http::session::BrowserUser;
use crate::http::{App, body, pages, session};

/// Maximum form bytes; all members are short.
const FORM_LIMIT: usize = 8_192;

/// The page, for relative links.
#[derive(Clone, Copy)]
enum AuthorizePage {
    Authorize,
    Approve,
}

impl AuthorizePage {
    fn root(self) -> &'static str {
        match self {
            Self::Authorize => "",
            Self::Approve => "../",
        }
    }
}

/// Redirects a member's browser back with a code, or asks once whether the app may learn the user's identity.
pub(super) async fn show(app: Anyone, request: HttpRequest) -> ApiResult<HttpResponse> {
    let members = form_urlencoded::parse(request.query_string().as_bytes()).into_owned().collect();
    let answer = answer(&app, &request, Ok(members), AuthorizePage::Authorize).await;
    answer.or_else(|error| refuse(&error, AuthorizePage::Authorize))
}

/// Handles the consent button.
pub(super) async fn approve(app: Anyone, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    binding::check_page(&app, &request)?;
    let bytes = body::read(&request, payload, FORM_LIMIT, &**app.clock()).await?;
    let answer = answer(&app, &request, members(&request, &bytes), AuthorizePage::Approve).await;
    answer.or_else(|error| refuse(&error, AuthorizePage::Approve))
}

type Members = Vec<(String, String)>;

/// Parses a form or a JSON object with string members.
fn members(request: &HttpRequest, bytes: &[u8]) -> ApiResult<Members> {
    if body::is_form(request) {
        return Ok(form_urlencoded::parse(bytes).into_owned().collect());
    }
    let text = |(name, value): (String, Value)| match value {
        Value::String(text) => Ok((name, text)),
        _ => Err(bad("each member of the request is a text")),
    };
    body::object(request, bytes)?.into_iter().map(text).collect()
}

fn bad(why: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::AppBadRequest).with_message(why)
}

async fn answer(
    app: &App,
    request: &HttpRequest,
    members: ApiResult<Members>,
    page: AuthorizePage,
) -> ApiResult<HttpResponse> {
    let base = app.config().http.public_base_url.as_ref();
    let base = base.ok_or_else(|| ApiError::new(ErrorCode::LoginNotConfigured))?.as_str();
    let asked = CodeRequest::read(members?).map_err(|problem| bad(format!("{problem}.")))?;
    let origin = app.url_of_alias(request, &asked.alias);
    let found = app.store().app(&asked.alias).await?;
    let to = app_sign_in::check_request(found, &origin, &asked)?;
    let Some(user) = session::signed_in(app, request).await? else { return Ok(to_sign_in(&asked, base)) };
    let by = SignedInUser { user: user.user, session: user.session };
    let agrees = matches!(page, AuthorizePage::Approve);
    let mut changes = app.store().begin().await?;
    match app_sign_in::authorize(&mut changes, by, &to, &asked, agrees, app.random()).await {
        Ok(Authorized::Code(code)) => {
            changes.commit(None).await?;
            Ok(back(&asked, &code, base))
        }
        Ok(Authorized::AsksConsent) => {
            changes.roll_back().await;
            ask(&asked, &to, &user, &origin)
        }
        Err(refusal) => {
            changes.roll_back().await;
            Err(refusal.into())
        }
    }
}

/// Redirects an anonymous user to sign-in, which returns to the same request.
fn to_sign_in(asked: &CodeRequest, base: &str) -> HttpResponse {
    let address = pages::login_address(&format!("{AUTHORIZE}?{}", asked.query()));
    // The service may be hosted below a path.
    let path = base.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map_or("", |(_, path)| path);
    let path = path.trim_end_matches('/');
    let root = if path.is_empty() { String::new() } else { format!("/{path}") };
    HttpResponse::SeeOther().insert_header((LOCATION, format!("{root}/{address}"))).finish()
}

fn back(asked: &CodeRequest, code: &Token, issuer: &str) -> HttpResponse {
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("code", code.expose())
        .append_pair("state", &asked.state)
        .append_pair("iss", issuer)
        .finish();
    HttpResponse::SeeOther()
        .insert_header((LOCATION, format!("{}?{query}", asked.redirect_uri)))
        .insert_header((REFERRER_POLICY, "no-referrer"))
        .finish()
}

fn ask(asked: &CodeRequest, to: &StoredApp, user: &BrowserUser, origin: &str) -> ApiResult<HttpResponse> {
    pages::consent(pages::Consent {
        name: &to.name,
        alias: &to.alias,
        email: &user.email,
        origin,
        members: &asked.members(),
    })
}

/// Shows a page and never redirects: the return URL may be an attacker's.
fn refuse(error: &ApiError, page: AuthorizePage) -> ApiResult<HttpResponse> {
    let (title, text) = match error.code() {
        ErrorCode::NotAMember => (
            "You have no access to this app",
            "You are signed in, but you are not a member of the workspace of this app. Ask an owner of the workspace to \
             add you."
                .to_owned(),
        ),
        ErrorCode::AppBadRequest => ("This link does not sign you in", error.body().detail.message),
        ErrorCode::LoginNotConfigured => (
            "Sign-in to apps is not configured",
            "The operator of this service has not set SERVICE_PUBLIC_BASE_URL.".to_owned(),
        ),
        ErrorCode::AuthRateLimited => {
            ("Too many sign-ins", "Wait ten minutes, and begin again in the app.".to_owned())
        }
        _ => ("Something went wrong", error.body().detail.message),
    };
    pages::not_authorized(error, title, &text, page.root())
}
