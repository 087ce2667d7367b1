//! `callboard serve`.

use config::{Config, Source};
use server::{Parts, Running};
use tokio::signal::unix::{SignalKind, signal};

pub(crate) fn run() -> Result<(), String> {
    let source = Source::from_env();
    let config = Config::load(&source).map_err(|problems| problems.to_string())?;
    server::init_logging(&config);
    for warning in config::warnings(&source, &config) {
        tracing::warn!("{warning}");
    }
    actix_rt::System::new().block_on(async {
        let running = server::start(&config, Parts::default()).await.map_err(|error| error.to_string())?;
        println!("listening on http://{}", running.address());
        serve_until_told(running).await
    })
}

/// Serves until SIGINT or SIGTERM, or until the service cannot go on.
pub(crate) async fn serve_until_told(running: Running) -> Result<(), String> {
    let listen = |kind| signal(kind).map_err(|error| format!("cannot listen for signals: {error}"));
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    let failed = tokio::select! {
        _ = interrupt.recv() => None,
        _ = terminate.recv() => None,
        reason = running.failed() => Some(reason),
    };
    tracing::info!("stopping");
    running.stop().await;
    failed.map_or(Ok(()), |reason| Err(format!("the service could not go on: {reason}")))
}
