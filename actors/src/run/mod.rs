//! The core of every run: the engine executes a frozen version, every result is a journal row before anything depends on
//! it, and readers receive what is committed. [`kind`] is what differs between kinds.

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
use engine::{Activity, Cache, Completed, Life, RecordedStep, RunError, RunInput};
use futures_util::FutureExt;
use kernel::{Clock, Ids, Random, ThreadId};
use models::Models;
use sandbox::Sandbox;
use serde_json::{Value, json};
use store::Store;
use tokio::sync::{Notify, OnceCell, Semaphore};
use uuid::Uuid;
use wire::ErrorCode;

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

/// What every run works with. Cheap to clone.
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
    /// Where readers listen.
    pub(crate) topics: Topics,
    /// Compiled versions.
    pub(crate) plans: Arc<Plans>,
    /// Language models.
    pub(crate) models: Models,
    /// Where code of users runs.
    pub(crate) sandbox: Sandbox,
    /// Keys of the vault; `None` where it has none.
    pub(crate) vault: Option<Arc<KeyRing>>,
    /// Sends requests to addresses that graphs name.
    pub(crate) outbound: Outbound,
    /// Which workspaces are full.
    pub(crate) quota: Quota,
    /// Signs addresses of images.
    pub(crate) links: ImageLinks,
    /// Shares of the connections that runs read with.
    pub(crate) reads: WorkspaceShares,
    /// Shares of changes of records, of requests and of nodes.
    pub(crate) record_changes: WorkspaceShares,
    /// Room for files that requests to models hold.
    pub(crate) file_room: FileRoom,
    /// Results of pure nodes.
    pub(crate) cache: Cache,
    /// Time.
    pub(crate) clock: Arc<dyn Clock>,
    /// Randomness.
    pub(crate) random: Arc<dyn Random>,
    /// Ids.
    pub(crate) ids: Ids,
    /// Which runs of this instance are not over.
    pub(crate) in_flight: InFlight,
    /// Whose lease everything is written under.
    pub(crate) writer: Uuid,
    /// What wakes runs that wait.
    pub(crate) wakeups: Wakeups,
    /// What wakes the checks of gates and canaries.
    pub(crate) rollouts: RolloutSignals,
    /// A training of this process has ended.
    pub(crate) ended_trainings: Arc<Notify>,
    /// What the models of chats have used.
    pub(crate) budgets: Budgets,
    /// Whether there are other instances.
    pub(crate) others: Arc<AtomicBool>,
    /// Runs of an earlier life that may read what they had stored at the same time. There may be thousands, and a
    /// new one wants a connection too.
    pub(crate) recovering: Arc<Semaphore>,
    /// Runs that may be the reason why the process ended execute one at a time.
    pub(crate) suspects: Arc<Semaphore>,
    /// Traces whose inputs are filled again at the same time.
    pub(crate) refilling: Arc<Semaphore>,
}

impl SharedPorts {
    /// The budget of what an account pays for; without one, nothing is limited.
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
    /// Reads a stream behind event `after`. A new stream has nothing stored yet, which `fresh` says.
    pub(crate) fn read(&self, stream: Uuid, after: u64, fresh: bool) -> Reader {
        Reader::open(&self.topics, self.store.clone(), Arc::clone(&self.clock), stream, after, fresh)
    }
}

/// How the work of a run ended, if it was not dropped.
pub(crate) enum Ran {
    /// With this output.
    Succeeded(Completed),
    /// Without one.
    Failed(RunError),
    /// Because of a requested stop.
    Stopped,
    /// It waits until then, or until a client resumes it.
    Paused(Option<DateTime<Utc>>),
    /// This process may not or cannot write any more; the owner of the run resumes it.
    Lost(WriteError),
}

/// Executes a version to its end. Dropped, the run is stopped.
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
    let adapters = Adapters::of(reach, ports);
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
                // The message may hold what users said; it is in the run's record.
                let (code, node) = (error.code.as_str(), error.node.as_deref().unwrap_or_default());
                tracing::warn!(run, code, node, "run failed; GET /api/runs/{run}/trace has the cause");
                Ran::Failed(error)
            }
            Err(panic) => {
                let text = crate::runtime::panic_text(&*panic);
                kernel::warn_once_a_minute!("step.panicked", run, panic = text, "a step panicked");
                Ran::Failed(whole(ErrorCode::Internal))
            }
        },
        () = writer.keep_flushing() => Ran::Lost(WriteError::Closed),
    }
}

/// Whose data a run may reach.
pub(crate) struct Reach {
    pub(crate) run: Uuid,
    pub(crate) workspace: Uuid,
    pub(crate) workflow: Uuid,
    pub(crate) thread: Option<ThreadId>,
    /// The app that it belongs to.
    pub(crate) app: Option<RunApp>,
    /// Pays for its models.
    pub(crate) account: Option<BudgetAccount>,
    /// Whether readers see the items of its nodes.
    pub(crate) shows_items: bool,
}

/// What a run reaches beside its journal and its output.
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
    pub(crate) fn of(reach: Reach, ports: &'a RunPorts) -> Self {
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
                reads: ports.reads.of(workspace),
                ring: ports.vault.as_ref(),
            },
            sandbox: ports.sandbox.of(workspace),
            search: SearchOf {
                workspace,
                store: &ports.store,
                reads: ports.reads.of(workspace),
                quota: &ports.quota,
            },
            collections: CollectionsOf {
                app,
                workspace,
                store: &ports.store,
                reads: ports.reads.of(workspace),
                changes: ports.record_changes.of(workspace),
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
                reads: ports.reads.of(workspace),
                room: ports.file_room.of(workspace),
            },
            databases: DatabasesOf { outbound: &ports.outbound },
            workflows: WorkflowsOf {
                workspace,
                plans: Arc::clone(&ports.plans),
                reads: ports.reads.of(workspace),
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

/// A run's failure that is no node's.
pub(crate) fn whole(code: ErrorCode) -> RunError {
    RunError { code, message: code.message().to_owned(), node: None, retryable: false }
}

/// A run's error as its row has it.
fn error_json(error: &RunError) -> Value {
    json!({"code": error.code.as_str(), "message": error.message, "node": error.node, "retryable": error.retryable})
}

/// A run as the one that executes steps from this one on; it was accepted at the time in its id.
pub(crate) fn life(step: u32, run: Uuid) -> Life {
    let accepted_at = kernel::time_of(run).unwrap_or(DateTime::UNIX_EPOCH);
    Life { step, run: run.to_string(), accepted_at, messages: None }
}
