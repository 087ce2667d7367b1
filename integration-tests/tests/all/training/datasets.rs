//! Stored datasets: created from every source, versioned, used by trainings, and erased with a visitor's data.

use std::time::Duration;

use integration_tests::{Answer, AnswerExt, Echo, JSON, TestService, Workflow, graphs, until};
use serde_json::{Value, json};
use wire::chat::FeedbackKind::{Negative, Positive};

use super::{CASES, Run, SEED, cases, label, post, prompts, runs_of, sorting, workflow};

fn datasets_of(workflow: &str) -> String {
    format!("/api/workflows/{workflow}/datasets")
}

async fn created(t: &TestService, workflow: &str, body: Value) -> Value {
    post(&t.anonymous(), &datasets_of(workflow), &body).await.expect(201).value()
}

/// The cases in a dataset.
async fn listed(t: &TestService, workflow: &str, dataset: &str, query: &str) -> Vec<Value> {
    let answer = t.get(&format!("{}/{dataset}/cases{query}", datasets_of(workflow))).await.expect(200);
    answer.value()["data"].as_array().unwrap().clone()
}

async fn sent(t: &TestService, path: &str, kind: &str, body: &str) -> Answer {
    t.send("POST", path, &[("content-type", kind)], body).await
}

/// A training request with a stored dataset.
fn using(dataset: Value, optimizer: Value) -> Value {
    json!({"training": {"dataset": dataset, "evaluators": label(), "optimizer": optimizer}})
}

/// An evaluation request with a stored dataset.
fn evaluating(dataset: Value) -> Value {
    json!({"evaluation": {"dataset": dataset, "evaluators": label()}})
}

#[tokio::test]
async fn the_same_cases_in_any_format_are_the_same_dataset() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().create().await.id;
    let path = datasets_of(&workflow);
    let list = json!([{"id": "a", "inputs": {"message": "Hi, you"}, "expected_output": "x"},
                      {"id": "b", "inputs": {"message": "Bye"}, "metadata": {"split": "test"}}]);
    let of_list = created(&t, &workflow, json!({"name": "list", "cases": list})).await;
    let shown = ["name", "version", "n_cases", "skipped"].map(|name| of_list[name].clone());
    assert_eq!(shown, [json!("list"), json!(1), json!(2), json!(0)]);
    let lines = list.as_array().unwrap().iter().map(|case| format!("{case}\n")).collect::<String>();
    let of_lines = sent(&t, &format!("{path}?name=lines"), "application/x-ndjson", &lines).await;
    let csv = "\u{feff}id,message,expected_output,split\na,\"Hi, you\",x,\nb,Bye,,test\n";
    let of_csv = sent(&t, &format!("{path}?name=c%2Fsv"), "text/csv; charset=utf-8", csv).await;
    for answer in [&of_lines, &of_csv] {
        assert_eq!(answer.status, 201, "{}", answer.text());
        assert_eq!(answer.value()["fingerprint"], of_list["fingerprint"]);
    }
    assert_eq!(listed(&t, &workflow, "list", "").await, *list.as_array().unwrap());
    let by_id = t.get(&format!("{path}/{}", of_list["id"].as_str().unwrap())).await.value();
    assert_eq!((&by_id["name"], &by_id["skipped"]), (&json!("list"), &Value::Null));
    assert_eq!(t.get(&format!("{path}/c%2Fsv")).await.value()["name"], "c/sv");
    // Created once, however often the request with its key is sent.
    let once = json!({"name": "once", "cases": []}).to_string();
    let keyed = [JSON, ("idempotency-key", "k")];
    let (first, again) =
        (t.send("POST", &path, &keyed, &once).await, t.send("POST", &path, &keyed, &once).await);
    assert_eq!((first.status, first.value()), (201, again.value()));
    let names = |list: &Value| -> Vec<String> {
        let entries = list["data"].as_array().unwrap().iter();
        entries.map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    };
    let (first, mut all) = (t.get(&format!("{path}?limit=3")).await.value(), Vec::new());
    all.extend(names(&first));
    let next = first["next_cursor"].as_str().unwrap();
    all.extend(names(&t.get(&format!("{path}?limit=3&cursor={next}")).await.value()));
    assert_eq!(all, ["once", "c/sv", "lines", "list"]);
}

