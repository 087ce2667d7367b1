//! The worker pool, on a dedicated thread.
//!
//! A worker dies with the thread that started it, and its pipes belong to that thread's runtime. So one thread starts
//! all workers and does nothing else.

mod time_limits;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kernel::SystemClock;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use serde_json::{Value, value::to_raw_value};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use crate::call::{Call, Limits, Modules, Outcome, SandboxError, SyntaxProblem};
use crate::document::{DocumentKind, DocumentLimits, DocumentProblem, DocumentText};
use crate::feed::Feed;
use crate::frame::{LONGEST_REQUEST, Response, Task, WorkerAnswer, WorkerRequest, framed, longest_answer};
use crate::image::{ImageFacts, ImageKind, ImageLimits};
use crate::places::{QueueFull, WorkerSlot, WorkerSlots};
use crate::process::{Lost, Worker};

/// Maximum idle workers kept for the next call.
const IDLE: usize = 4;
/// Maximum start time of a worker.
const START: Duration = Duration::from_secs(30);

/// Sandbox options.
#[derive(Debug, Clone)]
pub struct Options {
    /// The worker binary.
    pub program: PathBuf,
    /// Maximum concurrent workers for node code. Documents and code checks have separate slots.
    pub workers: usize,
    /// Maximum memory bytes per call; an image may use more, depending on its pixels.
    pub memory: usize,
    /// Maximum waiting calls per kind of slot.
    pub queue: usize,
    /// Minimum time that a call waits for a slot; a call with a longer run time limit waits up to that limit.
    pub wait: Duration,
}

impl Options {
    /// Four workers, 128 MiB per call.
    #[must_use]
    pub fn new(program: PathBuf) -> Self {
        Self { program, workers: 4, memory: 128 << 20, queue: 1000, wait: Duration::from_secs(30) }
    }

    /// Workers from the running binary, even if its file has been replaced.
    #[must_use]
    pub fn own() -> Self {
        let link = Path::new("/proc/self/exe");
        let program =
            if link.exists() { link.to_owned() } else { std::env::current_exe().unwrap_or_default() };
        Self::new(program)
    }
}

/// Slots for checks of code that is being saved.
const SURVEY_SLOTS: usize = 2;
/// Slots for documents, feeds and images.
const DOCUMENT_SLOTS: usize = 2;
/// Slots for work in the service's own process.
const COMPUTE_SLOTS: usize = 4;

/// Runs code in worker processes. Clones share the workers; dropping the last clone ends them.
#[derive(Clone)]
pub struct Sandbox {
    shared: Arc<SharedPool>,
    /// The owner of the slots: a workspace, or a caller without a workspace.
    owner: Uuid,
}

struct SharedPool {
    pool: Arc<WorkerPool>,
    /// The pool's thread, started by the first call.
    thread: OnceLock<Option<Thread>>,
}

struct Thread {
    handle: Handle,
    _ends: oneshot::Sender<()>,
}

struct WorkerPool {
    options: Options,
    clock: SystemClock,
    calls: Arc<WorkerSlots>,
    documents: Arc<WorkerSlots>,
    surveys: Arc<WorkerSlots>,
    computing: Arc<WorkerSlots>,
    idle: Mutex<Vec<Worker>>,
}

impl std::fmt::Debug for Sandbox {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Sandbox").field(&self.shared.pool.options).finish()
    }
}

