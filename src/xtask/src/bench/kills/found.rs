//! A training's results: its HTTP responses and its rows, without times and with comparable ids.

use std::collections::HashMap;

use anyhow::{Context, Result};
use serde_json::{Map, Value};
use tokio_postgres::Client;

use crate::bench::server;
use crate::bench::simulated::Started;

/// Fields that may differ between two runs of the same training.
const TIMES: [&str; 10] = [
    "created_at",
    "started_at",
    "finished_at",
    "duration_ms",
    "wall_s",
    "cases_per_s",
    "eta_s",
    "lost_calls",
    "at",
    "seq",
];
/// Event fields that depend on the order in which cases end: cases run concurrently.
const ORDERED: [&str; 2] = ["progress", "usage"];
const UUID: usize = 36;

/// A training's stored results.
pub(super) struct StoredResults {
    /// Texts to compare, by name.
    pub(super) parts: Vec<(&'static str, String)>,
    /// The event numbers, in stored order.
    pub(super) numbers: Vec<u64>,
    /// Case results that were announced as executed.
    pub(super) executed: usize,
    pub(super) announced_checkpoints: usize,
    pub(super) rows: Rows,
    pub(super) calls: u64,
}

/// A run's row counts.
pub(super) struct Rows {
    pub(super) cases: i64,
    pub(super) checkpoints: i64,
    /// Answered calls, and the number of distinct ones.
    pub(super) calls: i64,
    pub(super) different_calls: i64,
}

impl StoredResults {
    /// Reads all results of an ended run.
    pub(super) async fn read(address: &str, database: &Client, started: &Started) -> Result<Self> {
        let Started { workflow, run } = started;
        let trainer = format!("/api/workflows/{workflow}/trainer");
        let get = async |path: String| server::get_with(address, &path, "").await;
        let record = get(format!("{trainer}/runs/{run}")).await?;
        let calls = record.pointer("/usage/llm_calls").and_then(Value::as_u64).context("no usage")?;
        let events = events(database, run).await?;
        let kinds = |kind: &str| events.iter().filter(|event| text(event, "type") == kind).count();
        let is_executed = |event: &&Value| event.pointer("/payload/cached") == Some(&Value::Bool(false));
        let parts = [
            ("record", record),
            ("result", get(format!("/api/runs/{run}")).await?.get("output").cloned().unwrap_or_default()),
            ("checkpoints", get(format!("{trainer}/checkpoints?limit=200")).await?),
            ("candidates", get(format!("{trainer}/runs/{run}/candidates?limit=200")).await?),
            ("report", get(format!("{trainer}/runs/{run}/report?format=json")).await?),
        ];
        // Events come last: by then, most of their ids have a number.
        let mut names = IdNumbers::default();
        let mut parts: Vec<(&'static str, String)> =
            parts.into_iter().map(|(name, part)| (name, names.comparable(part))).collect();
        parts.push(("scores", scores(database, run).await?));
        let lines: Vec<String> = ordered(&events).into_iter().map(|event| names.comparable(event)).collect();
        parts.push(("events", lines.join("\n")));
        Ok(Self {
            numbers: events.iter().filter_map(|event| event.get("seq")?.as_u64()).collect(),
            executed: events.iter().filter(is_executed).count(),
            announced_checkpoints: kinds("training_checkpoint"),
            parts,
            rows: Rows::read(database, run).await?,
            calls,
        })
    }
}

impl Rows {
    async fn read(database: &Client, run: &str) -> Result<Self> {
        let count = async |what: &str, of: &str| -> Result<i64> {
            let row = database.query_one(&format!("SELECT {what} FROM {of} '{run}'"), &[]).await?;
            Ok(row.get(0))
        };
        let answered = "training_calls WHERE reply IS NOT NULL AND run_id =";
        Ok(Self {
            cases: count("count(*)", "training_cases WHERE run_id =").await?,
            checkpoints: count("count(*)", "training_checkpoints WHERE run_id =").await?,
            calls: count("count(*)", answered).await?,
            different_calls: count("count(DISTINCT key)", answered).await?,
        })
    }
}

/// A run's stored events, in order.
async fn events(database: &Client, run: &str) -> Result<Vec<Value>> {
    let frames =
        format!("SELECT frames FROM stream_events_kept WHERE stream_id = '{run}' ORDER BY first_seq");
    let mut events = Vec::new();
    for row in database.query(&frames, &[]).await? {
        let frames: String = row.get(0);
        let data = frames.lines().filter_map(|line| line.strip_prefix("data: "));
        for event in data {
            events.push(serde_json::from_str(event)?);
        }
    }
    Ok(events)
}

/// Each result's score, exactly as stored.
async fn scores(database: &Client, run: &str) -> Result<String> {
    let scores = format!(
        "SELECT coalesce(string_agg(concat_ws(' ', candidate, case_index, sample, phase, epoch, score, passed), E'\\n'
                                    ORDER BY candidate, case_index, sample), '')
         FROM training_cases WHERE run_id = '{run}'"
    );
    Ok(database.query_one(&scores, &[]).await?.get(0))
}

/// A case's key in events: candidate, index in the dataset, execution number.
type CaseKey = [Option<u64>; 3];

