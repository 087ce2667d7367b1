//! Runs that repeatedly end the process: they fail, and the others survive.

use client::{ChatOptions, Client, RunOptions};
use integration_tests::{JSON, WorkflowBuilder, graphs, until};
use serde_json::{Map, Value, json};
use store::testing::TestDatabase;
use wire::CreateRun;
use wire::chat::{ChatOperation, ChatRequest, UserMessageInput};

use super::app_runs::{self, ready};
use super::runs::{LIMIT, ended};
use super::service::Service;
use super::{folder, workflows};
use crate::training;

/// A model that takes a minute, and stores nothing meanwhile.
const SLOW: &str = "practice/rewrite@10000ms";

/// A service that is killed, and its database.
struct CrashLoop {
    service: Service,
    database: TestDatabase,
}

impl CrashLoop {
    async fn start(name: &str) -> Self {
        let database = TestDatabase::create().await;
        let mut service = Service::new(&folder(name), Some(database.dsn()));
        service.set("SERVICE_CHAT_DISCONNECT_GRACE", "forever".to_owned());
        service.start();
        ready(&service.base()).await;
        Self { service, database }
    }

    /// A client without the connections of earlier lives.
    fn client(&self) -> Client {
        Client::builder(&self.service.base()).keep_cookies(false).build().unwrap()
    }

    async fn crash(&mut self) {
        self.service.kill();
        self.service.start();
        ready(&self.service.base()).await;
    }

    /// A row count.
    async fn count(&self, of: &str) -> usize {
        self.database.scalar(&format!("SELECT count(*) FROM {of}")).await.parse().unwrap()
    }

    async fn until_count(&self, of: &str, count: usize) {
        until(of, async || self.count(of).await == count).await;
    }

    /// Waits until one suspect executes; returns it.
    async fn suspect(&self) -> String {
        self.until_count(
            "run_crashes c JOIN runs r ON r.id = c.run_id WHERE alone AND finished_at IS NULL",
            1,
        )
        .await;
        let alone = "SELECT run_id FROM run_crashes c JOIN runs r ON r.id = c.run_id WHERE alone AND finished_at IS NULL";
        self.database.scalar(alone).await
    }

    async fn run(&self, graph: Value) -> String {
        let client = self.client();
        let workflow = WorkflowBuilder::new(client.clone()).graph(graph).create().await;
        let options = RunOptions { wait: None, idempotency_key: None };
        client.begin_run(&workflow.id, &CreateRun::default(), &options).await.unwrap().run.id
    }
}

fn slow() -> Value {
    json!({"name": "model", "type": "llm", "model": SLOW, "user": "a b c d e f"})
}

/// Starts a turn whose model is slow.
async fn turn(client: &Client) {
    let say = json!({"name": "say", "type": "reply", "text": "{{ results.model.text }}"});
    let workflow = workflows::publish(client, "chat", &[slow(), say]).await;
    let operation = ChatOperation::CreateThread { input: UserMessageInput::text("hi") };
    let request = ChatRequest { operation, metadata: Map::new() };
    let mut stream = client.follow(&workflow, &request, &ChatOptions::default()).await.unwrap();
    stream.next().await.unwrap().expect("the user's message");
}

/// Starts an evaluation whose model is slow; returns the path of its record.
async fn evaluation(client: &Client) -> String {
    let workflow = training::kills::workflow(client, SLOW).await;
    let body = training::evaluation(2, json!({"case_timeout_seconds": 300}));
    let path = format!("/api/workflows/{workflow}/trainer/runs");
    let answer = client.send("POST", &path, &[JSON], body.to_string()).await;
    let id = answer.unwrap().json().unwrap()["id"].as_str().unwrap().to_owned();
    format!("{path}/{id}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_that_crash_every_process_fail_one_by_one() {
    let mut t = CrashLoop::start("loops").await;
    let client = t.client();
    turn(&client).await;
    let evaluation = evaluation(&client).await;
    let run = t.run(graphs::chain(&[slow()], None)).await;
    app_runs::publish(&t.service.base(), &t.database, &[slow()], "{{ results.model.text }}").await;
    app_runs::start(t.service.address(), 1).await;
    let steps = json!({"name": "each", "type": "for_each", "items": "{{ range(5000) }}", "concurrency": 1,
                       "body": {"type": "delay", "seconds": 0.1}});
    let survivor = t.run(graphs::chain(&[steps], None)).await;
    t.until_count("runs WHERE status = 'running'", 5).await;
    let steps = format!("run_steps WHERE run_id = '{survivor}' AND finished_at IS NOT NULL");
    let mut failed = 0;
    for life in 1.. {
        // A run that stores a row in each life is never blamed.
        let before = t.count(&steps).await;
        until("another step row", async || t.count(&steps).await > before).await;
        let suspect = if life > 2 { Some(t.suspect().await) } else { None };
        t.crash().await;
        if let Some(suspect) = suspect {
            failed += 1;
            let code =
                format!("runs WHERE id = '{suspect}' AND status = 'failed' AND error LIKE '%run.crashed%'");
            t.until_count(&code, 1).await;
        }
        assert_eq!(t.count("runs WHERE finished_at IS NOT NULL").await, failed, "in life {life}");
        if failed == 4 {
            break;
        }
    }
    let client = t.client();
    assert_eq!(ended(&client, &run, LIMIT).await["error"]["code"], "run.crashed");
    let record = client.send("GET", &evaluation, &[], "").await.unwrap().json().unwrap();
    assert_eq!(
        (&record["status"], &record["error"]["code"]),
        (&json!("failed"), &json!("run.crashed")),
        "{record}"
    );
    let error = "stream_events e JOIN streams s ON s.id = e.stream_id AND s.thread_id IS NOT NULL WHERE frames LIKE '%\"type\":\"error\"%'";
    assert_eq!(t.count(error).await, 1, "the reader of the turn receives its end");
    client.cancel_run(&survivor).await.unwrap();
    assert_eq!(ended(&client, &survivor, LIMIT).await["status"], "cancelled");
    t.service.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_suspects_can_be_stopped_and_a_shutdown_clears_all() {
    let mut t = CrashLoop::start("suspects").await;
    let runs = [t.run(graphs::chain(&[slow()], None)).await, t.run(graphs::chain(&[slow()], None)).await];
    t.until_count("runs WHERE status = 'running'", 2).await;
    t.crash().await;
    t.crash().await;
    let suspect = t.suspect().await;
    let waiting = runs.iter().find(|run| **run != suspect).unwrap();
    t.client().cancel_run(waiting).await.unwrap();
    assert_eq!(ended(&t.client(), waiting, LIMIT).await["status"], "cancelled");
    assert_eq!(t.suspect().await, suspect);
    t.service.shut_down();
    t.service.start();
    ready(&t.service.base()).await;
    assert_eq!(t.count(&format!("run_crashes WHERE run_id = '{suspect}'")).await, 0);
    t.crash().await;
    t.until_count(&format!("run_crashes WHERE run_id = '{suspect}' AND ends = 1 AND NOT alone"), 1).await;
    t.client().cancel_run(&suspect).await.unwrap();
    assert_eq!(ended(&t.client(), &suspect, LIMIT).await["status"], "cancelled");
    t.service.stop();
}
