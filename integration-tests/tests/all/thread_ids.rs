//! Thread ids in responses to callers who may not read threads.

use integration_tests::{Answer, AnswerExt, Bearer, Socket, TestService, Workflow, graphs};
use serde_json::{Value, json};
use wire::chat::FeedbackKind::Positive;

/// A chat whose trace, output and text contain the thread's id.
fn revealing_graph() -> Value {
    let nodes = [
        json!({"name": "note", "type": "set", "values": {"thread_id": "{{ inputs.thread_id }}"}}),
        json!({"name": "say", "type": "reply", "text": "Your conversation is {{ inputs.thread_id }}."}),
    ];
    graphs::chain(&nodes, Some(json!({"reply": "{{ results.say.text }}"})))
}

/// A turn with feedback, and a dataset made from it.
struct RatedTurn<'a> {
    workflow: Workflow,
    thread: String,
    stream: String,
    run: String,
    owner: Bearer<'a>,
    viewer: Bearer<'a>,
}

impl<'a> RatedTurn<'a> {
    async fn new(t: &'a TestService) -> Self {
        let workflow = t.workflow().graph(revealing_graph()).published().create().await;
        let visitor = t.visitor();
        let turn = visitor.say(&workflow.id, "hi").await.unwrap();
        let items = visitor.thread(&workflow.id, &turn.thread_id).await.unwrap().items.data;
        let items = [items[1].id().to_owned()];
        visitor.feedback(&workflow.id, &turn.thread_id, &items, Positive, None).await.unwrap();
        let body = json!({"name": "kept", "from": {"feedback": {}}});
        t.root().post(&workflow.path("/datasets"), &body).await.expect(201);
        let all = ["workflows:read", "workflows:write", "workflows:execute", "admin:tokens:read"];
        let owner = t.bearer(&t.root().token(&all, &[]).await);
        let viewer = t.bearer(&t.root().token(&["workflows:read", "workflows:execute"], &[]).await);
        let runs = owner.get("/api/runs").await.value();
        let run = runs["data"][0]["id"].as_str().unwrap().to_owned();
        Self { workflow, thread: turn.thread_id, stream: turn.stream_id, run, owner, viewer }
    }

    /// The paths of all responses that contain the thread's id.
    async fn addresses(&self) -> Vec<String> {
        let workflow = self.workflow.path("");
        let datasets = self.owner.get(&format!("{workflow}/datasets")).await.value();
        let dataset = datasets["data"][0]["id"].as_str().unwrap().to_owned();
        vec![
            "/api/runs".to_owned(),
            format!("{workflow}/runs"),
            format!("/api/runs/{}", self.run),
            format!("/api/runs/{}/trace", self.run),
            format!("/api/runs/{}/events", self.run),
            format!("{workflow}/feedback"),
            format!("{workflow}/feedback?format=jsonl"),
            format!("{workflow}/datasets/{dataset}/cases"),
        ]
    }
}

async fn shown(caller: &Bearer<'_>, address: &str) -> String {
    match address.ends_with("/events") {
        true => caller.stream(address, &[]).await,
        false => read(caller.get(address).await, address),
    }
}

fn read(answer: Answer, address: &str) -> String {
    assert_eq!(answer.status / 100, 2, "{address}: {}", answer.text());
    answer.text()
}

#[tokio::test]
async fn thread_ids_are_hidden_from_callers_without_access_to_threads() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let setup = RatedTurn::new(&t).await;
    for address in setup.addresses().await {
        let full = shown(&setup.owner, &address).await;
        assert!(full.contains(&setup.thread), "{address}: {full}");
        let hidden = shown(&setup.viewer, &address).await;
        assert!(!hidden.contains(&setup.thread), "{address}: {hidden}");
        assert!(!hidden.contains(&setup.stream), "the stream's id gives access, too: {address}: {hidden}");
        assert!(
            hidden.contains("thr_hidden") || hidden.contains(r#""thread_id":null"#),
            "{address}: {hidden}"
        );
    }
    let record = setup.viewer.get(&format!("/api/runs/{}", setup.run)).await.value();
    assert_eq!(record["inputs"]["thread_id"], json!(null));
    assert_eq!(record["output"]["reply"], "Your conversation is thr_hidden.");
    let listed = setup.viewer.get("/api/runs").await.value();
    assert_eq!(listed["data"][0]["thread_id"], json!(null));
}

