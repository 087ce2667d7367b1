//! Runs a statement in a database that the service does not own, over a separate network connection that shares
//! nothing with the service. The caller's guard decides beforehand which addresses are allowed.

use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::TryStreamExt as _;
use kernel::json::JsonError;
use secrecy::zeroize::Zeroizing;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{Kind, Type};
use tokio_postgres::{Client, Config, Error, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::database::connect::{Verify, tls_config, verification};
use crate::database::foreign_rows;
use crate::database::parameter::Parameter;

/// Maximum time to connect to one address, and for the server to accept the session.
const CONNECT: Duration = Duration::from_secs(10);
/// Extra time for the whole call, on top of the statement's limit.
const GRACE: Duration = Duration::from_secs(5);
/// Bytes that a server may send before the first row and in addition to the rows. Each message is held in
/// memory, and each nested type definition takes some stack.
const TALK: usize = 64 << 10;
/// Maximum characters quoted from a server message.
const MOST_SAID: usize = 500;
/// The database's name in errors after the login.
const DATABASE: &str = "the database";

/// A database that the caller names and the service does not own.
#[derive(Clone)]
pub struct Foreign {
    config: Config,
    verify: Verify,
    host: String,
    port: u16,
}

/// A statement for a foreign database.
#[derive(Debug, Clone)]
pub struct ForeignQuery {
    /// One statement.
    pub sql: String,
    /// The values for `$1`, `$2`, ….
    pub parameters: Vec<Value>,
    /// Whether it may change data.
    pub writes: bool,
    /// The server-side time limit.
    pub time: Duration,
    /// Maximum rows.
    pub rows: usize,
    /// Maximum bytes in all rows, as JSON.
    pub bytes: usize,
}

/// The result of a statement.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignRows {
    /// One object per row.
    pub rows: Vec<Value>,
    /// The number of rows returned or changed.
    pub count: u64,
}

/// The reason for a failure. No text contains a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForeignError {
    /// The database address is not usable.
    #[error("{0}")]
    Address(String),
    /// The server does not answer, does not answer in time, or the connection broke.
    #[error("{0}")]
    Unreachable(String),
    /// The server rejects the login.
    #[error("{0}")]
    Refused(String),
    /// The server rejects the statement.
    #[error("{message}")]
    Failed {
        /// The server's message.
        message: String,
        /// Whether a retry may succeed.
        again: bool,
    },
    /// The statement took too long.
    #[error("the statement took longer than {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// The result exceeds a requested limit.
    #[error("{0}")]
    TooLarge(String),
    /// Unknown whether the change is committed: the connection ended during the commit.
    #[error("the connection ended during the commit: {0}")]
    Unknown(String),
}

impl Foreign {
    /// Parses an address, `postgres://user:password@host:port/database?sslmode=…` or `host=… user=…`. Without
    /// `sslmode` the connection is encrypted and the server's certificate is verified.
    ///
    /// # Errors
    /// [`ForeignError::Address`].
    pub fn read(dsn: &str) -> Result<Self, ForeignError> {
        let refused = |why: &str| ForeignError::Address(why.to_owned());
        let dsn = Zeroizing::new(dsn.trim().to_owned());
        let (plain, verify) = verification(&dsn);
        let plain = Zeroizing::new(plain);
        // The parser's own message may contain a part of the password.
        let mut config = Config::from_str(&plain).map_err(|_| refused("the dsn cannot be read"))?;
        let verify = if says_mode(&plain) {
            verify
        } else {
            config.ssl_mode(SslMode::Require);
            Verify::Full
        };
        let host = match config.get_hosts() {
            _ if !config.get_hostaddrs().is_empty() => {
                return Err(refused("the dsn must not contain hostaddr"));
            }
            [Host::Tcp(host)] if !host.is_empty() => host.clone(),
            [Host::Unix(_)] => {
                return Err(refused("the dsn names a Unix socket; only hosts of the network may be called"));
            }
            [] => return Err(refused("the dsn names no host")),
            _ => return Err(refused("the dsn names several hosts; only one is allowed")),
        };
        let port = config.get_ports().first().copied().unwrap_or(5432);
        if config.get_application_name().is_none() {
            config.application_name("callboard");
        }
        Ok(Self { config, verify, host, port })
    }

    /// Its host, as written in the address.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its password, which must not be disclosed.
    #[must_use]
    pub fn password(&self) -> Option<kernel::Secret> {
        let password = self.config.get_password()?;
        Some(kernel::Secret::from(String::from_utf8_lossy(password).into_owned()))
    }

