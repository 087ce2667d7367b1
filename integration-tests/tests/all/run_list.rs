//! A workspace's runs: filters, pages, and what a run waits for.

use std::time::Duration;

use integration_tests::{AnswerExt, TestService, chat, graphs, until};
use serde_json::{Value, json};

use crate::waiting_runs::{answer, becomes, begin, record};

async fn list(t: &TestService, query: &str) -> Value {
    let listed = t.get(&format!("/api/runs{query}")).await;
    assert_eq!(listed.status, 200, "{query}: {}", listed.text());
    listed.value()
}

fn ids(listed: &Value) -> Vec<String> {
    let runs = listed["data"].as_array().unwrap();
    runs.iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
}

fn id(run: &Value) -> String {
    run["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn runs_of_all_workflows_are_listed_and_filtered() {
    let t = TestService::start().await;
    let good = t.workflow().named("Good").graph(graphs::reply("hi")).published().create().await;
    let failing = json!({"name": "no", "type": "assert", "when": "false", "message": "never"});
    let bad = t.workflow().named("Bad").graph(graphs::chain(&[failing], None)).create().await;
    let ask = json!({"name": "ok", "type": "wait_for_input", "message": "Sure?"});
    let asking = t.workflow().named("Asking").graph(graphs::chain(&[ask], None)).create().await;
    let first = begin(&t, &good, "?wait=60", json!({"message": "a"})).await;
    let second = begin(&t, &bad, "?wait=60", json!({"message": "b"})).await;
    let third = begin(&t, &asking, "?wait=60", json!({"message": "c"})).await;
    assert_eq!(t.chat(&chat::create(&good, "hello")).await.status, 200);
    let all = list(&t, "").await;
    assert_eq!(all["next_cursor"], Value::Null);
    assert_eq!(ids(&all).len(), 4);
    let turn = ids(&all)[0].clone();
    assert_eq!(ids(&all)[1..], [id(&third), id(&second), id(&first)]);
    let shown = &all["data"][2];
    assert_eq!(
        (&shown["workflow_handle"], &shown["status"], &shown["version"]),
        (&json!("bad"), &json!("failed"), &json!(1))
    );
    assert_eq!((&shown["error"]["node"], shown.get("inputs")), (&json!("no"), None));
    assert_eq!((&all["data"][1]["waits"], &all["data"][3]["waits"]), (&json!(true), &json!(false)));
    let thread = all["data"][0]["thread_id"].as_str().unwrap().to_owned();
    for (query, expected) in [
        ("?status=failed", vec![id(&second)]),
        ("?status=failed,waiting", vec![id(&third), id(&second)]),
        ("?workflow=good", vec![turn.clone(), id(&first)]),
        ("?workflow=good&trigger=api", vec![id(&first)]),
        ("?trigger=chat,cron", vec![turn.clone()]),
        ("?waits=true", vec![id(&third)]),
        ("?waits=false&status=waiting", vec![]),
        ("?from=2999-01-01T00:00:00Z", vec![]),
        ("?to=2020-01-01T00:00:00Z", vec![]),
        (&format!("?thread={thread}"), vec![turn.clone()]),
    ] {
        assert_eq!(ids(&list(&t, query).await), expected, "{query}");
    }
    // All pages together have each run once.
    let mut seen = Vec::new();
    let mut query = "?limit=1".to_owned();
    loop {
        let page = list(&t, &query).await;
        seen.extend(ids(&page));
        match page["next_cursor"].as_str() {
            Some(cursor) => query = format!("?limit=1&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(seen, ids(&all));
    // All invalid parameters are reported at once.
    let wrong =
        t.get("/api/runs?status=done&trigger=x&thread=y&from=now&waits=maybe&limit=0&cursor=z&more=1").await;
    let errors = wrong.value()["detail"]["errors"].as_array().unwrap().clone();
    let mut pointers: Vec<&str> = errors.iter().map(|error| error["pointer"].as_str().unwrap()).collect();
    pointers.sort_unstable();
    assert_eq!(wrong.status, 422);
    assert_eq!(pointers, ["/cursor", "/from", "/limit", "/more", "/status", "/thread", "/trigger", "/waits"]);
    assert_eq!(t.get("/api/runs?workflow=gone").await.code(), "workflow.not_found");
    assert_eq!(answer(&t, &third, "ok", json!(1)).await.status, 202);
    becomes(&t, &third, "succeeded").await;
}

#[tokio::test]
async fn an_unchanged_page_is_not_sent_again() {
    let t = TestService::start().await;
    let ask = json!({"name": "ok", "type": "wait_for_input"});
    let workflow = t.workflow().graph(graphs::chain(&[ask], None)).create().await;
    let run = begin(&t, &workflow, "?wait=60", json!({})).await;
    let first = t.get("/api/runs").await;
    let tag = first.header("etag").unwrap().to_owned();
    let known = [("if-none-match", tag.as_str())];
    let again = t.send("GET", "/api/runs", &known, String::new()).await;
    assert_eq!((again.status, again.text().as_str()), (304, ""));
    assert_eq!(answer(&t, &run, "ok", json!(1)).await.status, 202);
    becomes(&t, &run, "succeeded").await;
    assert_eq!(t.send("GET", "/api/runs", &known, String::new()).await.status, 200);
}

#[tokio::test]
async fn other_workspaces_do_not_list_the_runs() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::reply("hi")).create().await;
    begin(&t, &workflow, "?wait=60", json!({"message": "a"})).await;
    assert_eq!(t.post("/api/workspaces", r#"{"slug": "other", "name": "Other"}"#).await.status, 201);
    let other = t.send("GET", "/api/runs", &[("x-workspace", "other")], String::new()).await;
    assert_eq!(other.value()["data"], json!([]));
}

/// Few of many runs match: the pages are short, and together they have all of them.
#[tokio::test]
async fn a_rare_match_is_found_among_many_runs() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::reply("hi")).create().await;
    let rare = begin(&t, &workflow, "?wait=60", json!({"message": "a"})).await;
    t.execute(&format!("UPDATE runs SET status = 'failed' WHERE id = '{}'", id(&rare))).await;
    // Rows like those of 25,000 later runs.
    t.execute(
        "INSERT INTO runs (id, workspace_id, workflow_id, version_id, trigger, writer_id, status, inputs, created_at,
             started_at, finished_at)
         SELECT (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint + 1000 + n), 12, '0') || '7000800000000000'
                 || lpad(to_hex(n), 4, '0'))::uuid,
             workspace_id, workflow_id, version_id, 'api', writer_id, 'succeeded', '{}', now(), now(), now()
         FROM runs, generate_series(1, 25000) AS n",
    )
    .await;
    let (mut query, mut found, mut pages) = ("?status=failed".to_owned(), Vec::new(), 0);
    loop {
        let page = list(&t, &query).await;
        found.extend(ids(&page));
        pages += 1;
        match page["next_cursor"].as_str() {
            Some(cursor) => query = format!("?status=failed&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!((found, pages), (vec![id(&rare)], 3));
}

#[tokio::test]
async fn a_waiting_run_shows_when_it_resumes() {
    let t = TestService::with_manual_clock().await;
    let delay = json!({"name": "wait", "type": "delay", "seconds": 3_600});
    let workflow = t.workflow().graph(graphs::chain(&[delay], None)).create().await;
    let run = t.while_time_passes(begin(&t, &workflow, "?wait=60", json!({}))).await;
    assert_eq!(run["status"], "waiting");
    let shown = record(&t, &run).await;
    assert!(shown["resumes_at"].as_str().unwrap() > shown["created_at"].as_str().unwrap());
    t.advance(Duration::from_secs(3_600));
    let ended = async || record(&t, &run).await["status"] == "succeeded";
    // The next check for due runs may begin its wait only after the jump.
    t.while_time_passes(until("the run ends", ended)).await;
    assert_eq!(record(&t, &run).await["resumes_at"], Value::Null);
}
