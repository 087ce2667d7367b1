//! `kill -9` of either of two instances behind a balancer, with chats, all run shapes, and turns and runs that
//! wait for a person: acknowledged data persists, and no reply is cut while it has a reader on either instance.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::{DateTime, FixedOffset, TimeDelta};
use client::{ChatOptions, Client, RunOptions, RunsFilter};
use integration_tests::{Balancer, WorkflowBuilder, graphs, pause, until};
use kernel::{SeededRandom, SystemClock};
use serde_json::{Map, Value, json};
use store::testing::TestDatabase;
use wire::CreateRun;
use wire::chat::{ChatOperation, ChatRequest, UserMessageInput};

use super::oracle::{self, Oracle};
use super::runs::{self, Acknowledged};
use super::service::Service;
use super::tables::Tables;
use super::{KillDelays, SLOW_DISK, folder, number, random_delay, seed, workflows};

/// Clients of each kind, each with one chat or run at a time.
const CLIENTS: usize = 3;
/// Longer than anything here takes. A run that is killed again right after its adoption waits for the next one: with a
/// kill every few seconds, several times in a row.
const LIMIT: Duration = Duration::from_secs(300);
/// Longer than a lease plus the time until a slow machine notices its end: the other instance has adopted the killed
/// one's runs.
const ADOPTED: Duration = Duration::from_secs(40);

