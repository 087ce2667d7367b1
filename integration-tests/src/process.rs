//! A service's thread, with its own actix system.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use config::{Config, Source};
use kernel::{Clock, ManualClock, SystemClock, SystemRandom};
use server::{Load, Parts};
use tokio::sync::{mpsc, oneshot};

use crate::pause;
use crate::waiting::LONGEST;

enum Command {
    Load(oneshot::Sender<Load>),
    Stop,
}

/// A service's thread.
pub(crate) struct Process {
    pub(crate) address: SocketAddr,
    commands: mpsc::UnboundedSender<Command>,
    stopped: oneshot::Receiver<()>,
    thread: JoinHandle<()>,
}

impl Process {
    pub(crate) async fn start(
        variables: &BTreeMap<String, String>,
        clock: Option<ManualClock>,
    ) -> Result<Self, String> {
        let pairs = variables.iter().map(|(name, value)| (name.clone(), value.clone()));
        let config = Config::load(&Source::from_pairs(pairs)).map_err(|problems| problems.to_string())?;
        let (started, starting) = oneshot::channel();
        let (stopped_at, stopped) = oneshot::channel();
        let (commands, mut receiver) = mpsc::unbounded_channel();
        let clock: Arc<dyn Clock> = match clock {
            Some(clock) => Arc::new(clock),
            None => Arc::new(SystemClock::new()),
        };
        let thread = std::thread::spawn(move || {
            actix_rt::System::new().block_on(async move {
                let parts = Parts { listener: None, clock, random: Arc::new(SystemRandom::new()) };
                let running = match server::start(&config, parts).await {
                    Ok(running) => running,
                    Err(error) => {
                        let _ = started.send(Err(error.to_string()));
                        return;
                    }
                };
                let _ = started.send(Ok(running.address()));
                while let Some(Command::Load(answer)) = receiver.recv().await {
                    let _ = answer.send(running.load());
                }
                running.announce_stop().await;
                running.stop().await;
            });
            let _ = stopped_at.send(());
        });
        let address = starting.await.map_err(|_| "the service panicked while it started".to_owned())??;
        Ok(Self { address, commands, stopped, thread })
    }

    pub(crate) async fn load(&self) -> Option<Load> {
        let (answer, load) = oneshot::channel();
        self.commands.send(Command::Load(answer)).ok()?;
        load.await.ok()
    }

    /// The load that does not end by itself.
    pub(crate) async fn left_undone(&self) -> Option<Load> {
        let clock = SystemClock::new();
        loop {
            let load = self.load().await;
            if load.is_none_or(|load| load.threads == 0 && load.streams == 0) {
                return None;
            }
            if clock.monotonic() > LONGEST {
                return load;
            }
            pause(10).await;
        }
    }

    pub(crate) fn stop(self) -> Stopping {
        let _ = self.commands.send(Command::Stop);
        Stopping { stopped: self.stopped, thread: self.thread }
    }
}

/// A service that is shutting down.
pub struct Stopping {
    stopped: oneshot::Receiver<()>,
    thread: JoinHandle<()>,
}

impl Stopping {
    /// Waits for the end of the shutdown.
    ///
    /// # Panics
    /// When the service panicked.
    pub async fn done(self) {
        let _ = self.stopped.await;
        if let Err(panic) = self.thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
}
