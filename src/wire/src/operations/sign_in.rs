//! Signing in by email or with a provider.

use crate::operation::{Answer, CREDENTIAL, Parameter, Values, delete, get, json, operations, post, text};
use crate::{
    ApproveApp, ErrorCode, LogOut, Me, PageToken, Refresh, RequestPageToken, SignInStarted, SignedIn,
    StartSignIn, TerminalCode, VerifyCode,
};

/// Reasons for rejecting a page's request.
const PAGE: &[ErrorCode] = &[ErrorCode::OriginMismatch, ErrorCode::HostMismatch, ErrorCode::TlsRequired];
operations! {
    START = post("/api/auth/email/start", "start_sign_in", "Sends an email.")
        .body(json!(StartSignIn, examples::START))
        .answers(&[Answer::new(202, json!(SignInStarted, examples::STARTED))])
        .shared_errors(PAGE)
        .errors(&[ErrorCode::EmailSignInOff]);

    VERIFY = post("/api/auth/email/verify", "verify_code", "Verifies the code and signs in.")
        .body(json!(VerifyCode, examples::VERIFY))
        .answers(&[Answer::new(200, json!(SignedIn, examples::SIGNED_IN))])
        .shared_errors(PAGE)
        .errors(&[ErrorCode::EmailSignInOff, ErrorCode::CodeInvalid, ErrorCode::AuthRateLimited]);

    SHOW_LINK = get(
        "/api/auth/magic/{token}",
        "show_sign_in_link",
        "The page of the email's link; opening it changes nothing, because mail scanners open links.",
    )
    .answers(&[
        Answer::new(200, text!("text/html")),
        Answer::new(404, text!("text/html")).when("the link is not valid, or no longer"),
    ]);

    USE_LINK = post(
        "/api/auth/magic/{token}",
        "use_sign_in_link",
        "Consumes the link and signs in, as its page's button does.",
    )
    .answers(&[Answer::new(200, json!(SignedIn))])
    .shared_errors(PAGE)
    .errors(&[
        ErrorCode::EmailSignInOff,
        ErrorCode::CodeInvalid,
        ErrorCode::AuthRateLimited,
    ]);

    START_OIDC = get("/api/auth/oidc/start", "start_oidc_sign_in", "Redirects a browser to the OpenID provider.")
        .without_head()
        .query(&[Parameter {
            name: "return_to",
            about: "A path of the service to continue to.",
            values: Values::Text,
        }])
        .answers(&[Answer::empty(303)])
        .shared_errors(PAGE)
        .errors(&[
            ErrorCode::OidcOff,
            ErrorCode::OidcFailed,
            ErrorCode::OidcUnavailable,
            ErrorCode::PublicBaseMissing,
            ErrorCode::AuthRateLimited,
        ]);

    FINISH_OIDC = get(
        "/api/auth/oidc/callback",
        "finish_oidc_sign_in",
        "Receives the redirect from the provider: signs the browser in.",
    )
    .without_head()
    .query(&[
        Parameter { name: "state", about: "Of the redirect to the provider.", values: Values::Text },
        Parameter { name: "code", about: "Of the provider.", values: Values::Text },
        Parameter { name: "error", about: "Of the provider.", values: Values::Text },
    ])
    .answers(&[Answer::empty(303)])
    .shared_errors(PAGE)
    .errors(&[
        ErrorCode::OidcOff,
        ErrorCode::OidcFailed,
        ErrorCode::OidcUnverified,
        ErrorCode::OidcRefused,
        ErrorCode::OidcUnavailable,
        ErrorCode::PublicBaseMissing,
        ErrorCode::AuthRateLimited,
    ]);

    AUTHORIZE = get(
        "/authorize",
        "authorize_app",
        "Sends the browser of a member back to a hosted app with an authorization code. The first time it is a page that asks \
         whether the app may learn who they are; a visitor who is not signed in is redirected to `/login`.",
    )
    .without_head()
    .query(&[
        Parameter { name: "response_type", about: "`code`.", values: Values::Text },
        Parameter { name: "client_id", about: "The alias of the app.", values: Values::Text },
        Parameter { name: "redirect_uri", about: "`/__service/auth/callback` of the app.", values: Values::Text },
        Parameter { name: "code_challenge", about: "SHA-256 of the verifier, base64url.", values: Values::Text },
        Parameter { name: "code_challenge_method", about: "`S256`.", values: Values::Text },
        Parameter { name: "state", about: "Returned as it is.", values: Values::Text },
    ])
    .answers(&[Answer::new(200, text!("text/html")).when("the user has not agreed yet"), Answer::empty(303)])
    .errors(&[
        ErrorCode::AppBadRequest,
        ErrorCode::NotAMember,
        ErrorCode::AuthRateLimited,
        ErrorCode::LoginNotConfigured,
    ]);

    APPROVE = post(
        "/authorize/approve",
        "approve_app",
        "The button of that page, with the same members as a form or as JSON: the user agrees.",
    )
    .body(json!(ApproveApp, examples::APPROVE))
    .answers(&[Answer::empty(303)])
    .shared_errors(PAGE)
    .errors(&[
        ErrorCode::AppBadRequest,
        ErrorCode::NotAMember,
        ErrorCode::AuthRateLimited,
        ErrorCode::LoginNotConfigured,
    ]);

    TERMINAL = post(
        "/api/auth/terminal",
        "create_terminal_code",
        "Returns a code for a terminal to the page of a signed-in browser.",
    )
    .answers(&[Answer::new(200, json!(TerminalCode))])
    .needs_user();

    PAGE_TOKEN = post(
        "/api/auth/token",
        "create_page_token",
        "Returns an access token to the page of a signed-in browser; the API itself accepts no cookies.",
    )
    .body(json!(RequestPageToken, examples::PAGE))
    .answers(&[Answer::new(200, json!(PageToken, examples::PAGE_TOKEN))])
    .needs_user();

    REFRESH = post("/api/auth/refresh", "refresh_tokens", "Replaces the pair of tokens.")
        .body(json!(Refresh, examples::REFRESH))
        .answers(&[Answer::new(200, json!(SignedIn))])
        .shared_errors(PAGE)
        .errors(&[ErrorCode::RefreshInvalid, ErrorCode::AuthRateLimited]);

    LOG_OUT = post("/api/auth/logout", "log_out", "Ends the sign-in.")
        .optional_body(json!(LogOut, examples::REFRESH))
        .answers(&[Answer::empty(204)])
        .shared_errors(CREDENTIAL);

    ME = get("/api/auth/me", "read_user", "Returns the signed-in user, their workspaces and their sign-ins.")
        .answers(&[Answer::new(200, json!(Me, examples::ME))])
        .needs_user();

    END_SESSION = delete("/api/auth/sessions/{id}", "end_session", "Ends one sign-in of the caller.")
        .answers(&[Answer::empty(204)])
        .needs_user()
        .errors(&[ErrorCode::SessionNotFound]);

    END_SESSIONS = delete(
        "/api/auth/sessions",
        "end_sessions",
        "Ends every sign-in of the caller, this one included.",
    )
    .answers(&[Answer::empty(204)])
    .needs_user();
}

