//! Explains a failed connection in one sentence that says what to do.

use std::error::Error as _;
use std::io::{self, ErrorKind};

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::{DbError, SqlState};

use crate::StoreError;

/// The setting that the operator can change.
const DSN: &str = "SERVICE_POSTGRES_DSN";

/// Explains the error of a connection attempt with `config`.
pub(crate) fn explain(config: &Config, error: &tokio_postgres::Error) -> StoreError {
    let server = place(config);
    let text = match (error.as_db_error(), io_error(error)) {
        (Some(refusal), _) => refused(config, &server, refusal),
        (None, Some(error)) => unanswered(&server, error),
        (None, None) => misunderstood(config, &server, error),
    };
    StoreError::Unavailable(text)
}

/// The server stayed silent until the timeout.
pub(crate) fn silent(config: &Config, seconds: u64) -> StoreError {
    let server = place(config);
    StoreError::Unavailable(format!(
        "{server} did not respond within {seconds} seconds; check that it is a PostgreSQL server, and correct the host and port in {DSN}"
    ))
}

/// The hosts and ports in readable form.
pub(crate) fn place(config: &Config) -> String {
    let port = |index: usize| {
        let ports = config.get_ports();
        ports.get(index).or_else(|| ports.first()).copied().unwrap_or(5432)
    };
    let hosts = config.get_hosts().iter().enumerate().map(|(index, host)| match host {
        Host::Tcp(name) if name.contains(':') => format!("[{name}]:{}", port(index)),
        Host::Tcp(name) => format!("{name}:{}", port(index)),
        Host::Unix(folder) => format!("{}/.s.PGSQL.{}", folder.display(), port(index)),
    });
    let mut places: Vec<String> = hosts.collect();
    if places.is_empty() {
        let addresses = config.get_hostaddrs().iter().enumerate();
        places.extend(addresses.map(|(index, address)| format!("{address} port {}", port(index))));
    }
    places.join(", ")
}

/// The network error, unless TLS failed.
fn io_error(error: &tokio_postgres::Error) -> Option<&io::Error> {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(found) = inner.downcast_ref::<io::Error>() {
            return (found.kind() != ErrorKind::InvalidData).then_some(found);
        }
        cause = inner.source();
    }
    None
}

/// The server rejected the connection.
fn refused(config: &Config, server: &str, refusal: &DbError) -> String {
    let (code, said) = (refusal.code(), refusal.message());
    let user = config.get_user().map_or_else(|| "(none given)".to_owned(), |user| format!("\"{user}\""));
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    if *code == SqlState::INVALID_PASSWORD {
        return format!("{server} rejects the user {user} or the password; correct them in {DSN}");
    }
    if *code == SqlState::INVALID_CATALOG_NAME {
        return format!(
            "{server} has no database \"{database}\"; create it (createdb {database}), or name another in {DSN}"
        );
    }
    if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        return format!(
            "{server} denies the user {user} access to the database \"{database}\"; grant it CONNECT there, or name \
             another user in {DSN}"
        );
    }
    if *code == SqlState::TOO_MANY_CONNECTIONS {
        return format!(
            "{server} has no free connection ({said}); raise its limit, or lower SERVICE_DATABASE_POOL"
        );
    }
    if *code == SqlState::CANNOT_CONNECT_NOW {
        return format!("{server} accepts no connections at present ({said}); try again when it is up");
    }
    if *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION {
        // Every translation of this message names `pg_hba.conf`.
        return if said.contains("pg_hba.conf") && config.get_ssl_mode() == SslMode::Disable {
            format!(
                "{server} does not accept this connection without TLS ({said}); set sslmode=require in {DSN}, or allow it \
                 in the server's pg_hba.conf"
            )
        } else if said.contains("pg_hba.conf") {
            format!(
                "{server} does not accept the user {user} from here ({said}); allow it in the server's pg_hba.conf"
            )
        } else {
            format!(
                "{server} does not accept the user {user} ({said}); create the user there with LOGIN, or name another in {DSN}"
            )
        };
    }
    format!("{server} refuses the connection: {said}; check {DSN}")
}

/// The server did not answer.
fn unanswered(server: &str, error: &io::Error) -> String {
    // An unknown host name has no dedicated error kind.
    if error.to_string().contains("lookup address") {
        return format!("the host of {server} cannot be resolved; correct it in {DSN}");
    }
    match error.kind() {
        ErrorKind::ConnectionRefused => format!(
            "nothing listens at {server}; start PostgreSQL there, or correct the host and port in {DSN}"
        ),
        ErrorKind::NotFound => format!(
            "the socket {server} does not exist; start PostgreSQL there, or correct the folder and port in {DSN}"
        ),
        ErrorKind::TimedOut => format!(
            "{server} did not respond in time; check the host in {DSN}, and that no firewall blocks the connection"
        ),
        ErrorKind::PermissionDenied => format!("access to {server} was denied ({error}); check {DSN}"),
        _ => format!(
            "the connection to {server} broke ({error}); check that it is a PostgreSQL server, and check {DSN}"
        ),
    }
}

/// TLS, authentication, or an unintelligible answer.
fn misunderstood(config: &Config, server: &str, error: &tokio_postgres::Error) -> String {
    let cause = error.source().map(ToString::to_string).unwrap_or_default();
    let says = |what: &str| cause.contains(what);
    if says("does not support TLS") {
        return format!(
            "{server} offers no TLS, but sslmode in {DSN} requires it; enable ssl on the server, or set \
             sslmode=disable if the network is trusted"
        );
    }
    if says("certificate") {
        return format!(
            "{server} has an untrusted certificate ({cause}); add its authority to this machine's, or set \
             sslmode=require in {DSN} to skip this check"
        );
    }
    if says("password missing") {
        return format!("{server} requires a password; add it to {DSN}");
    }
    if says("channel binding") {
        return format!(
            "{server} offers no channel binding, which {DSN} requires; remove channel_binding, or use TLS"
        );
    }
    let hint = if config.get_ssl_mode() == SslMode::Disable { "" } else { " (or its TLS is broken)" };
    let cause = if cause.is_empty() { error.to_string() } else { cause };
    format!("{server} is not a PostgreSQL server{hint}: {cause}; check {DSN}")
}
