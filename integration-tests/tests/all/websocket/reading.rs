//! Run events over a socket: each once, in order, from any position.

use integration_tests::{AnswerExt, Socket, TestService, Workflow, chat, graphs};
use serde_json::{Value, json};

use super::{admin, bearer, begin, guarded, subscribe, token};

/// The run's events, read over SSE.
async fn stored(t: &TestService, run: &str) -> Vec<Value> {
    let body = t.open("GET", &format!("/api/runs/{run}/events"), &[], "").await.rest().await;
    integration_tests::events(&body)
}

/// Reads until each of these runs has ended; returns the events by run.
async fn read(socket: &mut Socket, runs: &[&str]) -> Vec<Vec<Value>> {
    let mut all = vec![Vec::new(); runs.len()];
    let mut open = runs.len();
    while open > 0 {
        let event = socket.next().await;
        let at = runs.iter().position(|run| event["run_id"] == *run).unwrap_or_else(|| panic!("{event}"));
        let kind = event["type"].as_str().unwrap();
        open -= usize::from(["run_completed", "run_failed", "run_cancelled"].contains(&kind));
        all[at].push(event);
    }
    all
}

async fn talkative(t: &TestService) -> Workflow {
    t.workflow().graph(graphs::words("one two three four five six seven eight", 40)).create().await
}

#[tokio::test]
async fn runs_are_read_live_and_afterwards_from_any_position() {
    let t = TestService::start().await;
    let workflow = talkative(&t).await;
    let (first, second) = (begin(&t, &workflow).await, begin(&t, &workflow).await);
    let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
    socket.say(&subscribe(&first, 0)).await;
    socket.say(&json!({"type": "subscribe", "run_id": second, "request_id": "the second"})).await;
    // One subscription per socket and run.
    socket.say(&json!({"type": "subscribe", "run_id": first, "request_id": "again"})).await;
    let mut all = vec![Vec::new(), Vec::new()];
    let mut again = 0;
    while all
        .iter()
        .any(|events: &Vec<Value>| events.last().is_none_or(|last| last["type"] != "run_completed"))
    {
        let message = socket.next().await;
        if message["type"] == "error" {
            assert_eq!(
                (&message["payload"]["code"], &message["request_id"]),
                (&json!("ws.already_subscribed"), &json!("again"))
            );
            again += 1;
        } else {
            all[usize::from(message["run_id"] == *second)].push(message);
        }
    }
    assert_eq!(again, 1);
    assert_eq!(all[0], stored(&t, &first).await, "the same events as over SSE");
    for event in &mut all[1] {
        assert_eq!(event.as_object_mut().unwrap().remove("request_id"), Some(json!("the second")));
    }
    assert_eq!(all[1], stored(&t, &second).await);
    let whole = all.swap_remove(0);
    for (after, event) in (1_u64..).zip(&whole).take(whole.len() - 1) {
        assert_eq!(event["seq"], after);
        socket.say(&subscribe(&first, after)).await;
        let rest = read(&mut socket, &[&first]).await;
        assert_eq!(rest[0], whole[usize::try_from(after).unwrap()..]);
    }
    let last = u64::try_from(whole.len()).unwrap();
    for after in [last, last + 1, u64::try_from(i64::MAX).unwrap()] {
        socket.say(&subscribe(&first, after)).await;
        let mut heard = socket.settle().await;
        // The reader has found the end: a further subscription is accepted.
        t.settled().await;
        heard.append(&mut socket.settle().await);
        assert_eq!(heard, [Value::Null; 0], "nothing follows the end");
    }
    socket.close().await;
}

#[tokio::test]
async fn a_cut_connection_loses_and_repeats_nothing() {
    let t = TestService::start().await;
    let workflow = talkative(&t).await;
    let run = begin(&t, &workflow).await;
    let mut events: Vec<Value> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event["seq"].as_u64().unwrap());
        let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
        socket.say(&subscribe(&run, after)).await;
        for _ in 0..3 {
            events.push(socket.next().await);
            if events.last().unwrap()["type"] == "run_completed" {
                assert_eq!(events, stored(&t, &run).await);
                return;
            }
        }
        // Disconnected without a close frame.
        drop(socket);
    }
}

