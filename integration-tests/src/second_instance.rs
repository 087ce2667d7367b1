//! A second instance in addition to the test's first one.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use kernel::ManualClock;
use tempfile::TempDir;

use crate::Balancer;
use crate::process::Process;

/// If set to 2, every service gets a second instance, and a balancer in front of both: the whole suite can run on two
/// instances.
const INSTANCES: &str = "CALLBOARD_TEST_INSTANCES";

/// The second instance.
pub(crate) struct SecondInstance {
    process: Option<Process>,
    port: u16,
    data: TempDir,
    balancer: SocketAddr,
}

impl SecondInstance {
    /// Starts the second instance if the variable requests it.
    pub(crate) async fn if_configured(
        variables: &BTreeMap<String, String>,
        clock: Option<ManualClock>,
        first: SocketAddr,
    ) -> Result<Option<Self>, String> {
        // One instance reads from the other in real time, which a manual clock would not allow.
        match clock.is_none() && std::env::var(INSTANCES).is_ok_and(|number| number == "2") {
            true => Self::start(variables, clock, first).await.map(Some),
            false => Ok(None),
        }
    }

    /// The balancer's address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.balancer
    }

    /// Takes the instance, in order to stop it.
    pub(crate) fn take(&mut self) -> Option<Process> {
        self.process.take()
    }

    /// Restarts after a stop, at the same port. `first`: the variables of the first instance.
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
