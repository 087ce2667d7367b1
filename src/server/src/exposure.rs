//! Applies the exposure rules to the configuration.

use std::net::{IpAddr, ToSocketAddrs};

use auth::exposure::{Asks, Exposure, Mode, check, is_reachable};
use config::{AuthMode, Config};

/// Resolves the configured host, and checks whether the service may listen there. Returns which callers need a
/// credential.
///
/// # Errors
/// One sentence that names the variables to change.
pub(crate) fn allowed(config: &Config) -> Result<Asks, String> {
    let host = config.http.host.as_str();
    let resolved = (host, config.http.port).to_socket_addrs();
    let resolved = resolved.map_err(|_| {
        format!("SERVICE_HOST: the name {host} does not resolve; use an address, such as 127.0.0.1")
    })?;
    let listen: Vec<IpAddr> = resolved.map(|address| address.ip()).collect();
    check_links(config, &listen)?;
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

/// Requires a configured base URL if others can reach the service, so that a request cannot choose the target of links
/// that leave the service.
fn check_links(config: &Config, listen: &[IpAddr]) -> Result<(), String> {
    let leaves = match (&config.mail.smtp_url, &config.sign_in.oidc) {
        (Some(_), _) => "sign-in by email (SERVICE_SMTP_URL)",
        (None, Some(_)) => "sign-in with a provider (SERVICE_OIDC_ISSUER)",
        (None, None) => return Ok(()),
    };
    if config.http.public_base_url.is_some() || !is_reachable(listen) {
        return Ok(());
    }
    Err(format!(
        "{leaves} on an address that others can reach needs SERVICE_PUBLIC_BASE_URL for its links: set it to the address at \
         which people open the service, such as https://desk.example.com"
    ))
}