#[tokio::test]
async fn masked_events_resume_by_the_run_id() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let setup = RatedTurn::new(&t).await;
    let address = format!("/api/runs/{}/events", setup.run);
    let all = setup.viewer.stream(&address, &[]).await;
    let (first, rest) = all.split_once("\n\n").unwrap();
    let id = first.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
    assert_eq!(id, format!("{}.1", setup.run));
    assert_eq!(setup.viewer.stream(&address, &[("last-event-id", id)]).await, rest);
}

#[tokio::test]
async fn records_of_reruns_and_cancellations_hide_the_thread() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let setup = RatedTurn::new(&t).await;
    // A run that received the id as an ordinary input text.
    let path = setup.workflow.path("/runs?wait=60");
    let begun = setup.owner.post(&path, &json!({"inputs": {"thread_id": setup.thread}})).await.value();
    assert_eq!(begun["inputs"]["thread_id"], json!(setup.thread), "{begun}");
    let run = begun["id"].as_str().unwrap();
    for (operation, body) in [("rerun", json!({"from_step": 1})), ("cancel", json!({}))] {
        let answer = read(setup.viewer.post(&format!("/api/runs/{run}/{operation}"), &body).await, operation);
        assert!(
            answer.contains(r#""thread_id":null"#) && !answer.contains(&setup.thread),
            "{operation}: {answer}"
        );
    }
}

#[tokio::test]
async fn sockets_hide_thread_ids() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let setup = RatedTurn::new(&t).await;
    let path = setup.workflow.path("/runs?wait=60");
    let begun = setup.owner.post(&path, &json!({"inputs": {"thread_id": setup.thread}})).await.value();
    let run = &begun["id"];
    let write = ["workflows:read", "workflows:write", "workflows:execute"];
    for (scopes, is_shown) in [(&write[..], true), (&["workflows:read", "workflows:execute"][..], false)] {
        let token = format!("Bearer {}", t.root().token(scopes, &[]).await);
        let mut socket = Socket::for_workflow(&t, &setup.workflow, &[("authorization", &token)]).await;
        socket.say(&json!({"type": "subscribe", "run_id": run, "after_seq": 0})).await;
        let events = json!(socket.until("run_completed").await).to_string();
        assert_eq!(events.contains(&setup.thread), is_shown, "{events}");
        assert_eq!(events.contains("Your conversation is thr_hidden."), !is_shown, "{events}");
        // The stream of the turn gives access, too.
        socket.say(&json!({"type": "subscribe", "run_id": setup.run, "after_seq": 0})).await;
        let refusal = json!(socket.until("error").await).to_string();
        assert_eq!(refusal.contains(&setup.stream), is_shown, "{refusal}");
        socket.close().await;
    }
}

#[tokio::test]
async fn the_audit_trail_hides_thread_ids() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let setup = RatedTurn::new(&t).await;
    let path = setup.workflow.path(&format!("/chat/threads/{}", setup.thread));
    setup.owner.json("PATCH", &path, &json!({"title": "Greeting"})).await.expect(200);
    let auditor = t.bearer(&t.root().token(&["workflows:read", "admin:tokens:read"], &[]).await);
    for (caller, reason) in
        [(&setup.owner, format!("{}: title", setup.thread)), (&auditor, "thr_hidden: title".to_owned())]
    {
        let trail = caller.get("/api/admin/audit?action=chat.thread_changed").await.expect(200).value();
        assert_eq!(trail["data"][0]["reason"], json!(reason), "{trail}");
    }
}
