//! The byte budget for unfinished bodies and messages.

use futures_util::future::select_all;
use integration_tests::{AnswerExt, BOOTSTRAP, JSON, Raw, Socket, TestService, chat, within};

const MIB: usize = 1 << 20;

/// A request that sends most of an 8 MiB body, with this token.
async fn unfinished(t: &TestService, token: &str) -> Raw {
    let mut raw = t.raw().await;
    let head = format!(
        "POST /api/workflows/check HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        t.address(),
        8 * MIB
    );
    raw.write(head).await;
    raw.write(vec![b' '; 8 * MIB - 1]).await;
    raw
}

#[tokio::test]
async fn unfinished_bodies_per_caller_are_limited_to_32_mib() {
    let t = TestService::builder().alone().with_bootstrap_token().start().await;
    let other = t.root().token(&["workflows:read"], &["default"]).await;
    let mut open = Vec::new();
    for _ in 0..5 {
        open.push(unfinished(&t, BOOTSTRAP).await);
    }
    let answers = open.into_iter().map(|raw| Box::pin(raw.answer()));
    let (refused, _, _rest) = within("a rejection", select_all(answers)).await;
    assert_eq!(refused.whole().await.refusal(), "503 service.overloaded");
    // Another caller has a separate budget.
    let body = format!("{}{{}}", " ".repeat(MIB));
    let answer = t.bearer(&other).send("POST", "/api/workflows/check", &[JSON], &body).await;
    assert_eq!(answer.refusal(), "422 request.invalid", "{}", answer.text());
}

#[tokio::test]
async fn unfinished_messages_per_caller_are_limited_to_32_mib() {
    let t = TestService::builder().alone().with_bootstrap_token().start().await;
    let workflow = t.workflow().echo().create().await;
    let token = format!("Bearer {BOOTSTRAP}");
    let mut open = Vec::new();
    for _ in 0..5 {
        let mut socket = Socket::for_workflow(&t, &workflow, &[("authorization", &token)]).await;
        // The service may close the last one at once.
        let _ = socket.send_part(&vec![b' '; 8 * MIB - 1], true, false).await;
        open.push(socket);
    }
    let closed = open.iter_mut().map(|socket| Box::pin(socket.try_next()));
    let (closed, _, _rest) = within("a rejection", select_all(closed)).await;
    assert_eq!(closed.unwrap_err(), "1013 service.overloaded");
}

#[tokio::test]
async fn announced_bodies_do_not_use_the_budget() {
    let t = TestService::builder().alone().start().await;
    let workflow = t.workflow().echo().published().create().await;
    let head = format!(
        "POST /api/chat HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Expect: 100-continue\r\n\r\n",
        t.address(),
        8 * MIB
    );
    let mut silent = Vec::new();
    for from in ["127.0.0.2", "127.0.0.3"] {
        for _ in 0..4 {
            let mut raw = Raw::connect_from(from.parse().unwrap(), t.address()).await;
            raw.write(&head).await;
            let answer = raw.answer().await;
            assert_eq!(answer.status, 100, "the service waits for the body");
            silent.push(answer);
        }
    }
    let large = chat::create(&workflow, &"x".repeat(2 * MIB));
    assert_eq!(t.chat(&large).await.refusal(), "413 request.too_large");
}
