//! Budget days: how long a reached limit applies, and how long usage is kept.

use std::time::Duration;

use chrono::{NaiveTime, TimeDelta};
use integration_tests::{Answer, AnswerExt, Endpoint, JSON, TestService, Workflow, chat, graphs};
use kernel::Clock;
use serde_json::{Value, json};

/// Tokens that the endpoint reports per call.
const CALL: u64 = 7;

async fn service(model: &Endpoint) -> TestService {
    model.builder().manual_clock().start().await
}

/// A chat whose turns call a model once.
async fn limited_workflow(t: &TestService, limits: Value) -> Workflow {
    let llm = json!({"name": "said", "type": "llm", "model": "openai/x", "user": "hi", "max_tokens": 5, "stream": true});
    let settings = json!({"chat": {"limits": limits}});
    t.workflow().graph(graphs::chain(&[llm], None)).published().settings(settings).create().await
}

async fn say(t: &TestService, workflow: &Workflow, cookie: &str) -> Answer {
    let headers = [JSON, ("cookie", cookie)];
    t.send("POST", "/api/chat", &headers, chat::create(workflow, "hi").to_string()).await
}

/// Sends a first message that gets a reply; returns its visitor's cookie.
async fn spend(t: &TestService, workflow: &Workflow) -> String {
    let answered = t.while_time_passes(t.chat(&chat::create(workflow, "hi"))).await;
    assert!(answered.text().contains("You said: hi"), "{}", answered.text());
    answered.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

/// Advances the clock to the next moment this long before midnight.
fn advance_before_midnight(t: &TestService, left: TimeDelta) {
    let now = t.clock().now();
    let midnight = now.date_naive().and_time(NaiveTime::MIN).and_utc() + TimeDelta::days(1);
    let today = midnight - left;
    let at = if today < now { today + TimeDelta::days(1) } else { today };
    t.advance((at - now).to_std().unwrap());
}

#[tokio::test]
async fn a_reached_limit_returns_the_seconds_until_midnight() {
    for (limit, refusal) in [
        ("session_tokens_per_day", "429 chat.budget.session"),
        ("tokens_per_day", "429 chat.budget.workflow"),
    ] {
        let model = Endpoint::quick().await;
        let t = service(&model).await;
        let workflow = limited_workflow(&t, json!({limit: CALL})).await;
        advance_before_midnight(&t, TimeDelta::hours(12));
        let cookie = spend(&t, &workflow).await;
        // Half a second less than two hours.
        advance_before_midnight(&t, TimeDelta::milliseconds(7_199_500));
        let refused = say(&t, &workflow, &cookie).await;
        assert_eq!((refused.refusal().as_str(), refused.header("retry-after")), (refusal, Some("7200")));
        t.advance(Duration::from_secs(7_199));
        let refused = say(&t, &workflow, &cookie).await;
        assert_eq!((refused.refusal().as_str(), refused.header("retry-after")), (refusal, Some("1")));
        t.advance(Duration::from_secs(1));
        let answered = t.while_time_passes(say(&t, &workflow, &cookie)).await;
        assert!(answered.text().contains("You said: hi"), "{limit}: {}", answered.text());
        assert_eq!(model.asked(), 2, "{limit}");
    }
}

#[tokio::test]
async fn usage_is_kept_for_thirty_five_days() {
    let model = Endpoint::quick().await;
    let mut t = service(&model).await;
    let workflow = limited_workflow(&t, json!({})).await;
    // No day ends during a retention round.
    advance_before_midnight(&t, TimeDelta::hours(12));
    spend(&t, &workflow).await;
    let day = t.clock().now().date_naive().to_string();
    // The round that deletes the previous day has checked this day, too.
    t.execute(
        "INSERT INTO chat_usage SELECT day - 1, workflow_id, session, writer_id, turns, calls, input_tokens, output_tokens, usd
         FROM chat_usage",
    )
    .await;
    let usage = workflow.path("/chat/usage");
    let both = t.get(&usage).await.value();
    assert_eq!(both["data"].as_array().unwrap().len(), 2, "{both}");
    let rows = "SELECT count(*) FROM chat_usage";
    t.advance(Duration::from_secs(35 * 86_400));
    t.restart().await;
    t.until_scalar("the previous day is deleted", rows, "1").await;
    let remaining = t.get(&usage).await.value();
    assert_eq!(
        (&remaining["data"][0]["day"], &remaining["data"][0]["calls"]),
        (&json!(day), &json!(1)),
        "{remaining}"
    );
    t.advance(Duration::from_secs(86_400));
    t.restart().await;
    t.until_scalar("the day is deleted", rows, "0").await;
    assert_eq!(t.get(&usage).await.value()["data"], json!([]));
}
