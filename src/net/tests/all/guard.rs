//! Names, the operator's exceptions, and the service's own addresses.

use std::sync::Arc;

use kernel::SystemClock;
use net::{Client, Host, HostPort, Limits, NetErrorKind};

use crate::support::{Server, Step, Stub, client, client_of, error_of, get, guard, host_port, ok};

async fn kind(guard: &net::Guard, host: &str, port: u16) -> Option<NetErrorKind> {
    guard.open(&Host::parse(host).unwrap(), port).await.err().map(|error| error.kind)
}

#[tokio::test]
async fn every_address_of_a_name_must_be_public() {
    let resolver = Stub::new(&[
        &["93.184.215.14", "2606:2800:21f:cb07::1"],
        &["93.184.215.14", "127.0.0.1"],
        &["2606:2800:21f:cb07::1", "::ffff:10.0.0.1"],
        &["64:ff9b::8.8.8.8", "2002:808:808::1"],
    ]);
    let guard = guard(&resolver, &[], &[]);
    let open = guard.open(&Host::parse("a.test").unwrap(), 443).await.unwrap();
    assert_eq!(open.len(), 2);
    assert!(open.iter().all(|address| address.port() == 443));
    assert_eq!(kind(&guard, "a.test", 443).await, Some(NetErrorKind::Refused));
    assert_eq!(kind(&guard, "a.test", 443).await, Some(NetErrorKind::Refused));
    assert_eq!(kind(&guard, "a.test", 443).await, None, "an address that embeds a public one is public");
}

#[tokio::test]
async fn a_rebound_name_reaches_only_the_checked_address() {
    // First public, then this machine: the second call is checked again.
    let resolver = Stub::new(&[&["93.184.215.14"], &["127.0.0.1"]]);
    let judge = guard(&resolver, &[], &[]);
    assert_eq!(kind(&judge, "rebind.test", 80).await, None);
    assert_eq!(kind(&judge, "rebind.test", 80).await, Some(NetErrorKind::Refused));

    // One request resolves once and connects to that answer, although the next lookup would return another.
    let first = Server::answering(ok("first")).await;
    let port = first.at.port();
    let second = Server::on("127.0.0.2", port, Arc::new(|_| vec![Step::Send(ok("second").into())])).await;
    let resolver = Stub::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let client = client(&resolver, &[host_port("rebind.test", port)]);
    let url = first.url("rebind.test");
    let answer = get(&client, &url, &Limits::default()).await.unwrap();
    assert_eq!(answer.bytes().await.unwrap(), "first");
    assert_eq!(*resolver.lookups.lock(), ["rebind.test"]);
    assert!(second.seen.lock().is_empty());
    // The pooled connection is not reused after the name resolves elsewhere.
    let answer = get(&client, &url, &Limits::default()).await.unwrap();
    assert_eq!(answer.bytes().await.unwrap(), "second");
    assert!(first.seen.lock()[0].contains(&format!("host: rebind.test:{port}\r\n")));
}

#[tokio::test]
async fn the_allow_list_opens_exactly_its_entries() {
    let allow = [host_port("Intranet.test", 8080), host_port("10.0.0.7", 9000), host_port("[fd00::7]", 9000)];
    let guard = guard(&Stub::new(&[&["10.0.0.7"]]), &allow, &[]);
    for (host, port) in [("intranet.test", 8080), ("intranet.test.", 8080), ("10.0.0.7", 9000)]
        .into_iter()
        .chain([("[fd00::7]", 9000), ("[::ffff:10.0.0.7]", 9000), ("0xa000007", 9000)])
    {
        assert_eq!(kind(&guard, host, port).await, None, "{host}:{port}");
    }
    for (host, port) in [("intranet.test", 8081), ("x.intranet.test", 8080), ("10.0.0.7", 9001)]
        .into_iter()
        .chain([("10.0.0.8", 9000), ("other.test", 9000), ("[fd00::8]", 9000), ("[64:ff9b::10.0.0.7]", 9000)])
    {
        assert_eq!(kind(&guard, host, port).await, Some(NetErrorKind::Refused), "{host}:{port}");
    }
}

