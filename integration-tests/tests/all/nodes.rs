//! The node catalogue over HTTP.

use integration_tests::{AnswerExt, TestService};
use serde_json::{Value, json};

#[tokio::test]
async fn the_catalogue_lists_every_type_and_returns_it_by_name() {
    let t = TestService::start().await;
    let listed = t.get("/api/nodes").await.value();
    assert_eq!(listed["next_cursor"], Value::Null);
    let types = listed["data"].as_array().unwrap().clone();
    assert_eq!(types[0]["name"], "set");
    for kind in &types {
        let name = kind["name"].as_str().unwrap();
        assert_eq!(t.get(&format!("/api/nodes/{name}")).await.value(), *kind);
        assert_eq!(kind["schema"]["properties"]["type"], json!({"const": name}));
        assert_eq!(kind["example"]["type"], name);
        for member in ["group", "summary", "effect", "result"] {
            assert!(kind[member].as_str().is_some_and(|text| !text.is_empty()), "{name} {member}");
        }
    }
    let (mut seen, mut path) = (Vec::new(), "/api/nodes?limit=4".to_owned());
    loop {
        let page = t.get(&path).await.value();
        seen.extend(page["data"].as_array().unwrap().clone());
        match page["next_cursor"].as_str() {
            Some(next) => path = format!("/api/nodes?limit=4&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, types);
}

#[tokio::test]
async fn an_unknown_type_is_404_with_a_suggestion() {
    let t = TestService::start().await;
    for (name, message) in [
        ("replay", "Unknown node type 'replay'; did you mean 'reply'?"),
        ("collection_querry", "Unknown node type 'collection_querry'; did you mean 'collection_query'?"),
    ] {
        let answer = t.get(&format!("/api/nodes/{name}")).await;
        assert_eq!(
            (answer.refusal().as_str(), answer.message().as_str()),
            ("404 node_type.not_found", message)
        );
    }
    assert_eq!(t.get("/api/nodes/%00").await.refusal(), "404 node_type.not_found");
    assert_eq!(t.get("/api/nodes?type=llm").await.problems(), ["/type unknown_parameter"]);
    assert_eq!(t.get("/api/nodes/llm?x=1").await.refusal(), "422 request.invalid");
    assert_eq!(t.get("/api/nodes?cursor=x").await.problems(), ["/cursor format"]);
    assert_eq!(t.post("/api/nodes", "{}").await.refusal(), "405 request.method_not_allowed");
    assert!(t.get("/api/node/llm").await.message().contains("did you mean /api/nodes/llm?"));
}
