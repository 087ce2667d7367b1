//! The pool of workers, on a thread of its own.
//!
//! A worker dies with the thread that started it, and its pipes belong to that thread's runtime: so one thread starts
//! all of them and does nothing else.

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

use crate::call::{Call, Language, Limits, Modules, Outcome, SandboxError, Source, Surveyed, SyntaxProblem};
use crate::document::{DocumentKind, DocumentLimits, DocumentProblem, DocumentText};
use crate::feed::Feed;
use crate::frame::{Answer, LONGEST_REQUEST, Request, Response, Task, framed, longest_answer};
use crate::image::{ImageFacts, ImageKind, ImageLimits};
use crate::places::{Place, Places, QueueFull};
use crate::process::{Lost, Worker};

/// Workers that are kept for the next call.
const IDLE: usize = 4;
/// How long a worker may take to start.
const START: Duration = Duration::from_secs(30);
/// How long code that is saved may take to load.
const SURVEY: Duration = Duration::from_secs(3);

/// How a sandbox is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// The binary that workers are started from.
    pub program: PathBuf,
    /// Maximum number of workers that run code of nodes at the same time. Documents and checks of code have places of
    /// their own beside them.
    pub workers: usize,
    /// Bytes that a call may use; an image may use what its pixels need.
    pub memory: usize,
    /// Maximum number of calls that wait for a place of one kind.
    pub queue: usize,
    /// How long a call waits for a place at least; one that may run longer waits as long as it may run.
    pub wait: Duration,
}

impl Options {
    /// Four workers, 128 MiB for each call.
    #[must_use]
    pub fn new(program: PathBuf) -> Self {
        Self { program, workers: 4, memory: 128 << 20, queue: 1000, wait: Duration::from_secs(30) }
    }

    /// Workers from the binary that runs now, also if its file was replaced meanwhile.
    #[must_use]
    pub fn own() -> Self {
        let link = Path::new("/proc/self/exe");
        let program =
            if link.exists() { link.to_owned() } else { std::env::current_exe().unwrap_or_default() };
        Self::new(program)
    }
}

/// Places for checks of code that is being saved.
const SURVEY_PLACES: usize = 2;
/// Places for documents, feeds and images.
const DOCUMENT_PLACES: usize = 2;
/// Places for work in the service's own process.
const COMPUTE_PLACES: usize = 4;

/// Runs code in worker processes. Clones share them; with the last clone they end.
#[derive(Clone)]
pub struct Sandbox {
    shared: Arc<Shared>,
    /// The workspace that calls.
    owner: Uuid,
}

struct Shared {
    pool: Arc<Pool>,
    /// The thread, once there was a call.
    thread: OnceLock<Option<Thread>>,
}

struct Thread {
    handle: Handle,
    _ends: oneshot::Sender<()>,
}

struct Pool {
    options: Options,
    clock: SystemClock,
    calls: Arc<Places>,
    documents: Arc<Places>,
    surveys: Arc<Places>,
    computing: Arc<Places>,
    idle: Mutex<Vec<Worker>>,
}

impl std::fmt::Debug for Sandbox {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Sandbox").field(&self.shared.pool.options).finish()
    }
}

