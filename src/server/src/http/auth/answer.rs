//! A sign-in that succeeds: its session, its tokens and its cookie.

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

/// Characters that are kept of what a client says it is.
const USER_AGENT: usize = 120;

/// A caller who is signing in.
pub(super) struct SigningIn<'a> {
    app: &'a App,
    opening: Opening<'a>,
    refresh: Token,
    cookie: Option<Token>,
}

impl<'a> SigningIn<'a> {
    /// A browser gets a cookie when it is the one that asked, by a page that may: `kept` is the digest of what was kept
    /// since then.
    pub(super) fn of(app: &'a App, request: &'a HttpRequest, kept: &[u8]) -> ApiResult<Self> {
        let asked = binding::read(app, request).map(|cookie| Token::digest_of(&cookie));
        let same = asked.is_some_and(|asked| Token::is_same(&asked, kept));
        Self::new(app, request, same && binding::is_page(app, request))
    }

    /// A browser that was sent away by us and is back: it gets a cookie, and no tokens.
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

    /// What a decision opens.
    pub(super) fn opening(&self) -> &Opening<'a> {
        &self.opening
    }

    /// The cookie for its browser, and nothing else.
    pub(super) fn keep(self, mut response: HttpResponseBuilder) -> HttpResponseBuilder {
        if let Some(cookie) = &self.cookie {
            response.cookie(session::cookie(cookie));
        }
        response
    }

    /// Tokens for the client, the cookie for its browser.
    pub(super) fn answer(self, opened: OpenedSession, return_to: Option<String>) -> ApiResult<HttpResponse> {
        let answer = tokens(self.app, opened.id, opened.user, &self.refresh, return_to)?;
        let mut response = HttpResponse::Ok();
        if let Some(cookie) = &self.cookie {
            response.cookie(session::cookie(cookie)).cookie(binding::no_cookie());
        }
        Ok(response.json(answer))
    }
}

/// The client of a request, as decisions about sign-ins know it.
pub(super) fn client(app: &App, request: &HttpRequest) -> Client {
    Client { address: app.client_address(request), request_id: request_id::current() }
}

fn shortened(agent: &str) -> &str {
    agent.char_indices().nth(USER_AGENT).and_then(|(end, _)| agent.get(..end)).unwrap_or(agent)
}

/// The body of an answer that hands tokens out.
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

/// A token that names the sign-in and is good for `life`.
pub(super) fn access_token(app: &App, user: Uuid, session: Uuid, life: TimeDelta) -> ApiResult<String> {
    let (id, now) = (app.new_id()?, app.clock().now());
    let token = app.tokens().own.issue(id, user, session, now, life);
    let token = token.map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))?;
    Ok(token.expose_secret().to_owned())
}

pub(super) fn record(user: StoredUser) -> UserRecord {
    UserRecord { id: user.id.to_string(), email: user.email, name: user.name }
}
