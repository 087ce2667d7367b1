//! The service behind each proxy in `deploy/`, over TLS.

use std::net::{IpAddr, Ipv4Addr};

use integration_tests::{
    AnswerExt, BOOTSTRAP, JSON, Raw, RawAnswer, Socket, TestService, chat, graphs, until,
};
use serde_json::{Value, json};

use super::front::{APPS, Engine, Front, HOST};
use super::tunnel::{Tunnel, speaks_tls};

const LARGEST_BUNDLE: usize = 104_857_600;

/// The service, the proxy in front of it, and a client.
pub(super) struct ProxiedService {
    pub(super) t: TestService,
    pub(super) front: Front,
    engine: Engine,
}

impl ProxiedService {
    pub(super) async fn start(engine: Engine) -> Self {
        let t = TestService::builder()
            .alone()
            .manual_clock()
            .with_bootstrap_token()
            .set("SERVICE_TRUSTED_PROXIES", r#"["127.0.0.1"]"#)
            .set("SERVICE_APPS_DOMAIN", APPS)
            .set("SERVICE_AUTH_RATE_LIMIT_IP", "2")
            .set("SERVICE_APPS_MAX_COMPRESSED_BYTES", LARGEST_BUNDLE.to_string())
            .start()
            .await;
        let front = Front::start(engine, t.address()).await;
        let setting = Self { t, front, engine };
        until("the proxy to find the service", async || setting.get("/readyz").await.status == 200).await;
        setting
    }

    async fn tunnel(&self, last: u8, name: &str) -> Tunnel {
        let from = IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
        Tunnel::open(from, self.front.https, name, &self.front.authority).await
    }

    /// Sends a request from the address 127.0.0.`last`.
    pub(super) async fn send(
        &self,
        last: u8,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> RawAnswer {
        let tunnel = self.tunnel(last, HOST).await;
        let all = [&[("host", HOST), ("connection", "close")], headers].concat();
        Raw::connect(tunnel.address).await.request(method, path, &all, body).await
    }

    pub(super) async fn get(&self, path: &str) -> RawAnswer {
        self.send(2, "GET", path, &[], "").await
    }
}

#[tokio::test]
async fn nginx_forwards_everything_the_service_needs() {
    check_engine(Engine::Nginx).await;
}

#[tokio::test]
async fn haproxy_forwards_everything_the_service_needs() {
    check_engine(Engine::Haproxy).await;
}

#[tokio::test]
async fn caddy_forwards_everything_the_service_needs() {
    check_engine(Engine::Caddy).await;
}

async fn check_engine(engine: Engine) {
    let setting = ProxiedService::start(engine).await;
    plain_http_is_redirected(&setting).await;
    a_chat_arrives_piece_by_piece(&setting).await;
    a_websocket_runs_a_workflow(&setting).await;
    the_clients_scheme_is_forwarded(&setting).await;
    limits_apply_to_the_client_address(&setting).await;
    large_uploads_reach_the_service(&setting).await;
    rejected_uploads_get_their_response(&setting).await;
    metrics_are_closed(&setting).await;
    hosts_of_apps_reach_the_service(&setting).await;
}

async fn plain_http_is_redirected(setting: &ProxiedService) {
    let raw = Raw::connect(setting.front.http).await;
    let answer = raw.request("GET", "/chat/x?y=1", &[("host", HOST)], "").await.expect(308);
    let to = answer.header("location").unwrap();
    assert!(to.starts_with(&format!("https://{HOST}")) && to.ends_with("/chat/x?y=1"), "{to}");
}

async fn a_chat_arrives_piece_by_piece(setting: &ProxiedService) {
    let t = &setting.t;
    let workflow = t.workflow().graph(graphs::words("one two three", 5_000)).published().create().await;
    let body = chat::create(&workflow, "hi").to_string();
    let mut answer = setting.send(2, "POST", "/api/chat", &[JSON], &body).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/event-stream")));
    // The clock is stopped: these bytes arrived before the rest was written.
    let beginning = answer.until("one").await;
    assert!(!beginning.contains("two"), "{beginning}");
    let rest = t.while_time_passes(answer.rest()).await;
    assert!(rest.contains("two") && rest.contains("thread.item.done"), "{rest}");
    // The service notices readers who disconnect.
    let path = "/api/system/stream?events=3";
    let mut left = setting.get(path).await;
    assert_eq!(left.until("\n\n").await, "data: {\"event\":1,\"of\":3}\n\n");
    drop(left);
}

async fn a_websocket_runs_a_workflow(setting: &ProxiedService) {
    let workflow = setting.t.workflow().echo().create().await;
    let tunnel = setting.tunnel(2, HOST).await;
    let bearer = format!("Bearer {BOOTSTRAP}");
    let headers = [("host", HOST), ("authorization", bearer.as_str())];
    let mut socket = Socket::open(tunnel.address, &format!("/ws/workflow/{}", workflow.id), &headers).await;
    socket.say(&json!({"type": "run_workflow", "inputs": {"message": "hi"}})).await;
    let events = socket.until("run_completed").await;
    assert_eq!(events[0]["type"], "run_started");
    socket.close().await;
}

async fn the_clients_scheme_is_forwarded(setting: &ProxiedService) {
    let workflow = setting.t.workflow().echo().create().await;
    let bearer = format!("Bearer {BOOTSTRAP}");
    // The client's own forwarding headers do not count.
    let headers = [
        ("authorization", bearer.as_str()),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-host", "evil.example.org"),
        ("forwarded", "host=evil.example.org;proto=http"),
    ];
    let path = workflow.path("/publish");
    let answer = setting.send(2, "POST", &path, &headers, "").await.whole().await.expect(201);
    let published: Value = answer.value();
    let url = published["share_url"].as_str().unwrap();
    assert!(url.starts_with(&format!("https://{HOST}/chat/")), "{url}");
}

async fn limits_apply_to_the_client_address(setting: &ProxiedService) {
    let fails = async |last: u8, claimed: &str| {
        let headers = [("authorization", "Bearer wrong"), ("x-forwarded-for", claimed)];
        setting.send(last, "GET", "/api/workflows", &headers, "").await.status
    };
    assert_eq!(fails(3, "192.0.2.1").await, 401);
    assert_eq!(fails(3, "192.0.2.2").await, 401);
    assert_eq!(fails(3, "192.0.2.3").await, 429, "claimed addresses are ignored");
    assert_eq!(fails(4, "192.0.2.1").await, 401, "another client is not limited");
}

async fn large_uploads_reach_the_service(setting: &ProxiedService) {
    let bearer = format!("Bearer {BOOTSTRAP}");
    let app = json!({"alias": "notes", "name": "Notes"});
    assert_eq!(setting.t.root().post("/api/apps", &app).await.status, 201);
    let tunnel = setting.tunnel(5, HOST).await;
    let headers = [("host", HOST), ("content-type", "application/zip"), ("authorization", bearer.as_str())];
    let raw = Raw::connect(tunnel.address).await;
    let answer = raw.request("POST", "/api/apps/notes/deployments", &headers, vec![0; LARGEST_BUNDLE]).await;
    // The service has received every byte, and rejected them as not an archive.
    assert_eq!(answer.status, 422, "{:?}", setting.engine);
    assert!(answer.whole().await.text().contains("not_a_zip"));
}

async fn rejected_uploads_get_their_response(setting: &ProxiedService) {
    let bearer = format!("Bearer {BOOTSTRAP}");
    for (path, kind, length, expected) in [
        ("/api/apps/nothing/deployments", "application/zip", LARGEST_BUNDLE, "404 app_not_found"),
        ("/api/apps/notes/deployments", "text/plain", LARGEST_BUNDLE, "415 request.unsupported_media_type"),
        ("/api/apps/notes/deployments", "application/zip", LARGEST_BUNDLE + 1, "413 bundle_too_large"),
        ("/api/apps", "application/json", LARGEST_BUNDLE, "413 request.too_large"),
    ] {
        let tunnel = setting.tunnel(5, HOST).await;
        let headers = [("host", HOST), ("content-type", kind), ("authorization", bearer.as_str())];
        let answer =
            Raw::connect(tunnel.address).await.request("POST", path, &headers, vec![0; length]).await;
        let answer = answer.whole().await;
        assert_eq!(answer.refusal(), expected, "{:?} {path}", setting.engine);
    }
}

async fn metrics_are_closed(setting: &ProxiedService) {
    for path in ["/metrics", "/%6detrics"] {
        let answer = setting.get(path).await;
        assert_eq!(
            (answer.status, answer.header("x-request-id")),
            (404, None),
            "{path} is answered by the proxy"
        );
    }
}

async fn hosts_of_apps_reach_the_service(setting: &ProxiedService) {
    setting.t.app("desk").file("index.html", "<p>The desk").publish().await;
    let ask = async |host: &str, path: &str| {
        let tunnel = setting.tunnel(2, host).await;
        Raw::connect(tunnel.address).await.request("GET", path, &[("host", host)], "").await
    };
    let host = format!("desk.{APPS}");
    for (path, status) in [("/", 200), ("/metrics", 404)] {
        let answer = ask(&host, path).await;
        assert_eq!((answer.status, answer.header("origin-agent-cluster")), (status, Some("?1")), "{path}");
        assert!(
            answer.header("strict-transport-security").is_some(),
            "the service knows that the scheme is https"
        );
        assert!(answer.header("x-request-id").is_some());
        let text = answer.whole().await.text();
        assert_eq!(text.contains("The desk"), status == 200, "{text}");
    }
    // `notes` exists, but is not published.
    for alias in ["notes", "other"] {
        let host = format!("{alias}.{APPS}");
        match setting.engine {
            // Caddy asks the service for permission to get a host's certificate.
            Engine::Caddy => {
                let trusts = &setting.front.authority;
                assert!(!speaks_tls(setting.front.https, &host, trusts).await, "{host} has a certificate");
            }
            Engine::Nginx | Engine::Haproxy => {
                let answer = ask(&host, "/").await;
                let policy = answer.header("origin-agent-cluster");
                assert_eq!((answer.status, policy), (404, Some("?1")), "{host}");
            }
        }
    }
}
