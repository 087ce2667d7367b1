//! What a training has left: its answers over HTTP and its rows, without times and with the same names for its ids.

use std::collections::HashMap;

use anyhow::{Context, Result};
use serde_json::{Map, Value};
use tokio_postgres::Client;

use super::Started;
use crate::bench::server;

/// Members that two runs of the same training may have different.
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
/// Members of events that depend on the order in which cases end.
const ORDERED: [&str; 2] = ["progress", "usage"];
const UUID: usize = 36;

/// What a training has left.
pub(super) struct Found {
    /// Texts to compare, by name.
    pub(super) parts: Vec<(&'static str, String)>,
    /// The numbers of the events, in their order.
    pub(super) numbers: Vec<u64>,
    /// Results of cases that were announced as executed.
    pub(super) executed: usize,
    pub(super) announced_checkpoints: usize,
    pub(super) rows: Rows,
    pub(super) calls: u64,
}

/// Rows of a run.
pub(super) struct Rows {
    pub(super) cases: i64,
    pub(super) checkpoints: i64,
    /// Answered calls, and how many different ones.
    pub(super) calls: i64,
    pub(super) different_calls: i64,
}

impl Found {
    /// Reads everything that a run which has ended has left.
    pub(super) async fn read(address: &str, database: &Client, started: &Started) -> Result<Self> {
        let Started { workflow, run } = started;
        let trainer = format!("/api/workflows/{workflow}/trainer");
        let get = async |path: String| server::get_with(address, &path, "").await;
        let record = get(format!("{trainer}/runs/{run}")).await?;
        let calls = record.pointer("/usage/llm_calls").and_then(Value::as_u64).context("no usage")?;
        let events = events(database, run).await?;
        let kinds = |kind: &str| events.iter().filter(|event| text(event, "type") == kind).count();
        let is_executed = |event: &&Value| event.pointer("/payload/cached") == Some(&Value::Bool(false));
        Ok(Self {
            numbers: events.iter().filter_map(|event| event.get("seq")?.as_u64()).collect(),
            executed: events.iter().filter(is_executed).count(),
            announced_checkpoints: kinds("training_checkpoint"),
            parts: vec![
                ("record", same(record)),
                (
                    "result",
                    same(get(format!("/api/runs/{run}")).await?.get("output").cloned().unwrap_or_default()),
                ),
                ("checkpoints", same(get(format!("{trainer}/checkpoints?limit=200")).await?)),
                ("candidates", same(get(format!("{trainer}/runs/{run}/candidates?limit=200")).await?)),
                ("report", same(get(format!("{trainer}/runs/{run}/report?format=json")).await?)),
                ("scores", scores(database, run).await?),
                ("events", comparable(&events)),
            ],
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

/// The stored events of a run in their order.
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

/// The score of each result, exactly as it is stored.
async fn scores(database: &Client, run: &str) -> Result<String> {
    let scores = format!(
        "SELECT coalesce(string_agg(concat_ws(' ', candidate, case_index, sample, phase, epoch, score, passed), E'\\n'
                                    ORDER BY candidate, case_index, sample), '')
         FROM training_cases WHERE run_id = '{run}'"
    );
    Ok(database.query_one(&scores, &[]).await?.get(0))
}

/// Events without what may differ, sorted: progress has no order.
fn comparable(events: &[Value]) -> String {
    let stays = |event: &&Value| text(event, "type") != "training_resumed";
    let plain = |event: &Value| {
        let mut event = event.clone();
        if let Some(payload) = event.get_mut("payload").and_then(Value::as_object_mut) {
            ORDERED.iter().for_each(|name| _ = payload.remove(*name));
        }
        same(event)
    };
    let mut lines: Vec<String> = events.iter().filter(stays).map(plain).collect();
    lines.sort();
    lines.join("\n")
}

/// A value without times, its ids numbered in the order in which they come.
fn same(mut value: Value) -> String {
    timeless(&mut value);
    named(&value.to_string())
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

fn named(text: &str) -> String {
    let (mut names, mut whole, mut at) = (HashMap::new(), String::with_capacity(text.len()), 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        match rest.get(..UUID).filter(|id| is_uuid(id)) {
            Some(id) => {
                let next = names.len();
                whole.push_str(&format!("id-{}", names.entry(id).or_insert(next)));
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
