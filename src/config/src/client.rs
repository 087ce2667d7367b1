//! Settings for the client commands.

use kernel::Secret;

use crate::address::{self, BaseUrl};
use crate::parse;
use crate::problem::Problems;
use crate::reader::{RejectedValue, VariableReader};
use crate::source::Source;

/// Address and token for the client commands; flags take precedence, and the profile file replaces unset values.
#[derive(Debug, Clone)]
pub struct Client {
    /// `SERVICE_API_URL`.
    pub api_url: Option<BaseUrl>,
    /// `SERVICE_SERVICE_TOKEN`.
    pub service_token: Option<Secret>,
}

impl Client {
    /// Reads and checks only these variables: a client command does not depend on the service configuration.
    ///
    /// # Errors
    /// [`Problems`] with every problem of these variables or of the `.env` file.
    pub fn load(source: &Source) -> Result<Self, Problems> {
        let mut reader = VariableReader::new(source);
        match read(&mut reader) {
            Ok(client) if reader.problems().is_empty() => Ok(client),
            Ok(_) | Err(RejectedValue) => Err(Problems(reader.into_problems())),
        }
    }
}

pub(crate) fn read(reader: &mut VariableReader<'_>) -> Result<Client, RejectedValue> {
    let api_url = reader.optional("SERVICE_API_URL", address::base_url);
    let service_token = reader.secret("SERVICE_SERVICE_TOKEN", parse::header_secret);
    Ok(Client { api_url: api_url?, service_token: service_token? })
}
