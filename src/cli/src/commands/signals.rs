//! SIGINT, SIGTERM and SIGHUP, from before the start on, so that neither an interrupted start nor a closed terminal leaves a
//! database behind.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::output::Failure;

pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Signals {
    /// From here on the signals no longer end the process by themselves.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).map_err(|error| format!("cannot listen for signals: {error}"));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: if outlives_terminal() { None } else { Some(listen(SignalKind::hangup())?) },
        })
    }

    /// Waits until one of them comes.
    pub(crate) async fn told(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = hangup => {}
        }
    }
}

/// Ctrl-C alone, for a command that does something about it before it leaves.
pub(crate) struct Interrupts(Option<Signal>);

impl Interrupts {
    /// From here on Ctrl-C no longer ends the process by itself.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let signal = signal(SignalKind::interrupt());
        signal
            .map(|signal| Self(Some(signal)))
            .map_err(|error| format!("cannot listen for signals: {error}").into())
    }

    /// Somebody else listens.
    pub(crate) fn elsewhere() -> Self {
        Self(None)
    }

    /// Waits for the next one.
    pub(crate) async fn told(&mut self) {
        match &mut self.0 {
            Some(signal) => {
                signal.recv().await;
            }
            None => std::future::pending().await,
        }
    }
}

/// Whether SIGHUP is ignored, as `nohup` leaves it for us; listening would undo that.
fn outlives_terminal() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // SIGHUP is the first signal, the lowest bit.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_none_or(|mask| mask & 1 == 1)
}
