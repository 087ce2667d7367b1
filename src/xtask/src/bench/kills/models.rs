//! The models of all worlds over HTTP, slow enough to be interrupted. It counts each request by its body.

use std::collections::HashMap;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::web::{Bytes, Data, PayloadConfig};
use actix_web::{App, HttpResponse, HttpServer, web};
use anyhow::Result;
use serde_json::Value;
use worlds::Simulator;

use crate::bench::server::pause;

/// The time of a call.
const CALL: Duration = Duration::from_millis(40);

#[derive(Default)]
struct Shared {
    simulator: Simulator,
    /// How often each body came.
    received: Mutex<HashMap<Bytes, u64>>,
}

pub(super) struct SlowModels {
    address: String,
    shared: Arc<Shared>,
}

/// Requests since the last count.
pub(super) struct Received {
    pub(super) requests: u64,
    /// Requests that had come before.
    pub(super) repeated: u64,
}

impl SlowModels {
    /// Serves as long as the process runs.
    pub(super) fn start() -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let served = Arc::clone(&shared);
        let app = move || {
            App::new()
                .app_data(Data::from(Arc::clone(&served)))
                .app_data(PayloadConfig::new(1 << 20))
                .route("/v1/chat/completions", web::post().to(reply))
        };
        actix_rt::spawn(HttpServer::new(app).workers(1).disable_signals().listen(listener)?.run());
        Ok(Self { address, shared })
    }

    pub(super) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The requests so far; the count starts again from 0.
    pub(super) fn take(&self) -> Received {
        let received =
            std::mem::take(&mut *self.shared.received.lock().unwrap_or_else(PoisonError::into_inner));
        let repeated = received.values().map(|count| count - 1).sum();
        Received { requests: received.values().sum(), repeated }
    }
}

async fn reply(shared: Data<Shared>, body: Bytes) -> HttpResponse {
    let Ok(request) = serde_json::from_slice::<Value>(&body) else {
        return HttpResponse::BadRequest().finish();
    };
    *shared.received.lock().unwrap_or_else(PoisonError::into_inner).entry(body).or_default() += 1;
    pause(CALL).await;
    let reply = shared.simulator.reply(&request);
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    HttpResponse::build(status).json(reply.body)
}
