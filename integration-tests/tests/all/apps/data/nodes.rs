//! Collection nodes in app runs, and outside of them.

use integration_tests::{AnswerExt, TestService, graphs};
use serde_json::{Map, Value, json};

use super::super::runs::{Published, frozen, release};
use super::open;

/// Creates a record and reads it, then lists the collection.
fn record_graph() -> Value {
    let put = json!({"name": "put", "type": "collection_put", "collection": "likes", "data": {"text": "{{ inputs.text }}"}});
    let again = json!({"name": "again", "type": "collection_put", "collection": "likes", "id": "{{ results.put.record.id }}",
                       "version": "{{ results.put.record.version }}", "data": {"text": "{{ inputs.text }}!"}});
    let get = json!({"name": "get", "type": "collection_get", "collection": "likes", "id": "{{ results.put.record.id }}"});
    let query = json!({"name": "query", "type": "collection_query", "collection": "likes", "limit": 1, "order": "-created_at"});
    let answer = json!({"put": "{{ results.put.record }}", "got": "{{ results.get.record }}", "page": "{{ results.query }}"});
    graphs::chain(&[put, again, get, query], Some(json!({"answer": answer})))
}

/// A graph with this single node.
fn single_node_graph(node: Value) -> Value {
    graphs::chain(&[node], Some(json!({"answer": "{{ results.n }}"})))
}

/// Publishes an app with these workflows and collections.
async fn site<'a>(
    t: &'a TestService,
    bindings: &[(&str, Value)],
    collections: &[(&str, Value)],
) -> Published<'a> {
    let site = Published::new(t, "notes", &[]).await;
    let mut frozen_collections = Map::new();
    for (name, collection) in collections {
        let capabilities = json!({"anonymous": collection["anonymous"], "member": collection["member"]});
        let body =
            json!({"name": name, "kind": collection["kind"], "capabilities": capabilities}).to_string();
        t.post("/api/apps/notes/collections", &body).await.expect(201);
        let id = t.scalar(&format!("SELECT id FROM app_collections WHERE name = '{name}'")).await;
        let schema = collection.get("schema").cloned().unwrap_or_default();
        frozen_collections.insert(
            (*name).to_owned(),
            json!({"id": id, "kind": collection["kind"], "capabilities": capabilities, "schema": schema}),
        );
    }
    let mut all = Map::new();
    for (name, graph) in bindings {
        all.insert((*name).to_owned(), frozen(t, graph.clone(), json!({})).await);
    }
    let collections = Value::Object(frozen_collections);
    t.execute(&release(&site.id, 77, 2, &all, &collections)).await;
    assert_eq!(site.get("/__service/config").await.status, 200);
    site
}

async fn last_error_code(t: &TestService) -> String {
    let sql = "SELECT error::json ->> 'code' FROM runs WHERE error IS NOT NULL ORDER BY id DESC LIMIT 1";
    t.scalar(sql).await
}

#[tokio::test]
async fn a_workflow_stores_and_reads_records_of_its_app() {
    let t = TestService::start().await;
    let other = json!({"name": "n", "type": "collection_get", "collection": "other", "id": "x"});
    let inner = t.workflow().named("Inner").graph(record_graph()).create().await;
    let below = json!({"name": "n", "type": "sub_workflow", "workflow": inner.id, "version": 1, "inputs": {"text": "below"}});
    let bindings =
        [("store", record_graph()), ("other", single_node_graph(other)), ("below", single_node_graph(below))];
    let site = site(&t, &bindings, &[("likes", open())]).await;
    let handle = site.handle("store", "a", &json!({"text": "tea"})).await;
    let ended = site.ended(&handle).await;
    assert_eq!(ended["state"], "succeeded", "{ended} {}", last_error_code(&t).await);
    let answer = &ended["output"]["answer"];
    assert_eq!((&answer["put"]["version"], &answer["put"]["data"]), (&json!(1), &json!({"text": "tea"})));
    assert_eq!((&answer["got"]["version"], &answer["got"]["data"]), (&json!(2), &json!({"text": "tea!"})));
    assert_eq!(answer["page"], json!({"items": [answer["got"]], "next_cursor": null}));
    // The page reads the same record.
    let read = site.get(&format!("/__service/data/likes/{}", answer["put"]["id"].as_str().unwrap())).await;
    assert_eq!((read.status, read.value()), (200, answer["got"].clone()));
    // A sub-workflow acts for the same app.
    let handle = site.handle("below", "b", &json!({})).await;
    let ended = site.ended(&handle).await;
    assert_eq!(ended["state"], "succeeded", "{ended} {}", last_error_code(&t).await);
    assert_eq!(t.scalar("SELECT count(*) FROM app_records").await, "2");
    let handle = site.handle("other", "c", &json!({})).await;
    assert_eq!(site.ended(&handle).await["state"], "failed");
    assert_eq!(last_error_code(&t).await, "collection.not_found");
}

#[tokio::test]
async fn record_errors_in_workflows_have_their_codes() {
    let t = TestService::start().await;
    let none = "018f0000-0000-7000-8000-000000000000";
    let put = |collection: &str, more: Value| {
        let mut node =
            json!({"name": "n", "type": "collection_put", "collection": collection, "data": {"n": "x"}});
        node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        single_node_graph(node)
    };
    let user = json!({"kind": "user", "anonymous": [], "member": ["read"]});
    let mut strict = open();
    strict
        .as_object_mut()
        .unwrap()
        .insert("schema".to_owned(), json!({"properties": {"n": {"type": "integer"}}}));
    let bindings = [
        ("user", put("mine", json!({}))),
        ("missing", put("likes", json!({"id": none, "version": 1}))),
        ("schema", put("strict", json!({}))),
        (
            "conflict",
            graphs::chain(
                &[
                    json!({"name": "a", "type": "collection_put", "collection": "likes", "data": {}}),
                    json!({"name": "n", "type": "collection_put", "collection": "likes", "data": {}, "version": 9,
                       "id": "{{ results.a.record.id }}"}),
                ],
                None,
            ),
        ),
    ];
    let site = site(&t, &bindings, &[("likes", open()), ("mine", user), ("strict", strict)]).await;
    for (binding, code) in [
        ("user", "collection.no_owner"),
        ("missing", "collection.record_not_found"),
        ("schema", "collection.record_invalid"),
        ("conflict", "collection.version_conflict"),
    ] {
        let handle = site.handle(binding, binding, &json!({})).await;
        assert_eq!(site.ended(&handle).await["state"], "failed", "{binding}");
        assert_eq!(last_error_code(&t).await, code, "{binding}");
    }
    t.execute("UPDATE app_collections SET record_count = 10000 WHERE name = 'likes'").await;
    let handle = site.handle("conflict", "full", &json!({})).await;
    assert_eq!(site.ended(&handle).await["state"], "failed");
    assert_eq!(last_error_code(&t).await, "collection.full");
    // A run outside of an app.
    let outside_app = t.workflow().named("Alone").graph(put("likes", json!({}))).create().await;
    let run = t.post(&outside_app.path("/runs?wait=20"), "{}").await.value();
    assert_eq!(run["error"]["code"], "collection.no_app", "{run}");
}
