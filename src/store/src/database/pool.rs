//! The connection pool, and [`Store`], the entry point of this package.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use deadpool::Runtime;
use deadpool::managed::{Manager, Metrics, Object, Pool, PoolError, RecycleError, RecycleResult, Timeouts};
use diesel_async::pooled_connection::PoolableConnection;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{Clock, Ids, Random};

use crate::database::connect::{Connector, SessionKind};
use crate::database::deadline::Deadline;
use crate::database::scalar::Scalar;
use crate::{DatabaseRuntime, StoreError};

/// Maximum time that a query waits for a connection before the caller gets a "database busy" error.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// Settings for a [`Store`].
pub struct StoreOptions {
    /// The database's DSN.
    pub dsn: kernel::Secret,
    /// Connections in the pool; the lanes' connections are extra.
    pub connections: usize,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The random source.
    pub random: Arc<dyn Random>,
    /// The id generator.
    pub ids: Ids,
}

/// The database. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    inner: Arc<StoreInner>,
}

struct StoreInner {
    pool: Pool<Sessions>,
    connector: Connector,
    role: Option<&'static str>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    ids: Ids,
    // Last: connections are closed before their runtime stops.
    runtime: DatabaseRuntime,
}

impl Store {
    /// TCP hosts and ports of the database; empty for a local socket.
    #[must_use]
    pub fn places(&self) -> Vec<(String, u16)> {
        self.inner.connector.places()
    }

    /// Creates the store for a prepared database: migrated, with its role and partitions.
    pub(crate) fn over(
        connector: Connector,
        role: Option<&'static str>,
        options: StoreOptions,
        runtime: DatabaseRuntime,
    ) -> Result<Self, StoreError> {
        let pool = pool(&connector, role, options.connections)?;
        let StoreOptions { clock, random, ids, .. } = options;
        Ok(Self { inner: Arc::new(StoreInner { pool, connector, role, clock, random, ids, runtime }) })
    }

    /// A connection for one short unit of work. Hold it across queries only.
    pub(crate) async fn connection(&self) -> Result<Pooled, StoreError> {
        self.inner.pool.get().await.map(|connection| Pooled(Some(connection))).map_err(|error| match error {
            PoolError::Timeout(_) => StoreError::Unavailable("no free connection in time".to_owned()),
            PoolError::Backend(error) => error,
            other => StoreError::Unavailable(other.to_string()),
        })
    }

    /// Checks that the database answers and accepts writes. If it is read-only, the server has become a
    /// standby, and new connections lead to the primary.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when it does not answer or accepts no writes.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let asked = "SELECT current_setting('transaction_read_only') = 'on' AS read_only";
        let read_only: Scalar<bool> =
            diesel::sql_query(asked).get_result(&mut *self.connection().await?).await?;
        if read_only.0 {
            self.close_idle_connections();
            return Err(StoreError::Unavailable("the database is read-only".to_owned()));
        }
        Ok(())
    }

    /// Closes the pool's idle connections: each may lead to a server that no longer answers.
    pub fn close_idle_connections(&self) {
        self.inner.pool.retain(|_, _| false);
    }

    /// The thread that drives the connections.
    #[must_use]
    pub fn runtime(&self) -> &DatabaseRuntime {
        &self.inner.runtime
    }

    pub(crate) fn connector(&self) -> &Connector {
        &self.inner.connector
    }

    pub(crate) fn role(&self) -> Option<&'static str> {
        self.inner.role
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.inner.clock.now()
    }

    pub(crate) fn ids(&self) -> &Ids {
        &self.inner.ids
    }

    pub(crate) fn random(&self) -> &dyn Random {
        &*self.inner.random
    }
}

/// A pooled connection.
///
/// If its user was cancelled in the middle of a transaction or a statement, the connection is closed instead of
/// returned to the pool. There it would hold its locks until the next caller receives it, and that caller would
/// wait for the statement.
pub(crate) struct Pooled(Option<Object<Sessions>>);

impl Deref for Pooled {
    type Target = AsyncPgConnection;

    fn deref(&self) -> &AsyncPgConnection {
        let Some(object) = &self.0 else { unreachable!("only Drop takes it") };
        &object.connection
    }
}

