//! The configuration of a test service.

use std::collections::BTreeMap;

use client::Client;
use kernel::{Clock, ManualClock, SystemClock};
use store::testing::TestDatabase;

use crate::process::Process;
use crate::second_instance::SecondInstance;
use crate::service::TestService;
use crate::{BOOTSTRAP, described};

/// Configures and starts a test service.
#[derive(Default)]
pub struct Builder {
    variables: BTreeMap<String, String>,
    clock: Option<ManualClock>,
    alone: bool,
}

impl Builder {
    /// Sets a configuration variable.
    #[must_use]
    pub fn set(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.insert(name.to_owned(), value.into());
        self
    }

    /// Sets configuration variables.
    #[must_use]
    pub fn set_all<'n, V: Into<String>>(self, variables: impl IntoIterator<Item = (&'n str, V)>) -> Self {
        variables.into_iter().fold(self, |builder, (name, value)| builder.set(name, value))
    }

    /// Requires a token from every caller; [`TestService::workflow`] uses this one.
    #[must_use]
    pub fn with_bootstrap_token(self) -> Self {
        self.set("SERVICE_AUTH_BOOTSTRAP_SERVICE_TOKEN", BOOTSTRAP)
    }

    /// Forces a single instance: for counters that each instance keeps, and for client addresses.
    #[must_use]
    pub fn alone(self) -> Self {
        Self { alone: true, ..self }
    }

    /// Uses a clock that only the test moves. The database and the network stay in real time.
    #[must_use]
    pub fn manual_clock(mut self) -> Self {
        // The current time: the template's tables have partitions around it.
        self.clock = Some(ManualClock::new(SystemClock::new().now()));
        self
    }

    /// Starts the service.
    ///
    /// # Panics
    /// When the service does not start.
    pub async fn start(self) -> TestService {
        self.try_start().await.unwrap_or_else(|error| panic!("the service does not start: {error}"))
    }

    /// Starts the service, or returns the reason why it fails.
    ///
    /// # Errors
    /// The service's error message.
    pub async fn try_start(self) -> Result<TestService, String> {
        let database = TestDatabase::create().await;
        let data = tempfile::tempdir().expect("a folder");
        let defaults = [
            ("SERVICE_POSTGRES_DSN", database.dsn().to_owned()),
            ("SERVICE_DATA_DIR", data.path().display().to_string()),
            ("SERVICE_PORT", "0".to_owned()),
            ("SERVICE_HTTP_WORKERS", "2".to_owned()),
            ("SERVICE_DATABASE_POOL", "6".to_owned()),
            // All clients share one address, and some are fast.
            ("SERVICE_CHAT_RATE_LIMIT_IP", "0".to_owned()),
            ("SERVICE_CHAT_RATE_LIMIT_WORKFLOW", "0".to_owned()),
            ("SERVICE_CHAT_RATE_LIMIT_SESSION", "0".to_owned()),
            ("SERVICE_CHAT_MAX_STREAMS", "0".to_owned()),
        ];
        let mut variables = self.variables;
        // The current program is the test, not the service.
        if let Ok(binary) = std::env::var("CALLBOARD_BIN") {
            variables.entry("SERVICE_SANDBOX_PROGRAM".to_owned()).or_insert(binary);
        }
        for (name, value) in defaults {
            variables.entry(name.to_owned()).or_insert(value);
        }
        let process = Process::start(&variables, self.clock.clone()).await?;
        variables.insert("SERVICE_PORT".to_owned(), process.address.port().to_string());
        let beside = match self.alone {
            true => None,
            false => SecondInstance::if_configured(&variables, self.clock.clone(), process.address).await?,
        };
        let address = beside.as_ref().map_or(process.address, |beside| beside.address());
        let base = format!("http://{address}");
        let client = Client::builder(&base).observer(described::check).build().expect("an address");
        let clock = self.clock;
        Ok(TestService {
            process: Some(process),
            beside,
            client,
            variables,
            clock,
            leaves_work: false,
            _data: data,
            database,
        })
    }
}
