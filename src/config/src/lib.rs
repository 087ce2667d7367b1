//! Every configuration variable: typed, documented, validated together.
//!
//! [`Source`] collects the given values, and [`Config::load`] turns them into typed values or lists *all* problems
//! ([`Problems`]). Only `variables.toml` documents the variables; [`table()`] and [`render()`] show it. Nothing here
//! acts on the values. Only [`Source`] and defaults that depend on the machine do I/O.

mod address;
mod apps;
mod auth;
mod chat;
mod client;
mod dsn;
mod env_file;
mod http;
mod log;
mod outbound;
mod parse;
mod problem;
mod reader;
mod sandbox;
mod sign_in;
mod source;
mod storage;
mod table;
mod variables;
mod vault;
mod warnings;

#[cfg(test)]
mod tests;

pub use address::{AllowOrigins, BaseUrl, HostPort};
pub use apps::Apps;
pub use auth::{Algorithm, Auth, AuthMode, Bootstrap, FailureLimit, Jwks, StaticJwks};
pub use chat::{Chat, ChatLimit, Dialect, DisconnectGrace, Integrity};
pub use client::Client;
pub use http::{Http, Tls};
pub use log::{Log, LogFormat};
pub use outbound::{Egress, Fabric, Model, ModelEndpoint, ModelTape};
pub use problem::{Problem, Problems};
pub use sandbox::Sandbox;
pub use sign_in::{Mail, Oidc, SignIn, Signup};
pub use source::{Origin, Source};
pub use storage::{Data, Database};
pub use table::{Look, Row, render, table, table_of_problems};
pub use variables::{Variable, variables};
pub use vault::{Vault, VaultKey, VaultKeys};
pub use warnings::warnings;

use ::auth::host::RequestHost;
use reader::{RejectedValue, VariableReader};
use secrecy::ExposeSecret;

/// The complete, checked configuration. Its `Debug` shows no secret.
#[derive(Debug, Clone)]
pub struct Config {
    /// The listener and trusted addresses.
    pub http: Http,
    /// The data folder.
    pub data: Data,
    /// The database and its connections.
    pub database: Database,
    /// Authentication.
    pub auth: Auth,
    /// User sign-in.
    pub sign_in: SignIn,
    /// Mail delivery.
    pub mail: Mail,
    /// Chat sessions, streams and limits.
    pub chat: Chat,
    /// The keys that seal stored secrets.
    pub vault: Vault,
    /// The model endpoint.
    pub model: Model,
    /// Targets that outbound calls may reach.
    pub egress: Egress,
    /// The event fabric between instances.
    pub fabric: Fabric,
    /// The processes that run user code.
    pub sandbox: Sandbox,
    /// Hosted apps.
    pub apps: Apps,
    /// The log.
    pub log: Log,
    /// Settings for the client commands.
    pub client: Client,
}

impl Config {
    /// Reads and checks every variable.
    ///
    /// # Errors
    /// [`Problems`] with every problem, not only the first.
    pub fn load(source: &Source) -> Result<Self, Problems> {
        let mut reader = VariableReader::new(source);
        let config = Self::read(&mut reader);
        if let Ok(config) = &config {
            config.check(&mut reader);
        }
        match config {
            Ok(config) if reader.problems().is_empty() => Ok(config),
            Ok(_) | Err(RejectedValue) => Err(Problems(reader.into_problems())),
        }
    }

    /// Whether people can sign in by mail. Without a mail server, an OpenID provider replaces it. Without either, mail
    /// goes to the log, but only if the service knows its own address or others cannot reach it.
    #[must_use]
    pub fn offers_mail_sign_in(&self) -> bool {
        let knows_its_address = self.http.public_base_url.is_some() || self.http.is_loopback();
        self.mail.smtp_url.is_some() || (self.sign_in.oidc.is_none() && knows_its_address)
    }

    /// Checks combinations of variables.
    fn check(&self, reader: &mut VariableReader<'_>) {
        let signs_in = self.offers_mail_sign_in() || self.sign_in.oidc.is_some();
        let signs = self.auth.jwt_secret.as_ref().is_some_and(|secret| !secret.expose_secret().is_empty());
        if signs_in && signs && !self.auth.allowed_algorithms.contains(&Algorithm::Hs256) {
            reader.refuse(
                "SERVICE_AUTH_ALLOWED_ALGORITHMS",
                "excludes HS256, with which the service signs its access tokens \
                 (SERVICE_AUTH_JWT_SECRET)",
                "add HS256, or unset SERVICE_AUTH_JWT_SECRET",
            );
        }
        let public = self.http.public_base_url.as_ref().and_then(|base| base.url().host_str());
        if public.and_then(RequestHost::parse).is_some_and(|public| public.is_within(&self.apps.domain)) {
            reader.refuse(
                "SERVICE_APPS_DOMAIN",
                "contains the host of SERVICE_PUBLIC_BASE_URL, so that the service itself would be an app",
                "set a domain for apps alone",
            );
        }
    }

    /// Reads every group before the first `?`, so that one bad value hides no other.
    fn read(reader: &mut VariableReader<'_>) -> Result<Self, RejectedValue> {
        let http = http::read(reader);
        let data = storage::read_data(reader);
        let database = storage::read_database(reader);
        let auth = auth::read(reader);
        let sign_in = sign_in::read(reader);
        let mail = sign_in::read_mail(reader);
        let chat = chat::read(reader);
        let vault = vault::read(reader);
        let model = outbound::read_model(reader);
        let egress = outbound::read_egress(reader);
        let fabric = outbound::read_fabric(reader);
        let sandbox = sandbox::read(reader);
        let apps = apps::read(reader);
        let log = log::read(reader);
        let client = client::read(reader);
        Ok(Self {
            http: http?,
            data: data?,
            database: database?,
            auth: auth?,
            sign_in: sign_in?,
            mail: mail?,
            chat: chat?,
            vault: vault?,
            model: model?,
            egress: egress?,
            fabric: fabric?,
            sandbox: sandbox?,
            apps: apps?,
            log: log?,
            client: client?,
        })
    }
}
