//! The models of all worlds, over HTTP.

use std::net::TcpListener;
use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::web::{Data, Json, PayloadConfig};
use actix_web::{App, HttpResponse, HttpServer, web};
use anyhow::Result;
use serde_json::Value;
use worlds::{Simulator, Tally};

pub(super) struct ModelServer {
    address: String,
    simulator: Arc<Simulator>,
}

impl ModelServer {
    /// Serves as long as the process runs.
    pub(super) fn start() -> Result<Self> {
        let simulator = Arc::new(Simulator::default());
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let served = Arc::clone(&simulator);
        let app = move || {
            App::new()
                .app_data(Data::from(Arc::clone(&served)))
                .app_data(PayloadConfig::new(1 << 20))
                .route("/v1/chat/completions", web::post().to(reply))
        };
        actix_rt::spawn(HttpServer::new(app).workers(1).listen(listener)?.run());
        Ok(Self { address, simulator })
    }

    pub(super) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// What was received since the last time.
    pub(super) fn take_tally(&self) -> Tally {
        self.simulator.take_tally()
    }
}

async fn reply(simulator: Data<Simulator>, body: Json<Value>) -> HttpResponse {
    let reply = simulator.reply(&body);
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    HttpResponse::build(status).json(reply.body)
}
