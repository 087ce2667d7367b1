//! `collection_get`, `collection_query`, `collection_put`, and agent tools for collections.

use serde_json::{Map, Value, json};
use wire::ErrorCode;

use super::agent::{agent, calls, says, scripted};
use crate::ports::{alone, plan};
use crate::world::{World, refused};

fn node(kind: &str, fields: &Value) -> Value {
    let mut node = json!({"name": "n", "type": kind, "collection": "likes"});
    node.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    node
}

#[tokio::test]
async fn records_are_stored_read_and_replaced() {
    let world = World::new().inputs(json!({"title": "Tea", "version": "1", "id": "r1", "stars": {"n": 5}}));
    let run = async |kind: &str, fields: Value| world.run(&plan(&alone(&node(kind, &fields)))).await;
    let put = run("collection_put", json!({"data": {"title": "{{ inputs.title }}"}})).await.unwrap();
    assert_eq!(put, json!({"record": {"id": "r1", "version": 1, "data": {"title": "Tea"}}}));
    let got = run("collection_get", json!({"id": "{{ inputs.id }}"})).await.unwrap();
    assert_eq!(got, put);
    assert_eq!(run("collection_get", json!({"id": "none"})).await.unwrap(), json!({"record": null}));
    let page = run("collection_query", json!({"limit": 1, "order": "-created_at"})).await.unwrap();
    assert_eq!(page, json!({"items": [put["record"]], "next_cursor": null}));
    world.collections.0.lock()[0].1 = [0; 32];
    let replace =
        json!({"id": "{{ inputs.id }}", "version": "{{ inputs.version }}", "data": "{{ inputs.stars }}"});
    let replaced = run("collection_put", replace.clone()).await.unwrap();
    assert_eq!(replaced["record"], json!({"id": "r1", "version": 2, "data": {"n": 5}}));
    // The same visit in the same run finds its own record; the version does not count.
    assert_eq!(run("collection_put", replace.clone()).await.unwrap(), replaced);
    world.collections.0.lock()[0].1 = [0; 32];
    assert_eq!(run("collection_put", replace).await.unwrap_err().code, ErrorCode::CollectionRecordConflict);
}

#[tokio::test]
async fn records_that_cannot_be_stored_are_an_error() {
    let world = World::new().inputs(json!({"none": null, "list": [1], "word": "x"}));
    let run = async |fields: Value| {
        let error = world.run(&plan(&alone(&node("collection_put", &fields)))).await.unwrap_err();
        (error.code, error.message)
    };
    let (code, message) = run(json!({"data": "{{ inputs.list }}"})).await;
    assert_eq!(code, ErrorCode::NodeFailed);
    assert!(message.contains("'data' must be an object"), "{message}");
    for version in ["{{ inputs.none }}", "{{ inputs.word }}", "0"] {
        let (code, message) = run(json!({"data": {}, "id": "r1", "version": version})).await;
        assert_eq!(code, ErrorCode::NodeFailed);
        assert!(message.contains("'version' must be a whole number"), "{message}");
    }
    let mut elsewhere = node("collection_get", &json!({"id": "r1"}));
    elsewhere.as_object_mut().unwrap().insert("collection".to_owned(), json!("other"));
    let error = world.run(&plan(&alone(&elsewhere))).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::CollectionUnknown);
    assert!(world.collections.0.lock().is_empty());
}

#[test]
fn collection_names_must_be_literals() {
    let with = |fields: Value| refused(&node("collection_put", &fields));
    for name in ["{{ inputs.name }}", "Likes", "-likes", "", &"a".repeat(65)] {
        let mut put = Map::new();
        put.insert("collection".to_owned(), json!(name));
        put.insert("data".to_owned(), json!({}));
        let problems = with(Value::Object(put));
        assert!(problems.iter().any(|problem| problem.contains("collection")), "{name}: {problems:?}");
    }
    assert!(!with(json!({"data": [1]})).is_empty());
    assert!(!with(json!({"data": "text"})).is_empty());
    assert!(!with(json!({"data": {}, "id": "r1"})).is_empty());
    assert!(!with(json!({"data": {}, "version": 1})).is_empty());
}

#[tokio::test]
async fn an_agent_has_a_tool_for_each_collection_verb() {
    let tools = json!({"tools": [{"type": "collection", "collection": "likes", "verbs": ["read", "create", "update"]}]});
    let (world, model) = scripted(vec![
        calls("", &[("c1", "create_likes", json!({"data": {"title": "Tea"}}))]),
        calls("", &[("c2", "update_likes", json!({"id": "r1", "version": 1, "data": {"title": "Mate"}}))]),
        calls("", &[("c3", "get_likes", json!({"id": "r1"})), ("c4", "query_likes", json!({}))]),
        says("Done."),
    ]);
    let answer = world.run(&plan(&alone(&agent(tools)))).await.unwrap();
    assert_eq!(answer["text"], "Done.");
    let errors: Vec<&Value> =
        answer["tool_calls"].as_array().unwrap().iter().map(|call| &call["error"]).collect();
    assert_eq!(errors, [&Value::Null; 4], "{answer}");
    let requests = model.requests.lock();
    let offered: Vec<&str> = requests[0].tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(offered, ["get_likes", "query_likes", "create_likes", "update_likes"]);
    let messages = &requests[3].messages;
    let read: Value = serde_json::from_str(&messages[messages.len() - 2].content).unwrap();
    assert_eq!(read, json!({"record": {"id": "r1", "version": 2, "data": {"title": "Mate"}}}));
}

#[test]
fn a_collection_tool_names_its_collection_and_verbs() {
    let with = |tool: Value| refused(&agent(json!({"tools": [tool]})));
    let tool = |collection: &str, verbs: Value| json!({"type": "collection", "collection": collection, "verbs": verbs});
    assert!(with(tool("likes", json!(["read"]))).is_empty());
    for bad in [json!([]), json!(["delete"]), json!(["read", "read"]), json!("read"), json!(null)] {
        assert!(with(tool("likes", bad.clone())).iter().any(|problem| problem.contains("/verbs")), "{bad}");
    }
    assert!(
        with(tool("{{ inputs.name }}", json!(["read"])))
            .iter()
            .any(|problem| problem.contains("/collection"))
    );
    assert!(
        with(tool(&"a".repeat(60), json!(["read"]))).iter().any(|problem| problem.contains("/collection"))
    );
    let mut named = tool("likes", json!(["read"]));
    named.as_object_mut().unwrap().insert("name".to_owned(), json!("mine"));
    assert!(with(named).iter().any(|problem| problem.contains("/name")));
}
