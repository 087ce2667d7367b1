//! Versions: checked, frozen, numbered.

use client::Part;
use insta::assert_snapshot;
use integration_tests::{AnswerExt, JSON, TestService, graphs};
use serde_json::json;

use crate::workflows::tidy;

#[tokio::test]
async fn a_version_is_immutable_and_saving_it_again_returns_it() {
    let t = TestService::start().await;
    let workflow = t.workflow().without_version().create().await;
    let versions = format!("/api/workflows/{}/versions", workflow.handle);
    let body = json!({"graph": graphs::reply("one"), "runnable_config": {"a": 1}, "metadata": {"b": 2}, "notes": "first"});
    let first = t.post(&versions, &body.to_string()).await.expect(201);
    let mut shown = first.value();
    assert_eq!(shown["graph"], body["graph"]);
    let digest = shown["digest"].as_str().unwrap().to_owned();
    assert!(digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase()));
    for member in ["graph", "digest"] {
        shown.as_object_mut().unwrap().remove(member);
    }
    assert_snapshot!(tidy(shown), @r#"
    {
      "created_at": "[time]",
      "created_by": null,
      "draft": false,
      "id": "[id]",
      "live": {
        "reason": "saved",
        "version": 1
      },
      "metadata": {
        "b": 2
      },
      "notes": "first",
      "runnable_config": {
        "a": 1
      },
      "version": 1,
      "workflow_id": "[id]"
    }
    "#);
    let again = t.post(&versions, &body.to_string()).await;
    assert_eq!((again.status, again.value()), (200, first.value()));
    // Another order of members and another config each make another version: models see the order.
    let nodes = graphs::reply("one")["nodes"].clone();
    let edges = graphs::reply("one")["edges"].clone();
    let turned = format!(
        r#"{{"runnable_config": {{"a": 1}}, "graph": {{"nodes": {nodes}, "edges": {edges}, "format": "graph/1"}}}}"#
    );
    let reordered = t.post(&versions, &turned).await;
    assert_eq!((reordered.status, &reordered.value()["version"]), (201, &json!(2)));
    let config = t
        .post(&versions, &json!({"graph": graphs::reply("one"), "runnable_config": {"a": 2}}).to_string())
        .await;
    assert_eq!((config.status, &config.value()["version"]), (201, &json!(3)));
    assert_ne!(config.value()["digest"], digest, "the digest covers the config");
    let mut read = first.value();
    read.as_object_mut().unwrap().remove("live");
    assert_eq!(t.get(&format!("{versions}/1")).await.value(), read);
    assert_eq!(t.get(&workflow.path("")).await.value()["latest_version"], 3);
    assert_eq!(t.get(&format!("{versions}/4")).await.refusal(), "404 version.not_found");
}

