//! Opens a connection: TLS according to `sslmode`, role, session settings.

use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection};
use tokio::runtime::Handle;
use tokio_postgres::config::Host;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::StoreError;
use crate::database::deadline::Deadline;
use crate::database::unreachable;

/// Maximum time to connect to a host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time for the server to accept the session after that.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum time that sent bytes may stay unacknowledged.
const UNACKNOWLEDGED_LIMIT: Duration = Duration::from_secs(30);
/// TCP keepalive: idle time before the first probe, interval between probes, and unanswered probes before the
/// connection is closed.
const PROBE_AFTER: Duration = Duration::from_secs(30);
const PROBE_EVERY: Duration = Duration::from_secs(10);
const PROBES: u32 = 3;

/// Opens connections to one database on one runtime.
#[derive(Clone)]
pub(crate) struct Connector {
    config: tokio_postgres::Config,
    tls: MakeRustlsConnect,
    verify: Verify,
    runtime: Handle,
}

/// The role and the settings of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionKind<'a> {
    /// The DSN's user: migrations and partitions.
    Owner,
    /// The role without rights over tables; `None` if it could not be created.
    Service(Option<&'a str>),
    /// As [`SessionKind::Service`], with generic plans for the lanes' statements.
    Lane(Option<&'a str>),
}

impl Connector {
    /// Parses the DSN.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the DSN is invalid; the text never contains the DSN.
    pub(crate) fn new(dsn: &str, runtime: Handle) -> Result<Self, StoreError> {
        let (dsn, verify) = verification(dsn);
        // The parser's own message may contain a part of the password.
        let mut config = tokio_postgres::Config::from_str(&dsn)
            .map_err(|_| StoreError::Unavailable("SERVICE_POSTGRES_DSN cannot be read".to_owned()))?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("callboard");
        }
        notice_a_lost_server(&mut config);
        Ok(Self { config, tls: MakeRustlsConnect::new(tls_config(verify)?), verify, runtime })
    }

    /// The database's address in readable form.
    pub(crate) fn place(&self) -> String {
        unreachable::place(&self.config)
    }

    /// TCP hosts and ports that the DSN names.
    pub(crate) fn places(&self) -> Vec<(String, u16)> {
        let (hosts, addresses) = (self.config.get_hosts(), self.config.get_hostaddrs());
        let ports = self.config.get_ports();
        let port = |index: usize| ports.get(index).or_else(|| ports.first()).copied().unwrap_or(5432);
        let names = hosts.iter().enumerate().filter_map(|(index, host)| match host {
            Host::Tcp(name) => Some((name.clone(), port(index))),
            Host::Unix(_) => None,
        });
        let addresses = addresses.iter().enumerate().map(|(index, address)| match address {
            IpAddr::V4(address) => (address.to_string(), port(index)),
            IpAddr::V6(address) => (format!("[{address}]"), port(index)),
        });
        names.chain(addresses).collect()
    }

    /// Whether every host in the DSN is this machine.
    pub(crate) fn is_local(&self) -> bool {
        let address = |address: IpAddr| address.to_canonical().is_loopback();
        let host = |host: &Host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(address),
        };
        let (hosts, addresses) = (self.config.get_hosts(), self.config.get_hostaddrs());
        // If both are given, the address is used and the name is only for the certificate.
        if addresses.is_empty() { hosts.iter().all(host) } else { addresses.iter().copied().all(address) }
    }

    /// Whether the server's certificate is checked.
    pub(crate) fn verifies(&self) -> bool {
        self.verify == Verify::Full
    }

    /// Opens a connection without client-side statement deadlines.
    pub(crate) async fn open(&self, session: SessionKind<'_>) -> Result<AsyncPgConnection, StoreError> {
        let (connection, deadline) = self.open_with_deadline(session).await?;
        deadline.disable();
        Ok(connection)
    }

    /// Opens a connection with a [`Deadline`] for its statements. The runtime given to [`Connector::new`]
    /// drives it, whichever task awaits this.
    pub(crate) async fn open_with_deadline(
        &self,
        session: SessionKind<'_>,
    ) -> Result<(AsyncPgConnection, Deadline), StoreError> {
        let (config, tls) = (self.config.clone(), self.tls.clone());
        let settings = settings(session);
        let limit = self.limit();
        let opening = self.runtime.spawn(async move {
            let opened = open(&config, tls, &settings);
            let opened = kernel::timeout(&kernel::SystemClock::new(), limit, opened).await;
            opened.unwrap_or_else(|| Err(unreachable::silent(&config, limit.as_secs())))
        });
        opening.await.map_err(|error| StoreError::Unavailable(error.to_string()))?
    }

    /// Maximum time for all hosts together: the listener may be another kind of server that waits for more
    /// input.
    fn limit(&self) -> Duration {
        let hosts = self.config.get_hosts().len().max(self.config.get_hostaddrs().len()).max(1);
        let each = self.config.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT);
        each.saturating_mul(u32::try_from(hosts).unwrap_or(u32::MAX)).saturating_add(ANSWER_TIMEOUT)
    }
}

