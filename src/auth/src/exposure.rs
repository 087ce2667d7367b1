//! Whether a service with these settings may listen on its addresses, and which callers need a credential.

use std::net::IpAddr;

/// `SERVICE_AUTH_MODE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// No authentication.
    Disabled,
    /// Credentials are checked if presented.
    Optional,
    /// Every request carries credentials.
    Required,
}

/// Settings that decide whether the service may start.
#[derive(Debug, Clone, Copy)]
pub struct Exposure<'a> {
    /// `None`: the variable is unset.
    pub mode: Option<Mode>,
    /// The variable of the first configured credential.
    pub credential: Option<&'a str>,
    /// The addresses to listen on.
    pub listen: &'a [IpAddr],
    /// `SERVICE_ALLOW_INSECURE`.
    pub allow_insecure: bool,
}

/// Callers that need a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// None; a presented credential is ignored.
    Nobody,
    /// None; a presented credential is verified.
    WhoGivesOne,
    /// All, once a service token is stored; until then, a presented credential is verified.
    EverybodyOnceThereAreTokens,
    /// All.
    Everybody,
}

/// Returns the callers that need a credential, or the reason not to start.
///
/// # Errors
/// One sentence that names the variables to change.
pub fn check(exposure: Exposure<'_>) -> Result<Asks, String> {
    let Exposure { mode, credential, listen, allow_insecure } = exposure;
    let public = is_reachable(listen);
    match (mode, credential) {
        (Some(Mode::Required), _) | (None, Some(_)) => Ok(Asks::Everybody),
        (Some(Mode::Optional), _) if public && !allow_insecure => {
            Err("SERVICE_AUTH_MODE=optional on an address that others can reach does not require a credential: set it to \
                 required, or SERVICE_HOST to 127.0.0.1, or SERVICE_ALLOW_INSECURE=true if every caller may do \
                 everything"
                .to_owned())
        }
        (Some(Mode::Optional), Some(_)) => Ok(Asks::WhoGivesOne),
        (Some(Mode::Disabled), _) if public && !allow_insecure => {
            Err("SERVICE_AUTH_MODE=disabled on an address that others can reach: set SERVICE_HOST to \
                 127.0.0.1, or SERVICE_ALLOW_INSECURE=true if every caller may do everything"
                .to_owned())
        }
        (_, None) if public && !allow_insecure => {
            Err("nothing protects the service on an address that others can reach: set \
                 SERVICE_AUTH_MODE=required with SERVICE_AUTH_BOOTSTRAP_SERVICE_TOKEN, or SERVICE_HOST to \
                 127.0.0.1, or SERVICE_ALLOW_INSECURE=true if every caller may do everything"
                .to_owned())
        }
        (Some(Mode::Disabled), _) => Ok(Asks::Nobody),
        (Some(Mode::Optional), None) => Ok(Asks::WhoGivesOne),
        (None, None) => Ok(Asks::EverybodyOnceThereAreTokens),
    }
}

/// Whether other machines can reach at least one address.
#[must_use]
pub fn is_reachable(listen: &[IpAddr]) -> bool {
    listen.is_empty() || listen.iter().any(|address| !is_loopback(*address))
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: Option<&str> = Some("SERVICE_AUTH_JWT_SECRET");

    fn start(mode: Option<Mode>, credential: Option<&str>, listen: &str, allow_insecure: bool) -> String {
        let listen = [listen.parse().unwrap()];
        let verdict = check(Exposure { mode, credential, listen: &listen, allow_insecure });
        verdict.map_or_else(|reason| reason, |asks| format!("{asks:?}"))
    }

    #[test]
    fn on_loopback_every_mode_starts() {
        for loopback in ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"] {
            for insecure in [false, true] {
                assert_eq!(start(None, None, loopback, insecure), "EverybodyOnceThereAreTokens");
                assert_eq!(start(None, SECRET, loopback, insecure), "Everybody");
                assert_eq!(start(Some(Mode::Disabled), SECRET, loopback, insecure), "Nobody");
                assert_eq!(start(Some(Mode::Optional), SECRET, loopback, insecure), "WhoGivesOne");
                assert_eq!(start(Some(Mode::Optional), None, loopback, insecure), "WhoGivesOne");
                assert_eq!(start(Some(Mode::Required), None, loopback, insecure), "Everybody");
            }
        }
    }

    #[test]
    fn a_publicly_reachable_service_requires_protection() {
        for public in ["0.0.0.0", "::", "10.0.0.1", "192.0.2.1", "::ffff:10.0.0.1"] {
            for mode in [None, Some(Mode::Optional), Some(Mode::Disabled)] {
                let refusal = start(mode, None, public, false);
                assert!(refusal.contains("SERVICE_ALLOW_INSECURE=true"), "{public} {mode:?}: {refusal}");
                assert!(!start(mode, None, public, true).contains(' '), "{public} {mode:?}");
            }
            assert!(start(Some(Mode::Disabled), SECRET, public, false).contains("SERVICE_ALLOW_INSECURE"));
            assert_eq!(start(None, SECRET, public, false), "Everybody");
            assert!(start(Some(Mode::Optional), SECRET, public, false).contains("SERVICE_ALLOW_INSECURE"));
            assert_eq!(start(Some(Mode::Optional), SECRET, public, true), "WhoGivesOne");
            assert_eq!(start(Some(Mode::Required), None, public, false), "Everybody");
        }
        assert!(
            check(Exposure { mode: None, credential: None, listen: &[], allow_insecure: false }).is_err()
        );
    }
}