#[tokio::test]
async fn equal_cases_create_no_new_dataset_version() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().create().await.id;
    let case = |n: usize| json!({"id": n.to_string(), "inputs": {"n": n}});
    let of = |range: std::ops::Range<usize>| json!(range.map(case).collect::<Vec<_>>());
    created(&t, &workflow, json!({"name": "d", "cases": of(0..5)})).await;
    let versions = format!("{}/d/versions", datasets_of(&workflow));
    for (cases, status, version, count, unchanged) in [
        (of(0..5), 200, 1, 5, 5),
        (of(1..3), 201, 2, 2, 2),
        (of(0..5), 201, 3, 5, 2),
        (json!([]), 201, 4, 0, 0),
    ] {
        let answer = post(&t.anonymous(), &versions, &json!({"cases": cases})).await;
        assert_eq!(answer.status, status, "{}", answer.text());
        assert_eq!(
            (&answer.value()["version"], &answer.value()["n_cases"]),
            (&json!(version), &json!(count))
        );
        assert_eq!(
            (&answer.value()["is_new"], &answer.value()["unchanged"]),
            (&json!(status == 201), &json!(unchanged))
        );
    }
    let ids = |cases: Vec<Value>| {
        cases.iter().map(|case| case["id"].as_str().unwrap().to_owned()).collect::<String>()
    };
    for (query, expected) in
        [("?version=1", "01234"), ("?version=2", "12"), ("?version=3", "01234"), ("", "")]
    {
        assert_eq!(ids(listed(&t, &workflow, "d", query).await), expected, "{query}");
    }
    let page = t.get(&format!("{}/d/cases?version=1&limit=3", datasets_of(&workflow))).await.value();
    let next = page["next_cursor"].as_str().unwrap();
    let rest = listed(&t, &workflow, "d", &format!("?version=1&limit=3&cursor={next}")).await;
    assert_eq!((page["data"].as_array().unwrap().len(), ids(rest)), (3, "34".to_owned()));
    assert_eq!(t.scalar("SELECT count(*) FROM dataset_cases").await, "5", "each content once");
    let missing = t.get(&format!("{}/d/cases?version=5", datasets_of(&workflow))).await;
    assert_eq!(missing.refusal(), "404 dataset.not_found");
}