/// Events without the fields that may differ, in an order that is the same for all executions of a training.
///
/// The order is the stored order, with one exception: cases run concurrently, so between two other events (a candidate,
/// a checkpoint, an epoch, a warning, the result) the progress of different cases comes in any order. That progress is
/// sorted by candidate, case and execution number; events of one execution keep their order. `training_resumed` reports
/// a kill and is left out.
fn ordered(events: &[Value]) -> Vec<Value> {
    let mut ordered = Vec::new();
    let mut concurrent: Vec<(CaseKey, Value)> = Vec::new();
    for event in events.iter().filter(|event| text(event, "type") != "training_resumed") {
        let mut plain = event.clone();
        if text(event, "type") == "training_progress" {
            if let Some(payload) = plain.get_mut("payload").and_then(Value::as_object_mut) {
                ORDERED.iter().for_each(|name| _ = payload.remove(*name));
            }
            let number = |name: &str| event.get("payload")?.get(name)?.as_u64();
            concurrent.push((["candidate_id", "case_index", "sample"].map(number), plain));
        } else {
            ordered.extend(sorted(&mut concurrent));
            ordered.push(plain);
        }
    }
    ordered.extend(sorted(&mut concurrent));
    ordered
}

fn sorted(concurrent: &mut Vec<(CaseKey, Value)>) -> impl Iterator<Item = Value> {
    let mut cases = std::mem::take(concurrent);
    // This sort is stable.
    cases.sort_by_key(|(key, _)| *key);
    cases.into_iter().map(|(_, event)| event)
}

/// Numbers the ids of a training in order of appearance: an id has the same number in all parts.
#[derive(Debug, Default)]
struct IdNumbers(HashMap<String, usize>);

impl IdNumbers {
    /// A value without times, with its ids replaced by numbers.
    fn comparable(&mut self, mut value: Value) -> String {
        timeless(&mut value);
        self.numbered(&value.to_string())
    }

    fn numbered(&mut self, text: &str) -> String {
        let (mut whole, mut at) = (String::with_capacity(text.len()), 0);
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            match rest.get(..UUID).filter(|id| is_uuid(id)) {
                Some(id) => {
                    let next = self.0.len();
                    let number = self.0.entry(id.to_owned()).or_insert(next);
                    whole.push_str(&format!("id-{number}"));
                    at += UUID;
                }
                None => {
                    let letter = rest.chars().next().unwrap_or_default();
                    whole.push(letter);
                    at += letter.len_utf8();
                }
            }
        }
        whole
    }
}

fn timeless(value: &mut Value) {
    let remove = |members: &mut Map<String, Value>| members.retain(|name, _| !TIMES.contains(&name.as_str()));
    match value {
        Value::Object(members) => {
            remove(members);
            members.values_mut().for_each(timeless);
        }
        Value::Array(items) => items.iter_mut().for_each(timeless),
        _ => {}
    }
}

fn is_uuid(text: &str) -> bool {
    let is_right = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.bytes().enumerate().all(is_right)
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ONE: &str = "0190a5b0-0000-7000-8000-000000000001";
    const OTHER: &str = "0190a5b0-0000-7000-8000-000000000002";

    #[test]
    fn an_id_has_the_same_number_in_all_parts() {
        let mut names = IdNumbers::default();
        assert_eq!(names.comparable(json!({"id": ONE, "at": 3})), r#"{"id":"id-0"}"#);
        assert_eq!(names.comparable(json!([OTHER, ONE])), r#"["id-1","id-0"]"#);
        // The reverse order is a different training.
        let mut names = IdNumbers::default();
        assert_eq!(names.comparable(json!({"id": ONE})), r#"{"id":"id-0"}"#);
        assert_eq!(names.comparable(json!([ONE, OTHER])), r#"["id-0","id-1"]"#);
    }

    fn progress(candidate: u64, case: u64, is_cached: bool) -> Value {
        let payload = json!({
            "candidate_id": candidate, "case_index": case, "sample": 0, "cached": is_cached, "progress": {"done": case},
        });
        json!({"type": "training_progress", "payload": payload})
    }

    fn other(kind: &str) -> Value {
        json!({"type": kind, "payload": {}})
    }

    #[test]
    fn only_concurrent_cases_may_be_reordered() {
        let events = [
            progress(0, 1, false),
            progress(0, 2, false),
            other("training_candidate"),
            progress(1, 1, false),
        ];
        let changed = |order: [usize; 4]| ordered(&order.map(|at| events[at].clone())) == ordered(&events);
        assert!(changed([1, 0, 2, 3]));
        assert!(!changed([0, 2, 1, 3]) && !changed([0, 1, 3, 2]));
        // Events of one case keep their order.
        let [first, again] = [false, true].map(|is_cached| progress(0, 1, is_cached));
        assert_ne!(ordered(&[first.clone(), again.clone()]), ordered(&[again, first]));
        let others = ["training_checkpoint", "training_candidate"].map(other);
        let turned = [others[1].clone(), others[0].clone()];
        assert_ne!(ordered(&others), ordered(&turned));
    }

    #[test]
    fn resumptions_and_run_progress_are_ignored() {
        let killed = [progress(0, 1, false), other("training_resumed"), progress(0, 2, false)];
        let found = ordered(&killed);
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|event| event.pointer("/payload/progress").is_none()));
    }
}