impl Sandbox {
    /// A sandbox; nothing is started before the first call.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let pool = Pool {
            clock: SystemClock::new(),
            calls: Places::new(options.workers.max(1), options.queue),
            documents: Places::new(DOCUMENT_PLACES, options.queue),
            surveys: Places::new(SURVEY_PLACES, options.queue),
            computing: Places::new(COMPUTE_PLACES, usize::MAX),
            idle: Mutex::new(Vec::new()),
            options,
        };
        let shared = Shared { pool: Arc::new(pool), thread: OnceLock::new() };
        Self { shared: Arc::new(shared), owner: Uuid::nil() }
    }

    /// The same workers for a workspace, which has its share of them.
    #[must_use]
    pub fn of(&self, owner: Uuid) -> Self {
        Self { shared: Arc::clone(&self.shared), owner }
    }

    /// Does work on a blocking thread of this process once the workspace has a place for it. Returns `None` if the work panics.
    /// The work must stop by itself if this is dropped.
    pub async fn compute<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let place = self.shared.pool.computing.wait(self.owner).await.ok()?;
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(place);
            done
        });
        done.await.ok()
    }

    /// Runs code. Dropped, it is stopped: its worker is killed.
    ///
    /// # Errors
    /// [`SandboxError`].
    pub async fn call(&self, call: Call) -> Result<Outcome, SandboxError> {
        let Call { language, modules, entry, args, limits } = call;
        // Nothing is written out for a call that waits.
        let place = self.place(&self.shared.pool.calls, limits).await?;
        let task = Task::Call { language, entry, args: raw(&args)? };
        drop(args);
        match self.ask(place, task, modules, limits).await? {
            Answer::Value { value, logs } => Ok(Outcome { value: read(&value)?, logs }),
            other => Err(self.error(other, limits)),
        }
    }

    /// Looks at code without calling any of it; a JavaScript module is loaded, as its imports have to be.
    ///
    /// # Errors
    /// [`SandboxError`] when that could not be found out; also when a module loads for too long, or wants too much.
    pub async fn survey(
        &self,
        language: Language,
        modules: Arc<Modules>,
        source: Source,
    ) -> Result<Result<Surveyed, SyntaxProblem>, SandboxError> {
        let limits = Limits { time: SURVEY, ..Limits::default() };
        let place = self.place(&self.shared.pool.surveys, limits).await?;
        match self.ask(place, Task::Survey { language, source }, modules, limits).await {
            Ok(Answer::Surveyed(surveyed)) => Ok(Ok(surveyed)),
            Ok(Answer::Unsound(problem)) => Ok(Err(problem)),
            Ok(other) => Err(self.error(other, limits)),
            Err(error) => Err(error),
        }
    }

    /// Reads a document, whose bytes are base64. Dropped, its worker is killed.
    ///
    /// # Errors
    /// [`SandboxError`] when it could not be found out what it says: a reader ran for too long, wanted too much or died.
    pub async fn read_document(
        &self,
        kind: DocumentKind,
        data: String,
        limits: DocumentLimits,
    ) -> Result<Result<DocumentText, DocumentProblem>, SandboxError> {
        let within = limits.as_call();
        let place = self.place(&self.shared.pool.documents, within).await?;
        match self.ask(place, Task::Document { kind, data, limits }, Arc::default(), within).await? {
            Answer::Document(read) => Ok(Ok(read)),
            Answer::Unreadable(problem) => Ok(Err(problem)),
            other => Err(self.error(other, within)),
        }
    }

    /// Reads the first `limits.pages` items of the feed at an address, whose bytes are base64. Dropped, its worker is killed.
    ///
    /// # Errors
    /// [`SandboxError`] as of [`Self::read_document`].
    pub async fn read_feed(
        &self,
        data: String,
        from: String,
        limits: DocumentLimits,
    ) -> Result<Result<Feed, DocumentProblem>, SandboxError> {
        let within = limits.as_call();
        let place = self.place(&self.shared.pool.documents, within).await?;
        match self.ask(place, Task::Feed { data, from, limits }, Arc::default(), within).await? {
            Answer::Feed(feed) => Ok(Ok(feed)),
            Answer::Unreadable(problem) => Ok(Err(problem)),
            other => Err(self.error(other, within)),
        }
    }

    /// Decodes an image of at most [`crate::LARGEST_IMAGE`] bytes, which are base64, and makes its preview. Dropped, its
    /// worker is killed.
    ///
    /// # Errors
    /// [`SandboxError`] as of [`Self::read_document`].
    pub async fn read_image(
        &self,
        kind: ImageKind,
        data: String,
        limits: ImageLimits,
    ) -> Result<Result<ImageFacts, DocumentProblem>, SandboxError> {
        let within = limits.as_call();
        let memory = self.memory().max(limits.memory());
        let place = self.place(&self.shared.pool.documents, within).await?;
        let task = Task::Image { kind, data, limits };
        match self.ask_within(memory, place, task, Arc::default(), within).await? {
            Answer::Image(facts) => Ok(Ok(facts)),
            Answer::Unreadable(problem) => Ok(Err(problem)),
            other => Err(self.error(other, within)),
        }
    }

    /// Sends a value to a worker and back: what a call costs without any code.
    ///
    /// # Errors
    /// [`SandboxError`].
    pub async fn echo(&self, args: Value) -> Result<Value, SandboxError> {
        let limits = Limits::default();
        let place = self.place(&self.shared.pool.calls, limits).await?;
        match self.ask(place, Task::Echo { args: raw(&args)? }, Arc::default(), limits).await? {
            Answer::Value { value, .. } => read(&value),
            other => Err(self.error(other, limits)),
        }
    }

    /// Process ids of the workers that do nothing now.
    #[must_use]
    pub fn idle(&self) -> Vec<u32> {
        self.shared.pool.idle.lock().iter().filter_map(Worker::id).collect()
    }

    /// Waits until a worker may work.
    async fn place(&self, places: &Arc<Places>, limits: Limits) -> Result<Place, SandboxError> {
        let waited = limits.time.max(self.shared.pool.options.wait);
        let place = kernel::timeout(&self.shared.pool.clock, waited, places.wait(self.owner)).await;
        let held = || places.held(self.owner);
        match place {
            Some(Ok(place)) => Ok(place),
            Some(Err(QueueFull)) => Err(SandboxError::QueueFull { held: held() }),
            None => Err(SandboxError::Busy { waited, held: held() }),
        }
    }

    fn memory(&self) -> usize {
        self.shared.pool.options.memory
    }

    async fn ask(
        &self,
        place: Place,
        task: Task,
        modules: Arc<Modules>,
        limits: Limits,
    ) -> Result<Answer, SandboxError> {
        self.ask_within(self.memory(), place, task, modules, limits).await
    }

    /// Asks a worker that may use this many bytes of memory.
    async fn ask_within(
        &self,
        memory: usize,
        place: Place,
        task: Task,
        modules: Arc<Modules>,
        limits: Limits,
    ) -> Result<Answer, SandboxError> {
        let pool = Arc::clone(&self.shared.pool);
        let thread = self.shared.thread.get_or_init(start_thread).as_ref();
        let thread = thread.ok_or_else(|| SandboxError::Unavailable("no thread".to_owned()))?;
        let (output, logs) = (limits.output, limits.logs);
        let request = Request { task, modules, memory, output, logs };
        let frame =
            serde_json::to_vec(&request).and_then(|bytes| framed(&bytes).map_err(serde::ser::Error::custom));
        let frame = frame.map_err(|error| SandboxError::Unavailable(error.to_string()))?;
        if frame.len() > LONGEST_REQUEST {
            return Err(failed("the arguments are too large"));
        }
        let asked = AbortOnDropHandle::new(thread.handle.spawn(pool.ask(place, frame, limits, memory)));
        asked.await.unwrap_or(Err(SandboxError::Crashed))
    }

    fn error(&self, answer: Answer, limits: Limits) -> SandboxError {
        match answer {
            Answer::Failed { message, module, line, column } => {
                SandboxError::Failed { message, module, line, column }
            }
            Answer::Memory => SandboxError::Memory(self.memory()),
            Answer::OutputTooLarge => SandboxError::OutputTooLarge(limits.output),
            Answer::Unsound(SyntaxProblem { message, line, column }) => {
                SandboxError::Failed { message, module: None, line, column }
            }
            Answer::Value { .. }
            | Answer::Surveyed(_)
            | Answer::Document(_)
            | Answer::Feed(_)
            | Answer::Image(_)
            | Answer::Unreadable(_) => SandboxError::Crashed,
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
    // Numbers and texts are as JSON has them: what is left is depth.
    serde_json::from_str(value.get()).map_err(|_| failed("the result has too many nested lists and objects"))
}

fn start_thread() -> Option<Thread> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let handle = runtime.handle().clone();
    let (ends, ended) = oneshot::channel::<()>();
    let run = move || {
        // Its tasks, and the workers that they hold, go with the runtime.
        let _ = runtime.block_on(ended);
    };
    std::thread::Builder::new().name("sandbox".to_owned()).spawn(run).ok()?;
    Some(Thread { handle, _ends: ends })
}

impl Pool {
    async fn ask(
        self: Arc<Self>,
        place: Place,
        frame: Vec<u8>,
        limits: Limits,
        memory: usize,
    ) -> Result<Answer, SandboxError> {
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
                drop(place);
                Ok(answer)
            }
            other => {
                drop(worker);
                drop(place);
                self.replace();
                other.map(|response| response.answer)
            }
        }
    }

    /// A worker that waits; one that was killed meanwhile is no error of the next call.
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

    /// Keeps a worker for the next call. After a burst the surplus ends.
    fn keep(&self, worker: Worker) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE {
            idle.push(worker);
        }
    }

    /// Starts another worker for one that is gone, before it is needed.
    fn replace(self: Arc<Self>) {
        tokio::spawn(async move {
            // A worker is started only with a place, so there are never more workers than places.
            let Some(_place) = self.calls.free() else { return };
            if self.idle.lock().is_empty()
                && let Ok(worker) = self.start().await
            {
                self.keep(worker);
            }
        });
    }
}
