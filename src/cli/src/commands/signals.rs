//! SIGINT, SIGTERM and SIGHUP, handled before the start, so that neither an interrupted start nor a closed terminal
//! leaves a database running.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::output::CommandError;

pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Signals {
    /// Installs the handlers; the signals no longer end the process by themselves.
    pub(crate) fn listen() -> Result<Self, CommandError> {
        let listen = |kind| signal(kind).map_err(|error| format!("cannot listen for signals: {error}"));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: if outlives_terminal() { None } else { Some(listen(SignalKind::hangup())?) },
        })
    }

    /// Waits for one of the signals.
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

/// Ctrl-C only, for a command that cleans up before it exits.
pub(crate) struct Interrupts(Option<Signal>);

impl Interrupts {
    /// Installs the handler; Ctrl-C no longer ends the process by itself.
    pub(crate) fn listen() -> Result<Self, CommandError> {
        let signal = signal(SignalKind::interrupt());
        signal
            .map(|signal| Self(Some(signal)))
            .map_err(|error| format!("cannot listen for signals: {error}").into())
    }

    /// Never fires, because another part of the program handles Ctrl-C.
    pub(crate) fn elsewhere() -> Self {
        Self(None)
    }

    /// Waits for the next Ctrl-C.
    pub(crate) async fn told(&mut self) {
        match &mut self.0 {
            Some(signal) => {
                signal.recv().await;
            }
            None => std::future::pending().await,
        }
    }
}

/// Whether SIGHUP is ignored, as `nohup` arranges; a handler would undo that.
fn outlives_terminal() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // SIGHUP is the first signal, the lowest bit.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_none_or(|mask| mask & 1 == 1)
}
