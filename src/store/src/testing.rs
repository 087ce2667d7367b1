//! A separate database for each test, copied from a migrated template.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "only tests are built with this")]

use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;

use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use kernel::{Clock, Ids, Random, SystemClock, SystemRandom};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::runtime::Handle;
use tokio_postgres::config::Host;

use crate::database::connect::{Connector, SessionKind};
use crate::database::scalar::Scalar;
use crate::system::{migrate, partitions, roles};
use crate::{Store, StoreOptions};

/// Environment variable with the test cluster's DSN; `cargo xtask test` starts a cluster.
pub const TEST_DSN: &str = "CALLBOARD_TEST_DSN";

/// A database that is dropped with this value.
pub struct TestDatabase {
    server: String,
    name: String,
    dsn: String,
}

/// An open transaction.
pub struct Held(AsyncPgConnection);

impl Held {
    /// Commits the transaction.
    ///
    /// # Panics
    /// When the database rejects the commit.
    pub async fn release(mut self) {
        self.0.batch_execute("COMMIT").await.expect("a commit");
    }
}

impl TestDatabase {
    /// Creates a copy of the template, which is created first if it is missing.
    ///
    /// # Panics
    /// When [`TEST_DSN`] is not set or the cluster does not answer.
    pub async fn create() -> Self {
        let server = std::env::var(TEST_DSN).unwrap_or_else(|_| {
            let install =
                std::env::var("CALLBOARD_MISSING_POSTGRES").unwrap_or_else(|_| "cargo xtask test".to_owned());
            panic!("no PostgreSQL for tests: run `{install}`")
        });
        let mut admin = open(&server).await;
        let template = format!("callboard_template_{}", env!("MIGRATIONS_FINGERPRINT"));
        ensure_template(&mut admin, &server, &template).await;
        let ids = Ids::new(Arc::new(SystemClock::new()), Arc::new(SystemRandom::new()));
        let name = format!("callboard_test_{}", ids.thread().expect("random bytes").0.simple());
        admin
            .batch_execute(&format!("CREATE DATABASE \"{name}\" TEMPLATE \"{template}\""))
            .await
            .expect("a copy of the template");
        let dsn = with_database(&server, &name);
        Self { server, name, dsn }
    }

    /// The database's DSN.
    #[must_use]
    pub fn dsn(&self) -> &str {
        &self.dsn
    }

    /// The same database over TCP, for clients that do not support sockets: an address for [`crate::Foreign`],
    /// and the address it resolves to. The proxy ends with the test's runtime.
    ///
    /// # Panics
    /// When no port is available.
    pub async fn over_network(&self) -> (String, SocketAddr) {
        let config = tokio_postgres::Config::from_str(&self.dsn).expect("a DSN");
        let port = config.get_ports().first().copied().unwrap_or(5432);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = listener.local_addr().expect("an address");
        let host = config.get_hosts().first().cloned().expect("a host");
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let host = host.clone();
                tokio::spawn(async move {
                    let _ = match host {
                        Host::Unix(folder) => {
                            let socket = folder.join(format!(".s.PGSQL.{port}"));
                            let mut far = UnixStream::connect(socket).await.expect("the cluster");
                            copy_bidirectional(&mut near, &mut far).await
                        }
                        Host::Tcp(name) => {
                            let mut far = TcpStream::connect((name, port)).await.expect("the cluster");
                            copy_bidirectional(&mut near, &mut far).await
                        }
                    };
                });
            }
        });
        let user = config.get_user().unwrap_or("postgres");
        (format!("postgres://{user}@{at}/{}?sslmode=disable", self.name), at)
    }

    /// Opens a store on this database, with the system's clock.
    ///
    /// # Panics
    /// When the database does not answer.
    pub async fn store(&self) -> Store {
        self.store_with(Arc::new(SystemClock::new())).await
    }

    /// Opens a store on this database, with this clock.
    ///
    /// # Panics
    /// When the database does not answer.
    pub async fn store_with(&self, clock: Arc<dyn Clock>) -> Store {
        let random: Arc<dyn Random> = Arc::new(SystemRandom::new());
        let ids = Ids::new(Arc::clone(&clock), Arc::clone(&random));
        let dsn = self.dsn.clone().into();
        Store::open(StoreOptions { dsn, connections: 4, clock, random, ids }).await.expect("a store")
    }

    /// Runs SQL as the owner, without the service.
    ///
    /// # Errors
    /// The database's message.
    pub async fn execute(&self, sql: &str) -> Result<(), String> {
        open(&self.dsn).await.batch_execute(sql).await.map_err(|error| error.to_string())
    }

    /// Runs SQL as the owner in a transaction that stays open and holds its locks until it is released.
    ///
    /// # Panics
    /// When the database rejects the SQL.
    pub async fn hold(&self, sql: &str) -> Held {
        let mut connection = open(&self.dsn).await;
        connection.batch_execute(&format!("BEGIN; {sql}")).await.expect("SQL");
        Held(connection)
    }

    /// The first column in the first row, as text.
    ///
    /// # Panics
    /// When the query fails or has no row.
    pub async fn scalar(&self, sql: &str) -> String {
        scalar(&self.dsn, sql).await
    }
}

