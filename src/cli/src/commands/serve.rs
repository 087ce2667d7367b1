//! `callboard serve`.

use std::time::Duration;

use kernel::{Clock, SystemClock};
use server::{Parts, Running};

use super::signals::Signals;
use super::watchdog::watch_stop;
use crate::output::{CommandError, say};

pub(crate) fn run() -> Result<(), CommandError> {
    let (source, config) = super::load()?;
    server::init_logging(&config);
    for warning in config::warnings(&source, &config) {
        tracing::warn!("{warning}");
    }
    actix_rt::System::new().block_on(async {
        let mut signals = Signals::listen()?;
        let running = tokio::select! {
            started = server::start(&config, Parts::default()) => started.map_err(|error| error.to_string())?,
            () = signals.told() => {
                tracing::info!("stopped before the start was complete");
                return Ok(());
            }
        };
        // A closed standard output must not stop the service.
        let _ = say(format_args!("listening on {}", running.origin()));
        serve_until_told(running, &mut signals).await
    })
}

/// Interval at which free memory is returned to the operating system.
const RELEASE: Duration = Duration::from_secs(10);

/// Serves until SIGINT or SIGTERM, or until the service cannot continue.
pub(crate) async fn serve_until_told(running: Running, signals: &mut Signals) -> Result<(), CommandError> {
    let failed = tokio::select! {
        () = signals.told() => None,
        reason = running.failed() => Some(reason),
        () = release_memory() => None,
    };
    let notice = if failed.is_none() { running.notice() } else { Duration::ZERO };
    if watch_stop(notice).is_err() {
        tracing::warn!("failed to start the watchdog; the stop has no time limit");
    }
    if !notice.is_zero() {
        tracing::info!(seconds = notice.as_secs(), "draining");
        running.announce_stop().await;
    }
    tracing::info!("stopping");
    running.stop().await;
    match failed {
        None => {
            tracing::info!("stopped");
            Ok(())
        }
        Some(reason) => Err(format!("the service could not continue: {reason}").into()),
    }
}

/// Returns free memory to the operating system from time to time. Never ends.
async fn release_memory() {
    loop {
        SystemClock::new().sleep(RELEASE).await;
        // Away from this thread, which also runs actors. Its result is of no interest.
        let _ = tokio::task::spawn_blocking(sandbox::release_free_memory).await;
    }
}