    /// Runs one statement over a connection to one of these addresses. Dropping the future closes the
    /// connection.
    ///
    /// # Errors
    /// [`ForeignError`].
    pub async fn query(
        &self,
        addresses: &[SocketAddr],
        query: &ForeignQuery,
    ) -> Result<ForeignRows, ForeignError> {
        let clock = kernel::SystemClock::new();
        let place = format!("{}:{}", self.host, self.port);
        let slow = || {
            ForeignError::Unreachable(format!(
                "{place} did not accept the login within {} s",
                CONNECT.as_secs()
            ))
        };
        let allowance = Arc::new(AtomicUsize::new(TALK));
        let opening = self.open(addresses, &place, Arc::clone(&allowance));
        let (client, connection) =
            kernel::timeout(&clock, CONNECT, opening).await.unwrap_or_else(|| Err(slow()))?;
        let committing = AtomicBool::new(false);
        let (mut connection, mut working) =
            (pin!(connection), pin!(work(&client, query, &allowance, &committing)));
        let done = async {
            tokio::select! {
                biased;
                worked = &mut working => worked,
                ended = &mut connection => match ended {
                    Err(error) => Err(explain(&error, query.time, &place)),
                    Ok(()) => Err(ForeignError::Unreachable(format!("{place} has closed the connection"))),
                },
            }
        };
        let done = kernel::timeout(&clock, query.time.saturating_add(GRACE), done).await;
        let done = done.unwrap_or(Err(ForeignError::Timeout(query.time)));
        match done {
            // The commit was sent, and its outcome is unknown.
            Err(ForeignError::Unreachable(why)) if query.writes && committing.load(Ordering::Relaxed) => {
                Err(ForeignError::Unknown(why))
            }
            Err(error @ ForeignError::Timeout(_)) if query.writes && committing.load(Ordering::Relaxed) => {
                Err(ForeignError::Unknown(error.to_string()))
            }
            other => other,
        }
    }

    async fn open(
        &self,
        addresses: &[SocketAddr],
        place: &str,
        allowance: Arc<AtomicUsize>,
    ) -> Result<(Client, impl Future<Output = Result<(), Error>> + use<>), ForeignError> {
        let unreachable = |why: String| ForeignError::Unreachable(format!("{place}: {why}"));
        let mut stream = Err(unreachable("it has no address".to_owned()));
        for address in addresses {
            stream = TcpStream::connect(address).await.map_err(|error| unreachable(error.kind().to_string()));
            if stream.is_ok() {
                break;
            }
        }
        let stream = stream?;
        let _ = stream.set_nodelay(true);
        let tls = tls_config(self.verify).map_err(|error| unreachable(error.to_string()))?;
        let mut tls = MakeRustlsConnect::new(tls);
        let tls = <MakeRustlsConnect as tokio_postgres::tls::MakeTlsConnect<Metered>>::make_tls_connect(
            &mut tls, &self.host,
        );
        let tls =
            tls.map_err(|_| ForeignError::Address("the dsn's host is not a valid name for TLS".to_owned()))?;
        let connected = self.config.connect_raw(Metered { stream, allowance }, tls).await;
        connected.map_err(|error| explain(&error, CONNECT, place))
    }
}

/// Whether an address sets `sslmode`; a password that contains this word does not count.
fn says_mode(dsn: &str) -> bool {
    dsn.match_indices("sslmode").any(|(at, _)| {
        let before = dsn.get(..at).unwrap_or_default();
        before.is_empty() || before.ends_with([' ', '\t', '\n', '?', '&'])
    })
}

impl std::fmt::Debug for Foreign {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Foreign({}:{})", self.host, self.port)
    }
}

/// A connection with a limit on the bytes that are read from it.
struct Metered {
    stream: TcpStream,
    allowance: Arc<AtomicUsize>,
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = buffer.filled().len().saturating_sub(before);
        let spend = |left: usize| left.checked_sub(read);
        match self.allowance.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend) {
            Ok(_) => Poll::Ready(Ok(())),
            Err(_) => Poll::Ready(Err(io::Error::other("the database sent more than the limit"))),
        }
    }
}