#[tokio::test]
async fn invalid_datasets_are_rejected_with_all_problems_and_not_stored() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().create().await.id;
    let path = datasets_of(&workflow);
    created(&t, &workflow, json!({"name": "taken", "cases": cases(1)})).await;
    let (one, many) = (cases(1), vec![json!({}); 300]);
    let mut others: Vec<String> = Vec::new();
    for (body, refusal, problems) in [
        (json!({}), "422 request.invalid", "/name required, /cases required"),
        (json!({"name": "taken", "cases": one}), "409 dataset.name_taken", ""),
        (json!({"name": "x", "cases": 1}), "422 request.invalid", "/cases type"),
        (
            json!({"name": "x", "cases": [{"inputs": {}}, {"id": "0", "inputs": {}}]}),
            "422 request.invalid",
            "/cases/1/id duplicate",
        ),
        (
            json!({"name": "x", "cases": [{"inputs": 1}, {}]}),
            "422 request.invalid",
            "/cases/0/inputs type, /cases/1/inputs required",
        ),
        (
            json!({"name": "x", "cases": [{"inputs": {"t": "x".repeat(1 << 20)}}]}),
            "422 request.invalid",
            "/cases/0 size",
        ),
        (json!({"name": "x\ny", "cases": one}), "422 request.invalid", "/name format"),
        (json!({"name": "x".repeat(129), "cases": one}), "422 request.invalid", "/name length"),
        (
            json!({"name": "0198c2f4-0000-7c88-9d21-3f4a5b6c7d8e", "cases": one}),
            "422 request.invalid",
            "/name format",
        ),
        (json!({"name": "x", "cases": one, "from": {"runs": {}}}), "422 request.invalid", "/from conflict"),
        (json!({"name": "x", "from": {}}), "422 request.invalid", "/from required"),
        (
            json!({"name": "x", "from": {"runs": {}, "feedback": {}}}),
            "422 request.invalid",
            "/from/runs conflict",
        ),
        (
            json!({"name": "x", "from": {"runs": {"limit": 0, "status": "running", "x": 1}}}),
            "422 request.invalid",
            "/from/runs/limit range, /from/runs/status type, /from/runs/x unknown_field",
        ),
        (
            json!({"name": "x", "from": {"feedback": {"kind": "good", "from": "today"}}}),
            "422 request.invalid",
            "/from/feedback/from type, /from/feedback/kind type",
        ),
        (json!({"name": "x", "from": {"feedback": {}}}), "422 request.invalid", "/from dataset_empty"),
        (json!({"name": "x", "from": {"runs": {}}}), "422 request.invalid", "/from dataset_empty"),
        (json!({"name": "x", "cases": one, "case": 1}), "422 request.invalid", "/case unknown_field"),
    ] {
        let answer = post(&t.anonymous(), &path, &body).await;
        let (mut found, mut expected) = (answer.problems(), Vec::new());
        expected.extend(problems.split(", ").filter(|problem| !problem.is_empty()));
        found.sort();
        expected.sort_unstable();
        if (answer.refusal().as_str(), &found)
            != (refusal, &expected.iter().map(|it| (*it).to_owned()).collect())
        {
            others.push(format!("{refusal} {expected:?}, but {}", answer.text()));
        }
    }
    assert_eq!(others, [""; 0], "as expected");
    let wrong = post(&t.anonymous(), &path, &json!({"name": "x", "cases": many})).await;
    assert!((1..=101).contains(&wrong.problems().len()), "problems are not as many as cases");
    for (query, kind, body, expected) in [
        ("", "text/csv", "a\n1\n", "422 request.invalid /name required"),
        ("?name=x", "text/csv", "a,b\n1\n", "422 request.invalid /lines/2 cells"),
        ("?name=x", "application/x-ndjson", "{\n", "422 request.invalid /lines/1 json"),
        ("?name=x", "application/x-ndjson", "", "422 request.invalid  dataset_empty"),
        ("?name=x&limit=1", "text/csv", "a\n1\n", "422 request.invalid /limit unknown_parameter"),
        ("?name=..", "text/csv", "a\n1\n", "422 request.invalid /name format"),
        ("", "text/plain", "a\n1\n", "415 request.unsupported_media_type "),
    ] {
        let answer = sent(&t, &format!("{path}{query}"), kind, body).await;
        let refusal = format!("{} {}", answer.refusal(), answer.problems().join(", "));
        assert_eq!(refusal, expected, "{query} {kind} {}", answer.text());
    }
    assert_eq!(t.scalar("SELECT count(*) FROM datasets").await, "1");
    assert_eq!(t.scalar("SELECT count(*) FROM dataset_entries").await, "1");
    for at in ["/none", "/none/cases", "/a%00b"] {
        assert_eq!(t.get(&format!("{path}{at}")).await.refusal(), "404 dataset.not_found", "{at}");
    }
    let other = t.workflow().echo().create().await.id;
    assert_eq!(t.get(&format!("{}/taken", datasets_of(&other))).await.refusal(), "404 dataset.not_found");
}

