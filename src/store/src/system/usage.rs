//! Storage used by workspaces. Measured now and then, from a sample of the pages in large tables, so that
//! writes need not count anything.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use diesel::sql_types::{Array, BigInt, Timestamptz, Uuid as SqlUuid};
use diesel::{OptionalExtension, QueryableByName};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use uuid::Uuid;

use crate::database::connect::SessionKind;
use crate::database::scalar::Scalar;
use crate::{Store, StoreError};

/// Maximum pages read per table: all pages, or a random sample.
const PAGES: i64 = 1_000;
/// Bytes per page.
const PAGE: i64 = 8_192;
/// SQL condition: nothing was measured since `$1`.
const OLD: &str = "NOT EXISTS (SELECT FROM workspace_usage WHERE measured_at > $1)";
/// The advisory lock held during a measurement.
const LOCK: i64 = 0x0063_616c_6c75_7361;

/// A table with rows that belong to workspaces.
struct Table {
    name: &'static str,
    /// The joins from a row, which is `t`, to its workspace.
    joins: &'static str,
    workspace: &'static str,
    /// Columns whose values may be large; their stored size counts.
    values: &'static [&'static str],
}

/// The approximate overhead per row in bytes: header, small columns, and index entries.
const ROW: i64 = 150;

const TABLES: &[Table] = &[
    Table {
        name: "runs",
        joins: "",
        workspace: "t.workspace_id",
        values: &["inputs", "output", "error", "options"],
    },
    Table {
        name: "run_steps",
        joins: "JOIN runs o ON o.id = t.run_id",
        workspace: "o.workspace_id",
        values: &["result", "error", "note"],
    },
    Table {
        name: "run_questions",
        joins: "JOIN runs o ON o.id = t.run_id",
        workspace: "o.workspace_id",
        values: &["message", "schema", "item", "answer"],
    },
    Table {
        name: "turns_sent",
        joins: "JOIN runs o ON o.id = t.run_id",
        workspace: "o.workspace_id",
        values: &["sent"],
    },
    // A delivery stores its whole request until days after its end.
    Table {
        name: "outbox",
        joins: "JOIN runs o ON o.id = t.run_id",
        workspace: "o.workspace_id",
        values: &["request", "progress", "error"],
    },
    // Each value counts once for each workspace that uses it, and for one workspace if only steps use it.
    // Sampled from uniform rows: a step may represent one large value or none.
    Table {
        name: "blob_chunks",
        joins: "JOIN LATERAL ((SELECT r.workspace_id FROM run_steps s JOIN runs r ON r.id = s.run_id
                               WHERE s.result_blob = t.digest LIMIT 1)
                              UNION SELECT u.workspace_id FROM blob_uses u WHERE u.digest = t.digest) o ON true",
        workspace: "o.workspace_id",
        values: &["bytes"],
    },
    Table { name: "blob_uses", joins: "", workspace: "t.workspace_id", values: &[] },
    Table { name: "attachments", joins: "", workspace: "t.workspace_id", values: &["name", "text"] },
    Table {
        name: "thread_items",
        joins: "JOIN threads o ON o.id = t.thread_id",
        workspace: "o.workspace_id",
        values: &["content"],
    },
    Table {
        name: "item_feedback",
        joins: "JOIN threads o ON o.id = t.thread_id",
        workspace: "o.workspace_id",
        values: &["comment"],
    },
    Table {
        name: "feedback_turns",
        joins: "JOIN threads o ON o.id = t.thread_id",
        workspace: "o.workspace_id",
        values: &["inputs", "messages", "output", "output_text"],
    },
    Table {
        name: "stream_events",
        joins: "JOIN streams s ON s.id = t.stream_id JOIN runs o ON o.id = s.run_id",
        workspace: "o.workspace_id",
        values: &["frames"],
    },
    Table {
        name: "stream_events_kept",
        joins: "JOIN streams s ON s.id = t.stream_id JOIN runs o ON o.id = s.run_id",
        workspace: "o.workspace_id",
        values: &["frames"],
    },
    Table {
        name: "training_runs",
        joins: "JOIN runs o ON o.id = t.run_id",
        workspace: "o.workspace_id",
        values: &["request", "start", "state"],
    },
    Table {
        name: "training_calls",
        joins: "JOIN runs o ON o.id = t.run_id",
        workspace: "o.workspace_id",
        values: &["reply"],
    },
    Table {
        name: "training_cases",
        joins: "JOIN runs o ON o.id = t.run_id",
        workspace: "o.workspace_id",
        values: &["result"],
    },
    Table {
        name: "training_candidates",
        joins: "JOIN runs o ON o.id = t.run_id",
        workspace: "o.workspace_id",
        values: &["record"],
    },
    Table {
        name: "training_checkpoints",
        joins: "",
        workspace: "t.workspace_id",
        values: &["runnable_config", "metrics", "metadata"],
    },
    Table {
        name: "app_deployments",
        joins: "",
        workspace: "t.workspace_id",
        values: &["bindings", "collections", "frame_ancestors", "report"],
    },
    Table {
        name: "app_files",
        joins: "JOIN app_deployments o ON o.id = t.deployment_id",
        workspace: "o.workspace_id",
        values: &["path", "policy"],
    },
    Table { name: "app_bindings", joins: "", workspace: "t.workspace_id", values: &["binding"] },
    Table {
        name: "app_collections",
        joins: "",
        workspace: "t.workspace_id",
        values: &["capabilities", "schema"],
    },
    Table {
        name: "app_runs",
        joins: "JOIN runs o ON o.id = t.run_id",
        workspace: "o.workspace_id",
        values: &[],
    },
    Table {
        name: "app_releases",
        joins: "",
        workspace: "t.workspace_id",
        values: &["permissions", "bindings", "collections", "frame_ancestors"],
    },
    Table {
        name: "app_acknowledgements",
        joins: "",
        workspace: "t.workspace_id",
        values: &["permission_revision"],
    },
    Table { name: "rollouts", joins: "", workspace: "t.workspace_id", values: &["gate", "last_canary"] },
    Table { name: "version_gates", joins: "", workspace: "t.workspace_id", values: &["error"] },
    Table { name: "gate_evaluations", joins: "", workspace: "t.workspace_id", values: &["request", "error"] },
    Table { name: "dataset_cases", joins: "", workspace: "t.workspace_id", values: &["content"] },
    Table {
        name: "search_chunks",
        joins: "JOIN search_indexes o ON o.id = t.index_id AND o.deleted_at IS NULL",
        workspace: "o.workspace_id",
        values: &["text", "metadata", "vector"],
    },
    Table {
        name: "search_documents",
        joins: "JOIN search_indexes o ON o.id = t.index_id AND o.deleted_at IS NULL",
        workspace: "o.workspace_id",
        values: &["terms"],
    },
    Table {
        name: "search_postings",
        joins: "JOIN search_indexes o ON o.id = t.index_id AND o.deleted_at IS NULL",
        workspace: "o.workspace_id",
        values: &["term"],
    },
];