/// A message that waits for a person, for the final check.
struct OpenTurn {
    thread: String,
    message: String,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_of_either_instance_lose_and_cut_nothing() {
    let database = TestDatabase::create().await;
    database.execute(SLOW_DISK).await.unwrap();
    let folder = folder("pair");
    let mut instances = ["one", "two"].map(|name| Service::new(&folder, Some(database.dsn())).named(name));
    let balancer =
        Balancer::before(instances.iter().map(|service| service.address().to_owned()).collect()).await;
    let (seed, kills) = (seed(), number("CALLBOARD_CRASH_KILLS", 4).min(200));
    println!("CALLBOARD_CRASH_SEED={seed} ({kills} kills, {})", folder.display());
    let random = SeededRandom::new(seed);
    let mut oracle = Oracle::start(&balancer.address(), &folder, number("CALLBOARD_CRASH_CLIENTS", 4), seed);
    for service in &mut instances {
        tokio::task::block_in_place(|| oracle.measure_start(true, || service.start()));
    }
    let client = Client::builder(&balancer.base()).keep_cookies(false).build().unwrap();
    let chats = workflows::create(&balancer.base()).await;
    let shapes = Arc::new(runs::create(&client).await);
    let approval = waiting_run(&client).await;
    let ask = json!({"name": "ask", "type": "reply", "text": "Asking. "});
    let say = json!({"name": "say", "type": "reply", "pieces": "words", "pause_ms": 20,
                     "text": "You may {{ inputs.message }}: {{ results.ok.value }} it is."});
    let desk =
        workflows::publish(&client, "desk", &[ask, json!({"name": "ok", "type": "wait_for_input"}), say])
            .await;
    tokio::task::block_in_place(|| oracle.start_clients(&chats));

    let stopped = Arc::new(AtomicBool::new(false));
    let runs: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (client, shapes, stopped) = (client.clone(), Arc::clone(&shapes), Arc::clone(&stopped));
            tokio::spawn(async move { runs::keep_starting(&client, &shapes, number, 300, &stopped).await })
        })
        .collect();
    let waiting: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (client, approval, stopped) = (client.clone(), approval.clone(), Arc::clone(&stopped));
            tokio::spawn(async move { keep_waiting(&client, &approval, number, &stopped).await })
        })
        .collect();
    let chatting: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (client, desk, stopped) = (client.clone(), desk.clone(), Arc::clone(&stopped));
            tokio::spawn(async move { keep_asking(&client, &desk, number, &stopped).await })
        })
        .collect();
    let done = Arc::new(AtomicBool::new(false));
    let person = tokio::spawn(answer_all(client.clone(), [approval, desk.clone()], Arc::clone(&done)));

    let mut moments = KillDelays::default();
    for kill in 0..kills {
        let wait = moments.next(&random);
        let hit = usize::from(random_delay(&random).as_millis().is_multiple_of(2));
        tokio::task::block_in_place(|| {
            std::thread::sleep(wait);
            instances[hit].kill();
        });
        // Sometimes the other instance has time to adopt the killed one's runs, of which there may be none.
        let before = adoptions(&instances);
        if kill % 4 == 1 || kill % 4 == 3 && before == 0 {
            let adopting = async {
                while adoptions(&instances) == before {
                    pause(100).await;
                }
            };
            let _ = kernel::timeout(&SystemClock::new(), ADOPTED, adopting).await;
        }
        tokio::task::block_in_place(|| oracle.measure_start(false, || instances[hit].start()));
        // Usually both are alive; the balancer's response would be from either.
        if kill % 4 != 3 {
            let direct = Client::builder(&instances[hit].base()).keep_cookies(false).build().unwrap();
            until("the instance is ready", async || {
                direct.ready().await.is_ok_and(|answer| answer.status == 200)
            })
            .await;
        }
    }
    stopped.store(true, Ordering::Relaxed);
    println!("{}", tokio::task::block_in_place(|| oracle.finish()));
    let runs: Vec<Acknowledged> = join_clients(runs).await;
    let (waited, open_turns): (Vec<(String, usize)>, Vec<OpenTurn>) =
        (join_clients(waiting).await, join_clients(chatting).await);
    println!("{} runs, {} that waited, {} turns that waited", runs.len(), waited.len(), open_turns.len());
    assert!(
        runs.len().min(waited.len()).min(open_turns.len()) > CLIENTS,
        "too few runs and turns were started"
    );
    runs::judge_all(&client, &runs).await;
    let mut longest = TimeDelta::zero();
    for (run, n) in &waited {
        let ended = runs::ended(&client, run, runs::LIMIT).await;
        assert_eq!(ended["output"], json!(format!("yes {n}")), "{ended}");
        longest = longest.max(time(&ended["finished_at"]) - time(&ended["created_at"]));
    }
    println!("the longest of those that waited took {} s", longest.num_seconds());
    for turn in &open_turns {
        let items = client.thread(&desk, &turn.thread).await.unwrap().items.data;
        let texts: Vec<String> = items.iter().map(|item| item.as_message().unwrap().1).collect();
        assert_eq!(texts, [turn.message.clone(), expected_reply(&turn.message)]);
    }
    let adopted = adoptions(&instances);
    println!("{adopted} times one adopted what the other had executed");
    assert!(kills < 2 || adopted > 0, "no run was adopted");
    let chats: Vec<&str> =
        chats.as_array().unwrap().iter().map(|chat| chat["id"].as_str().unwrap()).collect();
    let stored = Tables::new(database.dsn().to_owned()).restricted_to(&chats).settled().await;
    done.store(true, Ordering::Relaxed);
    let twice = person.await.unwrap();
    assert_eq!(twice, 0, "answers accepted after another answer");
    assert_eq!(database.scalar("SELECT count(*) FROM runs WHERE finished_at IS NULL").await, "0");
    for service in instances {
        tokio::task::block_in_place(|| service.stop());
    }
    oracle::audit(&folder, &stored, "[]");
}

/// Number of times that an instance has adopted the other one's runs.
fn adoptions(instances: &[Service]) -> usize {
    let adopts = |line: &&str| line.contains("adopted orphaned runs") && !line.contains("taken=0");
    instances.iter().map(|service| service.logged().lines().filter(adopts).count()).sum()
}

fn time(value: &Value) -> DateTime<FixedOffset> {
    DateTime::parse_from_rfc3339(value.as_str().unwrap()).unwrap()
}

async fn join_clients<T>(tasks: Vec<tokio::task::JoinHandle<Vec<T>>>) -> Vec<T> {
    let mut all = Vec::new();
    for task in tasks {
        let ended = kernel::timeout(&SystemClock::new(), 2 * LIMIT, task).await;
        all.extend(ended.expect("every client to end").unwrap());
    }
    all
}

