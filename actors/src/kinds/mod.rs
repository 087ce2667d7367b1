//! The run kinds: a folder and a row in the table below for each.

use std::sync::Arc;
use std::time::Duration;

pub mod action;
pub mod app;
#[cfg(test)]
mod counter;
pub mod training;
pub mod turn;
pub mod workflow;

use crate::run::RunPorts;
use crate::run::actor::RunActors;
use crate::run::kind::{Door, KindRow, Kinds};
use crate::runtime::{ActorKind, Guardian};
use action::ActionRuns;
use training::{Pauses, TrainingRuns};
use turn::thread::Threads;
use turn::{Grace, Turns};
use workflow::WorkflowRuns;

/// Chat turns, in the order of their thread.
const TURN: KindRow = KindRow {
    name: "turn",
    actor: ActorKind::Thread,
    triggers: &["chat"],
    drain: None,
    tells_attempts: false,
    repeatable: false,
    parks: true,
    shows_items: true,
    keeps_events: false,
};

/// Actions that only change their widget: a client waits for the end.
const ACTION: KindRow = KindRow {
    name: "action",
    actor: ActorKind::Run,
    triggers: &["action"],
    drain: None,
    tells_attempts: false,
    repeatable: false,
    parks: false,
    shows_items: false,
    keeps_events: false,
};

/// Workflow runs outside chats. The journal has a run's progress, so the next process resumes a long one.
const WORKFLOW: KindRow = KindRow {
    name: "run",
    actor: ActorKind::Run,
    triggers: &["api", "websocket", "cron", "webhook", "rerun"],
    drain: Some(Duration::from_secs(5)),
    tells_attempts: true,
    repeatable: true,
    parks: true,
    shows_items: false,
    keeps_events: false,
};

/// Runs started by app pages.
const APP: KindRow =
    KindRow { name: "run of an app", actor: ActorKind::AppRun, triggers: &["app"], ..WORKFLOW };

/// Trainings and evaluations. A search is resumed by replaying its stored results. Cases in flight have 5 s; the rest
/// is for the event that reports this.
const TRAINING: KindRow = KindRow {
    name: "training",
    actor: ActorKind::Run,
    triggers: &["training", "evaluation", "gate"],
    drain: Some(Duration::from_secs(6)),
    tells_attempts: false,
    repeatable: false,
    parks: true,
    shows_items: false,
    keeps_events: true,
};

/// Runs that count their questions: an example of the cost of a new kind.
#[cfg(test)]
const COUNTER: KindRow = KindRow {
    name: "counter",
    actor: ActorKind::Run,
    triggers: &["counter"],
    drain: Some(Duration::ZERO),
    tells_attempts: false,
    repeatable: false,
    parks: true,
    shows_items: false,
    keeps_events: false,
};

/// The actors for each kind.
pub(crate) struct Actors {
    pub(crate) threads: Threads,
    pub(crate) workflow_runs: RunActors<WorkflowRuns<false>>,
    pub(crate) app_runs: RunActors<WorkflowRuns<true>>,
    pub(crate) actions: RunActors<ActionRuns>,
    pub(crate) trainings: RunActors<TrainingRuns>,
    pub(crate) pauses: Pauses,
    pub(crate) kinds: Kinds,
}

impl Actors {
    /// `training_runs`: maximum trainings that execute concurrently.
    pub(crate) fn new(guardian: &Guardian, ports: &RunPorts, grace: Grace, training_runs: usize) -> Self {
        let (guardian, ports) = (|| guardian.clone(), || ports.clone());
        let threads = Threads::new(Turns { grace }, guardian(), ports());
        let workflow_runs = RunActors::new(WorkflowRuns::<false>, guardian(), ports());
        let app_runs = RunActors::new(WorkflowRuns::<true>, guardian(), ports());
        let actions = RunActors::new(ActionRuns, guardian(), ports());
        let training = TrainingRuns::new(training_runs);
        let pauses = training.pauses();
        let trainings = RunActors::new(training, guardian(), ports());
        let doors: Vec<Arc<dyn Door>> = vec![
            Arc::new(threads.clone()),
            Arc::new(workflow_runs.clone()),
            Arc::new(app_runs.clone()),
            Arc::new(actions.clone()),
            Arc::new(trainings.clone()),
            #[cfg(test)]
            Arc::new(RunActors::new(counter::Counter, guardian(), ports())),
        ];
        let kinds = Kinds::new(doors);
        Self { threads, workflow_runs, app_runs, actions, trainings, pauses, kinds }
    }
}
