//! Model usage in a run.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Array, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use futures_util::TryStreamExt;
use serde_json::Value;
use uuid::Uuid;
use wire::RunUsage;

use crate::database::scalar::Scalar;
use crate::schema::{run_steps, runs};
use crate::{Store, StoreError};

/// Maximum large results held at once.
const RESULTS_AT_ONCE: usize = 16;

/// The runs in threads `$1` whose journals may contain model usage.
const MAY_USE_MODELS: &str = "
    SELECT r.id FROM runs r WHERE r.thread_id = ANY($1) AND r.usage IS NULL AND EXISTS (SELECT FROM run_steps s
        WHERE s.run_id = r.id AND (s.result LIKE '%\"cost_usd\"%' OR s.error LIKE '%\"cost_usd\"%' OR s.result_blob IS NOT NULL))";

/// Run `$1`, if it repeats another one from a step on or continues its turn.
const HAS_COPIES: &str =
    "SELECT id FROM runs WHERE id = $1 AND (continues IS NOT NULL OR options LIKE '%\"origin\"%')";

/// Model usage in a node attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct StepUsage {
    /// The node's name in the journal.
    pub node: String,
    /// The `usage` of its result or error.
    pub usage: Value,
    /// Whether another run executed it.
    pub is_copied: bool,
}

impl Store {
    /// Returns a run's model usage, including failed attempts, but excluding copied steps.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn run_usage(&self, run: Uuid) -> Result<RunUsage, StoreError> {
        let kept: Option<Option<String>> = runs::table
            .find(run)
            .select(runs::usage)
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        match kept.flatten().and_then(|kept| serde_json::from_str(&kept).ok()) {
            Some(usage) => Ok(usage),
            None => Ok(total_usage(&self.models_usage(run).await?)),
        }
    }

    /// Saves the model usage in the runs' rows before the threads' journals are deleted.
    pub(crate) async fn keep_usage(&self, threads: &[Uuid]) -> Result<(), StoreError> {
        let runs: Vec<Scalar<Uuid>> = diesel::sql_query(MAY_USE_MODELS)
            .bind::<Array<SqlUuid>, _>(threads)
            .load(&mut *self.connection().await?)
            .await?;
        for Scalar(id) in runs {
            let used = self.models_usage(id).await?;
            if used.is_empty() {
                continue;
            }
            let usage = serde_json::to_string(&total_usage(&used)).unwrap_or_default();
            diesel::update(runs::table.find(id))
                .set(runs::usage.eq(usage))
                .execute(&mut *self.connection().await?)
                .await?;
        }
        Ok(())
    }

    /// Returns the usage of each attempt that called a model. The row of a container, such as an agent,
    /// contains the sum of the nodes inside it.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn models_usage(&self, run: Uuid) -> Result<Vec<StepUsage>, StoreError> {
        type StepColumns = (String, DateTime<Utc>, Option<String>, Option<Vec<u8>>, Option<String>);
        const MARK: &str = "%\"cost_usd\"%";
        let mut connection = self.connection().await?;
        let copies: Option<Scalar<Uuid>> = diesel::sql_query(HAS_COPIES)
            .bind::<SqlUuid, _>(run)
            .get_result(&mut *connection)
            .await
            .optional()?;
        let rows = run_steps::table
            .filter(run_steps::run_id.eq(run))
            .filter(
                (run_steps::result.like(MARK).is_not_distinct_from(true))
                    .or(run_steps::error.like(MARK).is_not_distinct_from(true))
                    .or(run_steps::result_blob.is_not_null()),
            )
            .select((
                run_steps::node,
                run_steps::started_at,
                run_steps::result,
                run_steps::result_blob,
                run_steps::error,
            ))
            .load_stream::<StepColumns>(&mut *connection)
            .await?;
        let (mut used, mut large) = (Vec::new(), Vec::new());
        let mut rows = std::pin::pin!(rows);
        // Only a run that repeats or continues another one has copied steps: a clock that was set back does not
        // mark a step as copied.
        let accepted_at = kernel::time_of(run).filter(|_| copies.is_some()).unwrap_or(DateTime::UNIX_EPOCH);
        while let Some((node, started_at, result, blob, error)) = rows.try_next().await? {
            let is_copied = started_at < accepted_at;
            if let Some(usage) = result.or(error).and_then(|text| usage_of(&text)) {
                used.push(StepUsage { node, usage, is_copied });
            } else {
                large.extend(blob.map(|digest| (node, is_copied, digest)));
            }
        }
        drop(connection);
        for part in large.chunks(RESULTS_AT_ONCE) {
            let digests: Vec<Vec<u8>> = part.iter().map(|(_, _, digest)| digest.clone()).collect();
            let results = self.blobs(&digests).await?;
            for (node, is_copied, digest) in part {
                let text = results.get(digest).and_then(|bytes| std::str::from_utf8(bytes).ok());
                used.extend(text.and_then(usage_of).map(|usage| StepUsage {
                    node: node.clone(),
                    usage,
                    is_copied: *is_copied,
                }));
            }
        }
        Ok(used)
    }
}