#[tokio::test]
async fn a_training_uses_a_version_and_its_first_cases() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await.id);
    let made = created(&t, &workflow, json!({"name": "all", "cases": cases(CASES.len())})).await;
    let versions = format!("{}/all/versions", datasets_of(&workflow));
    assert_eq!(post(&client, &versions, &json!({"cases": cases(3)})).await.status, 201);
    let run =
        Run::start(&client, &workflow, &using(json!({"id": made["id"], "version": 1}), json!({"epochs": 1})))
            .await;
    let record = run.becomes("succeeded").await;
    assert_eq!(
        (&record["dataset"]["id"], &record["dataset"]["version"], &record["dataset"]["n_cases"]),
        (&made["id"], &json!(1), &json!(24))
    );
    assert_eq!(
        (&record["outcome"], &record["dataset"]["fingerprint"]),
        (&json!("improved"), &made["fingerprint"])
    );
    // A run cannot use a dataset's id.
    let mut taken = super::evaluation(1, json!({}));
    taken["run_id"] = made["id"].clone();
    let refused = post(&client, &runs_of(&workflow), &taken).await;
    assert_eq!(refused.refusal(), "422 idempotency.key_reused");
    taken["evaluation"]["dataset"] = json!({"id": "all"});
    let refused = post(&client, &runs_of(&workflow), &taken).await;
    assert_eq!(refused.refusal(), "422 idempotency.key_reused");
    assert_eq!(listed(&t, &workflow, "all", "?version=1&limit=200").await.len(), 24);
    // Its name selects the latest version, and `max_cases` its first cases.
    let mut request = evaluating(json!({"id": "all"}));
    request["evaluation"]["max_cases"] = json!(2);
    let latest = Run::start(&client, &workflow, &request).await.becomes("succeeded").await;
    assert_eq!((&latest["dataset"]["version"], &latest["dataset"]["n_cases"]), (&json!(2), &json!(2)));
    for (dataset, problem) in [
        (json!({"id": "none"}), "/evaluation/dataset/id dataset_not_found"),
        (json!({"id": "all", "version": 9}), "/evaluation/dataset/version dataset_not_found"),
    ] {
        let answer = post(&client, &runs_of(&workflow), &evaluating(dataset)).await;
        assert_eq!(
            (answer.refusal().as_str(), answer.problems().join(", ").as_str()),
            ("422 request.invalid", problem)
        );
    }
    created(&t, &workflow, json!({"name": "empty", "cases": []})).await;
    let empty = post(&client, &runs_of(&workflow), &evaluating(json!({"id": "empty"}))).await;
    assert_eq!(empty.problems(), ["/evaluation/dataset/id dataset_empty"]);
    // A deleted dataset stays available to its runs.
    t.send("DELETE", &format!("{}/all", datasets_of(&workflow)), &[], "").await.expect(204);
    assert_eq!(t.get(&format!("{}/all", datasets_of(&workflow))).await.refusal(), "404 dataset.not_found");
    let shown = t.get(&format!("{}/cases?limit=1", run.path)).await.value();
    assert_eq!(shown["data"][0]["inputs"]["message"], CASES[0].0);
    created(&t, &workflow, json!({"name": "all", "cases": []})).await;
}

/// Replies to a message with its label, also in the chat.
async fn published(t: &TestService) -> Workflow {
    let mut graph = sorting("practice/classify");
    let say = json!({"name": "say", "type": "reply", "text": "{{ results.sort.text }}"});
    graph["nodes"].as_array_mut().unwrap().push(say);
    graph["edges"] =
        json!([{"from": "START", "to": "sort"}, {"from": "sort", "to": "say"}, {"from": "say", "to": "END"}]);
    t.workflow().graph(graph).config(prompts(SEED)).published().create().await
}

/// Replies to a new thread's message and rates the reply as its visitor: thumbs down with the right label, if it was
/// wrong.
async fn rated(t: &TestService, workflow: &Workflow, message: &str, right: &str) -> bool {
    let client = t.visitor();
    let thread = client.say(&workflow.id, message).await.unwrap().thread_id;
    let items = client.thread(&workflow.id, &thread).await.unwrap().items.data;
    let is_right = serde_json::to_string(&items[1]).unwrap().contains(&format!("\"{right}\""));
    let rating = if is_right { (Positive, None) } else { (Negative, Some(right)) };
    client.feedback(&workflow.id, &thread, &[items[1].id().to_owned()], rating.0, rating.1).await.unwrap();
    is_right
}

