//! `postgres_query`: the queries sent, and the secrecy of the DSN.

use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::{MemoryJournal, alone, plan};
use crate::world::{World, refused};

const DSN: &str = "postgres://app:canary%2F1@db.test:5433/orders";

fn node(more: Value) -> Value {
    let mut node = json!({"name": "q", "type": "postgres_query", "dsn": "[[db]]", "query": "SELECT $1, $2"});
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

fn world() -> World {
    let world = World::with(MemoryJournal::default()).credential("db", DSN).credential("password", "p/w d");
    world.inputs(json!({"a": "x {{ y }} [[db]]", "list": [1, null]}))
}

#[tokio::test]
async fn a_statement_is_sent_unchanged_with_separate_parameters() {
    let world = world();
    let fields = json!({"parameters": ["{{ inputs.a }}", "{{ inputs.list }}"], "query": "SELECT '{{ inputs.a }}', $1, $2"});
    let done = world.run(&plan(&alone(&node(fields)))).await.unwrap();
    assert_eq!(done, json!({"rows": ["x {{ y }} [[db]]", [1, null]], "count": 2}));
    let (dsn, query) = world.databases.0.lock()[0].clone();
    assert_eq!(dsn, DSN);
    assert_eq!(
        (query.sql.as_str(), query.writes, query.rows),
        ("SELECT '{{ inputs.a }}', $1, $2", false, 1_000)
    );
    assert_eq!(query.time.as_secs(), 30);
    let built = json!({"dsn": "postgres://app:[[password]]@db.test/x", "mode": "write", "max_rows": 7, "timeout_seconds": 2,
                       "parameters": "{{ inputs.list }}"});
    world.run(&plan(&alone(&node(built)))).await.unwrap();
    let (dsn, query) = world.databases.0.lock()[1].clone();
    assert_eq!(dsn, "postgres://app:p%2Fw%20d@db.test/x");
    assert_eq!((query.writes, query.rows, query.time.as_secs(), query.parameters.len()), (true, 7, 2, 2));
    let rows = format!("{:?}", world.journal.rows.lock());
    assert!(!rows.contains("canary") && !rows.contains("p%2Fw"), "{rows}");
}

#[tokio::test]
async fn database_errors_are_reported_without_the_address() {
    let error = world().run(&plan(&alone(&node(json!({"query": "FAIL"}))))).await.unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::PostgresFailed, "[redacted]"));
    let result =
        world().run(&plan(&alone(&node(json!({"parameters": ["it is canary%2F1"]}))))).await.unwrap();
    assert_eq!(result["rows"][0], "it is [redacted]");
    let many = json!({"parameters": "{{ range(1001) | list }}"});
    let error = world().run(&plan(&alone(&node(many)))).await.unwrap_err();
    assert!(error.message.contains("1001 parameters"), "{error}");
}

#[test]
fn fields_are_checked() {
    assert_eq!(
        refused(&json!({"name": "n", "type": "postgres_query"})),
        ["/dsn required", "/query required"]
    );
    assert_eq!(
        refused(&node(json!({"parameters": "x", "mode": "read", "max_rows": 5}))),
        ["/parameters type"]
    );
    assert_eq!(refused(&node(json!({"mode": "rw"}))), ["/mode choice"]);
    assert_eq!(refused(&node(json!({"max_rows": 10_001}))), ["/max_rows range"]);
    assert_eq!(refused(&node(json!({"timeout_seconds": 601}))), ["/timeout_seconds range"]);
    assert_eq!(refused(&node(json!({"query": "x".repeat(65_537)}))), ["/query range"]);
}
