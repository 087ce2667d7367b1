//! The service's memory after a load.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use client::Client;
use wire::CreateWorkflow;

use crate::support::{Running, callboard, folder};

/// Sockets of the load.
const SOCKETS: usize = 500;
/// Bytes of the unfinished message on each socket. Together they fit into the budget of one sender.
const UNFINISHED: u16 = 60_000;
/// The least growth under the load. It is about 80 MiB.
const GROWTH: usize = 30 << 10;
/// Memory is returned every ten seconds.
const RETURNED_WITHIN: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(250);

/// KiB of anonymous memory.
fn memory(running: &Running) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// A socket with an unfinished message.
fn open(address: &str, workflow: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let handshake = format!(
        "GET /ws/workflow/{workflow} HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(handshake.as_bytes()).unwrap();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", head.escape_ascii());
    // A masked text frame with a length of 16 bits, without its last byte.
    let mut frame = vec![0x81, 0xfe];
    frame.extend(UNFINISHED.to_be_bytes());
    frame.extend([0; 4]);
    frame.resize(frame.len() + usize::from(UNFINISHED) - 1, b' ');
    stream.write_all(&frame).unwrap();
    stream
}

#[test]
fn an_idle_service_returns_the_memory_of_its_last_load() {
    let folder = folder();
    let mut running = Running::start(callboard(&folder, &["serve"], &[("SERVICE_LOG", "error")]));
    let line = running.line("listening on ");
    let base = line.strip_prefix("listening on ").unwrap();
    let address = base.strip_prefix("http://").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let workflow = runtime.block_on(async {
        let new =
            CreateWorkflow { name: "Load".to_owned(), handle: None, description: None, tags: Vec::new() };
        Client::new(base).unwrap().create_workflow(&new).await.unwrap().id
    });
    drop(open(address, &workflow));
    let before = memory(&running);
    let sockets: Vec<TcpStream> = (0..SOCKETS).map(|_| open(address, &workflow)).collect();
    let poll = |holds: &dyn Fn(usize) -> bool| {
        let mut waited = Duration::ZERO;
        let mut now = memory(&running);
        while !holds(now) && waited < RETURNED_WITHIN {
            std::thread::sleep(POLL);
            waited += POLL;
            now = memory(&running);
        }
        now
    };
    let loaded = poll(&|now| now > before + GROWTH);
    assert!(loaded > before + GROWTH, "{before} KiB before and {loaded} KiB under the load");
    drop(sockets);
    let bound = before + (loaded - before) / 4;
    let after = poll(&|now| now < bound);
    assert!(after < bound, "{before} KiB before, {loaded} KiB under the load and {after} KiB after it");
    assert_eq!(running.stop().0, Some(0));
}
