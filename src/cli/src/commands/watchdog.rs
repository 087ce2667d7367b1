//! Ends the process if its stop takes too long, or at a second signal.

use std::time::Duration;

use kernel::{Clock, SystemClock};

use super::signals::Signals;
use crate::output::CommandError;

/// Maximum duration of a stop after the notice period.
const STOP_LIMIT: Duration = Duration::from_secs(25);

/// Watches a stop that begins now; the next signal counts as the second one. The thread and its runtime depend on
/// nothing that may be stuck.
pub(crate) fn watch_stop(notice: Duration) -> Result<(), CommandError> {
    let failed = |error: std::io::Error| format!("cannot watch the stop: {error}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let mut signals = {
        let _entered = runtime.enter();
        Signals::listen()?
    };
    let watch = move || {
        let reason = runtime.block_on(async {
            tokio::select! {
                () = signals.told() => "a second signal",
                () = SystemClock::new().sleep(notice.saturating_add(STOP_LIMIT)) => "the stop took too long",
            }
        });
        tracing::error!(reason, "ended without an orderly stop");
        std::process::exit(1);
    };
    std::thread::Builder::new().name("watchdog".to_owned()).spawn(watch).map_err(failed)?;
    Ok(())
}
