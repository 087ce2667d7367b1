//! The core of every run: the engine executes a frozen version, every result is a journal row before anything depends
//! on it, and readers receive only committed data. [`kind`] has the differences between kinds.

pub(crate) mod actor;
mod answers;
mod app;
mod attachments;
pub(crate) mod budget;
pub(crate) mod cancel;
mod collections;
mod config;
pub(crate) mod crashes;
mod credentials;
mod databases;
pub(crate) mod drive;
mod early_start;
mod event_writer;
mod frames;
mod images;
mod interrupted;
pub(crate) mod join;
mod journal;
pub(crate) mod kind;
pub(crate) mod lease;
mod pace;
pub(crate) mod queue;
pub(crate) mod quota;
pub(crate) mod recover;
pub(crate) mod refill;
mod rollout;
mod search;
mod shares;
pub(crate) mod start;
mod stored_options;
pub(crate) mod sweeper;
pub(crate) mod waiting;
mod wakeups;
mod work;
mod workflows;
mod writer;

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use auth::keyring::KeyRing;
use chrono::{DateTime, Utc};
use engine::ports::{Journal, Outbound, Output, Ports, WithinBudget};
use engine::{Activity, Cache, Completed, Life, RecordedStep, RunError, RunInfo, RunInput};
use futures_util::FutureExt;
use kernel::{Clock, Ids, Random, ThreadId};
use models::Models;
use sandbox::Sandbox;
use serde_json::{Value, json};
use store::Store;
use tokio::sync::{Notify, OnceCell, Semaphore};
use uuid::Uuid;
use wire::{ErrorCode, RunProblem};

pub use app::RunApp;
pub(crate) use config::overlaid;
pub(crate) use event_writer::{EventWriter, Urgency};
pub(crate) use frames::Frames;
pub(crate) use journal::read_journal;
pub(crate) use rollout::RolloutSignals;
pub(crate) use shares::{READS, RECORD_CHANGES};
pub use shares::{SharePermit, WorkspaceShare, WorkspaceShares};
pub(crate) use wakeups::Wakeups;
pub(crate) use writer::{End, RunWriter};

use crate::lanes::{Database, WriteError};
use crate::plans::{LoadedVersion, Plans};
use crate::run::lease::InFlight;
use crate::run::quota::Quota;
use crate::streams::{Reader, Topics};
use answers::AnswersOf;
use attachments::AttachmentsOf;
pub(crate) use attachments::FileRoom;
use budget::{BudgetAccount, Budgets, RunBudget};
use collections::CollectionsOf;
pub(crate) use credentials::CredentialsOf;
use databases::DatabasesOf;
pub use images::ImageLinks;
use pace::Turn;
use search::SearchOf;
pub(crate) use stored_options::StoredOptions;
pub(crate) use work::{Executing, Work};
use workflows::WorkflowsOf;

/// Dependencies of every run. Cheap to clone.
#[derive(Clone)]
pub(crate) struct RunPorts(Arc<SharedPorts>);

impl std::ops::Deref for RunPorts {
    type Target = SharedPorts;

    fn deref(&self) -> &SharedPorts {
        &self.0
    }
}

impl From<SharedPorts> for RunPorts {
    fn from(ports: SharedPorts) -> Self {
        Self(Arc::new(ports))
    }
}

/// See [`RunPorts`].
pub(crate) struct SharedPorts {
    /// The database.
    pub(crate) store: Store,
    /// The lanes.
    pub(crate) db: Database,
    /// Stream topics that readers subscribe to.
    pub(crate) topics: Topics,
    /// Compiled versions.
    pub(crate) plans: Arc<Plans>,
    /// Language models.
    pub(crate) models: Models,
    /// Sandbox for user code.
    pub(crate) sandbox: Sandbox,
    /// Vault keys, if configured.
    pub(crate) vault: Option<Arc<KeyRing>>,
    /// Sends requests to addresses that graphs name.
    pub(crate) outbound: Outbound,
    /// The full workspaces.
    pub(crate) quota: Quota,
    /// Signs image URLs.
    pub(crate) links: ImageLinks,
    /// Connection shares for reads by runs.
    pub(crate) reads: WorkspaceShares,
    /// Shares for record changes, from requests and nodes.
    pub(crate) record_changes: WorkspaceShares,
    /// Memory permits for files in model requests.
    pub(crate) file_room: FileRoom,
    /// Results of pure nodes.
    pub(crate) cache: Cache,
    /// Time.
    pub(crate) clock: Arc<dyn Clock>,
    /// Randomness.
    pub(crate) random: Arc<dyn Random>,
    /// Ids.
    pub(crate) ids: Ids,
    /// Unfinished runs of this instance.
    pub(crate) in_flight: InFlight,
    /// The writer whose lease covers all writes.
    pub(crate) writer: Uuid,
    /// Wakes waiting runs.
    pub(crate) wakeups: Wakeups,
    /// Wakes gate and canary checks.
    pub(crate) rollouts: RolloutSignals,
    /// Notified when a training in this process ends.
    pub(crate) ended_trainings: Arc<Notify>,
    /// Model usage of chats.
    pub(crate) budgets: Budgets,
    /// Whether other instances exist.
    pub(crate) others: Arc<AtomicBool>,
    /// Limits how many recovered runs read their stored state at once. There may be thousands, and new runs need
    /// connections too.
    pub(crate) recovering: Arc<Semaphore>,
    /// Lets suspected crash causes execute one at a time.
    pub(crate) suspects: Arc<Semaphore>,
    /// Limits how many traces are refilled at once.
    pub(crate) refilling: Arc<Semaphore>,
}

