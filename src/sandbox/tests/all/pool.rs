//! Pool behaviour.

use base64::Engine as _;
use futures_util::future::join_all;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use sandbox::{DocumentLimits, Options, Sandbox, SandboxError, Source};
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use crate::*;

/// Whether any thread of the worker is alive. The first thread may become a zombie before the others end, and stays one
/// until the process is waited for; its memory is released by then.
fn lives(worker: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{worker}/task")) else { return false };
    let status = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("stat"));
    threads.flatten().filter_map(|thread| status(thread).ok()).any(|status| !status.contains(") Z "))
}

/// Processes started by this one.
fn children() -> Vec<u32> {
    let own = std::process::id();
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{own}/task")).unwrap() {
        let list = std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default();
        found.extend(list.split_whitespace().map(|id| id.parse::<u32>().unwrap()));
    }
    found.retain(|child| lives(*child));
    found
}

#[tokio::test]
async fn many_calls_share_few_workers() {
    let sandbox = sandbox(2);
    let calls = (0..100).map(|n| {
        let language = if n % 2 == 0 { Python } else { Javascript };
        let source = if n % 2 == 0 { "args['n'] * 2" } else { "args.n * 2" };
        let workspace = sandbox.for_owner(Uuid::from_u128(n % 2));
        async move { workspace.call(alone(language, source, json!({"n": n}))).await }
    });
    for (n, outcome) in join_all(calls).await.into_iter().enumerate() {
        assert_eq!(outcome.unwrap().value, json!(n * 2));
    }
    assert_eq!(children().len(), 2);
    assert_eq!(sandbox.idle().len(), 2);
    drop(sandbox);
    until("they end with the sandbox", || children().is_empty()).await;
}

#[tokio::test]
async fn a_dropped_call_ends_its_worker() {
    let sandbox = sandbox(1);
    let call = within(60.0, alone(Python, "while True:\n    pass\n", Value::Null));
    let running = tokio::spawn({
        let sandbox = sandbox.clone();
        async move { sandbox.call(call).await }
    });
    until("a worker has started", || children().len() == 1).await;
    let worker = children()[0];
    sleep(50).await;
    running.abort();
    until("it was killed", || !lives(worker)).await;
    assert_eq!(ran(&sandbox, Python, "1").await.unwrap().value, json!(1));
}

