//! Rescoring that ends before all results are judged.

use std::time::Duration;

use integration_tests::{AnswerExt, Client, TestService, until};
use kernel::{Clock, SystemClock};
use serde_json::{Value, json};

use super::judge::{JudgeReply, JudgeServer};
use super::services::{by_service, service};
use super::{Run, evaluation, only, payloads, post, steps, workflow};

/// Cases of the rescored run, and the number that the judge answers.
const CASES: usize = 8;
const ANSWERED: usize = 3;

/// A judge that answers the first requests, and a rescoring that waits for its next answer.
async fn stuck_rescoring() -> (JudgeServer, TestService, Run) {
    let judge = JudgeServer::start(|number, _| match number <= ANSWERED {
        true => JudgeReply::Verdict(json!(0.5)),
        false => JudgeReply::Nothing,
    })
    .await;
    let (t, client) = service(&judge).await;
    let workflow = workflow(&t, "practice/classify").await;
    let origin = Run::start(&client, &workflow.id, &evaluation(CASES, json!({}))).await;
    origin.becomes("succeeded").await;
    let body = json!({"evaluators": by_service(&judge.url())});
    let answer = post(&client, &format!("{}/rescore", origin.path), &body).await.expect(202);
    let run = Run::existing(&client, &workflow.id, answer.value()["id"].as_str().unwrap());
    until("the judge does not answer", async || judge.requests().len() > ANSWERED).await;
    until("verdicts are stored", async || judged_cases(&client, &run).await == ANSWERED).await;
    (judge, t, run)
}

/// Number of judged cases.
async fn judged_cases(client: &Client, run: &Run) -> usize {
    let cases = super::get(client, &format!("{}/cases?limit=200", run.path)).await.value();
    cases["data"].as_array().unwrap().len()
}

/// Asserts that the run has ended for this reason with the verdicts so far, without a model call.
async fn assert_ended(run: &Run, record: &Value, reason: &str, last: &str) {
    let events = run.events().await;
    assert_eq!(steps(&events).last().copied(), Some(last), "{events:?}");
    let result = only(&events, "evaluation_result");
    assert_eq!((&result["stop_reason"], &result["n_cases"]), (&json!(reason), &json!(ANSWERED)), "{result}");
    assert_eq!((&record["stop_reason"], &result["score"]), (&json!(reason), &json!(0.5)), "{record}");
    assert_eq!(payloads(&events, "evaluation_progress").len(), ANSWERED);
    for usage in [&record["usage"], &result["usage"]] {
        assert_eq!((&usage["llm_calls"], &usage["lost_calls"]), (&json!(0), &json!(0)), "{usage}");
    }
}

#[tokio::test]
async fn a_rescoring_is_cancelled_within_two_seconds_with_a_stuck_judge() {
    let (judge, t, run) = stuck_rescoring().await;
    let held = judge.requests().len() - ANSWERED;
    let clock = SystemClock::new();
    let begun = clock.monotonic();
    let record = run.controlled("cancel").await;
    assert!(clock.monotonic() - begun < Duration::from_secs(2));
    assert_eq!(record["status"], "cancelled");
    assert_ended(&run, &record, "cancelled", "run_cancelled").await;
    until("the connections are closed", async || judge.gone() >= held).await;
    assert_eq!(run.record().await, record);
    let of_run = format!("SELECT count(*)::text FROM training_calls WHERE run_id = '{}'", run.id);
    assert_eq!(t.scalar(&of_run).await, "0");
}

#[tokio::test]
async fn a_rescoring_ends_at_its_time_limit_with_the_verdicts_so_far() {
    let (_judge, t, run) = stuck_rescoring().await;
    // Requests in flight get ten seconds.
    run.controlled("pause").await;
    run.becomes("paused").await;
    // Such a run has a time limit of half an hour.
    let less = format!(
        "UPDATE training_runs SET request = replace(request, '\"max_seconds\":1800', '\"max_seconds\":1') \
         WHERE run_id = '{}'",
        run.id
    );
    t.execute(&less).await;
    run.controlled("resume").await;
    let record = run.becomes("succeeded").await;
    assert_ended(&run, &record, "max_seconds", "run_completed").await;
    let of_run = format!("SELECT count(*)::text FROM training_calls WHERE run_id = '{}'", run.id);
    assert_eq!(t.scalar(&of_run).await, "0");
}