#[tokio::test]
async fn a_run_of_another_instance_is_read() {
    let t = TestService::start().await;
    let dsn = &t.variables()["SERVICE_POSTGRES_DSN"];
    let other = TestService::builder().set("SERVICE_POSTGRES_DSN", dsn).start().await;
    let workflow = talkative(&t).await;
    let run = begin(&t, &workflow).await;
    let mut socket = Socket::for_workflow(&other, &workflow, &[]).await;
    socket.say(&subscribe(&run, 0)).await;
    let read = read(&mut socket, &[&run]).await;
    assert_eq!(read[0], stored(&t, &run).await);
    socket.close().await;
}

#[tokio::test]
async fn a_socket_reads_only_permitted_runs_of_its_workflow() {
    let t = guarded().start().await;
    let (one, two) =
        (t.workflow().by(admin(&t)).create().await, t.workflow().by(admin(&t)).published().create().await);
    let run = super::call(&t, "POST", &two.path("/runs"), &json!({"inputs": {"message": "x"}})).await;
    let run = run["id"].as_str().unwrap();
    let header = bearer(super::BOOTSTRAP);
    let mut socket = Socket::for_workflow(&t, &one, &[("authorization", &header)]).await;
    socket.say(&subscribe(run, 0)).await;
    assert_eq!(socket.next().await["payload"]["code"], "run.not_found", "it is another workflow's");
    socket.close().await;
    let (_, executes) = token(&t, json!({"scopes": ["workflows:execute"]})).await;
    let mut socket = Socket::for_workflow(&t, &two, &[("authorization", &bearer(&executes))]).await;
    socket.say(&subscribe(run, 0)).await;
    let refused = socket.next().await;
    assert_eq!(refused["payload"]["code"], "auth.missing_scope");
    assert_eq!(refused["payload"]["message"], "Missing required scopes: workflows:read");
    socket.close().await;
    // A chat turn has events of another kind.
    t.chat(&chat::create(&two, "hi")).await.expect(200);
    let turn = t.scalar("SELECT id FROM runs WHERE thread_id IS NOT NULL").await;
    let mut socket = Socket::for_workflow(&t, &two, &[("authorization", &header)]).await;
    socket.say(&subscribe(&turn, 0)).await;
    assert_eq!(socket.next().await["payload"]["code"], "stream.not_found");
    socket.close().await;
}

#[tokio::test]
async fn a_run_is_stopped_over_the_socket() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::delayed(60.0, "late")).create().await;
    let run = begin(&t, &workflow).await;
    let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
    socket.say(&subscribe(&run, 0)).await;
    socket.until("step_started").await;
    socket.say(&json!({"type": "cancel", "run_id": run})).await;
    let ended = socket.until("run_cancelled").await;
    assert_eq!(ended.last().unwrap()["payload"]["error"]["code"], "run.cancelled");
    assert_eq!(t.get(&format!("/api/runs/{run}")).await.value()["status"], "cancelled");
    socket.say(&json!({"type": "cancel", "run_id": run, "request_id": "more"})).await;
    let refused = socket.next().await;
    assert_eq!(
        (&refused["payload"]["code"], &refused["request_id"]),
        (&json!("run.not_active"), &json!("more"))
    );
    socket.close().await;
}

#[tokio::test]
async fn a_socket_reads_and_cancels_64_runs_at_a_time() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::delayed(60.0, "late")).create().await;
    let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
    let mut runs = Vec::new();
    for _ in 0..65 {
        runs.push(begin(&t, &workflow).await);
    }
    for run in &runs {
        socket.say(&subscribe(run, 0)).await;
    }
    let refused = socket.until("error").await.pop().unwrap();
    assert_eq!(refused["payload"]["code"], "ws.too_many_subscriptions");
    for run in &runs {
        socket.say(&json!({"type": "cancel", "run_id": run})).await;
    }
    for _ in 0..64 {
        let heard = socket.until("run_cancelled").await;
        assert!(heard.iter().all(|message| message["type"] != "error"), "{heard:?}");
    }
    // A subscription slot is free again. The unread run is cancelled, too.
    socket.say(&subscribe(&runs[64], 0)).await;
    socket.until("run_cancelled").await;
    socket.close().await;
}