impl Sandbox {
    /// Creates a sandbox; the first call starts the pool.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let pool = WorkerPool {
            clock: SystemClock::new(),
            calls: WorkerSlots::new(options.workers.max(1), options.queue),
            documents: WorkerSlots::new(DOCUMENT_SLOTS, options.queue),
            surveys: WorkerSlots::new(SURVEY_SLOTS, options.queue),
            computing: WorkerSlots::new(COMPUTE_SLOTS, usize::MAX),
            idle: Mutex::new(Vec::new()),
            options,
        };
        let shared = SharedPool { pool: Arc::new(pool), thread: OnceLock::new() };
        Self { shared: Arc::new(shared), owner: Uuid::nil() }
    }

    /// The same pool for a workspace, or for a caller without one; each gets a fair share of it.
    #[must_use]
    pub fn for_owner(&self, owner: Uuid) -> Self {
        Self { shared: Arc::clone(&self.shared), owner }
    }

    /// Runs code. Dropping the future kills the worker.
    ///
    /// # Errors
    /// [`SandboxError`].
    pub async fn call(&self, call: Call) -> Result<Outcome, SandboxError> {
        let Call { language, modules, entry, args, limits } = call;
        // Arguments are serialised only after the call has a slot.
        let slot = self.slot(&self.shared.pool.calls, limits).await?;
        let task = Task::Call { language, entry, args: raw(&args)? };
        drop(args);
        match self.ask(slot, task, modules, limits).await? {
            WorkerAnswer::Value { value, logs } => Ok(Outcome { value: read(&value)?, logs }),
            other => Err(self.error(other, limits)),
        }
    }

    /// Reads a base64-encoded document. Dropping the future kills the worker.
    ///
    /// # Errors
    /// [`SandboxError`] if the document could not be read: the reader exceeded its time or memory limit, or died.
    pub async fn read_document(
        &self,
        kind: DocumentKind,
        data: String,
        limits: DocumentLimits,
    ) -> Result<Result<DocumentText, DocumentProblem>, SandboxError> {
        let within = limits.as_call();
        let slot = self.slot(&self.shared.pool.documents, within).await?;
        match self.ask(slot, Task::Document { kind, data, limits }, Arc::default(), within).await? {
            WorkerAnswer::Document(read) => Ok(Ok(read)),
            WorkerAnswer::Unreadable(problem) => Ok(Err(problem)),
            other => Err(self.error(other, within)),
        }
    }

    /// Reads the first `limits.pages` items of a base64-encoded feed from address `from`. Dropping the future kills the
    /// worker.
    ///
    /// # Errors
    /// [`SandboxError`] as for [`Self::read_document`].
    pub async fn read_feed(
        &self,
        data: String,
        from: String,
        limits: DocumentLimits,
    ) -> Result<Result<Feed, DocumentProblem>, SandboxError> {
        let within = limits.as_call();
        let slot = self.slot(&self.shared.pool.documents, within).await?;
        match self.ask(slot, Task::Feed { data, from, limits }, Arc::default(), within).await? {
            WorkerAnswer::Feed(feed) => Ok(Ok(feed)),
            WorkerAnswer::Unreadable(problem) => Ok(Err(problem)),
            other => Err(self.error(other, within)),
        }
    }

    /// Decodes a base64-encoded image of at most [`crate::LARGEST_IMAGE`] bytes and creates its preview. Dropping the
    /// future kills the worker.
    ///
    /// # Errors
    /// [`SandboxError`] as for [`Self::read_document`].
    pub async fn read_image(
        &self,
        kind: ImageKind,
        data: String,
        limits: ImageLimits,
    ) -> Result<Result<ImageFacts, DocumentProblem>, SandboxError> {
        let within = limits.as_call();
        let memory = self.memory().max(limits.memory());
        let slot = self.slot(&self.shared.pool.documents, within).await?;
        let task = Task::Image { kind, data, limits };
        match self.ask_within(memory, slot, task, Arc::default(), within).await? {
            WorkerAnswer::Image(facts) => Ok(Ok(facts)),
            WorkerAnswer::Unreadable(problem) => Ok(Err(problem)),
            other => Err(self.error(other, within)),
        }
    }

    /// Sends a value to a worker and back; measures a call's overhead.
    ///
    /// # Errors
    /// [`SandboxError`].
    pub async fn echo(&self, args: Value) -> Result<Value, SandboxError> {
        let limits = Limits::default();
        let slot = self.slot(&self.shared.pool.calls, limits).await?;
        match self.ask(slot, Task::Echo { args: raw(&args)? }, Arc::default(), limits).await? {
            WorkerAnswer::Value { value, .. } => read(&value),
            other => Err(self.error(other, limits)),
        }
    }

    /// Process ids of idle workers.
    #[must_use]
    pub fn idle(&self) -> Vec<u32> {
        self.shared.pool.idle.lock().iter().filter_map(Worker::id).collect()
    }

    /// Waits for a worker slot.
    async fn slot(&self, slots: &Arc<WorkerSlots>, limits: Limits) -> Result<WorkerSlot, SandboxError> {
        self.slot_within(slots, limits.time.max(self.shared.pool.options.wait)).await
    }

    /// Waits for a slot for at most this time.
    async fn slot_within(
        &self,
        slots: &Arc<WorkerSlots>,
        waited: Duration,
    ) -> Result<WorkerSlot, SandboxError> {
        let slot = kernel::timeout(&self.shared.pool.clock, waited, slots.wait(self.owner)).await;
        let held = || slots.held(self.owner);
        match slot {
            Some(Ok(slot)) => Ok(slot),
            Some(Err(QueueFull)) => Err(SandboxError::QueueFull { held: held() }),
            None => Err(SandboxError::Busy { waited, held: held() }),
        }
    }

    fn memory(&self) -> usize {
        self.shared.pool.options.memory
    }

    async fn ask(
        &self,
        slot: WorkerSlot,
        task: Task,
        modules: Arc<Modules>,
        limits: Limits,
    ) -> Result<WorkerAnswer, SandboxError> {
        self.ask_within(self.memory(), slot, task, modules, limits).await
    }

    /// Sends a task to a worker with this memory limit in bytes.
    async fn ask_within(
        &self,
        memory: usize,
        slot: WorkerSlot,
        task: Task,
        modules: Arc<Modules>,
        limits: Limits,
    ) -> Result<WorkerAnswer, SandboxError> {
        let pool = Arc::clone(&self.shared.pool);
        let thread = self.shared.thread.get_or_init(start_thread).as_ref();
        let thread = thread.ok_or_else(|| SandboxError::Unavailable("no thread".to_owned()))?;
        let (output, logs) = (limits.output, limits.logs);
        let request = WorkerRequest { task, modules, memory, output, logs };
        let frame =
            serde_json::to_vec(&request).and_then(|bytes| framed(&bytes).map_err(serde::ser::Error::custom));
        let frame = frame.map_err(|error| SandboxError::Unavailable(error.to_string()))?;
        if frame.len() > LONGEST_REQUEST {
            return Err(failed("the arguments are too large"));
        }
        let asked = AbortOnDropHandle::new(thread.handle.spawn(pool.ask(slot, frame, limits, memory)));
        asked.await.unwrap_or(Err(SandboxError::Crashed))
    }

    fn error(&self, answer: WorkerAnswer, limits: Limits) -> SandboxError {
        match answer {
            WorkerAnswer::Failed { message, module, line, column } => {
                SandboxError::Failed { message, module, line, column }
            }
            WorkerAnswer::Memory => SandboxError::Memory(self.memory()),
            WorkerAnswer::OutputTooLarge => SandboxError::OutputTooLarge(limits.output),
            WorkerAnswer::Unsound(SyntaxProblem { message, line, column }) => {
                SandboxError::Failed { message, module: None, line, column }
            }
            WorkerAnswer::Value { .. }
            | WorkerAnswer::Surveyed(_)
            | WorkerAnswer::Document(_)
            | WorkerAnswer::Feed(_)
            | WorkerAnswer::Image(_)
            | WorkerAnswer::Unreadable(_) => SandboxError::Crashed,
        }
    }
}

