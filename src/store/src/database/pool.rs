//! The pool, and [`Store`], which everything else in this package hangs on.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use deadpool::Runtime;
use deadpool::managed::{PoolError, Timeouts};
use diesel::QueryableByName;
use diesel::sql_types::Bool;
use diesel_async::pooled_connection::deadpool::{Object, Pool};
use diesel_async::pooled_connection::{
    AsyncDieselConnectionManager, ManagerConfig, PoolableConnection, RecyclingMethod,
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use futures_util::FutureExt;
use kernel::{Clock, Ids, Random};

use crate::database::connect::{Connector, Session};
use crate::{DatabaseRuntime, StoreError};

/// How long a query waits for a connection before the caller is told that the database is busy.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// What a [`Store`] is made from.
pub struct Options {
    /// Where the database is.
    pub dsn: kernel::Secret,
    /// Connections of the pool; the lanes' come on top.
    pub connections: usize,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// Ids.
    pub ids: Ids,
}

/// The database. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    pool: Pool<AsyncPgConnection>,
    connector: Connector,
    role: Option<&'static str>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    ids: Ids,
    // Last: connections are closed before their runtime stops.
    runtime: DatabaseRuntime,
}

impl Store {
    /// Hosts and ports of the network where the database may be; none for a socket of this machine.
    #[must_use]
    pub fn places(&self) -> Vec<(String, u16)> {
        self.inner.connector.places()
    }

    /// The store over a database that is ready to be used: migrated, with its role and partitions.
    pub(crate) fn over(
        connector: Connector,
        role: Option<&'static str>,
        options: Options,
        runtime: DatabaseRuntime,
    ) -> Result<Self, StoreError> {
        let pool = pool(&connector, role, options.connections)?;
        let Options { clock, random, ids, .. } = options;
        Ok(Self { inner: Arc::new(Inner { pool, connector, role, clock, random, ids, runtime }) })
    }

    /// A connection for one short piece of work. Never hold it across anything but queries.
    pub(crate) async fn connection(&self) -> Result<Pooled, StoreError> {
        self.inner.pool.get().await.map(|connection| Pooled(Some(connection))).map_err(|error| match error {
            PoolError::Timeout(_) => StoreError::Unavailable("no free connection in time".to_owned()),
            other => StoreError::Unavailable(other.to_string()),
        })
    }

    /// Whether the database answers and takes writes. Where it does not take them, the idle connections of the pool are
    /// closed: they lead to a server that is a standby by now, and new ones to the primary.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when it does not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        #[derive(QueryableByName)]
        struct Found {
            #[diesel(sql_type = Bool)]
            read_only: bool,
        }
        let asked = "SELECT current_setting('transaction_read_only') = 'on' AS read_only";
        let found: Found = diesel::sql_query(asked).get_result(&mut *self.connection().await?).await?;
        if found.read_only {
            self.inner.pool.retain(|_, _| false);
            return Err(StoreError::Unavailable("the database is read-only".to_owned()));
        }
        Ok(())
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

/// A connection of the pool.
///
/// A connection left in the middle of a transaction (its user was cancelled) is closed instead of returned to the pool,
/// where it would hold its locks until the next caller receives it.
pub(crate) struct Pooled(Option<Object<AsyncPgConnection>>);

impl Deref for Pooled {
    type Target = AsyncPgConnection;

    fn deref(&self) -> &AsyncPgConnection {
        let Some(connection) = &self.0 else { unreachable!("only Drop takes it") };
        connection
    }
}

impl DerefMut for Pooled {
    fn deref_mut(&mut self) -> &mut AsyncPgConnection {
        let Some(connection) = &mut self.0 else { unreachable!("only Drop takes it") };
        connection
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        if let Some(mut connection) = self.0.take()
            && connection.is_broken()
        {
            drop(Object::take(connection));
        }
    }
}

fn pool(
    connector: &Connector,
    role: Option<&'static str>,
    connections: usize,
) -> Result<Pool<AsyncPgConnection>, StoreError> {
    let connector = connector.clone();
    let mut config = ManagerConfig::default();
    // A broken connection is noticed by its driver; asking before each use would double every read.
    config.recycling_method = RecyclingMethod::Fast;
    config.custom_setup = Box::new(move |_| {
        let connector = connector.clone();
        async move {
            connector
                .open(Session::Service(role))
                .await
                .map_err(|error| diesel::ConnectionError::BadConnection(error.to_string()))
        }
        .boxed()
    });
    let limit = Some(ACQUIRE_TIMEOUT);
    Pool::builder(AsyncDieselConnectionManager::new_with_config(String::new(), config))
        .max_size(connections.max(1))
        .runtime(Runtime::Tokio1)
        .timeouts(Timeouts { wait: limit, create: limit, recycle: limit })
        .build()
        .map_err(|error| StoreError::Unavailable(error.to_string()))
}