/// The usage in the result or error of a node that called a model.
fn usage_of(text: &str) -> Option<Value> {
    let mut value: Value = serde_json::from_str(text).ok()?;
    let is_models = value.get("model").is_some() || value.get("code").is_some();
    let usage = value.get_mut("usage").filter(|_| is_models)?.take();
    (usage.get("calls").is_some() && usage.get("cost_usd").is_some()).then_some(usage)
}

/// Sums the nodes that called a model themselves: an agent's row contains the sum of its calls. A sum is null
/// if a part of it is unknown.
fn total_usage(used: &[StepUsage]) -> RunUsage {
    let nodes: BTreeSet<&str> = used.iter().map(|step| step.node.as_str()).collect();
    let mut sum = RunUsage { calls: 0, input_tokens: Some(0), output_tokens: Some(0), cost_usd: Some(0.0) };
    let own = used.iter().filter(|step| !step.is_copied && !holds_others(&step.node, &nodes));
    for StepUsage { usage, .. } in own {
        let count = |name: &str| usage.get(name).and_then(Value::as_u64);
        let add = |sum: Option<u64>, name| sum.zip(count(name)).map(|(sum, more)| sum.saturating_add(more));
        sum.calls = sum.calls.saturating_add(count("calls").unwrap_or_default());
        sum.input_tokens = add(sum.input_tokens, "input_tokens");
        sum.output_tokens = add(sum.output_tokens, "output_tokens");
        let cost = usage.get("cost_usd").and_then(Value::as_f64);
        sum.cost_usd = sum.cost_usd.zip(cost).map(|(sum, more)| ((sum + more) * 1e9).round() / 1e9);
    }
    sum
}

/// Whether one of the nodes ran inside `node`.
fn holds_others(node: &str, nodes: &BTreeSet<&str>) -> bool {
    ['/', '[', '#', '~'].iter().any(|mark| {
        let inside = format!("{node}{mark}");
        nodes.range(inside.as_str()..).next().is_some_and(|next| next.starts_with(&inside))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn used(node: &str, calls: u64, input: u64, cost: Value) -> StepUsage {
        let usage = json!({"calls": calls, "input_tokens": input, "output_tokens": 1, "cost_usd": cost});
        StepUsage { node: node.to_owned(), usage, is_copied: false }
    }

    #[test]
    fn nested_usage_is_counted_once() {
        let nothing =
            RunUsage { calls: 0, input_tokens: Some(0), output_tokens: Some(0), cost_usd: Some(0.0) };
        assert_eq!(total_usage(&[]), nothing);
        let mut all = vec![
            used("ask", 1, 10, json!(0.1)),
            used("ask2", 2, 5, json!(0.2)),
            used("help[0]", 1, 7, json!(0.4)),
            used("help[0].flow[0]/inner", 1, 100, json!(1)),
            used("help[1]", 1, 8, json!(0.5)),
            used("help", 3, 115, json!(1.9)),
        ];
        let sum = RunUsage { calls: 6, input_tokens: Some(130), output_tokens: Some(5), cost_usd: Some(2.2) };
        // A model call that called a workflow contains only its own tokens.
        assert_eq!(total_usage(&all), sum);
        all.push(used("unpriced", 1, 1, Value::Null));
        assert_eq!((total_usage(&all).cost_usd, total_usage(&all).input_tokens), (None, Some(131)));
        let unknown = json!({"calls": 1, "input_tokens": null, "output_tokens": null, "cost_usd": null});
        all.push(StepUsage { is_copied: true, ..used("copied", 9, 9, json!(9)) });
        all.push(StepUsage { node: "silent".to_owned(), usage: unknown, is_copied: false });
        let sum = RunUsage { calls: 8, input_tokens: None, output_tokens: None, cost_usd: None };
        assert_eq!(total_usage(&all), sum);
    }
}
