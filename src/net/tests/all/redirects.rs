//! Redirect targets are checked like first addresses.

use std::sync::Arc;

use net::{Limits, Method, NetErrorKind, Request};

use crate::support::{Server, Step, client_of, error_of, get, ok};

fn redirect_to(status: u16, location: &str) -> String {
    format!("HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n")
}

#[tokio::test]
async fn a_redirect_to_a_private_address_is_rejected() {
    for target in
        ["http://169.254.169.254/latest/", "http://[::1]/", "http://evil@a.test/", "file:///etc/passwd"]
            .into_iter()
            .chain(["//10.0.0.1/", "http://0x7f.1:1/", "https://192.168.0.1/"])
    {
        let server = Server::answering(redirect_to(302, target)).await;
        let error = error_of(&client_of(&server), &server.url("a.test")).await;
        assert_eq!(error.kind, NetErrorKind::Refused, "{target}: {error}");
    }
}

#[tokio::test]
async fn at_most_three_redirects_are_followed() {
    for (count, good) in [(3, true), (4, false)] {
        let server = Server::on(
            "127.0.0.1",
            0,
            Arc::new(move |request| {
                let path = request.split(' ').nth(1).unwrap();
                let step: u32 =
                    path.trim_start_matches("/path?q=secret").trim_start_matches('/').parse().unwrap_or(0);
                let answer =
                    if step == count { ok("end") } else { redirect_to(302, &format!("/{}", step + 1)) };
                vec![Step::Send(answer.into())]
            }),
        )
        .await;
        let client = client_of(&server);
        let answer = get(&client, &server.url("a.test"), &Limits::default()).await;
        if good {
            let answer = answer.unwrap();
            assert_eq!(answer.url().path(), "/3");
            assert_eq!(answer.bytes().await.unwrap(), "end");
        } else {
            assert_eq!(answer.err().unwrap().kind, NetErrorKind::Refused);
        }
        assert_eq!(server.seen.lock().len(), 4);
    }
}

/// Sends a POST with secrets to `a.test`, which redirects to `host`; returns the request received there.
async fn redirected(status: u16, host: &str) -> String {
    let server = Server::on("127.0.0.1", 0, {
        let host = host.to_owned();
        Arc::new(move |request| {
            let port = request.split("host: ").nth(1).unwrap().split(':').nth(1).unwrap();
            let port = port.split("\r\n").next().unwrap();
            let first = request.contains("/path");
            let answer =
                if first { redirect_to(status, &format!("http://{host}:{port}/next")) } else { ok("end") };
            vec![Step::Send(answer.into())]
        })
    })
    .await;
    let mut request = Request::new(Method::POST, server.url("a.test")).body("body");
    for (name, value) in
        [("Authorization", "s1"), ("Cookie", "s2"), ("X-Api-Key", "s3"), ("Accept", "text/plain")]
            .into_iter()
            .chain([("Content-Type", "text/plain")])
    {
        request = request.header(name, value).unwrap();
    }
    client_of(&server).send(request, &Limits::default()).await.unwrap();
    server.seen.lock()[1].clone()
}

#[tokio::test]
async fn secrets_stay_with_their_origin() {
    let same = redirected(307, "a.test").await;
    assert!(same.starts_with("POST /next") && same.ends_with("body"), "{same}");
    for secret in ["authorization: s1", "cookie: s2", "x-api-key: s3"] {
        assert!(same.contains(secret), "{same}");
    }
    let other = redirected(307, "b.test").await;
    assert!(other.starts_with("POST /next") && other.ends_with("body"), "{other}");
    assert!(other.contains("accept: text/plain"));
    for secret in ["s1", "s2", "s3"] {
        assert!(!other.contains(secret), "{other}");
    }
}

#[tokio::test]
async fn a_redirected_post_becomes_a_get_by_its_status() {
    for (status, method) in [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")] {
        let seen = redirected(status, "a.test").await;
        assert!(seen.starts_with(method), "{status}: {seen}");
        assert_eq!(seen.ends_with("body"), method == "POST", "{status}: {seen}");
        assert_eq!(seen.contains("content-type"), method == "POST", "{status}: {seen}");
    }
}
