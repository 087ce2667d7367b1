//! The hosted app under measurement, published over HTTP as its owner would.

mod archive;
mod http;

use std::fmt;

use serde_json::{Value, json};

pub(super) use http::{Answer, Broken, Request, ask};

/// A public app.
#[derive(Debug, Clone)]
pub(super) struct App {
    alias: String,
}

/// Uploaded files that are not published.
#[derive(Debug, Clone)]
pub(super) struct Deployment {
    pub(super) id: String,
    permission_revision: String,
}

/// The reason why an operation failed.
#[derive(Debug)]
pub(super) enum RequestFailure {
    /// The request has no response.
    Broken(Broken),
    /// An unexpected status, with the response body.
    Refused(u16, String),
}

impl fmt::Display for RequestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(broken) => write!(f, "{broken}"),
            Self::Refused(status, body) => write!(f, "{status}: {body}"),
        }
    }
}

impl std::error::Error for RequestFailure {}

impl App {
    /// Creates the app.
    ///
    /// # Errors
    /// [`RequestFailure`] if it cannot be created.
    pub(super) async fn create(address: &str, alias: &str) -> Result<Self, RequestFailure> {
        let body = json!({"alias": alias, "name": alias, "access": "public"});
        post(address, "/api/apps", &body, 201).await?;
        Ok(Self { alias: alias.to_owned() })
    }

    /// The host name of the app's pages, without a port.
    pub(super) fn host(&self) -> String {
        format!("{}.apps.localhost", self.alias)
    }

    /// Uploads files as a deployment.
    ///
    /// # Errors
    /// [`RequestFailure`] if they are not stored.
    pub(super) async fn deploy(
        &self,
        address: &str,
        files: &[(&str, &[u8])],
    ) -> Result<Deployment, RequestFailure> {
        let archive =
            archive::archive(files).map_err(|error| RequestFailure::Refused(0, error.to_string()))?;
        let path = format!("/api/apps/{}/deployments", self.alias);
        let answer = send(address, &path, "application/zip", &archive, 201).await?;
        let permission_revision = text(&answer, "/permissions/permission_revision")?;
        Ok(Deployment { id: text(&answer, "/id")?, permission_revision })
    }

    /// Acknowledges a deployment's permissions and publishes it. Returns the release id.
    ///
    /// # Errors
    /// [`RequestFailure`] if it is not published, or without a response.
    pub(super) async fn publish(
        &self,
        address: &str,
        deployment: &Deployment,
    ) -> Result<String, RequestFailure> {
        let path = format!("/api/apps/{}/deployments/{}", self.alias, deployment.id);
        let revision = json!({"permission_revision": deployment.permission_revision});
        post(address, &format!("{path}/acknowledge"), &revision, 200).await?;
        text(&post(address, &format!("{path}/publish"), &json!({}), 201).await?, "/id")
    }

    /// Publishes the deployment of an earlier release again. Returns the new release id.
    ///
    /// # Errors
    /// [`RequestFailure`] if it is not published, or without a response.
    pub(super) async fn roll_back(&self, address: &str, release: &str) -> Result<String, RequestFailure> {
        let path = format!("/api/apps/{}/rollback", self.alias);
        text(&post(address, &path, &json!({"release": release}), 201).await?, "/id")
    }

    /// The active release's id, and its deployment's id.
    ///
    /// # Errors
    /// [`RequestFailure`] without an active release, or without a response.
    pub(super) async fn active(&self, address: &str) -> Result<(String, String), RequestFailure> {
        let path = format!("/api/apps/{}", self.alias);
        let app = json_of(ask(address, Request::get(address, &path)).await, 200)?;
        Ok((text(&app, "/active_release/id")?, text(&app, "/active_release/deployment_id")?))
    }
}

async fn post(address: &str, path: &str, body: &Value, status: u16) -> Result<Value, RequestFailure> {
    send(address, path, "application/json", body.to_string().as_bytes(), status).await
}

async fn send(
    address: &str,
    path: &str,
    kind: &str,
    body: &[u8],
    status: u16,
) -> Result<Value, RequestFailure> {
    let headers = format!("Content-Type: {kind}\r\n");
    let request = Request { method: "POST", host: address, path, headers: &headers, body };
    json_of(ask(address, request).await, status)
}

fn json_of(answer: Result<Answer, Broken>, status: u16) -> Result<Value, RequestFailure> {
    let answer = answer.map_err(RequestFailure::Broken)?;
    let body = || String::from_utf8_lossy(&answer.body).into_owned();
    match serde_json::from_slice(&answer.body) {
        Ok(value) if answer.status == status => Ok(value),
        _ => Err(RequestFailure::Refused(answer.status, body())),
    }
}

fn text(answer: &Value, pointer: &str) -> Result<String, RequestFailure> {
    let text = answer.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    text.ok_or_else(|| RequestFailure::Refused(200, format!("{answer} has no {pointer}")))
}