#[tokio::test]
async fn negative_feedback_becomes_a_dataset_that_improves_answers() {
    let t = TestService::start().await;
    let client = t.anonymous();
    let workflow = published(&t).await;
    let mut right = 0;
    for (message, expected) in CASES.iter().copied() {
        right += usize::from(rated(&t, &workflow, message, expected).await);
    }
    assert!(right < CASES.len() / 2, "{right} answers are right before the training");
    let negative =
        created(&t, &workflow.id, json!({"name": "bad", "from": {"feedback": {"kind": "negative"}}})).await;
    assert_eq!((&negative["n_cases"], &negative["skipped"]), (&json!(CASES.len() - right), &json!(0)));
    created(&t, &workflow.id, json!({"name": "all", "from": {"feedback": {}}})).await;
    // The owner turns the visitors' comments into expected outputs.
    let mut cases = listed(&t, &workflow.id, "all", "?limit=200").await;
    for case in &mut cases {
        if case["expected_output"].is_null() {
            case["expected_output"] = case["metadata"]["comment"].clone();
        }
        case["metadata"].as_object_mut().unwrap().remove("messages");
    }
    let versions = format!("{}/all/versions", datasets_of(&workflow.id));
    assert_eq!(post(&client, &versions, &json!({"cases": cases})).await.status, 201);
    let run = Run::start(&client, &workflow.id, &using(json!({"id": "all"}), json!({"epochs": 3}))).await;
    let record = run.becomes("succeeded").await;
    assert_eq!(record["outcome"], "improved", "{record}");
    let checkpoints = t.get(&super::checkpoints_of(&workflow.id)).await.value();
    let best =
        checkpoints.as_array().unwrap().iter().find(|it| it["id"] == record["best_checkpoint"]).unwrap();
    let (versions, promoted) = (workflow.path("/versions"), json!({"checkpoint": best["id"]}));
    assert_eq!(post(&client, &versions, &promoted).await.status, 201);
    let mut better = 0;
    for (message, expected) in CASES.iter().copied() {
        better += usize::from(rated(&t, &workflow, message, expected).await);
    }
    assert!(better >= right + 6, "{right} answers were right, now {better}");
}

#[tokio::test]
async fn erased_visitor_data_is_removed_from_datasets() {
    let t = TestService::builder().manual_clock().start().await;
    let workflow = published(&t).await;
    for (message, expected) in [("The secret parcel 4711", "shipping"), ("My invoice is wrong", "billing")] {
        t.while_time_passes(rated(&t, &workflow, message, expected)).await;
    }
    created(&t, &workflow.id, json!({"name": "all", "from": {"feedback": {}}})).await;
    let thread = t.scalar("SELECT thread_id FROM runs WHERE inputs LIKE '%4711%'").await;
    // Runs are kept for a shorter time than threads.
    t.execute("DELETE FROM runs").await;
    t.execute(&format!("UPDATE threads SET deleted_at = '2020-01-01' WHERE id = '{thread}'")).await;
    let query = "SELECT count(*) FROM dataset_cases WHERE content LIKE '%4711%'";
    assert_eq!(t.scalar(query).await, "1");
    let emptied = until("the case is empty", async || t.scalar(query).await == "0");
    t.while_time_passes_in(Duration::from_secs(600), emptied).await;
    let cases = listed(&t, &workflow.id, "all", "").await;
    let marks: Vec<bool> = cases.iter().map(|case| case["erased"] == true).collect();
    assert_eq!((cases.len(), marks.iter().filter(|mark| **mark).count()), (2, 1), "{cases:?}");
    // Later runs leave the erased case out.
    let (client, request) = (t.anonymous(), evaluating(json!({"id": "all"})));
    let run = t.while_time_passes(Run::start(&client, &workflow.id, &request)).await;
    let record = t.while_time_passes(run.becomes("succeeded")).await;
    assert_eq!((&record["dataset"]["n_cases"], &record["dataset"]["id"]), (&json!(1), &Value::Null));
}