async fn waiting_run(client: &Client) -> String {
    let nodes = [
        json!({"name": "before", "type": "delay", "seconds": 0.05}),
        json!({"name": "ok", "type": "wait_for_input"}),
        json!({"name": "after", "type": "delay", "seconds": 0.1}),
    ];
    let graph = graphs::chain(&nodes, Some(json!("{{ results.ok.value }} {{ inputs.n }}")));
    WorkflowBuilder::new(client.clone()).graph(graph).create().await.id
}

/// Starts runs that wait for a person, one after another; returns each with its input.
async fn keep_waiting(
    client: &Client,
    workflow: &str,
    number: usize,
    stopped: &AtomicBool,
) -> Vec<(String, usize)> {
    let mut started = Vec::new();
    for count in 0.. {
        if stopped.load(Ordering::Relaxed) {
            break;
        }
        let options = RunOptions { wait: None, idempotency_key: Some(format!("waits-{number}-{count}")) };
        let request = CreateRun { inputs: Some(json!({"n": count})), ..CreateRun::default() };
        let id = loop {
            match client.begin_run(workflow, &request, &options).await {
                Ok(started) => break started.run.id,
                Err(error) => assert_kill_error(&error),
            }
            pause(20).await;
        };
        started.push((id.clone(), count));
        runs::ended(client, &id, LIMIT).await;
    }
    started
}

/// Chats with a workflow that waits for a person, one turn after another, and reads each to its end.
async fn keep_asking(client: &Client, workflow: &str, number: usize, stopped: &AtomicBool) -> Vec<OpenTurn> {
    let mut turns = Vec::new();
    for count in 0.. {
        if stopped.load(Ordering::Relaxed) {
            break;
        }
        let message = format!("paint wall {number}-{count}");
        let operation = ChatOperation::CreateThread { input: UserMessageInput::text(&message) };
        let request = ChatRequest { operation, metadata: Map::new() };
        let key = Some(format!("asks-{number}-{count}"));
        let options = ChatOptions { idempotency_key: key, ..ChatOptions::default() };
        let whole = async {
            loop {
                match client.follow(workflow, &request, &options).await {
                    Ok(chat) => break chat.collect().await,
                    Err(error) => assert_kill_error(&error),
                }
                pause(20).await;
            }
        };
        let turn = kernel::timeout(&SystemClock::new(), LIMIT, whole).await;
        let turn = turn.unwrap_or_else(|| panic!("{message} is not answered")).unwrap();
        assert_eq!((turn.text, turn.error), (expected_reply(&message), None), "{message}");
        turns.push(OpenTurn { thread: turn.thread_id, message });
    }
    turns
}

fn expected_reply(message: &str) -> String {
    format!("Asking. You may {message}: yes it is.")
}

/// The person: answers all open questions until `done`. Returns the number of answers accepted after another one.
async fn answer_all(client: Client, workflows: [String; 2], done: Arc<AtomicBool>) -> usize {
    let mut accepted = std::collections::HashSet::new();
    let mut twice = 0;
    while !done.load(Ordering::Relaxed) {
        for workflow in &workflows {
            let filter =
                RunsFilter { workflow: Some(workflow.clone()), waits: Some(true), ..RunsFilter::default() };
            let Ok(waiting) = client.runs_of_workspace(&filter, &client::Part::default()).await else {
                continue;
            };
            for run in waiting.data {
                match client.answer_run(&run.id, "ok", &json!("yes")).await {
                    Ok(_) => twice += usize::from(!accepted.insert(run.id)),
                    Err(error) if error.status() == Some(409) => {}
                    Err(error) => assert_kill_error(&error),
                }
            }
        }
        pause(50).await;
    }
    twice
}

/// Asserts that an error is due to a kill: no connection, a broken one, or 503 from a starting instance.
fn assert_kill_error(error: &client::ClientError) {
    assert!(error.status().is_none_or(|status| status == 503), "{error:?}");
}
