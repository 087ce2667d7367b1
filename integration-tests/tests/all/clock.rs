//! Clock jumps: time set after a boot, a suspended machine, a wrong time server.

use std::time::Duration;

use chrono::TimeDelta;
use integration_tests::{AnswerExt, JSON, TestService, graphs, until};
use kernel::Clock;
use serde_json::{Value, json};

use crate::waiting_runs::{becomes, begin, record};

const DAYS: [i64; 2] = [10, -10];

async fn assert_chat_works(t: &TestService, workflow: &str, text: &str) {
    let client = t.visitor();
    let turn = t.while_time_passes(client.say(workflow, text)).await.unwrap();
    assert!(turn.text.contains(text), "{:?}", turn.events);
}

/// Streams on a day whose table was not created in advance.
#[tokio::test]
async fn chats_and_runs_continue_after_any_clock_jump() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().echo().published().create().await;
    let graph = graphs::chain(&[json!({"name": "t", "type": "template", "template": "done"})], None);
    let plain = t.workflow().graph(graph).create().await;
    assert_chat_works(&t, &workflow.id, "before").await;
    for days in [10, -20, -3, 40, -10] {
        t.clock().leap(TimeDelta::days(days));
        assert_chat_works(&t, &workflow.id, "behind").await;
        let run = begin(&t, &plain, "", json!({})).await;
        t.while_time_passes(becomes(&t, &run, "succeeded")).await;
        t.assert_healthy().await;
    }
}

#[tokio::test]
async fn a_service_started_with_a_past_clock_continues_after_its_correction() {
    let mut t = TestService::with_manual_clock().await;
    let workflow = t.workflow().echo().published().create().await;
    t.clock().leap(TimeDelta::days(-10));
    t.stop().await;
    t.start_again().await;
    assert_chat_works(&t, &workflow.id, "in the past").await;
    t.clock().leap(TimeDelta::days(20));
    assert_chat_works(&t, &workflow.id, "in the present").await;
    t.assert_healthy().await;
}

/// A delay keeps its length, even if the clock was ahead when it began.
#[tokio::test]
async fn waits_keep_their_length_when_the_clock_was_ahead() {
    for restarted in [false, true] {
        let mut t = TestService::with_manual_clock().await;
        let delay = graphs::chain(&[json!({"name": "d", "type": "delay", "seconds": 3600})], None);
        let delayed = t.workflow().graph(delay).create().await;
        let ask = json!({"name": "q", "type": "wait_for_input", "expires_seconds": 3600});
        let question = t.workflow().graph(graphs::chain(&[ask], None)).create().await;
        let runs = [begin(&t, &delayed, "", json!({})).await, begin(&t, &question, "", json!({})).await];
        for run in &runs {
            t.while_time_passes(becomes(&t, run, "waiting")).await;
        }
        if restarted {
            t.stop().await;
            t.clock().leap(TimeDelta::days(-10));
            t.start_again().await;
        } else {
            t.clock().leap(TimeDelta::days(-10));
        }
        // They wake, read the clock, and wait again.
        let reckoned = async || {
            let (from, to) =
                (t.clock().now() + TimeDelta::minutes(50), t.clock().now() + TimeDelta::minutes(61));
            let due = format!("SELECT count(*) FROM run_queue WHERE due_at BETWEEN '{from}' AND '{to}'");
            t.scalar(&due).await == "2"
        };
        t.while_time_passes(until("both to be due by the corrected clock", reckoned)).await;
        for run in &runs {
            assert_eq!(record(&t, run).await["status"], "waiting");
        }
        t.advance(Duration::from_secs(3600));
        let ended = async {
            becomes(&t, &runs[0], "succeeded").await;
            becomes(&t, &runs[1], "failed").await
        };
        let expired: Value = t.while_time_passes(ended).await;
        assert_eq!(expired["error"]["code"], "node.input_expired", "{expired}");
    }
}

#[tokio::test]
async fn a_trigger_fires_at_its_next_time_by_the_corrected_clock() {
    for days in DAYS {
        let t = TestService::with_manual_clock().await;
        let graph = graphs::chain(&[json!({"name": "t", "type": "template", "template": "x"})], None);
        let workflow = t.workflow().graph(graph).create().await;
        let path = workflow.path("/triggers/cron");
        let config = json!({"expression": "*/5 * * * *"}).to_string();
        assert_eq!(t.send("PUT", &path, &[JSON], config).await.status, 200);
        t.clock().leap(TimeDelta::days(days));
        let next = async || {
            let shown = t.get(&path).await.value();
            shown["next_fire_at"].as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>().unwrap()
        };
        let near = async || {
            let ahead = next().await - t.clock().now();
            ahead > TimeDelta::zero() && ahead <= TimeDelta::minutes(5)
        };
        t.while_time_passes(until("the next time to be within five minutes", near)).await;
        let fired = async || t.scalar("SELECT count(*) FROM runs WHERE trigger = 'cron'").await;
        let before = fired().await;
        t.advance((next().await - t.clock().now()).to_std().unwrap());
        t.while_time_passes(until("a run to start", async || fired().await > before)).await;
    }
}

/// Failures dated in the future lock no caller out.
#[tokio::test]
async fn a_sign_in_limit_ends_when_the_clock_is_set_back() {
    let t = TestService::builder()
        .manual_clock()
        .with_bootstrap_token()
        .set("SERVICE_AUTH_RATE_LIMIT_IP", "3")
        .start()
        .await;
    let list = "/api/workflows";
    for number in 0..3 {
        assert_eq!(t.bearer(&format!("wrong-{number}")).get(list).await.status, 401);
    }
    t.advance(Duration::from_secs(2));
    assert_eq!(t.root().get(list).await.refusal(), "429 auth.rate_limited");
    t.clock().leap(TimeDelta::days(-10));
    let open = until("the address to be unblocked", async || {
        t.advance(Duration::from_secs(1));
        t.root().get(list).await.status == 200
    });
    t.while_time_passes(open).await;
}
