//! Sign-in through an OpenID provider.

mod flow;
mod identities;
mod modes;
mod others;
mod outages;
mod wrong;

use integration_tests::{Answer, AnswerExt, Client, Provider, TestService, Way};
use serde_json::Value;

use super::get;

const BINDING: &str = "__Host-svc_oidc";

async fn service() -> (TestService, Provider) {
    service_with(&[]).await
}

/// A service with provider sign-in only, and a manual clock.
async fn service_with(variables: &[(&str, &str)]) -> (TestService, Provider) {
    let provider = Provider::start().await;
    let builder = TestService::builder().manual_clock().set_all(provider.variables());
    (builder.set_all(variables.iter().copied()).start().await, provider)
}

/// A browser's way to the provider and back, up to the service's callback.
async fn way(client: &Client, provider: &Provider, start: &str) -> Way {
    let there = get(client, start).await.expect(303);
    provider.visit(there.header("location").unwrap()).await
}

/// The complete sign-in.
async fn sign_in(client: &Client, provider: &Provider) -> Answer {
    let way = way(client, provider, "/api/auth/oidc/start").await;
    get(client, &way.back).await
}

/// The sign-in's outcome in one line.
async fn outcome(client: &Client, provider: &Provider) -> String {
    status_and_code(&sign_in(client, provider).await)
}

/// Status and error code of a page.
fn status_and_code(page: &Answer) -> String {
    let text = page.text();
    let code = text.split("<code>").nth(1).and_then(|rest| rest.split('<').next()).unwrap_or_default();
    format!("{} {code}", page.status).trim_end().to_owned()
}

/// A page's markup with unescaped slashes in its URLs.
fn markup(page: &Answer) -> String {
    page.text().replace("&#x2f;", "/")
}

async fn me(client: &Client) -> Value {
    get(client, "/api/auth/me").await.expect(200).value()
}

async fn is_in(client: &Client) -> bool {
    get(client, "/api/auth/me").await.status == 200
}
