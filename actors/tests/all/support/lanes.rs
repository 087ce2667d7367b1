//! Lanes on a separate database, and their writes.

use std::ops::RangeInclusive;
use std::sync::Arc;

use actors::lanes::{Database, EventFrames, WriteError, WriterKey};
use actors::runtime::Health;
use actors::streams::{Reader, Readout, Topics};
use kernel::{Clock, Ids, SystemClock, SystemRandom};
use store::batch::{Batch, RunRow, StreamRow};
use store::testing::TestDatabase;
use store::{Lease, Store};
use uuid::Uuid;
use wire::chat::Dialect;

use super::{LONGEST, session, until_sql};

/// Lanes with all their dependencies.
pub(crate) struct Lanes {
    pub(crate) db: Database,
    pub(crate) topics: Topics,
    pub(crate) health: Health,
    pub(crate) lease: Lease,
    pub(crate) store: Store,
    pub(crate) ids: Ids,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) database: TestDatabase,
}

impl Lanes {
    pub(crate) async fn start(writers: usize) -> Self {
        let database = TestDatabase::create().await;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let ids = Ids::new(Arc::clone(&clock), Arc::new(SystemRandom::new()));
        let store = database.store().await;
        let lease = store.take_lease(ids.uuid().unwrap(), Uuid::nil()).await.unwrap().0;
        let (topics, health) = (Topics::default(), Health::default());
        let db = Database::start(&store, lease, writers, &topics, &clock, &health);
        Self { db, topics, health, lease, store, ids, clock, database }
    }

    pub(crate) fn id(&self) -> Uuid {
        self.ids.uuid().unwrap()
    }

    /// Commits events under their stream's id.
    pub(crate) async fn write(&self, stream: Uuid, seqs: RangeInclusive<u64>) -> Result<(), WriteError> {
        self.db.commit(key(stream), Batch::default(), Some(events(stream, seqs))).await
    }

    /// Hands events over without waiting.
    pub(crate) fn hand_over(&self, stream: Uuid, seqs: RangeInclusive<u64>) -> Result<(), WriteError> {
        self.db.submit(key(stream), Batch::default(), Some(events(stream, seqs)))
    }

    /// Stores a stream with its run, which readers query for the end.
    pub(crate) async fn make_stream(&self) -> Uuid {
        let (stream, run) = (self.id(), self.id());
        let (other, now) = (Uuid::nil(), self.clock.now());
        let batch = Batch {
            runs: vec![RunRow {
                id: run,
                workspace_id: other,
                workflow_id: other,
                version_id: other,
                trigger: "chat",
                thread_id: None,
                stream_id: Some(stream),
                inputs: "{}".to_owned(),
                options: None,
                created_at: now,
            }],
            streams: vec![StreamRow {
                id: stream,
                run_id: run,
                workflow_id: other,
                thread_id: None,
                dialect: Some(Dialect::Chatkit),
            }],
            ..Batch::default()
        };
        self.db.commit(key(stream), batch, None).await.unwrap();
        stream
    }

    pub(crate) fn reader(&self, stream: Uuid, after: u64, fresh: bool) -> Reader {
        Reader::open(&self.topics, self.store.clone(), Arc::clone(&self.clock), stream, after, fresh)
    }

    /// A stream's stored rows, `first-last`, in order.
    pub(crate) async fn rows(&self, stream: Uuid) -> String {
        let sql = format!(
            "SELECT coalesce(string_agg(first_seq || '-' || last_seq, ' ' ORDER BY first_seq), '')
             FROM stream_events WHERE stream_id = '{stream}'"
        );
        self.database.scalar(&sql).await
    }

    /// Blocks all event commits until the guard is released.
    pub(crate) async fn hold(&self) -> Hold {
        let client = session(self.database.dsn()).await;
        client.batch_execute("BEGIN; LOCK TABLE stream_events IN SHARE MODE").await.unwrap();
        Hold(client)
    }

