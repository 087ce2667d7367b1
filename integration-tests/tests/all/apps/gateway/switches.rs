//! Two instances, either of which is killed while releases are switched and read: each response is from one release,
//! files of the last hour are found, and no response is a service error.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use integration_tests::{pause, until};
use store::testing::TestDatabase;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::super::archive;
use super::host;
use crate::crash::folder;
use crate::crash::service::Service;

const KILLS: usize = 4;
const READERS: u64 = 4;
const APP: &str = "switched";

#[derive(Default)]
struct ReleaseLog {
    reads: AtomicUsize,
    /// The newest release's number.
    published: AtomicU64,
    ends: AtomicBool,
}

/// A page that names its release in each line.
fn page(number: u64) -> String {
    format!("<p>release {number}\n").repeat(10_000)
}

fn script(number: u64) -> String {
    format!("export default {number};\n").repeat(200)
}

/// Status and body; `None` if the connection broke.
async fn send(address: &str, head: String, body: &[u8]) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    stream.write_all(head.as_bytes()).await.ok()?;
    stream.write_all(body).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    (length == Some(body.len())).then(|| (head[9..12].parse().unwrap(), body.to_owned()))
}

async fn read(release_log: &ReleaseLog, address: &str, path: &str) -> Option<(u16, String)> {
    let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", host(APP));
    let (status, body) = send(address, head, b"").await?;
    release_log.reads.fetch_add(1, Ordering::SeqCst);
    assert!(status < 500, "{path}: {status} {body}");
    Some((status, body))
}

async fn keep_reading(release_log: Arc<ReleaseLog>, addresses: [String; 2], reader: u64) {
    let mut round = reader;
    while !release_log.ends.load(Ordering::SeqCst) {
        round += 1;
        let from = |bit: u64| {
            addresses[usize::from(round.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (60 + bit) & 1 == 1)].as_str()
        };
        let before = release_log.published.load(Ordering::SeqCst);
        let answer = read(&release_log, from(0), "/").await;
        let after = release_log.published.load(Ordering::SeqCst);
        if let Some((status, body)) = answer {
            assert_eq!(status, 200);
            let number: u64 =
                body.lines().next().unwrap().strip_prefix("<p>release ").unwrap().parse().unwrap();
            // The next one may be active before its publisher knows.
            assert!((before..=after + 1).contains(&number), "{number} is not one of {before} to {after}");
            assert!(body == page(number), "a response that mixes two releases");
            for (number, from) in [(number, from(1)), (before - round % before, from(2))] {
                let Some((status, body)) = read(&release_log, from, &format!("/app.{number}.js")).await
                else {
                    continue;
                };
                assert_eq!(status, 200, "the file of release {number} after {before}");
                assert!(body == script(number), "{number}");
            }
        }
        pause(5).await;
    }
}

/// Deploys to alternating instances and makes each deployment the active release.
async fn keep_publishing(release_log: Arc<ReleaseLog>, addresses: [String; 2]) {
    let mut number = release_log.published.load(Ordering::SeqCst) + 1;
    for address in addresses.iter().cycle() {
        if release_log.ends.load(Ordering::SeqCst) {
            return;
        }
        if publish(address, number).await.is_some() {
            release_log.published.store(number, Ordering::SeqCst);
            number += 1;
        }
        pause(60).await;
    }
}

async fn post(
    address: &str,
    path: &str,
    content_type: &str,
    body: &[u8],
) -> Option<(u16, serde_json::Value)> {
    let head = format!(
        "POST /api/apps/{APP}/{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: {content_type}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    let (status, text) = send(address, head, body).await?;
    assert!(status < 500, "{path}: {status} {text}");
    Some((status, serde_json::from_str(&text).unwrap()))
}

/// Deploys and publishes over HTTP; a kill leaves nothing, or a release unknown to its publisher.
async fn publish(address: &str, number: u64) -> Option<()> {
    const JSON: &str = "application/json";
    let (page, script) = (page(number), script(number));
    let bundle =
        archive(&[("index.html", page.as_bytes()), (&format!("app.{number}.js"), script.as_bytes())]);
    let (status, deployed) = post(address, "deployments", "application/zip", &bundle).await?;
    assert_eq!(status, 201, "{deployed}");
    let id = deployed["id"].as_str().unwrap();
    let revision = &deployed["permissions"]["permission_revision"];
    let body = serde_json::json!({"permission_revision": revision}).to_string();
    let (status, answer) =
        post(address, &format!("deployments/{id}/acknowledge"), JSON, body.as_bytes()).await?;
    assert_eq!(status, 200, "{answer}");
    let (status, answer) = post(address, &format!("deployments/{id}/publish"), JSON, b"{}").await?;
    assert_eq!(status, 201, "{answer}");
    Some(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_during_release_switches_cause_no_errors_or_mixed_responses() {
    let database = TestDatabase::create().await;
    let folder = folder("switches");
    let mut instances = ["one", "two"].map(|name| Service::new(&folder, Some(database.dsn())).named(name));
    let ready = async |address: &str| {
        let head = || format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        until("the instance is ready", async || matches!(send(address, head(), b"").await, Some((200, _))))
            .await;
    };
    for instance in &mut instances {
        instance.start();
        ready(instance.address()).await;
    }
    let addresses = instances.each_ref().map(|instance| instance.address().to_owned());
    let body = format!(r#"{{"alias":"{APP}","name":"{APP}","access":"public"}}"#);
    let head = format!(
        "POST /api/apps HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        addresses[0],
        body.len()
    );
    assert_eq!(send(&addresses[0], head, body.as_bytes()).await.unwrap().0, 201);
    let release_log = Arc::new(ReleaseLog::default());
    publish(&addresses[0], 1).await.unwrap();
    release_log.published.store(1, Ordering::SeqCst);
    let readers: Vec<_> = (0..READERS)
        .map(|reader| tokio::spawn(keep_reading(Arc::clone(&release_log), addresses.clone(), reader)))
        .collect();
    let publishing = tokio::spawn(keep_publishing(Arc::clone(&release_log), addresses.clone()));
    for kill in 0..KILLS {
        let (reads, releases) =
            (release_log.reads.load(Ordering::SeqCst), release_log.published.load(Ordering::SeqCst));
        until("reads and publications to continue", async || {
            assert!(!readers.iter().any(tokio::task::JoinHandle::is_finished), "a reader has failed");
            release_log.reads.load(Ordering::SeqCst) >= reads + 50
                && release_log.published.load(Ordering::SeqCst) >= releases + 2
        })
        .await;
        let instance = &mut instances[kill % 2];
        instance.kill();
        instance.start();
        ready(instance.address()).await;
    }
    release_log.ends.store(true, Ordering::SeqCst);
    for reader in readers {
        reader.await.unwrap();
    }
    publishing.await.unwrap();
    for instance in instances {
        instance.stop();
    }
}
