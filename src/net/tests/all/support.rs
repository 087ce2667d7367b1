//! A scripted server, and a resolver that a test controls.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Clock as _, SystemClock};
use net::{Client, Egress, Guard, Host, HostPort, Limits, Method, NetError, Request, Resolver, Response};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The server's steps after it has read a request.
pub(crate) type Script = Arc<dyn Fn(String) -> Vec<Step> + Send + Sync>;

pub(crate) enum Step {
    Send(Vec<u8>),
    /// Repeats until the peer stops reading.
    Forever(Vec<u8>, Duration),
    Wait(Duration),
}

pub(crate) struct Server {
    pub(crate) at: SocketAddr,
    /// Received requests.
    pub(crate) seen: Arc<Mutex<Vec<String>>>,
    /// Bytes that the peer has read.
    pub(crate) sent: Arc<Mutex<u64>>,
}

impl Server {
    pub(crate) async fn on(ip: &str, port: u16, script: Script) -> Self {
        let listener = TcpListener::bind((ip, port)).await.unwrap();
        let at = listener.local_addr().unwrap();
        let (seen, sent) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
        let (requests, bytes) = (Arc::clone(&seen), Arc::clone(&sent));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (script, seen, sent) = (Arc::clone(&script), Arc::clone(&requests), Arc::clone(&bytes));
                tokio::spawn(async move { serve(stream, script, seen, sent).await });
            }
        });
        Self { at, seen, sent }
    }

    /// Answers every request with the same bytes.
    pub(crate) async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::on("127.0.0.1", 0, Arc::new(move |_| vec![Step::Send(answer.clone())])).await
    }

    pub(crate) fn url(&self, host: &str) -> String {
        format!("http://{host}:{}/path?q=secret", self.at.port())
    }
}

pub(crate) async fn pause(time: Duration) {
    SystemClock::new().sleep(time).await;
}

async fn serve(mut stream: TcpStream, script: Script, seen: Arc<Mutex<Vec<String>>>, sent: Arc<Mutex<u64>>) {
    while let Some(request) = read_request(&mut stream).await {
        seen.lock().push(request.clone());
        for step in script(request) {
            match step {
                Step::Wait(time) => pause(time).await,
                Step::Send(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Step::Forever(bytes, between) => loop {
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                    *sent.lock() += bytes.len() as u64;
                    pause(between).await;
                },
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut read = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        read.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some(end) = text.find("\r\n\r\n") {
            let length = text
                .to_lowercase()
                .split("content-length: ")
                .nth(1)
                .map_or(0, |rest| rest.split("\r\n").next().unwrap().parse::<usize>().unwrap());
            if read.len() >= end + 4 + length {
                return Some(text);
            }
        }
    }
}

pub(crate) fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// Answers from a list and repeats the last answer; records every lookup.
pub(crate) struct Stub {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    pub(crate) lookups: Mutex<Vec<String>>,
}

impl Stub {
    pub(crate) fn new(answers: &[&[&str]]) -> Arc<Self> {
        let answers = answers.iter().map(|one| one.iter().map(|ip| ip.parse().unwrap()).collect()).collect();
        Arc::new(Self { answers: Mutex::new(answers), lookups: Mutex::default() })
    }
}

#[async_trait]
impl Resolver for Stub {
    async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        self.lookups.lock().push(name.to_owned());
        let mut answers = self.answers.lock();
        let next = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        next.ok_or_else(|| "no such name".into())
    }
}

pub(crate) fn host_port(host: &str, port: u16) -> HostPort {
    HostPort { host: Host::parse(host).unwrap(), port }
}

pub(crate) fn guard(resolver: &Arc<Stub>, allow: &[HostPort], own: &[HostPort]) -> Guard {
    let egress = Egress { allow: allow.to_vec(), own: own.to_vec() };
    Guard::new(egress, Arc::clone(resolver) as Arc<dyn Resolver>)
}

/// A guarded client that may reach `allow`.
pub(crate) fn client(resolver: &Arc<Stub>, allow: &[HostPort]) -> Client {
    Client::guarded(Arc::new(guard(resolver, allow, &[])), Arc::new(SystemClock::new())).unwrap()
}

/// A guarded client that resolves every name to 127.0.0.1 and may call the server's port there.
pub(crate) fn client_of(server: &Server) -> Client {
    let open = ["a.test", "b.test", "127.0.0.1"].map(|host| host_port(host, server.at.port()));
    client(&Stub::new(&[&["127.0.0.1"]]), &open)
}

pub(crate) async fn get(client: &Client, url: &str, limits: &Limits) -> Result<Response, NetError> {
    client.send(Request::new(Method::GET, url), limits).await
}

/// The error of a request that must fail.
pub(crate) async fn error_of(client: &Client, url: &str) -> NetError {
    match get(client, url, &Limits::default()).await {
        Ok(answer) => panic!("{url} was answered with {}", answer.status()),
        Err(error) => error,
    }
}