impl AsyncWrite for Metered {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Runs a statement in a transaction. Sets `committing` before it sends the commit.
async fn work(
    client: &Client,
    query: &ForeignQuery,
    allowance: &AtomicUsize,
    committing: &AtomicBool,
) -> Result<ForeignRows, ForeignError> {
    let failed = |error: Error| explain(&error, query.time, DATABASE);
    let mode = if query.writes { "READ WRITE" } else { "READ ONLY" };
    let millis = query.time.as_millis().clamp(1, 3_600_000);
    let begin = format!(
        "BEGIN TRANSACTION {mode}; SET LOCAL statement_timeout = {millis}; SET LOCAL lock_timeout = {millis};
         SAVEPOINT begun"
    );
    client.batch_execute(&begin).await.map_err(failed)?;
    let plain = client.prepare(&query.sql).await.map_err(failed)?;
    let known = plain.params().len();
    if known != query.parameters.len() {
        let message = format!("the statement has {known} parameters, {} were given", query.parameters.len());
        return Err(ForeignError::Failed { message, again: false });
    }
    let answer = if plain.columns().is_empty() {
        let parameters = bound(&query.parameters, plain.params())?;
        let count = client.execute_raw(&plain, &parameters).await.map_err(failed)?;
        ForeignRows { rows: Vec::new(), count }
    } else {
        let rows = rows(client, query, &plain, allowance).await?;
        let count = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        ForeignRows { rows, count }
    };
    committing.store(true, Ordering::Relaxed);
    client.batch_execute("COMMIT").await.map_err(failed)?;
    Ok(answer)
}

/// Reads the rows of a statement that returns some, within the query's limits.
async fn rows(
    client: &Client,
    query: &ForeignQuery,
    plain: &Statement,
    allowance: &AtomicUsize,
) -> Result<Vec<Value>, ForeignError> {
    let failed = |error: Error| explain(&error, query.time, DATABASE);
    let most = query.rows.saturating_add(1);
    let inner = foreign_rows::as_json(client, &query.sql, plain.params(), most).await.map_err(failed)?;
    let statement = inner.as_ref().unwrap_or(plain);
    if let (None, Some((column, kind))) = (&inner, foreign_rows::unread(statement)) {
        let message =
            format!("the column '{column}' has the type {kind}; write {column}::text in this statement");
        return Err(ForeignError::Failed { message, again: false });
    }
    let parameters = bound(&query.parameters, statement.params())?;
    // Each row has its own header, and the rows over the limit must arrive to be detected.
    allowance
        .fetch_add(query.bytes.saturating_mul(2).saturating_add(most.saturating_mul(64)), Ordering::Relaxed);
    let read = if inner.is_some() { foreign_rows::nested } else { foreign_rows::object };
    let mut found = pin!(client.query_raw(statement, &parameters).await.map_err(failed)?);
    let (mut rows, mut bytes) = (Vec::new(), 0_usize);
    while let Some(row) = found.try_next().await.map_err(failed)? {
        let (value, length) = read(&row).map_err(failed)?;
        bytes = bytes.saturating_add(length);
        if rows.len() >= query.rows {
            return Err(ForeignError::TooLarge(format!("there are more than {} rows", query.rows)));
        }
        if bytes > query.bytes {
            return Err(ForeignError::TooLarge(format!("the rows have more than {} bytes", query.bytes)));
        }
        rows.push(value);
    }
    Ok(rows)
}

fn bound(values: &[Value], types: &[Type]) -> Result<Vec<Parameter>, ForeignError> {
    let bind = |(number, (value, kind)): (usize, (&Value, &Type))| {
        let is_list = matches!(kind.kind(), Kind::Array(_));
        let is_json = [Type::JSON, Type::JSONB].contains(kind);
        Parameter::new(value, is_list, is_json).map_err(|why| {
            let message = format!("parameter ${}: {why}", number.saturating_add(1));
            ForeignError::Failed { message, again: false }
        })
    };
    values.iter().zip(types).enumerate().map(bind).collect()
}

/// Translates a database error.
fn explain(error: &Error, time: Duration, place: &str) -> ForeignError {
    let Some(said) = error.as_db_error() else {
        // The library's own message; it never repeats the address.
        let mut cause = std::error::Error::source(error);
        let mut last = error.to_string();
        while let Some(inner) = cause {
            if let Some(JsonError::Rounded(number)) = inner.downcast_ref() {
                let message = format!("{number}: cast its column to text, such as amount::text");
                return ForeignError::Failed { message, again: false };
            }
            last = inner.to_string();
            cause = inner.source();
        }
        if last.contains("sent more than the limit") {
            return ForeignError::TooLarge(last);
        }
        return ForeignError::Unreachable(format!("{place}: {last}"));
    };
    let (state, class) = (said.code(), said.code().code().get(..2).unwrap_or_default());
    let hint =
        if *state == SqlState::READ_ONLY_SQL_TRANSACTION { "; \"mode\": \"write\" allows it" } else { "" };
    let message: String =
        said.message().chars().filter(|letter| !letter.is_control()).take(MOST_SAID).collect();
    let message = format!("{message} ({}){hint}", state.code());
    match class {
        _ if *state == SqlState::QUERY_CANCELED || *state == SqlState::LOCK_NOT_AVAILABLE => {
            ForeignError::Timeout(time)
        }
        "28" | "3D" => ForeignError::Refused(message),
        "08" | "57" => ForeignError::Unreachable(format!("{place}: {message}")),
        "40" | "53" => ForeignError::Failed { message, again: true },
        _ => ForeignError::Failed { message, again: false },
    }
}
