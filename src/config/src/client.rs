//! What the client commands use.

use kernel::Secret;

use crate::address::{self, BaseUrl};
use crate::parse;
use crate::reader::{Reader, Refused};

/// Address and token of the client commands; flags win over them, the profile file stands in for what is unset.
#[derive(Debug, Clone)]
pub struct Client {
    /// `SERVICE_API_URL`.
    pub api_url: Option<BaseUrl>,
    /// `SERVICE_SERVICE_TOKEN`.
    pub service_token: Option<Secret>,
}

pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Client, Refused> {
    let api_url = reader.optional("SERVICE_API_URL", address::base_url);
    let service_token = reader.secret("SERVICE_SERVICE_TOKEN", parse::header_secret);
    Ok(Client { api_url: api_url?, service_token: service_token? })
}