fn failed(message: &str) -> SandboxError {
    SandboxError::Failed { message: message.to_owned(), module: None, line: None, column: None }
}

fn raw(value: &Value) -> Result<Box<RawValue>, SandboxError> {
    to_raw_value(value).map_err(|error| failed(&error.to_string()))
}

fn read(value: &RawValue) -> Result<Value, SandboxError> {
    // The value is valid JSON, so parsing fails only if it is nested too deeply.
    serde_json::from_str(value.get()).map_err(|_| failed("the result has too many nested lists and objects"))
}

fn start_thread() -> Option<Thread> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let handle = runtime.handle().clone();
    let (ends, ended) = oneshot::channel::<()>();
    let run = move || {
        // Dropping the runtime ends its tasks and their workers.
        let _ = runtime.block_on(ended);
    };
    std::thread::Builder::new().name("sandbox".to_owned()).spawn(run).ok()?;
    Some(Thread { handle, _ends: ends })
}

impl WorkerPool {
    async fn ask(
        self: Arc<Self>,
        slot: WorkerSlot,
        frame: Vec<u8>,
        limits: Limits,
        memory: usize,
    ) -> Result<WorkerAnswer, SandboxError> {
        let mut worker = match self.idle_worker() {
            Some(worker) => worker,
            None => self.start().await?,
        };
        let longest = longest_answer(limits.output, limits.logs);
        let answered = kernel::timeout(&self.clock, limits.time, worker.exchange(&frame, longest)).await;
        let response = match answered {
            None => Err(SandboxError::Timeout(limits.time)),
            Some(Err(Lost::Memory)) => Err(SandboxError::Memory(memory)),
            Some(Err(Lost::TooLong)) => Err(SandboxError::OutputTooLarge(limits.output)),
            Some(Err(Lost::Crashed)) => Err(SandboxError::Crashed),
            Some(Ok(bytes)) => serde_json::from_slice::<Response>(&bytes).map_err(|_| SandboxError::Crashed),
        };
        match response {
            Ok(Response { answer, spent: false }) => {
                self.keep(worker);
                drop(slot);
                Ok(answer)
            }
            other => {
                drop(worker);
                drop(slot);
                self.replace();
                other.map(|response| response.answer)
            }
        }
    }

    /// Takes an idle worker; skips workers that were killed meanwhile.
    fn idle_worker(&self) -> Option<Worker> {
        let mut idle = self.idle.lock();
        loop {
            let mut worker = idle.pop()?;
            if worker.lives() {
                return Some(worker);
            }
        }
    }

    async fn start(&self) -> Result<Worker, SandboxError> {
        let started = kernel::timeout(&self.clock, START, Worker::start(&self.options.program)).await;
        match started {
            Some(Ok(worker)) => Ok(worker),
            Some(Err(error)) => {
                kernel::warn_once_a_minute!("sandbox.not_started", %error, "failed to start a worker for code");
                Err(SandboxError::Unavailable(error.to_string()))
            }
            None => Err(SandboxError::Unavailable("it did not become ready".to_owned())),
        }
    }

    /// Keeps a worker for the next call. Surplus workers after a burst end.
    fn keep(&self, worker: Worker) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE {
            idle.push(worker);
        }
    }

    /// Replaces a lost worker before the next call needs it.
    fn replace(self: Arc<Self>) {
        tokio::spawn(async move {
            // A worker starts only with a slot, so there are never more workers than slots.
            let Some(_slot) = self.calls.free() else { return };
            if self.idle.lock().is_empty()
                && let Ok(worker) = self.start().await
            {
                self.keep(worker);
            }
        });
    }
}
