//! A run's journal from before a restart.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::NodeError;

/// A journal row from before a restart.
#[derive(Debug, Clone)]
pub struct RecordedStep {
    /// The node, as in [`crate::execute::ports::StepRecord::node`].
    pub node: String,
    /// The visit, from 1.
    pub visit: u32,
    /// The visit's attempt, from 1.
    pub attempt: u32,
    /// SHA-256 of the node's input.
    pub input_digest: [u8; 32],
    /// Its result, if the attempt succeeded.
    pub result: Option<Value>,
    /// Its error, if it failed. Without result and error, its outcome is unknown.
    pub error: Option<NodeError>,
    /// The note recorded with its start.
    pub note: Option<Value>,
    /// Start time.
    pub started_at: DateTime<Utc>,
    /// End time.
    pub finished_at: Option<DateTime<Utc>>,
}

/// Rows by node and visit; each visit's rows in attempt order.
#[derive(Default)]
pub(super) struct Recorded {
    visits: HashMap<(String, u32), Vec<RecordedStep>>,
    /// Names of attempts that contain nested nodes.
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

    /// Whether an attempt ran nested nodes, by the name prefix that it gives them.
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

    /// Returns a visit's attempts.
    pub(super) fn attempts(&self, node: &str, visit: u32) -> &[RecordedStep] {
        if self.visits.is_empty() {
            return &[];
        }
        self.visits.get(&(node.to_owned(), visit)).map(Vec::as_slice).unwrap_or_default()
    }
}
