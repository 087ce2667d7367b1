//! Runs at scheduled times.

use std::time::Duration;

use chrono::{DateTime, Utc};
use integration_tests::{Answer, AnswerExt, JSON, TestService, Workflow, graphs, until};
use kernel::Clock;
use serde_json::{Value, json};

fn path(workflow: &Workflow) -> String {
    workflow.path("/triggers/cron")
}

async fn put(t: &TestService, workflow: &Workflow, config: Value) -> Answer {
    t.send("PUT", &path(workflow), &[JSON], config.to_string()).await
}

async fn set(t: &TestService, workflow: &Workflow, config: Value) -> Value {
    put(t, workflow, config).await.expect(200).value()
}

async fn shown(t: &TestService, workflow: &Workflow) -> Value {
    t.get(&path(workflow)).await.value()
}

/// Number of runs started by cron triggers.
async fn runs(t: &TestService) -> String {
    t.scalar("SELECT count(*)::text FROM runs WHERE trigger = 'cron'").await
}

async fn ended(t: &TestService) -> String {
    t.scalar("SELECT count(*)::text FROM runs WHERE status = 'succeeded'").await
}

/// Advances the clock to the trigger's next time.
async fn advance_to_next_fire(t: &TestService, workflow: &Workflow) {
    let mut next = None;
    t.while_time_passes(until("the next fire is known", async || {
        let next_fire = shown(t, workflow).await["next_fire_at"].clone();
        next = next_fire.as_str().map(|at| at.parse::<DateTime<Utc>>().unwrap());
        next.is_some_and(|next| next > t.clock().now())
    }))
    .await;
    let wait = next.unwrap() - t.clock().now();
    t.advance(wait.to_std().unwrap_or_default());
}

/// Returns its inputs.
fn echo() -> Value {
    graphs::chain(
        &[
            json!({"name": "t", "type": "template", "template": "{{ inputs.scheduled_for }} {{ inputs.timezone }}"}),
        ],
        None,
    )
}

#[tokio::test]
async fn a_trigger_is_configured_shown_and_removed() {
    let t = TestService::start().await;
    let workflow = t.workflow().create().await;
    let none = t.get(&path(&workflow)).await;
    assert_eq!((none.status, none.code().as_str()), (404, "trigger.not_found"));
    let made = set(&t, &workflow, json!({"expression": "0 0 1 1 *", "timezone": "Asia/Tokyo"})).await;
    assert_eq!(made, shown(&t, &workflow).await);
    assert!(made["next_fire_at"].as_str().unwrap().ends_with("-12-31T15:00:00.000000Z"), "{made}");
    assert_eq!(
        (&made["overlap"], &made["missed"], &made["enabled"], &made["last_run_id"]),
        (&json!(false), &json!("skip"), &json!(true), &Value::Null)
    );
    let off = set(&t, &workflow, json!({"expression": "*/5 * * * * *", "enabled": false})).await;
    assert_eq!((&off["next_fire_at"], &off["timezone"]), (&Value::Null, &json!("UTC")));
    assert_eq!(off["created_at"], made["created_at"]);
    let wrong = put(&t, &workflow, json!({"expression": "61 * * * *", "timezone": "Europe/Berlyn"})).await;
    assert_eq!((wrong.status, wrong.code().as_str()), (422, "request.invalid"));
    let errors = &wrong.value()["detail"]["errors"];
    assert_eq!((&errors[0]["pointer"], &errors[1]["pointer"]), (&json!("/expression"), &json!("/timezone")));
    assert_eq!(errors[1]["suggestion"], "did you mean 'Europe/Berlin'?");
    let refused = t.send("POST", &path(&workflow), &[JSON], "{}").await;
    assert_eq!((refused.status, refused.header("allow")), (405, Some("DELETE, GET, HEAD, PUT")));
    assert_eq!(t.send("DELETE", &path(&workflow), &[], "").await.status, 204);
    assert_eq!(t.send("DELETE", &path(&workflow), &[], "").await.code(), "trigger.not_found");
    let audited = "SELECT string_agg(action, ' ' ORDER BY id) FROM audit_log WHERE action LIKE 'trigger%'";
    assert_eq!(t.scalar(audited).await, "trigger.cron_set trigger.cron_set trigger.cron_removed");
    assert_eq!(t.send("DELETE", &workflow.path(""), &[], "").await.status, 200);
    assert_eq!(put(&t, &workflow, json!({"expression": "0 0 1 1 *"})).await.code(), "workflow.archived");
}