impl DerefMut for Pooled {
    fn deref_mut(&mut self) -> &mut AsyncPgConnection {
        let Some(object) = &mut self.0 else { unreachable!("only Drop takes it") };
        &mut object.connection
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let Some(mut object) = self.0.take() else { return };
        let is_executing = object.deadline.clear();
        if object.deadline.has_passed()
            && let Some(pool) = Object::pool(&object)
        {
            // The other connections lead to the same silent server, and each would need another deadline to
            // notice.
            pool.retain(|_, _| false);
        }
        if is_executing || object.connection.is_broken() {
            drop(Object::take(object));
        }
    }
}

fn pool(
    connector: &Connector,
    role: Option<&'static str>,
    connections: usize,
) -> Result<Pool<Sessions>, StoreError> {
    let limit = Some(ACQUIRE_TIMEOUT);
    Pool::builder(Sessions { connector: connector.clone(), role })
        .max_size(connections.max(1))
        .runtime(Runtime::Tokio1)
        .timeouts(Timeouts { wait: limit, create: limit, recycle: limit })
        .build()
        .map_err(|error| StoreError::Unavailable(error.to_string()))
}

/// Opens the pool's connections.
pub(crate) struct Sessions {
    connector: Connector,
    role: Option<&'static str>,
}

/// A pooled connection with its statement deadline.
pub(crate) struct LimitedConnection {
    connection: AsyncPgConnection,
    deadline: Deadline,
}

impl Manager for Sessions {
    type Type = LimitedConnection;
    type Error = StoreError;

    async fn create(&self) -> Result<LimitedConnection, StoreError> {
        let opened = self.connector.open_with_deadline(SessionKind::Service(self.role)).await;
        opened.map(|(connection, deadline)| LimitedConnection { connection, deadline })
    }

    /// The driver detects a broken connection; a check before each use would double the round trips of every
    /// read.
    async fn recycle(&self, object: &mut LimitedConnection, _: &Metrics) -> RecycleResult<StoreError> {
        if object.connection.is_broken() {
            return Err(RecycleError::message("the connection is broken"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kernel::SystemClock;

    use super::*;
    use crate::testing::TestDatabase;
    use crate::with_statement_limit;

    async fn backend(store: &Store) -> i32 {
        let query = diesel::sql_query("SELECT pg_backend_pid() AS pid");
        query.get_result::<Scalar<i32>>(&mut *store.connection().await.unwrap()).await.unwrap().0
    }

    async fn sleep(store: &Store) -> Result<usize, StoreError> {
        let asleep = diesel::sql_query("SELECT pg_sleep(60)");
        Ok(asleep.execute(&mut *store.connection().await?).await?)
    }

    /// Takes all connections but one, so that everything else uses that one.
    async fn all_but_one(store: &Store) -> Vec<Pooled> {
        let mut taken = Vec::new();
        while taken.len() + 1 < store.inner.pool.status().max_size {
            taken.push(store.connection().await.unwrap());
        }
        taken
    }

    #[tokio::test]
    async fn a_statement_fails_at_its_deadline_and_its_connection_is_replaced() {
        let database = TestDatabase::create().await;
        let store = database.store().await;
        let _taken = all_but_one(&store).await;
        let before = backend(&store).await;
        let failed = with_statement_limit(Duration::from_millis(100), sleep(&store)).await;
        assert!(matches!(failed, Err(StoreError::Unavailable(_))), "{failed:?}");
        assert_ne!(backend(&store).await, before);
    }

    #[tokio::test]
    async fn an_idle_connection_has_no_deadline() {
        let database = TestDatabase::create().await;
        let store = database.store().await;
        let _taken = all_but_one(&store).await;
        let limit = Duration::from_millis(100);
        let before = with_statement_limit(limit, backend(&store)).await;
        SystemClock::new().sleep(3 * limit).await;
        assert_eq!(backend(&store).await, before);
    }

    #[tokio::test]
    async fn a_connection_is_not_shared_with_a_cancelled_statement() {
        let database = TestDatabase::create().await;
        let store = database.store().await;
        let _taken = all_but_one(&store).await;
        let clock = SystemClock::new();
        assert!(kernel::timeout(&clock, Duration::from_millis(200), sleep(&store)).await.is_none());
        // The cancelled statement takes longer than that.
        assert!(kernel::timeout(&clock, Duration::from_secs(20), store.ping()).await.is_some());
    }
}
