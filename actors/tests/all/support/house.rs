//! A database with a workflow, and instances of the service's actors on it, each on separate threads so that it can be
//! killed.

use std::sync::Arc;
use std::thread::JoinHandle;

use actors::kinds::turn::chat::{Chat, NewTurn, Owner, RunStartError, StartedTurn, Target};
use actors::plans::LoadedVersion;
use actors::streams::{Reader, Readout};
use actors::{Settings, System};
use auth::keyring::KeyRing;
use auth::link::LinkKey;
use kernel::{Clock, Ids, ManualClock, SystemClock, SystemRandom, ThreadId};
use serde_json::{Map, json};
use store::testing::TestDatabase;
use store::{DEFAULT_WORKSPACE, NewVersion, NewWorkflow, Store};
use tokio::sync::oneshot;
use uuid::Uuid;
use wire::chat::{ChatEvent, Dialect, UserMessageInput};
use wire::sse;

use super::{LONGEST, until};

/// A stopped clock, which makes an instance as slow as possible.
pub(crate) fn stopped_clock() -> (ManualClock, Arc<dyn Clock>) {
    let clock = ManualClock::new(SystemClock::new().now());
    (clock.clone(), Arc::new(clock))
}

/// A database with a workflow that repeats its message word by word.
pub(crate) struct House {
    pub(crate) workflow: Uuid,
    pub(crate) workspace: Uuid,
    pub(crate) database: TestDatabase,
}

impl House {
    /// `pause`: milliseconds between two words.
    pub(crate) async fn echo(pause: u64) -> Self {
        Self::replying("{{ inputs.message }}", pause).await
    }

    /// A workflow that answers with the number of messages in the thread.
    pub(crate) async fn counting() -> Self {
        Self::replying("{{ messages | length }}", 0).await
    }

    /// A workflow that answers with this text, word by word.
    pub(crate) async fn replying(text: &str, pause: u64) -> Self {
        Self::with(&json!({
            "format": "graph/1",
            "nodes": [{"name": "reply", "type": "reply", "text": text, "pieces": "words", "pause_ms": pause}],
            "edges": [{"from": "START", "to": "reply"}, {"from": "reply", "to": "END"}],
        }))
        .await
    }

    /// A workflow with this graph.
    pub(crate) async fn with(graph: &serde_json::Value) -> Self {
        let database = TestDatabase::create().await;
        let store = database.store().await;
        let workspace = store.workspace_id(DEFAULT_WORKSPACE).await.unwrap().unwrap();
        let new = NewWorkflow {
            workspace_id: workspace,
            handle: "echo".to_owned(),
            name: "Echo".to_owned(),
            description: None,
            tags: Vec::new(),
        };
        let workflow = store.change(async |c| c.create_workflow(new).await).await.unwrap().id;
        let version = NewVersion {
            workflow_id: workflow,
            digest: engine::identity(graph, None).to_vec(),
            graph: graph.clone(),
            runnable_config: None,
            metadata: Map::new(),
            notes: None,
            created_by: None,
        };
        store.change(async |c| c.save_version(version).await).await.unwrap();
        Self { workflow, workspace, database }
    }

    /// Starts an instance on the system clock.
    pub(crate) async fn instance(&self, id: u128) -> Instance {
        self.instance_at(id, Arc::new(SystemClock::new())).await
    }