async fn open(
    config: &tokio_postgres::Config,
    tls: MakeRustlsConnect,
    settings: &str,
) -> Result<(AsyncPgConnection, Deadline), StoreError> {
    let (client, connection) =
        config.connect(tls).await.map_err(|error| unreachable::explain(config, &error))?;
    let (deadline, watch) = Deadline::drive(connection);
    let mut connection = AsyncPgConnection::try_from(client).await?;
    connection.set_instrumentation(watch);
    connection.batch_execute(settings).await?;
    deadline.clear();
    Ok((connection, deadline))
}

/// Detects a host that has vanished without closing its connections, for example after a firewall dropped them.
/// The kernel's own limits are 15 minutes for a query that is being sent, and two hours for one that waits for
/// its answer. Values from the DSN take precedence.
fn notice_a_lost_server(config: &mut tokio_postgres::Config) {
    let as_given = tokio_postgres::Config::new();
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(UNACKNOWLEDGED_LIMIT);
    }
    if config.get_keepalives_idle() == as_given.get_keepalives_idle() {
        config.keepalives_idle(PROBE_AFTER);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(PROBE_EVERY);
    }
    if config.get_keepalives_retries().is_none() {
        config.keepalives_retries(PROBES);
    }
}

fn settings(session: SessionKind<'_>) -> String {
    let role = |role: Option<&str>| role.map_or(String::new(), |role| format!("SET ROLE \"{role}\";"));
    match session {
        SessionKind::Owner => "SET lock_timeout = '30s';SET client_min_messages = warning;".to_owned(),
        SessionKind::Service(name) => {
            format!(
                "{}SET statement_timeout = '30s';SET idle_in_transaction_session_timeout = '30s'",
                role(name)
            )
        }
        // The lanes' statements take arrays of any length: a plan for one length suits another, and planning
        // again costs more than the execution. Such a plan may be made while a table is empty, and would then
        // always scan it; but these statements find every row by its key.
        SessionKind::Lane(name) => {
            format!(
                "{}SET plan_cache_mode = force_generic_plan;SET enable_seqscan = off;SET statement_timeout = '30s'",
                role(name)
            )
        }
    }
}

/// Whether the client verifies the server's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verify {
    /// `verify-ca`, `verify-full`.
    Full,
    /// `disable` to `require`: encryption without a check of the server's identity, as in libpq.
    None,
}

/// Translates the libpq modes that tokio-postgres does not know; it knows `disable`, `prefer` and `require`.
pub(crate) fn verification(dsn: &str) -> (String, Verify) {
    for (mode, instead, verify) in [
        ("verify-full", "require", Verify::Full),
        ("verify-ca", "require", Verify::Full),
        ("allow", "prefer", Verify::None),
    ] {
        if let Some((before, after)) = around_mode(dsn, mode) {
            return (format!("{before}{instead}{after}"), verify);
        }
    }
    (dsn.to_owned(), Verify::None)
}

