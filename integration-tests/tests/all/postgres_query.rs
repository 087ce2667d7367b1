//! `postgres_query` over HTTP: a database from the vault, guarded, without revealing its secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use integration_tests::{AnswerExt, TestService, graphs};
use serde_json::{Value, json};
use store::testing::TestDatabase;

const PASSWORD: &str = "sesame-canary-77x";

async fn service(allow: &[String]) -> TestService {
    let keys = json!({"active": "a", "keys": {"a": STANDARD.encode([1; 32])}});
    TestService::builder()
        .with_bootstrap_token()
        .set("SERVICE_VAULT_KEYS", keys.to_string())
        .set("SERVICE_EGRESS_ALLOW", json!(allow).to_string())
        .start()
        .await
}

async fn run(t: &TestService, node: Value, inputs: Value) -> Value {
    let mut query = json!({"name": "q", "type": "postgres_query", "dsn": "[[orders]]"});
    query.as_object_mut().unwrap().extend(node.as_object().unwrap().clone());
    let graph = graphs::chain(&[query], Some(json!("{{ results.q }}")));
    let workflow = t.workflow().graph(graph).create().await;
    t.root().post(&workflow.path("/runs?wait=30"), &json!({"inputs": inputs})).await.value()
}

#[tokio::test]
async fn a_statement_executes_in_the_database_of_a_credential() {
    let database = TestDatabase::create().await;
    let (dsn, at) = database.over_network().await;
    let t = service(&[at.to_string()]).await;
    let dsn = dsn.replace("postgres@", &format!("postgres:{PASSWORD}@"));
    t.root().post("/api/credentials", &json!({"name": "orders", "secret": dsn})).await.expect(201);
    let insert = json!({"query": "CREATE TABLE orders AS SELECT n AS id, 'a' || n AS who FROM generate_series(1, 3) n",
                        "mode": "write"});
    let done = run(&t, insert, json!({})).await;
    assert_eq!(done["status"], "succeeded", "{done}");
    let select = json!({"query": "SELECT * FROM orders WHERE who = $1", "parameters": ["{{ inputs.who }}"]});
    let found = run(&t, select.clone(), json!({"who": "a2"})).await;
    assert_eq!(found["output"], json!({"rows": [{"id": 2, "who": "a2"}], "count": 1}));
    let injected = run(&t, select, json!({"who": "' OR '1' = '1"})).await;
    assert_eq!(injected["output"], json!({"rows": [], "count": 0}));
    // Statements that cannot be nested in another one.
    let explained = run(&t, json!({"query": "EXPLAIN SELECT * FROM orders"}), json!({})).await;
    assert!(explained["output"]["rows"][0]["QUERY PLAN"].as_str().unwrap().contains("orders"), "{explained}");
    let commented = run(&t, json!({"query": "-- why is it slow?\nEXPLAIN SELECT 1"}), json!({})).await;
    assert_eq!(
        commented["output"]["rows"][0]["QUERY PLAN"].as_str().map(|plan| plan.contains("Result")),
        Some(true),
        "{commented}"
    );
    let formatted = run(&t, json!({"query": "EXPLAIN (FORMAT JSON) SELECT 1"}), json!({})).await;
    assert!(formatted["output"]["rows"][0]["QUERY PLAN"][0]["Plan"].is_object(), "{formatted}");
    let shown = run(&t, json!({"query": "SHOW search_path"}), json!({})).await;
    assert_eq!(shown["output"]["count"], 1, "{shown}");
    let moved = "WITH gone AS (DELETE FROM orders WHERE id = $1 RETURNING id, who), back AS (INSERT INTO orders SELECT * FROM gone)
                 SELECT id, who, 1.5::float8 AS f, 0.1::real AS r, 'Infinity'::float8 AS i, true AS b, NULL::int AS n FROM gone";
    let moved = run(&t, json!({"query": moved, "mode": "write", "parameters": [3]}), json!({})).await;
    assert_eq!(
        moved["output"],
        json!({"rows": [{"id": 3, "who": "a3", "f": 1.5, "r": 0.1, "i": "Infinity", "b": true, "n": null}], "count": 1}),
        "{moved}"
    );
    let plain =
        run(&t, json!({"query": "WITH a AS (SELECT 1 AS n) SELECT n, now() AS at FROM a"}), json!({})).await;
    assert_eq!(plain["output"]["rows"][0]["n"], 1, "{plain}");
    // A column may have any name, even one that the service's own statements use.
    let named = run(&t, json!({"query": "SELECT 1 AS answer, 2 AS row, 3 AS rows"}), json!({})).await;
    assert_eq!(named["output"]["rows"], json!([{"answer": 1, "row": 2, "rows": 3}]), "{named}");
    for (query, code) in [
        (
            json!({"query": "WITH a AS (DELETE FROM orders RETURNING 1) SELECT now() AS at FROM a", "mode": "write"}),
            "postgres.failed",
        ),
        (json!({"query": "WITH a AS (DELETE FROM orders RETURNING id) SELECT id FROM a"}), "postgres.failed"),
        (json!({"query": "DELETE FROM orders"}), "postgres.failed"),
        (json!({"query": "SELECT * FROM nothing"}), "postgres.failed"),
        (json!({"query": "SELECT * FROM orders", "max_rows": 2}), "postgres.too_large"),
        (json!({"query": "SELECT pg_sleep(9)", "timeout_seconds": 0.2}), "node.timeout"),
        (json!({"query": "SELECT 1", "dsn": "postgres://x@127.0.0.1:1/z"}), "egress.refused"),
        (json!({"query": "SELECT 1", "dsn": "host=/tmp user=x"}), "egress.refused"),
    ] {
        let failed = run(&t, query.clone(), json!({})).await;
        assert_eq!(failed["error"]["code"], code, "{query}: {failed}");
    }
    // The password is redacted from results, as is the address.
    let echo = json!({"query": "SELECT $1::text AS told", "parameters": [format!("it is {PASSWORD}")]});
    let echoed = run(&t, echo, json!({})).await;
    assert_eq!(echoed["output"]["rows"][0]["told"], "it is [redacted]");
    assert_eq!(database.scalar("SELECT count(*) FROM orders").await, "3");
    let stored = t.scalar("SELECT string_agg(s::text, ' ') FROM run_steps s").await;
    assert!(!stored.contains(&at.to_string()), "{stored}");
}

