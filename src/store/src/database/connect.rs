//! Opening a connection: TLS as `sslmode` asks, role, session settings.

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

/// How long reaching a host may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the server may take after that until it has let us in.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// How long bytes to the server may stay unacknowledged.
const UNACKNOWLEDGED_LIMIT: Duration = Duration::from_secs(30);
/// After how long a silent connection is probed, how often, and how many probes may stay without an answer.
const PROBE_AFTER: Duration = Duration::from_secs(30);
const PROBE_EVERY: Duration = Duration::from_secs(10);
const PROBES: u32 = 3;

/// Opens connections to one database, on one runtime.
#[derive(Clone)]
pub(crate) struct Connector {
    config: tokio_postgres::Config,
    tls: MakeRustlsConnect,
    verify: Verify,
    runtime: Handle,
}

/// Whom a connection works as, and how.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Session<'a> {
    /// As the DSN's user: migrations and partitions.
    Owner,
    /// As the role without rights over tables; `None` where it could not be made.
    Service(Option<&'a str>),
    /// As [`Session::Service`], with plans fixed for the lanes' statements.
    Lane(Option<&'a str>),
}

impl Connector {
    /// Reads the DSN.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when it cannot be read; the text never holds the DSN.
    pub(crate) fn new(dsn: &str, runtime: Handle) -> Result<Self, StoreError> {
        let (dsn, verify) = verification(dsn);
        // The parser's own words may hold a piece of the password.
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

    /// Where it leads, as a person writes it.
    pub(crate) fn place(&self) -> String {
        unreachable::place(&self.config)
    }

    /// Hosts and ports of the network that it may lead to.
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

    /// Whether every host it names is this machine.
    pub(crate) fn is_local(&self) -> bool {
        let address = |address: IpAddr| address.to_canonical().is_loopback();
        let host = |host: &Host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(address),
        };
        let (hosts, addresses) = (self.config.get_hosts(), self.config.get_hostaddrs());
        // An address counts where both are given: the name is for the certificate then.
        if addresses.is_empty() { hosts.iter().all(host) } else { addresses.iter().copied().all(address) }
    }

    /// Whether the server's certificate is checked.
    pub(crate) fn verifies(&self) -> bool {
        self.verify == Verify::Full
    }

    /// Opens a connection whose statements have no limit on this side.
    pub(crate) async fn open(&self, session: Session<'_>) -> Result<AsyncPgConnection, StoreError> {
        let (connection, deadline) = self.open_with_deadline(session).await?;
        deadline.disable();
        Ok(connection)
    }

    /// Opens a connection whose statements have a [`Deadline`]. The runtime given to [`Connector::new`] drives it, whichever
    /// task awaits this.
    pub(crate) async fn open_with_deadline(
        &self,
        session: Session<'_>,
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

    /// How long all hosts together may take: what listens there may be something that waits for us to say more.
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

/// Ends connections to a host that has vanished without closing them, as one behind a firewall that forgets: the kernel's own limits are
/// 15 minutes for a query that is sent, and two hours for one that waits for its answer. What the DSN says stays.
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

fn settings(session: Session<'_>) -> String {
    let role = |role: Option<&str>| role.map_or(String::new(), |role| format!("SET ROLE \"{role}\";"));
    match session {
        Session::Owner => "SET lock_timeout = '30s';".to_owned(),
        Session::Service(name) => {
            format!(
                "{}SET statement_timeout = '30s';SET idle_in_transaction_session_timeout = '30s'",
                role(name)
            )
        }
        // The lanes' statements take arrays of any length: a plan made for one length is as good for another,
        // and planning anew costs more than running. Such a plan may be made while a table is empty, and would then
        // scan it for ever; every row of theirs is found by its key.
        Session::Lane(name) => {
            format!(
                "{}SET plan_cache_mode = force_generic_plan;SET enable_seqscan = off;SET statement_timeout = '30s'",
                role(name)
            )
        }
    }
}

/// Whether the server's certificate is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verify {
    /// `verify-ca`, `verify-full`.
    Full,
    /// `disable` to `require`: as libpq, encryption without a check of who is there.
    None,
}

/// tokio-postgres knows `disable`, `prefer` and `require`; the other modes of libpq are translated.
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

/// What stands around the value of `sslmode`, if that is `mode`; blanks and a quote may be around it.
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

    /// Takes any certificate, as libpq does below `verify-ca`; the handshake itself is still checked.
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
    fn a_lost_server_is_noticed_within_a_minute_unless_the_dsn_says_otherwise() {
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