/// The text before and after the `sslmode` value, if that value is `mode`; blanks and a quote may surround it.
fn around_mode<'a>(dsn: &'a str, mode: &str) -> Option<(&'a str, &'a str)> {
    dsn.match_indices("sslmode").find_map(|(at, key)| {
        let (before, behind) = (dsn.get(..at)?, dsn.get(at.saturating_add(key.len())..)?);
        let value = behind.trim_start().strip_prefix('=')?.trim_start();
        let value = value.strip_prefix('\'').unwrap_or(value);
        let after = value.strip_prefix(mode)?;
        let key_begins = before.is_empty() || before.ends_with([' ', '\t', '\n', '?', '&']);
        let value_ends = after.is_empty() || after.starts_with([' ', '\t', '\n', '\'', '&']);
        let end = dsn.len().saturating_sub(value.len());
        (key_begins && value_ends).then(|| dsn.get(..end).map(|before| (before, after)))?
    })
}

pub(crate) fn tls_config(verify: Verify) -> Result<rustls::ClientConfig, StoreError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| StoreError::Unavailable(error.to_string()))?;
    Ok(match verify {
        Verify::Full => {
            let mut roots = rustls::RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            builder.with_root_certificates(roots).with_no_client_auth()
        }
        Verify::None => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(tls::AnyServer(provider)))
            .with_no_client_auth(),
    })
}

mod tls {
    use std::sync::Arc;

    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use rustls::{DigitallySignedStruct, Error, SignatureScheme};

    /// Accepts any certificate, as libpq does below `verify-ca`; the handshake itself is still verified.
    #[derive(Debug)]
    pub(super) struct AnyServer(pub(super) Arc<CryptoProvider>);

    impl ServerCertVerifier for AnyServer {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, Error> {
            Ok(ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.0.signature_verification_algorithms.supported_schemes()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_postgres::config::SslMode;

    #[test]
    fn a_lost_server_is_detected_within_a_minute_by_default() {
        let read = |dsn: &str| {
            let mut config = tokio_postgres::Config::from_str(dsn).unwrap();
            notice_a_lost_server(&mut config);
            config
        };
        let config = read("host=db user=u");
        assert_eq!(config.get_tcp_user_timeout(), Some(&UNACKNOWLEDGED_LIMIT));
        assert_eq!(config.get_keepalives_interval(), Some(PROBE_EVERY));
        assert!(config.get_keepalives());
        let silence = config.get_keepalives_idle() + PROBE_EVERY * config.get_keepalives_retries().unwrap();
        assert!(silence <= Duration::from_secs(60), "{silence:?}");
        let given = "tcp_user_timeout=1000 keepalives=0 keepalives_idle=11 keepalives_interval=12 keepalives_retries=13";
        let config = read(&format!("host=db user=u {given}"));
        assert_eq!(config.get_tcp_user_timeout(), Some(&Duration::from_secs(1000)));
        assert_eq!(config.get_keepalives_idle(), Duration::from_secs(11));
        assert_eq!(config.get_keepalives_interval(), Some(Duration::from_secs(12)));
        assert_eq!((config.get_keepalives_retries(), config.get_keepalives()), (Some(13), false));
    }

    #[test]
    fn sslmodes_of_libpq_are_understood() {
        for (mode, verify, encrypts) in [
            ("disable", Verify::None, false),
            ("allow", Verify::None, true),
            ("prefer", Verify::None, true),
            ("require", Verify::None, true),
            ("verify-ca", Verify::Full, true),
            ("verify-full", Verify::Full, true),
        ] {
            let dsn = format!("postgres://u:p@localhost/db?sslmode={mode}");
            assert_eq!(verification(&dsn).1, verify, "{mode}");
            let config = tokio_postgres::Config::from_str(&verification(&dsn).0).unwrap();
            assert_eq!(config.get_ssl_mode() != SslMode::Disable, encrypts, "{mode}");
            let spaced = format!("host=localhost sslmode = '{mode}' user=u");
            assert_eq!(verification(&spaced).1, verify, "{mode}");
            tokio_postgres::Config::from_str(&verification(&spaced).0).unwrap();
        }
        let password = "host=localhost password=sslmode=allow";
        assert_eq!(verification(password), (password.to_owned(), Verify::None));
    }
}