impl Table {
    /// Estimates each workspace's bytes from a sample with one page in `one_of`, scaled to all pages.
    fn query(&self, one_of: i64) -> String {
        let Self { name, joins, workspace, .. } = self;
        let values = self.values.iter().map(|value| format!(" + coalesce(pg_column_size(t.{value}), 0)"));
        let values: String = values.collect();
        // A complete scan needs no sample.
        let sample =
            if one_of > 1 { format!("TABLESAMPLE SYSTEM (100.0 / {one_of})") } else { String::new() };
        format!(
            "SELECT {workspace} AS workspace, ({one_of} * sum({ROW}{values}))::bigint AS bytes
             FROM {name} t {sample} {joins} GROUP BY 1"
        )
    }

    /// The query for its number of pages, including its partitions.
    fn pages(&self) -> String {
        let name = self.name;
        format!(
            "SELECT ((pg_relation_size('{name}') + coalesce(sum(pg_relation_size(relid)), 0)) / {PAGE})::bigint AS pages
             FROM pg_partition_tree('{name}') WHERE isleaf AND relid <> '{name}'::regclass"
        )
    }
}

/// A workspace's storage usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, QueryableByName)]
pub struct WorkspaceUsage {
    /// The workspace.
    #[diesel(sql_type = SqlUuid)]
    pub workspace_id: Uuid,
    /// Bytes in its rows: runs, journals, events, messages, files, feedback, deliveries and search indexes.
    #[diesel(sql_type = BigInt)]
    pub bytes: i64,
    /// When it was measured.
    #[diesel(sql_type = Timestamptz)]
    pub measured_at: DateTime<Utc>,
}

#[derive(QueryableByName)]
struct Share {
    #[diesel(sql_type = SqlUuid)]
    workspace: Uuid,
    #[diesel(sql_type = BigInt)]
    bytes: i64,
}

