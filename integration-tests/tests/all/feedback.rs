//! Feedback as the workflow's owner reads it: with copies of the turns, and as dataset cases.

use integration_tests::{AnswerExt, TestService, Workflow, chat, graphs};
use serde_json::{Value, json};
use wire::chat::FeedbackKind::{Negative, Positive};

use crate::questions::{PendingQuestion, desk};

/// A workflow's feedback list for this query.
async fn list_feedback(t: &TestService, workflow: &Workflow, query: &str) -> Value {
    t.get(&format!("/api/workflows/{}/feedback{query}", workflow.id)).await.expect(200).value()
}

/// A workflow's feedback as cases.
async fn cases(t: &TestService, workflow: &Workflow, query: &str) -> Vec<Value> {
    let answer = t.get(&format!("/api/workflows/{}/feedback?format=jsonl{query}", workflow.id)).await;
    assert_eq!(answer.header("content-type").unwrap(), "application/x-ndjson");
    answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn feedback_outlives_its_run_with_the_turns_input_and_output() {
    let t = TestService::start().await;
    let hidden = json!({"name": "note", "type": "hidden", "content": "not for visitors"});
    let say = json!({"name": "say", "type": "reply", "text": "You said: {{ inputs.message }}"});
    let mut graph = graphs::chain(&[hidden, say], None);
    graph["output"] = json!({"said": "{{ inputs.message }}"});
    let workflow = t.workflow().graph(graph).published().create().await;
    let client = t.visitor();
    let thread = client.say(&workflow.id, "o\0ne").await.unwrap().thread_id;
    client.say_in(&workflow.id, &thread, "two").await.unwrap();
    client.say_in(&workflow.id, &thread, "three").await.unwrap();
    let items = client.thread(&workflow.id, &thread).await.unwrap().items.data;
    let ids: Vec<String> = items.iter().map(|item| item.id().to_owned()).collect();
    client.feedback(&workflow.id, &thread, &ids[1..2], Positive, None).await.unwrap();
    let nul = list_feedback(&t, &workflow, "").await["data"][0]["output_text"].clone();
    assert_eq!(nul, "You said: one", "PostgreSQL stores no NUL in a text");
    t.execute("DELETE FROM item_feedback").await;
    let second = &ids[3..4];
    client.feedback(&workflow.id, &thread, second, Negative, Some("  It was order 8.\n")).await.unwrap();
    t.execute("DELETE FROM runs").await;
    let list = list_feedback(&t, &workflow, "").await;
    let entry = &list["data"][0];
    let shown = |name: &str| entry[name].clone();
    assert_eq!(
        (shown("kind"), shown("comment"), shown("thread_id"), shown("item_id"), shown("version")),
        (json!("negative"), json!("It was order 8."), json!(thread), json!(ids[3]), json!(1))
    );
    assert_eq!(entry["author"]["kind"], "visitor");
    assert_eq!(entry["inputs"]["message"], "two");
    assert_eq!(
        entry["messages"],
        json!([
            {"role": "user", "content": "o\0ne"},
            {"role": "assistant", "content": "You said: o\0ne"},
            {"role": "user", "content": "two"},
        ]),
        "the turn's history, without hidden and later items"
    );
    assert_eq!((shown("output"), shown("output_text")), (json!({"said": "two"}), json!("You said: two")));
    assert!(!list.to_string().contains("not for visitors"));
    let case = cases(&t, &workflow, "").await.remove(0);
    assert_eq!((&case["id"], &case["inputs"]), (&entry["id"], &entry["inputs"]));
    assert_eq!(case["expected_output"], Value::Null);
    let metadata = &case["metadata"];
    assert_eq!(
        (&metadata["feedback"], &metadata["human"], &metadata["output"], &metadata["messages"]),
        (&json!("negative"), &json!({"passed": false}), &entry["output"], &entry["messages"])
    );
    // The same words again are the same feedback; other words replace it.
    let id = shown("id");
    client.feedback(&workflow.id, &thread, second, Negative, Some("It was order 8.")).await.unwrap();
    assert_eq!(list_feedback(&t, &workflow, "").await["data"][0]["id"], id);
    client.feedback(&workflow.id, &thread, second, Positive, None).await.unwrap();
    let list = list_feedback(&t, &workflow, "").await;
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
    assert!(list["data"][0]["id"] != id && list["data"][0]["comment"].is_null());
    assert_eq!(list["data"][0]["output_text"], "You said: two", "the copy is kept");
    assert_eq!(cases(&t, &workflow, "").await[0]["expected_output"], "You said: two");
    client.delete_thread(&workflow.id, &thread).await.unwrap();
    assert_eq!(list_feedback(&t, &workflow, "").await["data"], json!([]), "a deleted thread has no feedback");
}

#[tokio::test]
async fn lists_are_filtered_and_paged() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let client = t.visitor();
    for number in 0..5 {
        let thread = client.say(&workflow.id, &format!("hi {number}")).await.unwrap().thread_id;
        let items = client.thread(&workflow.id, &thread).await.unwrap().items.data;
        let answer = [items[1].id().to_owned()];
        let kind = if number == 2 { Negative } else { Positive };
        client.feedback(&workflow.id, &thread, &answer, kind, None).await.unwrap();
    }
    let comments = |list: &Value| -> Vec<Value> {
        list["data"].as_array().unwrap().iter().map(|entry| entry["inputs"]["message"].clone()).collect()
    };
    let (mut all, mut query) = (Vec::new(), "?limit=2".to_owned());
    loop {
        let page = list_feedback(&t, &workflow, &query).await;
        all.extend(comments(&page));
        let Some(next) = page["next_cursor"].as_str() else { break };
        query = format!("?limit=2&cursor={next}");
    }
    assert_eq!(all, ["hi 4", "hi 3", "hi 2", "hi 1", "hi 0"]);
    assert_eq!(comments(&list_feedback(&t, &workflow, "?kind=negative").await), ["hi 2"]);
    assert_eq!(comments(&list_feedback(&t, &workflow, "?version=2").await), [""; 0]);
    assert_eq!(comments(&list_feedback(&t, &workflow, "?version=1").await).len(), 5);
    assert_eq!(comments(&list_feedback(&t, &workflow, "?to=2020-01-01T00:00:00Z").await), [""; 0]);
    assert_eq!(comments(&list_feedback(&t, &workflow, "?from=2020-01-01T00:00:00Z").await).len(), 5);
    assert_eq!(cases(&t, &workflow, "&kind=positive").await.len(), 4);
    for (query, problem) in [
        ("kind=good", "/kind choice"),
        ("format=csv", "/format choice"),
        ("version=0", "/version range"),
        ("from=today", "/from format"),
        ("cursor=x", "/cursor format"),
        ("limt=1", "/limt unknown_parameter"),
    ] {
        let answer = t.get(&format!("/api/workflows/{}/feedback?{query}", workflow.id)).await;
        assert_eq!(
            (answer.refusal().as_str(), answer.problems().concat().as_str()),
            ("422 request.invalid", problem)
        );
    }
    assert_eq!(t.get("/api/workflows/none/feedback").await.refusal(), "404 workflow.not_found");
}

