//! Erases visitor data and waits briefly for completion.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use store::Erasure;
use wire::{Erased, Erasing};

use crate::http::App;
use crate::http::error::ApiResult;

/// Maximum time that a request waits. A job completes the rest.
const WAIT: Duration = Duration::from_secs(5);

/// Executes these erasure requests, each given with its thread count.
pub(in crate::http) async fn erase(app: &App, requested: &[(Erasure, u64)]) -> ApiResult<HttpResponse> {
    let all = async {
        for (erasure, _) in requested {
            app.chat().erase(erasure).await?;
        }
        Ok::<_, store::StoreError>(())
    };
    match kernel::timeout(&**app.clock(), WAIT, all).await {
        Some(Ok(())) => {
            let threads = requested.iter().map(|(_, threads)| threads).sum();
            return Ok(HttpResponse::Ok().json(Erased { threads }));
        }
        // The erasure request is stored.
        Some(Err(error)) => tracing::warn!(%error, "failed to erase a visitor's data; a job continues"),
        None => {}
    }
    Ok(HttpResponse::build(StatusCode::ACCEPTED).json(Erasing { status: "erasing".to_owned() }))
}