#[tokio::test]
async fn a_trigger_fires_on_time_repeatedly_with_its_inputs() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(echo()).create().await;
    let made = set(&t, &workflow, json!({"expression": "0 * * * *", "timezone": "Asia/Kolkata"})).await;
    integration_tests::pause(50).await;
    assert_eq!(runs(&t).await, "0");
    for n in ["1", "2"] {
        advance_to_next_fire(&t, &workflow).await;
        t.while_time_passes(until("the trigger has fired", async || ended(&t).await == n)).await;
    }
    let record = t
        .while_time_passes(async {
            until("the fire is recorded", async || {
                let record = shown(&t, &workflow).await;
                let next = record["next_fire_at"].as_str().unwrap().parse::<DateTime<Utc>>().unwrap();
                // The second fire is recorded shortly after its run has ended.
                !record["last_run_id"].is_null() && next > t.clock().now()
            })
            .await;
            shown(&t, &workflow).await
        })
        .await;
    let first = t.scalar("SELECT inputs::json->>'scheduled_for' FROM runs ORDER BY id LIMIT 1").await;
    assert_eq!(first, made["next_fire_at"].as_str().unwrap().replace(".000000", ""));
    assert_eq!(t.scalar("SELECT DISTINCT inputs::json->>'timezone' FROM runs").await, "Asia/Kolkata");
    assert_eq!((&record["last_error"], &record["last_skipped"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn a_fire_is_skipped_while_the_last_run_is_active_unless_runs_overlap() {
    let t = TestService::with_manual_clock().await;
    let graph = graphs::chain(&[json!({"name": "ok", "type": "wait_for_input"})], None);
    let workflow = t.workflow().graph(graph).create().await;
    set(&t, &workflow, json!({"expression": "0 * * * *"})).await;
    advance_to_next_fire(&t, &workflow).await;
    let waits = "SELECT count(*)::text FROM runs WHERE status = 'waiting'";
    t.while_time_passes(until("the run waits", async || t.scalar(waits).await == "1")).await;
    advance_to_next_fire(&t, &workflow).await;
    t.while_time_passes(until("one fire is skipped", async || {
        shown(&t, &workflow).await["last_skipped"]["reason"] == "overlap"
    }))
    .await;
    assert_eq!(runs(&t).await, "1");
    set(&t, &workflow, json!({"expression": "0 * * * *", "overlap": true})).await;
    advance_to_next_fire(&t, &workflow).await;
    t.while_time_passes(until("both wait", async || t.scalar(waits).await == "2")).await;
    for run in t.scalar("SELECT string_agg(id::text, ' ') FROM runs").await.split(' ') {
        t.while_time_passes(t.post(&format!("/api/runs/{run}/cancel"), "")).await;
    }
}

#[tokio::test]
async fn a_late_poll_skips_no_second() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(echo()).create().await;
    set(&t, &workflow, json!({"expression": "* * * * * *", "overlap": true})).await;
    t.advance(Duration::from_secs(12));
    t.while_time_passes(until("all have begun", async || runs(&t).await.parse::<u32>().unwrap() >= 12)).await;
    assert_eq!(t.send("DELETE", &path(&workflow), &[], "").await.status, 204);
    t.while_time_passes(until("all have ended", async || ended(&t).await == runs(&t).await)).await;
    let gaps = "SELECT (extract(epoch FROM max(at) - min(at)) + 1 - count(DISTINCT at))::int::text || ' ' ||
                       (count(*) - count(DISTINCT at))::text
                FROM (SELECT (inputs::json->>'scheduled_for')::timestamptz AS at FROM runs) AS fires";
    assert_eq!(t.scalar(gaps).await, "0 0");
}

/// A service that was down during some of a trigger's times.
async fn back_after_four_hours(missed: &str) -> (TestService, Workflow) {
    let mut t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(echo()).create().await;
    // Half an hour from the current time, so that the last one is not just due.
    let minute = (t.clock().now().timestamp() / 60 + 30) % 60;
    set(&t, &workflow, json!({"expression": format!("{minute} * * * *"), "missed": missed})).await;
    t.stop().await;
    t.advance(Duration::from_secs(4 * 3_600));
    t.start_again().await;
    (t, workflow)
}

#[tokio::test]
async fn missed_fires_are_skipped() {
    let (t, workflow) = back_after_four_hours("skip").await;
    t.while_time_passes(until("the fire is recorded", async || {
        shown(&t, &workflow).await["last_skipped"]["reason"] == "missed"
    }))
    .await;
    assert_eq!(runs(&t).await, "0");
    advance_to_next_fire(&t, &workflow).await;
    t.while_time_passes(until("the next one comes", async || ended(&t).await == "1")).await;
}

#[tokio::test]
async fn missed_fires_are_made_up_once() {
    let (t, workflow) = back_after_four_hours("once").await;
    t.while_time_passes(until("the missed fire runs", async || ended(&t).await == "1")).await;
    t.while_time_passes(until("the fire is recorded", async || {
        !shown(&t, &workflow).await["last_run_id"].is_null()
    }))
    .await;
    assert_eq!(runs(&t).await, "1");
    // The last of the missed times.
    let scheduled = t.scalar("SELECT inputs::json->>'scheduled_for' FROM runs").await;
    let late = t.clock().now() - scheduled.parse::<DateTime<Utc>>().unwrap();
    assert!(late < chrono::TimeDelta::hours(1), "{late}");
}

#[tokio::test]
async fn two_instances_fire_once() {
    let t = TestService::start().await;
    let other = t.another_instance().await;
    let workflow = t.workflow().graph(echo()).create().await;
    set(&other, &workflow, json!({"expression": "* * * * * *"})).await;
    until("the trigger has fired", async || ended(&t).await.parse::<u32>().unwrap() >= 4).await;
    set(&t, &workflow, json!({"expression": "0 0 1 1 *"})).await;
    until("all have ended", async || ended(&t).await == runs(&t).await).await;
    let doubles = "SELECT (count(*) - count(DISTINCT inputs::json->>'scheduled_for'))::text FROM runs";
    assert_eq!(t.scalar(doubles).await, "0");
}

/// The claimant has died: before it started the run, or after.
#[tokio::test]
async fn a_fire_of_a_dead_claimant_is_neither_lost_nor_doubled() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(echo()).create().await;
    set(&t, &workflow, json!({"expression": "0 0 1 1 *"})).await;
    let now = t.clock().now();
    let due = now - chrono::TimeDelta::seconds(now.timestamp() % 3_600) - chrono::TimeDelta::hours(1);
    // Once a year: no other time becomes due, whatever the current minute.
    let yearly = due.format("0 %-H %-d %-m *");
    let claim = format!(
        "UPDATE cron_triggers SET expression = '{yearly}', next_fire_at = '{due}', claimed_at = '{due}',
                claimed_until = '{now}', last_run_id = NULL"
    );
    t.execute(&claim).await;
    t.while_time_passes(until("the late fire has run", async || ended(&t).await == "1")).await;
    t.while_time_passes(until("the fire is recorded", async || {
        !shown(&t, &workflow).await["last_run_id"].is_null()
    }))
    .await;
    let run = shown(&t, &workflow).await["last_run_id"].clone();
    t.execute(&claim).await;
    t.while_time_passes(until("the fire is recorded again", async || {
        shown(&t, &workflow).await["last_run_id"] == run
    }))
    .await;
    assert_eq!(runs(&t).await, "1");
}

#[tokio::test]
async fn a_trigger_that_cannot_run_records_its_error() {
    let t = TestService::with_manual_clock().await;
    let bare = t.workflow().without_version().create().await;
    let mut picky = echo();
    picky["inputs"] = json!({"type": "object", "required": ["other"]});
    let picky = t.workflow().graph(picky).create().await;
    let archived = t.workflow().graph(echo()).create().await;
    for workflow in [&bare, &picky, &archived] {
        set(&t, workflow, json!({"expression": "0 * * * *"})).await;
    }
    t.send("DELETE", &archived.path(""), &[], "").await;
    advance_to_next_fire(&t, &bare).await;
    for (workflow, code) in
        [(&bare, "workflow.no_version"), (&picky, "run.inputs_invalid"), (&archived, "workflow.archived")]
    {
        t.while_time_passes(until("the error is recorded", async || {
            shown(&t, workflow).await["last_error"]["code"] == code
        }))
        .await;
        let paused = shown(&t, workflow).await["next_fire_at"].is_null();
        assert_eq!(paused, code == "workflow.archived");
    }
    assert_eq!(runs(&t).await, "0");
    // It runs with its first version.
    let version = json!({"graph": echo()}).to_string();
    assert_eq!(t.post(&bare.path("/versions"), &version).await.status, 201);
    advance_to_next_fire(&t, &bare).await;
    t.while_time_passes(until("the trigger has fired", async || ended(&t).await == "1")).await;
    t.while_time_passes(until("the error is cleared", async || {
        shown(&t, &bare).await["last_error"].is_null()
    }))
    .await;
}