impl SharedPorts {
    /// The budget for an account; without an account, unlimited.
    pub(crate) fn budget(&self, account: Option<BudgetAccount>) -> RunBudget<'_> {
        RunBudget {
            account,
            budgets: &self.budgets,
            plans: &self.plans,
            store: &self.store,
            clock: &*self.clock,
        }
    }
}

impl RunPorts {
    /// Reads a stream after event `after`. `fresh`: the stream is new, with nothing stored yet.
    pub(crate) fn read(&self, stream: Uuid, after: u64, fresh: bool) -> Reader {
        Reader::open(&self.topics, self.store.clone(), Arc::clone(&self.clock), stream, after, fresh)
    }
}

/// The result of a run's work, unless it was dropped.
pub(crate) enum Ran {
    /// An output.
    Succeeded(Completed),
    /// An error.
    Failed(RunError),
    /// Stopped by request.
    Stopped,
    /// Waits until this time, or until a client resumes it.
    Paused(Option<DateTime<Utc>>),
    /// This process cannot write any more, or must not; the run's owner resumes it.
    Lost(WriteError),
}

/// Executes a version to its end. Dropping the future stops the run.
async fn execute<T: EventWriter>(
    version: &LoadedVersion,
    reach: Reach,
    input: RunInput,
    recorded: Vec<RecordedStep>,
    ports: &RunPorts,
    writer: &RunWriter<T>,
    activity: &Activity,
) -> Ran {
    let run = input.run.id.clone();
    let workspace = reach.workspace;
    let adapters = Adapters::new(reach, ports);
    let clock = Arc::clone(&ports.clock);
    let ports = adapters.ports(ports, writer, writer, activity);
    let mut turn = Turn::new(writer.run(), workspace, writer.slice(), &*clock);
    let mut running =
        pin!(AssertUnwindSafe(engine::execute(&version.plan, input, recorded, ports)).catch_unwind());
    tokio::select! {
        biased;
        ended = poll_fn(|context| turn.poll(context, |context| running.as_mut().poll(context))) => match ended {
            Ok(Ok(completed)) => {
                if let Some(warning) = &completed.warning {
                    let node = warning.node.as_deref().unwrap_or_default();
                    tracing::info!(run, code = warning.code.as_str(), node, "run succeeded with a warning");
                }
                Ran::Succeeded(completed)
            }
            Ok(Err(error)) => {
                // The message may quote user input; the run's record has it.
                let (code, node) = (error.code.as_str(), error.node.as_deref().unwrap_or_default());
                tracing::warn!(run, code, node, "run failed; GET /api/runs/{run}/trace has the cause");
                Ran::Failed(error)
            }
            Err(panic) => {
                let text = crate::runtime::panic_text(&*panic);
                kernel::warn_once_a_minute!("step.panicked", run, panic = text, "step panicked");
                Ran::Failed(whole(ErrorCode::Internal))
            }
        },
        () = writer.keep_flushing() => Ran::Lost(WriteError::Closed),
    }
}

/// The scope of data that a run may access.
pub(crate) struct Reach {
    pub(crate) run: Uuid,
    pub(crate) workspace: Uuid,
    pub(crate) workflow: Uuid,
    pub(crate) thread: Option<ThreadId>,
    /// The run's app.
    pub(crate) app: Option<RunApp>,
    /// The account that pays for its models.
    pub(crate) account: Option<BudgetAccount>,
    /// Whether readers see its nodes' items.
    pub(crate) shows_items: bool,
}

