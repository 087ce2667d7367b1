//! The response to a successful sign-in: session, tokens and cookie.

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use auth::sign_in::{ACCESS_LIFE, Token};
use chrono::TimeDelta;
use config::Signup;
use control::sign_in::{Client, Opening};
use secrecy::ExposeSecret;
use store::{OpenedSession, StoredUser};
use uuid::Uuid;
use wire::{ErrorCode, SignedIn, UserRecord};

use super::binding;
use crate::http::error::{ApiError, ApiResult};
use crate::http::{App, request_id, session};

/// Maximum stored characters of a user agent.
const USER_AGENT: usize = 120;

/// A caller who is signing in.
pub(super) struct SigningIn<'a> {
    app: &'a App,
    opening: Opening<'a>,
    refresh: Token,
    cookie: Option<Token>,
}

impl<'a> SigningIn<'a> {
    /// Prepares a sign-in. A browser gets a cookie if it requested the sign-in and our own page asks. `kept` is the
    /// digest of the secret from that request.
    pub(super) fn for_request(app: &'a App, request: &'a HttpRequest, kept: &[u8]) -> ApiResult<Self> {
        let asked = binding::read(app, request).map(|cookie| Token::digest_of(&cookie));
        let same = asked.is_some_and(|asked| Token::is_same(&asked, kept));
        Self::new(app, request, same && binding::is_page(app, request))
    }

    /// Prepares the sign-in of a browser that returns from the provider. It gets a cookie but no tokens.
    pub(super) fn in_browser(app: &'a App, request: &'a HttpRequest) -> ApiResult<Self> {
        Self::new(app, request, true)
    }

    fn new(app: &'a App, request: &'a HttpRequest, gets_cookie: bool) -> ApiResult<Self> {
        let sign_in = &app.config().sign_in;
        let agent = request.headers().get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
        let refresh = Token::fresh(app.random())?;
        let cookie = if gets_cookie { Some(Token::fresh(app.random())?) } else { None };
        let opening = Opening {
            client: client(app, request),
            owner_email: sign_in.owner_email.as_deref(),
            members_only: sign_in.signup == Signup::Members,
            refresh_digest: refresh.digest(),
            cookie_digest: cookie.as_ref().map(Token::digest),
            old_cookie: session::digest(request).filter(|_| gets_cookie),
            user_agent: agent.map(shortened),
        };
        Ok(Self { app, opening, refresh, cookie })
    }

    /// The session to open.
    pub(super) fn opening(&self) -> &Opening<'a> {
        &self.opening
    }

    /// Adds only the cookie to a response.
    pub(super) fn keep(self, mut response: HttpResponseBuilder) -> HttpResponseBuilder {
        if let Some(cookie) = &self.cookie {
            response.cookie(session::cookie(cookie));
        }
        response
    }

    /// Responds with tokens for the client and the cookie for its browser.
    pub(super) fn answer(self, opened: OpenedSession, return_to: Option<String>) -> ApiResult<HttpResponse> {
        let answer = tokens(self.app, opened.id, opened.user, &self.refresh, return_to)?;
        let mut response = HttpResponse::Ok();
        if let Some(cookie) = &self.cookie {
            response.cookie(session::cookie(cookie)).cookie(binding::no_cookie());
        }
        Ok(response.json(answer))
    }
}

/// The client of a request, as passed to sign-in decisions.
pub(super) fn client(app: &App, request: &HttpRequest) -> Client {
    Client { address: app.client_address(request), request_id: request_id::current() }
}

fn shortened(agent: &str) -> &str {
    agent.char_indices().nth(USER_AGENT).and_then(|(end, _)| agent.get(..end)).unwrap_or(agent)
}

/// The body of a response with tokens.
pub(super) fn tokens(
    app: &App,
    session: Uuid,
    user: StoredUser,
    refresh: &Token,
    return_to: Option<String>,
) -> ApiResult<SignedIn> {
    Ok(SignedIn {
        access_token: access_token(app, user.id, session, ACCESS_LIFE)?,
        refresh_token: refresh.expose().to_owned(),
        token_type: "bearer".to_owned(),
        expires_in: ACCESS_LIFE.num_seconds(),
        user: record(user),
        return_to,
    })
}

/// An access token that names the sign-in session and expires after `life`.
pub(super) fn access_token(app: &App, user: Uuid, session: Uuid, life: TimeDelta) -> ApiResult<String> {
    let (id, now) = (app.new_id()?, app.clock().now());
    let token = app.tokens().own.issue(id, user, session, now, life);
    let token = token.map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))?;
    Ok(token.expose_secret().to_owned())
}

pub(super) fn record(user: StoredUser) -> UserRecord {
    UserRecord { id: user.id.to_string(), email: user.email, name: user.name }
}
