//! Sign-in by e-mail.

mod chat;
mod codes;
mod links;
mod mails;
mod oidc;
mod page_token;
mod refusals;
mod sessions;
mod terminal;

use integration_tests::{Answer, AnswerExt, Client, JSON, MailServer, TestService};
use serde_json::{Value, json};

pub(crate) const SESSION: &str = "__Host-svc_session";
pub(crate) const BINDING: &str = "__Host-svc_chal";
const BROWSER: &str = "__Host-svc_browser";
const ADA: &str = "ada@example.org";

/// A service with a test mail server and a manual clock.
async fn service() -> (TestService, MailServer) {
    service_with(&[]).await
}

async fn service_with(variables: &[(&str, &str)]) -> (TestService, MailServer) {
    let mail = MailServer::start().await;
    let builder = TestService::builder().manual_clock().set("SERVICE_SMTP_URL", mail.url());
    (builder.set_all(variables.iter().copied()).start().await, mail)
}

fn origin(client: &Client) -> String {
    client.base().trim_end_matches('/').to_owned()
}

/// Posts JSON like one of the service's own pages.
async fn post(client: &Client, path: &str, body: &Value) -> Answer {
    let origin = origin(client);
    let headers = [JSON, ("origin", origin.as_str())];
    client.send("POST", path, &headers, body.to_string()).await.unwrap()
}

async fn get(client: &Client, path: &str) -> Answer {
    client.send("GET", path, &[], "").await.unwrap()
}

async fn start(client: &Client, email: &str) -> Answer {
    post(client, "/api/auth/email/start", &json!({"email": email})).await.expect(202)
}

async fn verify(client: &Client, email: &str, code: &str) -> Answer {
    post(client, "/api/auth/email/verify", &json!({"email": email, "code": code})).await
}

/// A browser after a complete sign-in, and the response.
async fn signed_in(t: &TestService, mail: &MailServer, email: &str) -> (Client, Value) {
    let (client, before) = (t.visitor(), mail.mails().len());
    start(&client, email).await;
    let answer = verify(&client, email, &mail.mail(before + 1).await.code()).await.expect(200);
    let body = answer.value();
    (client, body)
}

async fn refresh(client: &Client, token: &Value) -> Answer {
    post(client, "/api/auth/refresh", &json!({"refresh_token": token})).await
}

async fn me_as(client: &Client, token: &Value) -> Answer {
    let bearer = format!("Bearer {}", token.as_str().unwrap());
    client.send("GET", "/api/auth/me", &[("authorization", &bearer)], "").await.unwrap()
}

/// Everything that a database dump would show.
async fn dump(t: &TestService) -> String {
    let tables = [
        "users",
        "sign_in_challenges",
        "sign_in_sessions",
        "refresh_tokens",
        "outgoing_mail",
        "oidc_sign_ins",
        "user_identities",
        "idempotency_keys",
    ];
    let parts = tables.map(|table| format!("coalesce((SELECT string_agg(t::text, ' ') FROM {table} t), '')"));
    t.scalar(&format!("SELECT {}", parts.join(" || "))).await
}

fn hex(text: &str) -> String {
    text.bytes().map(|b| format!("{b:02x}")).collect()
}
