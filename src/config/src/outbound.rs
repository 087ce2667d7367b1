//! Outbound calls of the service: models, workflow egress, other instances.

use std::path::PathBuf;

use kernel::Secret;

use crate::address::{self, BaseUrl, HostPort};
use crate::parse;
use crate::reader::{RejectedValue, VariableReader};

/// Model endpoints, used if no credential names another.
#[derive(Debug, Clone)]
pub struct Model {
    /// `SERVICE_MODEL_BASE_URL`, used for `openai/<model>`; the service appends `/chat/completions`.
    pub base_url: Option<BaseUrl>,
    /// `SERVICE_MODEL_API_KEY`.
    pub api_key: Option<Secret>,
    /// `SERVICE_ANTHROPIC_BASE_URL` and `SERVICE_ANTHROPIC_API_KEY`.
    pub anthropic: ModelEndpoint,
    /// `SERVICE_GEMINI_BASE_URL` and `SERVICE_GEMINI_API_KEY`.
    pub gemini: ModelEndpoint,
    /// The file that records answers or replays them.
    pub tape: Option<ModelTape>,
}

/// An endpoint with a known address: a key is enough.
#[derive(Debug, Clone)]
pub struct ModelEndpoint {
    /// A different address.
    pub base_url: Option<BaseUrl>,
    /// The key.
    pub api_key: Option<Secret>,
}

/// Recorded model calls in a file, for development.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelTape {
    /// `SERVICE_MODEL_RECORD`: each request and its answer are appended.
    Record(PathBuf),
    /// `SERVICE_MODEL_REPLAY`: answers come from the file, and no endpoint is called.
    Replay(PathBuf),
}

/// Targets beyond public addresses that workflow calls may reach.
#[derive(Debug, Clone)]
pub struct Egress {
    /// `SERVICE_EGRESS_ALLOW`.
    pub allow: Vec<HostPort>,
}

/// Live events between instances.
#[derive(Debug, Clone)]
pub struct Fabric {
    /// `SERVICE_NATS_URL`: one or more comma-separated addresses; may contain passwords.
    pub nats_url: Option<Secret>,
}

pub(crate) fn read_model(reader: &mut VariableReader<'_>) -> Result<Model, RejectedValue> {
    let base_url = reader.optional("SERVICE_MODEL_BASE_URL", address::base_url);
    let api_key = reader.secret("SERVICE_MODEL_API_KEY", parse::header_secret);
    let anthropic = read_endpoint(reader, "SERVICE_ANTHROPIC_BASE_URL", "SERVICE_ANTHROPIC_API_KEY");
    let gemini = read_endpoint(reader, "SERVICE_GEMINI_BASE_URL", "SERVICE_GEMINI_API_KEY");
    let tape = read_tape(reader);
    Ok(Model { base_url: base_url?, api_key: api_key?, anthropic: anthropic?, gemini: gemini?, tape: tape? })
}

fn read_endpoint(
    reader: &mut VariableReader<'_>,
    address: &'static str,
    key: &'static str,
) -> Result<ModelEndpoint, RejectedValue> {
    let base_url = reader.optional(address, address::base_url);
    let api_key = reader.secret(key, parse::header_secret);
    Ok(ModelEndpoint { base_url: base_url?, api_key: api_key? })
}

fn read_tape(reader: &mut VariableReader<'_>) -> Result<Option<ModelTape>, RejectedValue> {
    let record = reader.optional("SERVICE_MODEL_RECORD", parse::path);
    let replay = reader.optional("SERVICE_MODEL_REPLAY", parse::path);
    match (record?, replay?) {
        (Some(_), Some(_)) => {
            let instead = "set one of them: record first, then replay";
            reader.refuse("SERVICE_MODEL_REPLAY", "cannot be combined with SERVICE_MODEL_RECORD", instead);
            Err(RejectedValue)
        }
        (Some(path), None) => Ok(Some(ModelTape::Record(path))),
        (None, path) => Ok(path.map(ModelTape::Replay)),
    }
}

pub(crate) fn read_egress(reader: &mut VariableReader<'_>) -> Result<Egress, RejectedValue> {
    let allow = reader.optional("SERVICE_EGRESS_ALLOW", address::host_ports)?;
    Ok(Egress { allow: allow.unwrap_or_default() })
}

pub(crate) fn read_fabric(reader: &mut VariableReader<'_>) -> Result<Fabric, RejectedValue> {
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