/// A run's access to the outside, besides its journal and output.
pub(crate) struct Adapters<'a> {
    answers: AnswersOf,
    observer: WithinBudget<RunBudget<'a>>,
    credentials: CredentialsOf<'a>,
    sandbox: Sandbox,
    search: SearchOf<'a>,
    collections: CollectionsOf<'a>,
    attachments: AttachmentsOf<'a>,
    databases: DatabasesOf<'a>,
    workflows: WorkflowsOf,
}

impl<'a> Adapters<'a> {
    pub(crate) fn new(reach: Reach, ports: &'a RunPorts) -> Self {
        let Reach { run, workspace, workflow, thread, app, account, shows_items } = reach;
        Self {
            observer: WithinBudget(ports.budget(account)),
            answers: AnswersOf {
                run,
                store: ports.store.clone(),
                wakeups: ports.wakeups.clone(),
                clock: Arc::clone(&ports.clock),
            },
            credentials: CredentialsOf {
                workspace,
                store: &ports.store,
                reads: ports.reads.for_workspace(workspace),
                ring: ports.vault.as_ref(),
            },
            sandbox: ports.sandbox.for_owner(workspace),
            search: SearchOf {
                workspace,
                store: &ports.store,
                reads: ports.reads.for_workspace(workspace),
                quota: &ports.quota,
            },
            collections: CollectionsOf {
                app,
                workspace,
                store: &ports.store,
                reads: ports.reads.for_workspace(workspace),
                changes: ports.record_changes.for_workspace(workspace),
                quota: &ports.quota,
                frozen: OnceCell::new(),
            },
            attachments: AttachmentsOf {
                thread,
                workspace,
                workflow,
                store: &ports.store,
                quota: &ports.quota,
                shows_items,
                reads: ports.reads.for_workspace(workspace),
                room: ports.file_room.for_workspace(workspace),
            },
            databases: DatabasesOf { outbound: &ports.outbound },
            workflows: WorkflowsOf {
                workspace,
                plans: Arc::clone(&ports.plans),
                reads: ports.reads.for_workspace(workspace),
            },
        }
    }

    pub(crate) fn ports<'b>(
        &'b self,
        ports: &'b RunPorts,
        journal: &'b dyn Journal,
        output: &'b dyn Output,
        activity: &'b Activity,
    ) -> Ports<'b> {
        Ports {
            journal,
            output,
            clock: &*ports.clock,
            random: &*ports.random,
            models: &ports.models,
            observer: &self.observer,
            sandbox: &self.sandbox,
            workflows: &self.workflows,
            answers: &self.answers,
            credentials: &self.credentials,
            search: &self.search,
            collections: &self.collections,
            attachments: &self.attachments,
            databases: &self.databases,
            outbound: &ports.outbound,
            cache: &ports.cache,
            rehearsal: None,
            activity,
        }
    }
}

/// A run failure that no single node caused.
pub(crate) fn whole(code: ErrorCode) -> RunError {
    RunError { code, message: code.message().to_owned(), node: None, retryable: false }
}

/// A run error as readers see it.
pub(crate) fn run_problem(error: &RunError) -> RunProblem {
    RunProblem {
        code: error.code.as_str().to_owned(),
        message: error.message.clone(),
        node: error.node.clone(),
    }
}

/// A run error in the format of its row.
fn error_json(error: &RunError) -> Value {
    json!({"code": error.code.as_str(), "message": error.message, "node": error.node, "retryable": error.retryable})
}

/// The input of a run without a thread that executes all its steps itself.
pub(crate) fn plain_input(
    run: Uuid,
    workflow: Uuid,
    trigger: &str,
    inputs: Value,
    version: &LoadedVersion,
) -> RunInput {
    let (id, workflow_id) = (run.to_string(), workflow.to_string());
    RunInput {
        inputs,
        messages: Vec::new(),
        config: (*version.config).clone(),
        run: RunInfo { id, workflow_id, thread_id: None, trigger: trigger.to_owned() },
        lives: vec![life(1, run)],
        deadline: None,
        patch: None,
    }
}

/// The life of a run that executes steps from `step` on; its id has the time when it was accepted.
pub(crate) fn life(step: u32, run: Uuid) -> Life {
    let accepted_at = kernel::time_of(run).unwrap_or(DateTime::UNIX_EPOCH);
    Life { step, run: run.to_string(), accepted_at, messages: None }
}