#[tokio::test]
async fn a_worker_that_is_killed_fails_its_call_alone() {
    let sandbox = sandbox(1);
    let running = tokio::spawn({
        let sandbox = sandbox.clone();
        let call = within(60.0, alone(Javascript, "for (;;) {}", Value::Null));
        async move { sandbox.call(call).await }
    });
    until("a worker has started", || children().len() == 1).await;
    sleep(50).await;
    let pid = Pid::from_raw(children()[0].try_into().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    assert_eq!(running.await.unwrap(), Err(SandboxError::Crashed));
    assert_eq!(ran(&sandbox, Javascript, "1").await.unwrap().value, json!(1));

    // A killed idle worker is replaced unnoticed.
    let idle = sandbox.idle()[0];
    kill_process(Pid::from_raw(idle.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
    until("it is gone", || !lives(idle)).await;
    assert_eq!(ran(&sandbox, Javascript, "2").await.unwrap().value, json!(2));
    assert_ne!(sandbox.idle(), [idle]);
}

#[tokio::test]
async fn a_worker_with_high_memory_use_is_replaced() {
    let sandbox = sandbox(1);
    ran(&sandbox, Python, "1").await.unwrap();
    let first = sandbox.idle();
    ran(&sandbox, Python, "1").await.unwrap();
    assert_eq!(sandbox.idle(), first);
    let killed = sandbox.call(within(0.3, alone(Python, "while True:\n    pass\n", Value::Null))).await;
    assert!(matches!(killed, Err(SandboxError::Timeout(_))));
    until("another one has started", || sandbox.idle().len() == 1).await;
    assert_ne!(sandbox.idle(), first);
}

#[tokio::test]
async fn a_full_queue_rejects_at_once() {
    let sandbox = Sandbox::new(Options { workers: 1, queue: 1, ..Options::new(binary()) });
    let long = || sandbox.call(within(1.0, alone(Python, "while True:\n    pass\n", Value::Null)));
    let ends = join_all([long(), long(), long()]).await;
    let busy = ends.iter().filter(|end| **end == Err(SandboxError::QueueFull { held: 1 })).count();
    assert_eq!(busy, 1, "{ends:?}");
    assert!(
        ends.iter().all(|end| matches!(end, Err(SandboxError::QueueFull { .. } | SandboxError::Timeout(_))))
    );
}

#[tokio::test]
async fn endless_code_of_one_workspace_leaves_workers_to_others() {
    let sandbox = sandbox(2);
    let hostile = sandbox.for_owner(Uuid::from_u128(1));
    let endless: Vec<_> = (0..6)
        .map(|_| {
            let hostile = hostile.clone();
            let call = within(60.0, alone(Python, "while True:\n    pass\n", Value::Null));
            AbortOnDropHandle::new(tokio::spawn(async move { hostile.call(call).await }))
        })
        .collect();
    until("one worker runs", || children().len() == 1).await;
    sleep(100).await;
    assert_eq!(children().len(), 1, "one workspace uses half of the workers");

    // Each of these would wait for a minute or more if it shared slots with the endless calls.
    let clock = SystemClock::new();
    let began = clock.monotonic();
    let other = sandbox.for_owner(Uuid::from_u128(2));
    assert_eq!(ran(&other, Python, "1").await.unwrap().value, json!(1));
    let feed = "<rss version='2.0'><channel><title>t</title></channel></rss>";
    let encoded = base64::engine::general_purpose::STANDARD.encode(feed);
    let limits = DocumentLimits { time: Duration::from_secs(20), pages: 5, text: 1000 };
    assert!(hostile.read_feed(encoded, "https://example.org".to_owned(), limits).await.unwrap().is_ok());
    let survey = hostile.survey(Python, Arc::default(), Source::Alone("1".to_owned())).await;
    assert!(survey.unwrap().is_ok());
    assert!(clock.monotonic() - began < Duration::from_secs(50));
    assert!(endless.iter().all(|call| !call.is_finished()));
}

#[tokio::test]
async fn a_call_without_a_free_worker_reports_its_wait() {
    let wait = Duration::from_millis(300);
    let sandbox = Sandbox::new(Options { workers: 1, wait, ..Options::new(binary()) });
    let long = within(60.0, alone(Python, "while True:\n    pass\n", Value::Null));
    let busy = AbortOnDropHandle::new(tokio::spawn({
        let sandbox = sandbox.clone();
        async move { sandbox.call(long).await }
    }));
    until("a worker has started", || children().len() == 1).await;
    let refused = sandbox.call(within(0.1, alone(Python, "1", Value::Null))).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "no worker was free within 0.3 s; one other call of this workspace was running"
    );
    drop(busy);
}

#[tokio::test]
async fn work_in_this_process_is_bounded_in_threads_and_time() {
    let sandbox = Sandbox::new(Options::new(binary()));
    let owner = |id| sandbox.for_owner(Uuid::from_u128(id));
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(held));
    let hold = |id| {
        let (owner, held) = (owner(id), Arc::clone(&held));
        tokio::spawn(async move { owner.compute(move || held.lock().unwrap().recv().is_err()).await })
    };
    let mut busy: Vec<_> = (0..4).map(|_| hold(1)).collect();
    sleep(50).await;
    let short = Duration::from_millis(100);
    assert_eq!(
        owner(1).compute_within(short, |_| 1).await,
        Err(SandboxError::Busy { waited: short, held: 2 }),
        "one owner uses half of the threads"
    );
    assert_eq!(owner(2).compute_within(short, |_| 2).await, Ok(2));
    busy.extend([hold(2), hold(3)]);
    sleep(50).await;
    assert_eq!(
        owner(4).compute_within(short, |_| 4).await,
        Err(SandboxError::Busy { waited: short, held: 0 })
    );
    drop(release);
    for ended in join_all(busy).await {
        assert_eq!(ended.unwrap(), Some(true));
    }

    let late = owner(4).compute_within(short, |left| std::thread::sleep(left * 3)).await;
    assert_eq!(late, Err(SandboxError::Timeout(short)));
    // A panic with a backtrace takes long in a debug build.
    let ample = Duration::from_secs(20);
    let panicked = owner(4).compute_within(ample, |left| assert!(left.is_zero(), "expected")).await;
    assert_eq!(panicked, Err(SandboxError::Crashed));
}

#[tokio::test]
async fn a_survey_ends_within_its_limit() {
    let sandbox = sandbox(1);
    let limit = Duration::from_millis(400);
    let endless = || {
        let modules = modules(&[("a.js", "for (;;) {}")]);
        sandbox.survey_within(limit, Javascript, modules, Source::Module("a.js".to_owned()))
    };
    let clock = SystemClock::new();
    let (first, second) = tokio::join!(endless(), endless());
    assert!(matches!(first, Err(SandboxError::Timeout(_))), "{first:?}");
    // The second one waits for the only slot that its owner may have.
    assert!(matches!(second, Err(SandboxError::Busy { .. } | SandboxError::Timeout(_))), "{second:?}");
    assert!(clock.monotonic() < Duration::from_millis(1500), "{:?}", clock.monotonic());
}

#[tokio::test]
async fn a_program_that_is_not_a_worker_is_named() {
    for program in ["/bin/true", "/nonexistent"] {
        let sandbox = Sandbox::new(Options::new(program.into()));
        let ended = ran(&sandbox, Python, "1").await;
        assert!(matches!(ended, Err(SandboxError::Unavailable(_))), "{ended:?}");
    }
}

#[tokio::test]
async fn values_are_returned_unchanged() {
    let sandbox = sandbox(1);
    let value = json!({"a": [1, 2.5, "x".repeat(100_000)], "b": {"c": null}});
    assert_eq!(sandbox.echo(value.clone()).await, Ok(value));
}

#[test]
fn a_worker_in_an_endless_loop_ends_with_the_service() {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    let request = r#"{"task":{"call":{"language":"python","entry":{"source":"while True:\n    pass\n"},"args":null}},"modules":{},"memory":1000000,"output":1000,"logs":10}"#;
    let mut worker = Command::new(binary())
        .arg("sandbox-worker")
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 23];
    worker.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    let mut requests = worker.stdin.take().unwrap();
    requests.write_all(&u32::try_from(request.len()).unwrap().to_le_bytes()).unwrap();
    requests.write_all(request.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert!(test_kill_process(Pid::from_child(&worker)).is_ok());
    assert!(worker.try_wait().unwrap().is_none());
    drop(requests);
    assert!(worker.wait().unwrap().success());
}
