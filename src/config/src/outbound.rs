//! What the service itself calls: models, what workflows may reach, other instances.

use kernel::Secret;

use crate::address::{self, BaseUrl, HostPort};
use crate::parse;
use crate::reader::{Reader, Refused};

/// The endpoint behind `openai/<model>` when no credential names another.
#[derive(Debug, Clone)]
pub struct Model {
    /// `SERVICE_MODEL_BASE_URL`; `/chat/completions` goes behind it.
    pub base_url: Option<BaseUrl>,
    /// `SERVICE_MODEL_API_KEY`.
    pub api_key: Option<Secret>,
}

/// What calls of workflows may reach beyond public addresses.
#[derive(Debug, Clone)]
pub struct Egress {
    /// `SERVICE_EGRESS_ALLOW`.
    pub allow: Vec<HostPort>,
}

/// Live events between instances.
#[derive(Debug, Clone)]
pub struct Fabric {
    /// `SERVICE_NATS_URL`: one or several addresses between commas; may hold passwords.
    pub nats_url: Option<Secret>,
}

pub(crate) fn read_model(reader: &mut Reader<'_>) -> Result<Model, Refused> {
    let base_url = reader.optional("SERVICE_MODEL_BASE_URL", address::base_url);
    let api_key = reader.secret("SERVICE_MODEL_API_KEY", parse::header_secret);
    Ok(Model { base_url: base_url?, api_key: api_key? })
}

pub(crate) fn read_egress(reader: &mut Reader<'_>) -> Result<Egress, Refused> {
    let allow = reader.optional("SERVICE_EGRESS_ALLOW", address::host_ports)?;
    Ok(Egress { allow: allow.unwrap_or_default() })
}

pub(crate) fn read_fabric(reader: &mut Reader<'_>) -> Result<Fabric, Refused> {
    let nats_url = reader.secret("SERVICE_NATS_URL", |text| {
        text.split(',').try_for_each(|server| {
            address::secret_url(
                server.trim(),
                &["nats", "tls", "ws", "wss"],
                "write for example nats://host:4222",
            )
        })
    })?;
    Ok(Fabric { nats_url })
}