#[tokio::test]
async fn a_case_from_a_run_repeats_only_model_calls() {
    let echo = Echo::start().await;
    let t = TestService::builder().set("SERVICE_EGRESS_ALLOW", echo.allow()).start().await;
    let client = t.anonymous();
    let ask = json!({"name": "ask", "type": "wait_for_input", "key": "sure", "message": "Sure?"});
    let look = json!({"name": "look", "type": "http_request", "url": echo.url("/")});
    let tell = json!({"name": "tell", "type": "template", "template": "{{ inputs.message }} {{ results.look.status }}"});
    let graph = graphs::chain(&[ask, look, tell], Some(json!("{{ results.tell.text }}")));
    let workflow = t.workflow().graph(graph).create().await.id;
    created(&t, &workflow, json!({"name": "kept", "cases": []})).await;
    let started =
        post(&client, &format!("/api/workflows/{workflow}/runs"), &json!({"inputs": {"message": "Hi"}}))
            .await;
    let run = started.value()["id"].as_str().unwrap().to_owned();
    let keep = async |body: Value| post(&client, &format!("/api/runs/{run}/case"), &body).await;
    assert_eq!(keep(json!({"dataset": "kept"})).await.refusal(), "409 run.not_ended");
    until("the question", async || {
        let answered = post(&client, &format!("/api/runs/{run}/inputs/sure"), &json!({"yes": true})).await;
        answered.status == 202
    })
    .await;
    until("the run ends", async || t.get(&format!("/api/runs/{run}")).await.value()["status"] == "succeeded")
        .await;
    assert_eq!(keep(json!({"dataset": "none"})).await.refusal(), "404 dataset.not_found");
    assert_eq!(keep(json!({"split": "x"})).await.problems(), ["/dataset required", "/split type"]);
    let stored = keep(json!({"dataset": "kept", "split": "val"})).await.expect(201);
    assert_eq!((&stored.value()["version"], &stored.value()["case_id"]), (&json!(2), &json!(run)));
    let again = keep(json!({"dataset": "kept"})).await;
    assert_eq!((again.status, again.value()), (200, stored.value()));
    let case = listed(&t, &workflow, "kept", "").await.remove(0);
    // The expected output can be corrected: that creates the same case in a newer version.
    let corrected = keep(json!({"dataset": "kept", "expected_output": "other", "split": "val"})).await;
    assert_eq!((corrected.status, &corrected.value()["version"]), (201, &json!(3)));
    let newer = listed(&t, &workflow, "kept", "").await;
    assert_eq!(
        (newer.len(), &newer[0]["id"], &newer[0]["expected_output"]),
        (1, &json!(run), &json!("other"))
    );
    assert_eq!(listed(&t, &workflow, "kept", "?version=2").await, std::slice::from_ref(&case));
    let back =
        keep(json!({"dataset": "kept", "expected_output": case["expected_output"], "split": "val"})).await;
    assert_eq!(back.value()["version"], 4);
    assert_eq!((&case["id"], &case["inputs"]), (&json!(run), &json!({"message": "Hi"})));
    let metadata = &case["metadata"];
    assert_eq!((&metadata["run_id"], &metadata["split"]), (&json!(run), &json!("val")));
    assert_eq!(metadata["answers"]["sure"]["yes"], true, "{metadata}");
    assert_eq!(metadata["mocks"]["look"]["status"], 200, "{metadata}");
    // Models and services are not called: the output is the run's output.
    let evaluation = Run::start(&client, &workflow, &evaluating(json!({"id": "kept"}))).await;
    let record = evaluation.becomes("succeeded").await;
    assert_eq!(record["best_score"], 1.0, "{record}");
    // Cases can also be created from the run list.
    let made = created(&t, &workflow, json!({"name": "runs", "from": {"runs": {"limit": 5}}})).await;
    assert_eq!((&made["n_cases"], &made["skipped"]), (&json!(1), &json!(0)));
}
