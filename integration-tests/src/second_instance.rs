//! A second instance beside that of a test.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use kernel::ManualClock;
use tempfile::TempDir;

use crate::Balancer;
use crate::process::Process;

/// Set to 2, every service has a second instance beside it, and a balancer before both: a suite can be tried on two instances.
const INSTANCES: &str = "CALLBOARD_TEST_INSTANCES";

/// The second instance.
pub(crate) struct SecondInstance {
    process: Option<Process>,
    port: u16,
    data: TempDir,
    balancer: SocketAddr,
}

impl SecondInstance {
    /// Starts it if the variable says so.
    pub(crate) async fn if_configured(
        variables: &BTreeMap<String, String>,
        clock: Option<ManualClock>,
        first: SocketAddr,
    ) -> Result<Option<Self>, String> {
        // What one instance reads of the other takes time, which a clock in hand would not give it.
        match clock.is_none() && std::env::var(INSTANCES).is_ok_and(|number| number == "2") {
            true => Self::start(variables, clock, first).await.map(Some),
            false => Ok(None),
        }
    }

    /// That of the balancer.
    pub(crate) fn address(&self) -> SocketAddr {
        self.balancer
    }

    /// The instance, to be stopped.
    pub(crate) fn take(&mut self) -> Option<Process> {
        self.process.take()
    }

    /// Starts again after a stop, at the same port. `first`: the variables of the first instance.
    pub(crate) async fn start_again(&mut self, first: &BTreeMap<String, String>, clock: Option<ManualClock>) {
        let started = Process::start(&self.variables(first), clock).await;
        self.process = Some(started.unwrap_or_else(|error| panic!("does not start again: {error}")));
    }

    async fn start(
        variables: &BTreeMap<String, String>,
        clock: Option<ManualClock>,
        first: SocketAddr,
    ) -> Result<Self, String> {
        let data = tempfile::tempdir().expect("a folder");
        let mut beside = Self { process: None, port: 0, data, balancer: first };
        let process = Process::start(&beside.variables(variables), clock).await?;
        let balancer = Balancer::before(vec![first.to_string(), process.address.to_string()]).await;
        beside.port = process.address.port();
        beside.balancer = balancer.address().parse().expect("an address");
        beside.process = Some(process);
        Ok(beside)
    }

    fn variables(&self, first: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut variables = first.clone();
        variables.insert("SERVICE_PORT".to_owned(), self.port.to_string());
        variables.insert("SERVICE_DATA_DIR".to_owned(), self.data.path().display().to_string());
        variables
    }
}