    /// Waits until this many lanes are blocked by the lock.
    pub(crate) async fn waiting_lanes(&self, lanes: usize) {
        let sql = format!(
            "SELECT count(*) = {lanes} FROM pg_stat_activity WHERE {LANE} AND wait_event_type = 'Lock'"
        );
        until_sql("lanes wait", &self.database, &sql).await;
    }

    /// Counts event commits, and traces which transaction wrote each row. Delays each commit by `slow` seconds.
    pub(crate) async fn trace(&self, slow: f64) {
        self.database
            .execute(&format!(
                "CREATE TABLE commits (n bigserial, events bigint);
                 CREATE TABLE trace (n bigserial, stream_id uuid, first_seq bigint, xid xid8, snap pg_snapshot);
                 CREATE FUNCTION count_commit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
                 BEGIN
                     PERFORM pg_sleep({slow});
                     INSERT INTO commits (events) SELECT count(*) FROM written;
                     INSERT INTO trace (stream_id, first_seq, xid, snap)
                     SELECT stream_id, first_seq, pg_current_xact_id(), pg_current_snapshot() FROM written;
                     RETURN NULL;
                 END $$;
                 DO $$ DECLARE name regclass; BEGIN
                     FOR name IN SELECT relid FROM pg_partition_tree('stream_events') LOOP
                         EXECUTE format('CREATE TRIGGER count_commit AFTER INSERT ON %s REFERENCING NEW TABLE AS
                             written FOR EACH STATEMENT EXECUTE FUNCTION count_commit()', name);
                     END LOOP;
                 END $$;"
            ))
            .await
            .unwrap();
    }

    /// Refuses frames that contain the word `poison`, after a delay.
    pub(crate) async fn refuse_poison(&self) {
        refuse_poison(&self.database).await;
    }
}

pub(crate) async fn refuse_poison(database: &TestDatabase) {
    database
        .execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 IF NEW.frames LIKE '%poison%' THEN
                     PERFORM pg_sleep(0.2);
                     RAISE EXCEPTION 'planned: poison';
                 END IF;
                 RETURN NEW;
             END $$;
             CREATE TRIGGER refuse BEFORE INSERT ON stream_events FOR EACH ROW EXECUTE FUNCTION refuse();",
        )
        .await
        .unwrap();
}

/// Selects the lanes' sessions: their last statement is a commit.
pub(crate) const LANE: &str = "datname = current_database() AND query LIKE 'WITH fence%'";

/// Unblocks the lanes when dropped or released.
pub(crate) struct Hold(tokio_postgres::Client);

impl Hold {
    pub(crate) async fn release(self) {
        self.0.batch_execute("COMMIT").await.unwrap();
    }
}

/// A stream's key in the only workspace.
pub(crate) fn key(id: Uuid) -> WriterKey {
    WriterKey { id, workspace: Uuid::nil() }
}

pub(crate) fn events(stream: Uuid, seqs: RangeInclusive<u64>) -> EventFrames {
    let mut frames = String::new();
    for seq in seqs.clone() {
        wire::sse::push_event(&mut frames, stream, seq, &format!("{{\"n\":{seq}}}"));
    }
    EventFrames { stream, first_seq: *seqs.start(), last_seq: *seqs.end(), frames, end: false, kept: false }
}

/// The event numbers in a text.
pub(crate) fn numbers(frames: &str) -> Vec<u64> {
    let number = |line: &str| line.strip_prefix("id: ")?.rsplit_once('.')?.1.parse().ok();
    frames.lines().filter_map(number).collect()
}

/// Reads until event `last` has arrived; fails after [`LONGEST`] without events.
pub(crate) async fn read_to(reader: &mut Reader, last: u64) -> Vec<u64> {
    let mut seen = Vec::new();
    let clock = SystemClock::new();
    while seen.last() != Some(&last) {
        match kernel::timeout(&clock, LONGEST, reader.next()).await {
            Some(Ok(Readout::Frames(frames))) => seen.extend(numbers(std::str::from_utf8(&frames).unwrap())),
            Some(Ok(Readout::Live | Readout::End)) | None => break,
            Some(Err(error)) => panic!("{error}"),
        }
    }
    seen
}