impl Store {
    /// Returns a workspace's storage usage; `None` before it was measured.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn workspace_usage(&self, workspace: Uuid) -> Result<Option<WorkspaceUsage>, StoreError> {
        let found = diesel::sql_query(
            "SELECT workspace_id, bytes, measured_at FROM workspace_usage WHERE workspace_id = $1",
        )
        .bind::<SqlUuid, _>(workspace)
        .get_result(&mut *self.connection().await?)
        .await;
        Ok(found.optional()?)
    }

    /// Returns the workspaces that use at least this many bytes, and did so in the previous measurement, too: a
    /// sample may have hit rare large rows.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn workspaces_of(&self, bytes: i64) -> Result<Vec<WorkspaceUsage>, StoreError> {
        let found = diesel::sql_query(
            "SELECT workspace_id, bytes, measured_at FROM workspace_usage
             WHERE bytes >= $1 AND bytes_before >= $1",
        )
        .bind::<BigInt, _>(bytes)
        .load(&mut *self.connection().await?)
        .await?;
        Ok(found)
    }

    /// Measures every workspace's storage, unless another caller has done so since then or is doing so now;
    /// returns whether it did. Workspaces created in the meantime are left for the next time.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn measure_usage(&self, since: DateTime<Utc>) -> Result<bool, StoreError> {
        if !self.usage_is_old(since).await? {
            return Ok(false);
        }
        let now = self.now();
        // It takes longer than any other work, so it does not use a pooled connection.
        let mut connection = self.connector().open(SessionKind::Service(self.role())).await?;
        // Not in one transaction: the locks on the tables would block a new partition until the end.
        let wanted: Scalar<bool> =
            diesel::sql_query(format!("SELECT {OLD} AND pg_try_advisory_lock($2) AS wanted"))
                .bind::<Timestamptz, _>(since)
                .bind::<BigInt, _>(LOCK)
                .get_result(&mut connection)
                .await?;
        if !wanted.0 {
            return Ok(false);
        }
        let measured = measured(&mut connection, now).await;
        let unlocked = diesel::sql_query("SELECT pg_advisory_unlock($1)").bind::<BigInt, _>(LOCK);
        let unlocked = unlocked.execute(&mut connection).await;
        measured?;
        unlocked?;
        Ok(true)
    }

    async fn usage_is_old(&self, since: DateTime<Utc>) -> Result<bool, StoreError> {
        let found: Scalar<bool> = diesel::sql_query(format!("SELECT {OLD} AS wanted"))
            .bind::<Timestamptz, _>(since)
            .get_result(&mut *self.connection().await?)
            .await?;
        Ok(found.0)
    }
}

async fn measured(connection: &mut AsyncPgConnection, now: DateTime<Utc>) -> Result<(), StoreError> {
    let mut kept: HashMap<Uuid, i64> = HashMap::new();
    for table in TABLES {
        for share in connection.transaction(async |connection| shares(connection, table).await).await? {
            let bytes = kept.entry(share.workspace).or_default();
            *bytes = bytes.saturating_add(share.bytes);
        }
    }
    // Their rows are invisible to sessions that name no app; collections count them exactly.
    let records: Vec<Share> = diesel::sql_query(
        "SELECT workspace_id AS workspace, sum(record_bytes + $1 * (record_count + tombstones))::bigint AS bytes
         FROM app_collections WHERE record_count > 0 OR tombstones > 0 GROUP BY 1",
    )
    .bind::<BigInt, _>(ROW)
    .load(connection)
    .await?;
    for share in records {
        let bytes = kept.entry(share.workspace).or_default();
        *bytes = bytes.saturating_add(share.bytes);
    }
    let (ids, bytes): (Vec<Uuid>, Vec<i64>) = kept.into_iter().unzip();
    diesel::sql_query(
        "INSERT INTO workspace_usage (workspace_id, bytes, bytes_before, measured_at)
             SELECT w.id, coalesce(k.bytes, 0), 0, $3
             FROM workspaces w LEFT JOIN unnest($1, $2) AS k (id, bytes) ON k.id = w.id
             WHERE w.created_at <= $3
         ON CONFLICT (workspace_id) DO UPDATE
             SET bytes = excluded.bytes, bytes_before = workspace_usage.bytes, measured_at = excluded.measured_at",
    )
    .bind::<Array<SqlUuid>, _>(ids)
    .bind::<Array<BigInt>, _>(bytes)
    .bind::<Timestamptz, _>(now)
    .execute(connection)
    .await?;
    Ok(())
}

async fn shares(connection: &mut AsyncPgConnection, table: &Table) -> Result<Vec<Share>, StoreError> {
    // Looks up the sampled rows by key: no plan may read the other tables completely.
    connection
        .batch_execute(
            "SET LOCAL statement_timeout = '30s'; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off;
             SET LOCAL enable_seqscan = off",
        )
        .await?;
    let size: Scalar<i64> = diesel::sql_query(table.pages()).get_result(connection).await?;
    let one_of = size.0.checked_div(PAGES).unwrap_or_default().max(1);
    Ok(diesel::sql_query(table.query(one_of)).load(connection).await?)
}