    /// Starts an instance on this clock.
    pub(crate) async fn instance_at(&self, id: u128, clock: Arc<dyn Clock>) -> Instance {
        let store = self.database.store_with(Arc::clone(&clock)).await;
        let (started, system) = oneshot::channel();
        let (kill, killed) = oneshot::channel::<()>();
        let settings_store = store.clone();
        let thread = std::thread::spawn(move || {
            let runtime = || {
                tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
            };
            let runner = actix_rt::System::with_tokio_rt(runtime);
            runner.block_on(async move {
                let random = Arc::new(SystemRandom::new());
                let ids = Ids::new(Arc::clone(&clock), random.clone());
                let outbound = engine::ports::Outbound::operator(Arc::clone(&clock)).unwrap();
                let settings = Settings {
                    store: settings_store,
                    instance: Uuid::from_u128(id),
                    writers: 2,
                    arbiters: 2,
                    children: tokio::runtime::Handle::current(),
                    clock,
                    random,
                    ids,
                    grace: actors::Grace { interface: None, chatkit: None },
                    models: models::Models::default(),
                    sandbox: sandbox::Sandbox::new(sandbox::Options::own()),
                    vault: None,
                    outbound,
                    mail: actors::delivery::mail::Settings {
                        ring: Arc::new(KeyRing::new("mail", [("mail", &[0; 32])]).unwrap()),
                        delivery: actors::delivery::mail::Delivery::log(),
                        members_and: None,
                    },
                    keep_runs: None,
                    links: actors::ImageLinks { key: Arc::new(LinkKey::new(&[0; 32])), base: None },
                    workspace_bytes: None,
                    training_runs: 4,
                };
                assert!(started.send(Arc::new(System::start(settings).await.unwrap())).is_ok());
                let _ = killed.await;
                actix_rt::System::current().stop();
            });
            runner.run().unwrap();
        });
        let system = system.await.unwrap();
        let chat = system.chat();
        let runnable = chat.runnable(self.workflow).await.unwrap().unwrap();
        Instance {
            chat,
            system,
            store,
            workspace: self.workspace,
            workflow: self.workflow,
            version: runnable.version.unwrap(),
            kill: Some(kill),
            thread: Some(thread),
        }
    }

    /// Number of unfinished runs.
    pub(crate) async fn unfinished(&self) -> String {
        self.database.scalar("SELECT count(*) FROM runs WHERE finished_at IS NULL").await
    }

    /// The assistant's messages in a thread, in order.
    pub(crate) async fn assistant_messages(&self, store: &Store, thread: ThreadId) -> Vec<String> {
        let items = store.thread_items(thread).await.unwrap();
        items.iter().filter_map(|stored| stored.item.body.text()).collect()
    }
}

pub(crate) struct Instance {
    pub(crate) chat: Chat,
    pub(crate) system: Arc<System>,
    pub(crate) store: Store,
    pub(crate) version: Arc<LoadedVersion>,
    workspace: Uuid,
    workflow: Uuid,
    kill: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Instance {
    pub(crate) fn workspace(&self) -> Uuid {
        self.workspace
    }

    pub(crate) fn turn(&self, target: Target, text: &str) -> NewTurn {
        NewTurn {
            canary: None,
            busy: wire::BusyThread::Enqueue,
            workspace: self.workspace,
            workflow: self.workflow,
            version: Arc::clone(&self.version),
            target,
            input: UserMessageInput::text(text),
            attachments: Vec::new(),
            metadata: Map::new(),
            dialect: Dialect::Interface,
            title: None,
            session: None,
            base: None,
            idempotency: None,
        }
    }

    /// Sends a message to a new thread.
    pub(crate) async fn begin(&self, text: &str) -> Reader {
        reader_of(self.chat.start(self.turn(new_thread(), text)).await)
    }

    /// Sends a message to an existing thread.
    pub(crate) async fn send(&self, thread: ThreadId, text: &str) -> Reader {
        reader_of(self.chat.start(self.turn(Target::Thread(thread), text)).await)
    }

    /// Reads a stream from its first event to its end.
    pub(crate) async fn read(&self, stream: Uuid) -> ReceivedEvents {
        ReceivedEvents::until_end(&mut self.chat.open(stream, 0)).await
    }

    pub(crate) async fn thread_of(&self, stream: Uuid) -> ThreadId {
        self.store.stream(stream).await.unwrap().unwrap().thread_id.unwrap()
    }

    /// Ends its threads in the middle of their work, like a kill.
    pub(crate) fn kill(&mut self) {
        if let Some(kill) = self.kill.take() {
            let _ = kill.send(());
        }
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.kill();
    }
}

fn reader_of(started: Result<StartedTurn, RunStartError>) -> Reader {
    started.unwrap_or_else(|error| panic!("{error}")).reader
}

pub(crate) fn new_thread() -> Target {
    Target::NewThread(Owner { kind: store::OwnerKind::Anyone, id: None, has_cookie: false })
}

/// The events that a reader received from a stream.
#[derive(Debug, Default)]
pub(crate) struct ReceivedEvents {
    /// The event numbers.
    pub(crate) numbers: Vec<u64>,
    pub(crate) events: Vec<ChatEvent>,
}

impl ReceivedEvents {
    fn take(&mut self, frames: &str) {
        self.numbers.extend(super::lanes::numbers(frames));
        self.events.extend(sse::data(frames).map(|data| serde_json::from_str::<ChatEvent>(data).unwrap()));
    }

