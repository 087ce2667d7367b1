//! The read-only audit of the tables.

use std::time::Duration;

use store::testing;

/// The time within which all started work must end after the clients stop.
const SETTLE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(100);

const ITEMS: &str = "SELECT coalesce(json_agg(json_build_object(
    'thread', 'thr_' || replace(thread_id::text, '-', ''), 'id', encode(id, 'hex'), 'content', content)
    ORDER BY thread_id, id), '[]') FROM thread_items";
const RUNS: &str = "SELECT coalesce(json_agg(json_build_object(
    'id', id, 'stream', stream_id, 'thread', thread_id, 'workflow', workflow_id, 'status', status,
    'finished', finished_at IS NOT NULL, 'error', error) ORDER BY id), '[]') FROM runs";
const STREAMS: &str = "SELECT coalesce(json_agg(json_build_object(
    'id', id, 'run', run_id, 'dialect', dialect) ORDER BY id), '[]') FROM streams";
const EVENTS: &str = "SELECT coalesce(json_agg(json_build_object(
    'stream', stream_id, 'first', first_seq, 'last', last_seq, 'frames', frames)
    ORDER BY stream_id, first_seq), '[]') FROM stream_events";

pub(super) struct Tables {
    dsn: String,
    /// The prefix of each query: nothing, or subsets of the tables under the same names.
    part: String,
}

impl Tables {
    pub(super) fn new(dsn: String) -> Self {
        Self { dsn, part: String::new() }
    }

    /// Restricts the audit to these workflows.
    pub(super) fn restricted_to(self, workflows: &[&str]) -> Self {
        let part = format!(
            "WITH runs AS (SELECT * FROM runs WHERE workflow_id::text IN ('{}')),
             thread_items AS (SELECT * FROM thread_items WHERE thread_id IN (SELECT thread_id FROM runs)),
             streams AS (SELECT * FROM streams WHERE id IN (SELECT stream_id FROM runs)),
             stream_events AS (SELECT * FROM stream_events WHERE stream_id IN (SELECT stream_id FROM runs)) ",
            workflows.join("', '")
        );
        Self { part, ..self }
    }

    async fn read(&self, sql: &str) -> String {
        testing::scalar(&self.dsn, &format!("{}{sql}", self.part)).await
    }

    /// The current thread items.
    pub(super) async fn items(&self) -> String {
        self.read(ITEMS).await
    }

    /// All tables, once no run is unfinished. A run that never finishes is left for the audit to report.
    pub(super) async fn settled(&self) -> String {
        let mut waited = Duration::ZERO;
        while waited < SETTLE {
            let unfinished = "SELECT count(*) FROM runs WHERE finished_at IS NULL";
            if testing::scalar(&self.dsn, unfinished).await == "0" {
                break;
            }
            std::thread::sleep(POLL);
            waited += POLL;
        }
        let parts = [("items", ITEMS), ("runs", RUNS), ("streams", STREAMS), ("events", EVENTS)];
        let mut members = Vec::with_capacity(parts.len());
        for (name, sql) in parts {
            members.push(format!("\"{name}\": {}", self.read(sql).await));
        }
        format!("{{{}}}", members.join(",\n"))
    }
}
