//! Shared test support: a database with a store on it, and a turn's rows.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, SubsecRound, Utc};
use kernel::{Clock, Ids, ItemKey, SystemClock, SystemRandom, ThreadId};
use serde_json::json;
use store::batch::{
    Batch, ChatUsageRow, EventsRow, ItemRow, RunRow, RunUpdate, StepRow, StreamRow, ThreadRow,
};
use store::testing::TestDatabase;
use store::{
    DEFAULT_WORKSPACE, Lease, NewWorkflow, RunState, Store, StoreError, StoreOptions, StoredWorkflow,
};
use uuid::Uuid;
use wire::chat::Dialect;

/// A test's database with a store on it.
pub(crate) struct World {
    // Dropped before the database, which is dropped with force.
    pub(crate) store: Store,
    pub(crate) ids: Ids,
    pub(crate) database: TestDatabase,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::at(Arc::new(SystemClock::new())).await
    }

    /// Creates a world with this clock.
    pub(crate) async fn at(clock: Arc<dyn Clock>) -> Self {
        let database = TestDatabase::create().await;
        let store = database.store_with(Arc::clone(&clock)).await;
        Self { store, ids: Ids::new(clock, Arc::new(SystemRandom::new())), database }
    }

    pub(crate) fn uuid(&self) -> Uuid {
        self.ids.uuid().unwrap()
    }

    pub(crate) async fn workspace(&self) -> Uuid {
        self.store.workspace_id(DEFAULT_WORKSPACE).await.unwrap().unwrap()
    }

    pub(crate) async fn workflow(&self, handle: &str) -> Result<StoredWorkflow, StoreError> {
        let workspace_id = self.workspace().await;
        let (handle, name, tags) = (handle.to_owned(), format!("The {handle}"), vec!["a".to_owned()]);
        self.store
            .change(async |c| {
                c.create_workflow(NewWorkflow { workspace_id, handle, name, description: None, tags }).await
            })
            .await
    }

    /// Creates a new writer without earlier runs.
    pub(crate) async fn writer(&self) -> Lease {
        self.store.take_lease(self.uuid(), Uuid::nil()).await.unwrap().0
    }

    /// Commits on a new lane.
    pub(crate) async fn commit(&self, lease: Lease, batch: &Batch) -> Result<(), store::LaneError> {
        self.store.lane().await.unwrap().commit(lease, batch).await
    }

    /// Every row that a batch can write, as text.
    pub(crate) async fn everything(&self) -> String {
        let tables = [
            "threads",
            "thread_items",
            "thread_cuts",
            "runs",
            "streams",
            "app_runs",
            "run_steps",
            "stream_events",
            "chat_usage",
            "run_questions",
            "question_items",
            "turns_sent",
        ];
        let tables = tables.map(|table| {
            format!("coalesce((SELECT string_agg(t::text, E'\\n' ORDER BY t::text) FROM {table} t), '')")
        });
        self.database.scalar(&format!("SELECT {}", tables.join(" || E'\\n--\\n' || "))).await
    }

    /// The number of rows in `table`.
    pub(crate) async fn count(&self, table: &str) -> String {
        self.database.scalar(&format!("SELECT count(*) FROM {table}")).await
    }

    pub(crate) fn turn(&self) -> Turn {
        Turn {
            thread: self.ids.thread().unwrap(),
            items: [self.ids.item().unwrap(), self.ids.item().unwrap()],
            run: self.uuid(),
            stream: self.uuid(),
            now: DateTime::UNIX_EPOCH + chrono::Duration::days(20_000),
        }
    }
}

/// Opens a store without unwrapping the result.
pub(crate) async fn open(dsn: &str, connections: usize) -> Result<Store, StoreError> {
    let (clock, random) = (Arc::new(SystemClock::new()), Arc::new(SystemRandom::new()));
    let ids = Ids::new(clock.clone(), random.clone());
    Store::open(StoreOptions { dsn: dsn.to_owned().into(), connections, clock, random, ids }).await
}

/// Removes an option from a key-value DSN.
pub(crate) fn without(dsn: &str, option: &str) -> String {
    let keep = |part: &&str| !part.starts_with(&format!("{option}="));
    dsn.split(' ').filter(keep).collect::<Vec<_>>().join(" ")
}

/// A chat turn as the lanes write it.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) thread: ThreadId,
    pub(crate) items: [ItemKey; 2],
    pub(crate) run: Uuid,
    pub(crate) stream: Uuid,
    pub(crate) now: DateTime<Utc>,
}