#[tokio::test]
async fn versions_are_listed_newest_first_without_large_fields() {
    let t = TestService::start().await;
    let workflow = t.workflow().without_version().create().await;
    let path = format!("/api/workflows/{}/versions", workflow.handle);
    assert_eq!(t.get(&path).await.value(), json!({"data": [], "next_cursor": null}));
    for n in 1..=5 {
        t.post(
            &path,
            &json!({"graph": graphs::reply(&n.to_string()), "notes": format!("no. {n}")}).to_string(),
        )
        .await;
    }
    let all = t.get(&path).await.value();
    assert_eq!(all["next_cursor"], json!(null));
    assert_eq!(all["data"].as_array().unwrap().len(), 5);
    let mut first = all["data"][0].clone();
    assert_eq!(first["digest"], t.get(&format!("{path}/5")).await.value()["digest"]);
    first.as_object_mut().unwrap().remove("digest");
    assert_snapshot!(tidy(first), @r#"
    {
      "created_at": "[time]",
      "created_by": null,
      "draft": false,
      "id": "[id]",
      "notes": "no. 5",
      "version": 5,
      "workflow_id": "[id]"
    }
    "#);
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let listed = t.client().versions(&workflow.id, &Part { limit: Some(2), cursor }).await.unwrap();
        seen.push(listed.data.iter().map(|version| version.version).collect::<Vec<_>>());
        // A version saved meanwhile does not shift the pages.
        t.post(&path, &json!({"graph": graphs::reply(&format!("new {}", seen.len()))}).to_string()).await;
        cursor = listed.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, [vec![Some(5), Some(4)], vec![Some(3), Some(2)], vec![Some(1)]]);
    let of_workflows = t.get("/api/workflows?limit=1").await.header("x-next-cursor").map(str::to_owned);
    assert_eq!(of_workflows, None, "there is one workflow");
    for (query, problems) in [
        ("limit=0", vec!["/limit range"]),
        ("limit=201", vec!["/limit range"]),
        ("limit=x&cursor=x&page=2", vec!["/limit range", "/cursor format", "/page unknown_parameter"]),
        ("cursor=776f726b666c6f77733a31", vec!["/cursor format"]),
    ] {
        let answer = t.get(&format!("{path}?{query}")).await;
        assert_eq!(
            (answer.refusal().as_str(), answer.problems()),
            ("422 request.invalid", problems.iter().map(|p| (*p).to_owned()).collect())
        );
    }
    assert_eq!(t.get("/api/workflows/nobody/versions").await.refusal(), "404 workflow.not_found");
}

#[tokio::test]
async fn versions_saved_at_once_have_numbers_without_gaps() {
    let t = TestService::start().await;
    let workflow = t.workflow().without_version().create().await;
    let path = workflow.path("/versions");
    let save =
        async |text: String| t.post(&path, &json!({"graph": graphs::reply(&text)}).to_string()).await.status;
    let statuses = futures_util::future::join_all((0..6).map(|n| save(n.to_string()))).await;
    assert_eq!(statuses, [201; 6]);
    let mut statuses = futures_util::future::join_all((0..6).map(|_| save("same".to_owned()))).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 201]);
    assert_eq!(
        t.scalar("SELECT string_agg(number::text, ' ' ORDER BY number) FROM workflow_versions").await,
        "1 2 3 4 5 6 7"
    );
}

/// Only the content of the newest version is unchanged: earlier content is a revert, which becomes live.
#[tokio::test]
async fn a_revert_by_upload_is_a_new_live_version() {
    let t = TestService::start().await;
    let workflow = t.workflow().without_version().published().create().await;
    let path = workflow.path("");
    let save = async |text: &str| {
        let body = json!({"graph": graphs::reply(text)});
        let saved = t.post(&format!("{path}/versions"), &body.to_string()).await;
        let live = saved.value()["live"].clone();
        (saved.status, saved.value()["version"].clone(), live["version"].clone(), live["reason"].clone())
    };
    let reply = async || t.visitor().say(&workflow.id, "hi").await.unwrap().text;
    for (number, text) in [(1, "good"), (2, "bad"), (3, "good")] {
        assert_eq!(save(text).await, (201, json!(number), json!(number), json!("saved")));
        assert_eq!(reply().await, text);
    }
    assert_eq!(save("good").await, (200, json!(3), json!(3), json!("saved")));
    // After a rollback, saving the newest content makes it live again.
    assert_eq!(t.post(&format!("{path}/versions/2/live"), "{}").await.status, 200);
    assert_eq!(reply().await, "bad");
    assert_eq!(save("good").await, (200, json!(3), json!(3), json!("restored")));
    assert_eq!(reply().await, "good");
    let rows = "SELECT string_agg(reason, ', ' ORDER BY id) FROM audit_log WHERE action = 'workflow.live_version_set'";
    assert_eq!(t.scalar(rows).await, "from version 3 to 2, saved again: from version 2 to 3");
    // A canary keeps the live version, and the response says so.
    let canary = json!({"canary": {"version": 2, "percent": 10}});
    t.send("PUT", &format!("{path}/rollout"), &[JSON], &canary.to_string()).await.expect(200);
    assert_eq!(save("next").await, (201, json!(4), json!(3), json!("canary")));
    assert_eq!(save("next").await, (200, json!(4), json!(3), json!("canary")));
}

