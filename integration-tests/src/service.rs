//! The service in this process, on its own thread.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use client::{Answer, Client, Exchange};
use kernel::ManualClock;
use serde_json::Value;
use server::Load;
use store::testing::TestDatabase;
use tempfile::TempDir;

use crate::builder::Builder;
use crate::process::{Process, Stopping};
use crate::second_instance::SecondInstance;
use crate::{
    AnswerExt, BOOTSTRAP, Bearer, JSON, Raw, RawAnswer, WorkflowBuilder, described, pause, until, within,
};

/// Milliseconds until another instance notices a workflow change.
const NOTICED: u64 = 1_050;

/// A running service with its own database.
///
/// Dropping it shuts it down gracefully, and asserts that no work is left.
pub struct TestService {
    pub(crate) process: Option<Process>,
    pub(crate) beside: Option<SecondInstance>,
    pub(crate) client: Client,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) clock: Option<ManualClock>,
    pub(crate) leaves_work: bool,
    pub(crate) _data: TempDir,
    pub(crate) database: TestDatabase,
}

impl TestService {
    /// Starts with the default configuration and the system clock.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Starts with a clock that only the test moves.
    pub async fn with_manual_clock() -> Self {
        Self::builder().manual_clock().start().await
    }

    /// Starts another instance on the same database. Its start waits until this one knows it.
    pub async fn another_instance(&self) -> Self {
        Self::builder().set("SERVICE_POSTGRES_DSN", &self.variables["SERVICE_POSTGRES_DSN"]).start().await
    }

