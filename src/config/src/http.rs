//! The listener and trusted addresses.

use std::net::IpAddr;
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Duration;

use ipnet::IpNet;
use url::Host;

use crate::address::{self, AllowOrigins, BaseUrl};
use crate::parse;
use crate::reader::{RejectedValue, VariableReader};

/// The listener and its address settings.
#[derive(Debug, Clone)]
pub struct Http {
    /// `SERVICE_HOST`: an address (IPv6 without brackets) or a name.
    pub host: String,
    /// `SERVICE_PORT`: 0 picks a free port.
    pub port: u16,
    /// `SERVICE_HTTP_WORKERS`.
    pub workers: usize,
    /// `SERVICE_PUBLIC_BASE_URL`.
    pub public_base_url: Option<BaseUrl>,
    /// `SERVICE_ALLOW_INSECURE`.
    pub allow_insecure: bool,
    /// `SERVICE_CORS_ALLOW_ORIGINS`; an empty list if unset.
    pub allow_origins: AllowOrigins,
    /// `SERVICE_TRUSTED_PROXIES`.
    pub trusted_proxies: Vec<IpNet>,
    /// `SERVICE_TLS_CERT` and `SERVICE_TLS_KEY`.
    pub tls: Option<Tls>,
    /// `SERVICE_WS_MAX_MESSAGE_BYTES`.
    pub ws_max_message_bytes: usize,
    /// `SERVICE_DRAIN_NOTICE`: the time between a stop signal and the listener's end.
    pub drain_notice: Duration,
}

/// The listener's certificate files.
#[derive(Debug, Clone)]
pub struct Tls {
    /// `SERVICE_TLS_CERT`: PEM, may contain a chain.
    pub cert: PathBuf,
    /// `SERVICE_TLS_KEY`: PEM.
    pub key: PathBuf,
}

impl Http {
    /// Whether only this machine can reach the listener. Any name except `localhost` counts as public.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match self.host.parse::<IpAddr>() {
            Ok(address) => address.to_canonical().is_loopback(),
            Err(_) => address::is_loopback(&Host::Domain(&self.host)),
        }
    }
}

pub(crate) fn read(reader: &mut VariableReader<'_>) -> Result<Http, RejectedValue> {
    let host = reader.value("SERVICE_HOST", address::listen_host);
    let port = reader.value("SERVICE_PORT", parse::number(0..=65535));
    let workers = reader.optional("SERVICE_HTTP_WORKERS", parse::number(1..=256));
    let public_base_url = reader.optional("SERVICE_PUBLIC_BASE_URL", address::base_url);
    let allow_insecure = reader.value("SERVICE_ALLOW_INSECURE", parse::boolean);
    let allow_origins = reader.optional("SERVICE_CORS_ALLOW_ORIGINS", address::origins);
    let trusted_proxies = reader.optional("SERVICE_TRUSTED_PROXIES", address::networks);
    let tls = read_tls(reader);
    let ws_max_message_bytes = reader.value("SERVICE_WS_MAX_MESSAGE_BYTES", parse::number(1024..=67_108_864));
    let drain_notice = reader.value("SERVICE_DRAIN_NOTICE", parse::seconds(0..=60));
    Ok(Http {
        host: host?,
        port: port?,
        workers: workers?.unwrap_or_else(|| available_parallelism().map_or(1, usize::from).min(256)),
        public_base_url: public_base_url?,
        allow_insecure: allow_insecure?,
        allow_origins: allow_origins?.unwrap_or_else(|| AllowOrigins::List(Vec::new())),
        trusted_proxies: trusted_proxies?.unwrap_or_default(),
        tls: tls?,
        ws_max_message_bytes: ws_max_message_bytes?,
        drain_notice: drain_notice?,
    })
}

fn read_tls(reader: &mut VariableReader<'_>) -> Result<Option<Tls>, RejectedValue> {
    let cert = reader.optional("SERVICE_TLS_CERT", parse::path);
    let key = reader.optional("SERVICE_TLS_KEY", parse::path);
    match (cert?, key?) {
        (Some(cert), Some(key)) => Ok(Some(Tls { cert, key })),
        (None, None) => Ok(None),
        (Some(_), None) => {
            reader.refuse(
                "SERVICE_TLS_KEY",
                "is not set although SERVICE_TLS_CERT is",
                "set both or neither",
            );
            Err(RejectedValue)
        }
        (None, Some(_)) => {
            reader.refuse(
                "SERVICE_TLS_CERT",
                "is not set although SERVICE_TLS_KEY is",
                "set both or neither",
            );
            Err(RejectedValue)
        }
    }
}