#[cfg(feature = "schema")]
mod examples {
    pub(super) const START: &str = r#"{
  "email": "ada@example.org",
  "return_to": "/chat/0198c2e7-…"
}"#;

    pub(super) const APPROVE: &str = r#"{
  "response_type": "code",
  "client_id": "notes",
  "redirect_uri": "https://notes.apps.example.org/__service/auth/callback",
  "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
  "code_challenge_method": "S256",
  "state": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
}"#;

    pub(super) const STARTED: &str = r#"{
  "challenge": "fWCY-PT7Hl9v_gjGzcd8MqqIe…"
}"#;

    pub(super) const VERIFY: &str = r#"{
  "challenge": "fWCY-PT7Hl9v_gjGzcd8MqqIe…",
  "email": "ada@example.org",
  "code": "012345"
}"#;

    pub(super) const SIGNED_IN: &str = r#"{
  "access_token": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9…",
  "refresh_token": "9nq3vJ0yS2W1m7ZlT4xkQbUe…",
  "token_type": "bearer",
  "expires_in": 900,
  "user": {
    "id": "0198c2e7-0b1c-7…",
    "email": "ada@example.org",
    "name": null
  }
}"#;

    pub(super) const PAGE: &str = r#"{
  "active": true
}"#;

    pub(super) const PAGE_TOKEN: &str = r#"{
  "access_token": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9…",
  "token_type": "bearer",
  "expires_in": 900,
  "user": {
    "id": "0198c2e7-0b1c-7…",
    "email": "ada@example.org",
    "name": null
  }
}"#;

    pub(super) const REFRESH: &str = r#"{
  "refresh_token": "9nq3vJ0yS2W1m7ZlT4xkQbUe…"
}"#;

    pub(super) const ME: &str = r#"{
  "user": {
    "id": "0198c2e7-0b1c-7…",
    "email": "ada@example.org",
    "name": null
  },
  "workspaces": [
    {
      "id": "0198c2e7-1a2b-7…",
      "slug": "default",
      "role": "editor"
    }
  ],
  "sessions": [
    {
      "id": "01930c5e-0000-7000-8000-0000000000aa",
      "kind": "browser",
      "user_agent": "Mozilla/5.0 (X11; Linux x86_64)",
      "created_at": "2026-11-22T09:00:00.000000Z",
      "last_used_at": "2026-11-22T10:12:00.000000Z",
      "expires_at": "2026-12-22T09:00:00.000000Z",
      "current": true
    }
  ]
}"#;
}
