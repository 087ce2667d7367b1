//! From configuration to the rules of exposure.

use std::net::{IpAddr, ToSocketAddrs};

use auth::exposure::{Asks, Exposure, Mode, check};
use config::{AuthMode, Config};

/// Where the configured host is, whether the service may listen there, and whom it asks for a credential.
///
/// # Errors
/// One sentence that names the variables to change.
pub(crate) fn allowed(config: &Config) -> Result<Asks, String> {
    let host = config.http.host.as_str();
    let resolved = (host, config.http.port).to_socket_addrs();
    let resolved = resolved.map_err(|_| {
        format!("SERVICE_HOST: no address is known for the name {host}; write an address, such as 127.0.0.1")
    })?;
    let listen: Vec<IpAddr> = resolved.map(|address| address.ip()).collect();
    let mode = config.auth.mode.map(|mode| match mode {
        AuthMode::Disabled => Mode::Disabled,
        AuthMode::Optional => Mode::Optional,
        AuthMode::Required => Mode::Required,
    });
    check(Exposure {
        mode,
        credential: config.auth.credential_configured(),
        listen: &listen,
        allow_insecure: config.http.allow_insecure,
    })
}
