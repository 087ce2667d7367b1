//! Compares diesel's table declarations with the migrated database.

use std::collections::BTreeMap;

use store::testing::TestDatabase;

/// The files with `diesel::table!`.
const SCHEMA: [&str; 6] = [
    include_str!("../../src/schema.rs"),
    include_str!("../../src/schema/hosting.rs"),
    include_str!("../../src/schema/files.rs"),
    include_str!("../../src/schema/questions.rs"),
    include_str!("../../src/schema/training.rs"),
    include_str!("../../src/schema/triggers.rs"),
];

/// Tables that only plain SQL statements use, since diesel's DSL cannot express them.
const WITHOUT_DSL: &[&str] = &[
    "app_bindings",
    "app_codes",
    "app_consents",
    "app_files",
    "app_limits",
    "app_records",
    "app_runs",
    "app_sessions",
    "app_sign_ins",
    "blob_uses",
    "chat_usage",
    "erasures",
    "feedback_turns",
    "gate_evaluations",
    "interrupted_attempts",
    "item_feedback",
    "rollouts",
    "run_crashes",
    "run_places",
    "run_queue",
    "run_signals",
    "run_stops",
    "search_chunks",
    "search_documents",
    "search_indexes",
    "search_postings",
    "stream_events_kept",
    "stream_readers",
    "training_counters",
    "upload_chunks",
    "upload_days",
    "version_gates",
    "workspace_usage",
];

/// Each table with its primary key and its columns, as in `table!`.
type Tables = BTreeMap<String, (String, BTreeMap<String, String>)>;

fn declared() -> Tables {
    let mut tables = Tables::new();
    for block in SCHEMA.iter().flat_map(|text| text.split("diesel::table! {").skip(1)) {
        let (head, rest) = block.split_once(") {").unwrap();
        let (name, key) = head.trim().split_once(" (").unwrap();
        let columns = rest.split_once('}').unwrap().0.lines().filter_map(|line| line.split_once("->"));
        let columns = columns.map(|(column, kind)| {
            let kind = kind.trim().trim_end_matches(',');
            (column.trim().to_owned(), kind.replace("Integer", "Int4"))
        });
        tables.insert(name.to_owned(), (key.to_owned(), columns.collect()));
    }
    tables
}

async fn migrated(database: &TestDatabase) -> Tables {
    let columns = "SELECT string_agg(concat_ws(' ', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull), chr(10))
                   FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                   WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
                       AND c.relname NOT LIKE '%diesel%'";
    let keys = "SELECT string_agg(concat_ws(' ', c.relname, (
                    SELECT string_agg(a.attname, ', ' ORDER BY position)
                    FROM unnest(i.indkey) WITH ORDINALITY AS k (number, position)
                    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number)), chr(10))
                FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
                WHERE i.indisprimary AND c.relnamespace = 'public'::regnamespace AND NOT c.relispartition
                    AND c.relname NOT LIKE '%diesel%'";
    let mut tables = Tables::new();
    for line in database.scalar(keys).await.lines() {
        let (table, key) = line.split_once(' ').unwrap();
        tables.entry(table.to_owned()).or_default().0 = key.to_owned();
    }
    for line in database.scalar(columns).await.lines() {
        let (table, rest) = line.split_once(' ').unwrap();
        let (column, rest) = rest.split_once(' ').unwrap();
        let (kind, required) = rest.rsplit_once(' ').unwrap();
        let kind = match kind {
            "uuid" => "Uuid",
            "text" => "Text",
            "bytea" => "Bytea",
            "boolean" => "Bool",
            "integer" => "Int4",
            "bigint" => "Int8",
            "double precision" => "Float8",
            "date" => "Date",
            "json" => "Json",
            "timestamp with time zone" => "Timestamptz",
            other => other,
        };
        let kind = if required == "t" { kind.to_owned() } else { format!("Nullable<{kind}>") };
        tables.entry(table.to_owned()).or_default().1.insert(column.to_owned(), kind);
    }
    tables
}

#[tokio::test]
async fn the_diesel_schema_equals_the_migrated_tables() {
    let mut migrated = migrated(&TestDatabase::create().await).await;
    let mut drifted = Vec::new();
    for (table, found) in declared() {
        let real = migrated.remove(&table).unwrap_or_else(|| panic!("no migration creates {table}"));
        // diesel requires a key even if the database table has none.
        let real = if real.0.is_empty() { (found.0.clone(), real.1) } else { real };
        if found != real {
            drifted.push(format!("{table}: declared {found:?}, migrated {real:?}"));
        }
    }
    assert!(drifted.is_empty(), "{}", drifted.join("\n"));
    let others: Vec<_> =
        migrated.into_keys().filter(|table| !WITHOUT_DSL.contains(&table.as_str())).collect();
    assert!(others.is_empty(), "neither in src/schema.rs nor in WITHOUT_DSL: {others:?}");
}