impl Turn {
    /// Thread, user item, run, stream, first events.
    pub(crate) fn begin(&self) -> Batch {
        Batch {
            threads: vec![ThreadRow {
                id: self.thread,
                workflow_id: Uuid::from_u128(1),
                workspace_id: Uuid::from_u128(2),
                owner_kind: store::OwnerKind::Visitor,
                owner_id: Some("v1".to_owned()),
                title: Some("Hi".to_owned()),
                canary_version: None,
                requires_cookie: false,
                created_at: self.now,
            }],
            items: vec![self.item(0, &user_message("Hi"))],
            runs: vec![self.run_row()],
            streams: vec![StreamRow {
                id: self.stream,
                run_id: self.run,
                workflow_id: Uuid::from_u128(1),
                thread_id: Some(self.thread),
                dialect: Some(Dialect::Chatkit),
            }],
            events: vec![self.events(1..=2)],
            ..Batch::default()
        }
    }

    /// Journal row, reply, last events, the run's end.
    pub(crate) fn end(&self) -> Batch {
        Batch {
            items: vec![self.item(1, &user_message("Bye"))],
            steps: vec![self.step("succeeded")],
            updates: vec![self.update(RunState::Succeeded)],
            events: vec![self.events(3..=5)],
            chat_usage: vec![self.used(true), self.used(false)],
            ..Batch::default()
        }
    }

    /// The usage by its step, or by its end.
    fn used(&self, by_step: bool) -> ChatUsageRow {
        ChatUsageRow {
            run_id: self.run,
            step: by_step.then(|| ("answer".to_owned(), 1, 1)),
            day: self.now.date_naive(),
            workflow_id: Uuid::from_u128(1),
            session: "visitor:v1".to_owned(),
            turns: i64::from(!by_step),
            calls: i64::from(by_step),
            input_tokens: 3,
            output_tokens: 4,
            usd: 0.5,
        }
    }

    pub(crate) fn item(&self, number: usize, content: &str) -> ItemRow {
        ItemRow {
            thread_id: self.thread,
            id: self.items[number],
            content: content.to_owned(),
            answers: None,
            run_id: None,
            key: None,
        }
    }

    pub(crate) fn run_row(&self) -> RunRow {
        RunRow {
            id: self.run,
            workspace_id: Uuid::from_u128(2),
            workflow_id: Uuid::from_u128(1),
            version_id: Uuid::from_u128(3),
            trigger: "chat",
            thread_id: Some(self.thread),
            stream_id: Some(self.stream),
            inputs: r#"{"text":"Hi"}"#.to_owned(),
            options: None,
            created_at: self.now,
        }
    }

    pub(crate) fn events(&self, seqs: RangeInclusive<u64>) -> EventsRow {
        EventsRow {
            stream_id: self.stream,
            first_seq: *seqs.start(),
            last_seq: *seqs.end(),
            frames: frames(self.stream, seqs),
            kept: false,
        }
    }

    /// The run's state, with an end time if the status is final.
    pub(crate) fn update(&self, status: RunState) -> RunUpdate {
        RunUpdate {
            id: self.run,
            status,
            started_at: Some(self.now),
            output: (status == RunState::Succeeded).then(|| r#"{"text":"Bye"}"#.to_owned()),
            error: (status == RunState::Failed).then(|| r#"{"code":"x"}"#.to_owned()),
            finished_at: status.is_terminal().then_some(self.now),
            parking: 0,
        }
    }

    pub(crate) fn step(&self, status: &'static str) -> StepRow {
        let ended = status != "started";
        StepRow {
            run_id: self.run,
            node: "answer".to_owned(),
            visit: 1,
            attempt: 1,
            step: 1,
            begun: false,
            status,
            input_digest: vec![7; 32],
            result: ended.then(|| r#"{"n":1}"#.to_owned()),
            error: None,
            note: (!ended).then(|| r#"{"version":1}"#.to_owned()),
            started_at: self.now,
            finished_at: ended.then_some(self.now),
        }
    }
}

/// A thread item as JSON.
pub(crate) fn user_message(text: &str) -> String {
    json!({
        "type": "user_message", "id": "msg_1", "thread_id": "thr_1", "created_at": "2026-01-01T00:00:00Z",
        "content": [{"type": "input_text", "text": text}], "attachments": [], "inference_options": {},
    })
    .to_string()
}

/// The events with these numbers in the text form that is sent.
pub(crate) fn frames(stream: Uuid, seqs: RangeInclusive<u64>) -> String {
    let mut text = String::new();
    for seq in seqs {
        wire::sse::push_event(&mut text, stream, seq, &format!("{{\"n\":{seq}}}"));
    }
    text
}

/// Truncates to PostgreSQL's precision.
pub(crate) fn micros(time: DateTime<Utc>) -> DateTime<Utc> {
    time.trunc_subsecs(6)
}

pub(crate) async fn pause(duration: Duration) {
    SystemClock::new().sleep(duration).await;
}

/// Polls until the condition is true, for at most 20 s.
pub(crate) async fn until(event: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..400 {
        if holds().await {
            return;
        }
        pause(Duration::from_millis(50)).await;
    }
    panic!("timed out waiting for: {event}");
}

/// Another client's session on the same database.
pub(crate) async fn outsider(dsn: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(dsn, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