#[tokio::test]
async fn addresses_of_the_service_stay_closed_even_if_listed() {
    let resolver = Stub::new(&[&["127.0.0.1"]]);
    let allow: Vec<HostPort> = [("127.0.0.1", 7000), ("a.test", 7000), ("[::1]", 7000), ("0.0.0.0", 7000)]
        .into_iter()
        .chain([("127.0.0.1", 7001), ("db.test", 5432), ("127.0.0.1", 5432)])
        .map(|(host, port)| host_port(host, port))
        .collect();
    let own = [host_port("0.0.0.0", 7000), host_port("db.test", 5432)];
    let guard = guard(&resolver, &allow, &own);
    for (host, port) in [("127.0.0.1", 7000), ("a.test", 7000), ("[::1]", 7000), ("0.0.0.0", 7000)]
        .into_iter()
        .chain([("db.test", 5432), ("db.test.", 5432), ("127.0.0.1", 5432)])
    {
        assert_eq!(kind(&guard, host, port).await, Some(NetErrorKind::Refused), "{host}:{port}");
    }
    assert_eq!(kind(&guard, "127.0.0.1", 7001).await, None, "another port of this machine");
}

#[tokio::test]
async fn the_operator_client_checks_no_address_and_follows_no_redirect() {
    let server =
        Server::answering("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")
            .await;
    let client = Client::operator(Arc::new(SystemClock::new())).unwrap();
    let answer = get(&client, &server.url("127.0.0.1"), &Limits::default()).await.unwrap();
    assert_eq!(answer.status().as_u16(), 302);
    // Its URL may contain a user, which is sent as Basic credentials.
    let url = format!("http://me:pw@{}/", server.at);
    get(&client, &url, &Limits::default()).await.unwrap();
    assert!(server.seen.lock()[1].contains("authorization: Basic bWU6cHc=\r\n"), "{:?}", server.seen.lock());
}

#[tokio::test]
async fn the_operator_client_at_an_address_resolves_no_name() {
    let server = Server::answering(ok("here")).await;
    let client = Client::operator_at(server.at, Arc::new(SystemClock::new())).unwrap();
    let answer = get(&client, &server.url("nowhere.invalid"), &Limits::default()).await.unwrap();
    assert_eq!(answer.status().as_u16(), 200);
    assert!(server.seen.lock()[0].contains("host: nowhere.invalid:"), "{:?}", server.seen.lock());
}

#[tokio::test]
async fn connection_headers_cannot_be_overridden() {
    let server = Server::answering(ok("server")).await;
    let client = client_of(&server);
    let request = net::Request::new(net::Method::GET, server.url("a.test"))
        .header("Host", "internal")
        .and_then(|request| request.header("Transfer-Encoding", "chunked"))
        .and_then(|request| request.header("X-Mine", "1"))
        .unwrap();
    client.send(request, &Limits::default()).await.unwrap();
    let seen = server.seen.lock()[0].clone();
    assert!(seen.contains("x-mine: 1\r\n") && seen.contains("accept-encoding: identity\r\n"), "{seen}");
    assert!(!seen.contains("internal") && !seen.contains("chunked"), "{seen}");
    assert!(error_of(&client, "http://a.test:1/").await.message.starts_with("a.test:1 (127.0.0.1) may not"));
}

/// The variable that tells the child process its server's port.
const CHILD: &str = "CALLBOARD_TEST_PROXY_CHILD";

#[tokio::test]
async fn proxies_of_the_environment_are_ignored() {
    if let Ok(port) = std::env::var(CHILD) {
        // The child process, whose environment names a proxy.
        let open = [host_port("a.test", port.parse().unwrap())];
        let guarded = client(&Stub::new(&[&["127.0.0.1"]]), &open);
        let operator = Client::operator(Arc::new(SystemClock::new())).unwrap();
        for (client, host) in [(guarded, "a.test"), (operator, "127.0.0.1")] {
            let answer = get(&client, &format!("http://{host}:{port}/"), &Limits::default()).await.unwrap();
            assert_eq!(answer.bytes().await.unwrap(), "server");
        }
        return;
    }
    let (server, proxy) = (Server::answering(ok("server")).await, Server::answering(ok("proxy")).await);
    let mut child = tokio::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "guard::proxies_of_the_environment_are_ignored"]);
    child.env(CHILD, server.at.port().to_string()).env_remove("NO_PROXY").env_remove("no_proxy");
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        child.env(name, format!("http://{}", proxy.at));
    }
    let output = child.output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(server.seen.lock().len(), 2);
    assert!(proxy.seen.lock().is_empty());
}