/// Editors find the schema of a graph by `$schema`, which is not part of the graph.
#[tokio::test]
async fn the_schema_hint_of_a_graph_is_not_stored() {
    let t = TestService::start().await;
    let workflow = t.workflow().without_version().create().await;
    let path = workflow.path("/versions");
    let plain = json!({"graph": graphs::reply("hi")});
    let mut hinted = plain.clone();
    hinted["graph"]["$schema"] = json!("https://example.org/graph-1.json");
    let saved = t.post(&path, &hinted.to_string()).await;
    assert_eq!((saved.status, &saved.value()["graph"]), (201, &plain["graph"]), "{}", saved.text());
    let again = t.post(&path, &plain.to_string()).await;
    assert_eq!((again.status, &again.value()["digest"]), (200, &saved.value()["digest"]));
    let checked = t.post("/api/workflows/check", &hinted.to_string()).await;
    assert_eq!(checked.value()["valid"], true);
    // Also if another field is invalid.
    hinted["note"] = json!("x");
    let refused = t.post(&path, &hinted.to_string()).await;
    assert_eq!(refused.problems(), ["/note unknown_field"]);
}

/// A save without a config keeps the prompts of the newest version; an empty config removes them.
#[tokio::test]
async fn a_save_without_a_config_keeps_the_newest_config() {
    let t = TestService::start().await;
    let workflow = t.workflow().without_version().create().await;
    let path = workflow.path("/versions");
    let save = async |body: serde_json::Value| {
        let saved = t.post(&path, &body.to_string()).await;
        let value = saved.value();
        (
            saved.status,
            value["version"].clone(),
            value["runnable_config"].clone(),
            value["config_kept_from"].clone(),
        )
    };
    let (one, two) = (graphs::reply("one"), graphs::reply("two"));
    let config = json!({"prompts": {"answer": {"text": "Be kind."}}});
    let none = json!(null);
    assert_eq!(save(json!({"graph": one})).await, (201, json!(1), none.clone(), none.clone()));
    let with = json!({"graph": one, "runnable_config": config});
    assert_eq!(save(with).await, (201, json!(2), config.clone(), none.clone()));
    assert_eq!(save(json!({"graph": one})).await, (200, json!(2), config.clone(), json!(2)));
    assert_eq!(save(json!({"graph": two})).await, (201, json!(3), config.clone(), json!(2)));
    let null = json!({"graph": two, "runnable_config": null});
    assert_eq!(save(null).await, (200, json!(3), config.clone(), json!(3)));
    let empty = json!({"graph": two, "runnable_config": {}});
    assert_eq!(save(empty).await, (201, json!(4), json!({}), none.clone()));
    assert_eq!(save(json!({"graph": one})).await, (201, json!(5), json!({}), none));
}

