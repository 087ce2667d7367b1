//! The journal of an earlier life of a run.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::NodeError;

/// A journal row of an earlier life of this run.
#[derive(Debug, Clone)]
pub struct RecordedStep {
    /// The node, as in [`crate::execute::ports::StepRecord::node`].
    pub node: String,
    /// Which visit, from 1.
    pub visit: u32,
    /// Which attempt of the visit, from 1.
    pub attempt: u32,
    /// SHA-256 of what the node was given.
    pub input_digest: [u8; 32],
    /// Its result, if the attempt succeeded.
    pub result: Option<Value>,
    /// Why it failed, if it did. Neither: its outcome is unknown.
    pub error: Option<NodeError>,
    /// What was noted with its start.
    pub note: Option<Value>,
    /// When the attempt began.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
}

/// The rows by node and visit, each visit's in the order of its attempts.
#[derive(Default)]
pub(super) struct Recorded {
    visits: HashMap<(String, u32), Vec<RecordedStep>>,
    /// The names of attempts that nodes ran inside of.
    containers: OnceLock<HashSet<String>>,
}

impl Recorded {
    pub(super) fn new(rows: Vec<RecordedStep>) -> Self {
        let mut visits: HashMap<(String, u32), Vec<RecordedStep>> = HashMap::new();
        for row in rows {
            visits.entry((row.node.clone(), row.visit)).or_default().push(row);
        }
        for rows in visits.values_mut() {
            rows.sort_by_key(|row| row.attempt);
        }
        Self { visits, containers: OnceLock::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.visits.is_empty()
    }

    /// Whether a node ran inside of an attempt, by the name that the attempt gives to its nodes.
    pub(super) fn has_inside(&self, attempt: &str) -> bool {
        let containers = self.containers.get_or_init(|| {
            let nodes = self.visits.keys().map(|(node, _)| node);
            let outer = |node: &String| {
                node.match_indices(['/', '[', '.'])
                    .map(|(at, _)| node.split_at(at).0.to_owned())
                    .collect::<Vec<_>>()
            };
            nodes.flat_map(outer).collect()
        });
        containers.contains(attempt)
    }

    /// The attempts of a visit.
    pub(super) fn of(&self, node: &str, visit: u32) -> &[RecordedStep] {
        if self.visits.is_empty() {
            return &[];
        }
        self.visits.get(&(node.to_owned(), visit)).map(Vec::as_slice).unwrap_or_default()
    }
}