#[tokio::test]
async fn pages_of_large_copies_are_short_and_exports_are_complete() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let client = t.visitor();
    let thread = client.say(&workflow.id, "hi").await.unwrap().thread_id;
    let items = client.thread(&workflow.id, &thread).await.unwrap().items.data;
    client.feedback(&workflow.id, &thread, &[items[1].id().to_owned()], Positive, None).await.unwrap();
    t.execute("UPDATE feedback_turns SET output_text = repeat('x', 3000000)").await;
    t.execute(
        "INSERT INTO item_feedback SELECT thread_id, item_id, author_kind, 'v' || n, kind, created_at,
             (left(id::text, 35) || n)::uuid, workflow_id, run_id, comment, prefix
         FROM item_feedback, generate_series(0, 3) n WHERE right(id::text, 1) <> n::text",
    )
    .await;
    let page = list_feedback(&t, &workflow, "").await;
    assert_eq!(page["data"].as_array().unwrap().len(), 1);
    let next = page["next_cursor"].as_str().unwrap();
    let page = list_feedback(&t, &workflow, &format!("?cursor={next}")).await;
    assert_eq!(page["data"].as_array().unwrap().len(), 1);
    let distinct: std::collections::BTreeSet<String> =
        cases(&t, &workflow, "").await.iter().map(|case| case["id"].to_string()).collect();
    assert_eq!(distinct.len().to_string(), t.scalar("SELECT count(*) FROM item_feedback").await);
}

#[tokio::test]
async fn a_comment_has_at_most_two_thousand_characters() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    for (comment, problem) in [
        (json!("ä".repeat(2_001)), "/params/comment length"),
        (json!("a\u{0}b"), "/params/comment format"),
        (json!(5), "/params/comment type"),
    ] {
        let params =
            json!({"thread_id": "thr_1", "item_ids": ["msg_1"], "kind": "positive", "comment": comment});
        let answer = t.chat(&chat::ask(&workflow, "items.feedback", params)).await;
        assert_eq!(answer.refusal(), "422 chat.invalid_request");
        assert_eq!(answer.problems().concat(), problem);
    }
}

#[tokio::test]
async fn a_continued_turn_is_copied_with_its_own_history() {
    let t = TestService::start().await;
    let question = PendingQuestion::start(&t, desk()).await;
    let workflow = &question.workflow;
    let between = json!({"thread_id": question.thread, "input": chat::input("no order, only a greeting")});
    let yes = json!({"answers": {"ok": {"values": ["yes"]}, "why": {"values": ["broken"]}}});
    assert_eq!(t.chat(&question.submission(yes)).await.status, 200);
    assert_eq!(t.chat(&chat::ask(workflow, "threads.add_user_message", between)).await.status, 200);
    let items = question.items(&t).await;
    let done = items.iter().find(|item| item["content"][0]["text"] == "Refunded: broken.").unwrap();
    let params = json!({"thread_id": question.thread, "item_ids": [done["id"]], "kind": "negative"});
    assert_eq!(t.chat(&chat::ask(workflow, "items.feedback", params)).await.status, 200);
    let messages = list_feedback(&t, workflow, "").await["data"][0]["messages"].clone();
    let contents: Vec<&str> =
        messages.as_array().unwrap().iter().map(|one| one["content"].as_str().unwrap()).collect();
    assert_eq!(contents[..2], ["order 7", "Checking order 7. "], "{messages}");
    assert!(
        contents.len() == 3 && contents[2].contains("yes") && contents[2].contains("broken"),
        "{messages}"
    );
}
