//! Canaries: their threads, their rollback, and their promotion.

use integration_tests::{AnswerExt, Client, JSON, TestService, Workflow, graphs, until};
use serde_json::{Value, json};
use wire::chat::FeedbackKind::{self, Negative, Positive};
use wire::chat::PageRequest;

async fn put(t: &TestService, workflow: &Workflow, body: Value) -> Value {
    t.send("PUT", &workflow.path("/rollout"), &[JSON], &body.to_string()).await.expect(200).value()
}

async fn rollout(t: &TestService, workflow: &Workflow) -> Value {
    t.get(&workflow.path("/rollout")).await.value()
}

async fn save(t: &TestService, workflow: &Workflow, graph: Value) {
    t.post(&workflow.path("/versions"), &json!({"graph": graph}).to_string()).await.expect(201);
}

/// A published workflow with the versions `one` and `two`, whose canary is the second.
async fn with_canary(t: &TestService, second: Value, more: Value) -> Workflow {
    let workflow = t.workflow().graph(graphs::reply("one")).published().create().await;
    save(t, &workflow, second).await;
    let mut canary = json!({"version": 2, "percent": 50});
    canary.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    let set = put(t, &workflow, json!({"canary": canary})).await;
    assert_eq!((&set["live_version"], &set["canary"]["version"]), (&json!(1), &json!(2)), "{set}");
    workflow
}

async fn live(t: &TestService, workflow: &Workflow) -> Value {
    t.get(&workflow.path("")).await.value()["live_version"].clone()
}

/// A thread with the live version, and one with the canary.
async fn one_of_each(client: &Client, workflow: &Workflow) -> (String, String) {
    let (mut of_live, mut of_canary) = (None, None);
    while of_live.is_none() || of_canary.is_none() {
        let turn = client.say(&workflow.id, "hi").await.unwrap();
        let of = if turn.text == "one" { &mut of_live } else { &mut of_canary };
        *of = Some(turn.thread_id);
    }
    (of_live.unwrap(), of_canary.unwrap())
}

/// Says something in a thread and rates the reply.
async fn rate(client: &Client, workflow: &Workflow, thread: &str, kind: FeedbackKind) {
    client.say_in(&workflow.id, thread, "and").await.unwrap();
    // Newest first.
    let items = client.items(&workflow.id, thread, &PageRequest::default()).await.unwrap().data;
    let answer = items[0].id().to_owned();
    client.feedback(&workflow.id, thread, &[answer], kind, None).await.unwrap();
}

#[tokio::test]
async fn a_thread_keeps_its_canary_and_other_runs_use_the_live_version() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::reply("one")).published().create().await;
    let client = t.visitor();
    let old = client.say(&workflow.id, "hi").await.unwrap().thread_id;
    save(&t, &workflow, graphs::reply("two")).await;
    let set = put(&t, &workflow, json!({"canary": {"version": 2, "percent": 50}})).await;
    assert_eq!((&set["live_version"], &set["canary"]["percent"]), (&json!(1), &json!(50)), "{set}");
    let mut threads = Vec::new();
    for _ in 0..24 {
        let turn = client.say(&workflow.id, "hi").await.unwrap();
        threads.push((turn.thread_id, turn.text));
    }
    let of_canary = threads.iter().filter(|(_, text)| text == "two").count();
    assert!((1..24).contains(&of_canary), "{of_canary} of 24");
    for (thread, text) in &threads {
        assert_eq!(client.say_in(&workflow.id, thread, "and").await.unwrap().text, *text);
    }
    assert_eq!(client.say_in(&workflow.id, &old, "and").await.unwrap().text, "one", "an older thread");
    // Fewer new threads use the canary, but the existing ones keep it; and a newer version changes nothing meanwhile.
    put(&t, &workflow, json!({"canary": {"version": 2, "percent": 1}})).await;
    save(&t, &workflow, graphs::reply("three")).await;
    assert_eq!(live(&t, &workflow).await, 1);
    for (thread, text) in threads.iter().take(6) {
        assert_eq!(client.say_in(&workflow.id, thread, "more").await.unwrap().text, *text);
    }
    let counts = rollout(&t, &workflow).await["counts"].clone();
    let turns = counts["canary"]["turns"].as_u64().unwrap() + counts["live"]["turns"].as_u64().unwrap();
    assert_eq!(turns, 24 + 24 + 1 + 6, "{counts}");
    // After the removal, every thread uses the live version.
    let removed = put(&t, &workflow, json!({})).await;
    assert_eq!((&removed["canary"], &removed["last_canary"]["outcome"]), (&Value::Null, &json!("removed")));
    for (thread, _) in threads.iter().take(6) {
        assert_eq!(client.say_in(&workflow.id, thread, "again").await.unwrap().text, "one");
    }
}

