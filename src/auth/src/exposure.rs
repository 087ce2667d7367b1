//! Whether a service with these settings may listen where it wants to.
//!
//! Tokens, JWTs and sign-in are not served yet, so whatever would need them refuses to start instead of
//! pretending to protect.

use std::net::IpAddr;

/// `SERVICE_AUTH_MODE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// No authentication.
    Disabled,
    /// Credentials are checked where given.
    Optional,
    /// Every request carries credentials.
    Required,
}

/// What decides about the start.
#[derive(Debug, Clone, Copy)]
pub struct Exposure<'a> {
    /// `None`: the variable is unset.
    pub mode: Option<Mode>,
    /// The variable of the first credential that is configured.
    pub credential: Option<&'a str>,
    /// Where the service will listen.
    pub listen: &'a [IpAddr],
    /// `SERVICE_ALLOW_INSECURE`.
    pub allow_insecure: bool,
}

/// Says why the service must not start so, if it must not.
///
/// # Errors
/// One sentence that names the variables to change.
pub fn check(exposure: Exposure<'_>) -> Result<(), String> {
    match (exposure.mode, exposure.credential) {
        (Some(Mode::Required), _) => {
            return Err(
                "SERVICE_AUTH_MODE=required: this version checks no credentials yet, so it would let \
                 nobody in; unset it and listen on loopback"
                    .to_owned(),
            );
        }
        (Some(Mode::Optional), _) => {
            return Err(
                "SERVICE_AUTH_MODE=optional: this version checks no credentials yet, so it cannot tell \
                 good ones from bad ones; unset it and listen on loopback"
                    .to_owned(),
            );
        }
        (None, Some(variable)) => {
            return Err(format!(
                "{variable} is set, which turns authentication on, but this version checks no credentials \
                 yet; unset it, or set SERVICE_AUTH_MODE=disabled and listen on loopback"
            ));
        }
        (Some(Mode::Disabled), _) | (None, None) => {}
    }
    let public = exposure.listen.is_empty() || exposure.listen.iter().any(|address| !is_loopback(*address));
    if !public {
        return Ok(());
    }
    match exposure.mode {
        Some(Mode::Disabled) if exposure.allow_insecure => Ok(()),
        Some(Mode::Disabled) => Err("SERVICE_AUTH_MODE=disabled on an address that others can reach: set \
             SERVICE_HOST to 127.0.0.1, or SERVICE_ALLOW_INSECURE=true if everybody may do everything"
            .to_owned()),
        _ => Err("nothing protects the service on an address that others can reach: set SERVICE_HOST to \
             127.0.0.1, or both SERVICE_AUTH_MODE=disabled and SERVICE_ALLOW_INSECURE=true if everybody may \
             do everything"
            .to_owned()),
    }
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(mode: Option<Mode>, credential: Option<&str>, listen: &str, allow_insecure: bool) -> String {
        let listen = [listen.parse().unwrap()];
        let verdict = check(Exposure { mode, credential, listen: &listen, allow_insecure });
        verdict.map_or_else(|reason| reason, |()| "starts".to_owned())
    }

    #[test]
    fn only_open_services_on_loopback_start() {
        for loopback in ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(start(None, None, loopback, false), "starts");
            assert_eq!(start(Some(Mode::Disabled), None, loopback, false), "starts");
            assert_eq!(start(Some(Mode::Disabled), Some("X"), loopback, false), "starts");
            assert!(start(Some(Mode::Optional), None, loopback, true).contains("SERVICE_AUTH_MODE=optional"));
            assert!(start(Some(Mode::Required), None, loopback, true).contains("SERVICE_AUTH_MODE=required"));
            assert!(start(None, Some("SERVICE_AUTH_JWT_SECRET"), loopback, true).contains("JWT_SECRET"));
        }
        for public in ["0.0.0.0", "::", "10.0.0.1", "192.0.2.1", "::ffff:10.0.0.1"] {
            assert!(start(None, None, public, false).contains("SERVICE_HOST"), "{public}");
            assert!(start(None, None, public, true).contains("SERVICE_AUTH_MODE=disabled"), "{public}");
            assert!(start(Some(Mode::Disabled), None, public, false).contains("SERVICE_ALLOW_INSECURE"));
            assert_eq!(start(Some(Mode::Disabled), None, public, true), "starts");
        }
    }
}
