//! Callers with a token.

use client::Answer;
use serde_json::{Value, json};

use crate::{AnswerExt, TestService};

/// The bootstrap token for services built with [`crate::Builder::with_bootstrap_token`].
pub const BOOTSTRAP: &str = "bootstrap-0123456789abcdef0123456789abcdef";

/// The header of a JSON body.
pub const JSON: (&str, &str) = ("content-type", "application/json");

/// A caller that sends this token with every request.
pub struct Bearer<'a> {
    service: &'a TestService,
    token: String,
}

impl<'a> Bearer<'a> {
    pub(crate) fn new(service: &'a TestService, token: &str) -> Self {
        Self { service, token: token.to_owned() }
    }

    /// Reads a path.
    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "").await
    }

    /// Posts JSON.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.json("POST", path, body).await
    }

    /// Sends JSON.
    pub async fn json(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.send(method, path, &[JSON], &body.to_string()).await
    }

    /// Sends any request.
    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let bearer = format!("Bearer {}", self.token);
        let mut all = vec![("authorization", bearer.as_str())];
        all.extend_from_slice(headers);
        self.service.send(method, path, &all, body).await
    }

    /// Reads a stream whose events are not declared for all kinds of run: its body is not checked against the
    /// declaration.
    pub async fn stream(&self, path: &str, headers: &[(&str, &str)]) -> String {
        let bearer = format!("Bearer {}", self.token);
        let mut all = vec![("authorization", bearer.as_str())];
        all.extend_from_slice(headers);
        self.service.open("GET", path, &all, "").await.rest().await
    }

    /// Creates a service token with these scopes; returns its record with the secret.
    ///
    /// # Panics
    /// When the service refuses.
    pub async fn make_token(&self, scopes: &[&str], workspaces: &[&str]) -> Value {
        let body = json!({"scopes": scopes, "workspaces": workspaces});
        self.post("/api/admin/service-tokens", &body).await.expect(201).value()
    }

    /// Like [`Self::make_token`], but returns only the secret.
    ///
    /// # Panics
    /// When the service refuses.
    pub async fn token(&self, scopes: &[&str], workspaces: &[&str]) -> String {
        self.make_token(scopes, workspaces).await["secret"].as_str().expect("a secret").to_owned()
    }
}