#[tokio::test]
async fn negative_feedback_rolls_a_canary_back_once_on_every_instance() {
    let t = TestService::start().await;
    let other = t.another_instance().await;
    let workflow = with_canary(&t, graphs::reply("two"), json!({})).await;
    let client = t.visitor();
    let (of_live, of_canary) = one_of_each(&client, &workflow).await;
    for _ in 0..10 {
        rate(&client, &workflow, &of_live, Positive).await;
    }
    for _ in 0..19 {
        rate(&client, &workflow, &of_canary, Negative).await;
    }
    let counts = rollout(&t, &workflow).await["counts"].clone();
    assert_eq!(
        (&counts["canary"]["negative_ratings"], &counts["canary"]["ratings"], &counts["live"]["ratings"]),
        (&json!(19), &json!(19), &json!(10)),
        "{counts}"
    );
    rate(&client, &workflow, &of_canary, Negative).await;
    until("the canary is rolled back", async || rollout(&t, &workflow).await["canary"].is_null()).await;
    let last = rollout(&other, &workflow).await["last_canary"].clone();
    assert_eq!((&last["outcome"], &last["version"]), (&json!("rolled_back"), &json!(2)));
    assert!(last["reason"].as_str().unwrap().contains("20 of 20 ratings"), "{last}");
    assert_eq!(last["counts"]["canary"]["negative_ratings"], 20);
    // The next turn, on any instance, has the whole thread and the live version.
    let same = other.visitor();
    same.set_cookie("callboard_visitor", &client.cookie("callboard_visitor").unwrap());
    let on_other_instance = same.say_in(&workflow.id, &of_canary, "next").await.unwrap();
    assert_eq!(on_other_instance.text, "one");
    assert_eq!(client.say_in(&workflow.id, &of_canary, "next").await.unwrap().text, "one");
    let all = PageRequest { limit: Some(100), ..PageRequest::default() };
    let items = client.items(&workflow.id, &of_canary, &all).await.unwrap().data;
    assert!(items.len() > 40, "its history is kept: {}", items.len());
    let rows = "SELECT count(*) || ' ' || min(actor_kind) FROM audit_log WHERE action = 'workflow.canary_rolled_back'";
    assert_eq!(t.scalar(rows).await, "1 system");
    assert_eq!(live(&t, &workflow).await, 1);
}

#[tokio::test]
async fn failed_turns_roll_a_canary_back() {
    let t = TestService::start().await;
    let fails = json!({"name": "a", "type": "assert", "when": "false", "message": "broken"});
    let say = json!({"name": "b", "type": "reply", "text": "two"});
    let workflow =
        with_canary(&t, graphs::chain(&[fails, say], None), json!({"promote_after_turns": 50})).await;
    let client = t.visitor();
    let (mut of_live, mut of_canary) = (0, None);
    while of_live < 5 || of_canary.is_none() {
        let turn = client.say(&workflow.id, "hi").await.unwrap();
        match turn.error {
            None => of_live += usize::from(turn.text == "one"),
            Some(_) => of_canary = Some(turn.thread_id),
        }
    }
    let thread = of_canary.unwrap();
    let failed = async || rollout(&t, &workflow).await["counts"]["canary"]["failed_turns"].as_u64();
    for _ in failed().await.unwrap()..49 {
        client.say_in(&workflow.id, &thread, "and").await.unwrap();
    }
    until("49 turns are stored", async || failed().await == Some(49)).await;
    client.say_in(&workflow.id, &thread, "and").await.unwrap();
    until("the canary is rolled back", async || rollout(&t, &workflow).await["canary"].is_null()).await;
    let last = rollout(&t, &workflow).await["last_canary"].clone();
    assert_eq!(last["outcome"], "rolled_back", "{last}");
    assert!(last["reason"].as_str().unwrap().contains("50 of 50 turns failed"), "{last}");
    assert_eq!(live(&t, &workflow).await, 1);
    assert_eq!(client.say_in(&workflow.id, &thread, "and").await.unwrap().text, "one");
}

#[tokio::test]
async fn a_canary_becomes_live_after_its_turns_or_at_once() {
    let t = TestService::start().await;
    let workflow = with_canary(&t, graphs::reply("two"), json!({"promote_after_turns": 3})).await;
    let client = t.visitor();
    let (of_live, of_canary) = one_of_each(&client, &workflow).await;
    while live(&t, &workflow).await != 2 {
        client.say_in(&workflow.id, &of_canary, "and").await.unwrap();
    }
    let promoted = rollout(&t, &workflow).await;
    assert_eq!(
        (&promoted["canary"], &promoted["last_canary"]["outcome"]),
        (&Value::Null, &json!("promoted"))
    );
    assert_eq!(client.say_in(&workflow.id, &of_live, "and").await.unwrap().text, "two");
    save(&t, &workflow, graphs::reply("three")).await;
    assert_eq!(live(&t, &workflow).await, 3, "without a canary, a saved version becomes live");
    put(&t, &workflow, json!({"canary": {"version": 3, "percent": 1}})).await;
    assert_eq!(live(&t, &workflow).await, 2);
    let path = workflow.path("/rollout/promote");
    let promoted = t.post(&path, "").await.value();
    assert_eq!((&promoted["live_version"], &promoted["canary"]), (&json!(3), &Value::Null), "{promoted}");
    assert_eq!(t.post(&path, "").await.refusal(), "404 version.not_found");
    let rows = "SELECT string_agg(actor_kind, ' ' ORDER BY id) FROM audit_log WHERE action = 'workflow.canary_promoted'";
    assert_eq!(t.scalar(rows).await, "system anonymous");
    // A canary ends when a later version becomes live.
    put(&t, &workflow, json!({"canary": {"version": 3, "percent": 1}})).await;
    save(&t, &workflow, graphs::reply("four")).await;
    let set = t.post(&workflow.path("/versions/4/live"), "").await;
    assert_eq!(set.value()["live_version"], 4);
    assert_eq!(rollout(&t, &workflow).await["last_canary"]["outcome"], "superseded");
    // An older version may be a canary again, but is not promoted automatically.
    let older = json!({"canary": {"version": 1, "percent": 5, "promote_after_turns": 9}});
    let refused = t.send("PUT", &workflow.path("/rollout"), &[JSON], &older.to_string()).await;
    assert_eq!(refused.refusal(), "422 request.invalid");
}