#[tokio::test]
async fn a_private_database_address_is_refused() {
    let database = TestDatabase::create().await;
    let (dsn, _) = database.over_network().await;
    let t = service(&[]).await;
    let made = t.root().post("/api/credentials", &json!({"name": "orders", "secret": dsn})).await;
    assert_eq!(made.status, 201);
    let failed = run(&t, json!({"query": "SELECT 1"}), json!({})).await;
    assert_eq!(failed["error"]["code"], "egress.refused", "{failed}");
}

#[tokio::test]
async fn rows_keep_the_value_of_their_numbers() {
    let database = TestDatabase::create().await;
    let (dsn, at) = database.over_network().await;
    let t = service(&[at.to_string()]).await;
    t.root().post("/api/credentials", &json!({"name": "orders", "secret": dsn})).await;
    let select =
        "SELECT 1 AS zz, 9007199254740993 AS big, 12.50::numeric AS a, '{\"z\": 1, \"a\": 2}'::json AS doc";
    let found = run(&t, json!({"query": select}), json!({})).await;
    let row = &found["output"]["rows"][0];
    assert_eq!(
        *row,
        json!({"zz": 1, "big": 9_007_199_254_740_993_u64, "a": 12.5, "doc": {"z": 1, "a": 2}}),
        "{found}"
    );
    for number in ["0.1234567890123456789", "0.10000000000000001", "123456789012345678901"] {
        let exact = run(&t, json!({"query": format!("SELECT {number}::numeric AS amount")}), json!({})).await;
        let message = exact["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(&format!("the number {number} would be rounded")), "{exact}");
        let text =
            run(&t, json!({"query": format!("SELECT {number}::numeric::text AS amount")}), json!({})).await;
        assert_eq!(text["output"]["rows"][0]["amount"], number, "{text}");
    }
}
