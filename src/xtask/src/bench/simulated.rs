//! Trains simulated worlds through the service, and serves the models of all worlds over HTTP.

use std::collections::HashMap;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::web::{Bytes, Data, PayloadConfig};
use actix_web::{App, HttpResponse, HttpServer, web};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use worlds::{RequestOptions, Simulator, Tally, World};

use super::server::{get_with, pause, post};

/// The server's keep-alive timeout: longer than its clients' timeout.
const KEEP_ALIVE: Duration = Duration::from_secs(3_600);
/// Maximum request body bytes.
const LARGEST: usize = 4 << 20;

#[derive(Default)]
struct SimulatedModels {
    simulator: Simulator,
    /// Duration per call.
    delay: Option<Duration>,
    /// Requests by body; counted only if calls are delayed.
    received: Mutex<HashMap<Bytes, u64>>,
}

/// The models of all worlds over HTTP.
pub(super) struct ModelServer {
    address: String,
    shared: Arc<SimulatedModels>,
}

/// Requests since the last count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Received {
    pub(super) requests: u64,
    /// Requests with a body that was already received.
    pub(super) repeated: u64,
}

impl ModelServer {
    /// Starts a server that responds at once. It serves until the process ends.
    pub(super) fn start() -> Result<Self> {
        Self::serve(SimulatedModels::default())
    }

    /// Starts a server that delays each call, so that it can be interrupted, and counts requests by body.
    pub(super) fn start_slow(delay: Duration) -> Result<Self> {
        Self::serve(SimulatedModels { delay: Some(delay), ..SimulatedModels::default() })
    }

    fn serve(shared: SimulatedModels) -> Result<Self> {
        let shared = Arc::new(shared);
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let served = Arc::clone(&shared);
        let app = move || {
            App::new()
                .app_data(Data::from(Arc::clone(&served)))
                .app_data(PayloadConfig::new(LARGEST))
                .route("/v1/chat/completions", web::post().to(reply))
        };
        // A request on a connection that is just being closed would be sent, but not received.
        let server = HttpServer::new(app).workers(1).keep_alive(KEEP_ALIVE).disable_signals();
        actix_rt::spawn(server.listen(listener)?.run());
        Ok(Self { address, shared })
    }

    pub(super) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The tally since the last call.
    pub(super) fn take_tally(&self) -> Tally {
        self.shared.simulator.take_tally()
    }

    /// The requests since the last call; only for slow models.
    pub(super) fn take_received(&self) -> Received {
        let received =
            std::mem::take(&mut *self.shared.received.lock().unwrap_or_else(PoisonError::into_inner));
        let repeated = received.values().map(|count| count - 1).sum();
        Received { requests: received.values().sum(), repeated }
    }
}

async fn reply(shared: Data<SimulatedModels>, body: Bytes) -> HttpResponse {
    let Ok(request) = serde_json::from_slice::<Value>(&body) else {
        return HttpResponse::BadRequest().finish();
    };
    if let Some(delay) = shared.delay {
        *shared.received.lock().unwrap_or_else(PoisonError::into_inner).entry(body).or_default() += 1;
        pause(delay).await;
    }
    let reply = shared.simulator.reply(&request);
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    HttpResponse::build(status).json(reply.body)
}

/// A started training.
#[derive(Debug, Clone)]
pub(super) struct Started {
    pub(super) workflow: String,
    pub(super) run: String,
}

impl Started {
    /// Starts a training of a world in a new workflow. `settings`: the optimizer settings.
    pub(super) async fn start(address: &str, world: &World, settings: Value) -> Result<Self> {
        let optimizer = settings.get("name").and_then(Value::as_str).unwrap_or_default();
        let name = json!({"name": format!("{} {optimizer}", world.name())});
        // The training would be rejected without a prompt that can get demos.
        let demos = optimizer == "fewshot";
        let request = world.train_workflow(&RequestOptions { settings, demos, ..RequestOptions::default() });
        let member = |name: &str| request.get(name).cloned().unwrap_or_default();
        let workflow = text(&post(address, "/api/workflows", &name.to_string()).await?, "id")?;
        let version = json!({"graph": member("graph_config"), "runnable_config": member("runnable_config")});
        post(address, &format!("/api/workflows/{workflow}/versions"), &version.to_string()).await?;
        let body = json!({"training": member("training")}).to_string();
        let run = post(address, &format!("/api/workflows/{workflow}/trainer/runs"), &body).await?;
        Ok(Self { run: text(&run, "id")?, workflow })
    }

    /// The training's record and status.
    pub(super) async fn record(&self, address: &str) -> Result<(Value, String)> {
        let Self { workflow, run } = self;
        let record = get_with(address, &format!("/api/workflows/{workflow}/trainer/runs/{run}"), "").await?;
        let status = text(&record, "status")?;
        Ok((record, status))
    }

    /// Polls at each interval until the training has succeeded; returns its record.
    pub(super) async fn ended(&self, address: &str, interval: Duration, longest: Duration) -> Result<Value> {
        let began = super::server::now();
        loop {
            let (record, status) = self.record(address).await?;
            match status.as_str() {
                "queued" | "running" => {}
                "succeeded" => return Ok(record),
                _ => anyhow::bail!("the run is {status}: {record}"),
            }
            anyhow::ensure!(began.elapsed() < longest, "the run takes too long: {record}");
            pause(interval).await;
        }
    }
}

/// A string field.
pub(super) fn text(value: &Value, name: &str) -> Result<String> {
    let found = value.get(name).and_then(Value::as_str);
    found.map(str::to_owned).with_context(|| format!("no '{name}' in {value}"))
}