    /// Starts configuring a service.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The service's address; the same after a restart, and during a shutdown.
    ///
    /// # Panics
    /// When it has never listened.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        let own = self.process.as_ref().map_or_else(|| self.last_address(), |process| process.address);
        self.beside.as_ref().map_or(own, |beside| beside.address())
    }

    fn last_address(&self) -> SocketAddr {
        let port = self.variables.get("SERVICE_PORT").and_then(|port| port.parse().ok()).expect("a port");
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    /// The configuration variables, for starting a similar service.
    #[must_use]
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// The default visitor, with a cookie jar.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// A new visitor with a cookie jar.
    #[must_use]
    pub fn visitor(&self) -> Client {
        self.client.new_visitor()
    }

    /// A client without cookies.
    ///
    /// # Panics
    /// Never: the address is valid.
    #[must_use]
    pub fn anonymous(&self) -> Client {
        let base = self.client.base();
        Client::builder(base).observer(described::check).keep_cookies(false).build().expect("an address")
    }

    /// A caller with this token.
    #[must_use]
    pub fn bearer(&self, token: &str) -> Bearer<'_> {
        Bearer::new(self, token)
    }

    /// A caller with the bootstrap token.
    #[must_use]
    pub fn root(&self) -> Bearer<'_> {
        self.bearer(BOOTSTRAP)
    }

    /// Starts building a workflow.
    ///
    /// # Panics
    /// Never: the address is valid.
    #[must_use]
    pub fn workflow(&self) -> WorkflowBuilder {
        let client = match self.variables.get("SERVICE_AUTH_BOOTSTRAP_SERVICE_TOKEN") {
            Some(token) => {
                let builder = Client::builder(self.client.base()).observer(described::check);
                builder.service_token(token.clone().into()).build().expect("an address")
            }
            None => self.client.new_visitor(),
        };
        WorkflowBuilder::new(client)
    }

    /// A raw connection, for bytes that no client would send.
    pub async fn raw(&self) -> Raw {
        Raw::connect(self.address()).await
    }

    /// Sends a JSON body to the chat without cookies and reads the complete response.
    ///
    /// # Panics
    /// Without a complete response.
    pub async fn chat(&self, body: &Value) -> Answer {
        self.post("/api/chat", &body.to_string()).await
    }

    /// Sends a JSON text without cookies and reads the complete response.
    ///
    /// # Panics
    /// Without a complete response.
    pub async fn post(&self, path: &str, body: &str) -> Answer {
        self.send("POST", path, &[JSON], body).await
    }

    /// Sends JSON without cookies and reads the complete response.
    ///
    /// # Panics
    /// Without a complete response.
    pub async fn json(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.send(method, path, &[JSON], body.to_string()).await
    }

    /// Reads a path without cookies.
    ///
    /// # Panics
    /// Without a complete response.
    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "").await
    }

    /// Sends any request without cookies and reads the complete response.
    ///
    /// # Panics
    /// Without a complete response.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl AsRef<[u8]>,
    ) -> Answer {
        let answer = self.open(method, path, headers, body).await.whole().await;
        let path = path.split('?').next().unwrap_or_default();
        let Answer { status, headers, body } = &answer;
        described::check(&Exchange { method, path, status: *status, headers, body: Some(body) });
        if method != "GET" && path.starts_with("/api/workflows/") {
            self.noticed().await;
        }
        answer
    }

    /// Waits until each instance has noticed a workflow change.
    pub async fn noticed(&self) {
        if self.beside.is_some() {
            pause(NOTICED).await;
        }
    }

    /// Sends any request without cookies; the response is read piece by piece.
    pub async fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl AsRef<[u8]>,
    ) -> RawAnswer {
        let mut all = vec![("connection", "close")];
        all.extend_from_slice(headers);
        self.raw().await.request(method, path, &all, body).await
    }

    /// Starts a turn without cookies; its stream is read piece by piece.
    pub async fn open_chat(&self, body: &Value) -> RawAnswer {
        self.open("POST", "/api/chat", &[JSON], body.to_string()).await
    }

    /// Reads a stream after an event; its body is read piece by piece.
    pub async fn resume(&self, stream: &str, after: Option<&str>) -> RawAnswer {
        let header = after.map(|id| ("last-event-id", id));
        self.open("GET", &format!("/api/chat/streams/{stream}"), header.as_slice(), "").await
    }

    /// Stops a stream's turn without cookies; the clock moves meanwhile.
    pub async fn stop_turn(&self, stream: &str) -> Answer {
        let path = format!("/api/chat/streams/{stream}/stop");
        // In small steps: the service waits for the turn's end for at most five seconds of this clock.
        self.while_time_passes_in(Duration::from_millis(2), self.send("POST", &path, &[], "")).await
    }

    /// Asserts that the service is alive and ready.
    ///
    /// # Panics
    /// When the service is not ready.
    pub async fn assert_healthy(&self) {
        self.get("/readyz").await.expect(200);
    }

    /// The manual clock.
    ///
    /// # Panics
    /// When the service uses the system clock.
    #[must_use]
    pub fn clock(&self) -> &ManualClock {
        self.clock.as_ref().expect("a clock in hand")
    }

    /// Advances the clock.
    ///
    /// # Panics
    /// When the service uses the system clock.
    pub fn advance(&self, by: Duration) {
        self.clock().advance(by);
    }

    /// Lets time pass, with either clock, until the future is ready.
    pub fn while_time_passes<T>(&self, future: impl Future<Output = T>) -> impl Future<Output = T> {
        self.while_time_passes_in(Duration::from_millis(25), future)
    }

    /// Like [`Self::while_time_passes`], in steps of this length.
    pub fn while_time_passes_in<T>(
        &self,
        step: Duration,
        future: impl Future<Output = T>,
    ) -> impl Future<Output = T> {
        // Boxed, because a test's future has many of these, and lives on its thread's stack.
        self.passing(step, Box::pin(future))
    }

    async fn passing<T>(&self, step: Duration, future: impl Future<Output = T>) -> T {
        let Some(clock) = &self.clock else { return within("an answer", future).await };
        // The service's own work takes real time: long steps get more of it, otherwise its timeouts would expire first.
        let real = 2 + u64::try_from(step.as_millis() / 20).unwrap_or(u64::MAX).min(30);
        let passing = async {
            loop {
                pause(real).await;
                clock.advance(step);
                // A slow service slows the clock down.
                if let Some(process) = &self.process {
                    process.load().await;
                }
            }
        };
        within("an answer", async {
            tokio::select! {
                value = future => value,
                () = passing => unreachable!(),
            }
        })
        .await
    }

    /// The service's current load.
    ///
    /// # Panics
    /// When the service is stopped.
    pub async fn load(&self) -> Load {
        let process = self.process.as_ref().expect("the service runs");
        process.load().await.expect("the service answers")
    }

    /// Waits until no turn runs, no stream is read and no thread has an actor.
    ///
    /// # Panics
    /// On a timeout.
    pub async fn settled(&self) {
        let idle = Load { threads: 0, streams: 0 };
        until("the service to have nothing under way", async || self.load().await == idle).await;
    }

    /// Allows the scenario to leave unfinished turns: they are not asserted at the end.
    pub fn leave_work(&mut self) {
        self.leaves_work = true;
    }

    /// Shuts down gracefully, like SIGTERM; the clock moves meanwhile.
    pub async fn stop(&mut self) {
        let beside = self.beside.as_mut().and_then(|beside| beside.take()).map(Process::stop);
        let stopping = self.begin_stop();
        let both = async {
            stopping.done().await;
            if let Some(beside) = beside {
                beside.done().await;
            }
        };
        self.while_time_passes_in(Duration::from_millis(100), both).await;
    }

    /// Begins a graceful shutdown.
    ///
    /// # Panics
    /// When the service is stopped.
    pub fn begin_stop(&mut self) -> Stopping {
        self.process.take().expect("the service runs").stop()
    }

    /// Restarts after a stop: the same database, data folder and port.
    ///
    /// # Panics
    /// When the service does not start.
    pub async fn start_again(&mut self) {
        let started = Process::start(&self.variables, self.clock.clone()).await;
        self.process = Some(started.unwrap_or_else(|error| panic!("does not start again: {error}")));
        if let Some(beside) = &mut self.beside {
            beside.start_again(&self.variables, self.clock.clone()).await;
        }
    }

    /// Sets a variable for the next start.
    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
    }

    /// Shuts down gracefully and restarts.
    pub async fn restart(&mut self) {
        self.stop().await;
        self.start_again().await;
    }
}

impl Drop for TestService {
    fn drop(&mut self) {
        let failing = std::thread::panicking();
        let (process, clock, database) = (self.process.take(), self.clock.clone(), &self.database);
        let beside = self.beside.as_mut().and_then(|beside| beside.take());
        let leaves_work = self.leaves_work;
        // A test's own runtime may be shutting down.
        let ending = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                for process in [process, beside].into_iter().flatten() {
                    let mut left = None;
                    if !failing && !leaves_work {
                        left = process.left_undone().await;
                    }
                    let done = process.stop().done();
                    match &clock {
                        // Advances the clock for everything that waits for time.
                        Some(clock) => {
                            tokio::select! {
                                () = done => {}
                                () = async { loop { pause(2).await; clock.advance(Duration::from_secs(1)); } } => {}
                            }
                        }
                        None => done.await,
                    }
                    assert_eq!(left, None, "left undone");
                }
                if !failing && !leaves_work {
                    let unfinished = "SELECT count(*) FROM runs WHERE finished_at IS NULL";
                    assert_eq!(database.scalar(unfinished).await, "0", "unfinished runs");
                }
            });
        };
        let ended = std::thread::scope(|scope| scope.spawn(ending).join());
        if !failing && let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    }
}

/// A database besides those of the services, for statements that cannot run inside theirs.
pub async fn owner_of_all_databases() -> TestDatabase {
    TestDatabase::create().await
}