    /// Reads until the first piece of the answer.
    pub(crate) async fn until_answer(reader: &mut Reader) -> Self {
        let mut received = Self::default();
        while !received.events.iter().any(|event| matches!(event, ChatEvent::ItemUpdated { .. })) {
            received.read_more(reader).await;
        }
        received
    }

    /// Reads to the stream's end; something must arrive within each [`LONGEST`].
    pub(crate) async fn until_end(reader: &mut Reader) -> Self {
        let mut received = Self::default();
        while received.read_more(reader).await {}
        received
    }

    pub(crate) async fn read_more(&mut self, reader: &mut Reader) -> bool {
        let next = kernel::timeout(&SystemClock::new(), LONGEST, reader.next()).await;
        match next.unwrap_or_else(|| panic!("no event followed {:?}", self.events.last())).unwrap() {
            Readout::Frames(frames) => {
                self.take(std::str::from_utf8(&frames).unwrap());
                true
            }
            Readout::Live | Readout::End => false,
        }
    }

    /// Whether each number occurs once, in order, from 1.
    pub(crate) fn is_complete(&self) -> bool {
        self.numbers.iter().copied().eq(1..=self.numbers.len() as u64)
    }

    /// The pieces of the answer, joined.
    pub(crate) fn pieces(&self) -> String {
        let piece = |event: &ChatEvent| match event {
            ChatEvent::ItemUpdated { update, .. } => update.appended_text().map(str::to_owned),
            _ => None,
        };
        self.events.iter().filter_map(piece).collect()
    }

    /// The completed answers.
    pub(crate) fn answers(&self) -> Vec<String> {
        let answer = |event: &ChatEvent| match event {
            ChatEvent::ItemDone { item } => item.body.text(),
            _ => None,
        };
        self.events.iter().filter_map(answer).collect()
    }

    /// The error events' codes.
    pub(crate) fn errors(&self) -> Vec<String> {
        let code = |event: &ChatEvent| match event {
            ChatEvent::Error { error_code, .. } => Some(error_code.clone().unwrap_or_default()),
            _ => None,
        };
        self.events.iter().filter_map(code).collect()
    }

    /// Asserts that the stream is complete and contains exactly this answer, once.
    pub(crate) fn assert_answer(&self, text: &str) {
        assert!(self.is_complete(), "{:?}", self.numbers);
        assert_eq!((self.pieces().as_str(), self.errors()), (text, Vec::new()));
        assert_eq!(self.answers(), [text]);
        assert!(matches!(self.events.last(), Some(ChatEvent::ItemDone { .. })));
    }
}

/// This many words.
pub(crate) fn words(count: usize) -> String {
    (1..=count).map(|n| format!("word{n}")).collect::<Vec<_>>().join(" ")
}

/// Waits until no thread of this instance has an actor.
pub(crate) async fn until_idle(instance: &Instance) {
    until("the threads passivate", || instance.system.threads().is_empty()).await;
}