/// The first column in the first row, as text, from any database.
///
/// # Panics
/// When it does not answer, the query fails or has no row.
pub async fn scalar(dsn: &str, sql: &str) -> String {
    let query = format!("SELECT (({sql})::text) AS value");
    let row: Scalar<String> =
        diesel::sql_query(query).get_result(&mut open(dsn).await).await.expect("one row");
    row.0
}

async fn open(dsn: &str) -> AsyncPgConnection {
    let connector = Connector::new(dsn, Handle::current()).expect("a DSN");
    connector.open(SessionKind::Owner).await.expect("the test cluster answers")
}

fn with_database(server: &str, name: &str) -> String {
    let config = tokio_postgres::Config::from_str(server).expect("a DSN");
    let old = config.get_dbname().unwrap_or("postgres");
    server.replace(&format!("dbname={old}"), &format!("dbname={name}"))
}

/// Creates the template under a temporary name first, so that a killed test leaves no half-migrated template.
async fn ensure_template(admin: &mut AsyncPgConnection, server: &str, template: &str) {
    admin.batch_execute("SELECT pg_advisory_lock(hashtext('callboard template'))").await.expect("a lock");
    let exists: Scalar<bool> = diesel::sql_query(format!(
        "SELECT EXISTS (SELECT FROM pg_database WHERE datname = '{template}') AS found"
    ))
    .get_result(admin)
    .await
    .expect("an answer");
    if !exists.0 {
        let draft = format!("{template}_draft");
        admin
            .batch_execute(&format!("DROP DATABASE IF EXISTS \"{draft}\" WITH (FORCE)"))
            .await
            .expect("drop");
        admin.batch_execute(&format!("CREATE DATABASE \"{draft}\"")).await.expect("create");
        let connection = open(&with_database(server, &draft)).await;
        let (mut connection, _) = migrate::up(connection).await.expect("migrations");
        partitions::ensure(&mut connection, SystemClock::new().now().date_naive()).await.expect("partitions");
        roles::ensure(&mut connection).await.expect("a role");
        drop(connection);
        admin
            .batch_execute(&format!(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{draft}'"
            ))
            .await
            .expect("terminate");
        admin
            .batch_execute(&format!("ALTER DATABASE \"{draft}\" RENAME TO \"{template}\""))
            .await
            .expect("rename");
        admin
            .batch_execute(&format!("ALTER DATABASE \"{template}\" ALLOW_CONNECTIONS false"))
            .await
            .expect("a template without connections");
    }
    admin.batch_execute("SELECT pg_advisory_unlock(hashtext('callboard template'))").await.expect("unlock");
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        // The test's runtime may be shutting down, so this thread has a separate one.
        let cleaner = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            if let Ok(runtime) = runtime {
                runtime.block_on(async {
                    let sql = format!("DROP DATABASE IF EXISTS \"{name}\" WITH (FORCE)");
                    let _ = open(&server).await.batch_execute(&sql).await;
                });
            }
        });
        let _ = cleaner.join();
    }
}
