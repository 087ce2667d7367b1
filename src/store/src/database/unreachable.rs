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
        "{server} did not answer within {seconds} seconds; is it a PostgreSQL? Put the right host and port into {DSN}"
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
    let user = config.get_user().map_or_else(|| "that nobody named".to_owned(), |user| format!("\"{user}\""));
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    if *code == SqlState::INVALID_PASSWORD {
        return format!("{server} refuses the user {user} or its password; put the right ones into {DSN}");
    }
    if *code == SqlState::INVALID_CATALOG_NAME {
        return format!(
            "{server} has no database \"{database}\"; create it (createdb {database}), or name another in {DSN}"
        );
    }
    if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        return format!(
            "{server} does not let the user {user} into the database \"{database}\"; grant it CONNECT there, or name \
             another user in {DSN}"
        );
    }
    if *code == SqlState::TOO_MANY_CONNECTIONS {
        return format!(
            "{server} has no connection to spare ({said}); allow more there, or lower SERVICE_DATABASE_POOL"
        );
    }
    if *code == SqlState::CANNOT_CONNECT_NOW {
        return format!("{server} takes no connections at the moment ({said}); try again when it is up");
    }
    if *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION {
        // Every translation of this message names `pg_hba.conf`.
        return if said.contains("pg_hba.conf") && config.get_ssl_mode() == SslMode::Disable {
            format!(
                "{server} lets nobody in so without TLS ({said}); write sslmode=require into {DSN}, or allow it in the \
                 server's pg_hba.conf"
            )
        } else if said.contains("pg_hba.conf") {
            format!(
                "{server} does not let the user {user} in from here ({said}); allow it in the server's pg_hba.conf"
            )
        } else {
            format!(
                "{server} does not let the user {user} in ({said}); create the user there with LOGIN, or name another in {DSN}"
            )
        };
    }
    format!("{server} refuses the connection: {said}; check {DSN}")
}

/// The server did not answer.
fn unanswered(server: &str, error: &io::Error) -> String {
    // An unknown host name has no dedicated error kind.
    if error.to_string().contains("lookup address") {
        return format!("the host of {server} is not known; put the right name into {DSN}");
    }
    match error.kind() {
        ErrorKind::ConnectionRefused => format!(
            "nothing listens at {server}; start PostgreSQL there, or put the right host and port into {DSN}"
        ),
        ErrorKind::NotFound => format!(
            "there is no socket {server}; start PostgreSQL there, or put the right folder and port into {DSN}"
        ),
        ErrorKind::TimedOut => format!(
            "{server} did not answer in time; is the host in {DSN} right, and does a firewall let us through?"
        ),
        ErrorKind::PermissionDenied => format!("{server} may not be used ({error}); check {DSN}"),
        _ => format!("the connection to {server} broke ({error}); is a PostgreSQL there? Check {DSN}"),
    }
}

/// TLS, authentication, or an unintelligible answer.
fn misunderstood(config: &Config, server: &str, error: &tokio_postgres::Error) -> String {
    let cause = error.source().map(ToString::to_string).unwrap_or_default();
    let says = |what: &str| cause.contains(what);
    if says("does not support TLS") {
        return format!(
            "{server} offers no TLS, and sslmode in {DSN} demands it; turn ssl on at the server, or write \
             sslmode=disable if the way to it is safe"
        );
    }
    if says("certificate") {
        return format!(
            "{server} shows a certificate that is not trusted ({cause}); add its authority to this machine's, or write \
             sslmode=require into {DSN} to go without this check"
        );
    }
    if says("password missing") {
        return format!("{server} asks for a password; write it into {DSN}");
    }
    if says("channel binding") {
        return format!(
            "{server} offers no channel binding, which {DSN} demands; leave channel_binding out, or use TLS"
        );
    }
    let hint = if config.get_ssl_mode() == SslMode::Disable { "" } else { " (or its TLS is broken)" };
    let cause = if cause.is_empty() { error.to_string() } else { cause };
    format!("what answers at {server} does not speak as PostgreSQL does{hint}: {cause}; check {DSN}")
}