#[tokio::test]
async fn all_mistakes_of_a_graph_are_reported() {
    let t = TestService::start().await;
    let workflow = t.workflow().without_version().create().await;
    let graph = json!({"format": "graph/1", "extra": 1, "nodes": [
        {"name": "a", "type": "replay", "text": "x"},
        {"name": "b", "type": "reply"},
        {"name": "b", "type": "reply", "text": "{{ broken"},
        {"name": "c", "type": "delay", "seconds": -1},
        {"name": "d", "type": "reply", "text": "x", "colour": "red"}],
        "edges": [{"from": "START", "to": "a"}, {"from": "a", "to": "nowhere"}]});
    let saved = t.post(&workflow.path("/versions"), &json!({"graph": graph}).to_string()).await;
    assert_eq!(saved.refusal(), "422 graph.invalid");
    let checked = t.post("/api/workflows/check", &json!({"graph": graph}).to_string()).await.expect(200);
    assert_eq!(checked.value()["valid"], false);
    assert_eq!(checked.value()["warnings"], json!([]));
    assert_eq!(
        checked.value()["errors"],
        saved.value()["detail"]["errors"],
        "the same, with and without saving"
    );
    assert_snapshot!(saved.problems().join("\n"), @r#"
    /edges/1/to unknown_node
    /extra unknown_field
    /nodes/0/type unknown_type
    /nodes/1/text required
    /nodes/2/name duplicate
    /nodes/2/text template
    /nodes/3/seconds range
    /nodes/4/colour unknown_field
    "#);
    let suggestion = saved.value()["detail"]["errors"].to_string();
    assert!(suggestion.contains("`reply`") || suggestion.contains("'reply'"), "{suggestion}");
    t.assert_no_rows("workflow_versions").await;
    for graph in [
        json!(null),
        json!([]),
        json!("x"),
        json!({}),
        json!({"format": "graph/2", "nodes": [], "edges": []}),
    ] {
        let answer = t.post("/api/workflows/check", &json!({"graph": graph}).to_string()).await;
        assert_eq!(
            (answer.status, &answer.value()["valid"]),
            (200, &json!(false)),
            "{graph}: {}",
            answer.text()
        );
        let answer = t.post(&workflow.path("/versions"), &json!({"graph": graph}).to_string()).await;
        assert_eq!(answer.refusal(), "422 graph.invalid", "{graph}");
    }
    let fine = t
        .post(
            "/api/workflows/check",
            &json!({"graph": graphs::reply("x"), "runnable_config": {}}).to_string(),
        )
        .await;
    assert_eq!(fine.value(), json!({"valid": true, "errors": [], "warnings": []}));
    for body in ["{}", r#"{"graph": {}, "other": 1}"#] {
        assert_eq!(t.post("/api/workflows/check", body).await.refusal(), "422 request.invalid");
    }
}

#[tokio::test]
async fn an_unusable_config_is_rejected() {
    let t = TestService::start().await;
    let workflow = t.workflow().without_version().create().await;
    let path = workflow.path("/versions");
    let config = json!({"prompts": {"answer": "Be kind.", "sort": {"txet": "x"}}, "recursion_limit": 1000,
                        "tags": "x", "configurable": []});
    let body = json!({"graph": graphs::reply("x"), "runnable_config": config});
    let saved = t.post(&path, &body.to_string()).await;
    assert_eq!(saved.refusal(), "422 request.invalid");
    assert_snapshot!(saved.problems().join("\n"), @r"
    /runnable_config/configurable type
    /runnable_config/tags type
    /runnable_config/recursion_limit range
    /runnable_config/prompts/answer type
    /runnable_config/prompts/sort/text required
    ");
    let checked = t.post("/api/workflows/check", &body.to_string()).await.value();
    assert_eq!(checked["valid"], false);
    assert_eq!(checked["errors"], saved.value()["detail"]["errors"], "the same, with and without saving");
    assert_eq!(checked["warnings"][0]["pointer"], "/runnable_config/prompts/sort/txet");
    // A bad graph and a bad request around both are reported together.
    let both = json!({"graph": {"format": "graph/1"}, "runnable_config": config});
    let saved = t.post(&path, &both.to_string()).await;
    assert_eq!(saved.refusal(), "422 graph.invalid");
    assert_eq!(
        saved.value()["detail"]["errors"],
        t.post("/api/workflows/check", &both.to_string()).await.value()["errors"]
    );
    let all = json!({"graph": {"format": "graph/1"}, "runnable_config": {"tags": 1}, "note": "x"});
    let saved = t.post(&path, &all.to_string()).await;
    assert_eq!(saved.refusal(), "422 request.invalid");
    assert_snapshot!(saved.problems().join("\n"), @r"
    /note unknown_field
    /runnable_config/tags type
    /graph/edges required
    /graph/nodes required
    ");
    t.assert_no_rows("workflow_versions").await;
    // Numbers and member order are stored as received, and make a version.
    let of = |config: &str| format!(r#"{{"graph":{},"runnable_config":{config}}}"#, graphs::reply("x"));
    let config = r#"{"seed":9007199254740993,"late":1,"early":0.5}"#;
    let saved = t.post(&path, &of(config)).await;
    assert!(saved.status == 201 && saved.text().contains(config), "{}", saved.text());
    assert_eq!(t.post(&path, &of(config)).await.value()["id"], saved.value()["id"]);
    for other in
        [config.replace("993,", "992,"), r#"{"seed":9007199254740993,"early":0.5,"late":1}"#.to_owned()]
    {
        let another = t.post(&path, &of(&other)).await;
        assert!(another.status == 201 && another.text().contains(&other), "{}", another.text());
    }
    // Documented fields and plain data are saved unchanged.
    let config = json!({"prompts": {"answer": {"text": "Be kind.", "requires_grad": true, "type": "TextTensor"}},
                        "configurable": {"x": 1}, "recursion_limit": 250, "models": {"fast": "practice/echo"}, "mine": null});
    let body = json!({"graph": graphs::reply("x"), "runnable_config": config});
    let saved = t.post(&path, &body.to_string()).await;
    assert_eq!((saved.status, &saved.value()["runnable_config"]), (201, &config));
}

#[tokio::test]
async fn a_version_has_at_most_8_mib() {
    let t = TestService::start().await;
    let workflow = t.workflow().without_version().create().await;
    let path = workflow.path("/versions");
    let body = |bytes: usize| {
        let empty = json!({"graph": graphs::reply("x"), "metadata": {"fill": ""}}).to_string().len();
        json!({"graph": graphs::reply("x"), "metadata": {"fill": "f".repeat(bytes - empty)}}).to_string()
    };
    assert_eq!(t.post(&path, &body((8 << 20) + 1)).await.refusal(), "413 request.too_large");
    assert_eq!(t.post(&path, &body(8 << 20)).await.status, 201);
}

/// A rollback is one request; a version saved later becomes live.
#[tokio::test]
async fn an_earlier_version_becomes_live_and_a_new_one_replaces_it() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::reply("one")).published().create().await;
    let path = workflow.path("");
    let save = async |text: &str| {
        let saved =
            t.post(&format!("{path}/versions"), &json!({"graph": graphs::reply(text)}).to_string()).await;
        assert_eq!(saved.status, 201, "{}", saved.text());
    };
    let reply = async || t.visitor().say(&workflow.id, "hi").await.unwrap().text;
    let live = async |number: &str| t.post(&format!("{path}/versions/{number}/live"), "{}").await;
    save("two").await;
    save("three").await;
    assert_eq!(reply().await, "three");
    let back = live("1").await.value();
    assert_eq!((&back["live_version"], &back["latest_version"]), (&json!(1), &json!(3)));
    assert_eq!(reply().await, "one");
    let run = t.post(&format!("{path}/runs?wait=10"), r#"{"inputs":{"message":"x"}}"#).await.value();
    assert_eq!(run["version"], 1, "requests that name no version run the live one");
    assert_eq!(live("2").await.status, 200);
    assert_eq!(reply().await, "two");
    assert_eq!(live("2").await.status, 200, "unchanged");
    for nothing in ["9", "0", "x", "01"] {
        assert_eq!(live(nothing).await.refusal(), "404 version.not_found", "{nothing}");
    }
    let unknown = t.post(&format!("{path}/versions/1/live"), r#"{"force":1,"x":2}"#).await;
    assert_eq!(unknown.refusal(), "422 request.invalid");
    save("four").await;
    assert_eq!(reply().await, "four");
    let rows = "SELECT string_agg(reason, ', ' ORDER BY id) FROM audit_log WHERE action = 'workflow.live_version_set'";
    assert_eq!(t.scalar(rows).await, "from version 3 to 1, from version 1 to 2");
    assert_eq!(t.send("DELETE", &path, &[], "").await.status, 200);
    assert_eq!(live("1").await.refusal(), "409 workflow.archived");
}
