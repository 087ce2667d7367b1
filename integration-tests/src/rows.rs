//! Reads and changes a service's database directly.

use std::net::SocketAddr;

use store::testing::Held;

use crate::{TestService, until};

impl TestService {
    /// The first column of the first row, as text.
    pub async fn scalar(&self, sql: &str) -> String {
        self.database.scalar(sql).await
    }

    /// Waits until the first column of the first row is this text; `what` names the awaited thing.
    pub async fn until_scalar(&self, what: &str, sql: &str, value: &str) {
        until(what, async || self.scalar(sql).await == value).await;
    }

    /// Runs SQL as the database's owner.
    ///
    /// # Panics
    /// When the database refuses.
    pub async fn execute(&self, sql: &str) {
        self.database.execute(sql).await.expect("SQL");
    }

    /// The database's network address, and a function that builds its DSN with another address, such as a cable's.
    pub async fn database_over_network(&self) -> (SocketAddr, impl Fn(SocketAddr) -> String + use<>) {
        let (dsn, address) = self.database.over_network().await;
        (address, move |other: SocketAddr| dsn.replace(&address.to_string(), &other.to_string()))
    }

    /// Runs SQL as the database's owner in an open transaction: its locks are held until it is released.
    pub async fn hold(&self, sql: &str) -> Held {
        self.database.hold(sql).await
    }

    /// Waits until at least this many statements of the service wait for a lock.
    pub async fn waiting_for_locks(&self, statements: usize) {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let waiting = async || self.scalar(sql).await.parse::<usize>().unwrap_or_default();
        until("statements wait for a lock", async || waiting().await >= statements).await;
    }

    /// Asserts that a table is empty.
    ///
    /// # Panics
    /// When it has rows.
    pub async fn assert_no_rows(&self, table: &str) {
        let rows = self.scalar(&format!("SELECT count(*) FROM {table}")).await;
        assert_eq!(rows, "0", "rows in {table}");
    }
}
